"""Terms of pairs, against dense formulas, and on graphs without the pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import dense, empty_graph, random_graph

from user_dgl.config import CriticConfig
from user_dgl.graph import Graph
from user_dgl.structure import pair_terms
from user_dgl.structure.pair_terms import PairTerms

NUM_NODES = 20
CONFIG = CriticConfig(folds=4, num_components=6, hops=2, self_share=0.3)
PAIRS = np.array([(u, v) for u in range(NUM_NODES) for v in range(u)]).T


def features(seed=0) -> sp.csr_matrix:
    return sp.random(NUM_NODES, 9, density=0.6, random_state=seed, format="csr", dtype=np.float32)


def weights(graph, seed=0) -> torch.Tensor:
    return torch.from_numpy(
        np.random.default_rng(seed).uniform(0.1, 2, graph.num_edges).astype(np.float32)
    )


def terms_of(graph, weight, feat, memberships=None):
    return PairTerms(graph, weight, feat, CONFIG, 0, "csr", memberships)


def unit(rows):
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


def expected(adjacency, feat):
    """All terms but those of the coarsest view, from dense matrices."""
    feat = unit(feat)
    # Products of rows do not change when they are turned by all singular vectors.
    looped = adjacency + np.eye(NUM_NODES)
    scale = 1 / np.sqrt(looped.sum(1))
    s = scale[:, None] * looped * scale
    degree = adjacency.sum(1)
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
    log = np.log1p(degree)
    smoothed = unit(0.3 * feat + 0.35 * (s @ feat + s @ s @ feat))
    one = unit(s @ feat)
    matrices = [
        feat @ feat.T,
        one @ one.T,
        smoothed @ smoothed.T,
        log[:, None] + log,
        np.minimum(log[:, None], log),
        np.sqrt(adjacency @ np.diag(inverse) @ adjacency),
    ]
    return np.stack([matrix[PAIRS[0], PAIRS[1]] for matrix in matrices], axis=1)


# Columns that `expected` has; 3 is the cosine of the leading components.
KNOWN = [0, 1, 2, 4, 5, 6]


@pytest.mark.parametrize("graph", [random_graph(), empty_graph(NUM_NODES)], ids=["random", "empty"])
def test_terms_equal_their_formulas(graph, monkeypatch):
    monkeypatch.setattr("user_dgl.features.cosine._BLOCK_VALUES", 50)
    feat, weight = features(), weights(graph)
    config = CriticConfig(num_components=9, hops=2, self_share=0.3)
    found = PairTerms(graph, weight, feat, config, 0, "csr")(PAIRS, np.full(PAIRS.shape[1], -1))
    assert found.shape == (PAIRS.shape[1], 7)
    adjacency = dense(graph, weight).double().numpy()
    np.testing.assert_allclose(
        found[:, KNOWN], expected(adjacency, feat.toarray().astype(float)), atol=2e-5
    )
    # With as many components as columns the coarsest view is the smoothed one.
    np.testing.assert_allclose(found[:, 3], found[:, 2], atol=2e-5)


def test_a_pair_is_judged_without_itself_and_its_fold():
    graph, feat = random_graph(), features()
    weight = weights(graph)
    terms = terms_of(graph, weight, feat)
    fold = terms.fold_of(PAIRS)
    inside = graph.positions(np.sort(PAIRS, axis=0)[0] * NUM_NODES + PAIRS.max(0)) >= 0
    assert ((fold >= 0) == inside).all()
    assert set(fold[inside]) == set(range(4))
    found = terms(PAIRS, fold)
    for each in range(4):
        here = fold == each
        kept = np.ones(graph.num_edges, dtype=bool)
        low, high = np.sort(PAIRS[:, here], axis=0)
        kept[graph.positions(low * NUM_NODES + high)] = False
        smaller = Graph.from_keys(NUM_NODES, graph.keys[kept])
        without = terms_of(smaller, weight[torch.from_numpy(kept)], feat)
        alone = without(PAIRS[:, here], np.full(here.sum(), -1))
        np.testing.assert_allclose(found[here], alone, atol=1e-5)
    # And it matters: with itself it would look likelier.
    whole = terms(PAIRS, np.full(len(fold), -1))
    assert (whole[inside, 1:6] > found[inside, 1:6] - 1e-6).mean() > 0.8
    np.testing.assert_array_equal(whole[~inside], found[~inside])


def test_a_pair_has_the_same_terms_in_any_company_and_direction():
    graph, feat = random_graph(), features()
    terms = terms_of(graph, weights(graph), feat)
    found = terms(PAIRS, terms.fold_of(PAIRS))
    few = PAIRS[::-1, 5:60:3]
    np.testing.assert_allclose(terms(few, terms.fold_of(few)), found[5:60:3], atol=1e-6)


def test_a_candidate_of_weight_zero_is_no_pair():
    graph, feat = random_graph(), features()
    weight = weights(graph)
    weight[::3] = 0
    smaller = Graph.from_keys(NUM_NODES, graph.keys[weight.numpy() > 0])
    nowhere = np.full(PAIRS.shape[1], -1)
    np.testing.assert_allclose(
        terms_of(graph, weight, feat)(PAIRS, nowhere),
        terms_of(smaller, weight[weight > 0], feat)(PAIRS, nowhere),
        atol=1e-6,
    )


def test_features_made_of_edges_are_made_without_the_pair():
    graph = random_graph(num_edges=60)
    ones = torch.ones(graph.num_edges)
    fold = terms_of(graph, ones, None).fold_of(PAIRS)
    found = terms_of(graph, ones, None)(PAIRS, fold)
    for each in range(4):
        here = fold == each
        low, high = np.sort(PAIRS[:, here], axis=0)
        left_out = graph.positions(low * NUM_NODES + high)
        smaller = Graph.from_keys(NUM_NODES, np.delete(graph.keys, left_out))
        alone = terms_of(smaller, torch.ones(smaller.num_edges), smaller.to_scipy())
        expected_terms = alone(PAIRS[:, here], np.full(here.sum(), -1))
        # Six components of seventeen: those of both agree up to rounding.
        np.testing.assert_allclose(found[here], expected_terms, atol=1e-3)


def test_memberships_are_those_on_the_graph_without_the_fold():
    graph, feat = random_graph(), features()
    seen = []

    def memberships(weight):
        seen.append(weight.clone())
        assignment = np.zeros((NUM_NODES, 2), dtype=np.float32)
        assignment[:, 0] = len(seen)
        return assignment

    terms = terms_of(graph, weights(graph), feat).on(weights(graph, 1), memberships)
    fold = terms.fold_of(PAIRS)
    found = terms(PAIRS, fold)
    assert found.shape[1] == 8
    assert len(seen) == 5
    for number, weight in enumerate(seen):  # the whole graph first, then each fold
        left_out = (weight == 0).numpy()
        assert left_out.sum() == np.bincount(fold + 1)[number] * (number > 0)
        np.testing.assert_array_equal(found[fold == number - 1, 7], (number + 1) ** 2)


def test_hubs_count_with_their_heaviest_neighbours(monkeypatch):
    monkeypatch.setattr(pair_terms, "_MOST_NEIGHBOURS", 2)
    # 0 and 1 share 2, 3 and 4; the weights make 3 and 4 the first two of both.
    graph = Graph.from_edges(NUM_NODES, [0, 0, 0, 1, 1, 1], [2, 3, 4, 2, 3, 4])[0]
    weight = torch.tensor([1.0, 2.0, 2.0, 1.0, 2.0, 2.0])
    found = terms_of(graph, weight, features())(np.array([[0], [1]]), np.array([-1]))
    assert found[0, 6] == pytest.approx(np.sqrt(2 * 4 / 4))
    monkeypatch.undo()
    found = terms_of(graph, weight, features())(np.array([[0], [1]]), np.array([-1]))
    assert found[0, 6] == pytest.approx(np.sqrt(1 / 2 + 2 * 4 / 4))


def test_many_nodes_cost_no_square():
    rng = np.random.default_rng(0)
    num_nodes = 100_000
    # One hub with an edge to every other node: common neighbours of all pairs.
    hub = np.stack([np.zeros(num_nodes - 1, dtype=np.int64), np.arange(1, num_nodes)])
    ends = np.concatenate([hub, rng.integers(1, num_nodes, (2, 100_000))], axis=1)
    graph = Graph.from_edges(num_nodes, *ends)[0]
    feat = sp.random(num_nodes, 30, density=0.1, random_state=0, format="csr", dtype=np.float32)
    config = CriticConfig(num_components=4)
    pairs = rng.integers(0, num_nodes, (2, 1000))
    terms = PairTerms(graph, torch.ones(graph.num_edges), feat, config, 0, "csr")
    assert np.isfinite(terms(pairs, np.full(1000, -1))).all()
