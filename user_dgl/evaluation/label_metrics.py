"""Metrics that compare clusters with labels, after training.

All scores are plain Python floats in percent. They are in 0 to 100, except the adjusted Rand index
and the adjusted mutual information, which can be negative. A score that is undefined for its input
is None, never NaN.
"""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_mutual_info_score, f1_score, normalized_mutual_info_score
from sklearn.metrics.cluster import pair_confusion_matrix

from user_dgl.data import UNLABELLED
from user_dgl.evaluation.arrays import Values, as_array, check_equal_length


def clustering_metrics(labels: Values | None, clusters: Values) -> dict[str, float | None]:
    """NMI, accuracy, ARI, macro-F1 and AMI of clusters against classes, in percent.

    * ``nmi``: ``2 I(L; C) / (H(L) + H(C))``, normalised by the arithmetic mean of the entropies.
    * ``acc``: share of the nodes whose cluster is matched to their class. The matching of clusters
      to classes is one to one and maximises this share.
    * ``ari``: Rand index corrected for chance. Its expected value for random clusters is 0, so it
      can be negative.
    * ``f1``: mean F1 of the classes under the same matching. Nodes in a cluster without a class
      count as wrong. A class without a cluster has F1 0.
    * ``ami``: adjusted mutual information, ``(I - E) / ((H(L) + H(C)) / 2 - E)``, where E is the
      expected mutual information of random groupings of the same sizes (Vinh, Epps and Bailey,
      2010). NMI grows with the number of clusters even for random ones, but AMI is then 0 on
      average, so it can be negative.

    Only nodes with a label count. The scores do not depend on the numbering of the clusters.

    Parameters
    ----------
    labels : int array or tensor (N,), or None
        `UNLABELLED` for a node without a label. None: no node has a label.
    clusters : int array or tensor (N,)
        Any numbers. They may have gaps.

    Returns
    -------
    dict of nmi, acc, ari, f1, ami
        All None if no node has a label.

    Raises
    ------
    InputError
        Labels and clusters differ in length.

    Notes
    -----
    If there is a single class or a single cluster, one carries no information about the other, and
    NMI is 0. This includes the case of a single class and a single cluster, for which scikit-learn
    gives 1. In that case ARI and AMI are 100, as always if the two groupings are equal. If only one
    of the two is single, both are 0.

    >>> clustering_metrics([0, 0, 1, 1, -1], [7, 7, 3, 3, 3])
    {'nmi': 100.0, 'acc': 100.0, 'ari': 100.0, 'f1': 100.0, 'ami': 100.0}
    """
    clusters = as_array(clusters)
    labels = np.full(len(clusters), UNLABELLED) if labels is None else as_array(labels)
    check_equal_length(labels=labels, clusters=clusters)
    labelled = labels != UNLABELLED
    if not labelled.any():
        return dict.fromkeys(("nmi", "acc", "ari", "f1", "ami"))
    labels, clusters, table = _contingency(labels[labelled], clusters[labelled])
    matched = _matched_class(table)
    hits = table[matched[matched >= 0], np.flatnonzero(matched >= 0)].sum()
    f1 = f1_score(
        labels, matched[clusters], labels=np.arange(len(table)), average="macro", zero_division=0
    )
    return {
        "nmi": _nmi(labels, clusters, table),
        "acc": 100.0 * float(hits) / len(labels),
        "ari": _ari(labels, clusters),
        "f1": 100.0 * float(f1),
        "ami": _ami(labels, clusters, table),
    }


def _contingency(
    labels: np.ndarray, clusters: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels as 0..C-1 (N,), clusters as 0..K-1 (N,), and the number of nodes in each pair (C, K).

    Clusters are numbered in the order of their columns of counts, independent of the given numbers.
    Several matchings may have the same accuracy and different F1, and the choice among them must
    not depend on the given numbers. (Clusters with equal columns are interchangeable.)
    """
    _, labels = np.unique(labels, return_inverse=True)
    _, clusters = np.unique(clusters, return_inverse=True)
    ones = np.ones(len(labels), dtype=np.int64)
    table = sp.coo_matrix((ones, (labels, clusters))).toarray()
    order = np.lexsort(table)
    return labels, np.argsort(order)[clusters], table[:, order]


def _matched_class(table: np.ndarray) -> np.ndarray:
    """Class of each cluster (K,) in the matching with the most hits; -1: not matched to a class."""
    matched = np.full(table.shape[1], -1, dtype=np.int64)
    rows, columns = linear_sum_assignment(table, maximize=True)
    matched[columns] = rows
    return matched


def _nmi(labels: np.ndarray, clusters: np.ndarray, table: np.ndarray) -> float:
    if min(table.shape) == 1:
        return 0.0
    # scikit-learn computes in float64. torchmetrics computes in float32 and gives a perfect
    # clustering less than 100.
    return 100.0 * float(normalized_mutual_info_score(labels, clusters))


def _ami(labels: np.ndarray, clusters: np.ndarray, table: np.ndarray) -> float:
    # The number of pairs (class, cluster) that occur is that of the classes and that of the
    # clusters only if the groupings are equal. For groupings into single nodes the formula is 0/0.
    if table.shape[0] == table.shape[1] == np.count_nonzero(table):
        return 100.0
    if min(table.shape) == 1:
        return 0.0
    return 100.0 * float(adjusted_mutual_info_score(labels, clusters))


def _ari(labels: np.ndarray, clusters: np.ndarray) -> float:
    # scikit-learn counts the pairs. The products of two counts are of order N^4 and would overflow
    # int64 near N = 50,000. Python's integers do not overflow.
    pairs = pair_confusion_matrix(labels, clusters)
    (apart, only_cluster), (only_class, together) = pairs.tolist()
    if only_cluster == only_class == 0:
        return 100.0
    numerator = 2 * (together * apart - only_class * only_cluster)
    denominator = (together + only_class) * (only_class + apart) + (together + only_cluster) * (
        only_cluster + apart
    )
    return 100.0 * (numerator / denominator)
