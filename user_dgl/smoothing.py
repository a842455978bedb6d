r"""How much to smooth: the view of the features that the encoder ``smooth`` clusters.

Not in the paper. Smoothing over a graph takes noise out of features and puts other clusters'
features in. Which of the two is more differs from data to data: short texts gain from a mean over
many neighbours, long ones lose by it. The share ``a`` of a node's own features is therefore chosen
by the features themselves, without labels: half of the feature columns are smoothed, and the share
is taken with which they predict the other half best.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize

from user_dgl.clustering import kmeans
from user_dgl.config import SmoothConfig
from user_dgl.features import right_singular_vectors, truncated_svd
from user_dgl.graph import Graph
from user_dgl.propagation import Propagation, smooth

SELF_SHARES = (0.1, 0.2, 0.3, 0.5, 0.75)
# Taken where there are too few columns to hold some out.
_DEFAULT_SELF_SHARE = 0.2
_HELD_OUT_COMPONENTS = 256
_RIDGE = 1e-3


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
    """

    points: torch.Tensor
    self_share: float
    scores: dict[float, float]
    clusters: np.ndarray
    centroids: torch.Tensor


def smoothed_view(
    graph: Graph,
    weight: torch.Tensor,
    feat: sp.csr_matrix,
    config: SmoothConfig,
    num_clusters: int,
    seed: int,
    engine: str,
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
    """
    rows, width = normalize(feat), min(4 * num_clusters, 64)
    propagation = Propagation.of(graph, weight, engine)
    scores: dict[float, float] = {}
    share = config.self_share
    if share is None:
        scores = held_out_scores(propagation, rows, config.hops, width, seed)
        share = max(scores, key=scores.get, default=_DEFAULT_SELF_SHARE)
    reduced = torch.from_numpy(truncated_svd(rows, config.num_components, seed))
    smoothed = smooth(propagation, reduced, config.hops, share).numpy()
    axes = right_singular_vectors(normalize(smoothed, copy=False), width, seed)
    points = reduced @ torch.from_numpy(axes)
    embedding = normalize(smooth(propagation, points, config.hops, share).numpy(), copy=False)
    clusters = kmeans(embedding, num_clusters, seed)
    members = sp.csr_matrix(
        (np.ones(len(clusters), np.float32), (clusters, np.arange(len(clusters)))),
        shape=(num_clusters, len(clusters)),
    )
    centroids = torch.from_numpy(normalize(members @ embedding))
    return SmoothedView(points, share, scores, clusters, centroids)


def held_out_scores(
    propagation: Propagation, rows: sp.csr_matrix, hops: int, width: int, seed: int
) -> dict[float, float]:
    r"""How well smoothed features predict feature columns that were not smoothed.

    Columns are split at random into halves. Of one half, smoothed with share a, the leading
    components (as in `smoothed_view`) predict those of the other half, not smoothed, by a ridge
    regression that is fitted on half of the nodes; the score is :math:`R^2` on the other nodes,
    the mean over both directions. The noise of a node's own columns does not help to predict the
    others, what it shares with its neighbours does; so the best a is the one that takes out noise
    and keeps what tells nodes apart.

    Parameters
    ----------
    propagation : Propagation
    rows : scipy CSR (N, F)
    hops : int
    width : int
        Components of either half.
    seed : int

    Returns
    -------
    dict of float to float
        For each of `SELF_SHARES`; empty with fewer than 4 columns or nodes.
    """
    num_nodes, num_columns = rows.shape
    if num_columns < 4 or num_nodes < 4:
        return {}
    rng = np.random.default_rng([seed, 3])
    halves = np.array_split(rng.permutation(num_columns), 2)
    fitted, scored = np.array_split(rng.permutation(num_nodes), 2)
    scores = dict.fromkeys(SELF_SHARES, 0.0)
    for seen, held_out in (halves, halves[::-1]):
        target = truncated_svd(normalize(rows[:, held_out]), width, seed)
        target = target - target.mean(0)
        spread = np.square(target[scored]).sum()
        own = torch.from_numpy(truncated_svd(normalize(rows[:, seen]), _HELD_OUT_COMPONENTS, seed))
        around = smooth(propagation, own, hops, 0.0)
        for share in SELF_SHARES:
            view = normalize((share * own + (1 - share) * around).numpy(), copy=False)
            view = normalize(truncated_svd(view, width, seed), copy=False)
            model = Ridge(_RIDGE).fit(view[fitted], target[fitted])
            error = np.square(target[scored] - model.predict(view[scored])).sum()
            scores[share] += float(1 - error / max(spread, np.finfo(np.float32).tiny)) / 2
    return scores
