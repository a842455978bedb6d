"""Truncated singular value decomposition of features, whose rows several processes may share."""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, lu, qr, svd
from sklearn.utils import check_random_state

from user_dgl.errors import InputError
from user_dgl.features.rows import ALL, Matrix, Rows

# From this number of rows on, matrices of few columns are decomposed by the product X^T X.
_TALL, _FEW_COLUMNS = 20_000, 512
_BLOCK_ROWS = 8192
# Random vectors beside the components, and power iterations for few components and for many, as in
# scikit-learn.
_MORE, _STEPS_FOR_FEW, _STEPS, _FEW = 10, 7, 4, 0.1
# Share of values from which a sparse matrix is multiplied in dense blocks.
_DENSE = 0.3


def truncated_svd(
    feat: sp.spmatrix | np.ndarray,
    num_components: int,
    seed: int,
    held: Rows = ALL,
    dtype: np.dtype | type = np.float32,
) -> np.ndarray:
    """Leading left singular vectors times their singular values: ``U_k S_k = X V_k``.

    The method is a randomised SVD with power iterations. Its time is linear in the non-zeros of X.
    The same seed gives the same result. From 20,000 rows on, X of up to 512 columns is decomposed
    by way of the eigenvectors of ``X^T X``, which takes one product and is exact to rounding.

    Parameters
    ----------
    feat : scipy sparse or ndarray (n, F)
        The rows that this process has of X (N, F).
    num_components : int
        k. At most min(N, F) components are computed.
    seed : int
    held : Rows
    dtype : dtype
        float32 or float64, in which the products are computed.

    Returns
    -------
    ndarray (n, min(k, N, F)) of ``dtype``

    Raises
    ------
    InputError
        ``feat`` has no rows or no columns, or ``num_components`` is less than 1.
    """
    return svd_with_axes(feat, num_components, seed, held, dtype)[0]


def svd_with_axes(
    feat: sp.spmatrix | np.ndarray,
    num_components: int,
    seed: int,
    held: Rows = ALL,
    dtype: np.dtype | type = np.float32,
) -> tuple[np.ndarray, np.ndarray]:
    """`truncated_svd` and its ``V_k`` (F, k). Other rows X have components ``X V_k``."""
    shape = held.count(feat.shape[0]), feat.shape[1]
    if min(shape) == 0 or num_components < 1:
        raise InputError(
            f"SVD: expected features with rows and columns and 1 or more components, got shape "
            f"{shape} and {num_components} components"
        )
    num_components = min(num_components, *shape)
    feat = feat.astype(dtype, copy=False)
    if shape[0] >= _TALL and shape[1] <= _FEW_COLUMNS:
        return _by_gram(feat, num_components, held, dtype)
    left, singular_values, right = _randomized_svd(feat, shape, num_components, seed, held)
    components = (left * singular_values).astype(dtype, copy=False)
    # The rounding of a row of zeros must not become a direction when its norm is scaled to 1.
    filled = feat.any(axis=1) if isinstance(feat, np.ndarray) else feat.getnnz(axis=1) > 0
    components[~filled] = 0
    return components, right.T.astype(dtype, copy=False)


def _randomized_svd(
    feat: Matrix, shape: tuple[int, int], num_components: int, seed: int, held: Rows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left vectors (n, k), singular values (k,) and right vectors (k, F) of X (N, F).

    For a single process it does what scikit-learn's ``randomized_svd`` does, bit for bit. That
    needs all rows.
    """
    # The generator is scikit-learn's, see `user_dgl.runtime.streams`.
    drawn = check_random_state(seed).normal(size=(min(shape), num_components + _MORE))
    drawn = drawn.astype(feat.dtype, copy=False)
    steps = _STEPS_FOR_FEW if num_components < _FEW * min(shape) else _STEPS
    is_wide = shape[0] < shape[1]
    tall, wide = (held.own(drawn), drawn[:0]) if is_wide else (drawn[:0], drawn)
    for _ in range(steps):
        if is_wide:
            wide, _ = _triangular(held.sum(feat.T @ tall))
            tall, _ = _by_rows(_triangular, feat @ wide, held)
        else:
            tall, _ = _by_rows(_triangular, feat @ wide, held)
            wide, _ = _triangular(held.sum(feat.T @ tall))
    if is_wide:
        basis, _ = _orthogonal(held.sum(feat.T @ tall))
        right, singular_values, left = _svd_of_columns(basis.T @ feat.T, held)
        right, left = (basis @ right).T, left.T
    else:
        basis, _ = _by_rows(_orthogonal, feat @ wide, held)
        left, singular_values, right = _thin_svd(held.sum(basis.T @ feat))
        left = basis @ left
    signs = _signs(left, held)
    kept = slice(num_components)
    return left[:, kept] * signs[kept], singular_values[kept], right[kept] * signs[kept, None]


_triangular = partial(lu, permute_l=True, check_finite=False)
_orthogonal = partial(qr, mode="economic", check_finite=False)
_thin_svd = partial(svd, full_matrices=False)


def _by_rows(
    factor: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], tall: np.ndarray, held: Rows
) -> tuple[np.ndarray, np.ndarray]:
    """Factors of a matrix (N, k), whose rows the processes share: LU or QR.

    Each process factors its rows. The right factors, which are small, are stacked and factored
    again, and the left factor of that is multiplied to the own one (Demmel et al., 2012).
    """
    left, right = factor(tall)
    if held.alone:
        return left, right
    stacked, own = held.stacked(right)
    second, right = factor(stacked)
    return left @ second[own], right


def _svd_of_columns(columns: np.ndarray, held: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thin SVD of a matrix (k, N), whose columns the processes share, in the manner of `_by_rows`.

    The last value has the own columns (k, n).
    """
    left, values, right = _thin_svd(columns)
    if held.alone:
        return left, values, right
    stacked, own = held.stacked(values[:, None] * left.T)
    left, values, second = _thin_svd(stacked.T)
    return left, values, second[:, own] @ right


def _signs(left: np.ndarray, held: Rows) -> np.ndarray:
    """Signs (k,) with which the largest entry of each left vector (n, k) is positive."""
    every = np.arange(left.shape[1])
    largest = left[np.abs(left).argmax(0), every]
    everywhere, _ = held.stacked(largest[None])
    return np.sign(everywhere[np.abs(everywhere).argmax(0), every])


def leading_components(points: np.ndarray, num_components: int) -> np.ndarray:
    """The same as `truncated_svd` for dense points of few columns, by way of ``X^T X``.

    It is exact to rounding, needs no seed, and takes one product of the points with themselves. Its
    time grows with the square of the columns.

    Parameters
    ----------
    points : float32 ndarray (N, F)
    num_components : int
        k. At most min(N, F) components are computed.

    Returns
    -------
    ndarray (N, min(k, N, F)) float32
    """
    return _by_gram(points, min(num_components, *points.shape))[0]


def _by_gram(
    feat: Matrix, num_components: int, held: Rows = ALL, dtype: np.dtype | type = np.float32
) -> tuple[np.ndarray, np.ndarray]:
    """Leading components (n, k) and axes (F, k) from the eigenvectors of ``X^T X``."""
    axes = _eigenvectors(held.sum(_gram(feat)), num_components).astype(dtype)
    return np.asarray(feat @ axes), axes


def _gram(feat: sp.csr_matrix | np.ndarray) -> np.ndarray:
    """``X^T X`` (F, F), float64."""
    rows, columns = feat.shape
    dense = isinstance(feat, np.ndarray)
    if not isinstance(feat, np.ndarray):
        dense = feat.nnz > _DENSE * rows * columns
        if not dense:
            exact = feat.astype(np.float64)
            return (exact.T @ exact).toarray()
    gram = np.zeros((columns, columns))
    for start in range(0, rows, _BLOCK_ROWS):
        block = feat[start : start + _BLOCK_ROWS]
        if not isinstance(block, np.ndarray):
            block = block.astype(np.float64).toarray()
        gram += block.T @ block
    return gram


def _eigenvectors(gram: np.ndarray, count: int) -> np.ndarray:
    """Leading eigenvectors (F, count), float64, each with its largest entry positive."""
    size = len(gram)
    vectors = eigh(gram, subset_by_index=(size - count, size - 1))[1][:, ::-1]
    largest = vectors[np.abs(vectors).argmax(0), np.arange(count)]
    return vectors * np.sign(largest)
