"""Truncated singular value decomposition of features."""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.utils.extmath import randomized_svd

from user_dgl.errors import InputError

# From this number of rows on, matrices of few columns are decomposed by the product X^T X.
_TALL, _FEW_COLUMNS = 20_000, 512
_BLOCK_ROWS = 8192


def truncated_svd(feat: sp.spmatrix | np.ndarray, num_components: int, seed: int) -> np.ndarray:
    """Leading left singular vectors times their singular values: ``U_k S_k = X V_k``.

    The method is a randomised SVD with power iterations. Its time is linear in the non-zeros of X.
    The same seed gives the same result. From 20,000 rows on, X of up to 512 columns is decomposed
    by way of the eigenvectors of ``X^T X``, which takes one product and is exact to rounding.

    Parameters
    ----------
    feat : scipy sparse or ndarray (N, F)
    num_components : int
        k. At most min(N, F) components are computed.
    seed : int

    Returns
    -------
    ndarray (N, min(k, N, F)) float32

    Raises
    ------
    InputError
        ``feat`` has no rows or no columns, or ``num_components`` is less than 1.
    """
    return svd_with_axes(feat, num_components, seed)[0]


def svd_with_axes(
    feat: sp.spmatrix | np.ndarray, num_components: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """`truncated_svd` and its ``V_k`` (F, k), float32. Other rows X have components ``X V_k``."""
    if min(feat.shape) == 0 or num_components < 1:
        raise InputError(
            f"SVD: expected features with rows and columns and 1 or more components, got shape "
            f"{feat.shape} and {num_components} components"
        )
    num_components = min(num_components, *feat.shape)
    feat = feat.astype(np.float32, copy=False)
    if feat.shape[0] >= _TALL and feat.shape[1] <= _FEW_COLUMNS:
        return _by_gram(feat, num_components)
    left, singular_values, right = randomized_svd(feat, num_components, random_state=seed)
    axes = right.T.astype(np.float32, copy=False)
    return (left * singular_values).astype(np.float32, copy=False), axes


def leading_components(points: np.ndarray, num_components: int) -> np.ndarray:
    """The same as `truncated_svd` for dense points of few columns, by way of ``X^T X``.

    It is exact to rounding, needs no seed, and takes a tenth of the time of a randomised SVD if a
    few of some hundred columns are wanted. Its time grows with the square of the columns.

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
    feat: sp.csr_matrix | np.ndarray, num_components: int
) -> tuple[np.ndarray, np.ndarray]:
    """Leading components (N, k) and axes (F, k) from the eigenvectors of ``X^T X``."""
    axes = _eigenvectors(_gram(feat), num_components)
    return np.asarray(feat @ axes), axes


def _gram(feat: sp.csr_matrix | np.ndarray) -> np.ndarray:
    """``X^T X`` (F, F), float64."""
    if not isinstance(feat, np.ndarray):
        exact = feat.astype(np.float64)
        return (exact.T @ exact).toarray()
    gram = np.zeros((feat.shape[1], feat.shape[1]))
    for start in range(0, len(feat), _BLOCK_ROWS):
        block = feat[start : start + _BLOCK_ROWS]
        gram += block.T @ block
    return gram


def _eigenvectors(gram: np.ndarray, count: int) -> np.ndarray:
    """Leading eigenvectors (F, count), float32, each with its largest entry positive."""
    size = len(gram)
    vectors = eigh(gram, subset_by_index=(size - count, size - 1))[1][:, ::-1]
    largest = vectors[np.abs(vectors).argmax(0), np.arange(count)]
    return (vectors * np.sign(largest)).astype(np.float32)
