"""Scores of a finished run. Labels are read here, after training, and nowhere before.

All scores against labels are in percent (0 to 100) and plain Python floats; a score that is
undefined for its input is None, never NaN.
"""

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import f1_score, normalized_mutual_info_score
from torchmetrics.functional.clustering.utils import calculate_pair_cluster_confusion_matrix

from user_dgl.data import UNLABELLED
from user_dgl.evaluation.arrays import as_array, check_equal_length


def clustering_metrics(labels, clusters) -> dict[str, float | None]:
    """NMI, accuracy, adjusted Rand index and macro-F1 of clusters against classes, in percent.

    * ``nmi``: ``2 I(L; C) / (H(L) + H(C))``, the arithmetic mean as normaliser.
    * ``acc``: share of nodes in the cluster that their class is matched with, under the one-to-one
      matching of clusters and classes that makes it largest.
    * ``ari``: Rand index corrected for chance; 0 is expected of random clusters, so it can be
      negative.
    * ``f1``: F1 averaged over the classes after that matching. Nodes of a cluster that no class is
      matched with count as wrong, and a class without a cluster has F1 0.

    Only nodes with a label count. None of the scores depends on how clusters are numbered.

    Parameters
    ----------
    labels : int array or tensor (N,), or None
        `UNLABELLED` where unknown; None: unknown everywhere.
    clusters : int array or tensor (N,)
        Any numbers; gaps and empty clusters do no harm.

    Returns
    -------
    dict of nmi, acc, ari, f1
        All None if no node has a label.

    Raises
    ------
    InputError
        Labels and clusters differ in length.

    Notes
    -----
    With a single class or a single cluster, nothing can be learned from one about the other: NMI
    is 0, also where both are single (scikit-learn says 1 there). ARI is 100 when the two groupings
    are equal, which covers the latter case, else 0.

    >>> clustering_metrics([0, 0, 1, 1, -1], [7, 7, 3, 3, 3])
    {'nmi': 100.0, 'acc': 100.0, 'ari': 100.0, 'f1': 100.0}
    """
    clusters = as_array(clusters)
    labels = np.full(len(clusters), UNLABELLED) if labels is None else as_array(labels)
    check_equal_length(labels=labels, clusters=clusters)
    labelled = labels != UNLABELLED
    if not labelled.any():
        return {"nmi": None, "acc": None, "ari": None, "f1": None}
    labels, clusters, table = _contingency(labels[labelled], clusters[labelled])
    matched = _matched_class(table)
    hits = table[matched[matched >= 0], np.flatnonzero(matched >= 0)].sum()
    f1 = f1_score(
        labels, matched[clusters], labels=np.arange(len(table)), average="macro", zero_division=0
    )
    return {
        "nmi": _nmi(labels, clusters, table),
        "acc": 100.0 * float(hits) / len(labels),
        "ari": _ari(table),
        "f1": 100.0 * float(f1),
    }


def _contingency(labels, clusters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels as 0..C-1, clusters as 0..K-1, and how many nodes each pair of them has (C, K).

    Clusters are numbered by their column of counts, not by the caller's numbers: where several
    matchings have the same accuracy, their F1 can differ, and the one that is taken must not
    depend on the numbering. (Clusters with equal columns are interchangeable.)
    """
    _, labels = np.unique(labels, return_inverse=True)
    _, clusters = np.unique(clusters, return_inverse=True)
    ones = np.ones(len(labels), dtype=np.int64)
    table = sp.coo_matrix((ones, (labels, clusters))).toarray()
    order = np.lexsort(table)
    return labels, np.argsort(order)[clusters], table[:, order]


def _matched_class(table: np.ndarray) -> np.ndarray:
    """Class of each cluster (K,) in the matching with the most hits, -1 for a cluster left over."""
    matched = np.full(table.shape[1], -1, dtype=np.int64)
    rows, columns = linear_sum_assignment(table, maximize=True)
    matched[columns] = rows
    return matched


def _nmi(labels, clusters, table) -> float:
    if min(table.shape) == 1:
        return 0.0
    # scikit-learn's, in float64: torchmetrics' float32 leaves a perfect clustering below 100.
    return 100.0 * float(normalized_mutual_info_score(labels, clusters))


def _ari(table) -> float:
    # torchmetrics counts the pairs. The products of two counts are left to Python's integers: of
    # order N^4, they overflow int64 near N = 50,000, and its adjusted_rand_score with them.
    pairs = calculate_pair_cluster_confusion_matrix(contingency=torch.from_numpy(table))
    (apart, only_cluster), (only_class, together) = pairs.tolist()
    if only_cluster == only_class == 0:
        return 100.0
    numerator = 2 * (together * apart - only_class * only_cluster)
    denominator = (together + only_class) * (only_class + apart) + (together + only_cluster) * (
        only_cluster + apart
    )
    return 100.0 * (numerator / denominator)
