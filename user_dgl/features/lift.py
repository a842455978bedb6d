r"""One more column, by which rows of norm 1 keep where a node lies, for tables of few columns.

All stages compare nodes by cosines. In many dimensions nearly all points have the same distance
from the mean, and the direction is what tells clusters apart. In few dimensions it is not: on a
line there are two directions only, and a large cluster at the mean has none. Points with one more
coordinate, the same for all, are told apart by their directions alone:

.. math:: x_i \leftarrow (x_i - m, c), \qquad c^2 = \frac1N \sum_i \|x_i - m\|^2

These are homogeneous coordinates; the rows of norm 1 are the central projection of the points to a
sphere that touches them at their mean m.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

# Most columns, and most effective dimensions, of a table that is lifted. On clusters in space with
# 1 to 16 dimensions the NMI of the default is 10 to 40 points higher, with 40 and more effective
# dimensions it is 0 to 6 lower.
_MOST_COLUMNS, _MOST_DIMENSIONS = 64, 16
# Rows from which the mean and the dimensions are taken.
_MOST_ROWS = 10_000
# Values that are lifted at once.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Lift:
    """Appends a column (see above).

    Attributes
    ----------
    mean : float32 (F,)
        m.
    length : float
        c.
    keeps_empty : bool
        Whether rows without a non-zero stay so. They are of nodes without features.
    """

    mean: np.ndarray
    length: float
    keeps_empty: bool

    @classmethod
    def of(cls, feat: sp.csr_matrix, keeps_empty: bool) -> "Lift | None":
        r"""Lift dense features (N, F) of few columns and effective dimensions; others: None.

        The effective dimensions are the participation ratio :math:`(\sum_j \lambda_j)^2 / \sum_j
        \lambda_j^2` of the eigenvalues of the covariance of the columns.
        """
        num_rows, num_columns = feat.shape
        if num_columns > _MOST_COLUMNS or 2 * feat.nnz <= num_rows * num_columns:
            return None
        step = -(-num_rows // _MOST_ROWS)
        some = feat[::step]
        if keeps_empty:
            some = some[np.diff(some.indptr) > 0]
        values = some.toarray().astype(np.float64)
        mean = values.mean(axis=0)
        values -= mean
        covariance = values.T @ values / len(values)
        square, total = np.square(covariance).sum(), np.trace(covariance)
        if not total > 0 or total**2 > _MOST_DIMENSIONS * square:
            return None
        return cls(mean.astype(np.float32), float(np.sqrt(total)), keeps_empty)

    def __call__(self, feat: sp.csr_matrix) -> sp.csr_matrix:
        """Lift rows (M, F): (M, F + 1), float32."""
        height, width = feat.shape[0], feat.shape[1] + 1
        values = np.empty((height, width), dtype=np.float32)
        step = max(1, _BLOCK // width)
        for start in range(0, height, step):
            values[start : start + step, :-1] = feat[start : start + step].toarray() - self.mean
        values[:, -1] = self.length
        if self.keeps_empty:
            values[np.diff(feat.indptr) == 0] = 0
        return sp.csr_matrix(values)
