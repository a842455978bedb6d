"""Scores of clusters against labels."""

import itertools
import math

import numpy as np
import pytest
import sklearn.metrics as oracle
import torch

from user_dgl.data import UNLABELLED
from user_dgl.errors import InputError
from user_dgl.evaluation.label_metrics import clustering_metrics

pytestmark = pytest.mark.usefixtures("quiet")


def noisy_clusters(num_nodes=200, num_classes=4, num_clusters=4, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, num_nodes)
    right = rng.random(num_nodes) < 0.6
    return labels, np.where(right, labels % num_clusters, rng.integers(0, num_clusters, num_nodes))


def test_perfect_whatever_the_numbers():
    labels = [0, 0, 1, 2, 2, 1]
    clusters = [9, 9, -4, 5, 5, -4]
    assert clustering_metrics(labels, clusters) == dict.fromkeys(
        ("nmi", "acc", "ari", "f1", "ami"), 100.0
    )


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
    ami = oracle.adjusted_mutual_info_score(labels, clusters, average_method="arithmetic")
    assert scores["ami"] == pytest.approx(100 * ami)
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
    nothing = dict.fromkeys(("nmi", "acc", "ari", "f1", "ami"))
    assert clustering_metrics(labels, [0, 1, 1]) == nothing


@pytest.mark.parametrize(
    ("labels", "clusters", "expected"),
    [
        # (nmi, acc, ari, f1, ami); one cluster on four nodes has F1 2 * 2 / (2 + 4) and 0.
        ([0, 0, 1, 1], [5, 5, 5, 5], (0, 50, 0, 100 / 3, 0)),
        ([3, 3, 3, 3], [0, 0, 1, 1], (0, 50, 0, 200 / 3, 0)),
        ([3, 3, 3, 3], [1, 1, 1, 1], (0, 100, 100, 100, 100)),
        ([2], [0], (0, 100, 100, 100, 100)),
        # Every node its own class and cluster.
        ([0, 1, 2], [2, 1, 0], (100, 100, 100, 100, 100)),
        # Independent: the counts are all equal.
        ([0, 0, 1, 1], [0, 1, 0, 1], (0, 50, -50, 50, -50)),
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


def test_ami_of_many_random_clusters_is_zero_where_nmi_is_not():
    labels, _ = noisy_clusters(num_nodes=400)
    clusters = np.random.default_rng(1).integers(0, 100, 400)
    scores = clustering_metrics(labels, clusters)
    assert scores["nmi"] > 15
    assert abs(scores["ami"]) < 3


def test_ami_of_unequal_groupings_into_single_nodes():
    """One of the groupings has only single nodes: what it says is what chance says."""
    labels, clusters = np.arange(12), np.arange(12) // 2
    assert clustering_metrics(labels, clusters)["ami"] == pytest.approx(0, abs=1e-6)
    assert clustering_metrics(clusters, labels)["ami"] == pytest.approx(0, abs=1e-6)


def test_ari_does_not_overflow():
    """Products of pair counts of 200,000 nodes are beyond 64 bits."""
    labels, clusters = noisy_clusters(num_nodes=200_000)
    ari = oracle.adjusted_rand_score(labels, clusters)
    assert clustering_metrics(labels, clusters)["ari"] == pytest.approx(100 * ari)


def test_unequal_lengths():
    with pytest.raises(InputError, match="labels have 3 rows, clusters have 2"):
        clustering_metrics([0, 1, 0], [0, 1])
