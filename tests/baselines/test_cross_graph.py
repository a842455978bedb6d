"""GAE_CG and ARGA_CG beside dense oracles, and the trust that only they exchange."""

import numpy as np
import pytest
import torch
from dense_baselines import (
    Adam,
    AdversarialGame,
    adjacency_of,
    all_pairs,
    assert_terms,
    assert_weights,
    autoencoder,
    draws_of,
    normalised,
    reconstruction,
    tiny_trainer,
    train_epochs,
    two_cliques,
    weights_of,
)

WIDTHS = "baseline.hidden_feats=[5, 4]"


class Autoencoder:
    """GAE with one Adam, in the form of `AdversarialGame`."""

    def __init__(self, encoder, discriminator, lr):
        self.encoder = list(encoder)
        self.adam = Adam(self.encoder, lr)

    def epoch(self, smooth, feat, adjacency, target):
        hidden = autoencoder(smooth, feat, self.encoder)
        return {"reconstruction": self.adam.step(reconstruction(hidden, adjacency, target))}


@pytest.mark.parametrize(
    ("kind", "peer"),
    [("gae_cg", Autoencoder), ("arga_cg", AdversarialGame)],
    ids=["gae_cg", "arga_cg"],
)
def test_losses_and_steps_are_the_authors(kind, peer, monkeypatch):
    all_pairs(monkeypatch)
    trainer = tiny_trainer(kind, WIDTHS)
    weights = [weights_of(member) for member in trainer.method.members]
    peers = []
    for each in weights:
        first, second, *discriminator = each.values()
        peers.append(peer([first, second], discriminator, 0.02))
    adjacency = adjacency_of(trainer.graph)
    smooth, feat = normalised(adjacency), torch.from_numpy(trainer.feat.toarray())
    targets = [adjacency + torch.eye(12, dtype=torch.float64) for _ in range(2)]
    expected = []
    for epoch in range(3):
        draws_of(trainer, epoch)
        for i in range(2):
            hidden = autoencoder(smooth, feat, peers[i].encoder).detach()
            targets[i] = 0.02 * torch.sigmoid(hidden @ hidden.t()) * targets[i] + 0.98 * targets[i]
        # Each is trained with the targets of the other.
        rows = [peers[i].epoch(smooth, feat, adjacency, targets[1 - i]) for i in range(2)]
        expected.append({name: np.mean([row[name] for row in rows]) for name in rows[0]})
    assert_terms(train_epochs(trainer, 3), expected)
    for member, each in zip(trainer.method.members, weights, strict=True):
        assert_weights(member, each)
    # The first one gives the embeddings.
    hidden = autoencoder(smooth, feat, peers[0].encoder)
    torch.testing.assert_close(trainer.method.embed(), hidden)


@pytest.mark.parametrize("kind", ["gae_cg", "arga_cg"])
def test_an_edge_between_cliques_loses_trust_first(kind):
    graph, feat = two_cliques()
    trainer = tiny_trainer(kind, graph=graph, feat=feat)
    bridge = (graph.src == 0) & (graph.dst == 6)
    assert bridge.sum() == 1
    assert (trainer.method.edge_trust == 1).all()
    before = trainer.method.edge_trust.clone()
    for _ in range(3):
        train_epochs(trainer, 8)
        trust = trainer.method.edge_trust
        assert (trust < before).all(), "trust is only ever lost"
        before = trust.clone()
    assert (trust[:, bridge] < trust[:, ~bridge].min()).all()
    assert (trainer.method.loop_trust > trust.min()).all()


def test_a_peer_that_trusts_no_edge_takes_the_links_from_the_other():
    graph, feat = two_cliques()
    trainer = tiny_trainer("gae_cg", graph=graph, feat=feat)
    trainer.method.edge_trust[1] = 0.0
    train_epochs(trainer, 60)
    links = []
    for member in trainer.method.members:
        hidden = member.embed().detach()
        links.append(torch.sigmoid((hidden[graph.src] * hidden[graph.dst]).sum(1)).mean())
    assert links[0] + 0.15 < links[1]
