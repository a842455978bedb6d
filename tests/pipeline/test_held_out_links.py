"""Nothing before the scores sees the pairs that link prediction holds out."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from user_dgl.cli import main
from user_dgl.config import load_config
from user_dgl.graph.pairs import LabelledPairs
from user_dgl.links.files import read_links
from user_dgl.links.split import LinkSplit, split_links
from user_dgl.output.run_directory import RunDirectory
from user_dgl.pipeline.inputs import read_inputs
from user_dgl.pipeline.train import train


def pairs_of(pairs) -> set:
    return set(zip(*np.asarray(pairs).tolist(), strict=True))


def edges_of(graph) -> set:
    return pairs_of(np.stack([graph.src.numpy(), graph.dst.numpy()]))


def parts_of(split):
    """Held-out edges and non-edges of validation and test."""
    return [
        pairs_of(part.pairs[:, part.is_edge == kind])
        for part in (split.validation, split.test)
        for kind in (True, False)
    ]


CONFIG = [
    "task=link_prediction",
    "data.synthetic.num_nodes=200",
    "data.noise.kind=random_flip",
    "data.noise.rate=0.3",
    "model.num_clusters=5",
    "structure.critic.folds=3",
]
# What comes before the scores: all sources of candidates, both critics, both kinds of encoder.
GCN = [
    "model.hidden_feats=[8]",
    "train.epochs=6",
    "structure.candidates.feature_knn=30",
    "structure.candidates.uniform=20",
    "structure.candidates.k_hop=10",
    "structure.candidates.same_cluster=10",
    "structure.candidates.refresh_every=2",
]
SMOOTH = [
    "model.encoder=smooth",
    "model.head=centroid",
    "model.observed_mix=0",
    "loss.davies_bouldin_space=embedding",
    "train.epochs=3",
    "train.lr=0.02",
]
KINDS = {
    "gcn, candidates": (*GCN, "structure.prior=critic"),
    "gcn on A'": (*GCN, "structure.prior=link_critic", "model.observed_mix=0"),
    "smooth, critic": (*SMOOTH, "structure.prior=critic"),
    "smooth, link critic": (*SMOOTH, "structure.prior=link_critic"),
}


def _train(folder, *overrides):
    config = load_config(None, [*CONFIG, *overrides])
    return train(config, folder, lambda line: None)


@pytest.mark.parametrize("kind", KINDS)
def test_training_depends_on_nothing_that_is_held_out(kind, tmp_path, monkeypatch):
    """Held-out edges taken for non-edges and validation for test: bit for bit the same run."""
    _train(tmp_path / "one", *KINDS[kind])

    def exchanged(graph, config, seed):
        split = split_links(graph, config, seed)
        turned = [
            LabelledPairs(part.pairs[:, ::-1], part.is_edge)
            for part in (split.test, split.validation)
        ]
        assert not np.array_equal(turned[0].pairs, split.test.pairs)
        return LinkSplit(split.training, *turned)

    monkeypatch.setattr("user_dgl.pipeline.inputs.split_links", exchanged)
    _train(tmp_path / "other", *KINDS[kind])
    one, other = (RunDirectory(tmp_path / name) for name in ("one", "other"))
    for name in ("input.npz", "clusters.csv", "embedding.npy", "learned_graph.npz"):
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes(), name
    assert (one.path / "link_model.npz").read_bytes() == (
        other.path / "link_model.npz"
    ).read_bytes()
    # The scores do depend on it, or this would prove nothing.
    assert one.read_result()["metrics"] != other.read_result()["metrics"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_held_out_pair_in_graph_candidates_or_examples(kind, tmp_path, monkeypatch):
    from user_dgl.structure import critic, link_critic

    drawn, original = [], critic.random_pairs

    def spied(num_nodes, *arguments):
        pairs = original(num_nodes, *arguments)
        drawn.append(np.minimum(*pairs) * num_nodes + np.maximum(*pairs))
        return pairs

    for module in (critic, link_critic):
        monkeypatch.setattr(module, "random_pairs", spied)
    _train(tmp_path / "run", *KINDS[kind])
    run = RunDirectory(tmp_path / "run")
    held_out = np.concatenate([part.pairs for part in read_links(run).values()], axis=1)
    keys = held_out[0] * 200 + held_out[1]
    observed, _, _ = run.read_input()
    learned, _ = run.read_learned_pairs()
    assert learned.num_edges > observed.num_edges or "gcn" not in kind
    assert (observed.positions(keys) < 0).all()
    assert (learned.positions(keys) < 0).all()
    assert drawn
    assert not any(np.isin(pairs, keys).any() for pairs in drawn)


def test_without_the_exclusion_candidates_would_hold_some(tmp_path, monkeypatch):
    """That the test above can fail: so many candidates meet held-out pairs."""
    from user_dgl.structure.candidates import merge_candidates
    from user_dgl.training import stages as preparation
    from user_dgl.training import trainer

    for module in (preparation, trainer):
        monkeypatch.setattr(module, "merge_candidates", lambda g, c, _: merge_candidates(g, c))
    _train(tmp_path / "run", *KINDS["gcn, candidates"])
    run = RunDirectory(tmp_path / "run")
    pairs = np.concatenate([part.pairs for part in read_links(run).values()], axis=1)
    learned, _ = run.read_learned_pairs()
    assert (learned.positions(pairs[0] * 200 + pairs[1]) >= 0).sum() > 10


def test_features_made_of_edges_are_those_of_the_training_graph(tmp_path):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 20, (2, 120))
    ends = np.concatenate([ends, ends + 20], axis=1)
    np.savetxt(tmp_path / "edges.txt", ends.T, fmt="%d")
    config = load_config(
        None,
        [
            "task=link_prediction",
            "data.kind=edge_list",
            f"data.edges={tmp_path / 'edges.txt'}",
            "model.num_clusters=2",
        ],
    )
    inputs = read_inputs(config, lambda line: None)
    pairs = np.concatenate([part.pairs for part in inputs.split.held_out.values()], axis=1)
    assert inputs.feat[pairs[0], pairs[1]].sum() == 0
    assert inputs.feat.nnz == 2 * inputs.noisy.graph.num_edges
    assert inputs.data.graph is inputs.split.training


def test_labels_stay_and_serve_scores_only(tmp_path, monkeypatch):
    from user_dgl.data import load_data

    _train(tmp_path / "one", *KINDS["smooth, link critic"])

    def shuffled(*settings):
        data = load_data(*settings)
        return replace(data, labels=np.random.default_rng(0).permutation(data.labels))

    monkeypatch.setattr("user_dgl.pipeline.inputs.load_data", shuffled)
    _train(tmp_path / "other", *KINDS["smooth, link critic"])
    one, other = (RunDirectory(tmp_path / name).read_result() for name in ("one", "other"))
    assert one["metrics"] == other["metrics"]
    assert one["links"] == other["links"]
    assert one["cluster_metrics"] != other["cluster_metrics"]
    labels = load_data(load_config(None, CONFIG).data).labels
    np.testing.assert_array_equal(RunDirectory(tmp_path / "one").read_input()[2], labels)


def test_perturb_then_train_on_the_file_equals_training_with_flips(tmp_path, capsys):
    settings = [*CONFIG, *KINDS["smooth, link critic"]]
    (tmp_path / "c.yaml").write_text("")
    config, noisy = str(tmp_path / "c.yaml"), tmp_path / "noisy.npz"
    assert main(["perturb", config, *settings, "--out", str(noisy)]) == 0
    from_file = ["data.noise.kind=file", f"data.noise.file={noisy}", "data.noise.rate=0"]
    for name, more in (("flips", []), ("file", from_file)):
        assert main(["train", config, *settings, *more, f"output_dir={tmp_path / name}"]) == 0
    one, other = (json.loads((tmp_path / n / "result.json").read_text()) for n in ("flips", "file"))
    assert one["metrics"] == other["metrics"]
    assert one["noise"]["edges_added"] == other["noise"]["edges_added"]
    assert one["num_observed_edges"] == other["num_observed_edges"]


def test_resumed_run_holds_out_the_same(tmp_path, monkeypatch):
    """A checkpoint of another split would be one of another graph."""
    settings = [*KINDS["smooth, link critic"], "train.checkpoint_every=1"]
    _train(tmp_path / "whole", *settings)
    record = RunDirectory.record

    def until_the_second(run, row):
        if row["epoch"] == 2:
            raise ConnectionError
        record(run, row)

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "record", until_the_second)
        with pytest.raises(ConnectionError):
            _train(tmp_path / "run", *settings)
    checkpoint = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert checkpoint["progress"]["epoch"] == 1
    _train(tmp_path / "run", *settings, "train.resume=true")
    whole, resumed = (RunDirectory(tmp_path / name).read_result() for name in ("whole", "run"))
    assert resumed["links"] == whole["links"]
