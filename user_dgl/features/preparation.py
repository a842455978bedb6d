"""Preparation of node features: weighting, centring, scaling and row norm. Words stay sparse."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, normalize

from user_dgl.config import FeaturesConfig
from user_dgl.errors import InputError
from user_dgl.features.columns import are_dense, are_whole
from user_dgl.features.indicators import Indicators
from user_dgl.features.lift import MOST_COLUMNS, Lift
from user_dgl.features.robust import centred_columns, robust_columns

# Values beyond 2 to this power, or below 2 to minus it, have squares whose sums may leave float32.
_LARGEST_EXPONENT = 40
# 2 to a higher power is no number of float32.
_MOST_EXPONENT = 127
_BLOCK = 2**22
_TWO_VALUES = (
    "every column of the features has two values at most, and the higher one is rare: they are "
    "taken as 1 and 0, as before standardising; set features.weighting=none to leave them as they "
    "are"
)


def prepare_features(feat: sp.spmatrix, config: FeaturesConfig) -> sp.csr_matrix:
    """Prepare features as the section ``features`` of the settings says. The input is not changed.

    The steps, in this order. Each step is done only if the settings ask for it:

    1. Weighting. ``tf_idf``: ``x_ij <- x_ij log(N / df_j)``, where ``df_j`` is the number of rows
       with a non-zero value in column j. ``log``: ``x_ij <- log(1 + x_ij)``. ``robust``: dense
       columns are reduced by their median and divided by their spread, or take the normal scores
       of their ranks, see `user_dgl.features.robust.robust_columns`; the others are weighted as by
       ``auto``.
       ``auto`` chooses from the values. More than 64 real-valued columns with two values each, of
       which the higher one is rare, as words have after they were standardised, are turned into 0
       and 1 first (`user_dgl.features.indicators`).
       Shares of a whole, whose rows have the same sum, take their square roots, less the trimmed
       mean of the column; values below 0 of other rows count as 0.
       Dense real-valued columns of very different scale or with outliers are scaled as by
       ``robust``. For the others: if a value is negative, there is no weighting, and if more than
       half of the entries are not zero, dense columns are reduced by their trimmed mean, except in
       rows of zeros. Embeddings of texts have a large mean in common, by which all rows look
       alike. If no value is negative, at least half of the entries are zero, and the non-zero
       values are whole numbers, or are equal within each row (as in a 0/1 row that was scaled):
       log, then tf-idf. Other values: log.
    2. Max-abs scaling: ``x_ij <- x_ij / max_i |x_ij|``.
    3. With ``auto`` or ``robust`` and the row norm l2, a dense table of few columns gets one more,
       so that rows of norm 1 keep their position (`user_dgl.features.lift`).
    4. Row norm: ``x_i <- x_i / ||x_i||``, l1 or l2.

    Before that, values that are so large or small that their squares leave the range of float32 are
    multiplied by a power of 2: those of each row with such values, if there is a row norm, no
    column is scaled by ``robust`` or reduced by its mean, and step 3 does not apply; else all
    values. Empty columns stay zero, and rows of zeros too, except in columns that ``robust`` scales
    and in tables of whole numbers of step 3, where zeros are values. A column is dense if more than
    half of its entries are not 0. Only dense columns, and tables of step 3, lose their zeros, so
    sparse features stay sparse.

    Parameters
    ----------
    feat : scipy sparse (N, F)
    config : FeaturesConfig

    Returns
    -------
    csr_matrix (N, F) float32, or (N, F + 1) after step 3
        With sorted indices and without stored zeros.

    Raises
    ------
    InputError
        ``weighting`` is ``log`` and a feature is negative.

    >>> words = sp.csr_matrix([[1.0, 3.0], [1.0, 0.0]])
    >>> config = FeaturesConfig(weighting="tf_idf", row_norm="l2")
    >>> prepare_features(words, config).toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return FeaturePreparation(config).fit_transform(feat)


class FeaturePreparation:
    """`prepare_features` with scikit-learn's interface, to prepare other rows in the same way.

    Parameters
    ----------
    config : FeaturesConfig
    """

    def __init__(self, config: FeaturesConfig):
        self._config = config

    def fit_transform(self, feat: sp.spmatrix) -> sp.csr_matrix:
        """Do `prepare_features` and keep its choices and column statistics for `transform`.

        Sets ``warnings``, lines for the user about columns of very different scale or two values.
        """
        config, feat = self._config, _cleaned(feat)
        recodes = config.weighting == "auto" and feat.shape[1] > MOST_COLUMNS
        recodes = recodes and _are_real_values(feat)
        self._indicators = Indicators.of(feat) if recodes else None
        if self._indicators is not None:
            feat = self._indicators(feat)
        self._columns, self.warnings = robust_columns(feat, config.weighting)
        if self._indicators is not None:
            self.warnings = [_TWO_VALUES]
        self._may_lift = (
            config.weighting in ("auto", "robust")
            and config.row_norm == "l2"
            and feat.shape[1] <= MOST_COLUMNS
            and are_dense(feat)
        )
        # Zeros of counts and ratings, and of columns in different units, are values.
        keeps_empty = self._columns is None or self._columns.keeps_empty
        self._keeps_empty = self._may_lift and keeps_empty and not are_whole(feat)
        centres = self._columns is None and config.weighting == "auto" and _are_real_values(feat)
        if centres:
            # Columns that are centred keep their scale relative to the others.
            self._exponent = _extreme_exponent(feat.data)
            keeps_empty = self._keeps_empty or not self._may_lift
            self._columns = centred_columns(feat, self._exponent, keeps_empty)
        rest = self._without_columns(feat)
        if not centres:
            self._exponent = _extreme_exponent(rest.data)
        rest = self._in_range(rest)
        self._takes_log, takes_idf = _weighting(feat if centres else rest, config.weighting)
        self._idf = _inverse_document_frequency(rest) if takes_idf else None
        empty = self._empty(feat)
        feat = self._joined(self._weighted(rest), feat)
        scales = config.max_abs_scale and feat.nnz
        self._scaler = MaxAbsScaler().fit(feat) if scales else None
        feat = self._scaled(feat)
        self._lift = Lift.of(feat, empty) if self._may_lift else None
        return self._with_norm(feat, empty)

    def transform(self, feat: sp.spmatrix) -> sp.csr_matrix:
        """Prepare other rows (M, F) with the choices and column statistics of the fit, float32.

        Raises
        ------
        InputError
            A feature is negative and the weighting takes logarithms.
        """
        feat = _cleaned(feat)
        if self._indicators is not None:
            feat = self._indicators(feat)
        rest, empty = self._in_range(self._without_columns(feat)), self._empty(feat)
        if self._takes_log and rest.nnz and rest.data.min() < 0:
            raise InputError(
                "negative features: the features of the fit had none, so their weighting takes "
                "logarithms; set features.weighting=none for the fit"
            )
        return self._with_norm(self._scaled(self._joined(self._weighted(rest), feat)), empty)

    def _empty(self, feat: sp.csr_matrix) -> np.ndarray:
        """Rows (M,) of nodes without features, which a lift leaves 0."""
        return (np.diff(feat.indptr) == 0) & self._keeps_empty

    def _without_columns(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        """Set the columns of `ScaledColumns` to 0; the same matrix if there are none."""
        if self._columns is None:
            return feat
        if len(self._columns.places) == feat.shape[1]:
            return sp.csr_matrix(feat.shape, dtype=feat.dtype)
        kept = np.ones(feat.shape[1], dtype=np.float32)
        kept[self._columns.places] = 0
        rest = feat.copy()
        rest.data *= kept[rest.indices]
        rest.eliminate_zeros()
        return rest

    def _joined(self, rest: sp.csr_matrix, feat: sp.csr_matrix) -> sp.csr_matrix:
        """Put the scaled columns of ``feat`` into ``rest``, which has none of them."""
        if self._columns is None:
            return rest
        scaled = self._columns.scale(feat)
        if len(self._columns.places) == feat.shape[1]:
            return scaled
        scaled = scaled.tocoo()
        columns = self._columns.places[scaled.col]
        return rest + sp.csr_matrix((scaled.data, (scaled.row, columns)), shape=feat.shape)

    def _in_range(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        """Multiply values whose squares leave the range of float32 by a power of 2."""
        if self._config.row_norm == "none" or self._columns is not None or self._may_lift:
            if self._exponent:
                feat.data = np.ldexp(feat.data, -self._exponent)
        elif any(map(_is_extreme, _exponents(feat.data))):
            # The row norm divides each row by its own scale, so that a factor has no effect.
            sizes = abs(feat).max(axis=1).toarray().ravel()
            exponents = np.frexp(sizes)[1]
            exponents[(sizes == 0) | (np.abs(exponents) <= _LARGEST_EXPONENT)] = 0
            feat.data = np.ldexp(feat.data, -np.repeat(exponents, np.diff(feat.indptr)))
        return feat

    def _weighted(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        """Step 1 of `prepare_features`, in place."""
        if self._takes_log:
            feat.data = np.log1p(feat.data)
        if self._idf is not None:
            feat.data *= self._idf[feat.indices]
            feat.eliminate_zeros()
        return feat

    def _scaled(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        """Step 2 of `prepare_features`."""
        return feat if self._scaler is None or not feat.nnz else self._scaler.transform(feat)

    def _with_norm(self, feat: sp.csr_matrix, empty: np.ndarray) -> sp.csr_matrix:
        """Steps 3 and 4 of `prepare_features`."""
        if self._lift is not None:
            feat = self._lift(feat, empty)
        if feat.nnz and self._config.row_norm != "none":
            feat = normalize(feat, norm=self._config.row_norm)
        return feat


def _cleaned(feat: sp.spmatrix) -> sp.csr_matrix:
    """Copy as float32 CSR with sorted indices, without repeated entries and stored zeros."""
    feat = sp.csr_matrix(feat, dtype=np.float32, copy=True)
    # Repeated entries are added up; otherwise they would count twice in df_j.
    feat.sum_duplicates()
    feat.eliminate_zeros()
    return feat


def _are_real_values(feat: sp.csr_matrix) -> bool:
    """Whether most entries are not 0, and some are negative."""
    return are_dense(feat) and feat.data.min() < 0


def _is_extreme(exponent: int) -> bool:
    return abs(exponent) > _LARGEST_EXPONENT


def _extreme_exponent(values: np.ndarray) -> int:
    """Power of 2 of the largest value, if its square leaves the range of float32, else 0."""
    largest = min(_exponents(values)[1], _MOST_EXPONENT)
    return largest if _is_extreme(largest) else 0


def _exponents(values: np.ndarray) -> tuple[int, int]:
    """Powers of 2 of the smallest and of the largest value other than 0, by size."""
    low, high = np.inf, 0.0
    for start in range(0, len(values), _BLOCK):
        sizes = np.abs(values[start : start + _BLOCK])
        low, high = min(low, sizes.min()), max(high, sizes.max())
    return (int(np.frexp(low)[1]), int(np.frexp(high)[1])) if len(values) else (0, 0)


def _weighting(feat: sp.csr_matrix, weighting: str) -> tuple[bool, bool]:
    """Return whether to take logarithms and whether to multiply by log(N / df_j)."""
    if not feat.nnz:
        return False, False
    if weighting in ("auto", "robust"):
        if feat.data.min() < 0:
            return False, False
        largest = feat.max(axis=1).toarray().ravel()
        alike = feat.data == np.repeat(largest, np.diff(feat.indptr))
        counts = feat.data == np.rint(feat.data)
        # If most entries are non-zero, a non-zero entry carries no information and its tf-idf
        # weight would be near 0.
        return True, bool(not are_dense(feat) and (counts.all() or alike.all()))
    if weighting == "log" and feat.data.min() < 0:
        raise InputError(
            "features.weighting=log: there are negative features; use features.weighting=none or "
            "auto"
        )
    return weighting == "log", weighting == "tf_idf"


def _inverse_document_frequency(feat: sp.csr_matrix) -> np.ndarray:
    """log(N / df_j) of each column (F,), float32; 0 for an empty column."""
    num_rows, num_columns = feat.shape
    frequency = np.bincount(feat.indices, minlength=num_columns)
    return np.log(num_rows / np.where(frequency > 0, frequency, num_rows)).astype(np.float32)
