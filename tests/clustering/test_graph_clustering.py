"""Clusters of graphs without features: found where they are, and owned up to where they are not."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from user_dgl.clustering import communities as communities_module
from user_dgl.clustering.block_model import block_bits, block_sums
from user_dgl.clustering.communities import communities, fill_clusters, merge_clusters
from user_dgl.clustering.graph_clustering import (
    _choice,
    _planted_bits,
    _Score,
    _score,
    _share_paid,
    graph_clustering,
)
from user_dgl.clustering.spectral import spectral_clusters, spectral_embedding
from user_dgl.graph import Graph

NAMES = ["louvain", "louvain+em", "spectral", "spectral+em"]


def planted(sizes, inside, outside, seed=0):
    """Graph and clusters of a planted partition."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(clusters[:, None] == clusters, inside, outside)
    u, v = np.nonzero(np.triu(rng.random(chance.shape) < chance, 1))
    return Graph.from_edges(len(clusters), u, v)[0], clusters


def matrix(graph):
    return graph.to_scipy().astype(np.float64)


def test_a_planted_partition_is_found():
    graph, clusters = planted([60, 80, 40, 70], 0.25, 0.02)
    result = graph_clustering(graph, 4, 0)
    assert adjusted_rand_score(clusters, result.clusters) > 0.95
    assert result.structure_found
    assert [candidate.name for candidate in result.candidates] == NAMES
    assert sum(candidate.chosen for candidate in result.candidates) == 1
    assert result.clusters.dtype == np.int64
    assert set(result.clusters) == set(range(4))
    assert result.embedding.shape == (250, 4)
    assert result.embedding.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(result.embedding, axis=1), 1, rtol=1e-5)


def test_the_same_seed_gives_the_same_result():
    graph, _ = planted([40, 50, 40], 0.2, 0.04)
    one, other = graph_clustering(graph, 3, 5), graph_clustering(graph, 3, 5)
    np.testing.assert_array_equal(one.clusters, other.clusters)
    np.testing.assert_array_equal(one.embedding, other.embedding)
    assert one.candidates == other.candidates


def test_a_random_graph_has_no_structure():
    for seed in range(4):
        graph, _ = planted([300], 0.03, 0.0, seed)
        result = graph_clustering(graph, 5, seed)
        assert not result.structure_found
        assert [c.name for c in result.candidates if c.chosen] == ["spectral"]
        assert len(np.unique(result.clusters)) == 5


def test_isolated_nodes_join_the_rim():
    graph, clusters = planted([50, 50], 0.3, 0.02)
    keys = graph.src.numpy(), graph.dst.numpy()
    # One more node hangs on node 0, and has the lowest degree of all.
    wide, _ = Graph.from_edges(105, np.append(keys[0], 0), np.append(keys[1], 100))
    result = graph_clustering(wide, 2, 0)
    assert adjusted_rand_score(clusters, result.clusters[:100]) > 0.9
    assert (result.clusters[101:] == result.clusters[100]).all()
    assert not result.embedding[101:].any()


@pytest.mark.parametrize("num_clusters", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("num_nodes", "edges"),
    [
        (1, []),
        (4, []),
        (2, [(0, 1)]),
        (5, [(1, 3)]),
        (6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]),
        (7, [(0, i) for i in range(1, 7)]),
        (30, [(2 * i, 2 * i + 1) for i in range(15)]),
        (13, [(0, i) for i in range(1, 13)]),
        (12, [(i, j) for i in range(12) for j in range(i)]),
    ],
    ids=["one node", "no edge", "one edge", "mostly isolated", "bridge", "star", "pairs",
         "larger star", "clique"],
)  # fmt: skip
def test_tiny_graphs(num_nodes, edges, num_clusters):
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph, _ = Graph.from_edges(num_nodes, ends[:, 0], ends[:, 1])
    result = graph_clustering(graph, num_clusters, 0)
    with_edges = len(np.unique(ends))
    assert result.clusters.shape == (num_nodes,)
    assert 0 <= result.clusters.min() <= result.clusters.max() < num_clusters
    assert len(np.unique(result.clusters)) == max(1, min(num_clusters, with_edges))
    assert len(result.embedding) == num_nodes
    assert np.isfinite(result.embedding).all()
    if len(edges) < 10 or num_clusters == 1:
        assert result.candidates == []
        assert not result.structure_found


def test_a_bridge_is_cut():
    ends = np.array([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)])
    graph, _ = Graph.from_edges(6, ends[:, 0], ends[:, 1])
    clusters = graph_clustering(graph, 2, 0).clusters
    assert adjusted_rand_score([0, 0, 0, 1, 1, 1], clusters) == 1


def test_components_are_clusters_and_small_ones_are_not():
    graph, clusters = planted([30, 30, 30, 2, 2], 1.0, 0.0)
    found, _ = communities(matrix(graph), 3, 0)
    assert adjusted_rand_score(clusters[:90], found[:90]) == 1
    assert len(np.unique(found)) == 3


def test_edges_only_between_clusters_are_not_looked_for():
    """As documented: U counts edges within clusters. Nothing may fail, and none is claimed."""
    graph, _ = planted([60, 60], 0.0, 0.1)
    result = graph_clustering(graph, 2, 0)
    assert not result.structure_found
    assert len(np.unique(result.clusters)) == 2


def test_less_than_one_cluster_is_refused():
    graph, _ = planted([5], 1.0, 0.0)
    with pytest.raises(ValueError, match="num_clusters"):
        graph_clustering(graph, 0, 0)


def test_score_is_the_formula():
    graph, clusters = planted([20, 30, 25], 0.4, 0.1)
    adjacency = matrix(graph)
    by_chance = np.random.default_rng(0).integers(75, size=(200, 2))
    volumes = np.array([adjacency.toarray().sum(1)[clusters == k].sum() for k in range(3)])
    volumes /= volumes.sum()
    chance, entropy = (volumes**2).sum(), -(volumes * np.log2(volumes)).sum()

    def expected(inside):
        shares = np.array([inside, 1 - inside])
        return shares @ np.log2(shares / [chance, 1 - chance]) / entropy

    often = by_chance.copy()
    often[:120, 1] = often[:120, 0]
    never = by_chance[clusters[by_chance[:, 0]] != clusters[by_chance[:, 1]]]
    for hidden in (by_chance, often, never):
        inside = (clusters[hidden[:, 0]] == clusters[hidden[:, 1]]).mean()
        score = _score(adjacency, hidden, np.ones(len(hidden)), clusters, 3)
        assert score.value == pytest.approx(expected(inside) if inside > chance else 0)
        assert (score.value > 0.1) == (hidden is often)
    dense = adjacency.toarray()
    inside = dense[clusters[:, None] == clusters].sum() / dense.sum()
    assert _share_paid(adjacency, 3)(clusters) == pytest.approx(expected(inside))


def test_weights_of_hidden_edges_count_as_repeated_edges():
    graph, clusters = planted([20, 30, 25], 0.4, 0.1)
    rng = np.random.default_rng(0)
    hidden = rng.integers(75, size=(200, 2))
    hidden[:120, 1] = hidden[:120, 0]  # these are within a cluster
    times = rng.integers(1, 4, 200)
    weighted = _score(matrix(graph), hidden, times.astype(float), clusters, 3)
    repeated = _score(matrix(graph), np.repeat(hidden, times, 0), np.ones(times.sum()), clusters, 3)
    assert weighted.value == pytest.approx(repeated.value)
    assert 3 < weighted.z < repeated.z  # they are fewer observations


def test_z_is_against_the_larger_chance():
    graph, clusters = planted([20, 30, 25], 0.1, 0.4)  # most pairs without an edge are within
    adjacency = matrix(graph)
    dense = adjacency.toarray()
    weight = np.outer(dense.sum(1), dense.sum(1)) * (1 - dense)
    np.fill_diagonal(weight, 0)
    chance = weight[clusters[:, None] == clusters].sum() / weight.sum()
    hidden = np.random.default_rng(0).integers(75, size=(900, 2))
    hidden[:200, 1] = hidden[:200, 0]
    inside = (clusters[hidden[:, 0]] == clusters[hidden[:, 1]]).mean()
    z = (inside - chance) / np.sqrt(chance * (1 - chance) / 900)
    assert _score(adjacency, hidden, np.ones(len(hidden)), clusters, 3).z == pytest.approx(
        z, rel=0.08, abs=0.2
    )


def test_a_clique_has_no_structure():
    u, v = np.triu_indices(80, 1)
    result = graph_clustering(Graph.from_edges(80, u, v)[0], 5, 0)
    assert not result.structure_found


def test_planted_bits_are_the_entropy_where_no_edge_joins_clusters():
    assert _planted_bits(1.0, 0.25) == pytest.approx(2)
    assert _planted_bits(0.2, 0.25) == 0


def test_few_hidden_edges_show_nothing():
    graph, clusters = planted([6] * 20, 0.6, 0.02)
    one = _score(matrix(graph), np.array([[0, 1]]), np.ones(1), clusters, 20)
    assert one.z < 3
    many = _score(matrix(graph), np.array([[0, 1]] * 400), np.ones(400), clusters, 20)
    assert many.z > 50


def test_em_is_taken_only_where_it_gains_more_than_one_standard_error():
    def scores(gain, spread):
        plain = np.tile([0.4, 0.6], 50)
        moved = plain + gain + np.repeat([-spread, spread], 50)
        return {
            ("louvain", ""): _Score(0.5, 9.0, plain, 1.0),
            ("louvain+em", ""): _Score(0.5 + gain, 9.0, moved, 1.0),
            ("spectral", ""): _Score(0.1, 9.0, plain, 1.0),
            ("spectral+em", ""): _Score(0.1, 9.0, plain, 1.0),
        }

    assert _choice(scores(0.02, 0.1)) == ("louvain+em", "")
    assert _choice(scores(0.02, 0.3)) == ("louvain", "")


def test_merging_takes_the_pair_that_loses_fewest_bits(monkeypatch):
    graph, clusters = planted([15, 15, 15, 15, 15], 0.5, 0.1)
    clusters = 2 * clusters + np.arange(75) % 2  # each cluster is cut in two
    adjacency = matrix(graph)
    merged = merge_clusters(adjacency, clusters, 9)
    losses = [
        block_bits(block_sums(adjacency, np.where(clusters == j, i, clusters), 10))
        for i in range(10)
        for j in range(i + 1, 10)
    ]
    assert block_bits(block_sums(adjacency, merged, 9)) == pytest.approx(max(losses))
    halves = clusters // 2
    assert adjusted_rand_score(halves, merge_clusters(adjacency, clusters, 5)) == 1
    # The search among likely pairs, several at once, which large numbers of clusters need.
    monkeypatch.setattr(communities_module, "_ALL_PAIRS", 3)
    monkeypatch.setattr(communities_module, "_PARTNERS", 4)
    assert adjusted_rand_score(halves, merge_clusters(adjacency, clusters, 5)) == 1


def test_very_many_clusters_are_merged_in_little_memory(monkeypatch):
    monkeypatch.setattr(communities_module, "_MOST_DENSE", 30)
    ring = sp.csr_matrix(np.roll(np.eye(200), 1, axis=1) + np.roll(np.eye(200), -1, axis=1))
    assert set(merge_clusters(ring, np.arange(200), 5)) == set(range(5))


def test_missing_clusters_are_split_off_the_largest():
    clusters = fill_clusters(np.array([3, 3, 3, 3, 3, 8, 8]), 4)
    assert np.bincount(clusters).tolist() == [3, 2, 1, 1]
    assert fill_clusters(np.zeros(3, dtype=int), 9).tolist() == [0, 2, 1]


@pytest.mark.parametrize("weighted", [False, True], ids=["graph", "similarities"])
def test_clusters_of_a_graph_with_most_pairs(weighted):
    """The wanted eigenvalues are some hundredths, and the leading one is 1."""
    rng = np.random.default_rng(0)
    clusters = np.arange(600) % 4
    same = np.triu(clusters[:, None] == clusters, 1)
    if weighted:
        values = np.triu(np.where(same, 1.3, 1) * rng.uniform(0.5, 1.5, same.shape), 1)
    else:
        values = np.triu(rng.random(same.shape) < np.where(same, 0.95, 0.75), 1).astype(float)
    u, v = np.nonzero(values)
    graph, _ = Graph.from_edges(600, u, v, values[u, v] if weighted else None)
    embedding = spectral_embedding(graph.to_scipy(), 4, 0)
    assert adjusted_rand_score(clusters, spectral_clusters(embedding, 4, 0)) > 0.98
    assert adjusted_rand_score(clusters, graph_clustering(graph, 4, 0).clusters) > 0.98


def test_equal_eigenvalues_of_a_dense_graph_give_the_same_result_each_time():
    parts = np.arange(200) % 4
    u, v = np.nonzero(np.triu(parts[:, None] != parts))
    adjacency = Graph.from_edges(200, u, v)[0].to_scipy()
    first = spectral_embedding(adjacency, 8, 0)
    for _ in range(2):
        np.testing.assert_array_equal(spectral_embedding(adjacency, 8, 0), first)


def test_embedding_spans_the_leading_eigenvectors():
    graph, _ = planted([40, 40, 40, 40], 0.4, 0.02)
    adjacency = matrix(graph)
    dense = adjacency.toarray()
    degree = dense.sum(1)
    tau = degree.mean()
    root = 1 / np.sqrt(degree + tau)
    vectors = np.linalg.eigh(root[:, None] * (dense + tau / 160) * root)[1][:, -4:]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = spectral_embedding(adjacency, 4, 0)
    # The signs and rotations of eigenvectors are free; the cosines of the rows are not.
    np.testing.assert_allclose(found @ found.T, vectors @ vectors.T, atol=2e-3)
