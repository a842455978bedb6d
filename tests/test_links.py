"""The pairs that link prediction holds out, and that nothing before the scores sees them."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import random_graph

from user_dgl.cli import main
from user_dgl.config import LinksConfig, NoiseConfig, load_config
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.graph.pairs import LabelledPairs, draw_pairs
from user_dgl.links.files import read_links
from user_dgl.links.split import LinkSplit, split_links
from user_dgl.output.run_directory import RunDirectory
from user_dgl.perturb import perturb
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


# ---------------------------------------------------------------------------------------------
# The draws


@pytest.mark.parametrize("seed", range(5))
def test_parts_are_disjoint_and_make_up_the_graph(seed):
    graph = random_graph(80, 400)
    split = split_links(graph, LinksConfig(), seed)
    edges = edges_of(graph)
    parts = parts_of(split)
    assert [len(part) for part in parts] == [
        round(share * graph.num_edges) for share in (0.05, 0.05, 0.1, 0.1)
    ]
    for one, other in combinations([*parts, edges_of(split.training)], 2):
        assert not one & other
    assert edges_of(split.training) | parts[0] | parts[2] == edges
    # Against the whole graph: none of them is an edge that was held out.
    assert not (parts[1] | parts[3]) & edges
    assert all(u < v for part in parts for u, v in part)
    keys = split.held_out_keys
    assert len(np.unique(keys)) == len(keys) == sum(map(len, parts))


def test_same_seed_same_parts():
    graph = random_graph(80, 400)
    one, same, other = (split_links(graph, LinksConfig(), seed) for seed in (3, 3, 4))
    fixed = split_links(graph, LinksConfig(seed=3), 4)
    assert parts_of(one) == parts_of(same) == parts_of(fixed) != parts_of(other)


def test_every_edge_and_non_edge_is_as_likely():
    graph = Graph.from_edges(5, [0, 1, 2, 3, 0], [1, 2, 3, 4, 4])[0]
    config, draws = LinksConfig(validation_share=0.2, test_share=0.2), 2000
    counts = [{}, {}, {}, {}]
    for seed in range(draws):
        for count, part in zip(counts, parts_of(split_links(graph, config, seed)), strict=True):
            (pair,) = part
            count[pair] = count.get(pair, 0) + 1
    for count in counts:
        assert len(count) == 5
        # Chi-square with 4 degrees of freedom: exceeded with probability 0.001.
        assert sum((n - draws / 5) ** 2 / (draws / 5) for n in count.values()) < 18.5


def test_all_non_edges_of_a_dense_graph():
    ends = np.array(list(combinations(range(8), 2))).T
    graph = Graph.from_edges(8, *ends[:, 4:])[0]
    config = LinksConfig(validation_share=1 / 12, test_share=1 / 12)
    _, one, _, other = parts_of(split_links(graph, config, 0))
    assert one | other == pairs_of(ends[:, :4])
    with pytest.raises(InputError, match=r"6 non-edges wanted.*the graph has 4"):
        split_links(graph, LinksConfig(validation_share=1 / 12, test_share=1 / 6), 0)


def test_nothing_held_out():
    graph = random_graph()
    split = split_links(graph, LinksConfig(validation_share=0, test_share=0), 0)
    np.testing.assert_array_equal(split.training.keys, graph.keys)
    assert len(split.held_out_keys) == 0
    empty = split_links(Graph.from_edges(3, [], [])[0], LinksConfig(), 0)
    assert empty.training.num_edges == 0


def test_too_much_held_out():
    with pytest.raises(InputError, match="leave none to train on"):
        split_links(random_graph(), LinksConfig(validation_share=0.5, test_share=0.5), 0)


def test_large_graph():
    """N^2 is 4e10 here: only what is linear in edges comes back."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(200_000, *rng.integers(0, 200_000, (2, 1_000_000)))[0]
    split = split_links(graph, LinksConfig(), 0)
    assert (graph.positions(np.sort(split.held_out_keys)) >= 0).sum() * 2 == len(
        split.held_out_keys
    )
    noise = NoiseConfig(kind="random_flip", rate=0.5)
    noisy = perturb(split.training, noise, 0, None, split.held_out_keys)
    assert (noisy.graph.positions(split.held_out_keys) < 0).all()
    assert noisy.num_added + noisy.num_removed == round(0.5 * split.training.num_edges)


# ---------------------------------------------------------------------------------------------
# Noise


def test_excluded_pairs_are_never_drawn_and_all_others_are():
    excluded = np.array([0 * 6 + 1, 2 * 6 + 5, 4 * 6 + 5, 0 * 6 + 5])
    drawn = draw_pairs(6, 11, excluded, np.random.default_rng(0))
    keys = {u * 6 + v for u, v in combinations(range(6), 2)}
    assert set(drawn.tolist()) == keys - set(excluded.tolist())


def test_pairs_outside_the_excluded_are_as_likely():
    excluded, draws = np.array([0 * 5 + 2, 3 * 5 + 4]), 4000
    counts = {}
    for seed in range(draws):
        for key in draw_pairs(5, 2, excluded, np.random.default_rng(seed)).tolist():
            counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 8
    # Chi-square with 7 degrees of freedom (less, as pairs are drawn two at a time).
    assert sum((n - draws / 4) ** 2 / (draws / 4) for n in counts.values()) < 24.3


@pytest.mark.parametrize("rate", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_flips_are_counted_on_the_training_edges_and_leave_held_out_pairs(rate, seed, tmp_path):
    graph = random_graph(40, 200)
    split = split_links(graph, LinksConfig(), seed)
    noise = NoiseConfig(kind="random_flip", rate=rate)
    noisy = perturb(split.training, noise, seed, tmp_path, split.held_out_keys)
    flipped = edges_of(split.training) ^ edges_of(noisy.graph)
    assert len(flipped) == round(rate * split.training.num_edges)
    held_out = set.union(*parts_of(split))
    assert not held_out & flipped
    assert not held_out & edges_of(noisy.graph)


def test_more_flips_than_there_are_pairs(tmp_path):
    graph = random_graph(10, 20)
    split = split_links(graph, LinksConfig(), 0)
    noise = NoiseConfig(kind="random_flip", rate=9.0)
    with pytest.raises(InputError, match="pairs outside the held-out ones: lower the rate"):
        perturb(split.training, noise, 0, tmp_path, split.held_out_keys)


def test_a_stored_graph_is_taken_without_the_held_out_pairs(tmp_path):
    graph = random_graph(40, 200)
    split = split_links(graph, LinksConfig(), 0)
    everything = Graph.from_edges(40, *np.array(list(combinations(range(40), 2))).T)[0]
    sp.save_npz(tmp_path / "all.npz", everything.to_scipy())
    noise = NoiseConfig(kind="file", file="all.npz")
    noisy = perturb(split.training, noise, 0, tmp_path, split.held_out_keys)
    assert edges_of(noisy.graph) == edges_of(everything) - set.union(*parts_of(split))


# ---------------------------------------------------------------------------------------------
# Nothing in a run sees what is held out

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
    "smooth, critic": (*SMOOTH, "structure.prior=critic", "structure.critic.power=null"),
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
    from user_dgl.clustering import smoothed_view as smoothing
    from user_dgl.structure import critic, link_critic

    drawn, original = [], critic.random_pairs

    def spied(num_nodes, *arguments):
        pairs = original(num_nodes, *arguments)
        drawn.append(np.minimum(*pairs) * num_nodes + np.maximum(*pairs))
        return pairs

    for module in (critic, link_critic, smoothing):
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

    def shuffled(config):
        data = load_data(config)
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
