"""The result of training, and the choice of its clusters."""

from dataclasses import dataclass

import numpy as np

from user_dgl.graph import Graph


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Result of the replica with the lowest loss, or of the consensus, without dropout.

    Attributes
    ----------
    clusters : int64 (N,)
        Clusters chosen by `ModelConfig.labels`, or the clusters of the consensus.
    assignments : dict of str to int64 (N,)
        All available clusterings. ``head`` is the arg max of Y of the replica with the lowest loss.
        ``kmeans`` and ``code``, only with the encoder ``smooth``, are the clusters of its view
        before and after nodes were moved.
        ``consensus`` is there only with a consensus.
    labels_from : str
        Name of the clustering in ``assignments`` that is ``clusters``.
    probs : float32, or float64 with ``train.precision=float64`` (N, K)
        Y, or the mean Y of the replicas. If ``labels_from`` is ``head``, its arg max is
        ``clusters``.
    embedding : as ``probs`` (N, d)
        Input of the head, or the embedding of the consensus.
    graph : Graph
        Pairs of A'.
    weight : float32, or float64 with ``train.precision=float64`` (P,)
        Weights of A'. With a consensus and one A' for each replica, the mean of their weights.
    observed : bool (P,)
        Whether the pair is an observed edge.
    loss : dict of str to float
        Weighted terms and their ``total``. With a consensus, the means over the replicas.
    restart_losses : list of float
        Total loss of each replica.
    engine : str
    device : str
    epoch_seconds : list of float
        Seconds of each epoch, including the epochs before a resume.
    warnings : list of str
    """

    clusters: np.ndarray
    assignments: dict[str, np.ndarray]
    labels_from: str
    probs: np.ndarray
    embedding: np.ndarray
    graph: Graph
    weight: np.ndarray
    observed: np.ndarray
    loss: dict[str, float]
    restart_losses: list[float]
    engine: str
    device: str
    epoch_seconds: list[float]
    warnings: list[str]


def empty_clusters(
    clusters: np.ndarray, asked: int, labels_from: str, remedy: str | None = None
) -> list[str]:
    """Return one warning if some clusters are empty, else none.

    Parameters
    ----------
    clusters : int64 (N,)
    asked : int
        K.
    labels_from : str
        As in `TrainingResult`.
    remedy : str, optional
        Advice of a baseline.
    """
    found = len(np.unique(clusters))
    if remedy is None and labels_from in ("kmeans", "code"):
        remedy = "a lower model.num_clusters, as fewer groups of nodes differ"
    elif remedy is None:
        remedy = "more train.restarts or another train.lr"
    if found == asked:
        return []
    return [f"{asked} clusters asked for, {found} found: the others are empty; try {remedy}"]
