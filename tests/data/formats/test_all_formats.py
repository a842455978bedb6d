"""One graph in every format that ``--edges`` takes: the same nodes, edges, features and labels."""

import gzip
import re
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graph_files import (
    CARRYING,
    EDGES,
    FEATURES,
    FORMATS,
    LABELS,
    SYMMETRIC,
    N,
    notes,
    pairs,
    refused,
    write,
)

from user_dgl.data import load_edge_list
from user_dgl.data.reading import files as data_files
from user_dgl.data.reading.files import ending, read_bytes
from user_dgl.errors import InputError


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_graph(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FORMATS[name])
    data = load_edge_list(path, write(tmp_path / "f.npy", FEATURES))
    one = 1 if ".mtx" in name else 0
    assert (data.num_nodes, data.graph.num_edges) == (N, len(EDGES))
    assert pairs(data) == {frozenset((str(u + one), str(v + one))) for u, v in EDGES}
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES)
    assert data.labels is None
    assert all(note.startswith(path.name) for note in data.notes)


@pytest.mark.parametrize("name", CARRYING)
def test_features_and_labels_of_the_file_itself(name, tmp_path):
    path = tmp_path / f"graph.{name}".replace(" ", "-")
    path = path.with_suffix("." + name.rpartition(".")[2].rpartition(" ")[2])
    CARRYING[name](path)
    data = load_edge_list(path)
    assert data.node_ids is None
    assert pairs(data) == {frozenset((str(u), str(v))) for u, v in EDGES}
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES)
    assert data.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("name", ["mat", "graphml", "npz"])
def test_files_beside_it_take_the_place_of_what_a_file_carries(name, tmp_path):
    path = tmp_path / f"graph.{name}"
    CARRYING[name](path)
    rows = "".join(f"{i},{i + 0.5}\n" for i in reversed(range(N)))
    labels = write(tmp_path / "l", "1,b\n0,a\n")
    given = load_edge_list(path, write(tmp_path / "f.csv", rows), labels)
    assert given.feat.toarray().ravel().tolist() == [i + 0.5 for i in range(N)]
    assert given.labels.tolist() == [0, 1] + [-1] * (N - 2)
    assert "its features are replaced by those of f.csv" in notes(given)
    assert "its labels are replaced by those of l" in notes(given)
    with pytest.raises(InputError, match=r"f\.npy"):
        load_edge_list(path, write(tmp_path / "f.npy", FEATURES[:-1]))


def test_features_and_labels_of_other_formats(tmp_path):
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    scipy.io.savemat(tmp_path / "f.mat", {"fea": FEATURES, "gnd": LABELS})
    scipy.io.mmwrite(tmp_path / "f.mtx", sp.coo_matrix(FEATURES), precision=9)
    np.savez(tmp_path / "l.npz", y=LABELS[::-1], ids=np.arange(N)[::-1])
    for features, labels in (("f.mat", "f.mat"), ("f.mtx", "l.npz")):
        data = load_edge_list(edges, tmp_path / features, tmp_path / labels)
        np.testing.assert_allclose(data.feat.toarray(), FEATURES, rtol=1e-6)
        assert data.labels.tolist() == LABELS.tolist()
    np.savez(tmp_path / "l.npz", y=LABELS[:5], ids=np.arange(9, 14))
    with pytest.raises(InputError, match=r"l\.npz: node 13 is not in the graph: check the id"):
        load_edge_list(edges, tmp_path / "f.mtx", tmp_path / "l.npz")
    scipy.io.savemat(tmp_path / "l.mat", {"group": np.ones((N, 2))})
    with pytest.raises(InputError, match="group: 13 nodes have several labels: expected one"):
        load_edge_list(edges, None, tmp_path / "l.mat")


class Touch:
    def __reduce__(self):
        return (open, ("pwned", "w"))


@pytest.mark.parametrize("name", ["e.npz", "f.npz", "l.npz", "e.npy", "f.npy", "l.npy"])
def test_pickled_objects_are_not_loaded(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile = np.array([Touch()] * N, dtype=object)
    if name.endswith("y"):
        np.save(tmp_path / name, hostile, allow_pickle=True)
    else:
        member = "adj_matrix" if name[0] == "e" else "x"
        np.savez(tmp_path / name, **{member: hostile})
    chosen = {
        "edges": write(tmp_path / "e.csv", FORMATS["e.csv"]),
        {"e": "edges", "f": "features", "l": "labels"}[name[0]]: tmp_path / name,
    }
    with pytest.raises(InputError, match=re.escape(name)):
        load_edge_list(**chosen)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_missing_features(how, tmp_path):
    rows = "1,2,3\n,nan,3\n5,inf,0\n0,4,0\n"
    edges, features = write(tmp_path / "e", "0 1\n2 3\n"), write(tmp_path / "f.csv", rows)
    data = load_edge_list(edges, features, missing=how)
    first, second = (2, 3) if how == "mean" else (0, 0)
    assert data.feat.toarray().tolist() == [
        [1, 2, 3],
        [first, second, 3],
        [5, second, 0],
        [0, 4, 0],
    ]
    assert "f.csv: 3 missing or infinite features set to" in notes(data)
    # A row cut short is a fault of the file, not a missing feature.
    with pytest.raises(InputError, match=r"f\.csv:2: 2 columns, expected 3"):
        load_edge_list(edges, write(tmp_path / "f.csv", "1,2,3\n2,3\n5,6,7\n8,9,0\n"), missing=how)


def test_what_does_not_fit_the_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "available_memory_mb", lambda: 20.0)
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    zeros = gzip.compress(b"0," * 10_000_000)
    assert len(zeros) < 100_000
    refused(write(tmp_path / "bomb.csv", zeros), r"needs .* GB of memory, but 0\.02 GB are")
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(30_000_000))
    for chosen in ((tmp_path / "bomb.npz",), (edges, tmp_path / "bomb.npz")):
        with pytest.raises(InputError, match=r"bomb\.npz: needs 0\.03 GB"):
            load_edge_list(*chosen)
    wide = {"fea": np.zeros((13, 300_000)), "W": SYMMETRIC}
    scipy.io.savemat(tmp_path / "bomb.mat", wide, do_compression=True)
    assert (tmp_path / "bomb.mat").stat().st_size < 100_000
    refused(tmp_path / "bomb.mat", "needs .* GB")
    sp.save_npz(tmp_path / "tall.npz", sp.coo_matrix(([1.0], ([0], [1])), (10**7, 10**7)))
    refused(tmp_path / "tall.npz", r"needs 0\.32 GB")
    with pytest.raises(InputError, match=r"tall\.npz: needs"):
        load_edge_list(edges, tmp_path / "tall.npz")


def test_endings_and_bytes(tmp_path):
    names = {"a.CSV": ".csv", "a.mtx.gz": ".mtx", "a.b.MAT.GZ": ".mat", "edges": "", "x.gz": ""}
    assert {name: ending(name) for name in names} == names
    content = b"0,1\n" * 1000
    path = write(tmp_path / "two-members", gzip.compress(content) + gzip.compress(content))
    assert read_bytes(path) == content * 2
    refused(write(tmp_path / "e.csv", FORMATS["lower.mtx"]), r"a MatrixMarket file: name it \.mtx")
    refused(write(tmp_path / "e.csv", b"<?xml version='1.0'?><a/>"), "an XML file: name it .graph")
    refused(
        write(tmp_path / "e.csv", FORMATS["plain.mat"]), r"holds NUL bytes.*\.npz, \.npy, \.mat"
    )
