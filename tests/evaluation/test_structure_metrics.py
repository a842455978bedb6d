"""Scores of a partition of the graph."""

import math

import networkx as nx
import numpy as np
import pytest
import torch
from graphs import GRAPHS, cliques, dense, empty_graph, random_graph

from user_dgl.errors import InputError
from user_dgl.evaluation.structure_metrics import davies_bouldin, partition_scores
from user_dgl.graph import Graph

pytestmark = pytest.mark.usefixtures("quiet")


def karate():
    club = nx.karate_club_graph()
    graph, _ = Graph.from_edges(34, *zip(*club.edges, strict=True))
    factions = [int(club.nodes[node]["club"] == "Officer") for node in club]
    return club, graph, factions


def test_two_groups_of_karate_club():
    """Modularity of the unweighted graph, for three splits that differ in one member each."""
    _, graph, groups = karate()
    # As the club split.
    assert partition_scores(graph, groups)["modularity"] == pytest.approx(0.3582, abs=5e-5)
    # As Zachary's model predicted it, with member 9 (8 from 0) on the officer's side.
    groups[8] = 1
    assert partition_scores(graph, groups)["modularity"] == pytest.approx(0.3715, abs=5e-5)
    # The largest of any two groups.
    groups[9] = 0
    assert partition_scores(graph, groups)["modularity"] == pytest.approx(0.3718, abs=5e-5)


def test_four_communities_of_karate_club():
    """The largest modularity of all, 0.4198 (Brandes et al. 2008, On modularity clustering)."""
    club, graph, _ = karate()
    clusters = np.zeros(34, dtype=int)
    clusters[[4, 5, 6, 10, 16]] = 1
    clusters[[8, 14, 15, 18, 20, 22, 26, 29, 30, 32, 33, 9]] = 2
    clusters[[23, 24, 25, 27, 28, 31]] = 3
    scores = partition_scores(graph, clusters)
    assert scores["modularity"] == pytest.approx(0.4198, abs=5e-5)
    sets = [set(np.flatnonzero(clusters == k)) for k in range(4)]
    assert scores["modularity"] == pytest.approx(nx.community.modularity(club, sets, weight=None))
    conductance = np.mean([nx.conductance(club, nodes) for nodes in sets])
    assert scores["conductance"] == pytest.approx(conductance)


def dense_scores(graph, clusters):
    adjacency = dense(graph, torch.ones(graph.num_edges, dtype=torch.float64)).numpy()
    total, degree = adjacency.sum(), adjacency.sum(1)
    npsi, ratios = 0.0, []
    for k in set(clusters.tolist()):
        inside = clusters == k
        volume, internal = degree[inside].sum(), adjacency[np.ix_(inside, inside)].sum()
        cut = adjacency[np.ix_(inside, ~inside)].sum()
        if volume:
            npsi += internal / total * math.log2(volume / total)
        if min(volume, total - volume) > 0:
            ratios.append(cut / min(volume, total - volume))
    same = clusters[:, None] == clusters[None]
    modularity = ((adjacency - np.outer(degree, degree) / total) * same).sum() / total
    return {"npsi": npsi, "modularity": modularity, "conductance": np.mean(ratios)}


@pytest.mark.parametrize("name", ["random", "disconnected"])
def test_equals_dense_formula(name):
    graph = GRAPHS[name]
    clusters = np.random.default_rng(3).integers(0, 4, graph.num_nodes)
    expected = dense_scores(graph, clusters)
    assert partition_scores(graph, clusters) == pytest.approx(expected)
    # The numbers of the clusters, and gaps between them, mean nothing.
    renumbered = torch.tensor([40, -3, 7, 0])[torch.tensor(clusters)]
    assert partition_scores(graph, renumbered) == pytest.approx(expected)


@pytest.mark.parametrize("num_cliques", [2, 4, 7])
def test_npsi_of_disjoint_cliques(num_cliques):
    graph, clusters = cliques(num_cliques)
    scores = partition_scores(graph, clusters)
    assert scores["npsi"] == pytest.approx(-math.log2(num_cliques))
    assert scores["modularity"] == pytest.approx(1 - 1 / num_cliques)
    assert scores["conductance"] == 0


def test_one_cluster():
    scores = partition_scores(random_graph(), np.zeros(20))
    assert scores == {"npsi": 0.0, "modularity": 0.0, "conductance": None}


def test_every_node_its_own_cluster():
    graph = random_graph()
    scores = partition_scores(graph, range(20))
    assert scores["npsi"] == 0
    assert scores["conductance"] == 1
    share = graph.degree.numpy() / (2 * graph.num_edges)
    assert scores["modularity"] == pytest.approx(-(share**2).sum())


def test_clusters_of_isolated_nodes_change_nothing():
    graph = random_graph()
    clusters = np.arange(20) % 3
    expected = partition_scores(graph, clusters)
    clusters[17:] = [5, 6, 7]
    assert partition_scores(graph, clusters) == pytest.approx(expected)


def test_no_edges():
    nothing = {"npsi": None, "modularity": None, "conductance": None}
    assert partition_scores(empty_graph(), [0, 1, 0, 1, 0]) == nothing


def test_one_cluster_a_node_is_expected():
    with pytest.raises(InputError, match="20 nodes, got 3"):
        partition_scores(random_graph(), [0, 1, 0])


def test_davies_bouldin_by_hand():
    """Spreads 1 and 2 at distance 10."""
    embedding = np.array([[0.0, -1], [0, 1], [10, -2], [10, 2]], dtype=np.float32)
    assert davies_bouldin(torch.tensor(embedding), [4, 4, 2, 2]) == pytest.approx(0.3)


@pytest.mark.parametrize("clusters", [[1, 1, 1], [0, 1, 2]])
def test_davies_bouldin_undefined(clusters):
    assert davies_bouldin(np.eye(3), clusters) is None


def test_davies_bouldin_of_one_point_is_undefined():
    assert davies_bouldin(np.eye(1), [0]) is None
