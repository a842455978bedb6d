"""VGAE beside a dense oracle, and the draws that it alone makes."""

import torch
from dense_baselines import (
    Adam,
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
    weights_of,
)
from torch.distributions import Normal, kl_divergence

WIDTHS = "baseline.hidden_feats=[5, 4]"


def test_loss_and_steps_are_those_of_the_paper(monkeypatch):
    all_pairs(monkeypatch)
    trainer = tiny_trainer("vgae", WIDTHS)
    weights = weights_of(trainer.method)
    adjacency = adjacency_of(trainer.graph)
    smooth, feat = normalised(adjacency), torch.from_numpy(trainer.feat.toarray())
    target = adjacency + torch.eye(12, dtype=torch.float64)
    adam = Adam(weights.values(), 0.02)

    def moments():
        first, second = weights.values()
        # GCN_mu and GCN_sigma share their first layer.
        return [autoencoder(smooth, feat, (first, each)) for each in second.chunk(2, 1)]

    expected = []
    for epoch in range(3):
        mean, log_std = moments()
        draws_of(trainer, epoch)
        hidden = mean + log_std.exp() * torch.randn(12, 4)
        prior = Normal(torch.zeros_like(mean), torch.ones_like(mean))
        # Both terms of the bound are divided by N^2, the number of pairs.
        terms = {
            "reconstruction": reconstruction(hidden, adjacency, target),
            "divergence": kl_divergence(Normal(mean, log_std.exp()), prior).sum() / 12**2,
        }
        adam.step(sum(terms.values()))
        expected.append({name: each.item() for name, each in terms.items()})
    assert_terms(train_epochs(trainer, 3), expected)
    assert_weights(trainer.method, weights)
    # The embeddings that are read out are the means.
    trainer.method.eval()
    torch.testing.assert_close(trainer.method.embed(), moments()[0])


def test_training_sees_draws_with_the_moments_of_the_encoder(monkeypatch):
    trainer = tiny_trainer("vgae", WIDTHS)
    train_epochs(trainer, 20)
    method, seen = trainer.method, []

    def note(hidden):
        seen.append(hidden.detach())
        return hidden.sum()

    monkeypatch.setattr(method, "reconstruction", note)
    torch.manual_seed(0)
    for epoch in range(800):
        list(method.updates(epoch))
    mean, log_std = method.encoder.moments(method.problem.propagation, method.problem.features)
    std, draws = log_std.exp(), torch.stack(seen)
    assert (draws.std(0) / std - 1).abs().max() < 0.12
    assert ((draws.mean(0) - mean) / std).abs().max() < 0.16
    # Nothing is known about the last node, so that its moments are those of the prior.
    assert (mean[-1] == 0).all()
    assert (std[-1] == 1).all()


def test_the_divergence_draws_the_moments_to_the_prior(monkeypatch):
    trainer = tiny_trainer("vgae", WIDTHS)
    monkeypatch.setattr(trainer.method, "reconstruction", lambda hidden: 0 * hidden.sum())
    rows = train_epochs(trainer, 80)
    assert rows[-1]["divergence"] < 0.1 * rows[0]["divergence"]
