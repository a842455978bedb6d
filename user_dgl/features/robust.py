r"""Real-valued columns: scaling by median and interquartile range, and centring.

A column in thousands beside columns near 1 hides them: it decides the norm of each row, the leading
components and every distance. Scaled columns count alike. Median and quartiles are used because a
few outliers do not move them (Rousseeuw and Croux, 1993), while they can shrink a column to nothing
if its standard deviation is used.

Embeddings of texts or images have columns of similar scale, but a large mean in common (Mu and
Viswanath, 2018), so that all cosines are near 1. Their columns are reduced by their trimmed means
and keep their scale.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.stats import trim_mean

from user_dgl.features.columns import LEAST_SPREAD

# Columns are scaled where their spreads differ by more than this. Columns that tell clusters apart
# spread more than those that do not, up to 9 times on tables of clusters in space, where scaling
# costs NMI. Singular vectors of text, which need no scaling, differ by up to 3. The price: a column
# of noise with 3 to 10 times the spread of the informative ones stays as it is.
_MOST_DIFFERENT = 10.0
# Rows from which medians, quartiles and trimmed means are taken.
_MOST_ROWS = 10_000
# Interquartile range of a normal distribution with standard deviation 1.
_NORMAL_IQR = 1.349
# Share of the values of a column that its trimmed mean leaves out at either end.
_TRIMMED = 0.05
# Values that are scaled at once.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class ScaledColumns:
    r"""Columns to centre and scale: :math:`x_{ij} \leftarrow (x_{ij} - m_j) / s_j`.

    Attributes
    ----------
    places : int64 (D,)
        The columns.
    centre : float32 (D,)
        m, the median or the trimmed mean.
    spread : float32 (D,)
        s, the interquartile range divided by that of the standard normal distribution. The standard
        deviation, if the quartiles are equal. The same for all columns that are only centred.
        Infinite for a constant column, which becomes 0.
    keeps_empty : bool
        Whether rows without a non-zero stay so. They are of nodes without features.
    """

    places: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    keeps_empty: bool = False

    def scale(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        """Scale these columns of a matrix (M, F), without the others (M, D), float32."""
        kept = feat if len(self.places) == feat.shape[1] else feat[:, self.places]
        values = np.empty(kept.shape, dtype=np.float32)
        step = max(1, _BLOCK // max(1, len(self.places)))
        for start in range(0, len(values), step):
            block = kept[start : start + step].toarray().astype(np.float64)
            values[start : start + step] = (block - self.centre) / self.spread
        if self.keeps_empty:
            values[np.diff(feat.indptr) == 0] = 0
        # A conversion by scipy looks for zeros first, which takes several copies.
        height, width = values.shape
        ends = np.arange(height + 1, dtype=np.int64) * width
        columns = np.tile(np.arange(width, dtype=np.int32), height)
        scaled = sp.csr_matrix((values.ravel(), columns, ends), shape=values.shape)
        scaled.eliminate_zeros()
        return scaled


def robust_columns(feat: sp.csr_matrix, weighting: str) -> tuple[ScaledColumns | None, list[str]]:
    """Find the columns to scale, and warnings about columns of very different scale.

    A column is dense if more than half of its entries are not 0. Candidates are the dense columns
    with other values than 0 and 1. Features without negative values, of which at least half are 0,
    are words; for words, only a column that is larger than the other values by the factor 10
    differs in scale, because the weights of frequent words are small.

    - ``robust``: all candidates are scaled.
    - ``auto``: candidates are scaled if one of the features is no whole number of 0 or more, and
      spreads differ by more than the factor 10: those of the candidates, and the median size of the
      other non-zero features. Of words, only the columns that differ are scaled. Whole numbers may
      be counts, which the logarithm suits better; a warning names the column.
    - Others: none.

    Parameters
    ----------
    feat : scipy CSR (N, F)
        Without stored zeros.
    weighting : str
        ``features.weighting``.
    """
    num_rows, num_columns = feat.shape
    if weighting not in ("auto", "robust") or not feat.nnz:
        return None, []
    counts = np.bincount(feat.indices, minlength=num_columns)
    dense = np.flatnonzero(2 * counts > num_rows)
    if not len(dense):
        return None, []
    values = _some_rows(feat, np.arange(num_rows), dense)
    other = ~np.isin(values, (0, 1)).all(axis=0)
    if not other.any():
        return None, []
    places, values = dense[other], values[:, other]
    median, spread = _spreads(values)
    found = ScaledColumns(places, median.astype(np.float32), spread.astype(np.float32))
    if weighting == "robust":
        return found, []
    words = 2 * feat.nnz <= num_rows * num_columns and feat.data.min() > 0
    rest = _size_of_others(feat, places)
    varying = np.isfinite(spread)
    if words:
        size = np.maximum(np.abs(median), np.where(varying, spread, 0))
        differs = size > _MOST_DIFFERENT * (rest or size.min())
        if not differs.any():
            return None, []
        low, high, where = rest or size.min(), size.max(), places[size.argmax()]
        found = ScaledColumns(places[differs], found.centre[differs], found.spread[differs])
    else:
        scales = spread[varying]
        low = min([*scales, *([rest] if rest else [])], default=0.0)
        high = max([*scales, *([rest] if rest else [])], default=0.0)
        if high <= _MOST_DIFFERENT * low:
            return None, []
        # The column that is furthest from the others, which may be the largest or the smallest.
        where = places[varying][np.abs(np.log(scales / np.median([*scales, rest or 1]))).argmax()]
    said = f"features of very different scale, {low:.3g} to {high:.3g}, most of all column {where}"
    counted = "(columns are counted from 0)"
    # All larger numbers are whole in float32.
    countable = feat.data.min() > 0 and feat.data.max() < 2**24
    if countable and (feat.data == np.rint(feat.data)).all():
        return None, [
            f"{said} {counted}: it may hide the others; they are whole numbers, so they are taken "
            "as counts; set features.weighting=robust if they are no counts, to scale each column"
        ]
    return found, [
        f"{said} {counted}: {len(found.places)} columns are scaled by their median and "
        "interquartile range; set features.weighting=none to leave them as they are"
    ]


def centred_columns(feat: sp.csr_matrix, exponent: int = 0) -> ScaledColumns:
    """The dense columns with their trimmed means over the rows with a non-zero.

    Parameters
    ----------
    feat : scipy CSR (N, F)
        Without stored zeros, with a dense column (`robust_columns`).
    exponent : int
        The columns are also divided by 2 to this power.
    """
    num_rows, num_columns = feat.shape
    places = np.flatnonzero(2 * np.bincount(feat.indices, minlength=num_columns) > num_rows)
    values = _some_rows(feat, np.flatnonzero(np.diff(feat.indptr)), places)
    varies = np.isfinite(_spreads(values)[1])
    return ScaledColumns(
        places,
        trim_mean(values, _TRIMMED, axis=0).astype(np.float32),
        np.where(varies, np.ldexp(1.0, exponent), np.inf).astype(np.float32),
        keeps_empty=True,
    )


def _some_rows(feat: sp.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Values of some columns (D,) in at most 10,000 of some rows, float64."""
    places = np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).astype(np.int64)
    return feat[rows[np.unique(places)]][:, columns].toarray().astype(np.float64)


def _spreads(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median and spread of each column (D,) of values (M, D), see `ScaledColumns`."""
    low, median, high = np.percentile(values, (25, 50, 75), axis=0)
    least = LEAST_SPREAD * np.median(np.abs(values), axis=0)
    spread = (high - low) / _NORMAL_IQR
    deviation = values.std(axis=0)
    spread = np.where(spread > least, spread, deviation)
    return median, np.where(spread > least, spread, np.inf)


def _size_of_others(feat: sp.csr_matrix, places: np.ndarray) -> float | None:
    """Median size of the non-zero values outside of some columns; None if there are none."""
    inside = np.zeros(feat.shape[1], dtype=bool)
    inside[places] = True
    others = feat.data[~inside[feat.indices]]
    return float(np.median(np.abs(others))) if len(others) else None
