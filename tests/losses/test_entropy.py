"""Structural entropy: theory, dense oracle, gradients, additivity."""

import math

import pytest
import torch
from graphs import GRAPHS, cliques, dense, empty_graph, random_graph

from user_dgl.graph.ops import ENGINES, weighted_degree
from user_dgl.losses.entropy import (
    PartitionSums,
    npsi,
    one_dimensional_entropy,
    partition_sums,
    two_dimensional_entropy,
)


def _one_hot(clusters, num_clusters=None):
    return torch.nn.functional.one_hot(clusters, num_clusters or -1).double()


def _npsi(graph, weight, assignment, engine="csr"):
    return npsi(partition_sums(graph, weight, assignment, engine))


def _random_case(num_clusters=4, seed=0):
    graph = random_graph(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(graph.num_edges, generator=generator, dtype=torch.float64)
    logits = torch.randn(graph.num_nodes, num_clusters, generator=generator, dtype=torch.float64)
    return graph, weight, logits.softmax(1)


def _dense_npsi(a, y):
    """Eq. 2's matrix form as the authors' code divides it."""
    total = a.sum()
    return ((y.t() @ a @ y).diagonal() / total * torch.log2((a @ y).sum(0) / total)).sum()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_dense_formula(engine, seed):
    graph, weight, assignment = _random_case(seed=seed)
    expected = _dense_npsi(dense(graph, weight), assignment)
    torch.testing.assert_close(_npsi(graph, weight, assignment, engine), expected)


def test_sums_equal_the_dense_formula():
    graph, weight, assignment = _random_case()
    a = dense(graph, weight)
    sums = partition_sums(graph, weight, assignment, "csr")
    torch.testing.assert_close(sums.total_weight, a.sum())
    torch.testing.assert_close(sums.volume, (a @ assignment).sum(0))
    torch.testing.assert_close(sums.internal_weight, (assignment.t() @ a @ assignment).diagonal())


@pytest.mark.parametrize("engine", ENGINES)
def test_gradcheck(engine):
    graph, weight, assignment = _random_case()
    inputs = (weight.requires_grad_(), assignment.requires_grad_())
    assert torch.autograd.gradcheck(lambda w, y: _npsi(graph, w, y, engine), inputs)


def test_one_cluster_is_zero():
    graph, weight, _ = _random_case()
    one = torch.ones(graph.num_nodes, 1).double()
    assert _npsi(graph, weight, one).item() == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("num_cliques", [2, 3, 8])
def test_equal_disjoint_cliques_reach_the_minimum(num_cliques):
    graph, clique = cliques(num_cliques, 4)
    weight = torch.ones(graph.num_edges).double()
    value = _npsi(graph, weight, _one_hot(clique)).item()
    assert value == pytest.approx(-math.log2(num_cliques))


@pytest.mark.parametrize("seed", range(5))
def test_bounds(seed):
    graph, weight, assignment = _random_case(num_clusters=5, seed=seed)
    assert -math.log2(5) <= _npsi(graph, weight, assignment).item() <= 0
    hard = _one_hot(assignment.argmax(1), 5)
    assert -math.log2(5) <= _npsi(graph, weight, hard).item() <= 0


def test_unchanged_by_relabelling_and_scaling():
    graph, weight, assignment = _random_case()
    value = _npsi(graph, weight, assignment)
    torch.testing.assert_close(_npsi(graph, weight, assignment[:, [2, 0, 3, 1]]), value)
    torch.testing.assert_close(_npsi(graph, 7.5 * weight, assignment), value)


@pytest.mark.parametrize("seed", range(3))
def test_is_the_difference_of_one_and_two_dimensional_entropy(seed):
    graph, weight, assignment = _random_case(seed=seed)
    clusters = assignment.argmax(1)
    one = one_dimensional_entropy(weighted_degree(graph, weight, "csr"))
    two = two_dimensional_entropy(graph, weight, clusters, "csr")
    torch.testing.assert_close(-_npsi(graph, weight, _one_hot(clusters, 4)), one - two)


def test_two_dimensional_entropy_of_singletons_is_one_dimensional():
    graph, weight, _ = _random_case()
    two = two_dimensional_entropy(graph, weight, torch.arange(graph.num_nodes), "csr")
    torch.testing.assert_close(two, one_dimensional_entropy(weighted_degree(graph, weight, "csr")))


def test_sums_of_parts_add_up_and_entropies_do_not():
    graph, weight, assignment = _random_case()
    half = torch.arange(graph.num_edges) % 2 == 0
    zero = torch.zeros_like(weight)
    parts = [
        partition_sums(graph, torch.where(mask, weight, zero), assignment, "csr")
        for mask in (half, ~half)
    ]
    whole = _npsi(graph, weight, assignment)
    torch.testing.assert_close(npsi(parts[0] + parts[1]), whole)
    mean = (npsi(parts[0]) + npsi(parts[1])) / 2
    assert abs(mean - whole) > 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_graph_without_edges_is_zero_with_finite_gradient(engine):
    assignment = torch.full((5, 3), 1 / 3, requires_grad=True)
    value = _npsi(empty_graph(5), torch.zeros(0), assignment, engine)
    assert value.item() == 0
    (grad,) = torch.autograd.grad(value, assignment)
    assert torch.isfinite(grad).all()


def test_empty_cluster_adds_nothing_and_has_a_finite_gradient():
    graph, weight, assignment = _random_case()
    widened = torch.cat([assignment, torch.zeros(graph.num_nodes, 1).double()], 1)
    widened.requires_grad_()
    value = _npsi(graph, weight, widened)
    torch.testing.assert_close(value, _npsi(graph, weight, assignment))
    (grad,) = torch.autograd.grad(value, widened)
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_weights_in_float32(scale):
    graph, weight, assignment = _random_case()
    value = _npsi(graph, (scale * weight).float(), assignment.float())
    torch.testing.assert_close(value.double(), _npsi(graph, weight, assignment), atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("edges", [1, 40])
def test_small_clusters_of_large_graphs_count_in_full(edges, dtype):
    """Clusters with so many of 50 million edges: value and gradient are those of the formula."""
    total, small = 1e8, 2.0 * edges
    volume = torch.tensor([small, small, total - 2 * small], dtype=dtype)
    internal = torch.tensor([small, 0.5 * small, total - 3 * small], dtype=dtype).requires_grad_()
    value = npsi(PartitionSums(torch.tensor(total, dtype=dtype), volume, internal))
    logs = [math.log2(v / total) for v in (small, small, total - 2 * small)]
    parts = [e / total * log for e, log in zip(internal.tolist(), logs, strict=True)]
    rounding = 10 * torch.finfo(dtype).eps
    assert value.item() == pytest.approx(sum(parts), rel=1e-5, abs=rounding)
    (grad,) = torch.autograd.grad(value, internal)
    expected = torch.tensor([log / total for log in logs], dtype=dtype)
    torch.testing.assert_close(grad[:2], expected[:2], rtol=1e-5, atol=0)


def test_isolated_nodes_change_nothing():
    graph = GRAPHS["single edge"]
    ones = torch.ones(1).double()
    assignment = _one_hot(torch.tensor([0, 1, 1, 0]))
    moved = _one_hot(torch.tensor([1, 1, 1, 0]))
    assert _npsi(graph, ones, assignment) == _npsi(graph, ones, moved) == 0


def test_plus_is_field_by_field():
    a = PartitionSums(torch.tensor(1.0), torch.tensor([1.0]), torch.tensor([2.0]))
    b = PartitionSums(torch.tensor(10.0), torch.tensor([20.0]), torch.tensor([40.0]))
    both = a + b
    assert (both.total_weight, both.volume, both.internal_weight) == (11, 21, 42)
