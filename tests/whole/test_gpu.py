"""On a GPU: the kernels, steps of training and their memory, against the CPU."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from graphs import GRAPHS, random_graph
from kernels import KERNELS
from paths import CONFIGS, ROOT, TOOLS

from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.training.hooks import Hooks
from user_dgl.training.trainer import Trainer

LAUNCH = TOOLS / "launch.py"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]

MODELS = {
    "gcn": ("model.hidden_feats=[32,16]", "train.structure_lr=0.01"),
    "gae, reconstruction": (
        "model.encoder=gae", "model.head=linear", "model.hidden_feats=[32,16]",
        "loss.reconstruction_weight=0.01",
    ),
    "restarts": ("train.restarts=3", "structure.shared=false", "train.consensus=labels"),
    "refreshed candidates": (
        "structure.candidates.same_cluster=2", "structure.candidates.refresh_every=3",
    ),
    "smooth": (
        "model.encoder=smooth", "model.head=centroid", "model.labels=code",
        "model.observed_mix=0", "model.logit_dropout=0", "structure.prior=critic",
        "loss.davies_bouldin_space=embedding", "loss.mixture_weight=0.1",
    ),
}  # fmt: skip
COMMON = (
    "model.num_clusters=4", "loss.davies_bouldin_weight=0.2", "loss.observed_edge_weight=0.5",
    "train.lr=0.01", "train.precision=float64",
)  # fmt: skip


def _values(kernel, graph, weight, x):
    weight, x = weight.detach().requires_grad_(), x.detach().requires_grad_()
    value = kernel(graph, weight, x, "csr")
    cotangent = torch.linspace(-1, 1, value.numel(), dtype=x.dtype, device=x.device)
    gradients = torch.autograd.grad(value, (weight, x), cotangent.view_as(value), allow_unused=True)
    return [value, *gradients]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", [*GRAPHS, "larger"])
def test_kernels(name, kernel, dtype):
    graph = GRAPHS[name] if name in GRAPHS else random_graph(3000, 20000)
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(graph.num_edges, generator=generator, dtype=dtype)
    x = torch.randn(graph.num_nodes, 33, generator=generator, dtype=dtype)
    expected = _values(KERNELS[kernel], graph, weight, x)
    found = _values(KERNELS[kernel], graph.to("cuda"), weight.cuda(), x.cuda())
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    for got, want in zip(found, expected, strict=True):
        assert (got is None) == (want is None)
        if got is not None:
            torch.testing.assert_close(got.cpu(), want, rtol=tolerance, atol=tolerance)


def _fit(name, device, *overrides, checkpoint=None):
    data = block_model(SyntheticConfig(num_nodes=400, num_blocks=4, average_degree=8))
    settings = [*COMMON, *MODELS[name], f"device={device}", *overrides]
    rows, states = [], []
    trainer = Trainer(
        data.graph,
        data.feat,
        load_config(None, settings),
        Hooks(record=rows.append, save=states.append),
    )
    return trainer.fit(checkpoint), rows, states


@pytest.mark.parametrize("name", MODELS)
def test_training(name):
    """Dropout included, whose draws are the same on every device."""
    epochs = "train.epochs=8"
    expected, expected_rows, _ = _fit(name, "cpu", epochs)
    found, rows, _ = _fit(name, "cuda", epochs)
    assert found.device.startswith("cuda (")
    for row, other in zip(rows, expected_rows, strict=True):
        assert row["loss"] == pytest.approx(other["loss"], rel=1e-4)
    np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.embedding, expected.embedding, rtol=1e-4, atol=1e-4)
    assert (found.clusters == expected.clusters).mean() > 0.99


def test_a_step_in_float32():
    settings = "train.epochs=1", "train.precision=float32"
    (_, (expected,), _), (_, (found,), _) = (_fit("gcn", d, *settings) for d in ("cpu", "cuda"))
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-4)


def test_a_run_begun_on_the_gpu_goes_on_on_the_cpu():
    *_, states = _fit("gcn", "cuda", "train.epochs=4")
    expected, rows, _ = _fit("gcn", "cuda", "train.epochs=8")
    found, more, _ = _fit("gcn", "cpu", "train.epochs=8", checkpoint=states[-1])
    assert [row["epoch"] for row in more] == [5, 6, 7, 8]
    assert more[-1]["loss"] == pytest.approx(rows[-1]["loss"], rel=1e-4)
    assert (found.clusters == expected.clusters).mean() > 0.99


def _train(run_dir, config, *overrides, launch=()):
    command = [sys.executable, *(launch or ("-m", "user_dgl")), "train"]
    command += [str(CONFIGS / config), f"output_dir={run_dir}", *overrides]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((run_dir / "result.json").read_text())


def test_memory_is_linear_in_the_edges(tmp_path):
    peaks = [
        _train(
            tmp_path / str(degree), "large/sbm_1m.yaml", "device=cuda", "train.epochs=3",
            "data.synthetic.num_nodes=100000", f"data.synthetic.average_degree={degree}",
        )["gpu_peak_memory_mb"]
        for degree in (20, 60)
    ]  # fmt: skip
    bytes_per_edge = (peaks[1] - peaks[0]) * 1e6 / 2_000_000
    assert 30 < bytes_per_edge < 200


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_several_processes(tmp_path, backend):
    """With gloo two that share a GPU, with nccl one for each."""
    if backend == "nccl" and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    settings = (
        "data.synthetic.num_nodes=2000", "data.synthetic.average_degree=10", "train.epochs=10",
        "train.precision=float64", "model.dropout=0.3", "device=cuda",
    )  # fmt: skip
    launch = (str(LAUNCH), "--nproc", "2", "--backend", backend, "--")
    found = _train(tmp_path / "two", "large/sbm_1m.yaml", *settings, launch=launch)
    expected = _train(tmp_path / "one", "large/sbm_1m.yaml", *settings)
    assert found["world_size"] == 2
    assert found["loss"]["total"] == pytest.approx(expected["loss"]["total"], rel=1e-6)


def test_the_size_of_ogbn_products(tmp_path):
    result = _train(tmp_path / "run", "large/sbm_products.yaml", "device=cuda")
    assert result["num_observed_edges"] > 61_000_000
    assert result["gpu_peak_memory_mb"] < 40_000
