"""Summary of the columns of features, against dense formulas."""

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.features.columns import KINDS, ColumnSummary, rows_differ


def test_against_dense():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(30, 8)).astype(np.float32)
    dense[rng.random(dense.shape) < 0.4] = 0
    dense[:, 2], dense[:, 5] = 0, np.arange(30) + 1
    feat = sp.csr_matrix(dense)
    summary = ColumnSummary.of(feat)
    np.testing.assert_array_equal(summary.least, dense.min(0))
    np.testing.assert_array_equal(summary.largest, dense.max(0))
    np.testing.assert_array_equal(summary.num_nonzeros, (dense != 0).sum(0))
    np.testing.assert_array_equal(summary.whole, (dense == np.rint(dense)).all(0))
    whole = ColumnSummary.of_all(feat)
    assert (whole.least[0], whole.largest[0]) == (dense.min(), dense.max())


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([0, 0, 0], "constant"),
        ([2.5, 2.5, 2.5], "constant"),
        ([0, 1, 1], "binary"),
        ([0, 1, 3], "counts"),
        ([2, 1, 3], "counts"),
        ([0, 0.5, 1], "non-negative"),
        ([0, -1, 1], "real"),
        ([-2, -1, -3], "real"),
    ],
)
def test_kinds(column, kind):
    feat = sp.csr_matrix(np.array(column, dtype=np.float32)[:, None])
    for summary in (ColumnSummary.of(feat), ColumnSummary.of_all(feat)):
        assert KINDS[summary.kinds[0]] == kind
        assert summary.counts_of_kinds() == {kind: 1}


def test_nothing():
    assert ColumnSummary.of(sp.csr_matrix((3, 0))).counts_of_kinds() == {}
    assert ColumnSummary.of_all(sp.csr_matrix((3, 2))).counts_of_kinds() == {"constant": 1}


def test_rows_that_differ():
    same = np.full((500, 3), 0.1, dtype=np.float32)
    assert not rows_differ(sp.csr_matrix(same))
    assert not rows_differ(sp.csr_matrix(same * (1 + 1e-7 * (np.arange(500)[:, None] % 3))))
    assert not rows_differ(sp.csr_matrix((5, 3)))
    for row in (0, 137, 499):  # in the rows that are looked at first, or only in one of the others
        other = same.copy()
        other[row, 1] = 0.2
        assert rows_differ(sp.csr_matrix(other))
    assert rows_differ(sp.csr_matrix(np.eye(3)))
