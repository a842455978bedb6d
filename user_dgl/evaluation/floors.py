"""Floors: two methods without training for each task.

A trained model is not useful if its scores are lower than those of a floor. `features_kmeans` uses
the features only. `smooth_kmeans` first averages the features over neighbourhoods. The two cosines
of `link_floors` that score pairs differ in the same way. The floors are not in the paper.
"""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize

from user_dgl.clustering.kmeans import kmeans
from user_dgl.evaluation.arrays import Values
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.evaluation.ranking_metrics import link_metrics
from user_dgl.features.cosine import row_dots
from user_dgl.features.svd import truncated_svd
from user_dgl.graph import Graph
from user_dgl.graph.pairs import LabelledPairs
from user_dgl.graph.propagation import Propagation

NUM_STEPS = 8
# Share of a node's own features in its smoothed features.
SELF_SHARE = 0.05
# The cosines of pairs use the mean of X, S X and S^2 X.
LINK_STEPS, LINK_SELF_SHARE = 2, 1 / 3
# Bytes of the dense features that `smooth_kmeans` may hold.
DENSE_BYTES_LIMIT = 10**9
_BLOCK_COLUMNS = 64
# From this number of nodes on, torch multiplies with S, which takes a third of scipy's time.
_LARGE = 20_000


def features_kmeans(feat: sp.csr_matrix, num_clusters: int, seed: int) -> np.ndarray:
    """Cluster the nodes by their features alone.

    The steps: rows of X are scaled to l2 norm 1, reduced by SVD to ``min(4 num_clusters, 64)``
    dimensions, scaled to norm 1 again, and clustered by `kmeans`.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    num_clusters : int
    seed : int

    Returns
    -------
    int64 ndarray (N,)
    """
    reduced = truncated_svd(normalize(feat), _svd_dimensions(num_clusters), seed)
    return kmeans(normalize(reduced), num_clusters, seed)


def smooth_kmeans(feat: sp.csr_matrix, graph: Graph, num_clusters: int, seed: int) -> np.ndarray:
    """Cluster the nodes by their features, smoothed over the graph.

    The steps: rows of X are scaled to l2 norm 1 and smoothed,
    ``Z = a X + (1 - a)/8 sum_{k=1..8} S^k X`` with a = 0.05 and ``S = D^-1/2 (A + I) D^-1/2``. Rows
    of Z are scaled to norm 1, reduced by SVD to ``min(4 num_clusters, 64)`` dimensions, scaled to
    norm 1 again, and clustered by `kmeans`.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    graph : Graph
    num_clusters : int
    seed : int

    Returns
    -------
    int64 ndarray (N,)

    Notes
    -----
    Smoothing makes sparse features dense. If a dense X would need more than 1 GB (``4 N F`` bytes),
    X is first projected onto its leading 512 right singular vectors, and the steps are done with
    the projected features. If N exceeds 488,281, it is projected onto as many vectors as 1 GB can
    hold, but at least ``min(4 num_clusters, 64)``.
    """
    num_components = _svd_dimensions(num_clusters)
    feat = normalize(sp.csr_matrix(feat, dtype=np.float32))
    num_nodes, num_features = feat.shape
    columns = smoothed_columns(num_nodes, num_features, num_clusters)
    if columns < num_features:
        feat = truncated_svd(feat, columns, seed)
    smoothed = _smooth(feat, graph)
    reduced = truncated_svd(normalize(smoothed, copy=False), num_components, seed)
    return kmeans(normalize(reduced), num_clusters, seed)


def smoothed_columns(num_nodes: int, num_features: int, num_clusters: int) -> int:
    """Number of columns of the dense features in `smooth_kmeans`."""
    affordable = DENSE_BYTES_LIMIT // (4 * max(num_nodes, 1))
    if num_features <= affordable:
        return num_features
    return min(num_features, max(min(512, affordable), _svd_dimensions(num_clusters)))


def floors(
    feat: sp.csr_matrix, graph: Graph, num_clusters: int, seed: int, labels: Values | None
) -> dict[str, dict[str, float | None]]:
    """Compute the scores of both floors of clustering.

    The clusters do not depend on the labels.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    graph : Graph
    num_clusters : int
    seed : int
    labels : int array or tensor (N,), or None
        As in `clustering_metrics`.

    Returns
    -------
    dict
        ``{"features_kmeans": metrics, "smooth_kmeans": metrics}`` with the metrics of
        `clustering_metrics`.
    """
    return {
        "features_kmeans": clustering_metrics(labels, features_kmeans(feat, num_clusters, seed)),
        "smooth_kmeans": clustering_metrics(labels, smooth_kmeans(feat, graph, num_clusters, seed)),
    }


def link_floors(
    feat: sp.csr_matrix, graph: Graph, held_out: LabelledPairs
) -> dict[str, dict[str, float | None]]:
    """Compute the scores of both floors of link prediction.

    The link score of a pair is the cosine of the features of its ends. The first floor uses the
    features X with rows of norm 1. The second floor uses the smoothed features
    ``(X + S X + S^2 X) / 3`` with ``S = D^-1/2 (A + I) D^-1/2``, without a reduction of columns.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    graph : Graph
        Training graph.
    held_out : LabelledPairs

    Returns
    -------
    dict
        ``{"features_cosine": metrics, "smoothed_cosine": metrics}`` with the metrics of
        `link_metrics`.
    """
    feat = normalize(sp.csr_matrix(feat, dtype=np.float32))
    pairs, is_edge = held_out.pairs, held_out.is_edge
    return {
        "features_cosine": link_metrics(row_dots(feat, *pairs), is_edge),
        "smoothed_cosine": link_metrics(_smoothed_cosine(feat, graph, pairs), is_edge),
    }


def _smoothed_cosine(feat: sp.csr_matrix, graph: Graph, pairs: np.ndarray) -> np.ndarray:
    """Cosine (P,) of the smoothed features of each pair (2, P); 0 if a row is 0."""
    square, dot = np.zeros(graph.num_nodes), np.zeros(pairs.shape[1])
    for _, block in _smoothed_blocks(feat, graph, LINK_STEPS, LINK_SELF_SHARE):
        square += np.einsum("ij,ij->i", block, block)
        dot += row_dots(block, *pairs)
    length = np.sqrt(square[pairs[0]] * square[pairs[1]])
    return np.divide(dot, length, out=np.zeros_like(dot), where=length > 0)


def _svd_dimensions(num_clusters: int) -> int:
    """Number of SVD components of both floors of clustering."""
    return min(4 * num_clusters, 64)


def _smooth(feat: sp.csr_matrix | np.ndarray, graph: Graph) -> np.ndarray:
    """``Z`` of `smooth_kmeans`, dense (N, F) float32, from sparse or dense X."""
    smoothed = np.empty(feat.shape, dtype=np.float32)
    for columns, block in _smoothed_blocks(feat, graph, NUM_STEPS, SELF_SHARE):
        smoothed[:, columns] = block
    return smoothed


def _smoothed_blocks(
    feat: sp.csr_matrix | np.ndarray, graph: Graph, num_steps: int, self_share: float
) -> Iterator[tuple[slice, np.ndarray]]:
    """Compute ``a X + (1 - a)/K sum_{k=1..K} S^k X``, float32, in blocks of columns.

    Yields
    ------
    slice, ndarray (N, c)
        The columns and their smoothed values.
    """
    product = _product(graph)
    if not isinstance(feat, np.ndarray):
        feat = feat.tocsc()
    # The columns are independent. Blocks of them keep the memory of the temporary arrays small.
    for start in range(0, feat.shape[1], _BLOCK_COLUMNS):
        block = feat[:, start : start + _BLOCK_COLUMNS]
        if isinstance(block, np.ndarray):
            block = np.ascontiguousarray(block)
        else:
            block = block.toarray(order="C")
        step, total = block, np.zeros_like(block)
        for _ in range(num_steps):
            step = product(step)
            total += step
        mixed = self_share * block + (1 - self_share) / num_steps * total
        yield slice(start, start + block.shape[1]), mixed


def _product(graph: Graph) -> Callable[[np.ndarray], np.ndarray]:
    """Function that multiplies S of `smooth_kmeans` with a block (N, c)."""
    if graph.num_nodes < _LARGE:
        return _normalised_adjacency(graph).__matmul__
    propagation = Propagation.of(graph, graph.edge_weight, "csr")
    return lambda block: propagation(torch.from_numpy(block)).numpy()


def _normalised_adjacency(graph: Graph) -> sp.csr_matrix:
    """S = D^-1/2 (A + I) D^-1/2 (N, N), float32."""
    adjacency = graph.to_scipy() + sp.eye(graph.num_nodes, dtype=np.float32, format="csr")
    scale = sp.diags(1 / np.sqrt(adjacency.sum(axis=1).A1), dtype=np.float32)
    return (scale @ adjacency @ scale).tocsr()
