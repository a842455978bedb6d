"""Memory: nothing is quadratic in the nodes, and what a run will take is known beforehand."""

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import scipy.sparse as sp
import torch
from paths import CONFIGS, ROOT, TOOLS

from user_dgl.baselines import resolve_baseline
from user_dgl.config import load_config
from user_dgl.distributed.run import check_machines
from user_dgl.errors import InputError
from user_dgl.runtime import machine
from user_dgl.runtime.allocator import glibc
from user_dgl.runtime.machine import available_memory_mb
from user_dgl.training import memory
from user_dgl.training.memory import check_memory, plan_memory

# Page faults of a block in the place of a freed one, and MB that stay afterwards.
_FREED = """
import resource
import torch
from user_dgl.runtime import allocator, machine

before = machine.resident_mb()
with allocator.freed_memory_kept():
    block = torch.zeros(2**26)
    del block
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    again = torch.zeros(2**25)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
    del again
print(machine.resident_mb() - before)
"""


def _train(config, run_dir, *overrides, processes=None):
    launch = [str(TOOLS / "launch.py"), "--nproc", str(processes), "--"]
    command = [
        sys.executable, *(launch if processes else ["-m", "user_dgl"]), "train",
        str(CONFIGS / config), f"output_dir={run_dir}", *overrides,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((run_dir / "result.json").read_text()), done.stdout + done.stderr


@pytest.mark.slow
def test_two_hundred_thousand_nodes_and_two_million_edges(tmp_path):
    """Where an N x N matrix would take 160 GB."""
    result, _ = _train(
        "quickstart.yaml", tmp_path / "run", "data.synthetic.num_nodes=200000",
        "data.synthetic.average_degree=20", "structure.candidates.feature_knn=0",
        "structure.candidates.k_hop=1", "structure.candidates.uniform=1",
        "structure.candidates.same_cluster=1", "structure.candidates.refresh_every=2",
        "data.noise.rate=0.1", "train.epochs=3", "train.restarts=1",
    )  # fmt: skip
    assert result["num_nodes"] == 200_000
    assert result["num_observed_edges"] > 2_000_000
    assert result["num_candidate_edges"] > 400_000
    assert result["peak_memory_mb"] < 4000


@pytest.mark.slow
def test_one_million_nodes_and_ten_million_edges_in_five_gigabytes(tmp_path):
    result, _ = _train("large/sbm_1m.yaml", tmp_path / "run", "train.epochs=12")
    assert (result["num_nodes"], result["num_observed_edges"]) == (1_000_000, 10_000_000)
    assert result["peak_memory_mb"] < 5000


SMOOTH = (
    "default.yaml", "data={kind: synthetic, synthetic: {num_blocks: 9, num_features: 600}}",
    "model.num_clusters=9",
)  # fmt: skip
BLOCKS = (
    "default.yaml", "data={kind: synthetic, synthetic: {num_nodes: 100000, num_blocks: 50}}",
    "data.synthetic.average_degree=20", "data.synthetic.num_features=64", "model.num_clusters=50",
)  # fmt: skip
LINKS = (
    "default.yaml", "data={kind: synthetic, synthetic: {num_blocks: 9, num_features: 100}}",
    "model.num_clusters=9", "task=link_prediction", "structure.prior=link_critic",
    "structure.critic={folds: 3}",
)  # fmt: skip
MODELS = {
    "gcn": ("large/sbm_1m.yaml", "data.synthetic.num_nodes=100000"),
    "parts": ("large/sbm_1m.yaml", "data.synthetic.num_nodes=100000", "train.mode=partition"),
    "smooth": (*SMOOTH, "data.synthetic.num_nodes=20000"),
    "links": (*LINKS, "data.synthetic.num_nodes=20000"),
    "gae": (
        "quickstart.yaml", "data.synthetic.num_nodes=50000", "model.kind=gae", "baseline.epochs=2",
    ),
    "gic": (
        "quickstart.yaml", "data.synthetic.num_nodes=20000", "model.kind=gic", "baseline.epochs=12",
    ),
    "gca": (
        "quickstart.yaml", "data.synthetic.num_nodes=4096", "model.kind=gca", "baseline.epochs=12",
    ),
    "supported vgae": (
        "quickstart.yaml", "data.synthetic.num_nodes=20000", "model.encoder=vgae",
        "model.hidden_feats=[64,32]", "loss.supporting_weight=1",
    ),
}  # fmt: skip
RARELY = {
    "gae on dgl": (
        "quickstart.yaml", "data.synthetic.num_nodes=50000", "model.kind=gae", "baseline.epochs=2",
        "structure.engine=dgl",
    ),
    "gcn of many edges": (
        "large/sbm_1m.yaml", "data.synthetic.num_nodes=30000", "data.synthetic.average_degree=60",
        "model.hidden_feats=[128,64]", "model.dropout=0.5", "model.observed_mix=0.5",
    ),
    "gcn, code length": (
        "large/sbm_1m.yaml", "data.synthetic.num_nodes=50000", "loss.code_length_weight=1",
        "data.synthetic.num_features=1000",
    ),
    "a million edges": (*BLOCKS, "structure.prior=posterior"),
    "a million edges, critic alone": (*BLOCKS, "structure.prior=critic"),
    "larger smooth": (*SMOOTH, "data.synthetic.num_nodes=50000"),
    "larger links": (*LINKS, "data.synthetic.num_nodes=50000"),
}  # fmt: skip


# One of each way that memory is estimated; the others are slow tests.
OFTEN = ("gcn", "smooth", "gae", "parts")


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(settings, id=name, marks=[] if name in OFTEN else [pytest.mark.slow])
        for name, settings in (MODELS | RARELY).items()
    ],
)
def test_memory_foretold_is_that_measured(tmp_path, settings):
    config, *overrides = settings
    result, output = _train(config, tmp_path / "run", "train.epochs=2", *overrides)
    foretold = 1000 * float(output.partition("Memory: about ")[2].split()[0])
    assert foretold == pytest.approx(result["peak_memory_mb"], rel=0.2)


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch without gloo")
def test_memory_foretold_of_two_processes(tmp_path):
    settings = "data.synthetic.num_nodes=100000", "train.epochs=2"
    result, output = _train("large/sbm_1m.yaml", tmp_path / "run", *settings, processes=2)
    foretold = 1000 * float(output.partition("Memory: about ")[2].split()[0])
    assert foretold == pytest.approx(result["peak_memory_mb"], rel=0.2)


def test_processes_that_a_machine_cannot_hold_are_refused():
    """The first rank, which has the whole graph, may be far larger than the others."""
    check_machines([("0", 2500, 4000), ("0", 700, 4000), ("0", 700, 4000), ("1", 3000, 3100)])
    with pytest.raises(InputError, match=r"machine 1: its 2 .* 3\.2 GB .* has 3\.1"):
        check_machines([("0", 2500, 4000), ("1", 1600, 3100), ("1", 1600, 3100)])


def test_a_run_that_cannot_fit_is_refused(monkeypatch):
    config = load_config(CONFIGS / "large" / "sbm_1m.yaml")
    feat = sp.csr_matrix((1_000_000, 200))
    monkeypatch.setattr(memory, "machine_memory_mb", lambda: 5000)
    monkeypatch.setattr(memory, "available_memory_mb", lambda: 5000)
    expected, keeps_freed = plan_memory(config, 10_000_000, feat)
    assert expected > 2000
    assert not keeps_freed
    monkeypatch.setattr(memory, "machine_memory_mb", lambda: expected + 1)
    line, _ = check_memory(config, 10_000_000, feat)
    assert "Memory: about" in line
    monkeypatch.setattr(memory, "machine_memory_mb", lambda: expected / 2)
    with pytest.raises(InputError, match=r"memory and the machine has .*train\.mode=partition"):
        check_memory(config, 10_000_000, feat)
    smooth = load_config(CONFIGS / "default.yaml", ["model.num_clusters=5"])
    monkeypatch.setattr(memory, "machine_memory_mb", lambda: 1.0)
    # Settings that parts refuse are not answered with parts.
    mixed = load_config(None, ["model.num_clusters=5", "model.observed_mix=0.5"])
    with pytest.raises(InputError, match=r"has 0\.0: lower model\.hidden_feats"):
        check_memory(mixed, 100, sp.csr_matrix((50, 20)))
    baseline, _ = resolve_baseline(load_config(None, ["model.kind=gic", "model.num_clusters=5"]))
    with pytest.raises(InputError, match=r"lower baseline\.hidden_feats"):
        check_memory(baseline, 100, sp.csr_matrix((50, 20)))
    with pytest.raises(InputError, match="num_components"):
        check_memory(smooth, 100, sp.csr_matrix((50, 20)))


def _added(config, **more):
    """Bytes that a run is expected to add, of a graph of 1M nodes and 10M edges."""
    feat = sp.csr_matrix((1_000_000, 200))
    return 1e6 * (plan_memory(config, 10_000_000, feat, **more).expected_mb - memory.resident_mb())


def test_floats_of_training_count_by_their_size():
    name = CONFIGS / "large" / "sbm_1m.yaml"
    single, double = (
        _added(load_config(name, [f"train.precision={p}"])) for p in ("float32", "float64")
    )
    # The ends of the pairs, which are whole numbers, stay as they are.
    assert 1.5 < double / single < 2


def test_pairs_of_a_part_are_counted_once():
    """Candidates among them are not added again to what is known."""
    config = load_config(None, ["model.num_clusters=5", "structure.candidates.feature_knn=10"])
    assert config.structure.candidates.pairs_per_node >= 10
    known, guessed = _added(config, num_pairs=15_000_000), _added(config)
    fewer = _added(config, num_pairs=12_000_000)
    assert fewer < known < guessed
    assert (known - fewer) / 3e6 == pytest.approx(84, rel=0.3)  # a pair that is learned


def test_what_the_first_of_several_processes_gathers_and_cuts_is_foretold(monkeypatch):
    config = load_config(CONFIGS / "default.yaml", ["model.num_clusters=10"])
    # 40 columns, 10 clusters, 16 bytes of a node and 290 of its pairs, twice.
    needed = 2 * (4 * 50 + 16 + 290)
    for total, fits in ((needed + 1, True), (needed - 1, False)):
        monkeypatch.setattr(memory, "machine_memory_mb", lambda total=total: total)
        with nullcontext() if fits else pytest.raises(InputError, match="to gather the result"):
            memory.check_gathering(config, 1_000_000, 10_000_000)
    monkeypatch.setattr(memory, "machine_memory_mb", lambda: memory.resident_mb() + 100)
    memory.check_cutting(1000, 5000)
    with pytest.raises(InputError, match=r"cutting the graph .* user-dgl partition on a larger"):
        memory.check_cutting(1_000_000, 10_000_000)


def test_machine_memory_is_at_least_what_this_process_holds():
    assert memory.peak_memory_mb() < memory.machine_memory_mb()


def test_available_memory_is_less_than_what_a_control_group_has_left(monkeypatch):
    files = {
        "/sys/fs/cgroup/memory.max": "6000000000",
        "/sys/fs/cgroup/memory.current": "5000000000",
        "/sys/fs/cgroup/memory.stat": "anon 9\ninactive_file 1000000000\nactive_file 500000000\n",
        "/proc/meminfo": "MemTotal: 90000000 kB\nMemAvailable: 80000000 kB\n",
    }

    def read(path):
        if str(path) not in files:
            raise FileNotFoundError(path)
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(machine, "_physical_mb", lambda: 90_000.0)
    assert available_memory_mb() == pytest.approx(2500)
    files["/proc/meminfo"] = "MemTotal: 90000000 kB\nMemAvailable: 1000000 kB\n"
    assert available_memory_mb() == pytest.approx(1024)
    files["/proc/meminfo"] = "MemTotal: 90000000 kB\nMemAvailable: 80000000 kB\n"
    files["/sys/fs/cgroup/memory.max"] = "max"  # no limit
    assert available_memory_mb() == pytest.approx(81_920)
    files["/proc/meminfo"] = "MemTotal: 90000000 kB\nMemAvailable: 1000000 kB\n"
    for name in ("max", "current", "stat"):
        del files[f"/sys/fs/cgroup/memory.{name}"]
    assert available_memory_mb() == pytest.approx(1024)


def test_freed_memory_is_kept_where_it_is_plenty_and_given_back(monkeypatch):
    config = load_config(CONFIGS / "large" / "sbm_1m.yaml")
    feat = sp.csr_matrix((1_000_000, 200))
    monkeypatch.setattr(memory, "machine_memory_mb", lambda: 5000.0)
    monkeypatch.setattr(memory, "available_memory_mb", lambda: 5000.0)
    tight = plan_memory(config, 10_000_000, feat)
    monkeypatch.setattr(memory, "machine_memory_mb", lambda: 50_000.0)
    monkeypatch.setattr(memory, "available_memory_mb", lambda: 50_000.0)
    plenty = plan_memory(config, 10_000_000, feat)
    assert not tight.keeps_freed
    if glibc() is None:
        pytest.skip("not glibc")
    assert plenty.keeps_freed
    assert plenty.expected_mb > tight.expected_mb
    # In a process of its own: in one that has run other tests the heap may have no room to grow in.
    command = [sys.executable, "-c", _FREED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    faults, left = map(float, done.stdout.split())
    assert faults < 1000
    assert left < 64
