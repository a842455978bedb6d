"""Terms of the two judges: what each of them reads, and what it must not read."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import random_graph

from user_dgl.cleaning.terms import FeatureTerms, GraphTerms
from user_dgl.config import CriticConfig, SyntheticConfig
from user_dgl.data import block_model
from user_dgl.graph import Graph

CONFIG = CriticConfig(folds=4, num_components=6)


def _features(num_nodes, seed=0) -> sp.csr_matrix:
    return sp.random(num_nodes, 9, density=0.6, random_state=seed, format="csr", dtype=np.float32)


@pytest.mark.parametrize("kind", [GraphTerms, FeatureTerms])
def test_one_term_for_each_name(kind):
    graph = random_graph()
    terms = kind(graph, torch.ones(graph.num_edges), _features(20), CONFIG, 0, "csr")
    pairs = np.stack([graph.src.numpy(), graph.dst.numpy()])
    found = terms(pairs, terms.fold_of(pairs))
    assert found.shape == (graph.num_edges, len(terms.names))
    assert np.isfinite(found).all()
    assert len(set(terms.names)) == len(terms.names)


@pytest.mark.parametrize("kind", [GraphTerms, FeatureTerms])
def test_terms_do_not_see_the_weight_of_their_own_pair(kind):
    graph = random_graph()
    feat, ones = _features(20), torch.ones(graph.num_edges)
    terms = kind(graph, ones, feat, CONFIG, 0, "csr")
    pair = np.stack([graph.src.numpy(), graph.dst.numpy()])[:, :1]
    heavy = ones.clone()
    heavy[0] = 50
    fold = terms.fold_of(pair)
    assert np.array_equal(terms(pair, fold), terms.on(heavy)(pair, fold))


def test_expected_surroundings_ignore_the_edges_of_a_node():
    """Many edges at one node change what it is expected to be only through the regression."""
    data = block_model(SyntheticConfig(num_nodes=200, num_blocks=2))
    victim, strangers = 0, np.flatnonzero(data.labels != data.labels[0])[:40]
    keys = np.concatenate([data.graph.keys, victim * 200 + strangers])
    attacked = Graph.from_keys(200, keys)

    def seen(kind, graph):
        terms = kind(graph, torch.ones(graph.num_edges), data.feat, CONFIG, 0, "csr")
        return terms.expected() if kind is FeatureTerms else terms.smoothed()

    moved = {
        kind: 1 - float(seen(kind, data.graph)[victim] @ seen(kind, attacked)[victim])
        for kind in (GraphTerms, FeatureTerms)
    }
    assert moved[FeatureTerms] < 0.2 * moved[GraphTerms]
