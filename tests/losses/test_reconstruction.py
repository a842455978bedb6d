"""Losses of reconstruction: their draws are unbiased."""

import math

import pytest
import torch
from graphs import cliques, dense, empty_graph, random_graph
from torch.nn.functional import logsigmoid

from user_dgl.losses.reconstruction import reconstruction_loss


@pytest.mark.parametrize("graph", [random_graph(40, 120), cliques(5, 8)[0], empty_graph(40)])
def test_reconstruction_is_unbiased(graph):
    hidden = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).double()
    adjacency = dense(graph, torch.ones(graph.num_edges).double())
    expected = ((torch.sigmoid(hidden @ hidden.t()) - adjacency) ** 2).sum()
    generator = torch.Generator().manual_seed(1)
    draws = [reconstruction_loss(graph, [hidden], 60, generator, "csr") for _ in range(2000)]
    assert torch.stack(draws).mean() == pytest.approx(expected.item(), rel=0.01)
    assert torch.stack(draws).std() > 0


def test_reconstruction_gradient_is_unbiased():
    graph = random_graph(12, 20)
    hidden = torch.randn(12, 2, generator=torch.Generator().manual_seed(0)).double()
    hidden.requires_grad_()
    adjacency = dense(graph, torch.ones(graph.num_edges).double())
    exact = ((torch.sigmoid(hidden @ hidden.t()) - adjacency) ** 2).sum()
    (wanted,) = torch.autograd.grad(exact, hidden)
    generator = torch.Generator().manual_seed(1)
    mean = (
        sum(reconstruction_loss(graph, [hidden], 500, generator, "csr") for _ in range(400)) / 400
    )
    (found,) = torch.autograd.grad(mean, hidden)
    torch.testing.assert_close(found, wanted, atol=0.02 * wanted.abs().max().item(), rtol=0)


@pytest.mark.parametrize("graph", [random_graph(40, 120), cliques(5, 8)[0], empty_graph(40)])
def test_cross_entropy_reconstruction_is_unbiased(graph):
    hidden = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).double()
    target = dense(graph, torch.ones(graph.num_edges)) + torch.eye(40)
    score, directed = hidden @ hidden.t(), 2 * graph.num_edges
    edges = -(target * logsigmoid(score)).sum() / max(2 * directed, 1)
    others = -((1 - target) * logsigmoid(-score)).sum() / (2 * (40**2 - directed))
    generator = torch.Generator().manual_seed(1)
    draws = [
        reconstruction_loss(graph, [hidden, hidden], 400, generator, "csr", "cross_entropy")
        for _ in range(1000)
    ]
    assert all(first == second for first, second in draws)
    assert torch.stack(draws).mean() == pytest.approx((edges + others).item(), rel=0.01)


@pytest.mark.parametrize(("form", "value"), [("squared", 0.25), ("cross_entropy", math.log(2))])
def test_reconstruction_of_one_node(form, value):
    found = reconstruction_loss(empty_graph(1), [torch.zeros(1, 2)], 5, None, "csr", form)
    assert found.item() == pytest.approx(value)
