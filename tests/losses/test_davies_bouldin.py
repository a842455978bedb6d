"""The Davies-Bouldin loss against its formulas."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from memberships import random_assignment, random_features

from user_dgl.features.matrix import FeatureMatrix
from user_dgl.losses.davies_bouldin import davies_bouldin, davies_bouldin_sums

FORMS = ("textbook", "soft_features")


def _hard(assignment):
    return torch.nn.functional.one_hot(assignment.argmax(1), assignment.shape[1]).double()


def _index(features, assignment, form):
    return davies_bouldin(davies_bouldin_sums(features, assignment, form))


def _textbook(x, y):
    """Eq. 4 with memberships as weights, written with loops."""
    num_clusters = y.shape[1]
    count = y.sum(0)
    centroid = [(y[:, k, None] * x).sum(0) / count[k] for k in range(num_clusters)]
    spread = [
        ((y[:, k] * ((x - centroid[k]) ** 2).sum(1)).sum() / count[k]).sqrt()
        for k in range(num_clusters)
    ]
    worst = [
        max(
            (spread[k] + spread[m]) / (centroid[k] - centroid[m]).norm()
            for m in range(num_clusters)
            if m != k
        )
        for k in range(num_clusters)
    ]
    return sum(worst) / num_clusters


def _soft_features(x, y):
    """The authors' form: features times membership before distances, (K, N, F) tensors."""
    member = y.t()[:, :, None]  # (K, N, 1)
    product = member * x  # (K, N, F)
    count = member.sum(1)  # (K, 1)
    centroid = product.sum(1) / count  # (K, F)
    square = member * centroid[:, None] ** 2 - 2 * member * centroid[:, None] * product + product**2
    spread = (square.sum((1, 2)) / count[:, 0]).sqrt()
    distance = torch.cdist(centroid, centroid)
    ratio = (spread[:, None] + spread) / distance.fill_diagonal_(math.inf)
    return ratio.max(1).values.mean()


@pytest.mark.parametrize(
    ("form", "oracle"), [("textbook", _textbook), ("soft_features", _soft_features)]
)
@pytest.mark.parametrize("density", [0.2, 0.9])
def test_davies_bouldin_equals_the_formula(form, oracle, density):
    features, x = random_features(density=density)
    y = random_assignment()
    torch.testing.assert_close(_index(features, y, form), oracle(x, y))
    torch.testing.assert_close(_index(features, _hard(y), form), oracle(x, _hard(y)))


def test_davies_bouldin_forms_are_one_for_a_hard_assignment():
    features, _ = random_features()
    hard, soft = _hard(random_assignment()), random_assignment()
    torch.testing.assert_close(_index(features, hard, FORMS[0]), _index(features, hard, FORMS[1]))
    assert abs(_index(features, soft, FORMS[0]) - _index(features, soft, FORMS[1])) > 1e-3


@pytest.mark.parametrize("form", FORMS)
def test_davies_bouldin_gradcheck(form):
    features, _ = random_features()
    y = random_assignment().requires_grad_()
    assert torch.autograd.gradcheck(lambda y: _index(features, y, form), (y,))


@pytest.mark.parametrize("form", FORMS)
def test_davies_bouldin_of_points_on_centroids(form):
    feat = sp.csr_matrix(np.array([[0.0, 0], [0, 0], [3, 4], [3, 4]]))
    features = FeatureMatrix(feat, torch.float64)
    y = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]], dtype=torch.float64, requires_grad=True)
    value = _index(features, y, form)
    assert value.item() == pytest.approx(0, abs=1e-5)
    (grad,) = torch.autograd.grad(value, y)
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("form", FORMS)
def test_davies_bouldin_degenerate_assignments_are_finite(form):
    features, _ = random_features()
    uniform = torch.full((20, 3), 1 / 3, dtype=torch.float64, requires_grad=True)
    one = _hard(torch.ones(20, 1).double())
    empty = torch.cat([_hard(random_assignment()), torch.zeros(20, 1).double()], 1)
    assert torch.isfinite(_index(features, uniform, form))
    (grad,) = torch.autograd.grad(_index(features, uniform, form), uniform)
    assert torch.isfinite(grad).all()
    assert _index(features, one, form).item() == 0
    torch.testing.assert_close(_index(features, empty, form), _index(features, empty[:, :4], form))


@pytest.mark.parametrize(
    ("form", "oracle"), [("textbook", _textbook), ("soft_features", _soft_features)]
)
@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-6])
def test_davies_bouldin_counts_clusters_that_hold_a_little(form, oracle, share):
    """Only what is left of an empty cluster by rounding is none."""
    features, x = random_features()
    y = random_assignment()
    little = share * y[:, [1]] * torch.linspace(0, 1, 20, dtype=torch.float64)[:, None]
    y = torch.cat([(1 - little) * y, little], 1)
    assert 0.1 * share < y[:, 4].sum() < 10 * share
    torch.testing.assert_close(_index(features, y, form), oracle(x, y), rtol=1e-6, atol=0)
    left_by_rounding = torch.cat([y[:, :4], 1e-9 * y[:, [1]]], 1)
    torch.testing.assert_close(
        _index(features, left_by_rounding, form), _index(features, y[:, :4], form)
    )


def test_davies_bouldin_is_unchanged_by_relabelling():
    features, _ = random_features()
    y = random_assignment()
    torch.testing.assert_close(
        _index(features, y[:, [3, 1, 0, 2]], "textbook"), _index(features, y, "textbook")
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("density", [0.2, 1.0])
def test_davies_bouldin_in_float32_of_nearly_coinciding_centroids(form, density):
    """Early in training Y is nearly uniform; centroids then differ in their last digits."""
    feat = 100 * sp.random(500, 40, density=density, random_state=0, format="csr")
    logits = torch.randn(500, 4, generator=torch.Generator().manual_seed(0)).double()
    y = (1e-3 * logits).softmax(1)
    exact = _index(FeatureMatrix(feat, torch.float64), y, form)
    found = _index(FeatureMatrix(feat, torch.float32), y.float(), form)
    assert exact > 100
    assert found.item() == pytest.approx(exact.item(), rel=0.05)


def test_davies_bouldin_in_float32_of_features_far_from_zero():
    x = np.random.default_rng(0).normal(10_000.0, 1.0, (200, 5))
    y = _hard(random_assignment(200))
    exact = _index(FeatureMatrix(sp.csr_matrix(x), torch.float64), y, "textbook")
    found = _index(FeatureMatrix(sp.csr_matrix(x)), y.float(), "textbook")
    assert found.item() == pytest.approx(exact.item(), rel=1e-3)
