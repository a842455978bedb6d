"""The learned adjacency and its first weights."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import empty_graph, random_graph

from user_dgl.config import StructureConfig
from user_dgl.structure import LearnedAdjacency, inverse_softplus, prior_weight


def test_starts_at_the_given_weights_and_stays_non_negative():
    graph = random_graph()
    weight = torch.linspace(0, 30, graph.num_edges)
    structure = LearnedAdjacency(graph, torch.ones(graph.num_edges, dtype=torch.bool), weight)
    torch.testing.assert_close(structure(), weight.clamp_min(1e-3), rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        structure.theta -= 1000
    assert (structure() >= 0).all()


def test_weights_learn_unless_told_not_to():
    graph = random_graph()
    observed, ones = torch.ones(graph.num_edges, dtype=torch.bool), torch.ones(graph.num_edges)
    assert LearnedAdjacency(graph, observed, ones)().requires_grad
    assert not LearnedAdjacency(graph, observed, ones, learnable=False)().requires_grad


@pytest.mark.parametrize("weight", [1e-3, 0.5, 1.0, 50.0])
def test_inverse_softplus(weight):
    theta = inverse_softplus(torch.tensor(weight, dtype=torch.float64))
    assert torch.nn.functional.softplus(theta).item() == pytest.approx(weight)


def _prior(graph, feat, **settings):
    return prior_weight(StructureConfig(**settings), graph, sp.csr_matrix(feat))


def test_feature_cosine_prior_equals_its_formula(monkeypatch):
    monkeypatch.setattr("user_dgl.structure._BLOCK", 7)
    graph = random_graph()
    feat = sp.random(20, 6, density=0.5, random_state=0).toarray().astype(np.float32)
    norm = np.linalg.norm(feat, axis=1, keepdims=True)
    unit = np.divide(feat, norm, out=np.zeros_like(feat), where=norm > 0)
    cosine = (unit @ unit.T)[graph.src.numpy(), graph.dst.numpy()]
    expected = np.clip(cosine / cosine.mean(), 0.05, 4.0) ** 0.25
    found = _prior(graph, feat, prior="feature_cosine", prior_power=0.25)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.dtype == torch.float32
    assert found.std() > 0


def test_prior_without_use_is_uniform():
    graph, feat = random_graph(), np.ones((20, 2), dtype=np.float32)
    assert (_prior(graph, feat) == 1).all()
    assert (_prior(graph, 0 * feat, prior="feature_cosine") == 1).all()
    assert len(_prior(empty_graph(20), feat, prior="feature_cosine")) == 0
