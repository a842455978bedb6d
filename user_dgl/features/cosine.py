"""Dot products of pairs of rows. They are the cosines if the rows have l2 norm 1."""

import numpy as np
import scipy.sparse as sp

# Number of values that are gathered at a time, of a sparse and of a dense matrix. Copies of so few
# dense values stay in the processor's cache.
_BLOCK_VALUES, _BLOCK_DENSE = 2**22, 2**17


def row_dots(rows: sp.csr_matrix | np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Dot product of row u_i with row v_i for each pair i.

    Parameters
    ----------
    rows : scipy CSR or ndarray (N, d)
    u, v : int ndarray (P,)

    Returns
    -------
    float64 ndarray (P,)

    Raises
    ------
    IndexError
        There is no row of such a number.
    """
    return _sparse(rows, u, v) if sp.issparse(rows) else _dense(rows, u, v)


def _sparse(rows: sp.csr_matrix, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Dot products (P,) of sparse rows."""
    dots = np.empty(len(u))
    # The pairs are processed in blocks, because the rows of all pairs together would hold the
    # features of each node as many times as it has neighbours.
    size = max(1, _BLOCK_VALUES * rows.shape[0] // max(1, rows.nnz))
    for start in range(0, len(u), size):
        block = slice(start, start + size)
        products = rows[u[block]].multiply(rows[v[block]])
        dots[block] = np.asarray(products.sum(axis=1)).ravel()
    return dots


def _dense(rows: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Dot products (P,) of dense rows."""
    rows, dots = np.ascontiguousarray(rows), np.empty(len(u))
    if len(u) and not (min(u.min(), v.min()) >= 0 and max(u.max(), v.max()) < len(rows)):
        raise IndexError(f"a pair has an end outside 0..{len(rows) - 1}")
    size = max(1, _BLOCK_DENSE // max(1, rows.shape[1]))
    left, right = np.empty((2, size, rows.shape[1]), dtype=rows.dtype)
    for start in range(0, len(u), size):
        block = slice(start, start + size)
        count = len(u[block])
        # The ends are checked above. With the mode that checks them, take() copies once more.
        rows.take(u[block], axis=0, out=left[:count], mode="clip")
        rows.take(v[block], axis=0, out=right[:count], mode="clip")
        dots[block] = np.einsum("ij,ij->i", left[:count], right[:count])
    return dots
