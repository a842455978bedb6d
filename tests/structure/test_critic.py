"""The critic of observed edges."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import empty_graph, random_graph, with_random_weights
from scipy.stats import spearmanr
from sklearn.preprocessing import normalize

from user_dgl.config import CriticConfig, SyntheticConfig
from user_dgl.data import block_model
from user_dgl.evaluation.ranking_metrics import weight_auc
from user_dgl.features.rows import ALL
from user_dgl.features.svd import truncated_svd
from user_dgl.perturb import random_flip
from user_dgl.structure import critic
from user_dgl.structure.critic import score_edges


@pytest.fixture(scope="module")
def noisy():
    data = block_model(
        SyntheticConfig(num_nodes=600, num_blocks=4, average_degree=8, mixing=0.0, topic_share=0.7)
    )
    return data, random_flip(data.graph, 0.5, seed=0)


def _scores_of(graph, feat, seed=0, **settings):
    return score_edges(graph, feat, CriticConfig(**settings), seed, "csr")


def test_critic_finds_the_injected_edges_and_their_share(noisy):
    data, flipped = noisy
    critic_scores = _scores_of(flipped.graph, data.feat)
    added = flipped.added.numpy()
    assert weight_auc(critic_scores.weight, added) > 80
    # A quarter of the injected pairs join two nodes of one block, which nothing tells apart. The
    # estimate is a little high, and one draw of the noise can be higher: so the mean of six.
    shares = [critic_scores.noise_share]
    for seed in range(1, 6):
        other = random_flip(data.graph, 0.5, seed=seed)
        shares.append(_scores_of(other.graph, data.feat).noise_share)
    assert np.mean(shares) == pytest.approx(0.75 * added.mean(), abs=0.1)
    assert critic_scores.weight.min() >= np.float32(0.01)
    assert critic_scores.weight.max() <= 1


def test_critic_trusts_a_clean_graph_and_no_random_one(noisy):
    data, _ = noisy
    clean = _scores_of(data.graph, data.feat)
    assert clean.noise_share < 0.1
    assert clean.weight.mean() > 0.9
    random = random_graph(600, 2400)
    assert _scores_of(random, data.feat).noise_share > 0.7


def test_critic_repeats_with_the_seed(noisy):
    data, flipped = noisy
    first, again, other = (
        _scores_of(flipped.graph, data.feat, seed=seed, folds=3) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.weight, again.weight)
    assert not np.array_equal(first.weight, other.weight)


def test_random_pairs_and_folds_are_others_for_another_seed(noisy, monkeypatch):
    data, flipped = noisy
    drawn, left_out = [], []
    pairs_of, views_of = critic.random_pairs, critic._views
    monkeypatch.setattr(
        critic, "random_pairs", lambda *args: drawn.append(pairs_of(*args)) or drawn[-1]
    )
    monkeypatch.setattr(critic, "_views", lambda *args: left_out.append(args[2]) or views_of(*args))
    for seed in (0, 1):
        _scores_of(flipped.graph, data.feat, seed=seed, folds=2)
    assert not np.array_equal(*drawn)
    folds = left_out[:2], left_out[2:]
    assert not np.array_equal(folds[0][0], folds[1][0])
    for parts in folds:  # each edge is judged once
        edges = np.sort(np.concatenate(parts))
        np.testing.assert_array_equal(edges, np.arange(flipped.graph.num_edges))


@pytest.mark.parametrize("columns", [200, 32], ids=["sparse cosines", "dense cosines"])
def test_a_large_graph_is_learned_from_a_share_of_its_pairs(monkeypatch, columns):
    """The weights rank nearly as those of all edges and pairs, and find the noise as well."""
    data = block_model(
        SyntheticConfig(num_nodes=2000, num_blocks=4, num_features=columns, topic_share=0.7)
    )
    flipped = random_flip(data.graph, 0.3, seed=0)
    whole = _scores_of(flipped.graph, data.feat, num_components=64)
    monkeypatch.setattr(critic, "_LARGE", 2000)
    monkeypatch.setattr(critic, "_MOST_FITTED", 5000)
    fitted, folds, views = [], [], critic._views
    monkeypatch.setattr(critic, "_views", lambda *args: folds.append(args) or views(*args))
    monkeypatch.setattr(critic, "edge_weight", lambda *args: fitted.append(args) or whole.weight)
    _scores_of(flipped.graph, data.feat, num_components=64)
    assert {(len(args[1]), len(args[3])) for args in fitted} == {(5000, 5000)}
    assert len(folds) == 5
    monkeypatch.undo()
    monkeypatch.setattr(critic, "_LARGE", 2000)
    monkeypatch.setattr(critic, "_MOST_FITTED", 5000)
    part = _scores_of(flipped.graph, data.feat, num_components=64)
    # Another seed draws other pairs and folds too, and so shows what chance does.
    other = _scores_of(flipped.graph, data.feat, seed=1, num_components=64)
    alike, by_chance = (spearmanr(whole.weight, each.weight)[0] for each in (part, other))
    # The weights are steps of a curve, whose places rounding may move from machine to machine.
    assert alike > 0.87
    assert alike > by_chance - 0.03
    assert part.noise_share == pytest.approx(whole.noise_share, abs=0.03)
    added = flipped.added.numpy()
    assert weight_auc(part.weight, added) > weight_auc(whole.weight, added) - 1


def test_edges_are_judged_on_the_graph_without_them(noisy):
    """The features are smoothed over the other edges, with their first weights and their own."""
    data, flipped = noisy
    graph = with_random_weights(flipped.graph)
    rng = np.random.default_rng(0)
    first = rng.uniform(0.1, 1, graph.num_edges).astype(np.float32)
    left_out = rng.choice(graph.num_edges, 500, replace=False)
    config = CriticConfig(hops=3, self_share=0.3)
    reduced = torch.from_numpy(truncated_svd(normalize(data.feat), 40, 0))
    fine, coarse = critic._views(graph, first, left_out, reduced, config, 0, "csr", ALL)
    adjacency = graph.to_scipy(torch.from_numpy(first) * graph.weight).toarray()
    src, dst = graph.src.numpy()[left_out], graph.dst.numpy()[left_out]
    adjacency[src, dst] = adjacency[dst, src] = 0
    adjacency += np.eye(len(adjacency))
    root = 1 / np.sqrt(adjacency.sum(1))
    s, x = root[:, None] * adjacency * root, reduced.numpy()
    expected = normalize(0.3 * x + 0.7 / 3 * (s @ x + s @ s @ x + s @ s @ s @ x))
    np.testing.assert_allclose(fine, expected, atol=1e-4)
    topics = normalize(truncated_svd(expected, critic.COARSE_COMPONENTS, 0))
    np.testing.assert_allclose(coarse @ coarse[:50].T, topics @ topics[:50].T, atol=1e-3)


def test_critic_engines_agree(noisy):
    data, flipped = noisy
    # The weights are steps of a curve, and the rounding of float32 may move the place of a step.
    feat = data.feat.astype(np.float64)
    weights = [
        score_edges(flipped.graph, feat, CriticConfig(folds=3), 0, engine).weight
        for engine in ("csr", "dgl")
    ]
    np.testing.assert_allclose(*weights, atol=1e-3)


@pytest.mark.parametrize("graph", [empty_graph(20), random_graph(20, 1)])
def test_critic_of_next_to_no_edges_trusts_them(graph):
    critic_scores = _scores_of(graph, sp.csr_matrix(np.eye(20)))
    assert (critic_scores.weight == 1).all()
    assert critic_scores.noise_share is None


def test_critic_power(noisy):
    data, flipped = noisy
    full, root = (_scores_of(flipped.graph, data.feat, power=power) for power in (1.0, 0.5))
    np.testing.assert_allclose(root.weight, np.sqrt(full.weight), rtol=1e-6)
    assert root.noise_share == full.noise_share
    assert root.power == 0.5
