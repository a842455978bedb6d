"""Training in parts: the loss of the whole graph, and runs against full-batch ones."""

import copy

import numpy as np
import pytest
import torch
from graphs import with_random_weights
from torch import nn

from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.errors import InputError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.graph.ops import weighted_degree
from user_dgl.training import partition_trainer as module
from user_dgl.training.hooks import Hooks
from user_dgl.training.partition_trainer import PartitionTrainer
from user_dgl.training.trainer import Trainer

SETTINGS = (
    "model.num_clusters=4",
    "model.hidden_feats=[16,8]",
    "model.observed_mix=0",
    "loss.davies_bouldin_weight=0.1",
    "loss.observed_edge_weight=1",
    "loss.code_length_weight=0.5",
    "train.epochs=8",
    "train.lr=0.02",
)
NO_DROPOUT = ("model.dropout=0", "model.logit_dropout=0")


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=400, num_blocks=4, average_degree=5))


def _config(*overrides, parts=None):
    partition = (
        () if parts is None else ("train.mode=partition", f"train.partition.num_parts={parts}")
    )
    return load_config(None, [*SETTINGS, *partition, *overrides])


@pytest.mark.parametrize("encoder", ["gcn", "gae"])
@pytest.mark.parametrize("head", ["graph_conv", "linear"])
def test_one_batch_trains_as_the_full_batch(data, encoder, head):
    """With dropout, candidates, a schedule and both forms of the graph in NPSI."""
    overrides = (
        f"model.encoder={encoder}", f"model.head={head}", "structure.candidates.feature_knn=3",
        "loss.davies_bouldin_form=soft_features", "train.plateau_patience=0",
        "train.precision=float64",
    )  # fmt: skip
    rows, parted = [], []
    full = Trainer(data.graph, data.feat, _config(*overrides), Hooks(record=rows.append)).fit()
    config = _config(*overrides, parts=1)
    one = PartitionTrainer(data.graph, data.feat, config, Hooks(record=parted.append)).fit()
    for row, other in zip(rows, parted, strict=True):
        assert other["loss"] == pytest.approx(row["loss"], rel=1e-8)
        assert other["lr"] == row["lr"]
    assert one.loss == pytest.approx(full.loss, rel=1e-8)
    np.testing.assert_allclose(one.embedding, full.embedding, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(one.weight, full.weight, rtol=1e-7)
    assert (one.clusters == full.clusters).all()


@pytest.mark.parametrize("encoder", ["gcn", "gae"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_settled_is_that_of_the_whole_graph(data, encoder, weighted):
    """Of any parameters, here trained ones, whatever was kept before."""
    overrides = (f"model.encoder={encoder}", "structure.candidates.uniform=2")
    graph = with_random_weights(data.graph) if weighted else data.graph
    trainer = PartitionTrainer(graph, data.feat, _config(*overrides, parts=5))
    fit = trainer.fit()
    whole = Trainer(graph, data.feat, _config(*overrides))
    whole.build()
    whole.model.load_state_dict(trainer.model.state_dict())
    exact = whole.evaluate()
    for name, term in exact.terms.items():
        # The bits of a code are differences, with the rounding error of what they differ in.
        assert fit.loss[name] == pytest.approx(term.item(), rel=1e-4, abs=1e-7), name
    np.testing.assert_allclose(fit.probs, exact.assignment[:, 0].detach(), atol=1e-4)
    np.testing.assert_allclose(fit.embedding, exact.embeddings()[0].detach(), atol=1e-3)


def test_gradients_of_a_settled_part_are_those_of_the_whole_graph(data):
    """In the weights of its pairs, as far as NPSI and the tie go; the encoder's are of its part."""
    settings = (*NO_DROPOUT, "loss.davies_bouldin_weight=0", "train.epochs=1")
    trainer = PartitionTrainer(data.graph, data.feat, _config(*settings, parts=4))
    trainer.build()
    whole = Trainer(data.graph, data.feat, _config(*settings))
    whole.build()
    whole.model.load_state_dict(trainer.model.state_dict())
    gradients = {}
    part = trainer._parts[2]

    def collect(optimizer, pairs, gradient, epoch):
        assert torch.equal(pairs, part.pairs[part.owned])
        gradients.update(part=part, gradient=gradient)

    trainer._pair_adam.step = collect
    # Y as a constant: what the weights do to it through S reaches beyond a part.
    for model in (trainer.model, whole.model):
        for head in model.heads:
            nn.init.zeros_(head.weight)
    trainer._settle()
    trainer._update_part(2)
    state = whole.model(whole.features)
    sum(term.sum() for term in whole.loss(state).values()).backward()
    part, owned = gradients["part"], gradients["part"].owned
    expected = whole.model.structure.theta.grad[0, part.pairs[owned]]
    torch.testing.assert_close(gradients["gradient"], expected, rtol=1e-3, atol=1e-9)


def test_parts_train_as_well_as_the_whole(data):
    settings = (*NO_DROPOUT, "train.epochs=30")
    scores = []
    for parts in (None, 6):
        trainer = (Trainer if parts is None else PartitionTrainer)(
            data.graph, data.feat, _config(*settings, parts=parts)
        )
        scores.append(clustering_metrics(data.labels, trainer.fit().clusters)["nmi"])
    assert scores[1] > scores[0] - 1


def test_running_sums_are_those_of_what_is_known(data):
    """After 60 updates, also of clusters that emptied on the way."""
    config = _config("train.epochs=12", "train.lr=0.1", "train.partition.settle_every=100", parts=5)
    trainer = PartitionTrainer(data.graph, data.feat, config)
    trainer.build()
    for epoch in range(12):
        trainer.progress.epoch = epoch
        if epoch < 11:  # the last one settles
            trainer.step()
    pairs = zip(trainer._sums.tensors(), trainer._sums_known().tensors(), strict=True)
    for running, known in pairs:
        torch.testing.assert_close(running, known, rtol=1e-5, atol=1e-3)
    degree = weighted_degree(trainer.model.structure.graph, trainer._weight, "csr")
    torch.testing.assert_close(trainer._degree, degree, rtol=1e-4, atol=1e-4)
    assert (trainer._weight - trainer._prior).abs().max() > 0.1


def test_printed_loss_is_close_to_the_exact_one(data):
    rows = []
    config = _config(*NO_DROPOUT, "train.epochs=20", "train.partition.settle_every=5", parts=4)
    PartitionTrainer(data.graph, data.feat, config, Hooks(record=rows.append)).fit()
    exact = {row["epoch"]: row["exact_loss"] for row in rows if "exact_loss" in row}
    assert list(exact) == [5, 10, 15, 20]
    assert rows[-1]["loss"] == pytest.approx(exact[20], abs=0.1)


def test_resumed_equals_uninterrupted(data):
    saved = []
    config = _config("train.checkpoint_every=3", "train.partition.settle_every=4", parts=4)

    def keep(state):
        saved.append(copy.deepcopy(state))

    whole = PartitionTrainer(data.graph, data.feat, config, Hooks(save=keep)).fit()
    assert [state["progress"]["epoch"] for state in saved] == [0, 3, 6, 8]
    for state in saved[:3]:
        again = PartitionTrainer(data.graph, data.feat, config).fit(state)
        assert again.loss == whole.loss
        assert np.array_equal(again.clusters, whole.clusters)
        assert np.array_equal(again.weight, whole.weight)


def test_resumed_where_metis_would_cut_in_another_way(data, monkeypatch):
    saved = []
    config = _config("train.checkpoint_every=3", parts=4)
    hooks = Hooks(save=lambda state: saved.append(copy.deepcopy(state)))
    whole = PartitionTrainer(data.graph, data.feat, config, hooks).fit()
    monkeypatch.setattr(module, "metis_assignment", lambda pairs, *_: np.arange(400) % 4)
    again = PartitionTrainer(data.graph, data.feat, config).fit(saved[1])
    assert again.loss == whole.loss
    assert PartitionTrainer(data.graph, data.feat, config).fit().loss != whole.loss


def test_fixed_structure_stays(data):
    config = _config("structure.learnable=false", "loss.observed_edge_weight=0", parts=3)
    fit = PartitionTrainer(data.graph, data.feat, config).fit()
    np.testing.assert_allclose(fit.weight, 1, atol=1e-6)


@pytest.mark.parametrize(
    ("override", "name"),
    [
        ("model.observed_mix=0.5", "model.observed_mix=0"),
        ("train.restarts=2", "train.restarts=1"),
        ("loss.reconstruction_weight=1", "loss.reconstruction_weight=0"),
        ("loss.davies_bouldin_space=embedding", "loss.davies_bouldin_space=features"),
        ("structure.candidates.refresh_every=2", "structure.candidates.refresh_every=0"),
    ],
)
def test_what_a_part_cannot_do_is_refused(override, name):
    with pytest.raises(InputError, match=f"train.mode=partition needs {name}"):
        _config(override, parts=2)
