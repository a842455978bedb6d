"""Preparation of node features: sparse stays sparse, dense only after the dimension is reduced."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, normalize

from user_dgl.config import FeaturesConfig
from user_dgl.errors import InputError


def prepare_features(feat: sp.spmatrix, config: FeaturesConfig) -> sp.csr_matrix:
    """Features as a section ``features`` of the settings asks for; the input is left as it is.

    In this order, each step only if it is asked for:

    1. weighting. ``tf_idf``: ``x_ij <- x_ij log(N / df_j)``, ``df_j`` = rows with a non-zero in
       column j. ``log``: ``x_ij <- log(1 + x_ij)``. ``auto``: what the values look like. Negative
       ones are left as they are. Whole numbers, or rows whose non-zeros are all alike, as of a
       scaled 0/1 row, if most of them are 0: log, then tf-idf. Other values: log;
    2. max-abs scaling: ``x_ij <- x_ij / max_i |x_ij|``;
    3. row norm: ``x_i <- x_i / ||x_i||``, l1 or l2.

    Empty columns and zero rows stay zero. All three keep zeros, so sparse features stay sparse.

    Parameters
    ----------
    feat : scipy sparse (N, F)
    config : FeaturesConfig

    Returns
    -------
    csr_matrix (N, F) float32
        With sorted indices and without stored zeros.

    >>> words = sp.csr_matrix([[1.0, 3.0], [1.0, 0.0]])
    >>> config = FeaturesConfig(weighting="tf_idf", row_norm="l2")
    >>> prepare_features(words, config).toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return FeaturePreparation(config).fit_transform(feat)


class FeaturePreparation:
    """`prepare_features` in scikit-learn's shape: what the columns of some rows say, for others.

    Parameters
    ----------
    config : FeaturesConfig
    """

    def __init__(self, config: FeaturesConfig):
        self._config = config

    def fit_transform(self, feat: sp.spmatrix) -> sp.csr_matrix:
        """`prepare_features`; its choices and the sums over columns are kept for `transform`."""
        config, feat = self._config, _cleaned(feat)
        self._takes_log, takes_idf = _weighting(feat, config.weighting)
        self._idf = _inverse_document_frequency(feat) if takes_idf else None
        feat = self._weighted(feat)
        scales = config.max_abs_scale and feat.nnz
        self._scaler = MaxAbsScaler().fit(feat) if scales else None
        return self._scaled(feat)

    def transform(self, feat: sp.spmatrix) -> sp.csr_matrix:
        """Other rows (M, F) prepared in the same way, float32.

        Raises
        ------
        InputError
            Negative features where logarithms are taken.
        """
        feat = _cleaned(feat)
        if self._takes_log and feat.nnz and feat.data.min() < 0:
            raise InputError(
                "negative features: the features of the fit had none, so that their logarithms were"
                " taken; set features.weighting=none for the fit"
            )
        return self._scaled(self._weighted(feat))

    def _weighted(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        if self._takes_log:
            feat.data = np.log1p(feat.data)
        if self._idf is not None:
            feat.data *= self._idf[feat.indices]
            feat.eliminate_zeros()
        return feat

    def _scaled(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        if not feat.nnz:
            return feat
        if self._scaler is not None:
            feat = self._scaler.transform(feat)
        if self._config.row_norm != "none":
            feat = normalize(feat, norm=self._config.row_norm)
        return feat


def _cleaned(feat: sp.spmatrix) -> sp.csr_matrix:
    feat = sp.csr_matrix(feat, dtype=np.float32, copy=True)
    # Also adds repeated entries up, which would otherwise count twice in df_j.
    feat.sum_duplicates()
    feat.eliminate_zeros()
    return feat


def _weighting(feat: sp.csr_matrix, weighting: str) -> tuple[bool, bool]:
    """Whether to take logarithms, and whether to multiply by inverse document frequencies."""
    if not feat.nnz:
        return False, False
    if weighting == "auto":
        if feat.data.min() < 0:
            return False, False
        largest = feat.max(axis=1).toarray().ravel()
        alike = feat.data == np.repeat(largest, np.diff(feat.indptr))
        counts = feat.data == np.rint(feat.data)
        # Where most entries are not 0, being so says nothing, and its weight would be near 0.
        mostly_zero = 2 * feat.nnz <= feat.shape[0] * feat.shape[1]
        return True, bool(mostly_zero and (counts.all() or alike.all()))
    if weighting == "log" and feat.data.min() < 0:
        raise InputError("features.weighting=log: there are negative features; use none or auto")
    return weighting == "log", weighting == "tf_idf"


def _inverse_document_frequency(feat: sp.csr_matrix) -> np.ndarray:
    """log(N / df_j) of each column (F,), float32; 0 for an empty one."""
    num_rows, num_columns = feat.shape
    frequency = np.bincount(feat.indices, minlength=num_columns)
    return np.log(num_rows / np.where(frequency > 0, frequency, num_rows)).astype(np.float32)
