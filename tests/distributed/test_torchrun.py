"""``torchrun -m user_dgl``: real processes on this machine."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch.distributed as dist
from launched_runs import CONFIG, SMALL, launch_command, outcome
from paths import ROOT

from user_dgl.cli import main

README = ROOT / "user_dgl" / "distributed" / "README.md"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="torch without gloo")


def _torchrun(*words, nproc=2):
    # Gloo would else look for the interface by the name of the host, which may not resolve.
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run(
        [*TORCHRUN, "--standalone", f"--nproc-per-node={nproc}", "-m", "user_dgl", *words],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def _assert_same(run_dir, expected_dir):
    loss, clusters, embedding = outcome(run_dir)
    expected_loss, expected_clusters, expected_embedding = outcome(expected_dir)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-8)
    assert clusters == expected_clusters
    np.testing.assert_allclose(embedding, expected_embedding, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def by_launch(tmp_path_factory):
    """The run of ``user-dgl launch --nproc 2``."""
    run_dir = tmp_path_factory.mktemp("launch") / "run"
    done = subprocess.run(launch_command(2, run_dir), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return run_dir


def test_torchrun_equals_launch(by_launch, tmp_path):
    done = _torchrun("train", CONFIG, *SMALL, f"output_dir={tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Epoch 00012") == 1
    assert done.stdout.count("Result |") == 1
    _assert_same(tmp_path / "run", by_launch)


def test_a_fault_in_the_settings_is_told_once(tmp_path):
    done = _torchrun("train", CONFIG, f"output_dir={tmp_path / 'run'}", "seeed=1")
    assert done.returncode == 1  # torchrun's own, whatever the status of the processes
    assert done.stderr.count("unknown key 'seeed'") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["config", CONFIG], "config runs as one process"),
        (["launch", "--", "train", CONFIG], "launch starts processes itself"),
    ],
)
def test_other_commands_are_refused(words, message, monkeypatch, capsys):
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)
    # With RANK, the command ends its process itself.
    monkeypatch.setattr(os, "_exit", lambda status: None)
    assert main(words) == 2
    assert message in capsys.readouterr().err


def _slurm_script():
    blocks = re.findall(r"```bash\n(#!/bin/bash\n.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


def test_the_slurm_script_has_ten_lines():
    assert len(_slurm_script().splitlines()) == 10


# Slurm's commands on one machine in the place of two.
_SRUN = """#!/bin/bash
"$@" & second=$!
"$@"; status=$?
wait "$second" && exit "$status"
"""
_SCONTROL = """#!/bin/bash
printf '127.0.0.1\\n127.0.0.2\\n'
"""


@pytest.mark.slow
def test_the_slurm_script_with_two_agents(by_launch, tmp_path):
    """In a network of their own, so that nothing listens outside of it."""
    inside = ["unshare", "-rn", "sh", "-c"]
    usable = subprocess.run([*inside, "ip link set lo up"], capture_output=True)
    if usable.returncode:
        pytest.skip("no network namespaces here")
    commands, run_dir = tmp_path / "bin", tmp_path / "run"
    commands.mkdir()
    python = f'#!/bin/bash\nexec {sys.executable} -m torch.distributed.run "$@"\n'
    for name, text in (("srun", _SRUN), ("scontrol", _SCONTROL), ("torchrun", python)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    script = tmp_path / "run.sh"
    script.write_text(_slurm_script().replace("--nproc-per-node 4", "--nproc-per-node 1"))
    words = " ".join(["train.epochs=12", *SMALL, f"output_dir={run_dir}"])
    environment = {
        **os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "GLOO_SOCKET_IFNAME": "lo",
        "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NNODES": "2", "SLURM_JOB_ID": "17",
    }  # fmt: skip
    done = subprocess.run(
        [*inside, f"ip link set lo up; bash {script} {CONFIG} {words}"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _assert_same(run_dir, by_launch)
