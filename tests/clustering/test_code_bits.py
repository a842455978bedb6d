"""Bits of hard clusters: words and real values, against formulas and by sign."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import gammaln
from torch.distributions import MultivariateNormal

from user_dgl.clustering import code_bits
from user_dgl.clustering.code_bits import CodeBits, RealValues
from user_dgl.graph import Graph
from user_dgl.losses.code_length import (
    FeatureSums,
    edge_bits,
    edge_sums,
    gaussian_bits,
    gaussian_sums,
    predictive_feature_bits,
)

NONE = torch.zeros(60, 1)


def _words(rng, topics):
    """60 nodes of 3 clusters with 12 of 90 words each; a share ``topics`` is of the own topic."""
    clusters = np.repeat([0, 1, 2], 20)
    own = 30 * clusters[:, None] + rng.integers(0, 30, (60, 12))
    words = np.where(rng.random((60, 12)) < topics, own, rng.integers(0, 90, (60, 12)))
    rows = np.repeat(np.arange(60), 12)
    return clusters, sp.csr_matrix((np.ones(720), (rows, words.ravel())), shape=(60, 90))


def test_predictive_bits_equal_the_code_of_one_occurrence_after_the_other():
    occurrences = np.array([[3.0, 0, 1, 0], [0, 2, 2, 0]])
    bits, a = predictive_feature_bits(FeatureSums(torch.from_numpy(occurrences)))
    share = occurrences.sum(0) / occurrences.sum()
    total = 0.0
    for row in occurrences:
        seen = np.zeros(4)
        for column in np.repeat(np.arange(4), row.astype(int)):
            predicted = (seen[column] + a * share[column]) / (seen.sum() + a)
            total += math.log2(predicted / share[column])
            seen[column] += 1
    assert bits == pytest.approx(total)
    assert a in [3 * 2.0**power for power in range(-5, 6)]  # the empty column is not counted


def test_concentration_has_the_largest_evidence():
    clusters, words = _words(np.random.default_rng(0), 0.7)
    table = torch.from_numpy(np.eye(3)[clusters].T @ words.toarray())
    bits, best = predictive_feature_bits(FeatureSums(table))
    counts, share = table.numpy(), table.numpy().sum(0) / table.numpy().sum()
    counts, share = counts[:, share > 0], share[share > 0]

    def evidence(a):
        prior = a * share
        ratio = (gammaln(a) - gammaln(a + counts.sum(1))).sum()
        ratio += (gammaln(prior + counts) - gammaln(prior)).sum()
        return (ratio - (counts.sum(0) * np.log(share)).sum()) / np.log(2)

    assert bits == pytest.approx(evidence(best))
    assert bits >= max(evidence(best / 2), evidence(2 * best))


def test_random_clusters_save_no_bits_of_words_and_true_ones_do():
    rng = np.random.default_rng(1)
    clusters, words = _words(rng, 0.7)
    code = CodeBits(sp.csr_matrix((60, 60)), words, NONE)
    assert code.features(clusters, 3) > 50
    assert code.features(rng.permutation(clusters), 3) < 0


def test_each_nonzero_counts_once_and_columns_that_are_not_words_are_real_values():
    clusters, words = _words(np.random.default_rng(0), 0.7)
    none = sp.csr_matrix((60, 60))
    many = words.copy()
    many.data *= 5
    assert CodeBits(none, many, NONE).features(clusters, 3) == CodeBits(none, words, NONE).features(
        clusters, 3
    )
    negative = words.copy()
    negative.data[0] = -1
    assert CodeBits(none, negative, NONE).words is None
    dense = sp.csr_matrix(np.ones((60, 4)))
    assert CodeBits(none, dense, NONE).words is None


def test_real_values_save_bits_only_where_the_clusters_have_different_means():
    rng = np.random.default_rng(0)
    clusters = np.repeat([0, 1, 2], 20)
    noise = rng.normal(size=(60, 4))
    shifted = noise + 4 * np.eye(3, 4)[clusters]
    none = sp.csr_matrix((60, 60))

    def bits(values):
        points = torch.from_numpy(values.astype(np.float32))
        return CodeBits(none, sp.csr_matrix(values), points).features(clusters, 3)

    assert bits(noise) < 0
    assert bits(shifted) > 50
    # The sums are those of the loss, whose assignment is dense, with values that are imprecise.
    points = torch.from_numpy(shifted.astype(np.float32)).double()
    y = torch.eye(3, dtype=torch.float64)[clusters]
    sums = gaussian_sums(points - points.mean(0), y)
    sums = replace(sums, products=sums.products + 0.3 * sums.products.diagonal().diag())
    expected = gaussian_bits(sums).item()
    assert bits(shifted) == pytest.approx(expected - (3 - 1) * 4 / 2 * math.log2(60))
    # What is left of a constant is the rounding of its components, which no bits can be saved on.
    rounding = np.full((60, 2), 0.5) + 1e-7 * clusters[:, None]
    assert bits(np.hstack([rounding, noise])) == pytest.approx(bits(noise))


def test_edges_equal_the_bits_of_the_loss():
    rng = np.random.default_rng(0)
    graph, _ = Graph.from_edges(60, *rng.integers(0, 60, (2, 300)))
    clusters = rng.integers(0, 3, 60)
    code = CodeBits(graph.to_scipy(), sp.csr_matrix((60, 5)), NONE)
    y = torch.eye(3, dtype=torch.float64)[clusters]
    weight = torch.ones(graph.num_edges, dtype=torch.float64)
    expected = edge_bits(edge_sums(graph, weight, y, "csr")).item()
    assert code.edges(clusters, 3) == pytest.approx(expected)


def test_features_without_a_nonzero_save_nothing():
    code = CodeBits(sp.csr_matrix((60, 60)), sp.csr_matrix((60, 5)), NONE)
    assert code.features(np.repeat([0, 1, 2], 20), 3) == 0


def _shifted(rng):
    """60 nodes of 3 clusters with different means in 4 correlated columns far from 0."""
    clusters = np.repeat([0, 1, 2], 20)
    mixed = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    return clusters, (mixed + 100 + 4 * np.eye(3, 4)[clusters]).astype(np.float32)


def test_scores_of_real_values_are_log_likelihoods(monkeypatch):
    monkeypatch.setattr(code_bits, "_BLOCK_ROWS", 7)
    clusters, points = _shifted(np.random.default_rng(0))
    found = RealValues(points).scores(clusters, 4)(slice(10, 50))
    centred = torch.from_numpy(points).double()
    centred -= centred.mean(0)
    means = torch.stack([centred[clusters == k].mean(0) for k in range(3)])
    apart = centred - means[clusters]
    within = apart.t() @ apart / 60 + 0.3 * centred.square().mean(0).diag()
    # The last cluster is empty: its mean is taken as that of all nodes.
    means = torch.cat([means, torch.zeros(1, 4)])
    normal = MultivariateNormal(means, within)
    expected = normal.log_prob(centred[10:50, None])
    np.testing.assert_allclose(found, expected - expected[:, 3:], atol=1e-5)
    np.testing.assert_allclose(found[:, 3], 0)


def test_real_values_are_read_in_blocks(monkeypatch):
    clusters, points = _shifted(np.random.default_rng(0))
    at_once = RealValues(points).bits(clusters, 3)
    monkeypatch.setattr(code_bits, "_BLOCK_ROWS", 7)
    assert RealValues(points).bits(clusters, 3) == pytest.approx(at_once)


def test_constant_values_fit_to_all_clusters_alike():
    values = RealValues(np.full((60, 3), 0.1, dtype=np.float32))
    clusters = np.repeat([0, 1, 2], 20)
    assert values.bits(clusters, 3) == 0
    assert not values.scores(clusters, 3)(slice(0, 60)).any()


def test_clusters_by_chance_save_no_bits_of_as_many_columns_as_nodes():
    rng = np.random.default_rng(0)
    values = RealValues(rng.normal(size=(60, 60)).astype(np.float32))
    assert values.bits(rng.integers(0, 3, 60), 3) < 0


def test_a_flag_saves_about_its_entropy():
    """Values without a density would save bits without limit where they determine the clusters."""
    rng = np.random.default_rng(0)
    flag = np.repeat([0.0, 1.0], 500)
    values = RealValues(np.column_stack([flag, rng.normal(size=1000)]).astype(np.float32))
    clusters = flag.astype(np.int64)
    means = 2 / 2 * math.log2(1000)
    assert 1000 < values.bits(clusters, 2) + means < 1100
    scores = values.scores(clusters, 2)(slice(0, 1000))
    assert (scores.argmax(1) == clusters).all()


def test_many_columns_are_less_imprecise():
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 2, 4000)
    columns = rng.normal(size=(4000, 300)) + 0.3 * clusters[:, None]
    saved = RealValues(columns.astype(np.float32)).bits(clusters, 2)
    points = torch.from_numpy(columns)
    y = torch.eye(2, dtype=torch.float64)[clusters]
    exact = gaussian_bits(gaussian_sums(points - points.mean(0), y)).item()
    assert saved == pytest.approx(exact - 300 / 2 * math.log2(4000), rel=0.05)
