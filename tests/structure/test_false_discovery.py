"""Shares of noise and weights of edges, from the scores of edges and of random pairs."""

import numpy as np
import pytest

from user_dgl.structure.false_discovery import edge_weight, noise_share


def test_edge_weight_is_one_minus_the_local_false_discovery_rate():
    """Scores of two values, where every density is a count."""
    null = np.array([0.0] * 90 + [1.0] * 10)
    edges = np.array([0.0] * 20 + [1.0] * 80)
    weight = edge_weight(edges, null, share=0.2)
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
