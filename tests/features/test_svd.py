"""Truncated SVD of features."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from user_dgl.errors import InputError
from user_dgl.features import svd
from user_dgl.features.svd import svd_with_axes, truncated_svd


@pytest.fixture(params=[20_000, 1], ids=["randomised", "by X^T X"], autouse=True)
def _tall(request, monkeypatch):
    """Both ways of the decomposition."""
    monkeypatch.setattr(svd, "_TALL", request.param)


@pytest.fixture
def feat():
    """Random counts with an empty column (3), a full one (0) and a zero row (4)."""
    rng = np.random.default_rng(0)
    dense = rng.integers(1, 6, (9, 7)) * (rng.random((9, 7)) < 0.5)
    dense[:, 0] = 2
    dense[:, 3] = 0
    dense[4] = 0
    return sp.csr_matrix(dense.astype(np.float32))


@pytest.mark.parametrize("container", [sp.csr_matrix, np.asarray])
def test_svd_equals_lapack(container):
    rng = np.random.default_rng(1)
    low_rank = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 40))
    reduced = truncated_svd(container(low_rank.astype(np.float32)), 5, seed=0)
    left, values, _ = np.linalg.svd(low_rank, full_matrices=False)
    assert reduced.shape == (60, 5)
    assert reduced.dtype == np.float32
    # Singular vectors are unique up to their sign.
    np.testing.assert_allclose(
        np.abs(reduced), np.abs(left[:, :5] * values[:5]), rtol=1e-3, atol=1e-3
    )
    # No direction is lost, so inner products of rows are those of X.
    np.testing.assert_allclose(reduced @ reduced.T, low_rank @ low_rank.T, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("container", [sp.csr_matrix, np.asarray])
def test_both_ways_agree(container, monkeypatch):
    rows = np.random.default_rng(0).normal(size=(300, 12)) * 2.0 ** -np.arange(12)
    rows = container(rows.astype(np.float32))
    monkeypatch.setattr(svd, "_BLOCK_ROWS", 70)
    found = []
    for bound in (301, 300):
        monkeypatch.setattr(svd, "_TALL", bound)
        found.append(svd_with_axes(rows, 5, seed=0))
    # A sparse matrix with few zeros is multiplied in dense blocks, and others as they are.
    monkeypatch.setattr(svd, "_DENSE", 1.0)
    np.testing.assert_allclose(svd_with_axes(rows, 5, seed=0)[1], found[1][1], atol=1e-6)
    (one, axes), (other, other_axes) = found
    sign = np.sign((axes * other_axes).sum(0))
    np.testing.assert_allclose(one * sign, other, rtol=0, atol=1e-5)
    np.testing.assert_allclose(axes * sign, other_axes, rtol=0, atol=1e-5)


def test_svd_is_deterministic(feat):
    np.testing.assert_array_equal(truncated_svd(feat, 3, 5), truncated_svd(feat, 3, 5))


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (1, 4), (4, 1), (1, 1)])
def test_svd_of_small_features_keeps_what_there_is(shape):
    feat = sp.random(*shape, density=1.0, format="csr", dtype=np.float32, random_state=0)
    reduced = truncated_svd(feat, 64, seed=0)
    assert reduced.shape == (shape[0], min(shape))
    dense = feat.toarray()
    np.testing.assert_allclose(reduced @ reduced.T, dense @ dense.T, rtol=1e-4, atol=1e-5)


def test_svd_of_zeros_is_zero():
    np.testing.assert_array_equal(truncated_svd(sp.csr_matrix((5, 4)), 2, 0), np.zeros((5, 2)))


@pytest.mark.parametrize(("shape", "num_components"), [((5, 0), 2), ((0, 5), 2), ((5, 5), 0)])
def test_svd_refuses_what_has_none(shape, num_components):
    with pytest.raises(InputError, match="SVD"):
        truncated_svd(sp.csr_matrix(shape), num_components, 0)


def test_axes_give_other_rows_their_components(feat):
    components, axes = svd_with_axes(feat, 7, seed=0)
    np.testing.assert_array_equal(components, truncated_svd(feat, 7, seed=0))
    # Sums of 7 products in float32, in any order.
    bound = 7 * np.finfo(np.float32).eps * (abs(feat) @ abs(axes)).max()
    np.testing.assert_allclose(feat @ axes, components, rtol=0, atol=bound)


@pytest.mark.parametrize("shape", [(300, 500), (500, 300), (90, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [False, True])
def test_randomised_svd_is_that_of_scikit_learn(shape, dtype, dense, monkeypatch):
    monkeypatch.setattr(svd, "_TALL", 20_000)
    feat = sp.random(*shape, 0.05, format="csr", dtype=dtype, rng=np.random.default_rng(0))
    if dense:
        feat = feat.toarray()
    left, values, right = randomized_svd(feat, 32, random_state=3)
    components, axes = svd_with_axes(feat, 32, 3, dtype=dtype)
    expected = left * values
    expected[np.asarray(feat.sum(1)).ravel() == 0] = 0
    np.testing.assert_array_equal(components, expected)
    np.testing.assert_array_equal(axes, right.T)
    assert components.dtype == axes.dtype == dtype


def test_rows_of_zeros_stay_zero():
    feat = np.random.default_rng(0).normal(size=(40, 30))
    feat[[0, 7, 39]] = 0
    for given in (feat, sp.csr_matrix(feat)):
        components = truncated_svd(given, 30, 0)
        np.testing.assert_array_equal(np.flatnonzero(~components.any(axis=1)), [0, 7, 39])
