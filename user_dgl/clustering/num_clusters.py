r"""How many clusters: where the spectrum of the smoothed features falls off.

Not in the paper. If the unit rows H (N, d) of the smoothed view were K points, each many times, H
would have K singular values above 0. Those of real data fall all the way, fast at first and then
ever more slowly, much like a power of their number; against such a line the last of K that stand
out is where they fall most steeply on logarithmic scales:

.. math:: K = \arg\max_k \frac{\log(\sigma_k / \sigma_{k+1})}{\log((k + 1) / k)}

An eigengap (von Luxburg, 2007), measured by the slope and not by a difference, which would always
be large for the first few. No label, no k-means and no training: one decomposition of H.
Structural entropy and the Davies-Bouldin index, the terms of the paper's loss, find the number of
classes far less often (``tools/study_num_clusters.py``): the one falls with every further cluster,
the other has its minima among many small ones.
"""

import math

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg import svdvals

from user_dgl.clustering.smoothed_view import smoothed_points
from user_dgl.config import ModelConfig
from user_dgl.errors import InputError
from user_dgl.graph import Graph

# Singular values below this share of the largest are 0 but for rounding.
_ROUNDING = 1e-5


def most_considered(config: ModelConfig, num_nodes: int) -> int:
    """The largest number of clusters that is thought of where features have columns enough."""
    # The spectrum of few points ends steeply, whatever they are: with more clusters than they have
    # points on average, that would be the answer.
    auto = config.auto_clusters
    return max(auto.low, min(auto.high, math.isqrt(num_nodes)))


def num_clusters_curve(
    graph: Graph,
    weight: torch.Tensor,
    feat: sp.csr_matrix,
    config: ModelConfig,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
) -> dict[int, float]:
    r"""Slope of the spectrum at each number of clusters; the highest is where to cut.

    At most :math:`\sqrt N` clusters are thought of.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    weight : Tensor (E,)
        First weights of A'.
    feat : scipy CSR (N, F)
    config : ModelConfig
        With the range in ``auto_clusters`` and the smoothing in ``smooth``.
    seed : int
    engine : str
    held_out : int64 (H,), optional
        As in `user_dgl.clustering.smoothed_view.smoothed_view`.

    Raises
    ------
    InputError
        Fewer columns of features than it takes to tell ``low`` clusters from more.
    """
    low = config.auto_clusters.low
    high = most_considered(config, graph.num_nodes)
    smoothed = smoothed_points(graph, weight, feat, config.smooth, high, seed, engine, held_out)
    curve = spectral_slopes(smoothed.embedding, low, high)
    if not curve:
        raise InputError(
            f"model.num_clusters=auto: features of {smoothed.embedding.shape[1]} columns tell fewer"
            f" than model.auto_clusters.low={low} clusters from more: give the number"
        )
    return curve


def spectral_slopes(points: np.ndarray, low: int, high: int) -> dict[int, float]:
    r"""Slopes :math:`\log(\sigma_k / \sigma_{k+1}) / \log((k + 1) / k)` for k from low to high.

    Parameters
    ----------
    points : ndarray (N, d)
    low, high : int
        Of which only those below N and d are answered.

    >>> corners = np.repeat(np.eye(4, 6), 20, axis=0)
    >>> around = corners + np.random.default_rng(0).normal(0, 0.1, corners.shape)
    >>> slopes = spectral_slopes(around, 2, 9)
    >>> list(slopes), max(slopes, key=slopes.get)
    ([2, 3, 4, 5], 4)
    """
    spectrum = svdvals(points.astype(np.float64))
    spectrum = np.maximum(spectrum, max(_ROUNDING * spectrum[0], np.finfo(np.float64).tiny))
    return {
        k: float(np.log(spectrum[k - 1] / spectrum[k]) / np.log((k + 1) / k))
        for k in range(low, min(high, len(spectrum) - 1) + 1)
    }
