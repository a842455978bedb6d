import itertools
import math

import networkx as nx
import numpy as np
import pytest
import sklearn.metrics as oracle
import torch
from graphs import GRAPHS, cliques, dense, empty_graph, random_graph

from user_dgl.data import UNLABELLED
from user_dgl.errors import InputError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.evaluation.ranking_metrics import link_metrics, weight_ap, weight_auc
from user_dgl.evaluation.structure_metrics import davies_bouldin, partition_scores
from user_dgl.graph import Graph


@pytest.fixture(autouse=True)
def _quiet(recwarn, capsys):
    """No score warns or prints."""
    yield
    assert not [str(w.message) for w in recwarn]
    assert capsys.readouterr() == ("", "")


def noisy_clusters(num_nodes=200, num_classes=4, num_clusters=4, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, num_nodes)
    right = rng.random(num_nodes) < 0.6
    return labels, np.where(right, labels % num_clusters, rng.integers(0, num_clusters, num_nodes))


# Scores against labels


def test_perfect_whatever_the_numbers():
    labels = [0, 0, 1, 2, 2, 1]
    clusters = [9, 9, -4, 5, 5, -4]
    assert clustering_metrics(labels, clusters) == dict.fromkeys(("nmi", "acc", "ari", "f1"), 100.0)


def test_by_hand():
    """Classes {0,1,2,3}, {4,5}; clusters {0,1,2,4}, {3,5}: 4 of 6 right."""
    scores = clustering_metrics([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 1])
    assert scores["acc"] == pytest.approx(100 * 4 / 6)
    # F1 = 2 hits / (class size + cluster size): 2 * 3 / (4 + 4) and 2 * 1 / (2 + 2).
    assert scores["f1"] == pytest.approx(100 * (6 / 8 + 2 / 4) / 2)
    # Pairs together in both: 3. In the class: 7; in the cluster: 7; of 15.
    expected = 7 * 7 / 15
    assert scores["ari"] == pytest.approx(100 * (3 - expected) / (7 - expected))
    # Sizes 4 and 2 on both sides; the table is [[3, 1], [1, 1]].
    entropy = -(4 / 6 * math.log(4 / 6) + 2 / 6 * math.log(2 / 6))
    table = [(3, 4, 4), (1, 4, 2), (1, 2, 4), (1, 2, 2)]
    information = sum(n / 6 * math.log(6 * n / (a * b)) for n, a, b in table)
    assert scores["nmi"] == pytest.approx(100 * information / entropy, abs=1e-9)


@pytest.mark.parametrize(("num_classes", "num_clusters"), [(4, 4), (5, 3), (3, 6)])
def test_equals_scikit_learn_and_all_matchings(num_classes, num_clusters):
    labels, clusters = noisy_clusters(num_classes=num_classes, num_clusters=num_clusters)
    scores = clustering_metrics(torch.tensor(labels), torch.tensor(clusters))
    assert all(type(score) is float for score in scores.values())
    nmi = oracle.normalized_mutual_info_score(labels, clusters)
    assert scores["nmi"] == pytest.approx(100 * nmi, abs=1e-9)
    ari = oracle.adjusted_rand_score(labels, clusters)
    assert scores["ari"] == pytest.approx(100 * ari)
    # Classes beyond the real ones stand for "no class", so that every cluster gets a number.
    targets = range(max(num_classes, num_clusters))
    hits = max(
        (np.array(target)[clusters] == labels).mean()
        for target in itertools.permutations(targets, num_clusters)
    )
    assert scores["acc"] == pytest.approx(100 * hits)


def test_ties_between_matchings_do_not_depend_on_numbers():
    """Two matchings have two hits, with different F1; 6 numberings must give the same one."""
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    clusters = np.array([0, 1, 2, 0, 1, 2, 0, 1, 1])
    found = {
        tuple(clustering_metrics(labels, np.array(order)[clusters]).values())
        for order in itertools.permutations(range(3))
    }
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(5))
def test_unchanged_by_relabelling_and_node_order(seed):
    labels, clusters = noisy_clusters(num_clusters=6, seed=seed)
    rng = np.random.default_rng(seed)
    nodes, numbers = rng.permutation(len(labels)), rng.permutation(6) * 10 - 7
    moved = clustering_metrics(labels[nodes], numbers[clusters[nodes]])
    assert moved == pytest.approx(clustering_metrics(labels, clusters), abs=1e-4)


def test_unlabelled_nodes_are_ignored():
    labels, clusters = noisy_clusters()
    expected = clustering_metrics(labels[:150], clusters[:150])
    labels[150:] = UNLABELLED
    # Clusters found only among unlabelled nodes must not count either.
    clusters[150:] = 17
    assert clustering_metrics(labels, clusters) == expected


@pytest.mark.parametrize("labels", [None, [UNLABELLED] * 3])
def test_no_labelled_node(labels):
    nothing = dict.fromkeys(("nmi", "acc", "ari", "f1"))
    assert clustering_metrics(labels, [0, 1, 1]) == nothing


@pytest.mark.parametrize(
    ("labels", "clusters", "expected"),
    [
        # (nmi, acc, ari, f1); one cluster on four nodes has F1 2 * 2 / (2 + 4) and 0.
        ([0, 0, 1, 1], [5, 5, 5, 5], (0, 50, 0, 100 / 3)),
        ([3, 3, 3, 3], [0, 0, 1, 1], (0, 50, 0, 200 / 3)),
        ([3, 3, 3, 3], [1, 1, 1, 1], (0, 100, 100, 100)),
        ([2], [0], (0, 100, 100, 100)),
        # Every node its own class and cluster.
        ([0, 1, 2], [2, 1, 0], (100, 100, 100, 100)),
        # Independent: the counts are all equal.
        ([0, 0, 1, 1], [0, 1, 0, 1], (0, 50, -50, 50)),
    ],
    ids=["one cluster", "one class", "one of each", "one node", "singletons", "independent"],
)
def test_degenerate_inputs_are_finite(labels, clusters, expected):
    scores = clustering_metrics(labels, clusters)
    assert tuple(scores.values()) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("num_nodes", [7, 61, 997, 10007])
def test_nmi_with_one_group_is_exactly_zero(num_nodes):
    """Not what rounding leaves of it."""
    groups = np.random.default_rng(0).integers(0, 5, num_nodes)
    assert clustering_metrics(np.zeros(num_nodes, dtype=int), groups)["nmi"] == 0
    assert clustering_metrics(groups, np.zeros(num_nodes, dtype=int))["nmi"] == 0


def test_ari_does_not_overflow():
    """Products of pair counts of 200,000 nodes are beyond 64 bits."""
    labels, clusters = noisy_clusters(num_nodes=200_000)
    ari = oracle.adjusted_rand_score(labels, clusters)
    assert clustering_metrics(labels, clusters)["ari"] == pytest.approx(100 * ari)


def test_unequal_lengths():
    with pytest.raises(InputError, match="labels have 3 rows, clusters have 2"):
        clustering_metrics([0, 1, 0], [0, 1])


# Scores of a partition of the graph


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


# Scores of links


def pairwise_auc(scores, is_edge):
    positive, negative = scores[is_edge], scores[~is_edge]
    above = (positive[:, None] > negative).mean()
    return 100 * (above + (positive[:, None] == negative).mean() / 2)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1000.0])
def test_link_metrics_equal_pair_counts(scale):
    """Whatever the range: scores beyond [0, 1] are no logits."""
    rng = np.random.default_rng(0)
    is_edge = rng.random(300) < 0.4
    scores = scale * np.round(rng.normal(size=300) + is_edge, 1)
    found = link_metrics(torch.tensor(scores), torch.tensor(is_edge))
    assert found["auc"] == pytest.approx(pairwise_auc(scores, is_edge), abs=1e-3)
    expected = 100 * oracle.average_precision_score(is_edge, scores)
    assert found["ap"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("scores", "auc", "ap"),
    [
        ([4, 3, 2, 1], 100, 100),
        ([1, 2, 3, 4], 0, 100 * (1 / 3 + 2 / 4) / 2),
        ([7, 7, 7, 7], 50, 50),
        ([np.inf, 2, 2, -np.inf], 87.5, 100 * (1 + 2 / 3) / 2),
    ],
)
def test_link_metrics_by_hand(scores, auc, ap):
    found = link_metrics(scores, [True, True, False, False])
    assert found == pytest.approx({"auc": auc, "ap": ap}, abs=1e-4)


@pytest.mark.parametrize("is_edge", [[True, True], [False, False]])
def test_link_metrics_need_both_kinds(is_edge):
    assert link_metrics([0.1, 0.2], is_edge) == {"auc": None, "ap": None}


def test_no_links():
    assert link_metrics([], []) == {"auc": None, "ap": None}


def test_nan_scores_are_refused():
    with pytest.raises(InputError, match="1 of 3 are NaN"):
        link_metrics([0.1, np.nan, 0.3], [True, False, True])


def test_weight_auc_ranks_low_weights_first():
    added = np.array([True, True, False, False])
    assert weight_auc(np.array([0.0, 0.1, 0.5, 2.0]), added) == 100
    assert weight_auc(np.array([0.5, 2.0, 0.0, 0.1]), added) == 0
    assert weight_auc(torch.ones(4, requires_grad=True), torch.tensor(added)) == 50
    # Of four comparisons two are won and one is tied.
    assert weight_auc(np.array([1.0, 3.0, 3.0, 2.0], dtype=np.float32), added) == 62.5


def test_weight_ap_by_hand():
    added = [True, False, True, False]
    assert weight_ap([0.0, 2.0, 0.1, 0.5], added) == 100
    # From the lightest edge on: added, original, added, original; precision 1 and 2/3 at the added.
    assert weight_ap([0.0, 0.1, 0.5, 2.0], added) == pytest.approx(100 * (1 + 2 / 3) / 2, abs=1e-4)
    # Equal weights tell nothing: the share of added edges.
    assert weight_ap(torch.ones(4, requires_grad=True), torch.tensor(added)) == 50


@pytest.mark.parametrize("added", [[False, False], [True, True]])
@pytest.mark.parametrize("score", [weight_auc, weight_ap])
def test_weight_scores_undefined(score, added):
    assert score(np.array([1.0, 2.0]), added) is None


def test_unsigned_weights():
    assert weight_auc(np.array([0, 3], dtype=np.uint8), [True, False]) == 100
