"""Real-valued columns that each have two values only, such as standardised words.

Words that were standardised are no longer 0 and 1, but two numbers a column: one for the nodes
without the word, and another for those with it. These numbers say nothing more than the words do,
but the columns are dense, and a rare word is far from all other values. So they are turned back.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from user_dgl.features.columns import ColumnSummary

# Rows that show at once that nearly all real values are not of this kind.
_FIRST_ROWS = 1_000
# Values that are compared at once.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Indicators:
    """Columns of two values, of which the less frequent one is 1 and the other 0.

    Attributes
    ----------
    rare, common : float32 (F,)
        The two values; both NaN for a constant column, which becomes 0.
    """

    rare: np.ndarray
    common: np.ndarray

    @classmethod
    def of(cls, feat: sp.csr_matrix) -> "Indicators | None":
        """Find them in features (N, F) without stored zeros; None if a column has more values."""
        if not _may_have_two_values(feat):
            return None
        summary, num_rows = ColumnSummary.of(feat), feat.shape[0]
        low, high = (each.astype(np.float32) for each in (summary.least, summary.largest))
        is_high, is_low = feat.data == high[feat.indices], feat.data == low[feat.indices]
        zeros = num_rows - summary.num_nonzeros
        if not (is_high | is_low).all() or ((zeros > 0) & (low != 0) & (high != 0)).any():
            return None
        num_high = np.bincount(feat.indices[is_high], minlength=feat.shape[1])
        num_high += np.where(high == 0, zeros, 0)
        rare_high = 2 * num_high <= num_rows
        rare, common = np.where(rare_high, high, low), np.where(rare_high, low, high)
        constant = low == high
        return cls(np.where(constant, np.nan, rare), np.where(constant, np.nan, common))

    def __call__(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        """1 where a value of features (M, F) is nearer to the less frequent one, float32."""
        step = max(1, _BLOCK // max(1, feat.shape[1]))
        blocks = [sp.csr_matrix((0, feat.shape[1]), dtype=np.float32)]
        for start in range(0, feat.shape[0], step):
            values = feat[start : start + step].toarray()
            near = np.abs(values - self.rare) < np.abs(values - self.common)
            blocks.append(sp.csr_matrix(near, dtype=np.float32))
        return sp.vstack(blocks, format="csr")


def _may_have_two_values(feat: sp.csr_matrix) -> bool:
    """Whether no column has a third value in the first rows."""
    values = feat[:_FIRST_ROWS].toarray()
    if not values.size:
        return False
    low, high = values.min(axis=0), values.max(axis=0)
    return bool(((values == low) | (values == high)).all())
