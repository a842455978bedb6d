"""Runs that are stopped, killed or hindered: nothing is lost, and they go on to the same result."""

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).parent.parent
CONFIG = str(ROOT / "configs" / "quickstart.yaml")
# Candidates that change, replicas with an A' of their own, a schedule: all that a checkpoint holds.
SETTINGS = (
    "data.synthetic.num_nodes=300", "model.hidden_feats=[16]", "train.epochs=60",
    "train.restarts=2", "structure.shared=false", "structure.candidates.uniform=1",
    "structure.candidates.same_cluster=1", "structure.candidates.refresh_every=7",
    "train.plateau_patience=2", "train.checkpoint_every=4", "eval.floors=false",
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
    done = _run(run_dir)
    assert done.returncode == 0, done.stderr
    return run_dir


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_how_to_go_on(tmp_path, undisturbed, number):
    run_dir, rarely = tmp_path / "run", "train.checkpoint_every=1000"
    process = subprocess.Popen(
        _command(run_dir, rarely), cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    _until_epoch(process, run_dir, 5)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    reached = len(_rows(run_dir))
    assert f"stopped by signal {number:d} after epoch {reached}, which is saved" in errors
    assert "train.resume=true" in errors
    assert "Traceback" not in errors
    checkpoint = torch.load(run_dir / "checkpoint.pt", weights_only=True)
    assert checkpoint["progress"]["epoch"] == reached < 60
    done = _run(run_dir, rarely, "train.resume=true")
    assert done.returncode == 0, done.stderr
    _assert_same(run_dir, undisturbed)


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_and_resumed_each_time(tmp_path, undisturbed, kills):
    """Loading, training, writing a checkpoint or a result: whenever it comes."""
    run_dir, rng = tmp_path / "run", np.random.default_rng(kills)
    # Slowed down by a checkpoint every epoch, so that many kills fall into the writing of one.
    command = _command(run_dir, "train.resume=true", "train.checkpoint_every=1")
    done = 0
    while done < kills:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            process.wait(timeout=rng.uniform(0.1, 8))
        except subprocess.TimeoutExpired:
            process.kill()
            done += 1
        else:
            errors = process.stderr.read()
            assert process.returncode == 0, errors
            _assert_same(run_dir, undisturbed)
            for file in run_dir.iterdir():  # it got to the end between kills: from the start
                file.unlink()
        process.stderr.close()
        process.wait()
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    _assert_same(run_dir, undisturbed)


def test_a_full_disk_keeps_the_last_good_checkpoint(tmp_path, undisturbed):
    run_dir = tmp_path / "run"
    process = subprocess.Popen(
        _command(run_dir), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _until_epoch(process, run_dir, 9)
    process.kill()
    process.wait()
    before = (run_dir / "checkpoint.pt").read_bytes()

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, len(before) // 2))

    done = _run(run_dir, "train.resume=true", preexec_fn=small_files)
    assert done.returncode == 2
    assert "checkpoint.pt: cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (run_dir / "checkpoint.pt").read_bytes() == before
    assert not list(run_dir.glob(".*.part"))
    done = _run(run_dir, "train.resume=true")
    assert done.returncode == 0, done.stderr
    _assert_same(run_dir, undisturbed)


def test_a_folder_that_cannot_be_written():
    done = _run("/proc/run")
    assert done.returncode == 2
    assert "/proc/run: cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_truncated_checkpoint_is_refused_and_nothing_touched(tmp_path, undisturbed):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    for name in ("config.yaml", "metrics.jsonl"):
        (run_dir / name).write_bytes((undisturbed / name).read_bytes())
    whole = (undisturbed / "checkpoint.pt").read_bytes()
    (run_dir / "checkpoint.pt").write_bytes(whole[: len(whole) // 2])
    before = {file.name: file.read_bytes() for file in run_dir.iterdir()}
    done = _run(run_dir, "train.resume=true")
    assert done.returncode == 2
    assert "checkpoint.pt: not a readable checkpoint" in done.stderr
    assert "overwrite=true" in done.stderr
    assert done.stderr.count("\n") == 1
    assert {file.name: file.read_bytes() for file in run_dir.iterdir()} == before
