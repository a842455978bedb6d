r"""How much to smooth: the view of the features that the encoder ``smooth`` clusters.

Not in the paper. Smoothing over a graph takes noise out of features and puts other clusters'
features in. Which of the two is more differs from data to data: short texts gain from a mean over
many neighbours, long ones lose by it. The share ``a`` of a node's own features is therefore chosen
without labels: the one with which features, smoothed over a graph without some of its edges,
foretell those edges best.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from user_dgl.clustering.kmeans import kmeans
from user_dgl.config import SmoothConfig
from user_dgl.features.cosine import row_dots
from user_dgl.features.svd import right_singular_vectors, svd_with_axes, truncated_svd
from user_dgl.graph import Graph
from user_dgl.graph.pairs import random_pairs
from user_dgl.graph.propagation import Propagation, smooth

SELF_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75)
# Taken where there are too few edges to hold some out.
DEFAULT_SELF_SHARE = 0.2
_HELD_OUT = 0.1


@dataclass(frozen=True, eq=False)
class SmoothedView:
    """What the encoder ``smooth`` is made of.

    Attributes
    ----------
    points : float32 Tensor (N, d)
        What is smoothed.
    self_share : float
    scores : dict of float to float
        Held-out score of each share that was compared; empty where none was.
    clusters : int64 (N,)
        k-means of the embeddings on the first weights of A'.
    centroids : float32 Tensor (K, d)
        Their means, scaled to norm 1; 0 for an empty cluster.
    projection : float32 Tensor (F, d) or None
        What takes unit rows of features to ``points``, up to the error of a randomised SVD where it
        has fewer components than the features; None in a part of a view.
    """

    points: torch.Tensor
    self_share: float
    scores: dict[float, float]
    clusters: np.ndarray
    centroids: torch.Tensor
    projection: torch.Tensor | None = None


def smoothed_view(
    graph: Graph,
    weight: torch.Tensor,
    feat: sp.csr_matrix,
    config: SmoothConfig,
    num_clusters: int,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
) -> SmoothedView:
    r"""Project features so that smoothing them needs few columns, and choose the share.

    Rows of X scaled to norm 1 and reduced to their leading components, Z; smoothed and rows scaled
    to norm 1, H; P the leading ``min(4 K, 64)`` right singular vectors of H. The encoder smooths
    Z P: as rows are scaled to norm 1 last, that gives the rows of H P scaled to norm 1 (exactly),
    at a fraction of the columns.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    weight : Tensor (E,)
        First weights of A'.
    feat : scipy CSR (N, F)
    config : SmoothConfig
    num_clusters : int
    seed : int
    engine : str
    held_out : int64 (H,), optional
        Keys of pairs that the share is not chosen by.
    """
    smoothed = smoothed_points(graph, weight, feat, config, num_clusters, seed, engine, held_out)
    clusters = kmeans(smoothed.embedding, num_clusters, seed)
    members = sp.csr_matrix(
        (np.ones(len(clusters), np.float32), (clusters, np.arange(len(clusters)))),
        shape=(num_clusters, len(clusters)),
    )
    centroids = torch.from_numpy(normalize(members @ smoothed.embedding))
    return SmoothedView(
        smoothed.points,
        smoothed.self_share,
        smoothed.scores,
        clusters,
        centroids,
        smoothed.projection,
    )


class SmoothedPoints(NamedTuple):
    """What a view is made of before k-means: see `SmoothedView`, and its embeddings (N, d)."""

    points: torch.Tensor
    self_share: float
    scores: dict[float, float]
    projection: torch.Tensor
    embedding: np.ndarray


def smoothed_points(
    graph: Graph,
    weight: torch.Tensor,
    feat: sp.csr_matrix,
    config: SmoothConfig,
    num_clusters: int,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
) -> SmoothedPoints:
    """All of `smoothed_view` but the clusters; arguments as there."""
    rows, width = normalize(feat), min(4 * num_clusters, 64)
    propagation = Propagation.of(graph, weight, engine)
    reduced, components = map(torch.from_numpy, svd_with_axes(rows, config.num_components, seed))
    scores: dict[float, float] = {}
    share = config.self_share
    if share is None:
        scores = held_out_scores(graph, weight, reduced, config.hops, width, seed, engine, held_out)
        share = max(scores, key=scores.get, default=DEFAULT_SELF_SHARE)
    smoothed = smooth(propagation, reduced, config.hops, share).numpy()
    axes = torch.from_numpy(right_singular_vectors(normalize(smoothed, copy=False), width, seed))
    points = reduced @ axes
    embedding = normalize(smooth(propagation, points, config.hops, share).numpy(), copy=False)
    return SmoothedPoints(points, share, scores, components @ axes, embedding)


def held_out_scores(
    graph: Graph,
    weight: torch.Tensor,
    reduced: torch.Tensor,
    hops: int,
    width: int,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
) -> dict[float, float]:
    r"""How well features smoothed without some edges tell those edges from random pairs.

    A tenth of the edges is left out of the graph. For each share the features are smoothed over
    the rest and reduced as in `smoothed_view`; the score is the area under the ROC curve of the
    cosines of the ends, edges left out against random pairs. An edge counts by its weight, so that
    noise is not what has to be foretold.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    reduced : Tensor (N, d)
        Leading components of the features.
    hops : int
    width : int
        Components kept after smoothing.
    seed : int
    engine : str
    held_out : int64 (H,), optional
        Keys of pairs that are not among the random ones.

    Returns
    -------
    dict of float to float
        In percent, for each of `SELF_SHARES`; empty with fewer than 10 edges.
    """
    if graph.num_edges < 1 / _HELD_OUT:
        return {}
    rng = np.random.default_rng([seed, 3])
    left_out = np.zeros(graph.num_edges, dtype=bool)
    left_out[rng.permutation(graph.num_edges)[: round(_HELD_OUT * graph.num_edges)]] = True
    edges = np.stack([graph.src.numpy()[left_out], graph.dst.numpy()[left_out]])
    nulls = random_pairs(graph.num_nodes, 2 * edges.shape[1], rng, held_out)
    pairs = np.concatenate([edges, nulls], 1)
    is_edge = np.arange(pairs.shape[1]) < edges.shape[1]
    importance = np.where(is_edge, 0.0, 1.0)
    importance[is_edge] = weight.numpy()[left_out]
    kept = weight.masked_fill(torch.from_numpy(left_out), 0.0)
    around = smooth(Propagation.of(graph, kept, engine), reduced, hops, 0.0)
    scores = {}
    for share in SELF_SHARES:
        view = normalize((share * reduced + (1 - share) * around).numpy(), copy=False)
        view = normalize(truncated_svd(view, width, seed), copy=False)
        cosine = row_dots(view, *pairs)
        scores[share] = 100 * float(roc_auc_score(is_edge, cosine, sample_weight=importance))
    return scores
