"""Forms of weights: what they are, and that weights of no use cannot spoil the clusters."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from user_dgl.clustering.graph_clustering import graph_clustering
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


def test_a_heavy_node_has_no_heavy_relative_weights():
    ring = sp.diags([np.ones(9), np.ones(9)], [1, -1]).tocsr()
    heavy = ring.tolil()
    heavy[0, 1] = heavy[1, 0] = 1e6
    assert relative_weights(heavy.tocsr())[0, 1] < 2


def test_equal_weights_have_one_form_and_are_relatively_1():
    graph, _ = planted(lambda rng, inside: np.full(len(inside), 7.0))
    adjacency = graph.to_scipy()
    assert list(forms(adjacency)) == [""]
    assert (relative_weights(adjacency).data == 1).all()
    assert list(forms(sp.csr_matrix((3, 3)))) == [""]


@pytest.mark.parametrize("spread", [2.0, 4.0])
def test_weights_that_say_nothing_do_not_hide_the_clusters(spread):
    """A few of the edges have nearly all weight; by the weights alone there would be chance."""
    graph, clusters = planted(lambda rng, inside: rng.lognormal(0, spread, len(inside)))
    result = graph_clustering(graph, 4, 0)
    assert adjusted_rand_score(clusters, result.clusters) > 0.9
    assert [c.name.split(", ")[1] for c in result.candidates if c.chosen] == ["without weights"]
    assert len(result.candidates) == 12


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
