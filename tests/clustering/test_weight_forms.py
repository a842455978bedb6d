"""Forms of weights: what they are, and that weights of no use cannot spoil the clusters."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from user_dgl.clustering.graph_clustering import _choice, _Score, graph_clustering
from user_dgl.clustering.weight_forms import forms, relative_weights
from user_dgl.graph import Graph

SIZES = [60, 80, 40, 70]


def planted(weigh, seed=0):
    """A planted partition, with weights by a function of rng and whether an edge is inside."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(SIZES)), SIZES)
    chance = np.where(clusters[:, None] == clusters, 0.25, 0.02)
    u, v = np.nonzero(np.triu(rng.random(chance.shape) < chance, 1))
    weight = weigh(rng, clusters[u] == clusters[v])
    return Graph.from_edges(len(clusters), u, v, weight)[0], clusters


def test_relative_weights_equal_a_dense_computation():
    graph, _ = planted(lambda rng, inside: rng.lognormal(0, 2, len(inside)))
    dense = graph.to_scipy().toarray().astype(np.float64)
    mean = dense.sum(1) / (dense > 0).sum(1)
    found = relative_weights(graph.to_scipy().astype(np.float64)).toarray()
    np.testing.assert_allclose(found, dense / np.sqrt(np.outer(mean, mean)), rtol=1e-6)


def test_relative_weights_are_at_most_the_root_of_the_product_of_the_degrees():
    """Two hubs of 20 edges that a heavy edge joins, where the bound is reached."""
    hubs = np.zeros((40, 40))
    hubs[0, 2:21] = hubs[1, 21:] = 1
    hubs[0, 1] = 1e9
    found = relative_weights(sp.csr_matrix(hubs + hubs.T))
    assert found[0, 1] == pytest.approx(20, rel=1e-6)
    assert found.max() == found[0, 1]


def test_equal_weights_have_one_form_and_are_relatively_1():
    graph, _ = planted(lambda rng, inside: np.full(len(inside), 7.0))
    adjacency = graph.to_scipy()
    assert [name for name, _ in forms(adjacency)] == [""]
    assert (relative_weights(adjacency).data == 1).all()
    assert [name for name, _ in forms(sp.csr_matrix((3, 3)))] == [""]


@pytest.mark.parametrize("spread", [2.0, 4.0])
def test_weights_that_say_nothing_do_not_hide_the_clusters(spread):
    """A few of the edges have nearly all weight; by the weights alone there would be chance."""
    graph, clusters = planted(lambda rng, inside: rng.lognormal(0, spread, len(inside)))
    result = graph_clustering(graph, 4, 0)
    assert adjusted_rand_score(clusters, result.clusters) > 0.9
    assert [c.name.split(", ")[1] for c in result.candidates if c.chosen] == ["without weights"]
    assert len(result.candidates) == 12
    # The embedding is that of the chosen form.
    plain = graph_clustering(replace(graph, weight=None), 4, 0)
    np.testing.assert_array_equal(result.embedding, plain.embedding)


def test_nodes_without_edges_have_no_part_in_the_form():
    graph, clusters = planted(lambda rng, inside: rng.lognormal(0, 3, len(inside)))
    ends, weight = (graph.src.numpy(), graph.dst.numpy()), graph.weight.double().numpy()
    wide, _ = Graph.from_edges(len(clusters) + 3, *ends, weight)
    result = graph_clustering(wide, 4, 0)
    assert adjusted_rand_score(clusters, result.clusters[:-3]) > 0.9
    assert not result.embedding[-3:].any()
    np.testing.assert_allclose(np.linalg.norm(result.embedding[:-3], axis=1), 1, rtol=1e-5)


def test_without_structure_the_form_is_the_one_that_is_least_like_chance():
    def score(z):
        return _Score(0.0, z, np.zeros(9), 0.0)

    scores = {(m, f): score(0.0) for m in ("louvain", "spectral") for f in ("", "a", "b")}
    scores |= {(f"{m}+em", f): each for (m, f), each in scores.items()}
    scores["spectral", "a"], scores["louvain", "b"] = score(1.5), score(2.5)
    assert _choice(scores) == ("spectral", "a")


def test_weights_that_say_what_edges_do_not_are_used():
    """Edges are anywhere, and those inside clusters have the triple weight."""

    def weigh(rng, inside):
        return rng.lognormal(np.log(3) * inside, 0.3)

    rng = np.random.default_rng(0)
    clusters = np.arange(300) % 3
    u, v = rng.integers(0, 300, (2, 4500))
    apart = u != v
    u, v = u[apart], v[apart]
    graph, _ = Graph.from_edges(300, u, v, weigh(rng, clusters[u] == clusters[v]))
    result = graph_clustering(graph, 3, 0)
    assert adjusted_rand_score(clusters, result.clusters) > 0.6
    chosen = [c.name for c in result.candidates if c.chosen]
    assert "without weights" not in chosen[0]
