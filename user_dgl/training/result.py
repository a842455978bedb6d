"""What training gives, and how its clusters are chosen."""

from dataclasses import dataclass

import numpy as np

from user_dgl.clustering.kmeans import silhouette
from user_dgl.config import Config
from user_dgl.graph import Graph

# NPSI moves clusters to where the graph wants them. By how much may that loosen them among the
# embeddings before it is the graph's degrees that speak and not its clusters?
_SILHOUETTE_TOLERANCE = 0.02


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Final state, without dropout, of the replica with the lowest loss, or of the consensus.

    Attributes
    ----------
    clusters : int64 (N,)
        What `ModelConfig.labels` asks for, or the clusters of the consensus.
    assignments : dict of str to int64 (N,)
        Every clustering at hand: ``head``, arg max of Y of the replica with the lowest loss; with
        encoder ``smooth`` ``kmeans``, where it started; with a consensus ``consensus``.
    labels_from : str
        Which of them ``clusters`` is.
    probs : float32 (N, K)
        Y, or the mean of the replicas' Y; its arg max is ``clusters`` if these are the head's.
    embedding : float32 (N, d)
        What the head's linear map reads, or that of the consensus.
    graph : Graph
        Pairs of A'.
    weight : float32 (P,)
        A'; with one A' a replica and a consensus, their mean.
    observed : bool (P,)
    loss : dict of str to float
        Weighted terms and their ``total``; with a consensus, the mean over replicas.
    restart_losses : list of float
        Total of each replica.
    engine : str
    device : str
    epoch_seconds : list of float
        Those before a resume included.
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


def chosen_labels(config: Config, assignments: dict[str, np.ndarray], embedding: np.ndarray) -> str:
    """Which of the clusterings ``head`` and ``kmeans`` is the result, by `ModelConfig.labels`."""
    rule = config.model.labels
    if rule != "auto":
        return rule
    used = {name: len(np.unique(clusters)) for name, clusters in assignments.items()}
    if used["head"] < used["kmeans"]:
        # Few clusters can be far apart: their silhouette would say nothing of those given up.
        return "kmeans"
    head, kmeans = (
        silhouette(embedding, assignments[name], config.seed) for name in ("head", "kmeans")
    )
    return "head" if head >= kmeans - _SILHOUETTE_TOLERANCE * abs(kmeans) else "kmeans"


def empty_clusters(
    clusters: np.ndarray, asked: int, remedy: str = "more train.restarts or another train.lr"
) -> list[str]:
    """A warning where fewer clusters were found than asked for, with what may help."""
    found = len(np.unique(clusters))
    if found == asked:
        return []
    return [f"{asked} clusters asked for, {found} found: the others are empty; try {remedy}"]
