"""Shipped configs on the paper's data: what they must keep reaching."""

import json

import numpy as np
import pytest
from paths import CONFIGS

from user_dgl.cli import main

FLIPS = ("data.noise.kind=random_flip", "data.noise.rate=0.5")


@pytest.fixture
def train(tmp_path, data_root):
    def run(config, *overrides):
        folder = tmp_path / "run"
        path = CONFIGS / f"{config}.yaml"
        settings = (f"data.root={data_root}", f"output_dir={folder}", "overwrite=true")
        assert main(["train", str(path), *settings, "train.log_every=1000", *overrides]) == 0
        return json.loads((folder / "result.json").read_text())

    return run


@pytest.mark.slow
def test_cora(train):
    result = train("paper/cora")
    assert result["metrics"]["nmi"] > 45  # single seeds spread over 50 to 57
    assert result["num_observed_edges"] == 5278
    assert result["num_clusters_found"] == 7


@pytest.mark.parametrize("config", ["cora_printed", "citeseer", "wiki"])
def test_starts_on_real_data(train, config):
    """A few epochs: loaders, features, candidates, all terms."""
    result = train(f"paper/{config}", "train.epochs=3")
    assert np.isfinite(list(result["loss"].values())).all()
    assert result["num_candidate_edges"] > result["num_nodes"]


@pytest.mark.parametrize("config", ["cora", "citeseer", "wiki"])
def test_consensus_starts_on_real_data(train, config):
    result = train(f"user/{config}", "train.epochs=3", "train.restarts=3")
    assert len(result["restart_losses"]) == 3
    assert set(result["assignments"]) == {"head", "consensus"}
    assert result["labels_from"] == "consensus"


# Single seeds: the means of ten are in tools/results, and a point or two lower is chance.
@pytest.mark.parametrize(
    ("config", "noise", "least"),
    [
        ("cora", (), 56),
        ("cora", FLIPS, 51),
        ("citeseer", (), 44.5),
        pytest.param("citeseer", FLIPS, 42, marks=pytest.mark.slow),
        pytest.param("wiki", (), 54.5, marks=pytest.mark.slow),
        pytest.param("pubmed", (), 33.5, marks=pytest.mark.slow),
    ],
)
def test_best_known_recipes(train, config, noise, least):
    result = train(config, *noise)
    assert result["metrics"]["nmi"] > least
    if noise:
        assert result["noise"]["weight_auc"] > 91
        assert abs(result["noise"]["estimated_share"] - result["noise"]["true_share"]) < 0.1


@pytest.mark.parametrize(
    ("config", "noise", "least"),
    [
        pytest.param("link/citeseer", (), 98, marks=pytest.mark.slow),
        ("link/citeseer", FLIPS, 97),
        pytest.param("link/wiki", FLIPS, 97, marks=pytest.mark.slow),
    ],
)
def test_links(train, config, noise, least):
    """Single seeds too: means of ten are in tools/results."""
    result = train(config, *noise, "eval.floors=true")
    floors = [*result["floors"].values(), *result["floors_prepared"].values()]
    for metric in ("auc", "ap"):
        assert result["metrics"][metric] > max(least, *(floor[metric] for floor in floors))
    if noise:
        assert result["noise"]["weight_auc"] > 96


def test_graph_autoencoder_learns_links(train):
    result = train("link/gae", "train.epochs=60")
    assert result["metrics"]["auc"] > 80
    assert result["links"]["score"] == "dot"


def test_engines_agree_on_cora(train):
    totals = [
        train("paper/cora", "train.epochs=1", f"structure.engine={engine}")["loss"]["total"]
        for engine in ("dgl", "csr")
    ]
    assert totals[0] == pytest.approx(totals[1], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "floor"), [((), 50), (FLIPS, 44)], ids=["clean", "half flipped"])
def test_cora_over_seeds(train, noise, floor):
    results = [train("paper/cora", f"seed={seed}", *noise) for seed in range(5)]
    assert np.mean([r["metrics"]["nmi"] for r in results]) >= floor
    assert max(r["peak_memory_mb"] for r in results) < 1500


@pytest.mark.slow
def test_pubmed_memory(train):
    assert train("pubmed")["peak_memory_mb"] < 2000
