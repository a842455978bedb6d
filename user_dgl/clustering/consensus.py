r"""One clustering of several replicas.

Replicas of one model end in different partitions, and their losses rank them only roughly; what
most of them agree on is better than the best of them. Not in the paper. Clusterings are joined as
in Strehl and Ghosh (2002), by clustering nodes on what all members say of them.
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
    """What replicas agree on.

    Attributes
    ----------
    clusters : int64 (N,)
    probs : float32 (N, K)
        Mean of the replicas' Y, columns in the order of the clusters. Its arg max need not be the
        cluster everywhere.
    embedding : float32 (N, min(4 K, 64)), or fewer columns where the points have fewer
        Leading principal directions of the points that were clustered: their width grows with
        the number of replicas, this does not.
    """

    clusters: np.ndarray
    probs: np.ndarray
    embedding: np.ndarray


def consensus_of(
    kind: str, probs: np.ndarray, embeddings: Sequence[np.ndarray], seed: int
) -> Consensus:
    r"""k-means (20 starts, the smallest inertia) on the replicas' outputs side by side.

    ``labels``: on :math:`(\sqrt{Y_1}, \dots, \sqrt{Y_R})`, whose squared distances are twice the
    sum of the squared Hellinger distances between the rows of Y. ``hidden``: on their embeddings,
    each with rows of length 1, so that no replica outweighs another.

    Parameters
    ----------
    kind : str
    probs : float32 (N, R, K)
        Y of each replica.
    embeddings : sequence of R float32 (N, d)
        What each head's linear map reads.
    seed : int

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
    """Points of `consensus_of`: what all replicas say of each node, side by side."""
    if kind == "labels":
        return np.sqrt(probs).reshape(len(probs), -1)
    return np.concatenate([normalize(embedding) for embedding in embeddings], axis=1)


def mean_probs(probs: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    r"""Mean of soft assignments whose columns are numbered differently.

    Each replica's columns are matched to the clusters, one to one, so that the membership they
    share, :math:`\sum_i [c_i = k] Y_{i \pi(k)}` summed over k, is largest (Hungarian method).

    Parameters
    ----------
    probs : float32 (N, R, K)
    clusters : int64 (N,)
        In 0..K-1.

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
