"""First weights of the observed edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import empty_graph, random_graph

from user_dgl.cleaning import posterior, priors
from user_dgl.cleaning.posterior import NOISY, edge_posterior
from user_dgl.cleaning.priors import prior_of
from user_dgl.config import CriticConfig, StructureConfig, SyntheticConfig
from user_dgl.data import block_model
from user_dgl.evaluation.ranking_metrics import weight_auc
from user_dgl.perturb.random_flip import random_flip
from user_dgl.structure.critic import score_edges


def _prior(graph, feat, **settings):
    feat = sp.csr_matrix(feat)
    config = StructureConfig(**settings)
    return prior_of(config, graph, feat, 0, "csr").weight


def test_feature_cosine_prior_equals_its_formula(monkeypatch):
    monkeypatch.setattr("user_dgl.features.cosine._BLOCK_VALUES", 7)
    graph = random_graph()
    feat = sp.random(20, 6, density=0.5, random_state=0).toarray().astype(np.float32)
    norm = np.linalg.norm(feat, axis=1, keepdims=True)
    unit = np.divide(feat, norm, out=np.zeros_like(feat), where=norm > 0)
    cosine = (unit @ unit.T)[graph.src.numpy(), graph.dst.numpy()]
    expected = np.clip(cosine / cosine.mean(), 0.05, 4.0) ** 0.25
    found = _prior(graph, feat, prior="feature_cosine", prior_power=0.25)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert str(found.dtype) == "torch.float32"
    assert found.std() > 0


def test_prior_without_use_is_uniform():
    graph, feat = random_graph(), np.ones((20, 2), dtype=np.float32)
    assert (_prior(graph, feat) == 1).all()
    assert (_prior(graph, 0 * feat, prior="feature_cosine") == 1).all()
    assert len(_prior(empty_graph(20), feat, prior="feature_cosine")) == 0


@pytest.fixture(scope="module")
def noisy():
    """A block model, its graph with as many random edges as there were, and its features."""
    data = block_model(SyntheticConfig(num_nodes=400, num_blocks=4, average_degree=10))
    return data, random_flip(data.graph, 1.0, seed=0).graph


def scores(graph, feat, prior, held_out=None, **critic):
    config = StructureConfig(prior=prior, critic=CriticConfig(**critic))
    return prior_of(config, graph, feat, 0, "csr", held_out).critic_scores


def test_posterior_asks_the_judges_where_there_is_noise(noisy):
    data, graph = noisy
    critic, found = (scores(graph, data.feat, prior) for prior in ("critic", "posterior"))
    assert critic.noise_share > NOISY
    assert found.by_judges
    assert not critic.by_judges
    judged = edge_posterior(graph, data.feat, 0, "csr")
    np.testing.assert_array_equal(found.weight, judged.probability)
    assert found.noise_share == judged.noise_share
    added = data.graph.positions(graph.keys) < 0
    assert weight_auc(found.weight, added) > weight_auc(critic.weight, added)
    squared = scores(graph, data.feat, "posterior", power=2.0)
    np.testing.assert_allclose(squared.weight, found.weight**2, rtol=1e-5)
    assert squared.power == 2


def test_many_edges_are_judged_by_the_curve_of_a_part(noisy, monkeypatch):
    data, graph = noisy
    whole, fitted = edge_posterior(graph, data.feat, 0, "csr"), []
    compare = posterior.edge_weight
    monkeypatch.setattr(posterior, "edge_weight", lambda *a: fitted.append(a[3]) or compare(*a))
    monkeypatch.setattr(posterior, "_MOST_COMPARED", graph.num_edges // 2)
    part = edge_posterior(graph, data.feat, 0, "csr")
    assert {len(np.unique(edges)) for edges in fitted} == {graph.num_edges // 2}
    assert part.noise_share == whole.noise_share
    np.testing.assert_allclose(part.probability.mean(), whole.probability.mean(), atol=0.03)
    assert np.abs(part.probability - whole.probability).mean() < 0.05
    added = data.graph.positions(graph.keys) < 0
    assert weight_auc(part.probability, added) > weight_auc(whole.probability, added) - 1


def test_posterior_is_the_critic_where_there_is_little_noise(noisy, monkeypatch):
    data, graph = noisy
    monkeypatch.setattr(priors, "NOISY", 1.0)
    found = scores(graph, data.feat, "posterior")
    expected = score_edges(graph, data.feat, CriticConfig(), 0, "csr")
    np.testing.assert_array_equal(found.weight, expected.weight)
    assert not found.by_judges


def test_posterior_keeps_the_critic_if_features_say_nothing(noisy):
    graph = noisy[1]
    rng = np.random.default_rng(0)
    nothing = sp.csr_matrix(rng.normal(size=(400, 5)).astype(np.float32))
    found = scores(graph, nothing, "posterior")
    assert not found.by_judges
    np.testing.assert_array_equal(found.weight, scores(graph, nothing, "critic").weight)
