"""Learned link scores, the critic made of them, and the commands that use them."""

import io
import json
import shutil

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from graphs import empty_graph, random_graph
from paths import CONFIGS

from user_dgl.cleaning.priors import prior_of
from user_dgl.cli import main
from user_dgl.config import CriticConfig, LinksConfig, StructureConfig, SyntheticConfig
from user_dgl.data import block_model
from user_dgl.errors import InputError
from user_dgl.evaluation.ranking_metrics import link_metrics, weight_auc
from user_dgl.graph import Graph
from user_dgl.links.files import read_links
from user_dgl.links.prediction import read_link_model
from user_dgl.links.score import LinkScore, RunTerms, new_links
from user_dgl.links.split import split_links
from user_dgl.output.run_directory import RunDirectory
from user_dgl.perturb import random_flip
from user_dgl.structure.critic import score_edges
from user_dgl.structure.link_critic import Examples, score_edges_by_links
from user_dgl.structure.pair_terms import PairTerms


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=400, num_blocks=4, mixing=0.1))


# ---------------------------------------------------------------------------------------------
# Examples and critic


def test_examples_are_all_edges_and_random_non_edges():
    graph = random_graph(40, 100)
    held_out = np.arange(0, 1600, 3)
    examples = Examples.draw(graph, 4, 0, held_out)
    keys = np.minimum(*examples.pairs) * 40 + np.maximum(*examples.pairs)
    np.testing.assert_array_equal(keys[examples.is_edge], graph.keys)
    nulls = keys[~examples.is_edge]
    assert len(nulls) > 2 * graph.num_edges
    assert (graph.positions(nulls) < 0).all()
    assert not np.isin(nulls, held_out).any()
    assert set(examples.fold) == set(range(4))


@pytest.mark.parametrize("graph", [empty_graph(20), Graph.from_edges(4, [0], [1])[0]])
def test_too_few_examples(graph):
    assert Examples.draw(graph, 4, 0) is None
    feat = sp.csr_matrix(np.eye(graph.num_nodes, dtype=np.float32))
    critic_scores = score_edges_by_links(graph, feat, CriticConfig(folds=4), 0, "csr")
    assert critic_scores.noise_share is None
    assert (critic_scores.weight == 1).all()
    assert len(critic_scores.weight) == graph.num_edges


def test_critic_finds_the_injected_edges_and_their_share(data):
    flipped = random_flip(data.graph, 0.5, seed=0)
    added = flipped.added.numpy()
    config = CriticConfig(folds=5)
    critic_scores = score_edges_by_links(flipped.graph, data.feat, config, 0, "csr")
    assert critic_scores.weight.dtype == np.float32
    assert weight_auc(critic_scores.weight, added) > 78
    # A quarter of all pairs, and so of the injected ones, are within a block; and of the original
    # edges 10 % have ends of any blocks.
    assert critic_scores.noise_share == pytest.approx(0.75 * (added.mean() + 0.07), abs=0.1)
    clean = score_edges_by_links(data.graph, data.feat, config, 0, "csr")
    assert clean.noise_share < 0.15
    assert clean.weight.mean() > critic_scores.weight.mean() + 0.1


def test_critic_knows_structure_where_features_say_nothing(data):
    flipped = random_flip(data.graph, 0.5, seed=0)
    noise = sp.random(400, 30, density=0.2, random_state=0, format="csr", dtype=np.float32)
    config = CriticConfig(folds=5)
    found = score_edges_by_links(flipped.graph, noise, config, 0, "csr")
    other = score_edges(flipped.graph, noise, config, 0, "csr")
    added = flipped.added.numpy()
    assert weight_auc(found.weight, added) > weight_auc(other.weight, added) + 5


def test_power_and_dispatch(data):
    config = CriticConfig(folds=5)
    whole = score_edges_by_links(data.graph, data.feat, config, 0, "csr").weight
    half = score_edges_by_links(data.graph, data.feat, CriticConfig(folds=5, power=0.5), 0, "csr")
    np.testing.assert_allclose(half.weight, whole**0.5, rtol=1e-6)
    prior = prior_of(
        StructureConfig(prior="link_critic", critic=config), data.graph, data.feat, 0, "csr"
    )
    np.testing.assert_array_equal(prior.weight.numpy(), whole)


# ---------------------------------------------------------------------------------------------
# The score


@pytest.fixture(scope="module")
def scored(data):
    """Split, noisy training graph, terms on A and A', score."""
    split = split_links(data.graph, LinksConfig(), 0)
    flipped = random_flip(split.training, 0.3, 0, split.held_out_keys)
    config = CriticConfig(folds=5)
    critic_scores = score_edges_by_links(
        flipped.graph, data.feat, config, 0, "csr", split.held_out_keys
    )
    ones = torch.ones(flipped.graph.num_edges)
    on_observed = PairTerms(flipped.graph, ones, data.feat, config, 0, "csr")
    terms = RunTerms(on_observed, on_observed.on(torch.from_numpy(critic_scores.weight)))
    examples = Examples.draw(flipped.graph, 5, 0, split.held_out_keys)
    return split, flipped.graph, terms, LinkScore.fit(terms, examples, rising=False)


def test_score_beats_each_of_its_terms(scored):
    split, _, terms, score = scored
    pairs, is_edge = split.test.pairs, split.test.is_edge
    outside = np.full(len(is_edge), -1)
    alone = [
        link_metrics(column, is_edge)["auc"]
        for part in (terms.observed, terms.learned)
        for column in part(pairs, outside).T
    ]
    assert link_metrics(score(terms, pairs), is_edge)["auc"] > max(alone)


def test_training_edges_score_as_held_out_ones_do(scored):
    """What the folds are for: otherwise the score of an edge would say that it is there."""
    split, graph, terms, score = scored
    edges = np.stack([split.training.src.numpy(), split.training.dst.numpy()]).astype(np.int64)
    edges = edges[:, graph.positions(split.training.keys) >= 0]
    held_out = split.test.pairs[:, split.test.is_edge]
    seen, unseen = score(terms, edges), score(terms, held_out)
    assert seen.mean() == pytest.approx(unseen.mean(), abs=0.35)
    np.testing.assert_allclose(score(terms, edges[::-1, 7:90]), seen[7:90], atol=1e-4)


def test_log_odds_are_those_among_all_pairs(scored):
    """Of all pairs, the chances add up to about as many edges as there are."""
    _, graph, terms, score = scored
    u, v = np.triu_indices(400, 1)
    chance = 1 / (1 + np.exp(-score(terms, np.stack([u, v]))))
    assert chance.sum() == pytest.approx(graph.num_edges, rel=0.2)


def _few_edges(edges: str):
    """A graph where only the holes that held-out edges leave tell pairs apart; features."""
    order = np.random.default_rng(0).permutation(1000)
    ends = {"ring": (order, np.roll(order, 1)), "matching": (order[:500], order[500:])}[edges]
    feat = sp.random(1000, 100, density=0.1, random_state=1, format="csr", dtype=np.float32)
    return Graph.from_edges(1000, *ends)[0], feat


@pytest.mark.parametrize("edges", ["ring", "matching"])
def test_rising_terms_do_not_see_where_an_edge_was_taken(edges):
    graph, feat = _few_edges(edges)
    split = split_links(graph, LinksConfig(), 0)
    ones = torch.ones(split.training.num_edges)
    terms = PairTerms(split.training, ones, feat, CriticConfig(), 0, "csr")
    examples = Examples.draw(split.training, 10, 0, split.held_out_keys)
    pairs, is_edge = split.test.pairs, split.test.is_edge
    auc = {}
    for rising in (False, True):
        logit, _ = examples.logit(terms, rising)
        found = logit(terms(pairs, terms.fold_of(pairs)))
        auc[rising] = link_metrics(found, is_edge)["auc"]
    assert auc[False] > 90
    assert 40 < auc[True] < 60


def test_blocks_of_pairs_change_nothing(scored, monkeypatch):
    split, _, terms, score = scored
    whole = score(terms, split.test.pairs)
    monkeypatch.setattr("user_dgl.links.score._BLOCK_PAIRS", 7)
    np.testing.assert_array_equal(score(terms, split.test.pairs), whole)
    assert len(score(terms, np.empty((2, 0), dtype=np.int64))) == 0


def _new_links(terms, score, graph, count):
    points = terms.learned.smoothed()
    return new_links(lambda pairs: score(terms, pairs), points, graph, count)


def _best(terms, score, graph, node: int, count: int) -> np.ndarray:
    """Scores of the best new links of a node among all, ascending from the worst of them."""
    size = graph.num_nodes
    rest = np.delete(np.arange(size), node)
    keys = np.minimum(node, rest) * size + np.maximum(node, rest)
    rest = rest[graph.positions(keys) < 0]
    return np.sort(score(terms, np.stack([np.full(len(rest), node), rest])))[-count:]


def test_new_links_are_the_best_of_all(scored, monkeypatch):
    """With a pool of all nodes, those of an exhaustive search."""
    monkeypatch.setattr("user_dgl.links.score._LEAST_POOL", 1000)
    _, graph, terms, score = scored
    node, other, log_odds = _new_links(terms, score, graph, 3)
    assert (graph.positions(np.minimum(node, other) * 400 + np.maximum(node, other)) < 0).all()
    assert (np.bincount(node, minlength=400) == 3).all()
    for each in (0, 17, 399):
        best = _best(terms, score, graph, each, 3)[::-1]
        np.testing.assert_allclose(log_odds[node == each], best, atol=1e-4)


def test_few_near_nodes_hold_most_of_the_best(scored):
    """The pool is a quarter of the nodes here."""
    _, graph, terms, score = scored
    node, other, log_odds = _new_links(terms, score, graph, 3)
    assert (node != other).all()
    assert (np.diff(log_odds)[np.diff(node) == 0] <= 0).all()
    assert np.bincount(node, minlength=400).max() == 3
    asked = range(0, 400, 20)
    least = [_best(terms, score, graph, each, 3)[0] - 1e-4 for each in asked]
    hits = [(log_odds[node == each] >= low).sum() for each, low in zip(asked, least, strict=True)]
    assert sum(hits) >= 0.8 * 3 * len(asked)


def test_a_pool_beyond_memory_is_refused(scored, monkeypatch):
    monkeypatch.setattr("user_dgl.links.score.available_memory_mb", lambda: 0.1)
    _, graph, terms, score = scored
    with pytest.raises(InputError, match=r"100 nearest of 400 nodes .* fewer links a node"):
        _new_links(terms, score, graph, 3)


# ---------------------------------------------------------------------------------------------
# Commands

FAST = [
    "task=link_prediction",
    "data.kind=edge_list",
    "model.num_clusters=3",
    "model.encoder=smooth",
    "model.head=centroid",
    "model.observed_mix=0",
    "loss.davies_bouldin_space=embedding",
    "structure.prior=link_critic",
    "structure.critic.folds=3",
    "features.weighting=auto",
    "train.epochs=2",
    "eval.floors=true",
]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run on a graph in text files, with ids that are words."""
    folder = tmp_path_factory.mktemp("links")
    data = block_model(SyntheticConfig(num_nodes=150, num_blocks=3, num_features=60, mixing=0.1))
    ids = np.array([f"n{i:03d}" for i in range(150)])
    ends = ids[data.graph.src.numpy()], ids[data.graph.dst.numpy()]
    pd.DataFrame(dict(zip(("source", "target"), ends, strict=True))).to_csv(
        folder / "edges.csv", index=False
    )
    features = pd.DataFrame(data.feat.toarray(), index=pd.Index(ids, name="id"))
    features.to_csv(folder / "features.csv")
    (folder / "config.yaml").write_text("")
    files = [f"data.edges={folder / 'edges.csv'}", f"data.features={folder / 'features.csv'}"]
    command = ["train", str(folder / "config.yaml"), *FAST, *files]
    assert main([*command, f"output_dir={folder / 'run'}"]) == 0
    return folder / "run"


def test_result_json(run_dir):
    result = json.loads((run_dir / "result.json").read_text())
    assert result["task"] == "link_prediction"
    assert set(result["metrics"]) == {"auc", "ap"}
    assert result["metrics"] == result["links"]["test"]["learned"]
    assert set(result["links"]["validation"]) == {"learned", "dot"}
    edges = result["num_observed_edges"] + sum(
        result["links"][f"num_{part}_edges"] for part in ("validation", "test")
    )
    assert edges == len((run_dir.parent / "edges.csv").read_text().splitlines()) - 1
    for floors in (result["floors"], result["floors_prepared"]):
        assert {name: set(scores) for name, scores in floors.items()} == {
            name: {"auc", "ap"} for name in ("features_cosine", "smoothed_cosine")
        }
    assert set(result["cluster_metrics"]) == {"nmi", "acc", "ari", "f1", "ami"}
    assert result["cluster_metrics"]["nmi"] is None
    assert [stage["name"] for stage in result["stages"]] == [
        "read", "link examples", "critic", "view", "candidates", "user", "links", "write",
        "scores", "link scores", "floors",
    ]  # fmt: skip
    assert result["metrics"]["auc"] > 70


def test_evaluate_repeats_the_scores(run_dir, capsys):
    assert main(["evaluate", str(run_dir)]) == 0
    report = json.loads(capsys.readouterr().out)
    result = json.loads((run_dir / "result.json").read_text())
    for key in ("metrics", "links", "cluster_metrics", "scores"):
        assert report[key] == result[key], key


def test_training_in_float64(run_dir, tmp_path, capsys):
    again = tmp_path / "run"
    config = str(run_dir / "config.yaml")
    assert main(["train", config, "train.precision=float64", f"output_dir={again}"]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(again)]) == 0
    report = json.loads(capsys.readouterr().out)
    result = json.loads((again / "result.json").read_text())
    assert report["links"] == result["links"]
    first = json.loads((run_dir / "result.json").read_text())
    assert result["metrics"] == pytest.approx(first["metrics"], abs=0.5)


def test_a_run_of_dot_products(run_dir, tmp_path):
    again = tmp_path / "run"
    command = ["train", str(run_dir / "config.yaml"), "links.score=dot", f"output_dir={again}"]
    assert main(command) == 0
    result = json.loads((again / "result.json").read_text())
    first = json.loads((run_dir / "result.json").read_text())
    assert result["links"]["test"] == first["links"]["test"]
    assert result["metrics"] == first["links"]["test"]["dot"]
    embedding = np.load(again / "embedding.npy").astype(float)
    test = read_links(RunDirectory(again))["test"]
    dots = (embedding[test.pairs[0]] * embedding[test.pairs[1]]).sum(1)
    assert link_metrics(dots, test.is_edge) == pytest.approx(result["metrics"])


def test_predict_pairs(run_dir, tmp_path, capsys):
    edges = pd.read_csv(run_dir.parent / "edges.csv")
    held_out = read_links(RunDirectory(run_dir))["test"]
    asked = edges.rename(columns={"source": "from", "target": "to"})
    asked["year"] = 0
    asked.to_csv(tmp_path / "pairs.csv", index=False)
    out = tmp_path / "scores.csv"
    command = ["predict-links", str(run_dir), "--pairs", str(tmp_path / "pairs.csv")]
    assert main([*command, "--out", str(out)]) == 0
    assert f"{len(edges)} pairs" in capsys.readouterr().out
    table = pd.read_csv(out)
    assert table.columns.tolist() == ["source", "target", "score", "is_edge"]
    assert table[["source", "target"]].values.tolist() == edges.values.tolist()
    result = json.loads((run_dir / "result.json").read_text())
    assert table["is_edge"].sum() == result["num_observed_edges"]
    model = read_link_model(RunDirectory(run_dir))
    by_pair = table.set_index(["source", "target"])["score"]
    scores = model.score(model.terms, held_out.pairs[:, held_out.is_edge])
    for (u, v), score in zip(held_out.pairs[:, held_out.is_edge].T, scores, strict=True):
        assert by_pair[f"n{u:03d}", f"n{v:03d}"] == pytest.approx(score, abs=1e-3)
    assert main([*command, "--out", str(out)]) == 2
    assert "exists; choose another name\n" in capsys.readouterr().err


def test_predict_new_links(run_dir, capsys):
    assert main(["predict-links", str(run_dir), "--top-k", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "source,target,score"
    rows = [line.split(",") for line in lines[1:]]
    assert len(rows) == 2 * 150
    known = {tuple(line.split(",")) for line in (run_dir.parent / "edges.csv").open()}
    known = {(u.strip(), v.strip()) for u, v in known}  # those held out too
    found = {tuple(sorted(row[:2])) for row in rows}
    assert not found & known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n000,n001\nn002,x\n", ":2: node x is not one of the 150 nodes of the run"),
        ("source,target\nn000,n001\nn005,n005\n", ":3: a node with itself"),
        ("n000\nn001\n", ":1: one column"),
        ("", "empty"),
    ],
)
def test_unusable_pairs(run_dir, tmp_path, capsys, text, message):
    file = tmp_path / "pairs.csv"
    file.write_text(text)
    assert main(["predict-links", str(run_dir), "--pairs", str(file)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert str(file) in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_run_of_clusters_predicts_no_links(tmp_path, capsys):
    config = str(CONFIGS / "quickstart.yaml")
    small = ["data.synthetic.num_nodes=60", "train.epochs=1", "train.restarts=1"]
    assert main(["train", config, *small, f"output_dir={tmp_path / 'run'}"]) == 0
    capsys.readouterr()
    assert main(["predict-links", str(tmp_path / "run"), "--top-k", "2"]) == 2
    assert "train with task=link_prediction" in capsys.readouterr().err
    assert main(["predict-links", str(tmp_path), "--top-k", "2"]) == 2
    assert "finished run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "shares",
    [
        ("links.validation_share=0", "links.test_share=0"),
        ("links.test_share=0",),
        ("links.validation_share=0",),
    ],
)
def test_nothing_held_out(run_dir, tmp_path, shares, capsys):
    """All edges in the graph, as for new links."""
    config = str(run_dir / "config.yaml")
    folder = tmp_path / "run"
    assert main(["train", config, *shares, f"output_dir={folder}"]) == 0
    result = RunDirectory(folder).read_result()
    assert (result["metrics"]["auc"] is None) == ("links.test_share=0" in shares)
    assert main(["evaluate", str(folder)]) == 0
    capsys.readouterr()
    assert main(["predict-links", str(folder), "--top-k", "2"]) == 0
    assert capsys.readouterr().out.count("\n") > 250


def test_unfinished_and_mixed_runs(run_dir, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(run_dir, folder)
    np.save(folder / "embedding.npy", np.zeros((7, 3), np.float32))
    assert main(["predict-links", str(folder), "--top-k", "2"]) == 2
    assert "files of different runs do not go together" in capsys.readouterr().err
    (folder / "result.json").unlink()
    assert main(["predict-links", str(folder), "--top-k", "2"]) == 2
    assert "not finished: go on with train.resume=true" in capsys.readouterr().err


def test_scores_are_those_of_the_settings(run_dir, tmp_path, capsys):
    folder = tmp_path / "run"
    config = str(run_dir / "config.yaml")
    assert main(["train", config, "links.score=dot", f"output_dir={folder}"]) == 0
    capsys.readouterr()
    (tmp_path / "pairs.csv").write_text("n000,n001\nn002,n007\n")
    assert main(["predict-links", str(folder), "--pairs", str(tmp_path / "pairs.csv")]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    embedding = RunDirectory(folder).read_embedding()
    expected = [embedding[0] @ embedding[1], embedding[2] @ embedding[7]]
    np.testing.assert_allclose(table["score"], expected, atol=1e-3)


def test_data_without_features(tmp_path):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 40, (2, 400))
    ends = np.concatenate([ends, ends + 40], axis=1)
    np.savetxt(tmp_path / "edges.txt", ends.T, fmt="%d")
    (tmp_path / "config.yaml").write_text("")
    command = ["train", str(tmp_path / "config.yaml"), *FAST, "model.num_clusters=2"]
    command += [f"data.edges={tmp_path / 'edges.txt'}", f"output_dir={tmp_path / 'run'}"]
    assert main(command) == 0
    result = RunDirectory(tmp_path / "run").read_result()
    # Two blocks of 40: half of all pairs are within one, so no score is far above 75.
    assert 60 < result["metrics"]["auc"] < 85
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    model = read_link_model(RunDirectory(tmp_path / "run"))
    assert model.feat is None
    assert model.probs is None


def test_too_small_a_graph(tmp_path, capsys):
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 3\n")
    (tmp_path / "config.yaml").write_text("")
    command = ["train", str(tmp_path / "config.yaml"), *FAST, "model.num_clusters=2"]
    command += [f"data.edges={tmp_path / 'edges.txt'}", f"output_dir={tmp_path / 'run'}"]
    assert main([*command, "structure.critic.folds=10"]) == 2
    assert "too few to learn from in structure.critic.folds=10 folds" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
