"""Dot products of pairs of rows. They are the cosines if the rows have l2 norm 1."""

import numpy as np
import scipy.sparse as sp

# Number of feature values that are gathered at a time.
_BLOCK_VALUES = 2**22


def row_dots(rows: sp.csr_matrix | np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Dot product of row u_i with row v_i for each pair i.

    Parameters
    ----------
    rows : scipy CSR or ndarray (N, d)
    u, v : int ndarray (P,)

    Returns
    -------
    float64 ndarray (P,)
    """
    dots = np.empty(len(u))
    # The pairs are processed in blocks, because the rows of all pairs together would hold the
    # features of each node as many times as it has neighbours.
    values = rows.size if isinstance(rows, np.ndarray) else rows.nnz
    size = max(1, _BLOCK_VALUES * rows.shape[0] // max(1, values))
    for start in range(0, len(u), size):
        block = slice(start, start + size)
        left, right = rows[u[block]], rows[v[block]]
        if sp.issparse(rows):
            dots[block] = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        else:
            dots[block] = np.einsum("ij,ij->i", left, right)
    return dots
