"""Scores of a finished run. Labels are read here, after training, and nowhere before.

All scores against labels are in percent (0 to 100) and plain Python floats; a score that is
undefined for its input is None, never NaN.
"""

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import davies_bouldin_score, f1_score, normalized_mutual_info_score
from torchmetrics.functional.classification import binary_auroc, binary_average_precision
from torchmetrics.functional.clustering.utils import calculate_pair_cluster_confusion_matrix

from user_dgl.data import UNLABELLED
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.losses.entropy import PartitionSums, npsi


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
    clusters = _array(clusters)
    labels = np.full(len(clusters), UNLABELLED) if labels is None else _array(labels)
    _check_equal_length(labels=labels, clusters=clusters)
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


def partition_scores(graph: Graph, clusters) -> dict[str, float | None]:
    """Scores of hard clusters on the observed graph, without labels and linear in its edges.

    With ``2m`` = both directions of all edges, ``v_k`` = sum of the degrees in cluster k (its
    volume) and ``e_k`` = edges inside it, both directions counted:

    * ``npsi``: ``sum_k e_k/2m log2(v_k/2m)``, bits, in ``[-log2 K, 0]``, lower is better;
    * ``modularity``: Newman's ``sum_k e_k/2m - (v_k/2m)^2``, higher is better;
    * ``conductance``: mean over clusters of ``(v_k - e_k) / min(v_k, 2m - v_k)``, in [0, 1], lower
      is better; clusters where that minimum is 0 (only isolated nodes, or all edges) are left out.

    Parameters
    ----------
    graph : Graph
    clusters : int array or tensor (N,)

    Returns
    -------
    dict of npsi, modularity, conductance
        All None for a graph without edges; conductance None if every cluster is left out.

    Raises
    ------
    InputError
        ``clusters`` is not of length N.

    >>> two_edges, _ = Graph.from_edges(4, [0, 2], [1, 3])
    >>> partition_scores(two_edges, [0, 0, 1, 1])
    {'npsi': -1.0, 'modularity': 0.5, 'conductance': 0.0}
    """
    clusters = _array(clusters)
    if len(clusters) != graph.num_nodes:
        raise InputError(
            f"clusters: expected one for each of {graph.num_nodes} nodes, got {len(clusters)}"
        )
    if graph.num_edges == 0:
        return {"npsi": None, "modularity": None, "conductance": None}
    found, clusters = np.unique(clusters, return_inverse=True)
    num_clusters = len(found)
    src, dst = clusters[_array(graph.src)], clusters[_array(graph.dst)]
    volume = np.bincount(src, minlength=num_clusters) + np.bincount(dst, minlength=num_clusters)
    internal_weight = 2 * np.bincount(src[src == dst], minlength=num_clusters)
    total_weight = 2 * graph.num_edges

    touched = volume > 0
    volume, internal_weight = volume[touched], internal_weight[touched]
    volume_share, internal_share = volume / total_weight, internal_weight / total_weight
    sums = PartitionSums(
        torch.tensor(float(total_weight)),
        torch.from_numpy(volume.astype(float)),
        torch.from_numpy(internal_weight.astype(float)),
    )
    smaller_side = np.minimum(volume, total_weight - volume)
    proper = smaller_side > 0
    conductance = (volume - internal_weight)[proper] / smaller_side[proper]
    return {
        "npsi": npsi(sums).item(),
        "modularity": float((internal_share - volume_share**2).sum()),
        "conductance": float(conductance.mean()) if len(conductance) else None,
    }


def davies_bouldin(embedding, clusters) -> float | None:
    """Davies-Bouldin score of an embedding (N, d): 0 or more, lower is better.

    ``1/K sum_i max_{j != i} (s_i + s_j) / ||c_i - c_j||``, s_i the mean distance to the centroid
    c_i (scikit-learn's). The loss terms of that name use other spreads and are not this number.

    Returns
    -------
    float, or None where it is undefined
        Fewer than two clusters have a node, or every node has its own.

    Raises
    ------
    InputError
        Embedding and clusters differ in length.
    ValueError
        The embedding is not finite (from scikit-learn).
    """
    embedding, clusters = _array(embedding), _array(clusters)
    _check_equal_length(embedding=embedding, clusters=clusters)
    if not 2 <= len(np.unique(clusters)) < len(clusters):
        return None
    return float(davies_bouldin_score(embedding, clusters))


def link_metrics(scores, is_edge) -> dict[str, float | None]:
    """AUC and average precision of link scores, in percent.

    Parameters
    ----------
    scores : array or tensor (P,)
        One a pair, of any range, higher for a more likely edge. Equal scores count one half in AUC.
    is_edge : bool array or tensor (P,)

    Returns
    -------
    dict of auc, ap
        Both None unless there are edges and non-edges.

    Raises
    ------
    InputError
        Lengths differ, or a score is NaN.

    >>> link_metrics([30.0, 20.0, 20.0, 10.0], [True, True, False, False])["auc"]
    87.5
    """
    scores, is_edge = _array(scores), _array(is_edge).astype(bool)
    _check_equal_length(scores=scores, is_edge=is_edge)
    if np.isnan(scores).any():
        raise InputError(f"link scores: {int(np.isnan(scores).sum())} of {len(scores)} are NaN")
    if is_edge.all() or not is_edge.any():
        return {"auc": None, "ap": None}
    # torchmetrics takes scores outside [0, 1] for logits, and its sigmoid makes large ones equal.
    # Both metrics depend on the order only, so ranks, with equal ones for equal scores, replace
    # the scores.
    distinct, rank = np.unique(scores, return_inverse=True)
    ranks, target = torch.from_numpy(rank / len(distinct)), torch.from_numpy(is_edge).long()
    return {
        "auc": 100.0 * float(binary_auroc(ranks, target)),
        "ap": 100.0 * float(binary_average_precision(ranks, target)),
    }


def weight_auc(weight, added) -> float | None:
    """How well ``1/A'`` ranks the added edges among the observed ones: AUC in percent.

    100: every added edge has a lower weight than every original one; 50: no better than chance.
    Equal weights count one half.

    Parameters
    ----------
    weight : array or tensor (E,)
        Weights of the observed pairs in A', 0 or more.
    added : bool array or tensor (E,)
        Whether noise added the pair.

    Returns
    -------
    float, or None
        None if no observed pair was added, or none is original.

    Raises
    ------
    InputError
        Lengths differ, or a weight is NaN.
    """
    return _noise_ranking(weight, added)["auc"]


def weight_ap(weight, added) -> float | None:
    """How well ``1/A'`` finds the added edges among the observed ones: AP in percent.

    AP is the average precision: precision averaged over the added edges, from the lightest on.

    100: every added edge has a lower weight than every original one. Chance is no fixed number
    here but the share of added edges among the observed ones.

    Parameters
    ----------
    weight : array or tensor (E,)
        Weights of the observed pairs in A', 0 or more.
    added : bool array or tensor (E,)
        Whether noise added the pair.

    Returns
    -------
    float, or None
        None if no observed pair was added, or none is original.

    Raises
    ------
    InputError
        Lengths differ, or a weight is NaN.
    """
    return _noise_ranking(weight, added)["ap"]


def _noise_ranking(weight, added) -> dict[str, float | None]:
    """AUC and average precision of ``1/A'`` as a score for added edges."""
    # 1/w and -w rank alike, and -w allows for weight 0 (and, as floats, for unsigned integers).
    return link_metrics(-_array(weight).astype(np.float64), added)


def _array(values) -> np.ndarray:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _check_equal_length(**arrays):
    (name, first), (other, second) = arrays.items()
    if len(first) != len(second):
        raise InputError(f"{name} have {len(first)} rows, {other} have {len(second)}")
