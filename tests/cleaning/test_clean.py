"""Weights of edges: ranking, calibration, the rule of trust, added pairs, degenerate graphs."""

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import empty_graph, with_random_weights
from sklearn.metrics import roc_auc_score

from user_dgl.cleaning import clean as clean_module
from user_dgl.cleaning import posterior, terms
from user_dgl.cleaning.clean import FEATURES, LEAST_PROBABILITY, clean, trusted_power
from user_dgl.clustering import kmeans
from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model
from user_dgl.features.preparation import FeaturePreparation
from user_dgl.graph import Graph
from user_dgl.perturb.random_flip import random_flip

RATES = (0.1, 0.5)


@pytest.fixture(scope="module")
def data():
    """A graph all of whose edges lie within blocks, so that what flips add is the only noise."""
    return block_model(SyntheticConfig(num_nodes=400, num_blocks=4, mixing=0.0))


@pytest.fixture(scope="module")
def cleaned(data):
    """The result for each rate of flips, with and without features, and which edges were added."""
    flipped = {rate: random_flip(data.graph, rate, 0) for rate in RATES}
    return {
        (rate, with_features): (
            clean(noisy.graph, data.feat if with_features else None),
            noisy.added.numpy(),
        )
        for rate, noisy in flipped.items()
        for with_features in (True, False)
    }


def _calibration_error(chance: np.ndarray, happened: np.ndarray) -> float:
    """Expected calibration error in ten bins of equal width."""
    place = np.minimum((10 * chance).astype(int), 9)
    gaps = np.bincount(place, chance - happened, 10)
    return float(np.abs(gaps).sum() / len(chance))


def test_calibration_error_itself():
    assert _calibration_error(np.full(10, 0.95), np.arange(10) == 0) == pytest.approx(0.85)
    assert _calibration_error(np.full(10, 0.1), np.arange(10) == 0) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("with_features", [True, False])
def test_weights_rank_added_edges_last(cleaned, rate, with_features):
    result, added = cleaned[rate, with_features]
    # A quarter of the added edges lie within blocks, where nothing tells them apart.
    for values in (result.weight, result.probability):
        assert roc_auc_score(added, -values[result.observed]) > 0.8


def test_large_graphs_take_fewer_folds_and_groups_by_a_sample(data, monkeypatch):
    noisy = random_flip(data.graph, 0.5, 0)
    usual = clean(noisy.graph, data.feat)
    asked = []
    draw = posterior.Examples.draw

    def drawn(graph, folds, *rest, **most):
        asked.append((folds, most["most_nulls"]))
        return draw(graph, folds, *rest, **most)

    monkeypatch.setattr(posterior.Examples, "draw", drawn)
    monkeypatch.setattr(posterior, "_LARGE", 100)
    for module in (terms, kmeans):
        monkeypatch.setattr(module, "SAMPLED_FROM", 100)
    for name, value in {
        "_LEAST_SAMPLE": 100,
        "_SAMPLE_PER_CLUSTER": 4,
        "_LEAST_SEEDING": 50,
        "_SEEDING_PER_CLUSTER": 2,
    }.items():
        monkeypatch.setattr(kmeans, name, value)
    found = clean(noisy.graph, data.feat)
    assert asked == [(5, 200_000)]
    assert not np.array_equal(found.probability[found.observed], usual.probability[usual.observed])
    added = noisy.added.numpy()
    assert roc_auc_score(added, -found.weight[found.observed]) > 0.8
    assert _calibration_error(1 - found.probability[found.observed], added) < 0.06


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("with_features", [True, False])
def test_probability_is_calibrated(cleaned, rate, with_features):
    result, added = cleaned[rate, with_features]
    assert result.noise_share == pytest.approx(added.mean(), abs=0.06)
    assert _calibration_error(1 - result.probability[result.observed], added) < 0.06


def test_no_noise_is_seen_as_none(data):
    assert clean(data.graph, data.feat, candidates=0).noise_share < 0.03


def test_weights_are_those_of_the_rule(cleaned):
    for result, _ in cleaned.values():
        support = np.prod([judge.support for judge in result.posterior.judges], axis=0)
        assert result.power == trusted_power(result.noise_share)
        assert np.allclose(result.weight[result.observed], support**result.power, rtol=1e-5)


def test_power_grows_with_noise_to_a_limit():
    powers = [trusted_power(share) for share in (0, 0.02, 0.08, 0.5)]
    assert powers[0] == 0
    assert powers[1] == pytest.approx(0.25)
    assert powers[2] == powers[3] == 4


def test_power_one_and_zero(data):
    plain = clean(data.graph, data.feat, power=0, candidates=0)
    assert (plain.weight == 1).all()
    assert plain.graph.num_edges == data.graph.num_edges
    once, twice = (clean(data.graph, data.feat, power=p, candidates=0).weight for p in (1, 2))
    assert np.allclose(once**2, twice, rtol=1e-5)


def test_a_large_power_loses_no_edge(data):
    noisy = random_flip(data.graph, 0.5, 0).graph
    for graph in (noisy, with_random_weights(noisy)):
        assert clean(graph, data.feat, power=60, candidates=0).weight.min() > 0


def test_added_pairs_are_new_and_purer_than_chance(cleaned, data):
    for rate in RATES:
        result, _ = cleaned[rate, True]
        new = ~result.observed
        assert new.any()
        assert (result.weight[new] >= np.float32(LEAST_PROBABILITY)).all()
        assert np.array_equal(result.weight[new], result.probability[new])
        src, dst = (end.numpy()[new] for end in (result.graph.src, result.graph.dst))
        assert (data.labels[src] == data.labels[dst]).mean() > 0.8  # by chance 1/4
        assert np.bincount(np.concatenate([src, dst])).sum() <= 2 * 30 * data.num_nodes


def test_large_graphs_search_for_pairs_only_where_some_are_likely(cleaned, data, monkeypatch):
    usual, _ = cleaned[0.5, True]
    noisy = random_flip(data.graph, 0.5, 0)
    monkeypatch.setattr(clean_module, "MAX_EXACT", 100)
    monkeypatch.setattr(clean_module, "_TRIED", 20)
    found = clean(noisy.graph, data.feat)
    assert np.array_equal(found.graph.keys, usual.graph.keys)
    assert np.array_equal(found.weight, usual.weight)
    monkeypatch.setattr(clean_module, "LEAST_PROBABILITY", 1.1)
    monkeypatch.setattr(clean_module, "feature_knn", None)  # must not be called
    found = clean(noisy.graph, data.feat)
    assert found.observed.all()
    assert np.array_equal(found.weight, usual.weight[usual.observed])


def test_without_features_no_pair_is_added(cleaned):
    for rate in RATES:
        assert cleaned[rate, False][0].observed.all()


def test_the_same_seed_gives_the_same_weights(data):
    first, second = (clean(data.graph, data.feat, seed=3) for _ in range(2))
    assert np.array_equal(first.weight, second.weight)
    assert np.array_equal(first.graph.keys, second.graph.keys)


@pytest.mark.parametrize(
    "graph", [empty_graph(), Graph.from_edges(4, [1], [2])[0], Graph.from_edges(2, [0], [1])[0]]
)
def test_too_few_edges_weigh_one(graph):
    feat = sp.identity(graph.num_nodes, dtype=np.float32, format="csr")
    for each in (feat, None):
        result = clean(graph, each)
        assert result.noise_share is None
        assert result.posterior is None
        assert result.weight.tolist() == [1] * graph.num_edges


def _useless(kind: str, num_nodes: int) -> sp.csr_matrix:
    """Features that tell nothing about the edges."""
    rng = np.random.default_rng(0)
    matrices = {
        "zeros": np.zeros((num_nodes, 3)),
        "constant": np.ones((num_nodes, 3)),
        "one column": np.arange(num_nodes)[:, None] % 7 + 1.0,
        "normal": rng.normal(size=(num_nodes, 20)),
    }
    return sp.csr_matrix(matrices[kind], dtype=np.float32)


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("zeros", "do not differ"),
        ("constant", "do not differ"),
        ("one column", "tell nothing"),
        ("normal", "tell nothing"),
    ],
)
def test_features_that_say_nothing_are_not_used(data, kind, note):
    alone = clean(data.graph, None)
    result = clean(data.graph, _useless(kind, data.num_nodes))
    assert len(result.warnings) == 1
    assert note in result.warnings[0]
    assert result.posterior.feature_judge is None
    assert np.array_equal(result.weight, alone.weight)
    assert result.noise_share == alone.noise_share < 0.05
    assert np.median(result.weight) > 0.9


def test_warnings_of_the_preparation_are_passed_on(data):
    rng = np.random.default_rng(0)
    blocks = np.eye(4)[data.labels] + rng.normal(scale=0.3, size=(data.num_nodes, 4))
    result = clean(data.graph, sp.csr_matrix(blocks * [1, 1, 1, 1000], dtype=np.float32))
    preparation = FeaturePreparation(FEATURES)
    preparation.fit_transform(sp.csr_matrix(blocks * [1, 1, 1, 1000], dtype=np.float32))
    assert preparation.warnings
    assert result.warnings == tuple(preparation.warnings)


def test_features_of_half_of_the_nodes_are_used(data):
    half = data.feat.toarray() * (np.arange(data.num_nodes) % 2)[:, None]
    result = clean(data.graph, sp.csr_matrix(half, dtype=np.float32))
    assert result.posterior.feature_judge is not None
    assert result.warnings == ()
    assert ((result.weight > 0) & (result.weight <= 1)).all()


def test_the_weights_of_the_data_are_multiplied(data):
    noisy = random_flip(data.graph, 0.5, 0)
    weighted = with_random_weights(noisy.graph)
    result = clean(weighted, data.feat)
    trust = result.weight[result.observed] / weighted.weight.numpy()
    assert trust.max() <= 1 + 1e-5
    assert roc_auc_score(noisy.added.numpy(), -trust) > 0.8
