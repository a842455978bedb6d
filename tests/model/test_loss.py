"""The sum of the loss terms: names, weights and replicas."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import cliques, random_graph
from memberships import random_assignment, random_features

from user_dgl.config import LossConfig
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.losses.code_length import edge_bits, edge_sums, feature_bits, feature_sums
from user_dgl.losses.davies_bouldin import davies_bouldin, davies_bouldin_sums
from user_dgl.losses.entropy import npsi, partition_sums
from user_dgl.losses.reconstruction import reconstruction_loss
from user_dgl.model import State, USERLoss
from user_dgl.model.heads import CentroidHead
from user_dgl.structure.candidates import merge_candidates


def _state(graph, learnable=True):
    """A state whose A' has candidate pairs beside the observed edges."""
    ends = np.arange(10), np.arange(10, 20)
    pairs, observed = merge_candidates(graph, [ends])
    assert not observed.all()
    weight = torch.rand(pairs.num_edges, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    assignment = random_assignment(graph.num_nodes)
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
                assignment=random_assignment(graph.num_nodes, seed=seed)[:, None],
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
    graph, (features, _) = random_graph(), random_features()
    together, singles = _several(graph, 3, shared)
    config = LossConfig(
        davies_bouldin_weight=0.5,
        davies_bouldin_form=forms[0],
        observed_edge_weight=0.25,
        observed_edge_form=forms[1],
        reconstruction_weight=0.125,
        code_length_weight=0.5,
    )
    loss = USERLoss(config, graph, features, "csr", torch.rand(graph.num_edges).double())
    terms = loss(together, torch.Generator().manual_seed(0))
    assert len(terms) == 6
    for place, single in enumerate(singles):
        expected = loss(single, torch.Generator().manual_seed(0))
        for name, term in terms.items():
            assert term.shape == (3,)
            torch.testing.assert_close(term[place], expected[name][0])


def test_a_shared_graph_is_tied_once_a_replica():
    """So that the tie weighs the same against the other terms however many replicas there are."""
    graph, (features, _) = random_graph(), random_features()
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
    graph, (features, _) = random_graph(), random_features()
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
        "davies_bouldin": 0.5
        * davies_bouldin(davies_bouldin_sums(features, assignment, "textbook")),
        "observed_edges": 0.25 * (weight[state.observed] - prior).square().mean(),
        "reconstruction": 0.125
        * reconstruction_loss(graph, state.hidden, samples, generator, "csr")[0],
    }
    assert set(terms) == set(expected)
    for name, term in terms.items():
        torch.testing.assert_close(term, expected[name][None])


def test_terms_of_weight_zero_are_left_out():
    graph, (features, _) = random_graph(), random_features()
    config = LossConfig(npsi_weight=0.0, davies_bouldin_weight=1.0)
    assert set(USERLoss(config, graph, features, "csr")(_state(graph))) == {"davies_bouldin"}
    config = LossConfig(npsi_observed=False, observed_edge_weight=1.0)
    loss = USERLoss(config, graph, features, "csr")
    assert set(loss(_state(graph))) == {"npsi", "observed_edges"}
    assert set(loss(_state(graph, learnable=False))) == {"npsi"}


def test_mixture_is_the_mean_negative_log_likelihood_of_each_replica():
    graph, (features, _) = random_graph(), random_features()
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(20, 3, 4, generator=generator, dtype=torch.float64)
    state = dataclasses.replace(_state(graph), logits=logits)
    loss = USERLoss(LossConfig(npsi_weight=0, mixture_weight=0.5), graph, features, "csr")
    found = loss(state)["mixture"]
    for replica in range(3):
        nodes = [math.log(sum(math.exp(x) for x in row)) for row in logits[:, replica].tolist()]
        assert found[replica].item() == pytest.approx(-0.5 * sum(nodes) / 20)


def test_mixture_draws_centroids_to_embeddings():
    """Cosines of embeddings and centroids rise, so that the centroids stay among the points."""
    graph, (features, _) = random_graph(), random_features()
    hidden = torch.nn.functional.normalize(torch.randn(20, 3, dtype=torch.float64), dim=1)
    head = CentroidHead(hidden[:2] + 0.5, temperature=0.2)
    state = dataclasses.replace(_state(graph), logits=head(hidden)[:, None])
    loss = USERLoss(LossConfig(npsi_weight=0, mixture_weight=1), graph, features, "csr")
    value = loss(state)["mixture"].sum()
    (gradient,) = torch.autograd.grad(value, head.centroids)
    moved = CentroidHead(head.centroids.detach() - 0.01 * gradient, temperature=0.2)
    after = torch.logsumexp(moved(hidden), 1).mean()
    assert after > torch.logsumexp(head(hidden), 1).mean()


def test_code_length_is_bits_for_each_edge_and_non_zero():
    graph, (features, x) = random_graph(), random_features()
    state = _state(graph)
    loss = USERLoss(LossConfig(npsi_weight=0, code_length_weight=3), graph, features, "csr")
    assignment, (weight,) = state.assignment[:, 0], state.weights
    bits = edge_bits(edge_sums(state.graph, weight, assignment, "csr"))
    bits = graph.num_edges * bits / weight.sum()
    bits = bits + feature_bits(feature_sums(features.pattern, assignment))
    (value,) = loss(state)["code_length"]
    torch.testing.assert_close(value, -3 * bits / (graph.num_edges + (x != 0).sum()))


def test_code_length_does_not_depend_on_the_scale_of_the_weights():
    graph, (features, _) = random_graph(), random_features()
    state = _state(graph)
    scaled = dataclasses.replace(state, weights=(7 * state.weights[0],))
    loss = USERLoss(LossConfig(npsi_weight=0, code_length_weight=1), graph, features, "csr")
    torch.testing.assert_close(loss(scaled)["code_length"], loss(state)["code_length"])


def test_code_length_is_npsi_without_features_and_edges_between_clusters():
    graph, clique = cliques(4, 5)
    features = FeatureMatrix(sp.csr_matrix((20, 1)), torch.float64)
    hard = torch.nn.functional.one_hot(clique).double()
    state = dataclasses.replace(
        _state(graph),
        graph=graph,
        weights=(torch.ones(graph.num_edges).double(),),
        observed=torch.ones(graph.num_edges, dtype=torch.bool),
        assignment=hard[:, None],
    )
    terms = USERLoss(LossConfig(code_length_weight=1), graph, features, "csr")(state)
    torch.testing.assert_close(terms["code_length"], terms["npsi"])
    assert terms["npsi"].item() == pytest.approx(-2)


def test_code_length_raises_weights_inside_clusters_and_lowers_those_between():
    graph, clique = cliques(2, 6)
    ends = np.array([0, 1]), np.array([6, 7])
    pairs, observed = merge_candidates(graph, [ends])
    weight = torch.full((pairs.num_edges,), 0.5, dtype=torch.float64, requires_grad=True)
    state = dataclasses.replace(
        _state(graph),
        graph=pairs,
        weights=(weight,),
        observed=observed,
        assignment=torch.nn.functional.one_hot(clique).double()[:, None],
    )
    features, _ = random_features(12)
    loss = USERLoss(LossConfig(npsi_weight=0, code_length_weight=1), graph, features, "csr")
    (gradient,) = torch.autograd.grad(loss(state)["code_length"].sum(), weight)
    assert (gradient[observed] < 0).all()
    assert (gradient[~observed] > 0).all()
