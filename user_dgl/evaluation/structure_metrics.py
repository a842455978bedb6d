"""Metrics of clusters on the graph and on the embedding, without labels."""

import numpy as np
import torch
from sklearn.metrics import davies_bouldin_score

from user_dgl.errors import InputError
from user_dgl.evaluation.arrays import Values, as_array, check_equal_length
from user_dgl.graph import Graph
from user_dgl.losses.entropy import PartitionSums, npsi


def partition_scores(graph: Graph, clusters: Values) -> dict[str, float | None]:
    """Scores of hard clusters on the observed graph, without labels. Time is linear in the edges.

    ``2m`` is the number of edges, ``v_k`` is the sum of the degrees in cluster k (its volume), and
    ``e_k`` is the number of edges inside it. In all of them both directions of an edge count. If
    the edges have weights, these are added instead of counted.

    * ``npsi``: ``sum_k e_k/2m log2(v_k/2m)`` (Eq. 2 of the paper), in bits, in ``[-log2 K, 0]``;
      lower is better.
    * ``modularity``: ``sum_k e_k/2m - (v_k/2m)^2`` (Newman); higher is better.
    * ``conductance``: mean over clusters of ``(v_k - e_k) / min(v_k, 2m - v_k)``, in [0, 1]; lower
      is better. Clusters whose minimum is 0 (clusters of isolated nodes, or with all edges) are
      left out.

    Parameters
    ----------
    graph : Graph
    clusters : int array or tensor (N,)

    Returns
    -------
    dict of npsi, modularity, conductance
        All are None if the graph has no edges. Conductance is None if every cluster is left out.

    Raises
    ------
    InputError
        ``clusters`` is not of length N.

    >>> two_edges, _ = Graph.from_edges(4, [0, 2], [1, 3])
    >>> partition_scores(two_edges, [0, 0, 1, 1])
    {'npsi': -1.0, 'modularity': 0.5, 'conductance': 0.0}
    """
    clusters = as_array(clusters)
    if len(clusters) != graph.num_nodes:
        raise InputError(
            f"clusters: expected one number for each of {graph.num_nodes} nodes, got "
            f"{len(clusters)}"
        )
    if graph.num_edges == 0:
        return {"npsi": None, "modularity": None, "conductance": None}
    found, clusters = np.unique(clusters, return_inverse=True)
    num_clusters = len(found)
    src, dst = clusters[as_array(graph.src)], clusters[as_array(graph.dst)]
    weight = None if graph.weight is None else as_array(graph.weight).astype(np.float64)
    volume, other = (np.bincount(ends, weight, num_clusters) for ends in (src, dst))
    volume = volume + other
    inside = src == dst
    internal_weight = 2 * np.bincount(
        src[inside], None if weight is None else weight[inside], num_clusters
    )
    total_weight = volume.sum()

    touched = volume > 0
    volume, internal_weight = volume[touched], internal_weight[touched]
    volume_share, internal_share = volume / total_weight, internal_weight / total_weight
    sums = PartitionSums(
        torch.tensor(total_weight, dtype=torch.float64),
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


def davies_bouldin(embedding: Values, clusters: Values) -> float | None:
    """Davies-Bouldin score of an embedding: 0 or more, lower is better.

    ``1/K sum_i max_{j != i} (s_i + s_j) / ||c_i - c_j||``, where s_i is the mean distance to the
    centroid c_i, as in scikit-learn. The loss terms with this name use other spreads and give other
    values.

    Parameters
    ----------
    embedding : array or tensor (N, d)
    clusters : int array or tensor (N,)

    Returns
    -------
    float or None
        None if fewer than two clusters have a node, or if each node has its own cluster.

    Raises
    ------
    InputError
        Embedding and clusters differ in length.
    ValueError
        The embedding is not finite (from scikit-learn).
    """
    embedding, clusters = as_array(embedding), as_array(clusters)
    check_equal_length(embedding=embedding, clusters=clusters)
    if not 2 <= len(np.unique(clusters)) < len(clusters):
        return None
    return float(davies_bouldin_score(embedding, clusters))
