"""Feature products against dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from user_dgl.features.matrix import FeatureMatrix


def _feat(density, seed=0):
    return sp.random(30, 12, density=density, random_state=seed, format="csr")


@pytest.mark.parametrize(("density", "sparse"), [(0.1, True), (0.9, False), (0.0, True)])
def test_products_and_gradients(density, sparse):
    feat = _feat(density)
    features = FeatureMatrix(feat, torch.float64)
    assert features.is_sparse is sparse
    x = torch.from_numpy(feat.toarray())
    right = torch.randn(12, 4, dtype=torch.float64, requires_grad=True)
    left = torch.randn(30, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(features.matmul(right), x @ right)
    torch.testing.assert_close(features.t_matmul(left), x.t() @ left)
    centred = x - x.mean(0)
    torch.testing.assert_close(features.centred_matmul(right), centred @ right)
    torch.testing.assert_close(features.centred_t_matmul(left), centred.t() @ left)
    assert torch.autograd.gradcheck(features.matmul, (right,))
    assert torch.autograd.gradcheck(features.t_matmul, (left,))


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_statistics(density):
    feat = _feat(density)
    features, x = FeatureMatrix(feat, torch.float64), feat.toarray()
    np.testing.assert_allclose(features.column_mean, x.mean(0))
    np.testing.assert_allclose(features.column_variance, x.var(0), atol=1e-15)
    np.testing.assert_allclose(features.squared_norm, (x**2).sum(1))
    np.testing.assert_allclose(features.centred_squared_norm, ((x - x.mean(0)) ** 2).sum(1))
    assert features.shape == (30, 12)


def test_statistics_keep_their_digits_far_from_zero():
    column = np.random.default_rng(0).normal(20_000.0, 0.5, (1000, 1)).astype(np.float32)
    features = FeatureMatrix(sp.csr_matrix(column))
    assert features.column_variance.item() == pytest.approx(column.astype(float).var(), rel=1e-5)
    spread = features.centred_matmul(torch.ones(1, 1)).std(correction=0).item()
    assert spread == pytest.approx(column.astype(float).std(), rel=1e-4)


def test_input_is_left_alone():
    feat = _feat(0.2).astype(np.float32)
    before = feat.copy()
    FeatureMatrix(feat).matmul(torch.ones(12, 2))
    assert (feat != before).nnz == 0


def test_integer_features_are_taken():
    features = FeatureMatrix(sp.csr_matrix(np.array([[1, 0, 0, 0], [0, 0, 0, 3]])))
    assert features.matmul(torch.ones(4, 1)).ravel().tolist() == [1.0, 3.0]


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_rows_keep_the_statistics_of_all(density):
    feat = _feat(density)
    whole = FeatureMatrix(feat, torch.float64)
    whole.matmul(torch.ones(12, 1, dtype=torch.float64))
    ids = torch.tensor([3, 0, 17])
    rows, x = whole.rows(ids), torch.from_numpy(feat.toarray())
    right = torch.randn(12, 4, dtype=torch.float64)
    left = torch.randn(3, 4, dtype=torch.float64)
    torch.testing.assert_close(rows.centred_matmul(right), (x - x.mean(0))[ids] @ right)
    torch.testing.assert_close(rows.centred_t_matmul(left), (x - x.mean(0))[ids].t() @ left)
    torch.testing.assert_close(rows.squared_norm, whole.squared_norm[ids])
    torch.testing.assert_close(rows.centred_squared_norm, whole.centred_squared_norm[ids])
    assert (rows.shape, whole.shape) == ((3, 12), (30, 12))


@pytest.mark.parametrize("density", [0.1, 0.6])
def test_pattern_counts_each_non_zero_once(density):
    feat = sp.random(30, 12, density=density, random_state=0, format="csr")
    feat.data -= 0.5
    feat.data[0] = 0.0  # a zero that is stored
    features, ones = FeatureMatrix(feat, torch.float64), torch.eye(30, dtype=torch.float64)
    expected = torch.from_numpy((feat.toarray() != 0).astype(float))
    torch.testing.assert_close(features.pattern.t_matmul(ones).t(), expected)
    rows = torch.arange(5, 9)
    torch.testing.assert_close(
        features.rows(rows).pattern.t_matmul(ones[:4, :4]).t(), expected[rows]
    )
