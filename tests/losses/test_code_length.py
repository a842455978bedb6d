"""Bits that clusters save: dense oracles, gradients, additivity, limits."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import cliques, dense, empty_graph, random_graph
from memberships import random_assignment, random_features
from torch.distributions import MultivariateNormal

from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.ops import ENGINES
from user_dgl.losses.code_length import (
    edge_bits,
    edge_sums,
    feature_bits,
    feature_sums,
    gaussian_bits,
    gaussian_sums,
)
from user_dgl.losses.entropy import npsi, partition_sums


def _hard(assignment):
    return torch.nn.functional.one_hot(assignment.argmax(1), assignment.shape[1]).double()


def _random_case(num_clusters=4, seed=0):
    graph = random_graph(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(graph.num_edges, generator=generator, dtype=torch.float64)
    return graph, weight, random_assignment(graph.num_nodes, num_clusters, seed)


def _edge_bits(graph, weight, assignment, engine="csr"):
    return edge_bits(edge_sums(graph, weight, assignment, engine))


def _feature_bits(features, assignment):
    return feature_bits(feature_sums(features, assignment))


def _gaussian_bits(points, assignment):
    return gaussian_bits(gaussian_sums(points, assignment))


def _with_empty_cluster(assignment):
    empty = torch.zeros(len(assignment), 1, dtype=assignment.dtype)
    return torch.cat([assignment, empty], 1).requires_grad_()


def _dependence(table):
    """Sum of a table times the mutual information, written with loops over its cells."""
    total = table.sum()
    bits = torch.zeros((), dtype=table.dtype)
    for k, row in enumerate(table):
        for j, cell in enumerate(row):
            if cell > 0:
                expected = table[k].sum() * table[:, j].sum() / total
                bits = bits + cell * torch.log2(cell / expected)
    return bits


# --- Edges ---


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("hard", [False, True])
def test_edge_bits_equal_the_dense_formula_with_gradients(engine, seed, hard):
    graph, weight, assignment = _random_case(seed=seed)
    assignment = _hard(assignment) if hard else assignment
    inputs = weight.requires_grad_(), assignment.requires_grad_()
    found = _edge_bits(graph, *inputs, engine)
    expected = _dependence(assignment.t() @ dense(graph, weight) @ assignment) / 2
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    if not hard:
        for got, want in zip(
            torch.autograd.grad(found, inputs), torch.autograd.grad(expected, inputs), strict=True
        ):
            torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_edge_bits_gradcheck(engine):
    graph, weight, assignment = _random_case()
    inputs = (weight.requires_grad_(), assignment.requires_grad_())
    assert torch.autograd.gradcheck(lambda w, y: _edge_bits(graph, w, y, engine), inputs)


@pytest.mark.parametrize("engine", ENGINES)
def test_edge_bits_of_replicas_side_by_side(engine):
    graph, weight, _ = _random_case()
    several = [random_assignment(graph.num_nodes, seed=seed) for seed in range(3)]
    together = torch.stack(several, 1).requires_grad_()
    singles = torch.stack([_edge_bits(graph, weight, each, engine) for each in several])
    torch.testing.assert_close(_edge_bits(graph, weight, together, engine), singles)
    weights = (weight.requires_grad_(), together)
    assert torch.autograd.gradcheck(lambda w, y: _edge_bits(graph, w, y, engine), weights)


def test_edge_bits_are_those_of_npsi_if_no_edge_joins_two_clusters():
    graph, clique = cliques(4, 5)
    weight = torch.rand(graph.num_edges, dtype=torch.float64)
    assignment = torch.nn.functional.one_hot(clique // 2).double()
    entropy = npsi(partition_sums(graph, weight, assignment, "csr"))
    found = _edge_bits(graph, weight, assignment)
    torch.testing.assert_close(found, -weight.sum() * entropy)
    # Clusters that are joined by edges save other bits.
    joined = torch.nn.functional.one_hot(torch.arange(20) % 3).double()
    ones = torch.ones_like(weight)
    entropy = npsi(partition_sums(graph, ones, joined, "csr"))
    assert _edge_bits(graph, ones, joined) < -0.9 * ones.sum() * entropy


def test_edge_bits_of_clusters_that_avoid_each_other():
    """Edges between two clusters only: one bit for each edge, where NPSI is 0."""
    u, v = np.meshgrid(np.arange(3), np.arange(3, 6))
    graph, _ = type(random_graph()).from_edges(6, u.ravel(), v.ravel())
    assignment = torch.nn.functional.one_hot(torch.arange(6) // 3).double()
    weight = torch.ones(9).double()
    assert npsi(partition_sums(graph, weight, assignment, "csr")).item() == 0
    assert _edge_bits(graph, weight, assignment).item() == pytest.approx(9)


def test_edge_bits_of_equal_memberships_are_zero():
    graph, weight, assignment = _random_case()
    same = assignment[:1].expand_as(assignment).contiguous()
    assert _edge_bits(graph, weight, same).item() == pytest.approx(0, abs=1e-12)
    one = torch.ones(graph.num_nodes, 1).double()
    assert _edge_bits(graph, weight, one).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_edge_bits_bounds_and_scale(seed):
    graph, weight, assignment = _random_case(num_clusters=5, seed=seed)
    bits = _edge_bits(graph, weight, assignment)
    assert 0 <= bits <= weight.sum() * math.log2(5)
    torch.testing.assert_close(_edge_bits(graph, 7.5 * weight, assignment), 7.5 * bits)
    torch.testing.assert_close(_edge_bits(graph, weight, assignment[:, [4, 2, 0, 3, 1]]), bits)


def test_edge_sums_of_parts_add_up_and_bits_do_not():
    graph, weight, assignment = _random_case()
    half = torch.arange(graph.num_edges) % 2 == 0
    parts = [edge_sums(graph, weight * mask, assignment, "csr") for mask in (half, ~half)]
    whole = _edge_bits(graph, weight, assignment)
    torch.testing.assert_close(edge_bits(parts[0] + parts[1]), whole)
    assert abs(edge_bits(parts[0]) + edge_bits(parts[1]) - whole) > 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_edge_bits_without_edges_are_zero_with_a_finite_gradient(engine):
    assignment = torch.full((5, 3), 1 / 3, requires_grad=True)
    value = _edge_bits(empty_graph(5), torch.zeros(0), assignment, engine)
    assert value.item() == 0
    (grad,) = torch.autograd.grad(value, assignment)
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_edge_bits_of_extreme_weights_in_float32(scale):
    graph, weight, assignment = _random_case()
    found = _edge_bits(graph, (scale * weight).float(), assignment.float()).double() / scale
    expected = _edge_bits(graph, weight, assignment)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


# --- Counts ---


@pytest.mark.parametrize("density", [0.2, 0.9])
@pytest.mark.parametrize("counted", ["values", "pattern"])
def test_feature_bits_equal_the_dense_formula(density, counted):
    features, x = random_features(density=density)
    if counted == "pattern":
        features, x = features.pattern, (x != 0).double()
    for y in (random_assignment(), _hard(random_assignment())):
        expected = _dependence(y.t() @ x)
        torch.testing.assert_close(_feature_bits(features, y), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("density", [0.2, 0.9])
def test_feature_bits_gradcheck(density):
    features, _ = random_features(density=density)
    y = random_assignment().requires_grad_()
    assert torch.autograd.gradcheck(lambda y: _feature_bits(features, y), (y,))


def test_feature_bits_of_replicas_side_by_side():
    features, _ = random_features()
    several = [random_assignment(seed=seed) for seed in range(3)]
    found = _feature_bits(features, torch.stack(several, 1))
    torch.testing.assert_close(found, torch.stack([_feature_bits(features, y) for y in several]))


def test_feature_bits_limits():
    """All bits of the clusters, none of equal memberships, none of no features."""
    x = torch.nn.functional.one_hot(torch.arange(20) % 4).double()
    features = FeatureMatrix(sp.csr_matrix(x.numpy()), torch.float64)
    assert _feature_bits(features, x).item() == pytest.approx(20 * 2)
    same = random_assignment()[:1].expand(20, 4)
    assert _feature_bits(features, same).item() == pytest.approx(0, abs=1e-12)
    nothing = FeatureMatrix(sp.csr_matrix((20, 3)), torch.float64)
    y = random_assignment().requires_grad_()
    value = _feature_bits(nothing, y)
    assert value.item() == 0
    assert torch.isfinite(torch.autograd.grad(value, y)[0]).all()


def test_feature_sums_of_disjoint_nodes_add_up():
    features, _ = random_features()
    y = random_assignment()
    parts = [
        feature_sums(features.rows(rows).pattern, y[rows])
        for rows in (torch.arange(7), torch.arange(7, 20))
    ]
    whole = _feature_bits(features.pattern, y)
    torch.testing.assert_close(feature_bits(parts[0] + parts[1]), whole)
    assert abs(feature_bits(parts[0]) + feature_bits(parts[1]) - whole) > 1e-2


# --- Real values ---


def _points(num_nodes=20, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_nodes, 3, generator=generator, dtype=torch.float64)


def _likelihood(points, means):
    """Largest log likelihood of points around given means, over the common covariance."""
    apart = points - means
    return MultivariateNormal(means, apart.t() @ apart / len(points)).log_prob(points).sum()


def test_gaussian_bits_are_the_gain_in_log_likelihood():
    points, hard = _points(), _hard(random_assignment())
    clusters = hard.argmax(1)
    means = torch.stack([points[clusters == k].mean(0) for k in range(4)])[clusters]
    gain = _likelihood(points, means) - _likelihood(points, points.mean(0).expand_as(points))
    torch.testing.assert_close(_gaussian_bits(points, hard), gain / math.log(2))


def test_gaussian_bits_equal_the_dense_formula():
    points, y = _points(), random_assignment()
    centroids = (y.t() @ points) / y.sum(0)[:, None]
    apart = points[:, None] - centroids  # (N, K, d)
    within = torch.einsum("nk,nkd,nke->de", y, apart, apart) / len(points)
    ratio = torch.cov(points.t(), correction=0).det() / within.det()
    expected = len(points) / 2 * torch.log2(ratio)
    torch.testing.assert_close(_gaussian_bits(points, y), expected, rtol=1e-10, atol=1e-10)


def test_no_linear_map_of_the_columns_changes_gaussian_bits():
    points, y = _points(), random_assignment()
    mapped = points @ torch.tensor([[1.0, 2, 0], [0, 1e3, 5], [1, 1, 1]]).double()
    torch.testing.assert_close(_gaussian_bits(mapped, y), _gaussian_bits(points, y))
    # Nor do columns that say the same again.
    twice = torch.cat([points, points[:, :2] - points[:, 1:]], 1)
    torch.testing.assert_close(_gaussian_bits(twice, y), _gaussian_bits(points, y))


def test_gaussian_bits_gradcheck_and_replicas():
    points, y = _points(), random_assignment()
    several = torch.stack([y, random_assignment(seed=1)], 1).requires_grad_()
    inputs = points.requires_grad_(), several
    assert torch.autograd.gradcheck(_gaussian_bits, inputs)
    found = _gaussian_bits(points, several)
    singles = [_gaussian_bits(points, each) for each in several.unbind(1)]
    torch.testing.assert_close(found, torch.stack(singles))


def test_gaussian_sums_of_disjoint_nodes_add_up():
    points, y = _points(), random_assignment()
    sums = gaussian_sums(points[:8], y[:8]) + gaussian_sums(points[8:], y[8:])
    torch.testing.assert_close(gaussian_bits(sums), _gaussian_bits(points, y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gaussian_bits_of_columns_without_variance(dtype):
    """A constant column saves nothing; one that is constant in each cluster a limited number."""
    y = torch.nn.functional.one_hot(torch.arange(20) % 2).to(dtype).requires_grad_()
    constant = torch.full((20, 1), 3.3, dtype=dtype)
    separate = (torch.arange(20) % 2).to(dtype)[:, None]
    none = _gaussian_bits(torch.cat([constant, torch.zeros_like(constant)], 1), y)
    assert none.item() == 0
    value = _gaussian_bits(torch.cat([constant, separate], 1), y)
    assert value.item() == pytest.approx(10 * math.log2(1e6), rel=1e-5)
    for bits in (none, value):
        assert torch.isfinite(torch.autograd.grad(bits, y)[0]).all()


def test_gaussian_bits_of_one_cluster_are_zero():
    one = torch.ones(20, 1).double()
    assert _gaussian_bits(_points(), one).item() == pytest.approx(0, abs=1e-12)


# --- All ---


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["edges", "features", "gaussian"])
def test_empty_cluster_adds_nothing_and_has_a_finite_gradient(kind, dtype):
    graph, weight, assignment = _random_case()
    features, x = random_features()
    features = FeatureMatrix(sp.csr_matrix(x.numpy()), dtype)
    function = {
        "edges": lambda y: _edge_bits(graph, weight.to(dtype), y),
        "features": lambda y: _feature_bits(features, y),
        "gaussian": lambda y: _gaussian_bits(x.to(dtype), y),
    }[kind]
    assignment = assignment.to(dtype)
    widened = _with_empty_cluster(assignment)
    value = function(widened)
    torch.testing.assert_close(value, function(assignment))
    (grad,) = torch.autograd.grad(value, widened)
    assert torch.isfinite(grad).all()
