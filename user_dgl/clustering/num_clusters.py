r"""Choice of the number of clusters from the singular values of the smoothed features.

Not in the paper. Let H (N, d) be the embedding of the smoothed view, whose rows have norm 1. If H
had only K different rows, each many times, it would have K singular values above 0. The singular
values of real data decrease without such a limit, roughly like a power of their number k, which is
a straight line on logarithmic scales. The number of clusters is taken where they decrease most
steeply on these scales:

.. math:: K = \arg\max_k \frac{\log(\sigma_k / \sigma_{k+1})}{\log((k + 1) / k)}

This is an eigengap (von Luxburg, 2007), measured by the slope and not by the difference of two
singular values, which is always large for the first few. The method needs one decomposition of H,
and no labels, no k-means and no training. Structural entropy and the Davies-Bouldin index, the
terms of the paper's loss, find the number of classes far less often
(``tools/study_num_clusters.py``): the entropy decreases with every further cluster, and the minima
of the index are at many small clusters.
"""

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg import qr, svdvals

from user_dgl.clustering.smoothed_view import smoothed_embedding
from user_dgl.config import ModelConfig
from user_dgl.errors import InputError
from user_dgl.features.rows import ALL, Rows
from user_dgl.graph import Graph

# Singular values below this share of the largest one are rounding errors of 0.
_ROUNDING = 1e-5


def most_considered(config: ModelConfig, num_nodes: int) -> int:
    r"""Upper bound of the search, before the number of columns of the features limits it.

    The bound is ``config.auto_clusters.high``, but at most :math:`\sqrt N` and at least
    ``config.auto_clusters.low``.
    """
    # The singular values of few points always decrease steeply at the end. Without this bound that
    # end would be chosen. At the bound, the number of clusters is the mean size of a cluster.
    auto = config.auto_clusters
    return max(auto.low, min(auto.high, math.isqrt(num_nodes)))


def asks_edges(config: ModelConfig, num_nodes: int, num_columns: int) -> bool:
    """Whether features of so many columns tell too few clusters apart, see `num_clusters_curve`."""
    columns = min(num_columns, config.smooth.num_components)
    return columns <= most_considered(config, num_nodes)


def edge_components(config: ModelConfig) -> int:
    """Number of leading components of the adjacency where the edges are asked."""
    return 2 * config.auto_clusters.high


def num_clusters_curve(
    graph: Graph,
    weight: torch.Tensor,
    feat: sp.csr_matrix,
    config: ModelConfig,
    seed: int,
    engine: str,
    held: Rows = ALL,
) -> dict[int, float]:
    r"""Compute the slope of the singular values at each number of clusters.

    The number with the highest slope is the choice. At most :math:`\sqrt N` clusters are considered
    (see `most_considered`). Features of no more columns or components than that cannot tell so many
    apart: with four columns and six clusters, the slope is highest at two. So the smoothed rows of
    the adjacency stand beside them (`asks_edges`), both with norm 1.

    Parameters
    ----------
    graph : Graph
        Observed graph, or a local graph of it (`user_dgl.features.rows`).
    weight : Tensor (E,)
        First weights of A'.
    feat : scipy CSR (n, F)
    config : ModelConfig
        ``auto_clusters`` is the range and ``smooth`` has the settings of the smoothing.
    seed : int
    engine : str
    held : Rows

    Returns
    -------
    dict of int to float
        Slope for each number of clusters, as in `spectral_slopes`.

    Raises
    ------
    InputError
        The features have too few columns to distinguish ``low`` clusters from more clusters, and
        there are no edges.
    """
    low = config.auto_clusters.low
    high = most_considered(config, held.count(feat.shape[0]))
    points = smoothed_embedding(graph, weight, feat, config.smooth, high, seed, engine, held)
    if asks_edges(config, held.count(feat.shape[0]), feat.shape[1]) and held.num_edges(graph):
        rows = held.adjacency(graph).astype(feat.dtype)
        few = replace(config.smooth, num_components=edge_components(config))
        neighbours = smoothed_embedding(graph, weight, rows, few, high, seed, engine, held)
        points = np.hstack([points, neighbours])
    curve = spectral_slopes(points, low, high, held)
    if not curve:
        raise InputError(
            "model.num_clusters=auto: the features have too few columns to distinguish "
            f"model.auto_clusters.low={low} clusters from more, and there are no edges: set "
            "model.num_clusters to a number"
        )
    return curve


def spectral_slopes(points: np.ndarray, low: int, high: int, held: Rows = ALL) -> dict[int, float]:
    r"""Slopes :math:`\log(\sigma_k / \sigma_{k+1}) / \log((k + 1) / k)` for k from low to high.

    Parameters
    ----------
    points : ndarray (n, d)
        The rows that this process has of all points (N, d).
    low, high : int
        The result contains only those k that are less than N and d.
    held : Rows

    Returns
    -------
    dict of int to float

    >>> corners = np.repeat(np.eye(4, 6), 20, axis=0)
    >>> around = corners + np.random.default_rng(0).normal(0, 0.1, corners.shape)
    >>> slopes = spectral_slopes(around, 2, 9)
    >>> list(slopes), max(slopes, key=slopes.get)
    ([2, 3, 4, 5], 4)
    """
    exact = points.astype(np.float64)
    if not held.alone:
        # The triangular factors of the rows of all processes have the singular values of all rows.
        exact, _ = held.stacked(qr(exact, mode="economic", check_finite=False)[1])
    spectrum = svdvals(exact)
    spectrum = np.maximum(spectrum, max(_ROUNDING * spectrum[0], np.finfo(np.float64).tiny))
    return {
        k: float(np.log(spectrum[k - 1] / spectrum[k]) / np.log((k + 1) / k))
        for k in range(low, min(high, len(spectrum) - 1) + 1)
    }
