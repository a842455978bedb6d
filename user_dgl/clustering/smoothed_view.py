r"""The smoothed view: smoothed features that the encoder ``smooth`` starts from.

Not in the paper. Smoothing over a graph removes noise from the features of a node, but it also adds
features of nodes in other clusters. Which effect is larger depends on the data: short texts gain
from a mean over many neighbours, long texts lose. The share ``a`` of a node's own features is
therefore chosen without labels. Some edges are left out of the graph, the features are smoothed
over the rest, and the share is chosen with which the smoothed features predict the left-out edges
best.
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
from user_dgl.runtime.streams import Stream, stream_rng

SELF_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75)
# Used if the graph has too few edges to leave some of them out.
DEFAULT_SELF_SHARE = 0.2
# Share of the edges that are left out.
_HELD_OUT = 0.1


@dataclass(frozen=True, eq=False)
class SmoothedView:
    """Data from which the encoder ``smooth`` is built.

    Attributes
    ----------
    points : float32 Tensor (N, d)
        Projected features that the encoder smooths.
    self_share : float
        Share a of a node's own features.
    scores : dict of float to float
        Score of each share that was compared, see `held_out_scores`; empty if none was compared.
    clusters : int64 (N,)
        k-means of the points smoothed with the first weights of A'.
    centroids : float32 Tensor (K, d)
        Mean smoothed point of each cluster, scaled to norm 1; 0 for an empty cluster.
    projection : float32 Tensor (F, d) or None
        Matrix that maps features with rows of norm 1 to ``points``. If the randomised SVD has fewer
        components than the features have columns, the points are approximate. None in a part of a
        view.
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
    r"""Project the features to few columns, choose the share, and cluster the smoothed points.

    Z is X with rows scaled to norm 1, reduced to its leading components. H is Z, smoothed, with
    rows scaled to norm 1. P has the leading ``min(4 K, 64)`` right singular vectors of H. The
    encoder smooths Z P, which has much fewer columns than Z, and then scales the rows to norm 1.
    The result is exactly H P with rows scaled to norm 1, because scaling a row before the
    projection does not change its direction.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    weight : Tensor (E,)
        First weights of A'.
    feat : scipy CSR (N, F)
    config : SmoothConfig
    num_clusters : int
        K.
    seed : int
    engine : str
    held_out : int64 (H,), optional
        Keys ``src * N + dst`` of pairs that must not be used to choose the share.
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
    """Result of `smoothed_points`: the part of a `SmoothedView` that needs no k-means.

    Attributes
    ----------
    points, self_share, scores, projection
        As in `SmoothedView`.
    embedding : float32 ndarray (N, d)
        Points smoothed with the first weights of A', with rows scaled to norm 1.
    """

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
    """Do all steps of `smoothed_view` except k-means; same parameters."""
    rows, width = normalize(feat), min(4 * num_clusters, 64)
    propagation = Propagation.of(graph, weight, engine)
    reduced, components = map(torch.from_numpy, svd_with_axes(rows, config.num_components, seed))
    scores: dict[float, float] = {}
    share = config.self_share
    if share is None:
        scores = held_out_scores(graph, weight, reduced, config.hops, width, seed, engine, held_out)
        share = max(scores, key=scores.__getitem__, default=DEFAULT_SELF_SHARE)
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
    r"""Score each share by how well the smoothed features predict edges that were left out.

    A tenth of the edges is left out of the graph. For each share, the features are smoothed over
    the remaining edges and reduced as in `smoothed_view`. The score is the area under the ROC curve
    of the cosines between the ends of a pair, for the left-out edges against random pairs. Each
    edge counts with its weight, so that edges that are probably noise count less.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    reduced : Tensor (N, d)
        Leading components of the features.
    hops : int
    width : int
        Number of components that are kept after smoothing.
    seed : int
        Seed of the left-out edges and of the random pairs.
    engine : str
    held_out : int64 (H,), optional
        Keys ``src * N + dst`` of pairs that are removed from the random pairs.

    Returns
    -------
    dict of float to float
        Score in percent of each share in `SELF_SHARES`. Empty if the graph has fewer than 10 edges.
    """
    if graph.num_edges < 1 / _HELD_OUT:
        return {}
    rng = stream_rng(seed, Stream.HELD_OUT_SCORES)
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
