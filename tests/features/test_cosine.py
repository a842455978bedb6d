"""Dot products of pairs of rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.features import cosine
from user_dgl.features.cosine import row_dots


@pytest.mark.parametrize("form", ["dense", "columns first", "float64", "sparse"])
def test_dots_of_pairs(form, monkeypatch):
    monkeypatch.setattr(cosine, "_BLOCK_DENSE", 30)  # blocks of six pairs
    monkeypatch.setattr(cosine, "_BLOCK_VALUES", 30)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((7, 5)).astype(np.float64 if form == "float64" else np.float32)
    u, v = rng.integers(0, 7, (2, 20))
    given = {"columns first": np.asfortranarray, "sparse": sp.csr_matrix}.get(form, np.asarray)
    dots = row_dots(given(rows), u, v)
    assert dots.dtype == np.float64
    np.testing.assert_allclose(dots, (rows[u] * rows[v]).sum(1), rtol=1e-5)
    assert not len(row_dots(given(rows), u[:0], v[:0]))


@pytest.mark.parametrize("outside", [-8, 7])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_ends_outside_of_the_rows_are_refused(form, outside):
    with pytest.raises(IndexError):
        row_dots(form(np.ones((7, 2))), np.array([0, 1]), np.array([outside, 2]))
