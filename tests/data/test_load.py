"""`load_data`: which file a config means; labels and components, which all loaders share."""

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.config import DataConfig, SyntheticConfig
from user_dgl.data import (
    UNLABELLED,
    AttributedGraph,
    data_root,
    index_labels,
    largest_component,
    load_data,
)
from user_dgl.errors import InputError
from user_dgl.graph import Graph


def test_root(monkeypatch, tmp_path):
    monkeypatch.delenv("USER_DGL_DATA", raising=False)
    assert str(data_root(DataConfig())) == "."
    monkeypatch.setenv("USER_DGL_DATA", "/from/variable")
    assert str(data_root(DataConfig())) == "/from/variable"
    assert data_root(DataConfig(root=str(tmp_path))) == tmp_path


def test_relative_and_absolute_paths(monkeypatch, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "e.csv").write_text("0,1\n1,2\n")
    (tmp_path / "own" / "x.csv").write_text("1.5\n2.5\n3.5\n")
    (tmp_path / "own" / "y.txt").write_text("a\nb\nb\n")
    names = {"edges": "own/e.csv", "features": "own/x.csv", "labels": "own/y.txt"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("USER_DGL_DATA", raising=False)
    assert load_data(DataConfig(kind="edge_list", **names)).labels.tolist() == [0, 1, 1]
    monkeypatch.chdir("/")
    config = DataConfig(kind="edge_list", root=str(tmp_path), **names)
    assert load_data(config).feat.sum() == 7.5
    monkeypatch.setenv("USER_DGL_DATA", str(tmp_path))
    assert load_data(DataConfig(kind="edge_list", **names)).num_nodes == 3
    whole = {key: str(tmp_path / name) for key, name in names.items()}
    assert load_data(DataConfig(kind="edge_list", root="/none", **whole)).num_nodes == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "planetoid"}, "data.kind=planetoid needs data.name"),
        ({"kind": "npz"}, "needs data.path"),
        ({"kind": "edge_list"}, "needs data.edges"),
        ({"kind": "dgl"}, "needs data.name"),
        ({"kind": "planetoid", "name": "cora"}, r"/planetoid: not found \(data\.path=planetoid\)"),
        ({"kind": "wiki"}, r"/wiki: not found"),
        ({"kind": "wiki", "path": "w"}, r"/w: not found \(data\.path=w\)"),
        ({"kind": "npz", "path": "a.npz"}, r"/a\.npz: not found"),
        ({"kind": "edge_list", "edges": "a.csv"}, r"/a\.csv: not found \(data\.edges=a\.csv\)"),
        ({"kind": "dgl", "name": "CoraGraphDataset", "path": "raw"}, "/raw: not found"),
    ],
)
def test_missing_keys_and_files(settings, message, tmp_path):
    with pytest.raises(InputError, match=message) as caught:
        load_data(DataConfig(root=str(tmp_path), **settings))
    if "not found" in message:
        assert str(caught.value).startswith(str(tmp_path))
        assert "data.root or the environment variable USER_DGL_DATA" in str(caught.value)


def test_kinds_find_their_folders(data_root):
    root = str(data_root)
    if not all((data_root / name).is_dir() for name in ("planetoid", "wiki", "gnn_benchmark")):
        pytest.skip("a folder of data sets is missing")
    assert load_data(DataConfig(kind="planetoid", name="cora", root=root)).num_nodes == 2708
    assert load_data(DataConfig(kind="wiki", root=root)).num_nodes == 2405
    npz = DataConfig(
        kind="npz", path="gnn_benchmark/citeseer.npz", root=root, largest_component=True
    )
    assert load_data(npz).num_nodes == 2110


def test_synthetic():
    config = DataConfig(synthetic=SyntheticConfig(num_nodes=50, num_blocks=2))
    assert load_data(config).num_nodes == 50


def test_largest_component():
    graph, _ = Graph.from_edges(7, [6, 5, 0, 1], [5, 3, 1, 1])
    feat = sp.csr_matrix(np.arange(7, dtype=np.float32)[:, None])
    data = AttributedGraph(graph, feat, np.arange(7), tuple("abcdefg"))
    part = largest_component(data)
    assert part.node_ids == ("d", "f", "g")
    assert part.labels.tolist() == [3, 5, 6]
    assert part.feat.toarray().ravel().tolist() == [3, 5, 6]
    assert list(zip(part.graph.src.tolist(), part.graph.dst.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
    ]
    assert part.notes == ("largest of 4 connected components kept: 3 of 7 nodes",)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([5, 3, 5], [1, 0, 1]),
        ([5, -1, 3], [1, UNLABELLED, 0]),
        ([-1, 1, 1], [0, 1, 1]),
        ([-1, -1, -1], [UNLABELLED] * 3),
        (["-1", "", "-1"], [UNLABELLED] * 3),
        ([1, 1], [0, 0]),
        (np.array(["b", 1, 2.5, None, np.True_], dtype=object), [3, 0, 1, UNLABELLED, 2]),
        ([1.0, np.nan, -1.0, 0.0], [1, UNLABELLED, UNLABELLED, 0]),
        ([True, False], [1, 0]),
        (["10", "9", "", "2"], [2, 1, UNLABELLED, 0]),
        (["10", "9", "x"], [0, 1, 2]),
        (["01", "1"], [0, 1]),
        (["b", None, "a"], [1, UNLABELLED, 0]),
        (["", ""], [UNLABELLED, UNLABELLED]),
        ([], []),
        (["red", "-1", "blue"], [1, UNLABELLED, 0]),
        (["+1", "-1", "+1"], [0, 1, 0]),
        (["-1", "0.5", "1.5"], [0, 1, 2]),
    ],
)
def test_index_labels(values, labels):
    found = index_labels(values)
    assert found.tolist() == labels
    assert found.dtype == np.int64


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.zeros(2, dtype="M8[D]"), "datetime64"),
        (np.zeros(2, dtype=complex), "complex128"),
        (np.array([1, [2, 3]], dtype=object), "list"),
        (np.array([b"a", "b"], dtype=object), "bytes"),
    ],
)
def test_labels_of_other_types_are_refused(values, kind):
    with pytest.raises(InputError, match=f"^labels: label of type {kind}"):
        index_labels(values)


@pytest.mark.parametrize(
    "parts",
    [
        {"feat": sp.csr_matrix((2, 1), dtype=np.float32)},
        {"labels": np.zeros(4, dtype=np.int64)},
        {"node_ids": ("a", "b")},
        {"feat": sp.csr_matrix(np.float32([[0], [np.nan], [1]]))},
    ],
    ids=str,
)
def test_parts_must_fit(parts):
    graph, _ = Graph.from_edges(3, [0], [1])
    with pytest.raises(InputError):
        AttributedGraph(graph, **{"feat": None, **parts})
