"""Real-valued columns that each have two values only, such as standardised words.

Words that were standardised are no longer 0 and 1, but two numbers a column: a lower one for the
nodes without the word, and a higher one for those with it. These numbers say nothing more than the
words do, but the columns are dense, and a rare word is far from all other values. So they are
turned back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

# Words are in few rows. Other flags, such as votes of -1 and 1, say as much by either value.
_MOST_ONES = 0.25
# Fewer rows have two values by chance.
_LEAST_ROWS = 10
# Values that are compared at once.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Indicators:
    """Columns of two values, of which the higher one is 1 and the lower one 0.

    Rows without a non-zero are of nodes without features, and stay so.

    Attributes
    ----------
    low, high : float32 (F,)
        The two values, which are equal for a constant column; it becomes 0.
    """

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, feat: sp.csr_matrix) -> "Indicators | None":
        """Find them in float32 features (N, F) without stored zeros.

        None if a column has more values, or if more than a quarter of the values of the columns
        that vary are the higher ones.
        """
        low, high = np.full((2, feat.shape[1]), [[np.inf], [-np.inf]], dtype=np.float32)
        ones = rows = 0
        for _, block in _blocks(feat):
            low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
            # With three values in this block, there are no two for all rows.
            if not ((block == low) | (block == high)).all():
                return None
        for _, block in _blocks(feat):
            are_high = block == high
            if not (are_high | (block == low)).all():
                return None
            ones += int(np.count_nonzero(are_high[:, low < high]))
            rows += len(block)
        rare = ones <= _MOST_ONES * rows * np.count_nonzero(low < high)
        return cls(low, high) if rows >= _LEAST_ROWS and rare else None

    def __call__(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        """1 where a value of features (M, F) is nearer to the higher one, float32."""
        counts, columns = np.zeros(feat.shape[0], dtype=np.int64), [np.zeros(0, dtype=np.int32)]
        for rows, block in _blocks(feat):
            near = np.abs(block - self.high) < np.abs(block - self.low)
            counts[rows] = np.count_nonzero(near, axis=1)
            columns.append(np.nonzero(near)[1].astype(np.int32))
        indices, ends = np.concatenate(columns), np.concatenate([[0], np.cumsum(counts)])
        return sp.csr_matrix((np.ones(len(indices), np.float32), indices, ends), shape=feat.shape)


def _blocks(feat: sp.csr_matrix) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows with a non-zero, block by block: their places and values."""
    filled = np.flatnonzero(np.diff(feat.indptr))
    step = max(1, _BLOCK // max(1, feat.shape[1]))
    for start in range(0, len(filled), step):
        rows = filled[start : start + step]
        yield rows, feat[rows].toarray()
