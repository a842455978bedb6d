"""Candidate pairs: what each source may draw, and how they join the observed graph."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import cliques, empty_graph, random_graph
from sklearn.preprocessing import normalize

from user_dgl.config import CandidatesConfig, SyntheticConfig
from user_dgl.data import block_model
from user_dgl.errors import InputError
from user_dgl.features import nearest as nearest_module
from user_dgl.features.nearest import approximate_nearest, nearest
from user_dgl.structure.candidates import (
    draw_candidates,
    feature_knn,
    k_hop,
    merge_candidates,
    same_cluster,
    uniform,
)


def _rng(seed=0):
    return np.random.default_rng(seed)


def test_feature_knn_equals_the_dense_ranking():
    x = sp.random(40, 15, density=0.4, random_state=0).toarray()
    x[7] = 0
    feat = sp.csr_matrix(x)
    u, v = feature_knn(feat, 3)
    norm = np.linalg.norm(x, axis=1)
    cosine = (x @ x.T) / np.outer(norm, norm).clip(1e-12)
    np.fill_diagonal(cosine, -1)
    assert 7 not in u
    assert 7 not in v
    for node in np.unique(u):
        found = np.sort(cosine[node, v[u == node]])
        np.testing.assert_allclose(found, np.sort(cosine[node])[-3:], atol=1e-6)
    assert len(u) == 3 * 39


def test_feature_knn_of_few_nodes_and_of_none():
    assert len(feature_knn(sp.csr_matrix(np.eye(3)), 10)[0]) == 6
    assert len(feature_knn(sp.csr_matrix((4, 2)), 5)[0]) == 0


@pytest.mark.parametrize(("num_columns", "count"), [(40, 5), (400, 5), (39, 30), (400, 30)])
def test_approximate_neighbours_are_mostly_the_true_ones(num_columns, count):
    """Of narrow features, and of wide ones, which go through components."""
    pytest.importorskip("faiss")
    model = SyntheticConfig(num_nodes=3000, num_features=num_columns, words_per_node=12)
    feat = block_model(model).feat
    found = approximate_nearest(feat, count)
    rows = normalize(feat)
    cosine = (rows @ rows.T).toarray()
    np.fill_diagonal(cosine, -1)
    last = np.sort(cosine, axis=1)[:, -count]
    own = np.arange(3000)[:, None]
    assert (found != own).all()
    assert all(len(set(row)) == count for row in found.tolist())
    # Rows as alike as the last serve as well: words make many ties.
    assert (cosine[own, found] >= last[:, None] - 1e-6).mean() > 0.95


def test_rows_that_are_all_alike_cost_no_more_than_others():
    pytest.importorskip("faiss")
    found = np.tile(np.arange(10), (3000, 1))  # everybody's neighbours are the same ten
    rows, reached = sp.csr_matrix(np.ones((3000, 2))), []
    dots = nearest_module.row_dots

    def counted(rows, u, v):
        reached.append(len(u))
        return dots(rows, u, v)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest_module, "row_dots", counted)
        better = nearest_module._neighbours_of_neighbours(rows, found, 5)
    assert sum(reached) < 3000 * 400
    assert (better >= 0).all()


def test_many_nodes_go_to_the_index(monkeypatch):
    asked = []
    monkeypatch.setattr("user_dgl.features.nearest.MAX_EXACT", 10)
    monkeypatch.setattr("user_dgl.features.nearest.approximate_nearest", lambda *a: asked.append(a))
    nearest(sp.csr_matrix(np.ones((11, 2))), 2)
    assert len(asked) == 1


def test_without_faiss_many_nodes_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("user_dgl.features.nearest.MAX_EXACT", 10)
    with pytest.raises(InputError, match="more than 10 nodes needs faiss: pip install"):
        feature_knn(sp.csr_matrix(np.ones((11, 2))), 2)


@pytest.mark.parametrize("hops", [2, 3])
def test_k_hop_ends_are_within_reach(hops):
    graph = random_graph(40, 60)
    start, end = k_hop(graph, 4, hops, _rng())
    adjacency = graph.to_scipy().toarray()
    reach = sum(np.linalg.matrix_power(adjacency, length) for length in range(2, hops + 1)) > 0
    assert reach[start, end].all()
    has_edges = np.flatnonzero(adjacency.sum(1))
    np.testing.assert_array_equal(np.unique(start), has_edges)
    assert len(start) == 4 * len(has_edges)


def test_k_hop_without_edges():
    assert len(k_hop(empty_graph(), 3, 2, _rng())[0]) == 0


def test_same_cluster_stays_in_the_cluster():
    clusters = np.array([3, 0, 0, 3, 1, 0, 3])
    u, v = same_cluster(clusters, 50, _rng())
    np.testing.assert_array_equal(clusters[u], clusters[v])
    for cluster in (0, 3):
        members = set(np.flatnonzero(clusters == cluster))
        assert {int(x) for x in v[clusters[u] == cluster]} == members


def test_uniform_covers_all_nodes():
    u, v = uniform(10, 100, _rng())
    assert len(u) == 1000
    assert set(v.tolist()) == set(range(10))


def test_draws_repeat_with_the_seed():
    config = CandidatesConfig(k_hop=2, uniform=2, same_cluster=2, refresh_every=1)
    graph, clique = cliques(4, 5)
    first, again = (draw_candidates(config, graph, _rng(5), clique.numpy()) for _ in range(2))
    other = draw_candidates(config, graph, _rng(6), clique.numpy())
    assert len(first) == 3
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a[1], b[1])
    assert any((a[1] != b[1]).any() for a, b in zip(first, other, strict=True))
    assert len(draw_candidates(config, graph, _rng(5))) == 2


def test_merge_keeps_every_observed_edge_and_each_pair_once():
    graph = random_graph()
    u = np.array([0, 1, 1, 5, int(graph.src[0]), 18])
    v = np.array([1, 0, 1, 5, int(graph.dst[0]), 19])
    merged, observed = merge_candidates(graph, [(u, v), (v, u)])
    assert (merged.keys[observed.numpy()] == graph.keys).all()
    new = {
        tuple(pair)
        for pair in zip(merged.src[~observed].tolist(), merged.dst[~observed].tolist(), strict=True)
    }
    already = {tuple(p) for p in zip(graph.src.tolist(), graph.dst.tolist(), strict=True)}
    assert new == {(0, 1), (18, 19)} - already
    assert len(np.unique(merged.keys)) == merged.num_edges


def test_merge_without_candidates_is_the_graph():
    graph = random_graph()
    merged, observed = merge_candidates(graph, [])
    assert (merged.keys == graph.keys).all()
    assert observed.all()
