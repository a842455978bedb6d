"""`user-dgl inspect`: what would be read, as JSON, as a table and as plain rows; refusals."""

import io
import json

import numpy as np
import pytest
from quick_runs import FAST, QUICKSTART

from user_dgl.cli import main
from user_dgl.config import load_config
from user_dgl.data import AttributedGraph
from user_dgl.graph import Graph
from user_dgl.pipeline.inspection import inspect_data, print_inspections, summary_lines

# Two components and a node without edges; a loop, a repeat, a reversed row and weights.
EDGES = "source,target,weight\na,b,1\nb,a,2.5\na,b,1\nb,c,4\nc,c,1\nx,y,1\n"
FEATURES = "id,one,flag,count,size\n" + "".join(
    f"{name},1,{i % 2},{i},{1000.5 * i - 1}\n" for i, name in enumerate("abcxyz")
)
LABELS = "id,label\na,red\nb,blue\nx,red\n"


@pytest.fixture
def files(tmp_path):
    for name, text in (("edges", EDGES), ("features", FEATURES), ("labels", LABELS)):
        (tmp_path / f"{name}.csv").write_text(text)
    options = ["--features", tmp_path / "features.csv", "--labels", tmp_path / "labels.csv"]
    return [str(part) for part in (tmp_path / "edges.csv", *options)]


def _inspect(*arguments):
    return main(["inspect", *map(str, arguments)])


def test_json(files, capsys):
    assert _inspect(*files, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["source"] == files[0]
    assert report["format"] == "text"
    counts = {
        "num_nodes": 6, "num_edges": 3, "num_self_loops": 1, "num_repeated": 2,
        "num_components": 3, "largest_component": 3, "num_isolated": 1,
    }  # fmt: skip
    assert {name: report[name] for name in counts} == counts
    assert report["degree"] == {"mean": 1.0, "median": 1.0, "largest": 2}
    assert report["largest_degrees"][0] == {"node": "b", "degree": 2}
    # The pair of a and b has the mean of 1, 2.5 and 1.
    weights = report["weights"]
    assert (weights["least"], weights["largest"]) == pytest.approx((1.0, 4.0), rel=1e-6)
    assert weights["mean"] == pytest.approx((1.5 + 4 + 1) / 3)
    assert weights["used"]
    features = report["features"]
    assert features["num_columns"] == 4
    assert features["kinds"] == {"constant": 1, "binary": 1, "counts": 1, "real": 1}
    assert (features["least"], features["largest"]) == (-1, 5001.5)
    assert features["largest_range"] == 5002.5
    assert features["median_range"] == 5
    assert features["column_of_largest_range"] == 3
    assert features["num_nodes_without"] == 0
    assert report["labels"] == {
        "num_classes": 2, "num_labelled_nodes": 3, "smallest_class": 1, "largest_class": 2,
    }  # fmt: skip
    assert report["sample_edges"] == [["a", "b"], ["b", "c"], ["x", "y"]]
    assert report["sample_nodes"][1] == {
        "node": "b", "degree": 2, "features": {"0": 1, "1": 1, "2": 1, "3": 999.5}, "class": 0,
    }  # fmt: skip
    assert report["sample_nodes"][2]["class"] is None
    assert any("header" in note for note in report["notes"])
    (warning,) = report["warnings"]
    assert "very different scale" in warning
    assert "column 3" in warning


def test_without_features_and_labels(files, capsys):
    assert _inspect(files[0], "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["features"] is report["labels"] is None
    assert any("no features" in warning for warning in report["warnings"])


def test_rows_in_a_pipe_and_table_on_a_terminal(files, capsys, monkeypatch):
    assert _inspect(*files) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {len(row) for row in rows} == {2}
    assert ["nodes", "6"] in rows
    assert ["weights", "1 to 4, used"] in rows
    assert [name for name, _ in rows].count("sample edge") == 3

    monkeypatch.setenv("COLUMNS", "60")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    config = load_config(None, ["data.kind=edge_list", f"data.edges={files[0]}"])
    terminal = Terminal()
    assert print_inspections([("mine", config)], False, terminal) == 0
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert not any("\t" in line for line in lines)
    assert len({line.index(text) for line in lines for text in ("mine", "6 ") if text in line}) == 1


def test_several_files_of_which_one_is_bad(files, tmp_path, capsys):
    assert _inspect(files[0], tmp_path / "none.csv", files[0], "--json") == 2
    read = capsys.readouterr()
    assert [report["num_nodes"] for report in json.loads(read.out)] == [5, 5]
    assert read.err.startswith("user-dgl: error: ")
    assert "none.csv: not found" in read.err
    assert read.err.count("\n") == 1
    (tmp_path / "bad.csv").write_text("source,target\na\n")
    assert _inspect(tmp_path / "bad.csv") == 2
    read = capsys.readouterr()
    assert read.out == ""
    assert read.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a file of edges or a CONFIG"),
        (["{0}", "{0}", "--labels", "{0}"], "belong to one FILE"),
        (["{0}", "trian.lr=1"], "unknown key 'trian'"),
    ],
)
def test_refused_in_one_line(files, arguments, message, capsys):
    assert _inspect(*(part.format(files[0]) for part in arguments)) == 2
    read = capsys.readouterr()
    assert message in read.err
    assert (read.out, read.err.count("\n")) == ("", 1)


def test_settings_and_configs(files, capsys):
    assert _inspect("--edges", files[0], "data.columns=[target, weight]", "--json") == 0
    assert json.loads(capsys.readouterr().out)["num_nodes"] == 7
    assert _inspect(QUICKSTART, "data.synthetic.num_nodes=50", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["format"] == "synthetic"
    assert report["num_nodes"] == 50
    assert report["features"]["kinds"].keys() <= {"constant", "binary", "counts"}


def test_range_of_values_and_smallest_class(tmp_path, capsys):
    """Neither has a 0 that is not in the data."""
    (tmp_path / "e.csv").write_text("a,b\nb,c\nc,a\nd,e\n")
    (tmp_path / "x.csv").write_text("id,age\na,18\nb,90\nc,40\nd,33\ne,21\n")
    (tmp_path / "y.csv").write_text("a,1\nb,1\nc,2\nd,0\ne,0\n")
    files = [f"--{name}={tmp_path / file}" for name, file in
             (("edges", "e.csv"), ("features", "x.csv"), ("labels", "y.csv"))]  # fmt: skip
    assert main(["inspect", *files, "--json", "data.largest_component=true"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["features"]["least"], report["features"]["largest"]) == (18, 90)
    labels = report["labels"]
    assert (labels["num_classes"], labels["smallest_class"], labels["largest_class"]) == (2, 1, 2)


def test_nodes_without_anything():
    data = AttributedGraph(Graph.from_edges(2, [], [])[0], None)
    assert summary_lines(data) == [
        "Graph | 2 nodes, 0 edges, 0 self-loops dropped, 0 repeats merged, 2 components, "
        "2 nodes without edges, largest degree 0",
        "Nodes | features: none | labels: none",
    ]


def test_counts_come_from_the_notes_of_every_reader(tmp_path):
    """The notes are made by the readers: another wording there would lose these counts."""
    np.save(tmp_path / "edges.npy", np.array([[0, 1], [1, 0], [2, 2], [0, 1]]))
    np.save(tmp_path / "matrix.npy", np.array([[3.0, 1, 0], [0, 0, 2], [0, 2, 0]]))
    found = [
        inspect_data(load_config(None, ["data.kind=edge_list", f"data.edges={tmp_path}/{name}"]))
        for name in ("edges.npy", "matrix.npy")
    ]
    assert [(each["num_self_loops"], each["num_repeated"]) for each in found] == [(1, 2), (1, 0)]
    assert found[0]["weights"] is None
    weights = {"least": 1.0, "largest": 2.0, "mean": 1.5, "used": True}
    assert found[1]["weights"] == pytest.approx(weights)


def test_train_prints_two_lines(tmp_path, capsys):
    assert main(["train", QUICKSTART, *FAST, f"output_dir={tmp_path / 'run'}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (graph,) = (line for line in lines if line.startswith("Graph | "))
    (nodes,) = (line for line in lines if line.startswith("Nodes | "))
    assert lines.index(nodes) == lines.index(graph) + 1
    assert "120 nodes" in graph
    assert "200 columns, " in nodes
    assert "classes of" in nodes


def test_the_edges_of_an_option_replace_those_of_a_config(files, tmp_path, capsys):
    config = tmp_path / "mine.yaml"
    config.write_text("data:\n  kind: edge_list\n  edges: other.csv\n  weights: ignore\n")
    (tmp_path / "other.csv").write_text("1,2\n2,3\n")
    assert _inspect(config, "--edges", files[0], "--json") == 0
    report = json.loads(capsys.readouterr().out)  # one data set, by the settings of the config
    assert report["source"] == files[0]
    assert report["num_nodes"] == 5
    assert report["weights"] is None
    assert _inspect(config, "--edges", files[0], "data.weights=auto", "--json") == 0
    assert json.loads(capsys.readouterr().out)["weights"]["used"]


@pytest.mark.parametrize("others", [["edges.csv"], ["a.yaml", "b.yaml"]])
def test_the_option_edges_goes_with_at_most_one_config(others, files, tmp_path, capsys):
    named = [tmp_path / name for name in others]
    assert _inspect(*named, "--edges", files[0]) == 2
    error = capsys.readouterr().err
    assert "it replaces the edges of one CONFIG" in error
    assert error.count("\n") == 1
