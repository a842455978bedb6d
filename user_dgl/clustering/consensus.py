r"""Consensus: one clustering computed from the outputs of several replicas of a model.

Not in the paper. Replicas of one model end in different partitions, and their losses rank these
partitions only roughly. The consensus of the replicas is better than the best replica. As in Strehl
and Ghosh (2002), the nodes are clustered on the outputs of all replicas together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import normalize

from user_dgl.clustering.kmeans import kmeans
from user_dgl.features.svd import truncated_svd


@dataclass(frozen=True, eq=False)
class Consensus:
    """Consensus of replicas.

    Attributes
    ----------
    clusters : int64 (N,)
        Clusters in 0..K-1.
    probs : float32 (N, K)
        Mean of the replicas' Y, with the columns in the order of the clusters. The arg max of a row
        may differ from the cluster.
    embedding : float32 (N, min(4 K, 64))
        Components of the clustered points along their leading right singular vectors. The number of
        columns does not grow with the number of replicas. It is smaller if the points have fewer
        columns.
    """

    clusters: np.ndarray
    probs: np.ndarray
    embedding: np.ndarray


def consensus_of(
    kind: str, probs: np.ndarray, embeddings: Sequence[np.ndarray], seed: int
) -> Consensus:
    r"""Cluster the nodes by k-means (20 starts) on the outputs of all replicas, side by side.

    * ``labels``: the points are :math:`(\sqrt{Y_1}, \dots, \sqrt{Y_R})`. Their squared distances
      are twice the sum of the squared Hellinger distances between the rows of Y.
    * ``hidden``: the points are the replicas' embeddings, with the rows of each scaled to norm 1,
      so that all replicas have the same weight.

    Parameters
    ----------
    kind : str
        ``labels`` or ``hidden``.
    probs : float32 (N, R, K)
        Y of each replica.
    embeddings : sequence of R float32 (N, d)
        Input of the linear map of each replica's head.
    seed : int
        Seed of k-means and of the SVD.

    Returns
    -------
    Consensus
    """
    num_clusters = probs.shape[2]
    points = joined_points(kind, probs, embeddings)
    clusters = kmeans(points, num_clusters, seed)
    embedding = truncated_svd(points, min(4 * num_clusters, 64), seed)
    return Consensus(clusters, mean_probs(probs, clusters), embedding)


def joined_points(kind: str, probs: np.ndarray, embeddings: Sequence[np.ndarray]) -> np.ndarray:
    """Points (N, R K) or (N, R d) that `consensus_of` clusters; same parameters."""
    if kind == "labels":
        return np.sqrt(probs).reshape(len(probs), -1)
    return np.concatenate([normalize(embedding) for embedding in embeddings], axis=1)


def mean_probs(probs: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    r"""Mean of the replicas' soft assignments after their columns are matched to the clusters.

    The columns of each replica are numbered differently. They are matched one to one to the
    clusters c by the permutation :math:`\pi` that maximises
    :math:`\sum_k \sum_i [c_i = k] Y_{i \pi(k)}` (Hungarian method).

    Parameters
    ----------
    probs : float32 (N, R, K)
    clusters : int64 (N,)
        Clusters in 0..K-1.

    Returns
    -------
    float32 (N, K)
    """
    num_nodes, num_replicas, num_clusters = probs.shape
    total = np.zeros((num_nodes, num_clusters), dtype=np.float32)
    for replica in range(num_replicas):
        assignment = probs[:, replica]
        shared = np.zeros((num_clusters, num_clusters), dtype=np.float64)
        np.add.at(shared, clusters, assignment)
        total += assignment[:, linear_sum_assignment(shared, maximize=True)[1]]
    return total / num_replicas
