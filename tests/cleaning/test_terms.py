"""Terms of the two judges: what each of them reads, and what it must not read."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import random_graph
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize

from user_dgl.cleaning.terms import FeatureTerms, GraphTerms
from user_dgl.config import CriticConfig, SyntheticConfig
from user_dgl.data import block_model
from user_dgl.graph import Graph

CONFIG = CriticConfig(folds=4, num_components=6)


def _features(num_nodes, seed=0) -> sp.csr_matrix:
    return sp.random(num_nodes, 9, density=0.6, random_state=seed, format="csr", dtype=np.float32)


@pytest.mark.parametrize("kind", [GraphTerms, FeatureTerms])
def test_one_term_for_each_name(kind):
    graph = random_graph()
    terms = kind(graph, torch.ones(graph.num_edges), _features(20), CONFIG, 0, "csr")
    pairs = np.stack([graph.src.numpy(), graph.dst.numpy()])
    found = terms(pairs, terms.fold_of(pairs))
    assert found.shape == (graph.num_edges, len(terms.names))
    assert np.isfinite(found).all()
    assert len(set(terms.names)) == len(terms.names)


@pytest.mark.parametrize("kind", [GraphTerms, FeatureTerms])
def test_terms_do_not_see_the_weight_of_their_own_pair(kind):
    graph = random_graph()
    feat, ones = _features(20), torch.ones(graph.num_edges)
    terms = kind(graph, ones, feat, CONFIG, 0, "csr")
    pair = np.stack([graph.src.numpy(), graph.dst.numpy()])[:, :1]
    heavy = ones.clone()
    heavy[0] = 50
    fold = terms.fold_of(pair)
    assert np.array_equal(terms(pair, fold), terms.on(heavy)(pair, fold))


def test_groups_tell_pairs_inside_a_block_from_pairs_between_blocks():
    data = block_model(SyntheticConfig(num_nodes=200, num_blocks=4, mixing=0.05))
    weight = torch.ones(data.graph.num_edges)
    terms = GraphTerms(data.graph, weight, data.feat, CONFIG, 0, "csr")
    pairs = np.random.default_rng(0).integers(0, 200, (2, 600))
    whole = np.full(600, -1)
    found = terms(pairs, whole)
    np.testing.assert_allclose(found, terms(pairs[::-1], whole), atol=1e-6)
    inside = data.labels[pairs[0]] == data.labels[pairs[1]]
    for column, name in enumerate(terms.names):
        if name.startswith("edges between"):
            # Logarithms of how many times more edges there are than by chance.
            assert np.median(found[inside, column]) > 0.5
            assert np.median(found[~inside, column]) < -0.5


def test_expected_surroundings_equal_the_ridge_regression():
    graph, feat = random_graph(), _features(20)
    weight = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(0))
    config = CriticConfig(num_components=9)
    found = FeatureTerms(graph, weight, feat, config, 0, "csr").expected()
    adjacency = graph.to_scipy(weight).toarray().astype(float) + np.eye(20)
    root = 1 / np.sqrt(adjacency.sum(1))
    s, x = root[:, None] * adjacency * root, normalize(feat.toarray().astype(float))
    steps = [np.linalg.matrix_power(s, hop) @ x for hop in (1, 2, 3, 4)]
    seen = normalize(0.1 * x + 0.9 / 4 * sum(steps))
    # With all components the rows are turned, which cosines do not show.
    expected = normalize(Ridge(alpha=1.0, fit_intercept=False).fit(x, seen).predict(x))
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)


def test_wide_surroundings_equal_their_formula():
    graph, feat = random_graph(), _features(20)
    weight = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(0))
    terms = GraphTerms(graph, weight, feat, CriticConfig(num_components=9), 0, "csr")
    adjacency = graph.to_scipy(weight).toarray().astype(float) + np.eye(20)
    root = 1 / np.sqrt(adjacency.sum(1))
    s, x = root[:, None] * adjacency * root, normalize(feat.toarray().astype(float))
    far = normalize(0.1 * x + 0.9 / 8 * sum(np.linalg.matrix_power(s, t) @ x for t in range(1, 9)))
    pairs = np.stack(np.triu_indices(20, 1))
    column = terms.names.index("features of the wide surroundings")
    found = terms(pairs, np.full(pairs.shape[1], -1))[:, column]
    np.testing.assert_allclose(found, (far[pairs[0]] * far[pairs[1]]).sum(1), atol=1e-4)


def test_expected_surroundings_ignore_the_edges_of_a_node():
    """Many edges at one node change what it is expected to be only through the regression."""
    data = block_model(SyntheticConfig(num_nodes=200, num_blocks=2))
    victim, strangers = 0, np.flatnonzero(data.labels != data.labels[0])[:40]
    keys = np.concatenate([data.graph.keys, victim * 200 + strangers])
    attacked = Graph.from_keys(200, keys)

    def seen(kind, graph):
        terms = kind(graph, torch.ones(graph.num_edges), data.feat, CONFIG, 0, "csr")
        return terms.expected() if kind is FeatureTerms else terms.smoothed()

    moved = {
        kind: 1 - float(seen(kind, data.graph)[victim] @ seen(kind, attacked)[victim])
        for kind in (GraphTerms, FeatureTerms)
    }
    assert moved[FeatureTerms] < 0.2 * moved[GraphTerms]
