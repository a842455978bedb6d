"""Training: repeatability, restarts, resume, refresh, stops."""

import itertools
import json
import math

import numpy as np
import pytest
import torch

from user_dgl.clustering.consensus import consensus_of
from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.errors import InputError, NonFiniteLossError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.evaluation.ranking_metrics import weight_auc
from user_dgl.graph import Graph
from user_dgl.perturb import random_flip
from user_dgl.structure.candidates import draw_candidates
from user_dgl.structure.priors import cosine_weight
from user_dgl.training.hooks import Hooks
from user_dgl.training.partition_trainer import PartitionTrainer
from user_dgl.training.trainer import Trainer, clusters_in_use

SMALL = (
    "model.num_clusters=3",
    "model.hidden_feats=[16]",
    "train.epochs=12",
    "train.lr=0.05",
    "structure.candidates.feature_knn=2",
)


REFRESH = (
    "structure.candidates.refresh_every=3",
    "structure.candidates.k_hop=1",
    "structure.candidates.same_cluster=1",
)


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=90, num_blocks=3, average_degree=6.0))


def _trainer(data, *overrides, **callbacks):
    return Trainer(
        data.graph, data.feat, load_config(None, [*SMALL, *overrides]), Hooks(**callbacks)
    )


def _same(a, b):
    return (
        np.array_equal(a.clusters, b.clusters)
        and np.array_equal(a.embedding, b.embedding)
        and np.array_equal(a.weight, b.weight)
        and a.loss == b.loss
    )


def test_same_seed_same_result_other_seed_another(data):
    first, again = _trainer(data).fit(), _trainer(data).fit()
    assert _same(first, again)
    assert not _same(first, _trainer(data, "seed=1").fit())


def test_global_random_state_is_left_alone(data):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    _trainer(data).fit()
    assert torch.rand(1) == expected


@pytest.mark.parametrize(("bound", "expected"), [(2**25, 1), (0, 2)])
def test_small_graphs_train_on_one_thread(data, monkeypatch, bound, expected):
    monkeypatch.setattr("user_dgl.training.stages._SINGLE_THREAD_BELOW", bound)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = set()
        _trainer(data, record=lambda row: seen.add(torch.get_num_threads())).fit()
        assert seen == {expected}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_loss_falls_and_weights_learn(data):
    rows = []
    fit = _trainer(
        data, "train.epochs=60", "model.dropout=0", "model.logit_dropout=0", record=rows.append
    ).fit()
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.3
    assert [row["epoch"] for row in rows] == list(range(1, 61))
    assert fit.weight[fit.observed].std() > 0.01
    assert fit.loss["total"] == pytest.approx(sum(v for k, v in fit.loss.items() if k != "total"))
    json.dumps(rows)


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("model.encoder=gae", "model.head=linear"),
        ("train.mode=partition", "train.partition.num_parts=3", "structure.engine=csr"),
        ("model.encoder=smooth", "model.head=centroid", "structure.candidates.feature_knn=0"),
    ],
    ids=["gcn", "gae", "parts", "smooth"],
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
    assert _trainer(data, "model.observed_mix=0.5").memberships() is None
    assert _trainer(data, "model.observed_mix=0", "train.restarts=2").memberships() is None


def test_fixed_structure_is_the_observed_graph_at_weight_one(data):
    fit = _trainer(data, "structure.learnable=false", "structure.prior=feature_cosine").fit()
    assert np.array_equal(fit.graph.keys, data.graph.keys)
    assert fit.observed.all()
    np.testing.assert_allclose(fit.weight, 1, rtol=1e-6)


def test_engines_train_alike(data):
    fits = [
        _trainer(data, f"structure.engine={engine}", "train.epochs=1").fit()
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
        saved.append({"state": _copied(state)})

    whole = _trainer(data, "train.checkpoint_every=5", *extra, save=save).fit()
    assert len(saved) >= 4
    for point in saved:
        resumed = _trainer(data, "train.checkpoint_every=5", *extra).fit(_copied(point["state"]))
        assert _same(resumed, whole)
        assert resumed.restart_losses == whole.restart_losses


def _copied(state):
    """As a file would hold it: nothing shared with the trainer."""
    if isinstance(state, dict):
        return {k: _copied(v) for k, v in state.items()}
    if isinstance(state, list):
        return [_copied(v) for v in state]
    return state.clone() if isinstance(state, torch.Tensor) else state


def test_checkpoint_of_another_graph_is_refused(data):
    saved = []
    _trainer(data, save=lambda state: saved.append(state)).fit()
    other = Graph.from_keys(data.num_nodes, data.graph.keys[1:])
    trainer = Trainer(other, data.feat, load_config(None, SMALL))
    with pytest.raises(InputError, match="another graph"):
        trainer.fit(saved[-1])


@pytest.mark.parametrize("shared", ["true", "false"])
def test_the_replica_of_lowest_loss_wins(data, shared):
    trainer = _trainer(data, "train.restarts=3", f"structure.shared={shared}")
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
        ("structure.shared=false", "loss.observed_edge_weight=0.5"),
        ("structure.learnable=false", "model.encoder=gae", "model.head=linear"),
    ],
    ids=["fixed", "unshared", "gae"],
)
def test_replicas_train_as_if_alone(data, extra):
    """Where nothing is shared and nothing drawn, each equals a single run from its first state."""
    quiet = ("model.dropout=0", "model.logit_dropout=0", "train.plateau_factor=1", *extra)
    together, firsts = _trainer(data, "train.restarts=3", *quiet), []
    together.save = lambda state: firsts.append(_copied(state))
    losses = together.fit().restart_losses
    for one in range(3):
        single = _trainer(data, *quiet)
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
    trainer = _trainer(data, "train.restarts=5", f"train.consensus={kind}", "train.epochs=30")
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
    trainer = _trainer(data, "train.restarts=2", "train.consensus=labels", "structure.shared=false")
    fit = trainer.fit()
    weight = trainer.model.structure().detach()
    assert not torch.equal(weight[0], weight[1])
    np.testing.assert_allclose(fit.weight, weight.mean(0), rtol=1e-6)


def test_candidates_come_from_the_clusters_of_the_best_replica(data, monkeypatch):
    trainer, seen = _trainer(data, *REFRESH, "train.restarts=4"), []

    def drawn(config, graph, rng, clusters=None):
        if clusters is not None:
            now = trainer.evaluate()
            seen.append([np.array_equal(clusters, own) for own in now.clusters.t()])
            assert seen[-1][int(now.losses.argmin())]
        return draw_candidates(config, graph, rng, clusters)

    monkeypatch.setattr("user_dgl.training.trainer.draw_candidates", drawn)
    trainer.fit()
    assert len(seen) == 3
    assert not all(map(all, seen)), "all replicas agree: the test shows nothing"


def test_refresh_carries_the_weights_and_moments_of_every_replica(data, monkeypatch):
    trainer = _trainer(data, *REFRESH, "train.restarts=2", "structure.shared=false")
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

    monkeypatch.setattr(trainer, "_replace_structure", watched)
    trainer.fit()
    assert times == [3, 6, 9]


def test_the_gradient_of_a_replica_does_not_depend_on_their_number(data, monkeypatch):
    """Adam hardly minds the scale; weight decay and its epsilon do."""
    quiet = ("model.dropout=0", "model.logit_dropout=0", "structure.learnable=false")
    gradients = []
    for count in (1, 4):
        trainer = _trainer(data, *quiet, "train.epochs=1", f"train.restarts={count}")

        def step(optimizer, trainer=trainer):
            gradients.append(trainer.model.encoders[0].biases[0].grad.clone())

        monkeypatch.setattr(torch.optim.Adam, "step", step)
        trainer.fit()
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(*gradients)


def test_denormals_are_flushed_only_while_training(data):
    seen = []
    _trainer(data, record=lambda row: seen.append(_denormals_vanish())).fit()
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
    trainer = _trainer(data, *overrides)
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
    fit = _trainer(data, *overrides).fit()
    found = len(np.unique(fit.clusters))
    assert found < 40
    assert any(f"40 clusters asked for, {found} found" in line for line in fit.warnings)
    assert not _trainer(data, "train.epochs=40").fit().warnings


def test_no_term_at_all_leaves_the_model_as_it_is(data):
    fit = _trainer(data, "loss.npsi_weight=0").fit()
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
        _trainer(data, *overrides)


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
    _trainer(data, "train.plateau_patience=0", "train.lr=1", record=rows.append).fit()
    assert rows[-1]["lr"] < 1
    steady = ("model.dropout=0", "model.logit_dropout=0", "train.lr=0.01")
    rows.clear()
    _trainer(data, "train.plateau_patience=0", *steady, record=rows.append).fit()
    assert all(b["loss"] < a["loss"] for a, b in itertools.pairwise(rows))
    assert {row["lr"] for row in rows} == {0.01}
    _trainer(data, "train.plateau_factor=1", record=rows.append).fit()
    assert rows[-1]["lr"] == 0.05


def test_structure_has_its_own_learning_rate_and_no_weight_decay(data):
    trainer = _trainer(data, "train.structure_lr=0.125", "train.weight_decay=0.25")
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
    trainer = _trainer(data, *overrides)
    fit = trainer.fit()
    expected = cosine_weight(data.graph, data.feat, 0.5)
    assert expected.std() > 0.1
    np.testing.assert_allclose(fit.weight[fit.observed], expected, rtol=1e-5)
    np.testing.assert_allclose(fit.weight[~fit.observed], 0.25, rtol=1e-5)


def test_weights_are_tied_to_the_prior(data):
    overrides = (
        "structure.prior=feature_cosine", "loss.observed_edge_weight=1e6", "loss.npsi_weight=1",
    )  # fmt: skip
    trainer = _trainer(data, *overrides)
    fit = trainer.fit()
    np.testing.assert_allclose(fit.weight[fit.observed], trainer.prior.weight, atol=0.05)


def test_records_are_means_over_replicas(data):
    rows, quiet = [], ("model.dropout=0", "model.logit_dropout=0", "train.lr=1e-9")
    fit = _trainer(data, "train.restarts=2", *quiet, record=rows.append).fit()
    assert [row["epoch"] for row in rows] == list(range(1, 13))
    assert fit.epoch_seconds == [row["seconds"] for row in rows]
    assert rows[-1]["loss"] == pytest.approx(np.mean(fit.restart_losses), rel=1e-5)


def test_clusters_in_use_are_those_of_the_replica_with_fewest():
    clusters = torch.tensor([[0, 2, 1], [1, 2, 1], [2, 0, 1], [0, 2, 1]])
    assert clusters_in_use(clusters, 3) == 1
    assert clusters_in_use(clusters[:, :2], 3) == 2


def test_a_cluster_that_empties_during_training_is_said_once(data, monkeypatch):
    lines = []
    trainer = _trainer(data, log=lines.append)
    counts = iter([2, 3, 3, 2, 3, 1, 1, 1, 1, 1, 1, 1])
    step = trainer.step
    monkeypatch.setattr(trainer, "_step", lambda: (step()[0], next(counts), {}))
    trainer.fit()
    said = [line for line in lines if line.startswith("Warning")]
    assert said == ["Warning: epoch 4: 2 of 3 clusters in use"]


def test_checkpoint_of_other_features_is_refused(data):
    saved = []
    _trainer(data, save=saved.append).fit()
    for feat in (data.feat * 2, data.feat[:, :-1]):
        trainer = Trainer(data.graph, feat, load_config(None, SMALL))
        with pytest.raises(InputError, match="other features"):
            trainer.fit(saved[-1])
    with pytest.raises(InputError, match="not one of this version"):
        _trainer(data).fit({"a": 1})


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
