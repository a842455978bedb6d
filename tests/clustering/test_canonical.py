"""Canonical axes: their equations, and what they are for."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import with_random_weights
from scipy.linalg import sqrtm
from sklearn.preprocessing import normalize

from user_dgl import USERClustering
from user_dgl.clustering.canonical import canonical_axes
from user_dgl.clustering.smoothing import Smoothing, on_basis
from user_dgl.features.rows import ALL
from user_dgl.graph import Graph


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(0)
    blocks = rng.permutation(np.repeat([0, 1], 100))
    pairs = rng.integers(0, 200, (3000, 2))
    kept = (blocks[pairs[:, 0]] == blocks[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])
    return Graph.from_edges(200, *pairs[kept].T)[0], blocks


def _smoothing(graph, weight=None):
    return Smoothing(graph, torch.ones(graph.num_edges) if weight is None else weight, "csr", ALL)


def test_neighbours_are_the_normalised_adjacency_without_its_diagonal(graph):
    weighted = with_random_weights(graph[0])
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    adjacency = weighted.to_scipy(weighted.edge_weight).toarray()
    degree = 1 + adjacency.sum(1)
    expected = adjacency / np.sqrt(np.outer(degree, degree)) @ x.numpy()
    found = _smoothing(weighted, weighted.edge_weight).neighbours(x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_axes_solve_their_equation(graph):
    x = torch.randn(200, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    neighbours = _smoothing(graph[0]).neighbours(x)
    found = canonical_axes(x, neighbours, 1000, ALL).numpy()
    gram, shared = (x.T @ x).numpy(), (x.T @ neighbours).numpy()
    whiten = np.linalg.inv(sqrtm(gram + np.trace(gram) / 6 * np.eye(6)))
    correlations, vectors = np.linalg.eigh(whiten @ (shared + shared.T) / 2 @ whiten)
    agree = correlations > 0
    scaled = (whiten @ vectors[:, agree] * correlations[agree] ** 0.25)[:, ::-1]
    assert 0 < found.shape[1] < 6
    np.testing.assert_allclose(np.abs(found), np.abs(scaled), rtol=1e-6, atol=1e-9)


def test_first_axis_is_what_neighbours_share_not_what_varies_most(graph):
    graph, blocks = graph
    rng = np.random.default_rng(1)
    shared, large = 2.0 * blocks - 1, 3 * rng.normal(size=200)
    points = normalize(np.column_stack([large, shared, rng.normal(size=(200, 3))]))
    points = torch.from_numpy(points)
    first = canonical_axes(points, _smoothing(graph).neighbours(points), 1000, ALL)[:, 0].abs()
    assert first.argmax() == 1
    assert first[1] > 5 * first[0]


def test_components_that_are_empty_change_nothing(graph):
    points = torch.randn(200, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wide = torch.nn.functional.pad(points, (0, 3))
    found, padded = (
        canonical_axes(each, _smoothing(graph[0]).neighbours(each), 1000, ALL)
        for each in (points, wide)
    )
    torch.testing.assert_close(padded[:4].abs(), found.abs())
    assert not padded[4:].any()


def test_few_edges_have_few_components(graph):
    points = torch.randn(200, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    neighbours = _smoothing(graph[0]).neighbours(points)
    found = canonical_axes(points, neighbours, 16 * 3, ALL)
    assert found[:3].any(1).all()
    assert not found[3:].any()
    assert canonical_axes(points, neighbours, 15, ALL) is None


def test_a_single_axis(graph):
    points = torch.from_numpy(2.0 * graph[1][:, None] - 1)
    found = canonical_axes(points, _smoothing(graph[0]).neighbours(points), 1000, ALL)
    assert found.shape == (1, 1)


def test_no_axes_where_only_rounding_agrees():
    """Every edge joins a node with features to a node without."""
    rng = np.random.default_rng(0)
    graph, _ = Graph.from_edges(100, np.repeat(np.arange(50), 3), rng.integers(50, 100, 150))
    points = torch.zeros(100, 8)
    points[:50] = torch.rand(50, 8, generator=torch.Generator().manual_seed(0))
    neighbours = _smoothing(graph).neighbours(points)
    assert canonical_axes(points, neighbours, 1000, ALL) is None


def test_rows_without_a_part_in_the_basis_are_zero():
    basis = torch.tensor([[0.3, 0.1], [0.1, 0.7], [1e-9, 1e-9]])
    found = on_basis(torch.tensor([[0.0, 0.0, 5.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), basis)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.0], [0.3, 0.1], [0.0, 0.0]]))


def test_no_axes_without_features():
    assert canonical_axes(torch.zeros(200, 2), torch.zeros(200, 2), 1000, ALL) is None


def test_no_axes_where_neighbours_differ():
    """Every edge of the graph joins two nodes of opposite features."""
    side = np.repeat([0, 1], 50)
    graph, _ = Graph.from_edges(100, np.arange(50), np.arange(50, 100))
    points = torch.from_numpy(2.0 * side[:, None] - 1)
    assert canonical_axes(points, _smoothing(graph).neighbours(points), 1000, ALL) is None


def test_new_nodes_without_a_part_in_the_axes_are_zero_as_the_fitted_are():
    """An isolated node with words of its own, and a new node like it, have the same cluster."""
    rng = np.random.default_rng(0)
    block = np.repeat([0, 1], 90)
    pairs = rng.integers(0, 180, (2000, 2))
    pairs = pairs[(block[pairs[:, 0]] == block[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])]
    adjacency = sp.coo_matrix((np.ones(len(pairs)), pairs.T), (200, 200)).tocsr()
    adjacency = ((adjacency + adjacency.T) > 0).astype(np.float64)
    words = np.zeros((200, 12))
    words[np.arange(180), 5 * block + rng.integers(0, 5, 180)] = 1
    words[180:, 10:] = 1
    model = USERClustering(2, overrides=["model.smooth.axes=canonical", "model.labels=kmeans"])
    model.fit(adjacency, words)
    new = model.predict(sp.csr_matrix((3, 200)), words[180:183])
    np.testing.assert_array_equal(new, model.labels_[180:183])
    assert not model.embedding_[180:].any()
