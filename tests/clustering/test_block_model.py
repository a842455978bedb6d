"""Block model: formulas against dense ones, and nodes that move to where they belong."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.stats import gamma, poisson
from sklearn.metrics import adjusted_rand_score

from user_dgl.clustering import block_model as module
from user_dgl.clustering.block_model import (
    RatePrior,
    block_bits,
    block_sums,
    evidence,
    indicator,
    log_rates,
    refine,
    word_scores,
)


def planted(sizes, inside, outside, seed=0):
    """Adjacency and clusters of a planted partition."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(clusters[:, None] == clusters, inside, outside)
    upper = np.triu(rng.random(chance.shape) < chance, 1)
    return sp.csr_matrix((upper + upper.T).astype(np.float64)), clusters


def shuffled(clusters, share, num_clusters, seed=0):
    """Clusters of which a share of the nodes has a random one."""
    rng = np.random.default_rng(seed)
    other = rng.integers(num_clusters, size=len(clusters))
    return np.where(rng.random(len(clusters)) < share, other, clusters)


def test_sums_and_bits_are_the_dense_formulas(monkeypatch):
    monkeypatch.setattr(module, "_SUMMED_ENTRIES", 16)  # of several blocks
    adjacency, clusters = planted([7, 5, 9], 0.6, 0.2)
    onehot = np.eye(4)[clusters]
    sums = block_sums(adjacency, clusters, 4)
    words = sp.csr_matrix(np.arange(63).reshape(21, 3) % 4)
    np.testing.assert_array_equal(
        module.cluster_sums(words, clusters, 4), onehot.T @ words.toarray()
    )
    np.testing.assert_array_equal(sums, onehot.T @ adjacency.toarray() @ onehot)
    share = (sums / sums.sum())[:3, :3]
    by_chance = np.outer(share.sum(1), share.sum(1))
    expected = sums.sum() / 2 * (share * np.log2(share / by_chance)).sum()
    assert block_bits(sums) == pytest.approx(expected)


def test_evidence_is_the_integral_over_the_rates():
    sums = np.array([[20.0, 3.0, 0.0], [3.0, 14.0, 2.0], [0.0, 2.0, 8.0]])
    bits, prior = evidence(sums)
    volumes = sums.sum(1)
    expected = np.outer(volumes, volumes) / volumes.sum()
    total = 0.0
    for k in range(3):
        for other in range(k, 3):
            half = 2 if k == other else 1
            count, mean = sums[k, other] / half, expected[k, other] / half
            shape, center = (
                (prior.shape_in, prior.mean_in) if k == other else (prior.shape_out, prior.mean_out)
            )

            def density(rate, count=count, mean=mean, shape=shape, center=center):
                return poisson.pmf(count, rate * mean) * gamma.pdf(
                    rate, shape, scale=center / shape
                )

            integral = quad(density, 0, 60, limit=400, points=[0.1, 1, 5])[0]
            total += np.log2(integral / poisson.pmf(count, mean))
    assert bits == pytest.approx(total, rel=1e-4)
    assert prior.mean_in > 1 > prior.mean_out


def test_evidence_prefers_the_true_number_of_clusters_but_bits_do_not():
    adjacency, clusters = planted([40] * 4, 0.3, 0.02)
    split = 2 * clusters + np.random.default_rng(0).integers(2, size=len(clusters))
    true, finer = block_sums(adjacency, clusters, 4), block_sums(adjacency, split, 8)
    joined = block_sums(adjacency, clusters // 2, 2)
    assert block_bits(finer) > block_bits(true)
    assert evidence(true)[0] > evidence(finer)[0]
    assert evidence(true)[0] > evidence(joined)[0]


def test_no_edges_say_nothing():
    bits, prior = evidence(np.zeros((3, 3)))
    assert bits == 0
    np.testing.assert_array_equal(log_rates(np.zeros((3, 3)), prior), 0)


def test_rates_lie_between_the_observed_ones_and_the_prior():
    sums = np.array([[20.0, 2.0, 0.0], [2.0, 6.0, 0.0], [0.0, 0.0, 0.0]])
    rates = np.exp(log_rates(sums, RatePrior(4.0, 1.5, 2.0, 0.7)))
    expected = np.outer([22, 8], [22, 8]) / 30
    assert rates[0, 0] == pytest.approx((10 + 4) / (expected[0, 0] / 2 + 4 / 1.5))
    assert rates[0, 1] == rates[1, 0] == pytest.approx((2 + 2) / (expected[0, 1] + 2 / 0.7))
    np.testing.assert_allclose(rates[2], [0.7, 0.7, 1.5])  # an empty cluster: the prior's means


def test_words_are_scored_by_their_shrunk_share():
    rng = np.random.default_rng(0)
    words = sp.csr_matrix((rng.random((9, 5)) < [0.5, 0.5, 0.5, 0.5, 0]).astype(np.float64))
    clusters = np.array([0, 0, 0, 1, 1, 1, 1, 0, 1])
    counts = np.eye(3)[clusters].T @ words.toarray()
    share = counts.sum(0) / counts.sum()  # 0 in the last column, which no node has
    shrunk = (counts + 2.5 * share) / (counts.sum(1, keepdims=True) + 2.5)
    scores = word_scores(words, clusters, 3, 2.5)
    np.testing.assert_allclose(scores[:4], np.log(shrunk[:, :4] / share[:4]).T)
    np.testing.assert_allclose(scores[:, 2], 0, atol=1e-12)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("with_words", [False, True])
@pytest.mark.parametrize("entries", [module._BLOCK_ENTRIES, 50])
def test_best_clusters_are_the_dense_ones(monkeypatch, with_words, entries):
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", entries)
    adjacency, clusters = planted([12, 9, 14], 0.4, 0.2)
    clusters = shuffled(clusters, 0.5, 3)
    words = sp.random(35, 20, 0.2, format="csr", rng=np.random.default_rng(0))
    words.data[:] = 1
    sums = block_sums(adjacency, clusters, 3)
    logs = log_rates(sums, evidence(sums)[1])
    degree = adjacency.toarray().sum(1)
    typical = word_scores(words, clusters, 3, 1.0)
    score = adjacency.toarray() @ logs[clusters]
    for i in range(35):
        for k in range(3):
            score[i, k] -= degree[i] * (np.exp(logs[:, k]) * sums.sum(1) / sums.sum()).sum()
    if with_words:
        score += words.toarray() @ typical
    of_words = (lambda rows: words[rows] @ typical) if with_words else None
    neighbors = sp.csr_matrix(adjacency @ indicator(clusters, 3))
    target, gain = module._best_clusters(neighbors, degree, clusters, sums, logs, of_words)
    np.testing.assert_array_equal(target, score.argmax(1))
    np.testing.assert_allclose(gain, score.max(1) - score[np.arange(35), clusters], atol=1e-9)


def test_refine_repairs_a_planted_partition():
    adjacency, clusters = planted([60, 40, 80], 0.3, 0.03)
    first = shuffled(clusters, 0.6, 3)
    given = first.copy()
    found = refine(adjacency, first, 3, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(first, given)
    assert found.dtype == np.int64
    assert adjusted_rand_score(clusters, first) < 0.4
    assert adjusted_rand_score(clusters, found) > 0.98
    again = refine(adjacency, first, 3, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(found, again)


def test_a_random_half_of_the_nodes_that_would_gain_moves():
    """Neighbours that all move at once can change places for ever."""
    adjacency, clusters = planted([80, 80, 80], 0.2, 0.05)
    first = shuffled(clusters, 0.5, 3)
    sums = block_sums(adjacency, first, 3)
    degree = adjacency.toarray().sum(1)
    logs = log_rates(sums, evidence(sums)[1])
    neighbors = adjacency @ module.indicator(first, 3)
    target, gain = module._best_clusters(neighbors, degree, first, sums, logs, None)
    would = gain > 0
    assert would.sum() > 60
    moves = []
    for seed in range(5):
        found = refine(adjacency, first, 3, 1, np.random.default_rng(seed))
        moved = found != first
        assert (found[moved] == target[moved]).all()
        assert not moved[~would].any()
        moves.append(moved)
    assert np.sum(moves) / (5 * would.sum()) == pytest.approx(0.5, abs=0.15)
    assert len({moved.tobytes() for moved in moves}) == 5


def test_refine_finds_two_sides_that_are_joined_only_across():
    adjacency, clusters = planted([60, 60], 0.0, 0.1)
    found = refine(adjacency, shuffled(clusters, 0.7, 2), 2, 30, np.random.default_rng(0))
    assert adjusted_rand_score(clusters, found) == 1


def test_words_decide_where_there_are_no_edges():
    clusters = np.repeat([0, 1], 20)
    rng = np.random.default_rng(0)
    words = np.zeros((41, 10))
    words[:40] = rng.random((40, 10)) < np.where(clusters[:, None] == np.arange(10) // 5, 0.8, 0.1)
    first = np.append(shuffled(clusters, 0.5, 2), 1)
    empty = sp.csr_matrix((41, 41))
    words = sp.csr_matrix(words)

    def scores(clusters, num_clusters):
        typical = word_scores(words, clusters, num_clusters, 1.0)
        return lambda rows: words[rows] @ typical

    found = refine(empty, first, 2, 20, np.random.default_rng(0), scores)
    assert adjusted_rand_score(clusters, found[:40]) > 0.9
    assert found[40] == 1, "a node without edges and words has moved"
    still = refine(empty, first, 2, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(still, first)


def test_no_cluster_loses_all_its_nodes():
    adjacency, _ = planted([30, 30], 0.4, 0.02)
    many = np.random.default_rng(1).integers(10, size=60)
    found = refine(adjacency, many, 10, 50, np.random.default_rng(0))
    assert len(np.unique(found)) == len(np.unique(many))


def test_a_node_moves_only_if_it_gains_enough():
    """Two halves by their words; two nodes in the wrong half gain 1 and 10 nats by a move."""
    empty = sp.csr_matrix((42, 42))
    first = np.repeat([0, 1, 0], [20, 20, 2])
    gains = np.zeros((42, 2))
    gains[:20, 0] = gains[20:40, 1] = 50  # so that the median lead is 50 nats
    gains[40, 1], gains[41, 1] = 1, 10

    def moved(least_gain: float, scale: float = 1.0) -> list[bool]:
        def scores(clusters: np.ndarray, num_clusters: int):
            return lambda rows: scale * gains[rows]

        rng = np.random.default_rng(0)
        found = refine(empty, first, 2, 20, rng, scores, least_gain=least_gain)
        np.testing.assert_array_equal(found[:40], first[:40])
        return (found[40:] == 1).tolist()

    assert moved(0.0) == [True, True]
    assert moved(2.0) == [False, True], "2 nats are less than a tenth of the median lead"
    assert moved(20.0) == [False, True], "a tenth of the median lead is 5 nats"
    assert moved(2.0, 0.01) == [False, True], "a tenth of the median lead is 0.05 nats"
    assert moved(0.005, 0.01) == [True, True]


def test_the_least_gain_is_that_of_the_start():
    """Later leads are smaller, and do not make small gains enough."""
    empty = sp.csr_matrix((41, 41))
    first = np.repeat([0, 1, 0], [20, 20, 1])
    calls = []

    def scores(clusters: np.ndarray, num_clusters: int):
        calls.append(clusters)
        lead = 50 if len(calls) == 1 else 1
        gains = np.zeros((41, 2))
        gains[:20, 0] = gains[20:40, 1] = lead
        gains[40, 1] = 10 if len(calls) == 1 else 1
        return lambda rows: gains[rows]

    # A seed whose first draw lets the last node stay, so that its gain is asked again.
    rng = next(
        np.random.default_rng(seed)
        for seed in range(20)
        if np.random.default_rng(seed).random(41)[40] >= 0.5
    )
    found = refine(empty, first, 2, 20, rng, scores, least_gain=2.0)
    assert len(calls) > 1
    np.testing.assert_array_equal(found, first)


def test_withdrawn_moves_are_those_of_least_gain():
    clusters = np.array([0, 0, 1, 2])
    target = np.array([1, 1, 2, 0])
    gain = np.array([2.0, 1.0, 5.0, 3.0])
    every = np.ones(4, dtype=bool)
    moves = module._without_emptying(clusters, target, gain, every, 3)
    assert moves.all(), "each cluster has a new node"
    moves = module._without_emptying(clusters, np.array([1, 1, 1, 2]), gain, every, 3)
    np.testing.assert_array_equal(moves, [True, False, True, True])


def test_wrong_arguments_are_refused():
    adjacency, clusters = planted([5, 5], 0.5, 0.1)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="concentration"):
        word_scores(adjacency, clusters, 2, 0.0)
    with pytest.raises(ValueError, match="clusters"):
        refine(adjacency, clusters, 1, 1, rng)
