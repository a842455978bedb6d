"""Training by several ranks against training by one, in float64."""

import copy
import threading

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import random_graph, with_random_weights
from thread_ranks import together

from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.distributed import assembly
from user_dgl.distributed.assembly import (
    WholeData,
    assembled,
    prepare_rank,
    split_among_ranks,
)
from user_dgl.distributed.shards import shards_of
from user_dgl.distributed.trainer import ShardTrainer
from user_dgl.graph import Graph
from user_dgl.perturb import Perturbed
from user_dgl.pipeline.inputs import Inputs
from user_dgl.runtime.progress import StageClock
from user_dgl.runtime.streams import Stream, seed_torch
from user_dgl.training.adam import Adam
from user_dgl.training.hooks import Hooks
from user_dgl.training.stages import candidates_that_stay
from user_dgl.training.trainer import Trainer

COMMON = ("train.precision=float64", "model.num_clusters=4", "model.observed_mix=0")
DROPOUT = ("model.dropout=0.4", "model.logit_dropout=0.2")
LEARNED = ("loss.davies_bouldin_weight=0.2", "loss.observed_edge_weight=1", "train.lr=0.02")
GCN = (*COMMON, *DROPOUT, *LEARNED, "model.hidden_feats=[16,8]", "train.epochs=20")
SMOOTH = (
    *COMMON,
    "model.encoder=smooth",
    "model.head=centroid",
    "model.labels=code",
    "model.logit_dropout=0",
    "structure.prior=critic",
    "loss.davies_bouldin_space=embedding",
    "loss.mixture_weight=0.5",
    "loss.npsi_observed=false",
    "train.epochs=20",
)
SETTINGS = {
    "gcn": GCN,
    "gae, candidates": (
        *GCN, "model.encoder=gae", "structure.candidates.uniform=2", "model.head=linear",
        "loss.npsi_observed=false", "train.plateau_patience=2",
    ),
    "gcn, engine dgl": (*GCN, "structure.engine=dgl"),
    "gcn, authors' index": (*GCN, "loss.davies_bouldin_form=soft_features"),
    "gcn, index of the embeddings": (*GCN, "loss.davies_bouldin_space=embedding"),
    "gcn, code length": (*GCN, "loss.code_length_weight=1", "loss.npsi_weight=0"),
    "smooth": (*SMOOTH, "loss.davies_bouldin_weight=0.3"),
    "smooth, A' fixed": (*SMOOTH, "loss.davies_bouldin_weight=0.3", "train.structure_lr=0"),
    "smooth, authors' index": (
        *SMOOTH, "loss.davies_bouldin_weight=0.3", "loss.davies_bouldin_form=soft_features",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    """A block model with isolated nodes, the last of them without features too."""
    data = block_model(SyntheticConfig(num_nodes=150, num_blocks=4, average_degree=6))
    src, dst = data.graph.src.numpy(), data.graph.dst.numpy()
    kept = (src < 145) & (dst < 145)
    graph, _ = Graph.from_edges(150, src[kept], dst[kept])
    feat = data.feat.tolil()
    feat[149] = 0
    return graph, sp.csr_matrix(feat)


def _uneven(graph, num_parts, seed):
    """Parts of very different sizes; the last has a single node, without edges."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, num_parts) ** 2.0
    assignment = rng.choice(num_parts - 1, graph.num_nodes, p=shares / shares.sum())
    assignment[-1] = num_parts - 1
    return assignment


def _inputs(data, settings):
    graph, feat = data
    if "model.encoder=smooth" in settings:
        # A node with neither edges nor features is as far from all first centroids of k-means, so
        # that rounding chooses its cluster.
        feat = feat.tolil()
        feat[149, 0] = 1
        feat = feat.tocsr()
    noisy = Perturbed(graph, torch.zeros(graph.num_edges, dtype=torch.bool), 0, 0)
    config = load_config(None, list(settings))
    return Inputs(config, config, None, noisy, feat, feat, feat.shape[1], [])


def _single(data, settings):
    inputs, rows = _inputs(data, settings), []
    trainer = Trainer(inputs.noisy.graph, inputs.feat, inputs.config, Hooks(record=rows.append))
    return trainer.fit(), rows, trainer


def _several(data, settings, size, checkpoints=None, epochs=None):
    """TrainingResult, rows, trainers and last checkpoints of so many ranks."""
    inputs = _inputs(data, settings)
    graph, feat = inputs.noisy.graph, inputs.feat
    static = candidates_that_stay(graph, feat, inputs.config, StageClock())
    of_ranks = split_among_ranks(WholeData(inputs, static), size)
    lock, rows = threading.Lock(), []

    def one(ranks):
        states = []
        own, _ = prepare_rank(of_ranks[ranks.rank], inputs.config, ranks, lambda line: None)
        trainer = ShardTrainer(
            own,
            inputs.config,
            ranks,
            hooks=Hooks(record=rows.append, save=lambda state: states.append(copy.deepcopy(state))),
        )
        build = trainer.build

        def alone():  # threads share torch's generator, processes do not
            ranks.wait("the seeds that fit sets")
            with lock:
                seed_torch(inputs.config.seed, Stream.NETWORK)
                build()

        trainer.build = alone
        fit = trainer.fit(copy.deepcopy(checkpoints))  # as each process reads them
        return fit, trainer, states

    fits, trainers, states = zip(*together(size, one), strict=True)
    whole = assembled(list(fits), inputs.config, "csr", "cpu")
    return whole, rows, trainers, states


def _close(found, expected, tolerance=1e-8):
    scale = np.abs(expected).max() + 1e-300
    assert np.abs(found - expected).max() <= tolerance * scale


def _same(found, rows, expected, expected_rows):
    assert len(rows) == len(expected_rows)
    for row, other in zip(rows, expected_rows, strict=True):
        for name in other.keys() - {"seconds"}:
            assert row[name] == pytest.approx(other[name], rel=1e-8), name
    assert np.array_equal(found.clusters, expected.clusters)
    assert found.labels_from == expected.labels_from
    assert found.assignments.keys() == expected.assignments.keys()
    for name, clusters in expected.assignments.items():
        assert np.array_equal(found.assignments[name], clusters)
    assert np.array_equal(found.graph.keys, expected.graph.keys)
    assert np.array_equal(found.observed, expected.observed)
    for name in ("weight", "probs", "embedding"):
        _close(getattr(found, name), getattr(expected, name))
    assert found.loss == pytest.approx(expected.loss, rel=1e-8)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", SETTINGS)
def test_ranks_train_as_one_process(data, name, size):
    expected, expected_rows, _ = _single(data, SETTINGS[name])
    found, rows, trainers, _ = _several(data, SETTINGS[name], size)
    _same(found, rows, expected, expected_rows)
    for trainer in trainers[1:]:  # the network stays in step, bit for bit
        for one, other in zip(trainer._network, trainers[0]._network, strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("name", ["gcn", "gae, candidates", "smooth"])
def test_ranks_train_on_weighted_edges_as_one_process(data, name):
    graph, feat = data
    settings = (*SETTINGS[name], "loss.npsi_observed=true", "loss.npsi_weight=1")
    weighted = with_random_weights(graph), feat
    expected, expected_rows, _ = _single(weighted, settings)
    found, rows, _, _ = _several(weighted, settings, 3)
    _same(found, rows, expected, expected_rows)
    plain, _, _ = _single(data, settings)
    assert plain.loss["npsi_observed"] != pytest.approx(expected.loss["npsi_observed"], rel=1e-4)


@pytest.mark.parametrize("name", ["gcn", "gae, candidates", "smooth"])
def test_uneven_parts_and_a_part_without_edges(data, name, monkeypatch):
    monkeypatch.setattr(assembly, "metis_assignment", _uneven)
    expected, expected_rows, _ = _single(data, SETTINGS[name])
    found, rows, trainers, _ = _several(data, SETTINGS[name], 4)
    if "candidates" not in name:
        assert min(len(trainer.data.shard.part.pairs) for trainer in trainers) == 0
    _same(found, rows, expected, expected_rows)


def test_gradients_of_the_first_step(data, monkeypatch):
    settings = (*GCN, "train.epochs=1")
    steps = {}

    def step(optimizer):
        groups = optimizer.param_groups
        steps[threading.get_ident(), len(steps)] = [
            [p.grad.clone() for p in group["params"]] for group in groups
        ]

    monkeypatch.setattr(Adam, "step", step)
    _single(data, settings)
    ((network, (theta,)),) = steps.values()
    steps.clear()
    _, _, trainers, _ = _several(data, settings, 3)
    assert len(steps) == 3
    owned = [t.data.shard.part.pairs[t.data.shard.part.owned] for t in trainers]
    unmatched = list(steps.values())
    for pairs in owned:
        (found,) = [g for g in unmatched if g[1][0].shape[1] == len(pairs) and torch.allclose(
            g[1][0], theta[:, pairs], rtol=1e-8, atol=1e-16
        )]  # fmt: skip
        for one, other in zip(found[0], network, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("name", ["gcn", "smooth"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_resume_with_another_number_of_ranks(data, name, size):
    settings = SETTINGS[name]
    expected, rows, _, _ = _several(data, settings, 2)
    *_, states = _several(data, (*settings, "train.epochs=7"), 3)
    checkpoints = [of_rank[-1] for of_rank in states]
    assert checkpoints[0]["progress"]["epoch"] == 7
    found, more, _, _ = _several(data, settings, size, checkpoints)
    assert [row["epoch"] for row in more] == list(range(8, 21))
    _same(found, more, expected, [_without_traffic(row) for row in rows[7:]])


def _without_traffic(row):
    return {name: value for name, value in row.items() if name != "megabytes_sent"}


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("graph", [random_graph(60, 90), Graph.from_edges(9, [], [])[0]])
def test_shards_exchange_what_others_own(graph, size):
    assignment = np.random.default_rng(0).permutation(np.arange(graph.num_nodes) % size)
    shards = shards_of(graph, assignment, size)
    x, weight = torch.randn(graph.num_nodes, 3), torch.randn(graph.num_edges)
    sent_nodes = [
        x[s.part.nodes[: s.part.num_owned]][s.nodes.sent].split(s.nodes.sent_counts) for s in shards
    ]
    sent_pairs = [
        weight[s.part.pairs[s.part.owned]][s.pairs.sent].split(s.pairs.sent_counts) for s in shards
    ]
    for rank, shard in enumerate(shards):
        part = shard.part
        received = torch.cat([parts[rank] for parts in sent_nodes])
        assert torch.equal(received, x[part.halo])
        own = weight[part.pairs[part.owned]]
        pairs = torch.cat([own, *(parts[rank] for parts in sent_pairs)])
        assert torch.equal(pairs[shard.pair_place], weight[part.pairs])
    with pytest.raises(ValueError, match="nodes for"):
        shards_of(graph, np.zeros(graph.num_nodes, dtype=np.int64), 2)
