"""Weights of which a few are much heavier, in a run with features."""

import shutil

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from paths import ROOT

from user_dgl.cli import main
from user_dgl.output.run_directory import RunDirectory


@pytest.fixture
def files(tmp_path):
    """Edges of three blocks with lognormal weights, and features."""
    rng = np.random.default_rng(0)
    block = np.arange(90) % 3
    pairs = [
        (u, v)
        for u in range(90)
        for v in range(u)
        if rng.random() < (0.15 if block[u] == block[v] else 0.01)
    ]
    weight = rng.lognormal(0, 2, len(pairs))
    rows = [f"{u},{v},{w}" for (u, v), w in zip(pairs, weight, strict=True)]
    (tmp_path / "e.csv").write_text("source,target,weight\n" + "\n".join(rows))
    np.save(tmp_path / "f.npy", np.eye(3)[block] + rng.normal(size=(90, 3)))
    return tmp_path


def _train(files, capsys, *more):
    out = files / "run"
    options = ["train.epochs=2", f"output_dir={out}", "overwrite=true", *more]
    assert main(["train", "--edges", str(files / "e.csv"), "--clusters", "3", *options]) == 0
    printed = capsys.readouterr()
    return printed.out + printed.err, RunDirectory(out).read_input()[0]


def test_they_are_evened_out_beside_features_only(files, capsys):
    features = ("--features", str(files / "f.npy"))
    said, graph = _train(files, capsys, *features)
    assert "a few edges have most of the weight" in said
    assert "raised to the power 0.5" in said
    _, as_given = _train(files, capsys, *features, "data.weight_power=1")
    expected = as_given.weight.sqrt() / as_given.weight.sqrt().mean()
    torch.testing.assert_close(graph.weight, expected, rtol=1e-4, atol=1e-6)
    said, alone = _train(files, capsys)
    assert "a few edges have most of the weight" not in said
    torch.testing.assert_close(alone.weight, as_given.weight)


def test_parts_for_several_processes_have_them_evened_out(files, capsys):
    out = files / "parts"
    settings = {
        "data.kind": "edge_list",
        "data.edges": files / "e.csv",
        "data.features": files / "f.npy",
        "model.num_clusters": 3,
    }
    options = [str(ROOT / "configs/default.yaml"), *(f"{k}={v}" for k, v in settings.items())]
    kept = []
    for more in ((), ("data.weight_power=1",)):
        assert main(["partition", "--parts", "2", "--out", str(out), *options, *more]) == 0
        printed = capsys.readouterr()
        said = "a few edges have most of the weight" in printed.out + printed.err
        assert said == (not more)
        whole = torch.load(out / "whole.pt", weights_only=True)
        kept.append(whole["noisy"][2])
        shutil.rmtree(out)
    torch.testing.assert_close(kept[0], kept[1].sqrt() / kept[1].sqrt().mean())


@pytest.mark.parametrize("power", [0.5, 0.0])
def test_a_power_that_is_asked_for_holds_without_features(files, capsys, power):
    _, as_given = _train(files, capsys)
    _, graph = _train(files, capsys, f"data.weight_power={power}")
    raised = as_given.weight**power
    torch.testing.assert_close(graph.edge_weight, raised / raised.mean(), rtol=1e-4, atol=1e-6)


def test_a_graph_that_noise_left_without_edges(files, capsys):
    empty = files / "empty.npz"
    sp.save_npz(empty, sp.csr_matrix((90, 90)))
    features = ("--features", str(files / "f.npy"))
    noise = ("data.noise.kind=file", f"data.noise.file={empty}")
    assert _train(files, capsys, *features, *noise)[1].num_edges == 0
