r"""One more column, by which rows of norm 1 keep where a node lies, for tables of few columns.

All stages compare nodes by cosines. In many dimensions nearly all points have the same distance
from the mean, and the direction is what tells clusters apart. In few dimensions it is not: on a
line there are two directions only, and a large cluster at the mean has none. Points with one more
coordinate, the same for all, are told apart by their directions alone:

.. math:: x_i \leftarrow (x_i - m, c), \qquad c^2 = \frac1N \sum_i \|x_i - m\|^2

These are homogeneous coordinates; the rows of norm 1 are the central projection of the points to a
sphere that touches them at their mean m. Not in the paper, whose features are words.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from user_dgl.features.columns import LEAST_SPREAD, csr_of_dense, some_rows

# Most columns, and most effective dimensions, of a table that is lifted. Clusters in space with 1
# to 16 dimensions gain up to 40 points of NMI; real values with 35 and more effective dimensions
# lose up to 8.
MOST_COLUMNS, _MOST_DIMENSIONS = 64, 16
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
    """

    mean: np.ndarray
    length: float

    @classmethod
    def of(cls, feat: sp.csr_matrix, empty: np.ndarray) -> "Lift | None":
        r"""Lift features (N, F) of few effective dimensions; others: None.

        The effective dimensions are the participation ratio :math:`(\sum_j \lambda_j)^2 / \sum_j
        \lambda_j^2` of the eigenvalues of the covariance of the columns. Rows that are ``empty``,
        bool (N,), do not count.
        """
        num_columns = feat.shape[1]
        filled = np.flatnonzero(~empty)
        if not num_columns or not len(filled):
            return None
        values = some_rows(feat, filled, np.arange(num_columns))
        mean = values.mean(axis=0)
        values -= mean
        covariance = values.T @ values / len(values)
        square, total = np.square(covariance).sum(), np.trace(covariance)
        # What is left of constant columns is their rounding.
        if total <= np.square(LEAST_SPREAD * np.linalg.norm(mean)) or total == 0:
            return None
        if total**2 > _MOST_DIMENSIONS * square:
            return None
        return cls(mean.astype(np.float32), float(np.sqrt(total)))

    def __call__(self, feat: sp.csr_matrix, empty: np.ndarray) -> sp.csr_matrix:
        """Lift rows (M, F): (M, F + 1), float32. Those that are empty, bool (M,), are 0."""
        height, width = feat.shape[0], feat.shape[1] + 1
        values = np.empty((height, width), dtype=np.float32)
        step = max(1, _BLOCK // width)
        for start in range(0, height, step):
            values[start : start + step, :-1] = feat[start : start + step].toarray() - self.mean
        values[:, -1] = self.length
        values[empty] = 0
        return csr_of_dense(values)
