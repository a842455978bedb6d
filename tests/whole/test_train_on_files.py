"""``user-dgl train --edges FILE``: files and options in every combination."""

import gzip
import json
import re

import numpy as np
import pytest
import scipy.io
from graph_files import (
    CARRYING,
    EDGE,
    FEATURES,
    FORMATS,
    LABELS,
    LAUGHS,
    MTX,
    SYMMETRIC,
    N,
    saved,
    text,
    write,
    xml,
)

from user_dgl.cli import main
from user_dgl.config import load_config


def train(tmp_path, *arguments):
    return main(["train", *map(str, arguments), "train.epochs=3", f"output_dir={tmp_path / 'run'}"])


@pytest.mark.parametrize("name", ["mat", "graphml", "npz", "bin"])
def test_training_on_a_file_needs_no_more_than_it(name, tmp_path, capsys):
    path = tmp_path / f"graph.{name}"
    CARRYING[name](path)
    assert train(tmp_path, "--edges", path, "--clusters", 2) == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["num_labelled_nodes"] == N
    assert result["num_features"] == 3
    assert result["metrics"]["nmi"] > 80
    assert "graph." in capsys.readouterr().out


def test_training_writes_a_config_that_repeats_it(tmp_path, monkeypatch, capsys):
    """From a relative path, with a data folder set that it does not lie in."""
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "data" / "my graph.csv", FORMATS["e.csv"])
    write(tmp_path / "data" / "f.npy", FEATURES)
    write(tmp_path / "data" / "l.txt", "".join(f"{x}\n" for x in LABELS))
    monkeypatch.setenv("USER_DGL_DATA", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path)
    arguments = ["--edges", "data/my graph.csv", "--features", "data/f.npy"]
    arguments += ["--labels", "data/l.txt", "--clusters", "2"]
    assert main(["train", *arguments, "train.epochs=3", "eval.floors=true"]) == 0
    run = tmp_path / "outputs" / "my graph" / "seed0"
    config = load_config(run / "config.yaml")
    assert config.train.epochs == 3
    assert config.model.encoder == "smooth"  # as in configs/default.yaml
    monkeypatch.chdir("/")
    again = tmp_path / "again"
    assert main(["train", str(run / "config.yaml"), f"output_dir={again}"]) == 0
    for file in ("clusters.csv", "embedding.npy", "learned_graph.npz"):
        assert (run / file).read_bytes() == (again / file).read_bytes()
    assert json.loads((again / "result.json").read_text())["floors"]


def test_a_config_and_settings_go_with_the_files(tmp_path):
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    config = write(tmp_path / "own.yaml", "seed: 3\ntrain: {log_every: 7}\n")
    mixed = [config, "--edges", edges, "seed=4", "--clusters=2", "model.hidden_feats=[4]"]
    assert train(tmp_path, *mixed) == 0
    found = load_config(tmp_path / "run" / "config.yaml")
    assert (found.seed, found.train.log_every, found.model.hidden_feats) == (4, 7, (4,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--edges", "none.csv", "--clusters", "2"), r"/none\.csv: not found: check the path"),
        (("--edges", "e.csv"), "num_clusters is not set"),
        (("--edges", "e.csv", "--clusters", "14"), "14 clusters asked for, 12 nodes"),
        (("--edges", "e.csv", "--clusters", "two"), "--clusters two: expected a whole number of"),
        (
            ("--edges", "e.csv", "--clusters", "3, seed: 5"),
            "--clusters 3, seed: 5: expected",
        ),
        (("--edges", "e.csv", "--clusters", "0"), "--clusters 0: expected a whole number of 2"),
        (("--edges", "", "--clusters", "2"), "--edges: names no file"),
        (("--features", "e.csv", "--clusters", "2"), "--features goes with --edges FILE"),
        (("--edges", "e.csv", "--clusters", "2", "train.epoch=3"), "did you mean train.epochs"),
        (("--edges", "e.csv", "--clusters", "2", "--features", "x.npy"), r"/x\.npy: not found"),
        (
            ("--edges", "e.csv", "--clusters", "2", "data.columns=[a]"),
            "columns: expected two names",
        ),
        ((), r"train needs a CONFIG, or --edges FILE"),
    ],
)
def test_unusable_arguments(arguments, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "e.csv", FORMATS["e.csv"])
    assert main(["train", *arguments]) == 2
    error = capfd.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv"]


def test_nodes_of_which_nothing_is_known_are_counted(tmp_path, capsys):
    labels = write(tmp_path / "l.csv", "".join(f"{i % 2}\n" for i in range(N + 1)))
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    assert train(tmp_path, "--edges", edges, "--labels", labels, "--clusters", 2) == 0
    assert "Warning: 2 nodes have neither edges nor features" in capsys.readouterr().out
    assert len((tmp_path / "run" / "clusters.csv").read_text().splitlines()) == 1 + N + 1


LARGEST = 2**63 - 1
TINY = "".join(f"{i} {j}\n" for i in range(4) for j in range(i))
BOTH = {"edges": TINY, "features.npy": np.eye(4)}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"edges.csv": gzip.compress(text(","))[:-9]}, "damaged gzip"),
        ({"edges.csv": "0,1,1\n1,2,-inf\n"}, r"edges\.csv:2: weight -inf in column 3"),
        ({"edges.csv": "\ufeffa;b\r\nb;\r\n"}, r"edges\.csv:2: an id is missing"),
        ({"edges.csv": b"a,b\nb,\xe9\n"}, r"edges\.csv:2: not UTF-8"),
        ({"edges.mat": saved(scipy.io.savemat, {"M": SYMMETRIC})}, "expected a variable called w"),
        ({"edges.mat": b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n"}, "with -v7"),
        ({"edges.graphml": xml(f'<node id="&i;"/>{EDGE}', LAUGHS)}, "entities are not supported"),
        ({"edges.mtx": MTX + b"pattern general\n3 3 2\n1 2\n4 1\n"}, r"edges\.mtx:4: row 4"),
        ({"edges.npz": b"PK\x03\x04 cut off"}, "not an npz file"),
        ({"edges": TINY, "features.npy": np.full((4, 2), np.inf)}, "4 rows .*: 0, 1, 2, 3:"),
        ({"edges": TINY, "features.csv": "id,x\n0,1\n2,3\n2,4\n"}, r"csv:4: node 2 given twice"),
        ({**BOTH, "labels.csv": "0,a\n1,b\n7,a\n"}, r"labels\.csv:3: node 7 is not in the graph"),
        ({**BOTH, "labels.npy": LABELS}, "labels.npy: 13 labels for 4 nodes"),
    ],
)  # fmt: skip
def test_unusable_files(files, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "--clusters", "2"]
    for name, content in files.items():
        write(tmp_path / name, content)
        arguments += [f"--{name.partition('.')[0]}", name]
    assert main(arguments) == 2
    error = capfd.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize(
    ("edges", "features", "ids"),
    [
        (f"0 {LARGEST}\n0 3\n{LARGEST} 3\n", None, ["0", "3", str(LARGEST)]),
        ("\ufeffu\tv\tw\r\n1\t2\t1\r\n2\t3\t0.5\r\n2\t1\t2\r\n", "1\n2\n3\n", ["1", "2", "3"]),
        ("# c\n  a \t b\n\nb\tc\n", "c,1,0\na,0,1\nd,2,0\nb,0,3\n", ["a", "b", "c", "d"]),
    ],
)
def test_odd_files_that_can_be_used(edges, features, ids, tmp_path):
    arguments = ["--clusters", 2, "--edges", write(tmp_path / "e", edges)]
    if features:
        arguments += ["--features", write(tmp_path / "f", features)]
    assert train(tmp_path, *arguments) == 0
    lines = (tmp_path / "run" / "clusters.csv").read_text().splitlines()
    assert lines[0] == "node,cluster"
    assert [line.split(",")[0] for line in lines[1:]] == ids
    assert np.isfinite(np.load(tmp_path / "run" / "embedding.npy")).all()


def test_unknown_options_are_refused(capsys):
    for arguments in (["train", "x.yaml", "--edge-file", "a"], ["evaluate", "run", "seed=1"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert "unrecognized arguments" in capsys.readouterr().err
