"""The learned adjacency."""

import pytest
import torch
from graphs import random_graph

from user_dgl.structure.learned_adjacency import LearnedAdjacency, inverse_softplus


def test_starts_at_the_given_weights_and_stays_non_negative():
    graph = random_graph()
    weight = torch.linspace(0, 30, graph.num_edges).repeat(2, 1)
    structure = LearnedAdjacency(graph, torch.ones(graph.num_edges, dtype=torch.bool), weight)
    torch.testing.assert_close(structure(), weight.clamp_min(1e-3), rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        structure.theta -= 1000
    assert (structure() >= 0).all()


def test_weights_that_are_not_trained_keep_their_values():
    graph = random_graph()
    weight = torch.logspace(-12, 3, graph.num_edges).repeat(2, 1)
    observed = torch.ones(graph.num_edges, dtype=torch.bool)
    structure = LearnedAdjacency(graph, observed, weight, learnable=False)
    torch.testing.assert_close(structure(), weight, rtol=1e-4, atol=0)


def test_weights_learn_unless_told_not_to():
    graph = random_graph()
    observed, ones = torch.ones(graph.num_edges, dtype=torch.bool), torch.ones(graph.num_edges)
    assert LearnedAdjacency(graph, observed, ones)().requires_grad
    assert not LearnedAdjacency(graph, observed, ones, learnable=False)().requires_grad


@pytest.mark.parametrize("weight", [1e-3, 0.5, 1.0, 50.0])
def test_inverse_softplus(weight):
    theta = inverse_softplus(torch.tensor(weight, dtype=torch.float64))
    assert torch.nn.functional.softplus(theta).item() == pytest.approx(weight)
