"""The command ``user-dgl clean`` as users call it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import user_dgl
from user_dgl.cli import main
from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model, load_edge_list


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Edges and features of a graph whose nodes have names, as CSV."""
    folder = tmp_path_factory.mktemp("files")
    data = block_model(SyntheticConfig(num_nodes=150, num_blocks=2))
    names = np.array([f"#{i:03d}" for i in range(150)])
    ends = {"source": names[data.graph.src.numpy()], "target": names[data.graph.dst.numpy()]}
    edges, features = folder / "edges.csv", folder / "features.csv"
    pd.DataFrame(ends).to_csv(edges, index=False, quoting=1)
    table = pd.DataFrame(data.feat.toarray())
    table.insert(0, "node", names)
    table.to_csv(features, index=False, quoting=1)
    return edges, features


@pytest.fixture
def clean(files, tmp_path, monkeypatch):
    """Call the command in an empty folder with the files and options; return its status."""
    monkeypatch.chdir(tmp_path)
    edges, features = files

    def call(*options, edges=edges):
        return main(["clean", "--edges", str(edges), "--features", str(features), *options])

    return call


def test_a_dgl_file_is_written_wholly_or_not_at_all(clean, tmp_path, monkeypatch, capsys):
    written = []

    def save_half(path, graphs):
        Path(path).write_bytes(b"half")
        written.append(Path(path).parent)
        raise user_dgl.dgl.DGLError("Check failed: FileStream.Write incomplete\nStack trace:")

    (tmp_path / "a.bin").write_bytes(b"old")
    monkeypatch.setattr(user_dgl.dgl, "save_graphs", save_half)
    assert clean("--out", "a.bin", "--overwrite") == 2
    error = capsys.readouterr().err
    assert "a.bin: cannot be written: DGL could not write all of it (Check failed: " in error
    # It would not fit the folder of temporary files where that is small.
    assert [folder.resolve() for folder in written] == [tmp_path.resolve()]
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert not list(tmp_path.glob(".*"))


def test_every_form_holds_the_same_graph(clean, tmp_path, capsys):
    for name in ("a.csv", "a.npz", "a.bin"):
        assert clean("--out", name, "--doubtful", f"{name}.doubtful.csv") == 0
    matrix = sp.load_npz(tmp_path / "a.npz")
    assert (matrix != matrix.T).nnz == 0
    (graph,), _ = user_dgl.dgl.load_graphs(str(tmp_path / "a.bin"))
    ends = np.stack([end.numpy() for end in graph.edges()])
    stored = sp.csr_matrix((graph.edata["weight"].numpy(), ends), shape=matrix.shape)
    assert (stored != matrix).nnz == 0
    table = pd.read_csv(tmp_path / "a.csv")
    assert table.columns.tolist() == ["source", "target", "weight"]
    rows, columns = (table[end].str[1:].astype(int) for end in ("source", "target"))
    listed = sp.csr_matrix((table["weight"], (rows, columns)), shape=matrix.shape)
    assert abs(listed + listed.T - matrix).max() < 1e-6
    doubtful = pd.read_csv(tmp_path / "a.csv.doubtful.csv")
    assert len(doubtful) == 20
    assert doubtful.columns.tolist() == ["source", "target", "probability", "weight", "against"]
    out = capsys.readouterr().out
    assert "Judged by features and graph" in out
    assert "Most doubtful" not in out
    # The names of the nodes begin with #, and are read again all the same.
    assert load_edge_list(tmp_path / "a.csv").num_nodes == 150


def test_table_is_printed_without_a_file_for_it(clean, capsys):
    assert clean("--out", "a.csv") == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Most doubtful edges"))
    assert lines[start + 1].split() == ["source", "target", "probability", "weight", "against"]
    assert lines[-1].startswith("a.csv: ")
    assert len(lines) - start - 3 == 20


def test_options_reach_the_result(clean, tmp_path):
    assert clean("--out", "a.npz", "--candidates", "0", "--power", "0") == 0
    assert (sp.load_npz(tmp_path / "a.npz").data == 1).all()
    assert clean("--out", "b.npz", "--candidates", "0", "--top-k", "2") == 0
    assert sp.load_npz(tmp_path / "b.npz").nnz <= 4 * 150
    assert clean("--out", "b.npz", "--threshold", "0.1", "--power", "1", "--overwrite") == 0
    assert sp.load_npz(tmp_path / "b.npz").data.min() >= 0.1


def test_edges_alone(files, tmp_path, capsys):
    assert main(["clean", "--edges", str(files[0]), "--out", str(tmp_path / "a.csv")]) == 0
    assert "Judged by graph alone" in capsys.readouterr().out


def test_features_that_say_nothing(files, tmp_path, capsys):
    features = tmp_path / "same.csv"
    table = pd.read_csv(files[1])
    table.iloc[:, 1:] = 1
    table.to_csv(features, index=False, quoting=1)
    words = ["--edges", str(files[0]), "--features", str(features)]
    assert main(["clean", *words, "--out", str(tmp_path / "a.csv")]) == 0
    out = capsys.readouterr().out
    assert "Warning: the prepared features do not differ" in out
    assert "Judged by graph alone" in out


def test_too_few_edges_keep_their_weights(tmp_path, capsys):
    (tmp_path / "few.csv").write_text("source,target,weight\na,b,1\nb,c,3\n")
    words = ["--edges", str(tmp_path / "few.csv"), "--out", str(tmp_path / "a.csv")]
    assert main(["clean", *words]) == 0
    assert "every edge keeps its weight" in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "a.csv")["weight"].tolist() == [0.5, 1.5]


def _refused(capsys, status):
    assert status == 2
    error = capsys.readouterr().err
    assert error.startswith("user-dgl: error: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "a.txt"], "a.txt: --out takes a name that ends in .csv or .npz or .bin"),
        (["--out", "nowhere/a.csv"], "nowhere: no such folder"),
        (["--out", "a.npz", "--doubtful", "b.npz"], "--doubtful takes a name that ends in .csv"),
        (["--out", "a.csv", "--doubtful", "./a.csv"], "choose different names"),
        (["--out", "a.csv", "--threshold", "2"], "no edge of A' would be left"),
    ],
)
def test_bad_options(clean, tmp_path, capsys, options, message):
    assert message in _refused(capsys, clean(*options))
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_replaced(clean, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("mine")
    assert "a.csv: exists" in _refused(capsys, clean("--out", "a.csv"))
    assert (tmp_path / "a.csv").read_text() == "mine"


@pytest.mark.parametrize("option", ["--out", "--doubtful"])
@pytest.mark.parametrize("which", ["edges", "features"])
def test_no_input_is_replaced(tmp_path, capsys, files, option, which):
    copies = {}
    for name, file in zip(("edges", "features"), files, strict=True):
        copies[name] = tmp_path / file.name
        copies[name].write_bytes(file.read_bytes())
    before = copies[which].read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(copies[which])
    words = ["--edges", str(copies["edges"]), "--features", str(copies["features"])]
    words += [] if option == "--out" else ["--out", str(tmp_path / "a.csv")]
    for name in (copies[which], link):
        status = main(["clean", *words, option, str(name), "--overwrite"])
        assert f"{option} names a file that is read" in _refused(capsys, status)
    assert copies[which].read_bytes() == before


def test_settings_of_the_reading(files, tmp_path, capsys):
    edges = pd.read_csv(files[0])
    edges.insert(0, "number", np.arange(len(edges)))
    edges.columns = ["number", "a", "b"]
    edges.to_csv(tmp_path / "edges.csv", index=False, quoting=1)
    kinds = np.where(np.arange(150) % 2, "x", "y")
    features = pd.concat([pd.read_csv(files[1]), pd.Series(kinds, name="kind")], axis=1)
    features.to_csv(tmp_path / "features.csv", index=False, quoting=1)
    words = ["--edges", str(tmp_path / "edges.csv"), "--out", str(tmp_path / "a.csv")]
    words += ["--features", str(tmp_path / "features.csv")]
    setting = "data.columns=[a, b]"
    assert "features.categorical=one_hot" in _refused(capsys, main(["clean", *words, setting]))
    assert main(["clean", *words, setting, "features.categorical=one_hot"]) == 0
    assert load_edge_list(tmp_path / "a.csv").num_nodes == 150
    # Settings may also come before the options.
    assert main(["clean", setting, "features.categorical=one_hot", *words, "--overwrite"]) == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("edges.csv", "'edges.csv': expected section.key=value"),
        ("train.lr=1", "train.lr: not read"),
        ("data.noise.rate=0.5", "data.noise.rate: not read"),
        ("data.kind=npz", "data.kind: not read"),
        ("data=1", "data: not read"),
        ("data.edges=x.csv", "data.edges: give the file as --edges"),
        ("data.colums=[1, 2]", "colums"),
    ],
)
def test_bad_settings(clean, tmp_path, capsys, setting, message):
    assert message in _refused(capsys, clean("--out", "a.csv", setting))
    assert list(tmp_path.iterdir()) == []


def test_bad_edges(clean, tmp_path, capsys):
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\nc\n")
    assert "wrong.csv:2: 1 columns" in _refused(capsys, clean("--out", "a.csv", edges=wrong))
    assert "not found" in _refused(capsys, clean("--out", "a.csv", edges=tmp_path / "none.csv"))
    assert "--edges: names no file" in _refused(capsys, clean("--out", "a.csv", edges=""))


@pytest.mark.parametrize("option", ["--power=-1", "--candidates=x", "--seed=-2", "--top-k=0"])
def test_numbers_are_checked(clean, option):
    with pytest.raises(SystemExit) as stop:
        clean("--out", "a.csv", option)
    assert stop.value.code == 2
