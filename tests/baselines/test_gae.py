"""GAE beside a dense oracle, and what its decoder alone has."""

import numpy as np
import pytest
import torch
from dense_baselines import (
    Adam,
    adjacency_of,
    all_pairs,
    assert_terms,
    assert_weights,
    autoencoder,
    normalised,
    reconstruction,
    tiny_trainer,
    train_epochs,
    two_cliques,
    weights_of,
)
from graphs import dense, random_graph
from torch.nn.functional import binary_cross_entropy_with_logits

from user_dgl.graph.pairs import sample_pairs
from user_dgl.losses.reconstruction import LinkTargets, link_cross_entropy


def test_loss_and_steps_are_those_of_the_paper(monkeypatch):
    asked = all_pairs(monkeypatch)
    trainer = tiny_trainer("gae", "baseline.hidden_feats=[5, 4]", "baseline.weight_decay=0.01")
    weights = weights_of(trainer.method)
    adjacency = adjacency_of(trainer.graph)
    smooth, feat = normalised(adjacency), torch.from_numpy(trainer.feat.toarray())
    target = adjacency + torch.eye(12, dtype=torch.float64)
    adam = Adam(weights.values(), 0.02, 0.01)
    expected = []
    for _ in range(3):
        hidden = autoencoder(smooth, feat, weights.values())
        expected.append({"reconstruction": adam.step(reconstruction(hidden, adjacency, target))})
    assert_terms(train_epochs(trainer, 3), expected)
    assert_weights(trainer.method, weights)
    embedding = autoencoder(smooth, feat, weights.values())
    torch.testing.assert_close(trainer.method.embed(), embedding)
    assert asked == [12 * 20] * 3  # baseline.samples_per_node for each node


def test_only_inner_products_matter():
    """A rotation of the embeddings leaves the loss as it is; a longer embedding does not."""
    method = tiny_trainer("gae", "baseline.hidden_feats=[5, 4]").method
    hidden = method.embed().detach()
    turn, _ = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))
    losses = []
    for rows in (hidden, hidden @ turn, 1.5 * hidden):
        torch.manual_seed(0)
        losses.append(method.reconstruction(rows).item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-12)
    assert abs(losses[2] - losses[0]) > 1e-3


def test_cliques_are_reconstructed():
    graph, feat = two_cliques()
    trainer = tiny_trainer("gae", graph=graph, feat=feat)
    train_epochs(trainer, 60)
    hidden = trainer.method.embed().detach()
    link = torch.sigmoid(hidden @ hidden.t())
    inside = torch.block_diag(torch.ones(6, 6), torch.ones(6, 6)).bool()
    assert link[inside].min() > 0.9
    assert link[~inside].median() < 0.6


def test_a_node_without_features_and_edges_stays_at_the_origin():
    """The encoder has no bias."""
    trainer = tiny_trainer("gae")
    train_epochs(trainer, 2)
    assert (trainer.method.embed()[-1] == 0).all()
    assert np.abs(trainer.method.embed()[:-2].detach().numpy()).max(1).min() > 0


@pytest.mark.parametrize("given", [False, True])
def test_link_loss_of_sampled_pairs_estimates_the_dense_one(given):
    graph = random_graph(30, 60)
    torch.manual_seed(0)
    hidden = torch.randn(30, 4, dtype=torch.float64)
    edge = torch.rand(graph.num_edges, dtype=torch.float64)
    loop = torch.rand(30, dtype=torch.float64)
    targets = LinkTargets(edge, loop) if given else None
    if not given:
        edge, loop = torch.ones_like(edge), torch.ones_like(loop)
    # The authors' weights: of an edge (N^2 - S) / S, of the whole N^2 / (2 (N^2 - S)).
    pairs, total = 30.0**2, 2.0 * graph.num_edges
    expected = binary_cross_entropy_with_logits(
        hidden @ hidden.t(),
        dense(graph, edge) + torch.diag(loop),
        pos_weight=torch.tensor((pairs - total) / total),
    ) * (pairs / (2 * (pairs - total)))
    pairs = sample_pairs(graph, 600_000)
    found = link_cross_entropy(graph, hidden, pairs, "csr", targets)
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0)
