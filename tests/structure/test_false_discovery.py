"""Shares of noise and weights of edges, from the scores of edges and of random pairs."""

import numpy as np
import pytest

from user_dgl.cleaning.posterior import _compared
from user_dgl.structure.false_discovery import edge_weight, noise_share


def test_edge_weight_is_one_minus_the_local_false_discovery_rate():
    """Scores of two values, where every density is a count."""
    null = np.array([0.0] * 90 + [1.0] * 10)
    edges = np.array([0.0] * 20 + [1.0] * 80)
    weight = edge_weight(edges, null, share=0.2)
    np.testing.assert_allclose(weight[:20], 1 - 0.2 * 0.9 / 0.2, rtol=1e-5)
    np.testing.assert_allclose(weight[20:], 1 - 0.2 * 0.1 / 0.8, rtol=1e-5)


@pytest.mark.parametrize("times", [1, 3])
def test_the_number_of_random_pairs_does_not_change_the_weights(times):
    """Densities are compared, and not numbers."""
    null = np.repeat([0.0] * 9 + [1.0], times * 10)
    edges = np.array([0.0] * 20 + [1.0] * 80)
    weight = edge_weight(edges, null, share=0.2, fitted=np.arange(0, 100, 2))
    np.testing.assert_allclose(weight[:20], 1 - 0.2 * 0.9 / 0.2, rtol=1e-5)
    np.testing.assert_allclose(weight[20:], 1 - 0.2 * 0.1 / 0.8, rtol=1e-5)


def test_edge_weight_never_falls_with_the_score():
    rng = np.random.default_rng(0)
    edges, null = rng.normal(1, 1, 500), rng.normal(0, 1, 400)
    weight = edge_weight(edges, null, share=0.5)
    assert (np.diff(weight[np.argsort(edges)]) >= 0).all()


def test_noise_share():
    null = np.arange(100.0)
    assert noise_share(null, null) == 1
    assert noise_share(null + 1000, null) == 0
    mixed = np.concatenate([null, null + 1000])
    assert noise_share(mixed, null) == pytest.approx(0.5)
    assert noise_share(null - 1000, null) == 1


def test_noise_share_of_scores_that_are_mostly_equal():
    """Scores that are constant below a knot: among them random edges are as usual as elsewhere."""
    null = np.array([0.0] * 60 + [1.0] * 30 + [2.0] * 10)
    real = np.full(100, 3.0)
    edges = np.concatenate([null, real])  # half of them look random
    assert noise_share(edges, null, ties_below=True) == pytest.approx(0.5)
    score = np.concatenate([edges, null])
    weight, share = _compared(score, np.arange(len(score)) < 200)
    assert share == pytest.approx(0.5)
    assert weight[100:].min() == 1
