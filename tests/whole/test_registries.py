"""Adding a part from outside of the package: one object and one line in its registry."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from user_dgl.config import load_config
from user_dgl.config.data import DATA_KINDS, NOISE_KINDS, DataKind, NoiseKind
from user_dgl.config.model import ENCODERS, EncoderTraits
from user_dgl.data import AttributedGraph, block_model
from user_dgl.data.formats.registry import FORMATS, Format
from user_dgl.encoders.base import Encoder
from user_dgl.encoders.smooth import Smooth
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.model.terms import TERMS, SummedTerm, WholeTerm
from user_dgl.perturb import compare
from user_dgl.pipeline.train import train
from user_dgl.structure.candidates import SOURCES, Source

SMALL = (
    "data.synthetic.num_nodes=60",
    "data.synthetic.num_blocks=3",
    "model.num_clusters=3",
    "model.hidden_feats=[8]",
    "train.epochs=3",
)


def _train(folder, *overrides):
    train(load_config(None, [*SMALL, *overrides]), folder, lambda line: None)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return json.loads((folder / "result.json").read_text()), rows


class Plain(Encoder):
    """One linear graph convolution."""

    def __init__(self, in_feats, hidden_feats, dropout):
        super().__init__()
        self.linear = nn.Linear(in_feats, hidden_feats[-1], bias=False)
        self.out_feats = hidden_feats[-1]

    def forward(self, propagation, features):
        """H (N, out_feats)."""
        hidden = propagation(features.matmul(self.linear.weight.t()))
        return propagation.extend(0, hidden)


@pytest.mark.parametrize("mode", ["full", "partition"])
def test_an_encoder(tmp_path, monkeypatch, mode):
    monkeypatch.setitem(ENCODERS, "toy", EncoderTraits(Plain, in_parts=True))
    more = ["model.observed_mix=0", f"train.mode={mode}", "train.partition.num_parts=2"]
    result, _ = _train(tmp_path / "run", "model.encoder=toy", *more)
    assert result["epochs"] == 3
    assert np.load(tmp_path / "run" / "embedding.npy").shape == (60, 8)


def test_traits_of_an_encoder_decide_what_is_refused(monkeypatch):
    monkeypatch.setitem(ENCODERS, "toy", EncoderTraits(Plain))
    with pytest.raises(
        InputError, match=r"train\.mode=partition needs model\.encoder=gcn or gae, got toy"
    ):
        load_config(None, ["model.encoder=toy", "train.mode=partition", "model.observed_mix=0"])
    with pytest.raises(InputError, match=r"model\.encoder: expected one of .*toy, got 'tpy'"):
        load_config(None, ["model.encoder=tpy"])


class Forgetful(Plain):
    """An encoder that does not keep the outputs of its layers."""

    def forward(self, propagation, features):
        """H (N, out_feats)."""
        return propagation(features.matmul(self.linear.weight.t()))


@pytest.mark.parametrize("head", ["graph_conv", "linear"])
def test_an_encoder_that_claims_to_work_in_parts_and_does_not(tmp_path, monkeypatch, head):
    monkeypatch.setitem(ENCODERS, "toy", EncoderTraits(Forgetful, in_parts=True))
    more = ["model.observed_mix=0", "train.mode=partition", "train.partition.num_parts=2"]
    with pytest.raises(InputError, match=r"model\.encoder=toy: to be trained in parts, it has to"):
        _train(tmp_path / "run", "model.encoder=toy", f"model.head={head}", *more)


class Halved(Smooth):
    """The smoothed features, half as long."""

    def forward(self, propagation, features):
        """H (N, d)."""
        return super().forward(propagation, features) / 2


def test_an_encoder_without_weights(tmp_path, monkeypatch):
    monkeypatch.setitem(ENCODERS, "toy", EncoderTraits(Halved, learns=False))
    _train(tmp_path / "run", "model.encoder=toy", "model.head=centroid", "model.observed_mix=0")
    norms = np.linalg.norm(np.load(tmp_path / "run" / "embedding.npy"), axis=1)
    np.testing.assert_allclose(norms, 0.5, rtol=1e-5)


class Balance(SummedTerm):
    """Sum of the squared sizes of the clusters over N^2."""

    def sums(self, state, problem, scope):
        """Sizes (R, K)."""
        own = problem.num_nodes if scope is None else scope.features.shape[0]
        return state.assignment[:own].sum(0)

    def value(self, sums, problem, num_replicas, num_clusters):
        """(R,)"""
        return (sums / problem.num_nodes).square().sum(1)


class Size(WholeTerm):
    """Mean square of the embeddings."""

    def values(self, state, problem, generator):
        """(R,)"""
        return {"size": torch.stack([hidden.square().mean() for hidden in state.hidden])}


def test_a_loss_term(tmp_path, monkeypatch):
    monkeypatch.setitem(TERMS, "balance", Balance())
    monkeypatch.setitem(TERMS, "size", Size())
    result, rows = _train(tmp_path / "run", "loss.terms.balance=0.5", "loss.terms.size=0.1")
    assert 0.5 / 3 - 1e-6 <= result["loss"]["balance"] <= 0.5
    assert all(row["size"] > 0 for row in rows)


def test_a_loss_term_of_sums_works_in_parts_and_another_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(TERMS, "balance", Balance())
    monkeypatch.setitem(TERMS, "size", Size())
    parts = ["model.observed_mix=0", "train.mode=partition", "train.partition.num_parts=2"]
    result, _ = _train(tmp_path / "run", "loss.terms.balance=0.5", *parts)
    assert 0.5 / 3 - 1e-6 <= result["loss"]["balance"] <= 0.5
    with pytest.raises(InputError, match=r"loss\.terms\.size needs the whole graph"):
        _train(tmp_path / "other", "loss.terms.size=0.1", *parts)


def test_names_of_terms_do_not_collide(tmp_path, monkeypatch):
    class Thief(Size):
        def values(self, state, problem, generator):
            return {"npsi": super().values(state, problem, generator)["size"]}

    monkeypatch.setitem(TERMS, "thief", Thief())
    with pytest.raises(InputError, match="Thief: the name npsi of its term is taken already"):
        _train(tmp_path / "run", "loss.terms.thief=1")


def test_a_run_goes_on_with_its_own_terms_only(tmp_path, monkeypatch):
    monkeypatch.setitem(TERMS, "size", Size())
    _train(tmp_path / "run", "loss.terms.size=0.1")
    for other in ([], ["loss.terms.size=0.2"]):
        with pytest.raises(InputError, match=r"other settings \(loss\.terms\.size was 0\.1"):
            _train(tmp_path / "run", *other, "train.resume=true")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "loss.terms.nothing=1",
            "loss.terms.nothing: there is no such term .*there are: none",
        ),
        ("loss.terms.npsi=1", "loss.terms.npsi: this term has a key of its own"),
        ("loss.terms=3", "loss.terms: expected names with a value each, got 3"),
        ("loss.terms.npsi=-1", "loss.terms.npsi: expected at least 0"),
        (
            "structure.candidates.sources.nothing=1",
            "sources.nothing: there is no such source .*are: none",
        ),
        ("structure.candidates.sources.k_hop=1", "sources.k_hop: k_hop is a key of its own"),
    ],
)
def test_what_is_not_registered_is_refused(tmp_path, override, message):
    with pytest.raises(InputError, match=message):
        _train(tmp_path / "run", override)


def _next(draw):
    nodes = np.arange(draw.graph.num_nodes)
    return np.repeat(nodes, draw.count), (
        np.repeat(nodes, draw.count) + np.tile(np.arange(1, draw.count + 1), len(nodes))
    ) % draw.graph.num_nodes


@pytest.mark.parametrize("stays", [False, True])
def test_a_source_of_candidates(tmp_path, monkeypatch, stays):
    monkeypatch.setitem(SOURCES, "next", Source(_next, stays=stays))
    result, _ = _train(tmp_path / "run", "structure.candidates.sources.next=2")
    graph = block_model(load_config(None, SMALL).data.synthetic).graph
    nodes = np.arange(60)
    ends = np.concatenate([(nodes + 1) % 60, (nodes + 2) % 60])
    ring, _ = Graph.from_edges(60, np.tile(nodes, 2), ends)
    assert result["num_candidate_edges"] == int((graph.positions(ring.keys) < 0).sum()) > 50


def test_a_source_that_needs_clusters_needs_epochs_before_it(tmp_path, monkeypatch):
    monkeypatch.setitem(SOURCES, "next", Source(_next, needs_clusters=True))
    asked = "structure.candidates.sources.next=2"
    with pytest.raises(InputError, match="the source next needs clusters"):
        _train(tmp_path / "run", asked)
    result, _ = _train(tmp_path / "run", asked, "structure.candidates.refresh_every=1")
    assert result["num_candidate_edges"] > 0
    with pytest.raises(ValueError, match="a source that stays"):
        Source(_next, stays=True, needs_clusters=True)


def test_a_kind_of_noise(tmp_path, monkeypatch):
    def drop_first(request):
        return compare(request.graph, Graph.from_keys(60, request.graph.keys[1:]))

    monkeypatch.setitem(NOISE_KINDS, "drop_first", NoiseKind(drop_first))
    result, _ = _train(tmp_path / "run", "data.noise.kind=drop_first")
    assert (result["noise"]["edges_added"], result["noise"]["edges_removed"]) == (0, 1)


def test_noise_gets_labels_only_where_it_reads_them(tmp_path, monkeypatch):
    seen = []

    def look(request):
        seen.append(request.victim)
        return compare(request.graph, request.graph)

    for reads in (False, True):
        monkeypatch.setitem(NOISE_KINDS, "look", NoiseKind(look, reads_labels=reads))
        _train(tmp_path / str(reads), "data.noise.kind=look")
    assert seen[0] is None
    assert len(seen[1].labels) == 60


def test_a_kind_of_data(tmp_path, monkeypatch):
    def ring(config, root):
        nodes = np.arange(config.synthetic.num_nodes)
        graph, _ = Graph.from_edges(len(nodes), nodes, (nodes + 1) % len(nodes))
        return AttributedGraph(graph, None)

    monkeypatch.setitem(
        DATA_KINDS, "ring", DataKind(ring, needs="name", reads=("name", "synthetic"))
    )
    result, _ = _train(tmp_path / "run", "data.kind=ring", "data.name=any")
    assert result["num_observed_edges"] == 60
    assert not any("no effect" in line for line in result["warnings"])
    with pytest.raises(InputError, match=r"data\.kind=ring needs data.name"):
        _train(tmp_path / "other", "data.kind=ring")


def test_a_file_format(tmp_path, monkeypatch):
    def load(path, missing):
        ends = np.array(json.loads(path.read_text()))
        graph, _ = Graph.from_edges(60, *ends)
        return replace(block_model(load_config(None, SMALL).data.synthetic), graph=graph)

    monkeypatch.setitem(FORMATS, ".pairs", Format(load))
    nodes = list(range(60))
    (tmp_path / "ring.pairs").write_text(json.dumps([nodes, [*nodes[1:], 0]]))
    result, _ = _train(
        tmp_path / "run", "data.kind=edge_list", f"data.edges={tmp_path / 'ring.pairs'}"
    )
    assert result["num_observed_edges"] == 60
    assert result["num_features"] == 200
