"""GIC beside a dense oracle, and the summaries of clusters that it alone has."""

import numpy as np
import pytest
import torch
from dense_baselines import (
    Adam,
    adjacency_of,
    assert_terms,
    assert_weights,
    draws_of,
    graph_infomax,
    normalised,
    tiny_trainer,
    train_epochs,
    weights_of,
)
from torch.nn.functional import logsigmoid


def soft_k_means(hidden, centroids):
    """Memberships (N, K) and centroids after ten steps and the one that gradients pass through."""
    rows = hidden / hidden.norm(dim=1, keepdim=True).clamp_min(1e-12)
    for step in range(11):
        seen = rows if step == 10 else rows.detach()
        old = centroids / centroids.norm(dim=1, keepdim=True)
        membership = torch.exp(100 * seen @ old.t())
        membership = membership / membership.sum(1, keepdim=True)
        centroids = membership.t() @ seen / membership.sum(0)[:, None]
    return membership, centroids


def test_loss_and_steps_are_those_of_the_paper():
    trainer = tiny_trainer("gic", "baseline.hidden_feats=[6]")
    weights = weights_of(trainer.method)
    smooth = normalised(adjacency_of(trainer.graph))
    feat = torch.from_numpy(trainer.feat.toarray())
    first = trainer.method.first_centroids
    assert first.shape == (3, 6)
    adam = Adam(weights.values(), 0.02)
    expected = []
    for epoch in range(3):
        draws_of(trainer, epoch)
        of_graph, hidden, corrupted = graph_infomax(smooth, feat, weights.values())
        membership, centroids = soft_k_means(hidden, first)
        summary = torch.sigmoid(membership @ centroids)
        real, fake = (hidden * summary).sum(1), (corrupted * summary).sum(1)
        of_clusters = -(logsigmoid(real).mean() + logsigmoid(-fake).mean()) / 2
        terms = {"mutual_information": of_graph / 2, "cluster_information": of_clusters / 2}
        adam.step(sum(terms.values()))
        expected.append({name: each.item() for name, each in terms.items()})
    assert_terms(train_epochs(trainer, 3), expected)
    assert_weights(trainer.method, weights)


def test_the_nodes_of_a_cluster_share_a_summary_that_others_do_not_have():
    method = tiny_trainer("gic", "baseline.hidden_feats=[6]").method
    groups = np.repeat([0, 1, 2], 8)
    rng = np.random.default_rng(0)
    hidden = torch.from_numpy(5 * np.eye(6)[groups] + 0.3 * rng.random((24, 6)))
    # Three first centroids near the three groups, in another order.
    method.first_centroids = torch.eye(6, dtype=torch.float64)[[2, 0, 1]] + 0.1
    found = method.cluster_summaries(hidden)
    unit = hidden / hidden.norm(dim=1, keepdim=True)
    expected = torch.stack([torch.sigmoid(unit[groups == k].mean(0)) for k in range(3)])
    torch.testing.assert_close(found, expected[groups])
    # The length of a row does not matter, its direction does.
    torch.testing.assert_close(method.cluster_summaries(7 * hidden), found)


def test_the_loss_depends_on_the_clusters_but_not_on_their_order():
    method = tiny_trainer("gic", "baseline.hidden_feats=[6]").method
    first, losses = method.first_centroids, []
    for centroids in (first, first.flip(0), first[:1]):
        method.first_centroids = centroids
        torch.manual_seed(0)
        ((_, terms),) = method.updates(0)
        losses.append(terms["cluster_information"].item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-12)
    assert abs(losses[2] - losses[0]) > 1e-4


def test_gradients_pass_through_the_last_step_alone():
    method = tiny_trainer("gic", "baseline.hidden_feats=[6]").method
    hidden = method.embed().detach()[:-1].requires_grad_()
    membership, centroids = soft_k_means(hidden, method.first_centroids)
    found = method.cluster_summaries(hidden)
    expected = torch.sigmoid(membership @ centroids)
    grads = [torch.autograd.grad(each.square().sum(), hidden)[0] for each in (found, expected)]
    torch.testing.assert_close(*grads)
