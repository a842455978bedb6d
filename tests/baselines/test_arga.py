"""ARGA beside a dense oracle, and the game that it alone plays."""

import torch
from dense_baselines import (
    AdversarialGame,
    adjacency_of,
    all_pairs,
    assert_terms,
    assert_weights,
    draws_of,
    normalised,
    tiny_trainer,
    train_epochs,
    weights_of,
)

WIDTHS = "baseline.hidden_feats=[5, 4]"


def test_losses_and_steps_are_those_of_the_paper(monkeypatch):
    all_pairs(monkeypatch)
    trainer = tiny_trainer("arga", WIDTHS)
    encoder = weights_of(trainer.method.encoder.weights)
    discriminator = weights_of(trainer.method.encoder.discriminator)
    # The paper's discriminator has hidden layers of 16 and 64 neurons.
    assert [len(each) for each in discriminator.values()] == [16, 16, 64, 64, 1, 1]
    game = AdversarialGame(encoder.values(), discriminator.values(), 0.02)
    adjacency = adjacency_of(trainer.graph)
    smooth, feat = normalised(adjacency), torch.from_numpy(trainer.feat.toarray())
    target = adjacency + torch.eye(12, dtype=torch.float64)
    expected = []
    for epoch in range(2):
        draws_of(trainer, epoch)
        expected.append(game.epoch(smooth, feat, adjacency, target))
    assert_terms(train_epochs(trainer, 2), expected)
    assert_weights(trainer.method.encoder.weights, encoder)
    assert_weights(trainer.method.encoder.discriminator, discriminator)


def test_each_player_moves_its_own_weights_only():
    trainer = tiny_trainer("arga", WIDTHS)
    encoder = trainer.method.encoder

    def weights():
        parts = encoder.weights, encoder.discriminator
        return [torch.cat([each.flatten() for each in part.parameters()]) for part in parts]

    moved = []
    for name, terms in trainer.method.updates(0):
        before = weights()
        trainer.update(terms, trainer._optimizers[name])
        changed = [not torch.equal(old, new) for old, new in zip(before, weights(), strict=True)]
        moved.append((name, *changed))
    assert moved == [
        *[("model", True, False)] * 5,
        ("discriminator", False, True),
        ("generator", True, False),
    ]


def test_the_discriminator_learns_to_tell_embeddings_and_the_generator_to_deceive_it():
    trainer = tiny_trainer("arga", WIDTHS)
    encoder = trainer.method.encoder

    def play(player, count):
        """Make the updates of one player only; returns how far its adversary believes it."""
        for epoch in range(count):
            for name, terms in trainer.method.updates(epoch):
                if name == player:
                    trainer.update(terms, trainer._optimizers[name])
        # The last two nodes have no edges, and one of them no features that could be learned from.
        return torch.sigmoid(encoder.discriminator(trainer.method.embed()[:-2])).mean()

    assert play("discriminator", 40) < 0.2
    assert play("generator", 30) > 0.8
