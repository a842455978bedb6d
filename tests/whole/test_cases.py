"""The small faulty inputs, each through ``user-dgl train``: its row, and the rules for every row.

The rules: what can be used is cleaned and said (1), what cannot is refused in one line with status
2 and nothing written (2), results are keyed by the user's ids, one row for every node (3), nothing
is NaN or infinite (4), and the order of lines and the direction of pairs do not matter (5).
"""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from user_dgl.cli import main
from user_dgl.output.run_directory import RunDirectory

USABLE = {
    "s01": ("s01_loops_dups.csv", "s01_features.csv", "s01_labels.txt", 3),
    "s02": ("s02_string_ids.tsv", "s02_features_by_id.tsv", "s02_labels_by_id.tsv", 2),
    "s03": ("s03_one_based.txt", "s03_features.csv", "s03_labels.txt", 3),
    "s04": ("s04_isolated.csv", "s04_features.csv", "s04_labels.txt", 2),
    "s05": ("s05_edges.csv", "s05_nan_inf_features.csv", None, 2, "data.missing_features=mean"),
    "s07": ("s07_edges.csv", "s07_features.csv", "s07_labels_partial.csv", 3),
    "s07 without labels": ("s07_edges.csv", "s07_features.csv", None, 3),
    "s08": ("s08_weights_zero.csv", "s08_features.csv", "s08_labels.txt", 2),
    "s09": ("s09_directed_csr.npz", "s09_sparse_features.npz", "s09_labels.npy", 3),
    "s10": ("s10_five_nodes.csv", "s10_features.csv", "s10_labels_one_class.txt", 2),
}
# Nodes, edges, and a line on what was done.
CLEANED = {
    "s01": (24, 68, "4 self-loop entries dropped, 43 repeated or reversed entries merged"),
    "s02": (18, 51, "features joined by the ids in the first column"),
    "s03": (21, 42, "ids start at 1: id 1 is the first row of s03_features.csv"),
    "s04": (18, 34, "ids count from 0, node 0 has no edges"),
    "s05": (20, 63, "4 missing or infinite features set to the mean of their column"),
    "s07": (24, 74, "19 of 24 nodes have a label"),
    "s07 without labels": (24, 74, None),
    "s08": (20, 62, "2 rows of weight 0 dropped"),
    "s09": (24, 61, "made symmetric, 61 entries give 61 undirected edges"),
    "s10": (5, 5, None),
}
REFUSED = {
    "s05": (
        ("s05_edges.csv", "s05_nan_inf_features.csv", None, 2),
        r"s05_nan_inf_features\.csv: .* 3 rows .*: 4, 11, 18: .*data\.missing_features=mean",
    ),
    "s06": (
        ("s06_edges.csv", "s06_features_short.csv", None, 2),
        r"s06_edges\.csv: edges name 20 nodes \(largest id 19\), features have 19 rows .*: give a",
    ),
    "s08": (
        ("s08_weights_negative.csv", "s08_features.csv", "s08_labels.txt", 2),
        r"s08_weights_negative\.csv:9: weight -1\.5 in column 'weight'.* line 17$",
    ),
    "s10 with eight clusters": (
        ("s10_five_nodes.csv", "s10_features.csv", "s10_labels_one_class.txt", 8),
        "8 clusters asked for, 5 nodes given$",
    ),
    "s10 with one cluster": (
        ("s10_five_nodes.csv", "s10_features.csv", "s10_labels_one_class.txt", 1),
        "model.num_clusters: expected at least 2, got 1$",
    ),
}


def command(files, run_dir, changed=()):
    """Arguments of a training; ``changed`` files take the place of those of the case."""
    *names, clusters = files[:4]
    arguments = ["train", "--clusters", str(clusters)]
    for option, path in zip(("--edges", "--features", "--labels"), names, strict=True):
        if path is not None:
            arguments += [option, str(dict(changed).get(option, path))]
    return [*arguments, *files[4:], f"output_dir={run_dir}"]


@pytest.fixture(scope="module")
def train(cases_root, tmp_path_factory):
    """Trains on files of the cases and reads what that leaves behind."""

    def run(files, changed=()):
        run_dir = tmp_path_factory.mktemp("run") / "run"
        files = [f and cases_root / f if i < 3 else f for i, f in enumerate(files)]
        assert main(command(files, run_dir, changed)) == 0
        return SimpleNamespace(
            path=run_dir,
            # json reads NaN and Infinity: here they are faults.
            result=json.loads((run_dir / "result.json").read_text(), parse_constant=pytest.fail),
            clusters=pd.read_csv(run_dir / "clusters.csv", dtype=str, keep_default_na=False),
            embedding=np.load(run_dir / "embedding.npy"),
            graph=RunDirectory(run_dir).read_input()[0],
        )

    return run


@pytest.fixture(scope="module")
def trained(train):
    """The run of a case, made once."""
    runs = {}

    def find(name):
        if name not in runs:
            runs[name] = train(USABLE[name])
        return runs[name]

    return find


# ---------------------------------------------------------------------------------------------
# Every rule


@pytest.mark.parametrize("name", USABLE)
def test_what_can_be_used_is_cleaned_and_said(name, trained):
    nodes, edges, note = CLEANED[name]
    result = trained(name).result
    assert (result["num_nodes"], result["num_observed_edges"]) == (nodes, edges)
    if note is None:
        assert result["notes"] == []
    else:
        assert len([line for line in result["notes"] if note in line]) == 1
    assert all("\n" not in line for line in result["notes"])


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused(name, cases_root, tmp_path, capfd):
    files, message = REFUSED[name]
    files = [f and cases_root / f if i < 3 else f for i, f in enumerate(files)]
    assert main(command(files, tmp_path / "out" / "run")) == 2
    error = capfd.readouterr().err
    assert re.search(message, error.rstrip("\n"))
    assert error.startswith("user-dgl: error: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def ids_of(name, cases_root):
    """The ids of a case, read another way."""
    if name == "s02":
        text = (cases_root / "s02_features_by_id.tsv").read_text(encoding="utf-8")
        return [line.split("\t")[0] for line in text.splitlines()]
    first = 1 if name == "s03" else 0
    return [str(first + i) for i in range(CLEANED[name][0])]


@pytest.mark.parametrize("name", USABLE)
def test_results_are_keyed_by_the_ids_of_the_user(name, trained, cases_root):
    run = trained(name)
    assert run.clusters.columns.tolist() == ["node", "cluster"]
    assert sorted(run.clusters["node"]) == sorted(ids_of(name, cases_root))
    assert len(run.embedding) == len(run.clusters)
    learned = sp.load_npz(run.path / "learned_graph.npz")
    assert learned.shape == (len(run.clusters), len(run.clusters))


@pytest.mark.parametrize("name", USABLE)
def test_nothing_is_nan_or_infinite(name, trained):
    run = trained(name)
    assert np.isfinite(run.embedding).all()
    assert np.isfinite(sp.load_npz(run.path / "learned_graph.npz").data).all()
    assert set(run.clusters["cluster"].astype(int)) <= set(range(USABLE[name][3]))
    for line in (run.path / "metrics.jsonl").read_text().splitlines():
        losses = json.loads(line, parse_constant=pytest.fail)
        assert all(np.isfinite(v) for v in losses.values() if isinstance(v, float))
    assert all(np.isfinite(value) for value in run.result["loss"].values())


def reversed_lines(path, target, separator):
    """The rows of a list of edges in another order, half of them turned round; comments stay."""
    lines = path.read_text(encoding="utf-8").splitlines()
    fixed = [i for i, x in enumerate(lines) if not x.strip() or x[0] in "#s"]
    rows = [lines[i].split(separator) for i in range(len(lines)) if i not in fixed]
    np.random.default_rng(0).shuffle(rows)
    rows = [[v, u, *more] if i % 2 else [u, v, *more] for i, (u, v, *more) in enumerate(rows)]
    moved = iter(rows)
    text = "".join(
        (line if i in fixed else separator.join(next(moved))) + "\r\n"
        for i, line in enumerate(lines)
    )
    target.write_text(text, encoding="utf-8", newline="")


@pytest.mark.parametrize("name", ["s01", "s02", "s03", "s04", "s08", "s09"])
def test_order_of_lines_and_direction_of_pairs_do_not_matter(
    name, train, trained, cases_root, tmp_path
):
    edges = cases_root / USABLE[name][0]
    turned = tmp_path / edges.name
    changed = {"--edges": turned}
    if name == "s09":
        sp.save_npz(turned, sp.load_npz(edges).T.tocsr())
    else:
        separator = {".tsv": "\t", ".txt": " ", ".csv": ","}[edges.suffix]
        reversed_lines(edges, turned, separator)
    if name == "s02":  # rows with ids may come in any order too
        for option, file in zip(("--features", "--labels"), USABLE[name][1:3], strict=True):
            lines = (cases_root / file).read_text(encoding="utf-8").splitlines(keepends=True)
            changed[option] = tmp_path / file
            changed[option].write_text("".join(sorted(lines)), encoding="utf-8", newline="")
    before, after = trained(name), train(USABLE[name], changed)
    assert np.array_equal(before.graph.keys, after.graph.keys)
    for file in ("clusters.csv", "embedding.npy", "metrics.jsonl"):
        if file != "metrics.jsonl":  # which holds times
            assert (before.path / file).read_bytes() == (after.path / file).read_bytes()
    for key in ("loss", "metrics", "scores"):
        assert before.result[key] == after.result[key]


# ---------------------------------------------------------------------------------------------
# Every row


@pytest.mark.parametrize("name", ["s01", "s02", "s03", "s04", "s07", "s08", "s09"])
def test_the_groups_are_found(name, trained):
    assert trained(name).result["metrics"]["nmi"] >= 80


def test_s01_repeats_do_not_count_double(train, trained, cases_root, tmp_path):
    run = trained("s01")
    assert int(run.graph.degree.max()) == 9
    clean = tmp_path / "clean.csv"
    src, dst = run.graph.src.tolist(), run.graph.dst.tolist()
    clean.write_text("".join(f"{u},{v}\n" for u, v in zip(src, dst, strict=True)))
    assert train(USABLE["s01"], {"--edges": clean}).result["scores"] == run.result["scores"]


def test_s02_ids_stay_as_they_are_written(trained):
    nodes = set(trained("s02").clusters["node"])
    assert {"007", "7", "east 09", "west-ñ3"} < nodes
    assert "\r" not in (trained("s02").path / "clusters.csv").read_bytes().decode()
    assert not any(node != node.strip() for node in nodes)


def test_s03_no_node_is_added(trained):
    run = trained("s03")
    assert run.clusters["node"].tolist() == [str(i) for i in range(1, 22)]
    assert int(run.graph.degree.min()) > 0


def test_s04_nodes_without_edges(trained):
    run = trained("s04")
    assert np.flatnonzero(run.graph.degree.numpy() == 0).tolist() == [0, 16, 17]
    assert sp.csgraph.connected_components(run.graph.to_scipy())[0] == 5
    assert (np.linalg.norm(run.embedding, axis=1) > 0).all()


def test_s07_scores_are_those_of_the_labelled_nodes(trained):
    run = trained("s07")
    assert run.result["num_labelled_nodes"] == 19
    assert run.result["metrics"] == pytest.approx(
        dict.fromkeys(("nmi", "acc", "ari", "f1", "ami"), 100)
    )
    unlabelled = trained("s07 without labels")
    assert unlabelled.result["num_labelled_nodes"] == 0
    assert set(unlabelled.result["metrics"].values()) == {None}
    # Training knows nothing of labels.
    assert unlabelled.result["loss"] == run.result["loss"]
    assert unlabelled.clusters.equals(run.clusters)


def test_s08_weights_are_said_to_be_used(trained):
    assert any("which are used" in line for line in trained("s08").result["notes"])


def test_s09_stored_zeros_are_no_edges(trained):
    run = trained("s09")
    assert any("3 stored zeros are not edges" in line for line in run.result["notes"])
    assert run.result["num_features"] == 200


def test_s10_one_class_and_few_nodes(trained):
    result = trained("s10").result
    assert result["metrics"]["nmi"] == 0
    assert result["num_clusters_found"] <= result["num_clusters"] == 2
