"""Random pairs: every pair is equally likely, and none is a node with itself."""

import numpy as np
import pytest
import torch
from graphs import random_graph
from scipy.stats import chisquare

from user_dgl.graph import Graph, pair_keys
from user_dgl.graph.pairs import draw_pairs, random_pairs, sample_pairs

EVERY = [u * 5 + v for u in range(5) for v in range(u + 1, 5)]  # keys of all pairs of 5 nodes


def _even(keys):
    """Whether the keys are those of all pairs of five nodes, each about as often."""
    found, counts = np.unique(keys, return_counts=True)
    assert found.tolist() == EVERY
    return chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("excluded", [[], [0], [1, 3, 9], [0, 1, 2, 6, 7], [*range(2, 10)]])
def test_drawn_pairs_are_all_but_the_excluded_ones(excluded):
    excluded = np.array(EVERY)[excluded]
    others = np.setdiff1d(EVERY, excluded)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(np.sort(draw_pairs(5, len(others), excluded, rng)), others)
    single = np.concatenate([draw_pairs(5, 1, excluded, rng) for _ in range(500)])
    found, counts = np.unique(single, return_counts=True)
    np.testing.assert_array_equal(found, others)
    assert chisquare(counts).pvalue > 0.001


def test_random_pairs_are_equally_likely():
    u, v = random_pairs(5, 20_000, np.random.default_rng(0))
    assert len(u) == 20_000
    assert _even(pair_keys(5, u, v))


def test_random_pairs_without_those_held_out():
    held_out = np.array(EVERY[2:9:3])
    rng, other = (np.random.default_rng(0) for _ in range(2))
    kept, every = random_pairs(5, 500, rng, held_out), random_pairs(5, 500, other)
    out = np.isin(pair_keys(5, *every), held_out)
    assert out.any()
    np.testing.assert_array_equal(kept, every[:, ~out])


def test_sampled_pairs_are_equally_likely_and_know_the_edges():
    graph, _ = Graph.from_edges(5, [0, 1, 3], [2, 4, 4])
    pairs = sample_pairs(graph, 20_000, torch.Generator().manual_seed(0))
    keys = (pairs.low * 5 + pairs.high).numpy()
    assert (pairs.low < pairs.high).all()
    assert _even(keys)
    np.testing.assert_array_equal(pairs.is_edge, np.isin(keys, graph.keys))


@pytest.mark.parametrize("num_nodes", [0, 1])
def test_no_pair_of_fewer_than_two_nodes(num_nodes):
    graph, _ = Graph.from_edges(num_nodes, [], [])
    assert len(sample_pairs(graph, 7).low) == 0


def test_samples_repeat_with_the_generator():
    one, same, other = (
        sample_pairs(random_graph(), 50, torch.Generator().manual_seed(seed)).low
        for seed in (3, 3, 4)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
