"""Training in parts: the parts, the loss of the whole graph, and runs against full-batch ones."""

import copy

import numpy as np
import pytest
import torch
from graphs import random_graph
from torch import nn

from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.errors import InputError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.graph import Graph
from user_dgl.graph.ops import weighted_degree
from user_dgl.graph.part_propagation import Moments
from user_dgl.graph.parts import grouped, metis_assignment, parts_of
from user_dgl.graph.propagation import Propagation
from user_dgl.training.hooks import Hooks
from user_dgl.training.partition_trainer import PartitionTrainer
from user_dgl.training.trainer import Trainer

SETTINGS = (
    "model.num_clusters=4",
    "model.hidden_feats=[16,8]",
    "model.observed_mix=0",
    "loss.davies_bouldin_weight=0.1",
    "loss.observed_edge_weight=1",
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


# --- parts ---------------------------------------------------------------------------------------


def _uneven(num_nodes, num_parts):
    """Parts of any sizes, one without nodes."""
    rng = np.random.default_rng(0)
    return rng.choice(num_parts - 1, num_nodes, p=rng.dirichlet(np.ones(num_parts - 1)))


@pytest.mark.parametrize("graph", [random_graph(60, 90), Graph.from_edges(9, [], [])[0]])
def test_parts_hold_each_pair_once_and_touch_all_of_their_nodes(graph):
    assignment = _uneven(graph.num_nodes, 5)
    parts = parts_of(graph, assignment, 5)
    nodes = torch.cat([part.nodes[: part.num_owned] for part in parts])
    assert sorted(nodes.tolist()) == list(range(graph.num_nodes))
    owned = torch.cat([part.pairs[part.owned] for part in parts])
    assert sorted(owned.tolist()) == list(range(graph.num_edges))
    for part in parts:
        (number,) = set(assignment[part.nodes[: part.num_owned].numpy()].tolist())
        ends = assignment[torch.stack([graph.src, graph.dst]).numpy()]
        touched = (ends == number).any(0)
        assert sorted(part.pairs.tolist()) == np.flatnonzero(touched).tolist()
        smaller = assignment[graph.src[part.pairs].numpy()] == number
        assert part.owned.tolist() == smaller.tolist()
        local = part.graph()
        ends = torch.stack([part.nodes[local.src.long()], part.nodes[local.dst.long()]])
        whole = torch.stack([graph.src[part.pairs], graph.dst[part.pairs]])
        assert (ends.sort(0).values == whole).all()
        halo = set(part.halo.tolist())
        assert halo == set(whole.ravel().tolist()) - set(part.nodes[: part.num_owned].tolist())


def test_products_with_parts_of_s_give_those_of_the_whole():
    graph = random_graph(60, 90)
    weight = torch.rand(graph.num_edges, dtype=torch.float64)
    x = torch.randn(60, 3, dtype=torch.float64)
    degree, expected = (
        weighted_degree(graph, weight, "csr"),
        Propagation.of(graph, weight, "csr")(x),
    )
    for part in parts_of(graph, _uneven(60, 4), 4):
        local = part.graph()
        outside = degree[part.nodes] - weighted_degree(local, weight[part.pairs], "csr")
        product = Propagation.of(local, weight[part.pairs], "csr", outside)
        own = part.nodes[: part.num_owned]
        rows = product(x[part.nodes])[: part.num_owned]
        torch.testing.assert_close(rows, expected[own])


def test_metis_parts_are_of_equal_size_and_cut_little(data, capfd):
    parts = metis_assignment(data.graph, 8, seed=0)
    src, dst = data.graph.src.numpy(), data.graph.dst.numpy()
    assert np.bincount(parts).max() <= 1.1 * data.num_nodes / 8
    cut = (parts[src] != parts[dst]).mean()
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(parts)
    assert cut < 0.7 * (shuffled[src] != shuffled[dst]).mean()
    assert capfd.readouterr() == ("", "")


def test_metis_sees_a_sample_of_a_large_graph(data, monkeypatch):
    monkeypatch.setattr("user_dgl.graph.parts.METIS_EDGES_PER_NODE", 1)
    assert data.graph.num_edges > 2 * data.num_nodes
    from user_dgl._dgl import dgl

    seen, cut = [], dgl.metis_partition_assignment

    def metis(graph, num_parts):
        seen.append(graph.num_edges() // 2)
        return cut(graph, num_parts)

    monkeypatch.setattr(dgl, "metis_partition_assignment", metis)
    parts = metis_assignment(data.graph, 4, seed=0)
    assert sorted(set(parts.tolist())) == [0, 1, 2, 3]
    assert seen[0] == pytest.approx(data.num_nodes, rel=0.2)


def test_batches_are_whole_parts():
    parts = np.arange(70) % 7
    batches = grouped(parts, 7, 3, seed=0)
    assert np.bincount(batches).tolist() == [30, 30, 10]
    assert len({(p, b) for p, b in zip(parts.tolist(), batches.tolist(), strict=True)}) == 7


def test_moments_of_parts_are_those_of_the_whole():
    x = torch.randn(50, 3, dtype=torch.float64) + 1e6
    none = Moments(0, torch.zeros(3).double(), torch.zeros(3).double())
    joined = none + Moments.of(x[:7]) + Moments.of(x[7:8]) + Moments.of(x[8:])
    torch.testing.assert_close(joined.mean, x.mean(0))
    torch.testing.assert_close(joined.deviation / joined.count, x.var(0, correction=0))


# --- training ------------------------------------------------------------------------------------


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
def test_the_loss_settled_is_that_of_the_whole_graph(data, encoder):
    """Of any parameters, here trained ones, whatever was kept before."""
    overrides = (f"model.encoder={encoder}", "structure.candidates.uniform=2")
    trainer = PartitionTrainer(data.graph, data.feat, _config(*overrides, parts=5))
    fit = trainer.fit()
    whole = Trainer(data.graph, data.feat, _config(*overrides))
    whole.build()
    whole.model.load_state_dict(trainer.model.state_dict())
    exact = whole.evaluate()
    for name, term in exact.terms.items():
        assert fit.loss[name] == pytest.approx(term.item(), rel=1e-4), name
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
