"""What the columns of the features hold: range, kind of values, number of non-zeros; samples."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

# Names of the kinds, see `ColumnSummary.kinds`.
KINDS = ("constant", "binary", "counts", "non-negative", "real")
_BLOCK = 2**22
# A column that varies by less than this share of its size is constant; the rest is rounding.
LEAST_SPREAD = 1e-5
# Rows from which medians, quartiles, means and ranks are taken.
_MOST_ROWS = 10_000
# Rows that show at once that nearly all features vary.
_FIRST_ROWS = 100


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Range and kind of each column of a sparse matrix (N, F).

    Attributes
    ----------
    num_nonzeros : int64 (F,)
    least, largest : float (F,)
        Smallest and largest value, zeros included.
    whole : bool (F,)
        Whether all values are whole numbers.
    """

    num_nonzeros: np.ndarray
    least: np.ndarray
    largest: np.ndarray
    whole: np.ndarray

    @classmethod
    def of(cls, feat: sp.csr_matrix) -> "ColumnSummary":
        """Summarise a matrix (N, F) without stored zeros."""
        columns = feat.tocsc()
        num_rows, num_columns = columns.shape
        counts = np.diff(columns.indptr)
        least, largest = (np.zeros(num_columns, columns.dtype) for _ in range(2))
        whole = np.ones(num_columns, dtype=bool)
        filled = np.flatnonzero(counts)
        if len(filled):
            # reduceat takes the start of each segment, and empty columns have none.
            starts = columns.indptr[filled]
            least[filled] = np.minimum.reduceat(columns.data, starts)
            largest[filled] = np.maximum.reduceat(columns.data, starts)
            is_whole = columns.data == np.rint(columns.data)
            whole[filled] = np.logical_and.reduceat(is_whole, starts)
        with_zero = counts < num_rows
        least[with_zero] = np.minimum(least[with_zero], 0)
        largest[with_zero] = np.maximum(largest[with_zero], 0)
        return cls(counts.astype(np.int64), least, largest, whole)

    @classmethod
    def of_all(cls, feat: sp.csr_matrix) -> "ColumnSummary":
        """Summarise a matrix (N, F) without stored zeros as if it were a single column.

        This needs no copy of the matrix.
        """
        values = feat.data
        blocks = [values[start : start + _BLOCK] for start in range(0, len(values), _BLOCK)]
        zero = [0] if feat.nnz < feat.shape[0] * feat.shape[1] or not blocks else []
        return cls(
            np.array([feat.nnz]),
            np.array([min([*zero, *(block.min() for block in blocks)])]),
            np.array([max([*zero, *(block.max() for block in blocks)])]),
            np.array([all((block == np.rint(block)).all() for block in blocks)]),
        )

    @property
    def varies(self) -> np.ndarray:
        """Whether each column (F,) varies beyond the rounding of float32."""
        size = np.maximum(np.abs(self.least), np.abs(self.largest))
        return self.largest - self.least > LEAST_SPREAD * size

    @property
    def kinds(self) -> np.ndarray:
        """Kind of each column (F,), as a position in `KINDS`.

        ``constant``: one value; ``binary``: 0 and 1; ``counts``: whole numbers of 0 or more;
        ``non-negative``: other numbers of 0 or more; ``real``: a number is negative.
        """
        constant = self.least == self.largest
        binary = self.whole & (self.least >= 0) & (self.largest <= 1)
        counts = self.whole & (self.least >= 0)
        return np.select([constant, binary, counts, self.least >= 0], [0, 1, 2, 3], 4)

    def counts_of_kinds(self) -> dict[str, int]:
        """Number of columns of each kind that occurs, by name."""
        counts = np.bincount(self.kinds, minlength=len(KINDS))
        return {name: int(number) for name, number in zip(KINDS, counts, strict=True) if number}


def rows_differ(feat: sp.csr_matrix) -> bool:
    """Whether a column of a matrix (N, F) without stored zeros varies beyond rounding."""
    num_rows = feat.shape[0]
    rows = np.unique(np.linspace(0, max(num_rows - 1, 0), min(num_rows, _FIRST_ROWS)).astype(int))
    return any(ColumnSummary.of(part).varies.any() for part in (feat[rows], feat))


def are_dense(feat: sp.csr_matrix) -> bool:
    """Whether more than half of the entries of a matrix without stored zeros are not 0."""
    return 2 * feat.nnz > feat.shape[0] * feat.shape[1]


def are_whole(feat: sp.csr_matrix) -> bool:
    """Whether all values are whole numbers below 2^24; all larger ones are whole in float32."""
    values = feat.data
    # Both ends first, which take no copy.
    if max(values.max(initial=0), -values.min(initial=0)) >= 2**24:
        return False
    return bool((values == np.rint(values)).all())


def some_rows(feat: sp.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Values of some columns (D,) in at most 10,000 of some rows, float64."""
    places = np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).astype(np.int64)
    return feat[rows[np.unique(places)]][:, columns].toarray().astype(np.float64)


def csr_of_dense(values: np.ndarray) -> sp.csr_matrix:
    """Convert values (M, D) to CSR without stored zeros, with the same memory.

    A conversion by scipy looks for zeros first, which takes several copies.
    """
    height, width = values.shape
    ends = np.arange(height + 1, dtype=np.int64) * width
    columns = np.tile(np.arange(width, dtype=np.int32), height)
    matrix = sp.csr_matrix((values.ravel(), columns, ends), shape=values.shape)
    matrix.eliminate_zeros()
    return matrix
