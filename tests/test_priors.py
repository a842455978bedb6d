"""First weights of the observed edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import empty_graph, random_graph

from user_dgl.config import CriticConfig, StructureConfig, SyntheticConfig
from user_dgl.data import block_model
from user_dgl.evaluation.ranking_metrics import weight_auc
from user_dgl.perturb import random_flip
from user_dgl.structure.critic import POWERS, score_edges
from user_dgl.structure.false_discovery import edge_weight, noise_share
from user_dgl.structure.priors import prior_of


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


# --- critic --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy():
    data = block_model(
        SyntheticConfig(num_nodes=600, num_blocks=4, average_degree=8, mixing=0.0, topic_share=0.7)
    )
    return data, random_flip(data.graph, 0.5, seed=0)


def _criticise(graph, feat, seed=0, **settings):
    return score_edges(graph, feat, CriticConfig(**settings), seed, "csr")


def test_critic_finds_the_injected_edges_and_their_share(noisy):
    data, flipped = noisy
    criticism = _criticise(flipped.graph, data.feat)
    added = flipped.added.numpy()
    assert weight_auc(criticism.weight, added) > 80
    # A quarter of the injected pairs join two nodes of one block, which nothing tells apart.
    assert criticism.noise_share == pytest.approx(0.75 * added.mean(), abs=0.1)
    assert criticism.weight.min() >= np.float32(0.01)
    assert criticism.weight.max() <= 1


def test_critic_trusts_a_clean_graph_and_no_random_one(noisy):
    data, _ = noisy
    clean = _criticise(data.graph, data.feat)
    assert clean.noise_share < 0.1
    assert clean.weight.mean() > 0.9
    random = random_graph(600, 2400)
    assert _criticise(random, data.feat).noise_share > 0.7


def test_critic_repeats_with_the_seed(noisy):
    data, flipped = noisy
    first, again, other = (
        _criticise(flipped.graph, data.feat, seed=seed, folds=3) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.weight, again.weight)
    assert not np.array_equal(first.weight, other.weight)


def test_critic_engines_agree(noisy):
    data, flipped = noisy
    weights = [
        score_edges(flipped.graph, data.feat, CriticConfig(folds=3), 0, engine).weight
        for engine in ("csr", "dgl")
    ]
    np.testing.assert_allclose(*weights, atol=1e-3)


@pytest.mark.parametrize("graph", [empty_graph(20), random_graph(20, 1)])
def test_critic_of_next_to_no_edges_trusts_them(graph):
    criticism = _criticise(graph, sp.csr_matrix(np.eye(20)))
    assert (criticism.weight == 1).all()
    assert criticism.noise_share is None


def test_critic_power(noisy):
    data, flipped = noisy
    full, root = (_criticise(flipped.graph, data.feat, power=power) for power in (1.0, 0.5))
    np.testing.assert_allclose(root.weight, np.sqrt(full.weight), rtol=1e-6)
    assert root.noise_share == full.noise_share
    assert (root.power, root.power_scores) == (0.5, {})


def test_critic_is_trusted_as_far_as_it_foretells_edges():
    """Fully where features tell the blocks of a sparse graph, hardly where the graph tells more."""

    def judged(average_degree, topic_share, rate):
        settings = {"num_nodes": 600, "num_blocks": 4, "mixing": 0.0}
        data = block_model(
            SyntheticConfig(**settings, average_degree=average_degree, topic_share=topic_share)
        )
        flipped = random_flip(data.graph, rate, seed=0)
        return _criticise(flipped.graph, data.feat, power=None)

    telling, silent = judged(4, 0.5, 0.5), judged(20, 0.2, 0.2)
    for criticism in (telling, silent):
        assert set(criticism.power_scores) == set(POWERS)
        best = max(criticism.power_scores.values())
        assert criticism.power_scores[criticism.power] == best
    assert telling.power == max(POWERS)
    assert silent.power == min(POWERS)


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
