"""Dot products of pairs of rows; of rows of norm 1 they are cosines."""

import numpy as np
import scipy.sparse as sp

# Values of rows gathered at a time.
_BLOCK_VALUES = 2**22


def row_dots(rows, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Dot products of rows u and v of a scipy CSR or an ndarray (N, d), float64 (P,)."""
    dots = np.empty(len(u))
    # In blocks: the rows of all pairs at once would hold every node's features degree times.
    values = rows.nnz if sp.issparse(rows) else rows.size
    size = max(1, _BLOCK_VALUES * rows.shape[0] // max(1, values))
    for start in range(0, len(u), size):
        block = slice(start, start + size)
        left, right = rows[u[block]], rows[v[block]]
        if sp.issparse(rows):
            dots[block] = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        else:
            dots[block] = np.einsum("ij,ij->i", left, right)
    return dots
