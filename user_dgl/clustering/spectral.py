r"""Spectral embedding of a graph without features, and its k-means clusters.

The matrix is the regularised one of Amini, Chen, Bickel and Levina (2013),

.. math:: S = D_\tau^{-1/2} \left(A + \frac\tau N 1 1^T\right) D_\tau^{-1/2},
    \qquad D_\tau = D + \tau I

with :math:`\tau` = mean degree. Without :math:`\tau` the leading eigenvectors of a sparse graph
describe a few nodes at its rim. The rows are scaled to norm 1 (Ng, Jordan and Weiss, 2002), which
takes out the degree. Not in the paper.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from user_dgl.clustering.kmeans import kmeans
from user_dgl.runtime.streams import Stream, stream_rng

# More columns add to the time, but not to the clusters that are found.
MAX_COLUMNS = 256
_EXTRA_COLUMNS = 16
_DEGREE = 10
# Rounds of the filter: as many as it takes until the sum of the wanted eigenvalues changes by less
# than this share, but not more than so many.
_CONVERGED, _MOST_ROUNDS = 0.003, 6
# Allowed error of the bound below the spectrum, and the least width of the range that is damped.
_MARGIN, _LEAST_WIDTH = 0.05, 0.1
# Share of all pairs from which on a graph is dense, and its margin and least width.
_DENSE, _MARGIN_OF_DENSE, _WIDTH_OF_DENSE = 0.1, 0.005, 0.01
# Steps of k-means, and the N K above which one start is all that the time allows.
_KMEANS_STEPS = 20
_ONE_START_ABOVE = 4_000_000
# Points for each cluster among which the first centroids are drawn.
_SEEDING_POINTS = 25


def spectral_embedding(adjacency: sp.csr_matrix, dims: int, seed: int) -> np.ndarray:
    """Eigenvectors of the largest eigenvalues of S, with the rows scaled to norm 1.

    They are found by subspace iteration with a Chebyshev filter (Zhou and Saad, 2007): a block of
    columns is multiplied by a polynomial of S that is small on the unwanted part of the spectrum.
    The result is close to the eigenvectors where there is a gap behind the wanted eigenvalues, and
    exact with few more nodes than columns. Of a graph that has a tenth of all pairs, all
    eigenvalues but the leading one are small, so that it takes double precision and a narrower
    range to find them. Time is linear in the number of edges times ``dims``, and in N ``dims``
    squared.

    Parameters
    ----------
    adjacency : scipy CSR (N, N)
        Symmetric, without self-loops.
    dims : int
        Number of columns; at most 256 are used, and not more than nodes with edges.
    seed : int

    Returns
    -------
    float32 (N, d)
        0 for nodes without edges.
    """
    degree = np.asarray(adjacency.sum(1)).ravel().astype(np.float64)
    kept = np.flatnonzero(degree > 0)
    dims = max(1, min(dims, MAX_COLUMNS, len(kept)))
    embedding = np.zeros((len(degree), dims), dtype=np.float32)
    if len(kept):
        rows = _eigenvectors(adjacency[kept][:, kept], degree[kept], dims, seed)
        norm = np.linalg.norm(rows, axis=1, keepdims=True)
        embedding[kept] = rows / np.maximum(norm, np.finfo(np.float32).tiny)
    return embedding


def _eigenvectors(adjacency: sp.csr_matrix, degree: np.ndarray, dims: int, seed: int) -> np.ndarray:
    """The leading ``dims`` eigenvectors of S, float32 (N, dims), ascending."""
    num_nodes = len(degree)
    tau = degree.mean()
    root = 1 / np.sqrt(degree + tau)
    dense = adjacency.nnz >= _DENSE * num_nodes**2
    dtype = np.float64 if dense else np.float32
    margin, least_width = (_MARGIN_OF_DENSE, _WIDTH_OF_DENSE) if dense else (_MARGIN, _LEAST_WIDTH)
    scaled = (sp.diags(root) @ adjacency @ sp.diags(root)).tocsr().astype(dtype)
    column = root.astype(dtype)[:, None]
    share = dtype(tau / num_nodes)

    def product(block: np.ndarray) -> np.ndarray:
        result = scaled @ block
        result += column * (share * (column.T @ block))
        return result

    rng = stream_rng(seed, Stream.SPECTRAL_BASIS)
    width = min(num_nodes, dims + _EXTRA_COLUMNS)
    block = _orthonormal(rng.normal(size=(num_nodes, width)).astype(dtype))
    lower = _lower_bound(product, block[:, 0], margin)
    # The filter is small on [lower, upper]. The first upper bound is a guess, others are measured.
    upper, known = 0.3, 0.0
    for _ in range(_MOST_ROUNDS):
        center, half = dtype((upper + lower) / 2), dtype((upper - lower) / 2)
        # The Chebyshev polynomials: T_0 = 1, T_1 = x, T_{n + 1} = 2 x T_n - T_{n - 1}.
        before, now = block, (product(block) - center * block) / half
        for _ in range(_DEGREE - 1):
            after = product(now)
            after -= center * now
            after *= 2 / half
            after -= before
            before, now = now, after
        block = _orthonormal(now)
        values, turn = np.linalg.eigh(block.T @ product(block))
        block = block @ turn
        found = float(values[-dims:].sum())
        if abs(found - known) <= _CONVERGED * found:
            break
        upper, known = float(np.clip(values[0], lower + least_width, 0.9)), found
    return block[:, -dims:].astype(np.float32)


def _lower_bound(
    product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, margin: float
) -> float:
    """The lowest eigenvalue of S, less a margin for its error; -1 if it is not found."""
    size = len(start)
    operator = LinearOperator(
        (size, size), lambda x: product(x.reshape(size, 1)).ravel(), dtype=start.dtype
    )
    try:
        (lowest,) = eigsh(
            operator, 1, which="SA", v0=start, tol=margin, maxiter=10, return_eigenvectors=False
        )
    except (ArpackError, ValueError, TypeError):  # no convergence, or too few nodes
        return -1.0
    return max(float(lowest) - margin, -1.0)


def _orthonormal(block: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the columns."""
    # torch's QR is several times faster than NumPy's for tall matrices.
    return torch.linalg.qr(torch.from_numpy(block))[0].numpy()


def spectral_clusters(embedding: np.ndarray, num_clusters: int, seed: int) -> np.ndarray:
    """Cluster the rows of a spectral embedding by k-means.

    Five starts, but one where N K is above four million; at most 20 steps each. The first centroids
    are drawn from 25 points for each cluster.

    Parameters
    ----------
    embedding : float32 (N, d)
    num_clusters : int
    seed : int

    Returns
    -------
    int64 (N,)
        Some clusters may be empty if rows are equal.
    """
    starts = 1 if len(embedding) * num_clusters > _ONE_START_ABOVE else 5
    sample = _SEEDING_POINTS * num_clusters
    return kmeans(embedding, num_clusters, seed, starts, _KMEANS_STEPS, sample)
