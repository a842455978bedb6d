"""tools/launch.py: real processes on this machine."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from launched_runs import CONFIG, SMALL, launch_command, outcome
from paths import ROOT

from user_dgl.cli import main
from user_dgl.distributed import launch as launcher
from user_dgl.distributed.ranks import joined
from user_dgl.errors import InputError

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="torch without gloo")


def _run(*arguments, **options):
    return subprocess.run(
        launch_command(*arguments, **options), cwd=ROOT, capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("alone") / "run"
    assert main(["train", CONFIG, *SMALL, f"output_dir={run_dir}"]) == 0
    return run_dir


def test_two_processes_do_what_one_does(alone, tmp_path):
    done = _run(2, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    loss, clusters, embedding = outcome(tmp_path / "run")
    expected_loss, expected_clusters, expected_embedding = outcome(alone)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-8)
    assert clusters == expected_clusters
    np.testing.assert_allclose(embedding, expected_embedding, rtol=1e-4, atol=1e-5)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["world_size"] == 2
    assert sum(rank["nodes"] for rank in result["ranks"]) == 200
    assert done.stdout.count("Epoch 00012") == 1


@pytest.mark.parametrize(
    ("override", "status", "message"),
    [
        ("train.restarts=2", 2, "a distributed run needs train.restarts=1"),
        pytest.param(
            "data.synthetic.num_blocks=900",
            2,
            "expected at least one for each of the 900 blocks",
            marks=pytest.mark.slow,
        ),
        ("loss.npsi_weight=1e308", 3, "loss is not finite"),
    ],
)
def test_a_fault_ends_all_with_its_status_and_one_message(tmp_path, override, status, message):
    done = _run(2, tmp_path / "run", override)
    assert done.returncode == status
    assert done.stderr.count(message) == 1
    assert "Traceback" not in done.stderr


LONGER = ("train.epochs=200", "distributed.timeout_s=20")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A longer run of two processes that nothing disturbs."""
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    done = _run(2, run_dir, *LONGER)
    assert done.returncode == 0, done.stderr
    return run_dir


def _assert_goes_on_to(run_dir, whole):
    assert not (run_dir / "result.json").exists()
    done = _run(2, run_dir, *LONGER, "train.resume=true")
    assert done.returncode == 0, done.stderr
    found, expected = outcome(run_dir), outcome(whole)
    # To rounding: from run to run of several processes the last digit of a sum may differ.
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
    assert found[1] == expected[1]
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_killed_process_ends_all_and_the_run_resumes(tmp_path, whole):
    """To the same result as without the fault; and nothing listens beyond this machine."""
    run_dir = tmp_path / "run"
    process = subprocess.Popen(
        launch_command(2, run_dir, *LONGER), cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        _until(lambda: _first_epoch_is_done(run_dir))
        ranks = [_rank(process.pid, rank) for rank in range(2)]
        listening = _listening([process.pid, *ranks])
        assert listening
        assert all(address in LOOPBACK for address in listening), listening
        os.kill(ranks[1], signal.SIGKILL)
        _, errors = process.communicate(timeout=40)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGKILL
    assert "signal 9" in errors
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)
    assert len((run_dir / "metrics.jsonl").read_text().splitlines()) < 200
    _assert_goes_on_to(run_dir, whole)


@pytest.mark.slow
def test_a_fault_of_the_second_process_alone(tmp_path):
    """It is told, with its status, and what was there is still there."""
    parts, run_dir = tmp_path / "parts", tmp_path / "run"
    assert _run(2, run_dir).returncode == 0
    before = sorted(file.name for file in run_dir.iterdir())
    settings = [CONFIG, *SMALL, "eval.floors=false"]
    assert main(["partition", *settings, "--parts", "2", "--out", str(parts)]) == 0
    (parts / "rank-1-of-2.pt").unlink()
    more = ("eval.floors=false", f"distributed.partition={parts}", "overwrite=true")
    done = _run(2, run_dir, *more)
    assert done.returncode == 2
    assert done.stderr.count("rank-1-of-2.pt: no checkpoint there") == 1
    assert sorted(file.name for file in run_dir.iterdir()) == before


def test_resume_with_other_processes_equals_the_run_without_a_fault(alone, tmp_path):
    run_dir = tmp_path / "run"
    stop = launch_command(2, run_dir)
    # The checkpoints of six epochs, as a run that was stopped then leaves them.
    assert subprocess.run([*stop, "train.epochs=6"], cwd=ROOT).returncode == 0
    (run_dir / "result.json").unlink()
    config = (run_dir / "config.yaml").read_text().replace("epochs: 6", "epochs: 12")
    (run_dir / "config.yaml").write_text(config)
    done = _run(3, run_dir, "train.resume=true")
    assert done.returncode == 0, done.stderr
    loss, clusters, _ = outcome(run_dir)
    expected_loss, expected_clusters, _ = outcome(alone)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-8)
    assert clusters == expected_clusters
    assert len(list(run_dir.glob("checkpoint-*.pt"))) == 3


@pytest.mark.parametrize("rank", [pytest.param(None, marks=pytest.mark.slow), 1])
def test_a_signal_stops_all_in_the_same_epoch_and_saves_it(tmp_path, whole, rank):
    """Ctrl-C at the launcher, or a scheduler that ends one of the ranks."""
    run_dir = tmp_path / "run"
    process = subprocess.Popen(
        launch_command(2, run_dir, *LONGER, "train.checkpoint_every=1000"),
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        _until(lambda: _first_epoch_is_done(run_dir))
        if rank is None:
            process.send_signal(signal.SIGINT)
        else:
            os.kill(_rank(process.pid, rank), signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + (signal.SIGINT if rank is None else signal.SIGTERM)
    reached = len((run_dir / "metrics.jsonl").read_text().splitlines())
    assert errors.count(f"after epoch {reached}, which is saved; train.resume=true") == 1
    assert "Traceback" not in errors
    epochs = [
        torch.load(file, weights_only=True)["progress"]["epoch"]
        for file in run_dir.glob("checkpoint-*.pt")
    ]
    assert epochs == [reached, reached]
    _assert_goes_on_to(run_dir, whole)


@pytest.mark.slow
def test_two_machines(alone, tmp_path):
    """Two launches in a network of their own, so that nothing listens outside of it."""
    inside = ["unshare", "-rn", "sh", "-c"]
    usable = subprocess.run([*inside, "ip link set lo up"], capture_output=True)
    if usable.returncode:
        pytest.skip("no network namespaces here")
    run_dir = tmp_path / "run"
    each = [
        launch_command(1, run_dir, options=(
            "--nnodes", "2", "--node-rank", str(rank), "--master-addr", "127.0.0.1",
        ))
        for rank in range(2)
    ]  # fmt: skip
    first, second = (" ".join(f"'{word}'" for word in command) for command in each)
    script = (
        f"ip link set lo up; export GLOO_SOCKET_IFNAME=lo; {second} & {first}; "
        "status=$?; wait $! && exit $status"
    )
    done = subprocess.run([*inside, script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loss, clusters, _ = outcome(run_dir)
    expected_loss, expected_clusters, _ = outcome(alone)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-8)
    assert clusters == expected_clusters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nnodes", "2"], "--master-addr"),
        (["--nnodes", "2", "--node-rank", "2", "--master-addr", "x"], "expected 0..1"),
        (["--nproc", "0"], "1 or more"),
        (["--master-port", "70000"], "from 1 to 65535"),
    ],
)
def test_options_that_do_not_fit(options, message, capsys):
    with pytest.raises(SystemExit) as refused:
        launcher.main([*options, "--", "train", CONFIG])
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


# Of /proc/net/tcp and tcp6.
LOOPBACK = (
    "0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F",
)  # fmt: skip


def _listening(pids):
    """Addresses that processes listen at."""
    inodes = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(link) if link.is_symlink() else ""
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(fields[1].partition(":")[0])
    return found


def _first_epoch_is_done(run_dir):
    metrics = run_dir / "metrics.jsonl"
    return metrics.exists() and metrics.stat().st_size > 0


def _until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def _rank(launcher, rank):
    """Process id of a rank, by its environment."""
    for _ in range(100):
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
                ended = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if f"RANK={rank}".encode() in environment and int(ended[1]) == launcher:
                return int(folder.name)
        time.sleep(0.1)
    raise AssertionError(f"no process of rank {rank}")


def test_other_commands_run_as_one_process(capsys):
    with pytest.raises(SystemExit) as refused:
        launcher.main(["--nproc", "2", "--", "config", CONFIG])
    assert refused.value.code == 2
    assert "config runs as one process" in capsys.readouterr().err


@pytest.fixture
def launch(monkeypatch):
    """The launcher as a module, with two GPUs to see."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    return launcher


def test_a_process_for_each_gpu_and_no_more_unless_they_share(launch, capsys):
    assert launch._parse(["--", "train", CONFIG]).nproc == 2
    assert launch._parse(["--nproc", "1", "--", "train", CONFIG]).nproc == 1
    with pytest.raises(SystemExit) as refused:
        launch._parse(["--nproc", "3", "--", "train", CONFIG])
    assert refused.value.code == 2
    assert "more processes than the 2 GPUs here" in capsys.readouterr().err
    for words in (
        ["--backend", "gloo", "--", "train", CONFIG],
        ["--", "train", CONFIG, "distributed.backend=gloo"],
        ["--", "train", CONFIG, "device=cpu"],
    ):
        assert launch._parse(["--nproc", "3", *words]).nproc == 3
    assert launch._parse(["--", "train", CONFIG, "device=cpu"]).nproc == 1
    options = ["--edges", "edges.csv", "--clusters", "3", "device=cpu"]
    assert launch._parse(["--", "train", *options]).nproc == 1


def test_settings_in_the_file_count_too(launch, tmp_path):
    file = tmp_path / "config.yaml"
    for setting, least in (
        ("device: cpu", 1),
        ("distributed: {backend: gloo}", 2),
        ("structure: {engine: dgl}", 1),
    ):
        file.write_text(f"extends: {CONFIG}\n{setting}\n")
        assert launch._parse(["--", "train", str(file)]).nproc == least, setting
        assert launch._parse(["--nproc", "3", "--", "train", str(file)]).nproc == 3


def test_a_machine_that_is_not_there(monkeypatch, capsys):
    """Torch waits for ten minutes; here it gives up at once."""

    def give_up(*arguments, **settings):
        raise dist.DistStoreError("The client socket has timed out\nwhile trying to connect")

    monkeypatch.setattr("torch.distributed.launcher.api.launch_agent", give_up)
    words = ["--nnodes", "2", "--master-addr", "nowhere.invalid", "--", "train", CONFIG]
    assert launcher.main(words) == 4
    error = capsys.readouterr().err
    assert error.startswith("launch: nowhere.invalid:29400: The client socket has timed out")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "MASTER_PORT is ''"),
        ({"MASTER_PORT": "29400"}, "MASTER_ADDR is ''"),
        ({"MASTER_PORT": "many", "MASTER_ADDR": "127.0.0.1"}, "MASTER_PORT is 'many'"),
        ({"RANK": ""}, "RANK is ''"),
    ],
)
def test_an_environment_that_no_launcher_made(monkeypatch, capsys, tmp_path, variables, message):
    for name in ("MASTER_ADDR", "MASTER_PORT", "USER_DGL_STORE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=message), joined("gloo", 10.0, torch.device("cpu")):
        pass


def test_the_backend_goes_among_the_settings(launch):
    assert launch._with_backend(["train", "a.yaml", "seed=1"], None) == [
        "train",
        "a.yaml",
        "seed=1",
    ]
    assert launch._with_backend(["train", "a.yaml", "--x", "y"], "gloo") == [
        "train", "a.yaml", "distributed.backend=gloo", "--x", "y",
    ]  # fmt: skip


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("device=cuda", "torch sees no CUDA device"),
        pytest.param("distributed.backend=nccl", "needs a GPU", marks=pytest.mark.slow),
    ],
)
def test_a_gpu_that_is_not_there_is_told_once(tmp_path, override, message):
    done = _run(2, tmp_path / "run", override)
    assert done.returncode == 2
    assert done.stderr.count(message) == 1
    assert not (tmp_path / "run").exists()
