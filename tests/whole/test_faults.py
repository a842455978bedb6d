"""Runs that are stopped, killed or hindered: nothing is lost, and they go on to the same result."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from paths import CONFIGS, ROOT

from user_dgl.cli import main
from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.errors import InputError, StoppedError
from user_dgl.output.run_directory import RunDirectory
from user_dgl.pipeline.train import train
from user_dgl.runtime.signals import StopSignal
from user_dgl.training.checkpoint import save_checkpoint
from user_dgl.training.hooks import Hooks
from user_dgl.training.trainer import Trainer

CONFIG = str(CONFIGS / "quickstart.yaml")
# Candidates that change, replicas with an A' of their own, a schedule: all that a checkpoint holds.
SETTINGS = (
    "data.synthetic.num_nodes=300", "model.hidden_feats=[16]", "train.epochs=300",
    "train.restarts=2", "structure.shared=false", "structure.candidates.uniform=1",
    "structure.candidates.same_cluster=1", "structure.candidates.refresh_every=7",
    "train.plateau_patience=2", "train.checkpoint_every=20", "eval.floors=false",
)  # fmt: skip
SAME = ("clusters.csv", "embedding.npy", "learned_graph.npz", "input.npz")


def _command(run_dir, *overrides):
    return [
        sys.executable, "-m", "user_dgl", "train", CONFIG, *SETTINGS, f"output_dir={run_dir}",
        *overrides,
    ]  # fmt: skip


def _run(run_dir, *overrides, **options):
    return subprocess.run(
        _command(run_dir, *overrides), cwd=ROOT, capture_output=True, text=True, **options
    )


def _finish(run_dir, *overrides):
    """Train in this process, which saves the start of Python."""
    assert main(["train", CONFIG, *SETTINGS, f"output_dir={run_dir}", *overrides]) == 0


def _rows(run_dir):
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _until_epoch(process, run_dir, epoch):
    end = time.monotonic() + 120
    while not (run_dir / "metrics.jsonl").exists() or len(_rows(run_dir)) < epoch:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)


def _assert_same(run_dir, expected):
    for name in SAME:
        assert (run_dir / name).read_bytes() == (expected / name).read_bytes(), name
    rows, others = _rows(run_dir), _rows(expected)
    for row in (*rows, *others):
        row.pop("seconds")
    assert rows == others


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("undisturbed") / "run"
    _finish(run_dir)
    return run_dir


@contextmanager
def _started(run_dir, *overrides):
    """A run of its own, which does not outlast the block."""
    process = subprocess.Popen(
        _command(run_dir, *overrides), cwd=ROOT, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
        # A shell's background jobs ignore it, and what they start too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_a_signal_saves_and_says_how_to_go_on(tmp_path, undisturbed, number):
    run_dir, rarely = tmp_path / "run", "train.checkpoint_every=1000"
    with _started(run_dir, rarely) as process:
        _until_epoch(process, run_dir, 5)
        process.send_signal(number)
        process.send_signal(number)  # as service managers do
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    reached = len(_rows(run_dir))
    assert f"stopped by signal {number:d} after epoch {reached}, which is saved" in errors
    assert "train.resume=true" in errors
    assert errors.count("\n") == 1
    checkpoint = torch.load(run_dir / "checkpoint.pt", weights_only=True)
    assert checkpoint["progress"]["epoch"] == reached < 300
    _finish(run_dir, rarely, "train.resume=true")
    _assert_same(run_dir, undisturbed)


def test_a_signal_in_the_last_epoch_leaves_the_results_to_the_resume(tmp_path, undisturbed):
    """On a large graph they take longer than who stops a process waits."""
    config = load_config(CONFIG, [*SETTINGS, f"output_dir={tmp_path / 'run'}"])

    class Late(StopSignal):
        @property
        def number(self):
            return signal.SIGTERM if len(_rows(tmp_path / "run")) == 300 else None

        @number.setter
        def number(self, value):
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("user_dgl.pipeline.train.Hooks", partial(Hooks, stop=Late()))
        with pytest.raises(StoppedError, match="after epoch 300, which is saved"):
            train(config, tmp_path / "run", lambda line: None)
    assert not (tmp_path / "run" / "result.json").exists()
    _finish(tmp_path / "run", "train.resume=true")
    _assert_same(tmp_path / "run", undisturbed)


def test_a_signal_after_the_last_epoch_stops_too(tmp_path, undisturbed, monkeypatch):
    config = load_config(CONFIG, [*SETTINGS, f"output_dir={tmp_path / 'run'}"])
    result = Trainer.result

    def interrupted(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return result(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "result", interrupted)
        with pytest.raises(StoppedError, match="after epoch 300, which is saved"):
            train(config, tmp_path / "run", lambda line: None)
    assert not (tmp_path / "run" / "result.json").exists()
    _finish(tmp_path / "run", "train.resume=true")
    _assert_same(tmp_path / "run", undisturbed)


def test_without_anybody_who_saves_a_signal_is_what_it_was():
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    data = block_model(SyntheticConfig(num_nodes=50))
    seen = []
    Trainer(
        data.graph, data.feat, load_config(None, ["model.num_clusters=5", "train.epochs=1"]),
        Hooks(
            record=lambda row: seen.extend(map(signal.getsignal, (signal.SIGINT, signal.SIGTERM)))
        ),
    ).fit()  # fmt: skip
    assert seen == handlers


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_and_resumed_each_time(tmp_path, undisturbed, kills):
    """Starting, training, writing a checkpoint or a result: whenever it comes."""
    run_dir, rng = tmp_path / "run", np.random.default_rng(kills)
    # So often that many kills fall into the writing of one.
    settings = "train.resume=true", "train.checkpoint_every=2"
    finished = killed = 0
    while killed < kills:
        with _started(run_dir, *settings) as process:
            if killed % 3:  # else even before the first epoch
                reached = len(_rows(run_dir)) if (run_dir / "metrics.jsonl").exists() else 0
                _until_epoch(process, run_dir, min(reached + 1, 300))
            try:
                process.wait(timeout=rng.uniform(0, 2))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
                continue
        assert process.returncode == 0
        _assert_same(run_dir, undisturbed)
        finished += 1
        for file in run_dir.iterdir():  # it got to the end between kills: from the start
            file.unlink()
    _finish(run_dir, *settings)
    _assert_same(run_dir, undisturbed)
    print(f"{kills} kills, {finished + 1} runs finished")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("num_nodes", [300, 3000])
def test_a_full_disk_keeps_the_last_good_checkpoint(tmp_path, num_nodes, share):
    """Wherever in the file it is full; blocks below and above those of the buffer."""
    file, values = tmp_path / "checkpoint.pt", torch.zeros(num_nodes, 16)
    save_checkpoint(file, {"epoch": 1, "values": values})
    before = file.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(share * len(before)), limits[1]))
    try:
        with pytest.raises(InputError, match=r"checkpoint\.pt: cannot be written: File too large"):
            save_checkpoint(file, {"epoch": 2, "values": values})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_a_full_disk_in_mid_training_is_one_line(tmp_path):
    run_dir = tmp_path / "run"

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    done = _run(run_dir, preexec_fn=small_files)
    assert done.returncode == 2
    assert "checkpoint.pt: cannot be written: File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(run_dir.glob(".*.part"))
    _finish(run_dir, "train.resume=true", "train.epochs=300")


def test_a_folder_that_cannot_be_written(capsys):
    assert main(["train", CONFIG, *SETTINGS, "output_dir=/proc/run"]) == 2
    errors = capsys.readouterr().err
    assert "/proc/run: cannot be written" in errors
    assert errors.count("\n") == 1


def test_a_truncated_checkpoint_is_refused_and_nothing_touched(tmp_path, undisturbed, capsys):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    for name in ("config.yaml", "metrics.jsonl"):
        (run_dir / name).write_bytes((undisturbed / name).read_bytes())
    whole = (undisturbed / "checkpoint.pt").read_bytes()
    (run_dir / "checkpoint.pt").write_bytes(whole[: len(whole) // 2])
    before = {file.name: file.read_bytes() for file in run_dir.iterdir()}
    capsys.readouterr()
    command = ["train", CONFIG, *SETTINGS, f"output_dir={run_dir}", "train.resume=true"]
    assert main(command) == 2
    errors = capsys.readouterr().err
    assert "checkpoint.pt: not a readable checkpoint (cut off or damaged)" in errors
    assert "overwrite=true" in errors
    assert errors.count("\n") == 1
    assert {file.name: file.read_bytes() for file in run_dir.iterdir()} == before


def test_what_a_killed_process_was_about_to_write_is_no_run(tmp_path, undisturbed):
    for name in ("config.yaml", "checkpoint-3-0.pt"):
        (tmp_path / f".{name}.0a1b2c3d.part").write_text("seed: 0")
    config = load_config(CONFIG, [*SETTINGS, "train.resume=true"])
    run = RunDirectory(tmp_path)
    assert run.checkpoint_to_resume(config) is None
    run.begin(config, None)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config.yaml", "metrics.jsonl"]


def _seen(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def _empty(state):
    return {}


def _another_version(state):
    return state | {"progress": {"epoch": 1, "unknown": 2}}


def _another_model(state):
    return state | {"model": {}}


def _a_list(state):
    return [1]


@pytest.mark.parametrize("other", [_empty, _another_version, _another_model, _a_list])
def test_a_refused_checkpoint_costs_nothing(tmp_path, capsys, other):
    """All that can be checked is checked before the log is cut and the settings are rewritten."""
    run_dir = tmp_path / "run"
    command = [
        "train", CONFIG, "data.synthetic.num_nodes=60", "train.epochs=6", "train.restarts=1",
        "train.checkpoint_every=3", "eval.floors=false", f"output_dir={run_dir}",
    ]  # fmt: skip
    assert main(command) == 0
    (run_dir / "result.json").unlink()
    state = torch.load(run_dir / "checkpoint.pt", weights_only=True)
    torch.save(other(state), run_dir / "checkpoint.pt")
    before = _seen(run_dir)
    capsys.readouterr()
    assert main([*command, "train.resume=true", "train.log_every=2"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "overwrite=true" in error
    assert _seen(run_dir) == before


def test_data_that_have_changed_cost_nothing(tmp_path, capsys):
    edges, features, run_dir = tmp_path / "e.csv", tmp_path / "f.npy", tmp_path / "run"
    edges.write_text("0,1\n1,2\n2,0\n2,3\n3,4\n4,5\n5,3\n")
    np.save(features, np.eye(6))
    command = [
        "train", "--edges", str(edges), "--features", str(features), "--clusters", "2",
        "train.epochs=4", f"output_dir={run_dir}", "eval.floors=false",
    ]  # fmt: skip
    assert main(command) == 0
    (run_dir / "result.json").unlink()
    before = _seen(run_dir)
    np.save(features, 2 * np.eye(6) + 1)
    assert main([*command, "train.resume=true"]) == 2
    assert "the data have changed since" in capsys.readouterr().err
    assert _seen(run_dir) == before


def test_an_occupied_folder_is_found_before_the_data_are_read(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    missing = ["train", "--edges", str(tmp_path / "none.csv"), f"output_dir={tmp_path}"]
    assert main(missing) == 2
    assert "model.num_clusters is not set" in capsys.readouterr().err
    assert main([*missing, "--clusters", "2"]) == 2
    assert f"{tmp_path}: not empty" in capsys.readouterr().err
    assert main([*missing[:3], "--clusters", "2", f"output_dir={tmp_path / 'new'}"]) == 2
    assert "none.csv: not found" in capsys.readouterr().err
