"""Two methods without training for each task. A trained result below one of them is no result.

`features_kmeans` sees no edge, `smooth_kmeans` averages features over neighbourhoods first; so do
the cosines that score pairs in `link_floors`.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from user_dgl.clustering.kmeans import kmeans
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.evaluation.ranking_metrics import link_metrics
from user_dgl.features.cosine import row_dots
from user_dgl.features.svd import truncated_svd
from user_dgl.graph import Graph
from user_dgl.graph.pairs import LabelledPairs

NUM_STEPS = 8
# Share of a node's own features in the smoothed ones.
SELF_SHARE = 0.05
# For cosines of pairs: the mean of X, S X and S^2 X.
LINK_STEPS, LINK_SELF_SHARE = 2, 1 / 3
DENSE_BYTES_LIMIT = 10**9
_BLOCK_COLUMNS = 64


def features_kmeans(feat: sp.csr_matrix, num_clusters: int, seed: int) -> np.ndarray:
    """Clusters (N,) of the features alone.

    Rows scaled to l2 norm 1; SVD to ``min(4 num_clusters, 64)`` dimensions; rows scaled to norm 1;
    `kmeans`.
    """
    reduced = truncated_svd(normalize(feat), _svd_dimensions(num_clusters), seed)
    return kmeans(normalize(reduced), num_clusters, seed)


def smooth_kmeans(feat: sp.csr_matrix, graph: Graph, num_clusters: int, seed: int) -> np.ndarray:
    """Clusters (N,) of features smoothed over the graph.

    Rows of X scaled to l2 norm 1; ``Z = a X + (1 - a)/8 sum_{k=1..8} S^k X`` with a = 0.05 and
    ``S = D^-1/2 (A + I) D^-1/2``; rows of Z scaled to norm 1; SVD to ``min(4 num_clusters, 64)``
    dimensions; rows scaled to norm 1; `kmeans`.

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
    Smoothing fills sparse features in. Where a dense X of ``4 N F`` bytes would exceed 1 GB, X is
    first projected on its top 512 right singular vectors, or on as many as 1 GB holds if N exceeds
    488,281, and the result is that of the projected features.
    """
    num_components = _svd_dimensions(num_clusters)
    feat = normalize(sp.csr_matrix(feat, dtype=np.float32))
    columns = smoothed_columns(*feat.shape, num_clusters)
    if columns < feat.shape[1]:
        feat = truncated_svd(feat, columns, seed)
    smoothed = _smooth(feat, graph)
    reduced = truncated_svd(normalize(smoothed, copy=False), num_components, seed)
    return kmeans(normalize(reduced), num_clusters, seed)


def smoothed_columns(num_nodes: int, num_features: int, num_clusters: int) -> int:
    """Columns of the features that `smooth_kmeans` holds densely."""
    affordable = DENSE_BYTES_LIMIT // (4 * max(num_nodes, 1))
    if num_features <= affordable:
        return num_features
    return min(num_features, max(min(512, affordable), _svd_dimensions(num_clusters)))


def floors(
    feat: sp.csr_matrix, graph: Graph, num_clusters: int, seed: int, labels
) -> dict[str, dict[str, float | None]]:
    """Scores of both floors: ``{"features_kmeans": metrics, "smooth_kmeans": metrics}``.

    The metrics are those of `clustering_metrics`; the clusters themselves do not depend on labels.
    """
    return {
        "features_kmeans": clustering_metrics(labels, features_kmeans(feat, num_clusters, seed)),
        "smooth_kmeans": clustering_metrics(labels, smooth_kmeans(feat, graph, num_clusters, seed)),
    }


def link_floors(
    feat: sp.csr_matrix, graph: Graph, held_out: LabelledPairs
) -> dict[str, dict[str, float | None]]:
    """Scores of two cosines: ``{"features_cosine": metrics, "smoothed_cosine": metrics}``.

    The first is that of the features, the second that of their mean over two steps on the graph,
    ``(X + S X + S^2 X) / 3`` for X with unit rows, in all columns.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    graph : Graph
        Training graph.
    held_out : LabelledPairs
    """
    feat = normalize(sp.csr_matrix(feat, dtype=np.float32))
    pairs, is_edge = held_out.pairs, held_out.is_edge
    return {
        "features_cosine": link_metrics(row_dots(feat, *pairs), is_edge),
        "smoothed_cosine": link_metrics(_smoothed_cosine(feat, graph, pairs), is_edge),
    }


def _smoothed_cosine(feat: sp.csr_matrix, graph: Graph, pairs: np.ndarray) -> np.ndarray:
    square, dot = np.zeros(graph.num_nodes), np.zeros(pairs.shape[1])
    for _, block in _smoothed_blocks(feat, graph, LINK_STEPS, LINK_SELF_SHARE):
        square += np.einsum("ij,ij->i", block, block)
        dot += row_dots(block, *pairs)
    length = np.sqrt(square[pairs[0]] * square[pairs[1]])
    return np.divide(dot, length, out=np.zeros_like(dot), where=length > 0)


def _svd_dimensions(num_clusters: int) -> int:
    return min(4 * num_clusters, 64)


def _smooth(feat, graph: Graph) -> np.ndarray:
    """``Z`` of `smooth_kmeans`, dense (N, F) float32, from sparse or dense X."""
    smoothed = np.empty(feat.shape, dtype=np.float32)
    for columns, block in _smoothed_blocks(feat, graph, NUM_STEPS, SELF_SHARE):
        smoothed[:, columns] = block
    return smoothed


def _smoothed_blocks(
    feat, graph: Graph, num_steps: int, self_share: float
) -> Iterator[tuple[slice, np.ndarray]]:
    """``a X + (1 - a)/K sum_{k=1..K} S^k X``, some columns at a time, float32."""
    operator = _normalised_adjacency(graph)
    if sp.issparse(feat):
        feat = feat.tocsc()
    # Columns are independent; a block of them keeps the memory beside Z small.
    for start in range(0, feat.shape[1], _BLOCK_COLUMNS):
        block = feat[:, start : start + _BLOCK_COLUMNS]
        block = block.toarray(order="C") if sp.issparse(block) else np.ascontiguousarray(block)
        step, total = block, np.zeros_like(block)
        for _ in range(num_steps):
            step = operator @ step
            total += step
        mixed = self_share * block + (1 - self_share) / num_steps * total
        yield slice(start, start + block.shape[1]), mixed


def _normalised_adjacency(graph: Graph) -> sp.csr_matrix:
    """S = D^-1/2 (A + I) D^-1/2, float32."""
    adjacency = graph.to_scipy() + sp.eye(graph.num_nodes, dtype=np.float32, format="csr")
    scale = sp.diags(1 / np.sqrt(adjacency.sum(axis=1).A1), dtype=np.float32)
    return (scale @ adjacency @ scale).tocsr()
