"""Loss terms against dense oracles, their bounds and their gradients."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import cliques, dense, empty_graph, random_graph
from torch.nn.functional import logsigmoid

from user_dgl.config import LossConfig
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.losses.davies_bouldin import davies_bouldin, davies_bouldin_sums
from user_dgl.losses.entropy import npsi, partition_sums
from user_dgl.losses.observed_edges import observed_edge_penalty
from user_dgl.losses.reconstruction import reconstruction_loss
from user_dgl.model import State, USERLoss
from user_dgl.structure.candidates import merge_candidates

FORMS = ("textbook", "soft_features")


def _features(num_nodes=20, density=0.2, seed=0):
    feat = sp.random(num_nodes, 9, density=density, random_state=seed, format="csr")
    return FeatureMatrix(feat, torch.float64), torch.from_numpy(feat.toarray())


def _assignment(num_nodes=20, num_clusters=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(num_nodes, num_clusters, generator=generator, dtype=torch.float64)
    return logits.softmax(1)


def _hard(assignment):
    return torch.nn.functional.one_hot(assignment.argmax(1), assignment.shape[1]).double()


def _index(features, assignment, form):
    return davies_bouldin(davies_bouldin_sums(features, assignment, form))


def _textbook(x, y):
    """Eq. 4 with memberships as weights, written with loops."""
    num_clusters = y.shape[1]
    count = y.sum(0)
    centroid = [(y[:, k, None] * x).sum(0) / count[k] for k in range(num_clusters)]
    spread = [
        ((y[:, k] * ((x - centroid[k]) ** 2).sum(1)).sum() / count[k]).sqrt()
        for k in range(num_clusters)
    ]
    worst = [
        max(
            (spread[k] + spread[m]) / (centroid[k] - centroid[m]).norm()
            for m in range(num_clusters)
            if m != k
        )
        for k in range(num_clusters)
    ]
    return sum(worst) / num_clusters


def _soft_features(x, y):
    """The authors' form: features times membership before distances, (K, N, F) tensors."""
    member = y.t()[:, :, None]  # (K, N, 1)
    product = member * x  # (K, N, F)
    count = member.sum(1)  # (K, 1)
    centroid = product.sum(1) / count  # (K, F)
    square = member * centroid[:, None] ** 2 - 2 * member * centroid[:, None] * product + product**2
    spread = (square.sum((1, 2)) / count[:, 0]).sqrt()
    distance = torch.cdist(centroid, centroid)
    ratio = (spread[:, None] + spread) / distance.fill_diagonal_(math.inf)
    return ratio.max(1).values.mean()


@pytest.mark.parametrize(
    ("form", "oracle"), [("textbook", _textbook), ("soft_features", _soft_features)]
)
@pytest.mark.parametrize("density", [0.2, 0.9])
def test_davies_bouldin_equals_the_formula(form, oracle, density):
    features, x = _features(density=density)
    y = _assignment()
    torch.testing.assert_close(_index(features, y, form), oracle(x, y))
    torch.testing.assert_close(_index(features, _hard(y), form), oracle(x, _hard(y)))


def test_davies_bouldin_forms_are_one_for_a_hard_assignment():
    features, _ = _features()
    hard, soft = _hard(_assignment()), _assignment()
    torch.testing.assert_close(_index(features, hard, FORMS[0]), _index(features, hard, FORMS[1]))
    assert abs(_index(features, soft, FORMS[0]) - _index(features, soft, FORMS[1])) > 1e-3


@pytest.mark.parametrize("form", FORMS)
def test_davies_bouldin_gradcheck(form):
    features, _ = _features()
    y = _assignment().requires_grad_()
    assert torch.autograd.gradcheck(lambda y: _index(features, y, form), (y,))


@pytest.mark.parametrize("form", FORMS)
def test_davies_bouldin_of_points_on_centroids(form):
    feat = sp.csr_matrix(np.array([[0.0, 0], [0, 0], [3, 4], [3, 4]]))
    features = FeatureMatrix(feat, torch.float64)
    y = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]], dtype=torch.float64, requires_grad=True)
    value = _index(features, y, form)
    assert value.item() == pytest.approx(0, abs=1e-5)
    (grad,) = torch.autograd.grad(value, y)
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("form", FORMS)
def test_davies_bouldin_degenerate_assignments_are_finite(form):
    features, _ = _features()
    uniform = torch.full((20, 3), 1 / 3, dtype=torch.float64, requires_grad=True)
    one = _hard(torch.ones(20, 1).double())
    empty = torch.cat([_hard(_assignment()), torch.zeros(20, 1).double()], 1)
    assert torch.isfinite(_index(features, uniform, form))
    (grad,) = torch.autograd.grad(_index(features, uniform, form), uniform)
    assert torch.isfinite(grad).all()
    assert _index(features, one, form).item() == 0
    torch.testing.assert_close(_index(features, empty, form), _index(features, empty[:, :4], form))


def test_davies_bouldin_is_unchanged_by_relabelling():
    features, _ = _features()
    y = _assignment()
    torch.testing.assert_close(
        _index(features, y[:, [3, 1, 0, 2]], "textbook"), _index(features, y, "textbook")
    )


def test_frobenius_counts_both_directions_and_has_no_gradient_at_one():
    graph = random_graph()
    weight = torch.rand(graph.num_edges, dtype=torch.float64)
    a = dense(graph, torch.ones_like(weight))
    expected = torch.linalg.norm(dense(graph, weight) * a - a)
    torch.testing.assert_close(observed_edge_penalty(weight, 1.0, "frobenius"), expected)
    at_one = torch.ones(5, requires_grad=True)
    value = observed_edge_penalty(at_one, 1.0, "frobenius")
    assert value.item() == 0
    assert torch.autograd.grad(value, at_one)[0].tolist() == [0] * 5


def test_mean_square_does_not_depend_on_the_size_of_the_graph():
    small, large = torch.full((5,), 0.5), torch.full((5000,), 0.5)
    for weight in (small, large):
        assert observed_edge_penalty(weight, 1.0, "mean_square").item() == 0.25
        assert observed_edge_penalty(weight, weight, "mean_square").item() == 0
    assert observed_edge_penalty(torch.zeros(0), 1.0, "mean_square").item() == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("density", [0.2, 1.0])
def test_davies_bouldin_in_float32_of_nearly_coinciding_centroids(form, density):
    """Early in training Y is nearly uniform; centroids then differ in their last digits."""
    feat = 100 * sp.random(500, 40, density=density, random_state=0, format="csr")
    logits = torch.randn(500, 4, generator=torch.Generator().manual_seed(0)).double()
    y = (1e-3 * logits).softmax(1)
    exact = _index(FeatureMatrix(feat, torch.float64), y, form)
    found = _index(FeatureMatrix(feat, torch.float32), y.float(), form)
    assert exact > 100
    assert found.item() == pytest.approx(exact.item(), rel=0.05)


def test_davies_bouldin_in_float32_of_features_far_from_zero():
    x = np.random.default_rng(0).normal(10_000.0, 1.0, (200, 5))
    y = _hard(_assignment(200))
    exact = _index(FeatureMatrix(sp.csr_matrix(x), torch.float64), y, "textbook")
    found = _index(FeatureMatrix(sp.csr_matrix(x)), y.float(), "textbook")
    assert found.item() == pytest.approx(exact.item(), rel=1e-3)


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


# --- USERLoss ------------------------------------------------------------------------------------


def _state(graph, learnable=True):
    """A state whose A' has candidate pairs beside the observed edges."""
    ends = np.arange(10), np.arange(10, 20)
    pairs, observed = merge_candidates(graph, [ends])
    assert not observed.all()
    weight = torch.rand(pairs.num_edges, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    assignment = _assignment(graph.num_nodes)
    return State(
        graph=pairs,
        weights=(weight,),
        observed=observed,
        learnable=learnable,
        hidden=(hidden,),
        propagations=(),
        logits=assignment.log()[:, None],
        clusters=assignment.argmax(1, keepdim=True),
        assignment=assignment[:, None],
    )


def _several(graph, num_replicas, shared=True):
    """Replicas on one A' or on their own, and the same one by one."""
    first = _state(graph)
    singles = []
    for seed in range(num_replicas):
        weight = first.weights[0] if shared else torch.rand_like(first.weights[0])
        singles.append(
            dataclasses.replace(
                first,
                weights=(weight,),
                hidden=(torch.randn(graph.num_nodes, 3, dtype=torch.float64),),
                assignment=_assignment(graph.num_nodes, seed=seed)[:, None],
            )
        )
    together = dataclasses.replace(
        first,
        weights=first.weights if shared else tuple(one.weights[0] for one in singles),
        hidden=tuple(one.hidden[0] for one in singles),
        assignment=torch.cat([one.assignment for one in singles], 1),
    )
    return together, singles


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("forms", [("textbook", "mean_square"), ("soft_features", "frobenius")])
def test_terms_of_replicas_are_those_of_each(shared, forms):
    graph, (features, _) = random_graph(), _features()
    together, singles = _several(graph, 3, shared)
    config = LossConfig(
        davies_bouldin_weight=0.5,
        davies_bouldin_form=forms[0],
        observed_edge_weight=0.25,
        observed_edge_form=forms[1],
        reconstruction_weight=0.125,
    )
    loss = USERLoss(config, graph, features, "csr", torch.rand(graph.num_edges).double())
    terms = loss(together, torch.Generator().manual_seed(0))
    assert len(terms) == 5
    for place, single in enumerate(singles):
        expected = loss(single, torch.Generator().manual_seed(0))
        for name, term in terms.items():
            assert term.shape == (3,)
            torch.testing.assert_close(term[place], expected[name][0])


def test_a_shared_graph_is_tied_once_a_replica():
    """So that the tie weighs the same against the other terms however many replicas there are."""
    graph, (features, _) = random_graph(), _features()
    config = LossConfig(npsi_weight=0.0, observed_edge_weight=1.0)
    loss = USERLoss(config, graph, features, "csr")
    together, singles = _several(graph, 4)
    weight = together.weights[0]
    gradients = [
        torch.autograd.grad(loss(state)["observed_edges"].sum(), weight)[0]
        for state in (together, singles[0])
    ]
    torch.testing.assert_close(gradients[0], 4 * gradients[1])


def test_terms_are_named_and_weighted():
    graph, (features, _) = random_graph(), _features()
    state = _state(graph)
    config = LossConfig(
        npsi_weight=2.0,
        davies_bouldin_weight=0.5,
        observed_edge_weight=0.25,
        reconstruction_weight=0.125,
    )
    prior = torch.rand(graph.num_edges, dtype=torch.float64)
    loss = USERLoss(config, graph, features, "csr", prior)
    terms = loss(state, torch.Generator().manual_seed(0))
    assignment, (weight,) = state.assignment[:, 0], state.weights
    learned = npsi(partition_sums(state.graph, weight, assignment, "csr"))
    ones = torch.ones(graph.num_edges, dtype=torch.float64)
    observed = npsi(partition_sums(graph, ones, assignment, "csr"))
    samples, generator = 5 * graph.num_nodes, torch.Generator().manual_seed(0)
    expected = {
        "npsi": 2 * learned,
        "npsi_observed": 2 * observed,
        "davies_bouldin": 0.5 * _index(features, assignment, "textbook"),
        "observed_edges": 0.25 * (weight[state.observed] - prior).square().mean(),
        "reconstruction": 0.125
        * reconstruction_loss(graph, state.hidden, samples, generator, "csr")[0],
    }
    assert set(terms) == set(expected)
    for name, term in terms.items():
        torch.testing.assert_close(term, expected[name][None])


def test_terms_of_weight_zero_are_left_out():
    graph, (features, _) = random_graph(), _features()
    config = LossConfig(npsi_weight=0.0, davies_bouldin_weight=1.0)
    assert set(USERLoss(config, graph, features, "csr")(_state(graph))) == {"davies_bouldin"}
    config = LossConfig(npsi_observed=False, observed_edge_weight=1.0)
    loss = USERLoss(config, graph, features, "csr")
    assert set(loss(_state(graph))) == {"npsi", "observed_edges"}
    assert set(loss(_state(graph, learnable=False))) == {"npsi"}
