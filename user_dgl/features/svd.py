"""Truncated singular value decomposition of features."""

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from user_dgl.errors import InputError


def truncated_svd(feat: sp.spmatrix | np.ndarray, num_components: int, seed: int) -> np.ndarray:
    """Leading left singular vectors times their singular values: ``U_k S_k = X V_k``.

    The method is a randomised SVD with power iterations. Its time is linear in the non-zeros of X.
    The same seed gives the same result.

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
    left, singular_values, right = _randomized_svd(feat, num_components, seed)
    return (left * singular_values).astype(np.float32, copy=False), _axes(right)


def _axes(right: np.ndarray) -> np.ndarray:
    return right.T.astype(np.float32, copy=False)


def _randomized_svd(
    feat: sp.spmatrix | np.ndarray, num_components: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U (N, k), the singular values (k,) and V^T (k, F)."""
    if min(feat.shape) == 0 or num_components < 1:
        raise InputError(
            f"SVD: expected features with rows and columns and 1 or more components, got shape "
            f"{feat.shape} and {num_components} components"
        )
    num_components = min(num_components, *feat.shape)
    feat = feat.astype(np.float32, copy=False)
    return randomized_svd(feat, num_components, random_state=seed)
