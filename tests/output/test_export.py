"""Results as files of the user's: ids, choice of edges, and what is never overwritten."""

import csv
import errno

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from runs import ring, write_run

from user_dgl.cli import main
from user_dgl.data import load_edge_list
from user_dgl.graph import Graph
from user_dgl.output.export import kept_edges
from user_dgl.output.tables import csv_text

# What people name nodes; all of them stand in tables and can be told apart there.
ODD_IDS = ["007", "7", "a,b", 'quo"te', "#tag", "% of", "ñ", "NA", "two words", "x;y", "-", "<b>"]


@pytest.fixture
def odd_run(tmp_path):
    weight = np.linspace(0.05, 0.95, 12)
    return write_run(tmp_path / "run", ring(12), weight, [0, 1] * 6, ids=ODD_IDS)


def _export(run, *arguments) -> int:
    return main(["export", str(run.path), *map(str, arguments)])


def _rows(file) -> list[list[str]]:
    with open(file, newline="") as text:
        return list(csv.reader(text))


def test_graph_by_the_ids_of_the_user(odd_run, tmp_path, capsys):
    out = tmp_path / "cleaned.csv"
    assert _export(odd_run, "--graph", out) == 0
    assert capsys.readouterr().out == f"{out}: 12 of 12 edges of A' kept\n"
    assert out.read_text().splitlines()[0] == "source,target,weight"
    rows = _rows(out)[1:]
    learned = sp.triu(odd_run.read_learned_graph(), format="coo")
    wanted = {
        (ODD_IDS[u], ODD_IDS[v]): weight
        for u, v, weight in zip(learned.row, learned.col, learned.data, strict=True)
    }
    assert {(u, v): np.float32(weight) for u, v, weight in rows} == wanted


@pytest.mark.parametrize("ids", [ODD_IDS, [str(i * i) for i in range(12)], None])
def test_exported_files_can_be_read_again(tmp_path, ids):
    """Graph, embeddings and clusters come back as edges, features and labels of the same nodes."""
    run = write_run(tmp_path / "run", ring(12), np.linspace(0.05, 0.95, 12), [0, 1] * 6, ids=ids)
    graph, clusters, embedding = (tmp_path / f"{name}.csv" for name in "gce")
    chosen = ("--graph", graph, "--clusters", clusters, "--embedding", embedding)
    assert _export(run, *chosen, "--threshold", "0.3") == 0
    data = load_edge_list(graph, embedding, clusters)
    ids = ids or [str(i) for i in range(12)]
    names = list(data.node_ids or map(str, range(12)))
    assert sorted(names) == sorted(ids)
    back = np.array([names.index(name) for name in ids])
    wanted = run.read_learned_graph()
    wanted.data *= wanted.data >= 0.3
    found = data.graph.to_scipy()[back][:, back]
    assert 0 < found.nnz < 24
    assert ((wanted > 0) != (found > 0)).nnz == 0
    np.testing.assert_array_equal(data.feat.toarray()[back], run.read_embedding())
    assert data.labels[back].tolist() == [0, 1] * 6


def test_files_of_a_run_with_marked_ids_can_be_read_again(tmp_path):
    """``clusters.csv`` and predicted links, where an id starts like a comment."""
    ids = ["#a", "%b", "c", "d, e", "NA", "f"]
    run = write_run(tmp_path / "run", ring(6), np.ones(6), [0, 0, 0, 1, 1, 1], ids=ids)
    assert run.read_clusters()[0] == ids
    links = pd.DataFrame({"source": ids, "target": ids[1:] + ids[:1], "score": np.ones(6)})
    (tmp_path / "links.csv").write_text(csv_text(links, "%.4f"))
    data = load_edge_list(tmp_path / "links.csv", None, run.path / "clusters.csv")
    assert sorted(data.node_ids) == sorted(ids)
    assert data.graph.num_edges == 6
    labels = dict(zip(data.node_ids, data.labels.tolist(), strict=True))
    assert [labels[name] for name in ids] == [0, 0, 0, 1, 1, 1]


def test_whole_numbers_are_written_without_quotation_marks(tmp_path):
    ids = ["12", "3", "-4", "9223372036854775807"]
    run = write_run(tmp_path / "run", ring(4), np.ones(4), [0, 0, 1, 1], ids=ids)
    assert _export(run, "--graph", tmp_path / "g.csv", "--clusters", tmp_path / "c.csv") == 0
    assert '"' not in (tmp_path / "g.csv").read_text()
    assert (tmp_path / "c.csv").read_text() == (run.path / "clusters.csv").read_text()


def test_ids_that_span_lines(tmp_path):
    ids = ["a\nb", "c\r\nd", "e", "f"]
    run = write_run(tmp_path / "run", ring(4), np.ones(4), [0, 0, 1, 1], ids=ids)
    assert _export(run, "--graph", tmp_path / "g.csv") == 0
    rows = _rows(tmp_path / "g.csv")[1:]
    assert {name for row in rows for name in row[:2]} == set(ids)


def test_threshold_and_heaviest_edges_of_each_node():
    """Against a search node by node, with equal weights."""
    rng = np.random.default_rng(0)
    graph, _ = Graph.from_edges(40, rng.integers(0, 40, 200), rng.integers(0, 40, 200))
    weight = rng.integers(0, 6, graph.num_edges) / 4
    ends = (graph.src.numpy(), graph.dst.numpy())
    pairs = sp.coo_matrix((weight, ends), shape=(40, 40))

    def kept(**chosen):
        edges = kept_edges(pairs, **chosen)
        return dict(zip(zip(edges.row, edges.col, strict=True), edges.data, strict=True))

    every = {(u, v): w for u, v, w in zip(*ends, weight, strict=True) if w > 0}
    assert kept() == every
    assert kept(threshold=0.5) == {pair: w for pair, w in every.items() if w >= 0.5}
    assert kept(threshold=0) == every
    for top_k in (1, 3, 100):
        wanted = set()
        for node in range(40):
            own = [pair for pair in sorted(every) if node in pair]
            wanted |= set(sorted(own, key=lambda pair: -every[pair])[:top_k])
        assert set(kept(top_k=top_k)) == wanted


def test_line_says_what_was_kept(tmp_path, capsys):
    star, _ = Graph.from_edges(5, [0, 0, 0], [1, 2, 3])
    run = write_run(tmp_path / "run", star, [0.1, 0.5, 0.9], [0, 0, 1, 1, 1])
    out = tmp_path / "g.csv"
    assert _export(run, "--graph", out, "--threshold", "0.5") == 0
    assert capsys.readouterr().out == (f"{out}: 2 of 3 edges of A' kept, 2 of 5 nodes have none\n")
    assert _rows(out)[1:] == [["0", "2", "0.5"], ["0", "3", "0.9"]]
    assert _export(run, "--graph", out, "--top-k", "1", "--overwrite") == 0
    assert "3 of 3 edges" in capsys.readouterr().out  # each of the others' heaviest


def test_graph_as_matrix(odd_run, tmp_path):
    out = tmp_path / "cleaned.npz"
    assert _export(odd_run, "--graph", out, "--threshold", "0.5") == 0
    matrix, learned = sp.load_npz(out), odd_run.read_learned_graph()
    assert matrix.format == "csr"
    assert matrix.dtype == np.float32
    np.testing.assert_array_equal(matrix.toarray(), np.where(learned.toarray() >= 0.5,
                                  learned.toarray(), 0))  # fmt: skip


def test_embedding_as_array(odd_run, tmp_path, capsys):
    out = tmp_path / "e.npy"
    assert _export(odd_run, "--embedding", out) == 0
    assert capsys.readouterr().out == f"{out}: 12 nodes, 2 columns\n"
    assert out.read_bytes() == (odd_run.path / "embedding.npy").read_bytes()


# -------------------------------------------------------------------------------------------------
# Refusals


def _refused(capsys, run, *arguments) -> str:
    before = {file: file.read_bytes() for file in run.path.parent.rglob("*") if file.is_file()}
    assert _export(run, *arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    after = {file: file.read_bytes() for file in run.path.parent.rglob("*") if file.is_file()}
    assert after == before
    return error


def test_nothing_is_overwritten_unasked(odd_run, tmp_path, capsys):
    new, old = tmp_path / "new.csv", tmp_path / "old.csv"
    old.write_text("mine")
    error = _refused(capsys, odd_run, "--graph", new, "--clusters", old)
    assert f"{old}: exists" in error  # and the new one was not written either
    assert _export(odd_run, "--graph", new, "--clusters", old, "--overwrite") == 0
    assert old.read_text().startswith("node,cluster\n")
    assert new.exists()


def test_files_of_the_run_stay(odd_run, tmp_path, capsys):
    link = tmp_path / "link.csv"
    link.symlink_to(odd_run.path / "clusters.csv")
    for file in (odd_run.path / "clusters.csv", odd_run.path / "." / "clusters.csv", link):
        assert "names a file that is read" in _refused(
            capsys, odd_run, "--graph", file, "--overwrite"
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to export"),
        (("--graph", "g.txt"), "--graph takes a name that ends in .csv or .npz"),
        (("--clusters", "c.npy"), "--clusters takes a name that ends in .csv"),
        (("--embedding", "e.npz"), "--embedding takes a name that ends in .npy or .csv"),
        (("--graph", "none/g.csv"), "none: no such folder"),
        (("--graph", "x.csv", "--clusters", "x.csv"), "choose different names"),
        (("--clusters", "c.csv", "--threshold", "1"), "for --graph, which is not given"),
        (("--graph", "g.csv", "--threshold", "2"), "no edge of A' would be left (the heaviest"),
    ],
)  # fmt: skip
def test_refusals(odd_run, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(odd_run.path.parent)
    assert message in _refused(capsys, odd_run, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [("--threshold", "-1"), ("--threshold", "nan"), ("--threshold", "x"), ("--top-k", "0"),
     ("--top-k", "1", "--threshold", "1")],
)  # fmt: skip
def test_bad_numbers(odd_run, capsys, arguments):
    with pytest.raises(SystemExit) as exit_:
        _export(odd_run, "--graph", "g.csv", *arguments)
    assert exit_.value.code == 2


def test_unfinished_run(odd_run, tmp_path, capsys):
    (odd_run.path / "learned_graph.npz").unlink()
    error = _refused(capsys, odd_run, "--clusters", tmp_path / "c.csv", "--graph",
                     tmp_path / "g.csv")  # fmt: skip
    assert "learned_graph.npz: not there; is" in error


def test_files_of_different_runs(odd_run, tmp_path, capsys):
    odd_run.write_embedding(np.ones((7, 2)))
    error = _refused(capsys, odd_run, "--embedding", tmp_path / "e.csv")
    assert "12 clusters, 7 embeddings" in error


def test_full_disk_leaves_the_old_file(odd_run, tmp_path, capsys, monkeypatch):
    out = tmp_path / "cleaned.npz"
    out.write_text("mine")

    def full(file, matrix):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sp, "save_npz", full)
    error = _refused(capsys, odd_run, "--graph", out, "--overwrite")
    assert f"{out}: cannot be written: No space left on device" in error


def test_no_file_that_the_run_was_trained_on_is_replaced(tmp_path, capsys):
    edges, run = tmp_path / "edges.csv", tmp_path / "run"
    edges.write_text("from,to\n" + "".join(f"n{i},n{(i + 1) % 9}\n" for i in range(9)))
    settings = ["--clusters", "2", f"output_dir={run}", "eval.floors=false", "train.epochs=1"]
    assert main(["train", "--edges", str(edges), *settings]) == 0
    before = edges.read_text()
    assert main(["export", str(run), "--graph", str(edges), "--overwrite"]) == 2
    assert "--graph names a file" in capsys.readouterr().err
    assert edges.read_text() == before
