"""Replicas: restarts that train side by side, their consensus and their graphs."""

import numpy as np
import pytest
import torch
from small_training import REFRESH, copied, trainer_of

from user_dgl.clustering.consensus import consensus_of
from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model
from user_dgl.structure.candidates import draw_candidates
from user_dgl.training.adam import Adam
from user_dgl.training.trainer import clusters_in_use


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=90, num_blocks=3, average_degree=6.0))


@pytest.mark.parametrize("shared", ["true", "false"])
def test_the_replica_of_lowest_loss_wins(data, shared):
    trainer = trainer_of(data, "train.restarts=3", f"structure.shared={shared}")
    fit = trainer.fit()
    assert len(set(fit.restart_losses)) == 3
    assert fit.loss["total"] == pytest.approx(min(fit.restart_losses), rel=1e-6)
    best = int(np.argmin(fit.restart_losses))
    final = trainer.evaluate()
    assert np.array_equal(fit.clusters, final.clusters[:, best])
    assert np.array_equal(fit.probs, final.assignment[:, best])
    assert np.array_equal(fit.embedding, final.embeddings()[best].detach())
    weight = trainer.model.structure().detach().numpy()
    assert len(weight) == (1 if shared == "true" else 3)
    assert np.array_equal(fit.weight, weight[0 if shared == "true" else best])


@pytest.mark.parametrize(
    "extra",
    [
        ("structure.learnable=false", "loss.davies_bouldin_weight=0.1"),
        ("structure.shared=false", "loss.observed_edge_weight=0.5", "seed=1"),
        ("structure.learnable=false", "model.encoder=gae", "model.head=linear"),
    ],
    ids=["fixed", "unshared", "gae"],
)
def test_replicas_train_as_if_alone(data, extra):
    """Where nothing is shared and nothing drawn, each equals a single run from its first state."""
    quiet = ("model.dropout=0", "model.logit_dropout=0", "train.plateau_factor=1", *extra)
    firsts = []

    def save(state):
        firsts.append(copied(state))

    together = trainer_of(data, "train.restarts=3", *quiet, save=save)
    losses = together.fit().restart_losses
    for one in range(3):
        single = trainer_of(data, *quiet)
        run_epochs = single._run_epochs

        def from_same_start(single=single, one=one, run_epochs=run_epochs):
            own = single.model.state_dict()
            for name, value in firsts[0]["model"].items():
                part, number, rest = (name.split(".", 2) + [""] * 2)[:3]
                if part in ("encoders", "heads") and number == str(one):
                    own[f"{part}.0.{rest}"].copy_(value)
            run_epochs()

        single._run_epochs = from_same_start
        assert single.fit().restart_losses[0] == pytest.approx(losses[one], rel=1e-4)
    assert max(losses) - min(losses) > 1e-3 * abs(losses[0])


@pytest.mark.parametrize("kind", ["labels", "hidden"])
def test_consensus_is_the_result(data, kind):
    trainer = trainer_of(data, "train.restarts=5", f"train.consensus={kind}", "train.epochs=30")
    fit = trainer.fit()
    final = trainer.evaluate()
    probs = final.assignment.numpy()
    embeddings = [embedding.detach().numpy() for embedding in final.embeddings()]
    expected = consensus_of(kind, probs, embeddings, 0)
    assert np.array_equal(fit.clusters, expected.clusters)
    assert np.array_equal(fit.probs, expected.probs)
    assert np.array_equal(fit.embedding, expected.embedding)
    assert not any(np.array_equal(fit.probs, probs[:, one]) for one in range(5))
    assert len(fit.restart_losses) == 5
    assert fit.loss["total"] == pytest.approx(np.mean(fit.restart_losses), rel=1e-6)


def test_with_a_consensus_the_graphs_of_replicas_are_averaged(data):
    trainer = trainer_of(
        data, "train.restarts=2", "train.consensus=labels", "structure.shared=false"
    )
    fit = trainer.fit()
    weight = trainer.model.structure().detach()
    assert not torch.equal(weight[0], weight[1])
    np.testing.assert_allclose(fit.weight, weight.mean(0), rtol=1e-6)


def test_candidates_come_from_the_clusters_of_the_best_replica(data, monkeypatch):
    trainer, seen = trainer_of(data, *REFRESH, "train.restarts=4"), []

    def drawn(config, graph, rng, clusters=None, feat=None):
        if clusters is not None:
            now = trainer.evaluate()
            seen.append([np.array_equal(clusters, own) for own in now.clusters.t()])
            assert seen[-1][int(now.losses.argmin())]
        return draw_candidates(config, graph, rng, clusters, feat)

    monkeypatch.setattr("user_dgl.training.trainer.draw_candidates", drawn)
    trainer.fit()
    assert len(seen) == 3
    assert not all(map(all, seen)), "all replicas agree: the test shows nothing"


def test_refresh_carries_the_weights_and_moments_of_every_replica(data, monkeypatch):
    trainer = trainer_of(data, *REFRESH, "train.restarts=2", "structure.shared=false")
    replace, times = trainer.replace_structure, []

    def parts():
        theta = trainer.model.structure.theta
        moments = trainer.optimizer.state[theta]
        return theta.detach().clone(), moments["exp_avg"], moments["exp_avg_sq"]

    def watched(pairs, observed, place, kept):
        before = parts()
        replace(pairs, observed, place, kept)
        for old, new in zip(before, parts(), strict=True):
            assert new.shape == (2, pairs.num_edges)
            assert torch.equal(new[:, place], old[:, kept])
            assert not torch.equal(new[0], new[1])
        times.append(trainer.progress.epoch)

    monkeypatch.setattr(trainer, "replace_structure", watched)
    trainer.fit()
    assert times == [3, 6, 9]


def test_the_gradient_of_a_replica_does_not_depend_on_their_number(data, monkeypatch):
    """Adam hardly minds the scale; weight decay and its epsilon do."""
    quiet = ("model.dropout=0", "model.logit_dropout=0", "structure.learnable=false")
    gradients = []
    for count in (1, 4):
        trainer = trainer_of(data, *quiet, "train.epochs=1", f"train.restarts={count}")

        def step(optimizer, trainer=trainer):
            gradients.append(trainer.model.encoders[0].biases[0].grad.clone())

        monkeypatch.setattr(Adam, "step", step)
        trainer.fit()
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(*gradients)


def test_records_are_means_over_replicas(data):
    rows, quiet = [], ("model.dropout=0", "model.logit_dropout=0", "train.lr=1e-9")
    fit = trainer_of(data, "train.restarts=2", *quiet, record=rows.append).fit()
    assert [row["epoch"] for row in rows] == list(range(1, 13))
    assert fit.epoch_seconds == [row["seconds"] for row in rows]
    assert rows[-1]["loss"] == pytest.approx(np.mean(fit.restart_losses), rel=1e-5)


def test_clusters_in_use_are_those_of_the_replica_with_fewest():
    clusters = torch.tensor([[0, 2, 1], [1, 2, 1], [2, 0, 1], [0, 2, 1]])
    assert clusters_in_use(clusters, 3) == 1
    assert clusters_in_use(clusters[:, :2], 3) == 2
