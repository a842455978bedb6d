"""The penalty that ties weights to the observed edges."""

import torch
from graphs import dense, random_graph

from user_dgl.losses.observed_edges import edge_penalty


def penalty_of(weight, prior, form):
    return edge_penalty((weight - prior).square().sum(), len(weight), form)


def test_frobenius_counts_both_directions_and_has_no_gradient_at_one():
    graph = random_graph()
    weight = torch.rand(graph.num_edges, dtype=torch.float64)
    a = dense(graph, torch.ones_like(weight))
    expected = torch.linalg.norm(dense(graph, weight) * a - a)
    torch.testing.assert_close(penalty_of(weight, 1.0, "frobenius"), expected)
    at_one = torch.ones(5, requires_grad=True)
    value = penalty_of(at_one, 1.0, "frobenius")
    assert value.item() == 0
    assert torch.autograd.grad(value, at_one)[0].tolist() == [0] * 5


def test_mean_square_does_not_depend_on_the_size_of_the_graph():
    small, large = torch.full((5,), 0.5), torch.full((5000,), 0.5)
    for weight in (small, large):
        assert penalty_of(weight, 1.0, "mean_square").item() == 0.25
        assert penalty_of(weight, weight, "mean_square").item() == 0
    assert penalty_of(torch.zeros(0), 1.0, "mean_square").item() == 0
