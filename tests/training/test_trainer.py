"""Training: repeatability, resume, refresh, stops."""

import itertools
import json
import math

import numpy as np
import pytest
import torch
from small_training import REFRESH, SMALL, copied, same_result, trainer_of

from user_dgl.cleaning.priors import cosine_weight
from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.errors import InputError, NonFiniteLossError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.evaluation.ranking_metrics import weight_auc
from user_dgl.graph import Graph
from user_dgl.perturb import random_flip
from user_dgl.training.partition_trainer import PartitionTrainer
from user_dgl.training.trainer import Trainer


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=90, num_blocks=3, average_degree=6.0))


def test_same_seed_same_result_other_seed_another(data):
    first, again = trainer_of(data).fit(), trainer_of(data).fit()
    assert same_result(first, again)
    assert not same_result(first, trainer_of(data, "seed=1").fit())


def test_global_random_state_is_left_alone(data):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    trainer_of(data).fit()
    assert torch.rand(1) == expected


@pytest.mark.parametrize(("bound", "expected"), [(2**25, 1), (0, 2)])
def test_small_graphs_train_on_one_thread(data, monkeypatch, bound, expected):
    monkeypatch.setattr("user_dgl.training.stages._SINGLE_THREAD_BELOW", bound)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = set()
        trainer_of(data, record=lambda row: seen.add(torch.get_num_threads())).fit()
        assert seen == {expected}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_loss_falls_and_weights_learn(data):
    rows = []
    fit = trainer_of(
        data, "train.epochs=60", "model.dropout=0", "model.logit_dropout=0", record=rows.append
    ).fit()
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.3
    assert [row["epoch"] for row in rows] == list(range(1, 61))
    assert fit.weight[fit.observed].std() > 0.01
    assert fit.loss["total"] == pytest.approx(sum(v for k, v in fit.loss.items() if k != "total"))
    json.dumps(rows)


SMOOTH = (
    "model.encoder=smooth", "model.head=centroid", "structure.candidates.feature_knn=0",
    "model.observed_mix=0",
)  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("model.encoder=gae", "model.head=linear"),
        ("train.mode=partition", "train.partition.num_parts=3", "structure.engine=csr"),
        ("model.encoder=smooth", "model.head=centroid", "structure.candidates.feature_knn=0"),
        (
            "model.encoder=smooth",
            "model.head=centroid",
            "structure.candidates.feature_knn=0",
            "structure.prior=feature_cosine",
            "train.structure_lr=0",
            "model.smooth.weight_power=3",
        ),
    ],
    ids=["gcn", "gae", "parts", "smooth", "power"],
)
def test_memberships_of_the_final_weights_are_the_final_ones(data, settings):
    config = load_config(None, [*SMALL, "model.observed_mix=0", *settings])
    kind = PartitionTrainer if config.train.mode == "partition" else Trainer
    trainer = kind(data.graph, data.feat, config)
    fit = trainer.fit()
    on = trainer.memberships()
    weight = torch.from_numpy(fit.weight)
    np.testing.assert_allclose(on(weight), fit.probs, atol=1e-4)
    without = weight.clone()
    without[::2] = 0
    changed = on(without)
    assert np.abs(changed - fit.probs).max() > 0.001
    np.testing.assert_allclose(on(weight), fit.probs, atol=1e-4)  # nothing stays


def test_memberships_that_are_not_to_be_had(data):
    assert trainer_of(data, "model.observed_mix=0.5").memberships() is None
    assert trainer_of(data, "model.observed_mix=0", "train.restarts=2").memberships() is None
    # The points of this view are those of the whole graph, so that they know every edge.
    assert trainer_of(data, *SMOOTH, "model.smooth.source=graph").memberships() is None
    assert trainer_of(data, *SMOOTH).memberships() is not None


def test_weights_are_tied_to_those_that_a_starts_from(data):
    """They are the prior to the power of the view, so that the penalty is 0 at first."""
    rows = []
    settings = (
        "model.smooth.weight_power=2", "structure.prior=feature_cosine", "train.structure_lr=0.05",
        "loss.observed_edge_weight=1", "loss.observed_edge_form=mean_square",
    )  # fmt: skip
    trainer = trainer_of(data, *SMOOTH, *settings, record=rows.append)
    trainer.fit()
    assert trainer.prior.weight.std() > 0.1
    assert rows[0]["observed_edges"] == pytest.approx(0, abs=1e-9)
    assert rows[-1]["observed_edges"] > 1e-6


def test_a_checkpoint_of_another_view_is_refused(data):
    saved = []
    trainer_of(data, *SMOOTH, "model.smooth.hops=4", save=saved.append).fit()
    with pytest.raises(InputError, match=r"another view of the features, 4 hops, .* 8 hops, "):
        trainer_of(data, *SMOOTH, "model.smooth.hops=8").fit(saved[-1])


def test_fixed_structure_is_the_observed_graph_at_weight_one(data):
    fit = trainer_of(data, "structure.learnable=false", "structure.prior=feature_cosine").fit()
    assert np.array_equal(fit.graph.keys, data.graph.keys)
    assert fit.observed.all()
    np.testing.assert_allclose(fit.weight, 1, rtol=1e-6)


def test_engines_train_alike(data):
    fits = [
        trainer_of(data, f"structure.engine={engine}", "train.epochs=1").fit()
        for engine in ("csr", "dgl")
    ]
    assert [fit.engine for fit in fits] == ["csr", "dgl"]
    assert fits[0].loss["total"] == pytest.approx(fits[1].loss["total"], rel=1e-5)


@pytest.mark.parametrize(
    "extra",
    [
        (),
        ("structure.learnable=false",),
        ("train.restarts=3",),
        (*REFRESH, "train.restarts=2", "train.consensus=hidden"),
        (*REFRESH, "train.restarts=2", "structure.shared=false"),
        REFRESH,
        ("train.plateau_patience=0", "train.lr=0.5"),
        ("loss.reconstruction_weight=1e-3", "model.encoder=gae", "model.head=linear"),
    ],
    ids=["plain", "fixed", "replicas", "consensus", "unshared", "refresh", "schedule", "printed"],
)
def test_resumed_equals_uninterrupted_from_every_checkpoint(data, extra):
    saved = []

    def save(state):
        saved.append({"state": copied(state)})

    whole = trainer_of(data, "train.checkpoint_every=5", *extra, save=save).fit()
    assert len(saved) >= 4
    for point in saved:
        resumed = trainer_of(data, "train.checkpoint_every=5", *extra).fit(copied(point["state"]))
        assert same_result(resumed, whole)
        assert resumed.restart_losses == whole.restart_losses


def test_checkpoint_of_another_graph_is_refused(data):
    saved = []
    trainer_of(data, save=lambda state: saved.append(state)).fit()
    other = Graph.from_keys(data.num_nodes, data.graph.keys[1:])
    trainer = Trainer(other, data.feat, load_config(None, SMALL))
    with pytest.raises(InputError, match="another graph"):
        trainer.fit(saved[-1])


def test_denormals_are_flushed_only_while_training(data):
    seen = []
    trainer_of(data, record=lambda row: seen.append(_denormals_vanish())).fit()
    assert set(seen) == {True}
    assert not _denormals_vanish()


def _denormals_vanish():
    return bool(torch.tensor(1e-40) * 1 == 0)


def test_refresh_draws_new_candidates_and_keeps_the_heavier_half(data):
    overrides = (
        "structure.candidates.feature_knn=0",
        "structure.candidates.uniform=3",
        "structure.candidates.refresh_every=4",
    )
    trainer = trainer_of(data, *overrides)
    seen = []
    refresh = trainer.refresh_candidates

    def moments():
        theta = trainer.model.structure.theta
        state = trainer.optimizer.state.get(theta, {})
        keys = trainer.model.structure.graph.keys.tolist()
        return dict(zip(keys, state["exp_avg_sq"][0].tolist(), strict=True)) if state else {}

    def candidates():
        structure = trainer.model.structure
        assert trainer.optimizer.param_groups[1]["params"][0] is structure.theta
        new = ~structure.observed.numpy()
        weight = structure().detach().numpy()[0, new]
        return dict(zip(structure.graph.keys[new].tolist(), weight.tolist(), strict=True))

    def watched():
        before, adam = candidates(), moments()
        refresh()
        seen.append((before, candidates()))
        if before != seen[-1][1]:
            kept = set(data.graph.keys.tolist())  # observed pairs keep Adam's moments
            after = moments()
            assert any(adam[key] > 0 for key in kept)
            assert all(after[key] == adam[key] for key in kept)

    trainer.refresh_candidates = watched
    fit = trainer.fit()
    assert [before == after for before, after in seen] == [e not in (4, 8) for e in range(12)]
    before, after = seen[4]
    assert set(before) != set(after)
    kept = set(before) & set(after)
    heavy = sorted(before, key=before.get)[len(before) // 2 + 1 :]
    assert set(heavy) <= set(after)
    assert len(kept) < len(before)
    assert all(after[key] == pytest.approx(before[key]) for key in heavy)
    new = [after[key] for key in after if key not in before]
    np.testing.assert_allclose(new, 1.0, rtol=1e-6)
    assert np.array_equal(fit.graph.keys[fit.observed], data.graph.keys)


def test_non_finite_loss_stops_before_the_update(data):
    feat = data.feat.copy()
    feat.data[:] = 3e38  # squares overflow float32
    trainer = Trainer(data.graph, feat, load_config(None, [*SMALL, "loss.davies_bouldin_weight=1"]))
    with pytest.raises(NonFiniteLossError, match=r"epoch 1: .*davies_bouldin"):
        trainer.fit()
    assert all(torch.isfinite(p).all() for p in trainer.model.parameters())


def test_collapse_is_reported(data):
    overrides = ("model.num_clusters=40", "train.epochs=3")
    fit = trainer_of(data, *overrides).fit()
    found = len(np.unique(fit.clusters))
    assert found < 40
    assert any(f"40 clusters asked for, {found} found" in line for line in fit.warnings)
    assert not trainer_of(data, "train.epochs=40").fit().warnings


def test_no_term_at_all_leaves_the_model_as_it_is(data):
    fit = trainer_of(data, "loss.npsi_weight=0").fit()
    assert fit.loss == {"total": 0}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("model.num_clusters=null",), "num_clusters is not set"),
        (("model.num_clusters=91",), "91 clusters asked for, 90 nodes"),
        (("device=cuda",), "no CUDA"),
    ],
)
def test_unusable_settings(data, overrides, message):
    if "cuda" in overrides[0] and torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    with pytest.raises(InputError, match=message):
        trainer_of(data, *overrides)


def test_missing_features_are_refused(data):
    with pytest.raises(InputError, match="no node features"):
        Trainer(data.graph, None, load_config(None, SMALL))


@pytest.mark.parametrize("num_edges", [0, 1])
def test_graphs_with_next_to_no_edges_train(data, num_edges):
    graph = Graph.from_keys(data.num_nodes, data.graph.keys[:num_edges])
    fit = Trainer(graph, data.feat, load_config(None, SMALL)).fit()
    assert math.isfinite(fit.loss["total"])
    assert np.isfinite(fit.embedding).all()


def test_plateau_lowers_the_learning_rate_only_when_the_loss_does_not_fall(data):
    rows = []
    trainer_of(data, "train.plateau_patience=0", "train.lr=1", record=rows.append).fit()
    assert rows[-1]["lr"] < 1
    steady = ("model.dropout=0", "model.logit_dropout=0", "train.lr=0.01")
    rows.clear()
    trainer_of(data, "train.plateau_patience=0", *steady, record=rows.append).fit()
    assert all(b["loss"] < a["loss"] for a, b in itertools.pairwise(rows))
    assert {row["lr"] for row in rows} == {0.01}
    trainer_of(data, "train.plateau_factor=1", record=rows.append).fit()
    assert rows[-1]["lr"] == 0.05


def test_structure_has_its_own_learning_rate_and_no_weight_decay(data):
    trainer = trainer_of(data, "train.structure_lr=0.125", "train.weight_decay=0.25")
    trainer.fit()
    network, structure = trainer.optimizer.param_groups
    assert structure["params"][0] is trainer.model.structure.theta
    assert (network["lr"], structure["lr"]) == (0.05, 0.125)
    assert (network["weight_decay"], structure["weight_decay"]) == (0.25, 0)
    names = {name for name, _ in trainer.model.named_parameters()}
    assert len(network["params"]) == len(names - {"structure.theta"})


def test_first_weights_are_the_prior_and_the_initial_weight(data):
    overrides = (
        "structure.prior=feature_cosine", "structure.candidates.initial_weight=0.25",
        "train.structure_lr=1e-9", "train.epochs=1",
    )  # fmt: skip
    trainer = trainer_of(data, *overrides)
    fit = trainer.fit()
    expected = cosine_weight(data.graph, data.feat, 0.5)
    assert expected.std() > 0.1
    np.testing.assert_allclose(fit.weight[fit.observed], expected, rtol=1e-5)
    np.testing.assert_allclose(fit.weight[~fit.observed], 0.25, rtol=1e-5)


def test_weights_are_tied_to_the_prior(data):
    overrides = (
        "structure.prior=feature_cosine", "loss.observed_edge_weight=1e6", "loss.npsi_weight=1",
    )  # fmt: skip
    trainer = trainer_of(data, *overrides)
    fit = trainer.fit()
    np.testing.assert_allclose(fit.weight[fit.observed], trainer.prior.weight, atol=0.05)


def test_a_cluster_that_empties_during_training_is_said_once(data, monkeypatch):
    lines = []
    trainer = trainer_of(data, log=lines.append)
    counts = iter([2, 3, 3, 2, 3, 1, 1, 1, 1, 1, 1, 1])
    step = trainer.step
    monkeypatch.setattr(trainer, "step", lambda: step()._replace(clusters_in_use=next(counts)))
    trainer.fit()
    said = [line for line in lines if line.startswith("Warning")]
    assert said == ["Warning: epoch 4: 2 of 3 clusters in use"]


def test_checkpoint_of_other_features_is_refused(data):
    saved = []
    trainer_of(data, save=saved.append).fit()
    for feat in (data.feat * 2, data.feat[:, :-1]):
        trainer = Trainer(data.graph, feat, load_config(None, SMALL))
        with pytest.raises(InputError, match="other features"):
            trainer.fit(saved[-1])
    with pytest.raises(InputError, match="not one of this version"):
        trainer_of(data).fit({"a": 1})


def test_injected_edges_end_lighter_than_the_original_ones():
    """What the learned structure is for: it is told nothing about which edges were added."""
    data = block_model(
        SyntheticConfig(num_nodes=500, num_blocks=5, average_degree=10.0, mixing=0.1)
    )
    noisy = random_flip(data.graph, 0.3, seed=0)
    settings = (
        "model.num_clusters=5", "model.hidden_feats=[64]", "train.epochs=150", "train.lr=0.05",
        "loss.observed_edge_form=mean_square", "loss.observed_edge_weight=1",
    )  # fmt: skip
    added, nmi = noisy.added.numpy(), []
    for seed in range(5):
        config = load_config(None, [*settings, f"seed={seed}"])
        fit = Trainer(noisy.graph, data.feat, config).fit()
        weight = fit.weight[fit.observed]
        assert weight_auc(weight, added) >= 80
        assert weight[added].mean() < 0.9 * weight[~added].mean()
        nmi.append(clustering_metrics(data.labels, fit.clusters)["nmi"])
    assert np.mean(nmi) > 90
