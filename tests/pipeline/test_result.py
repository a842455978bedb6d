"""Parts of ``result.json`` that need no run."""

import numpy as np
import pytest
import torch

from user_dgl.graph import Graph
from user_dgl.pipeline.result import trust_of


@pytest.fixture
def graph():
    rng = np.random.default_rng(0)
    u, v = np.nonzero(np.triu(rng.random((80, 80)) < 0.3, 1))
    return Graph.from_edges(80, u, v, rng.lognormal(0, 3, len(u)))[0]


def test_edges_of_equal_trust_are_equal_whatever_their_weight(graph):
    levels = torch.tensor([1.0, 1 / 3, 0.017, 3e-9, 0.0])
    level = torch.arange(graph.num_edges) % 5
    trust = trust_of((levels[level] * graph.edge_weight).numpy(), graph)
    assert len(np.unique(trust)) == 5
    np.testing.assert_allclose(trust, levels[level].numpy(), rtol=2e-6)


def test_without_weights_trust_is_the_weight_of_a(graph):
    plain = Graph.from_keys(graph.num_nodes, graph.keys)
    weight = np.random.default_rng(1).random(graph.num_edges).astype(np.float32)
    assert trust_of(weight, plain) is weight
