"""npz files: counts of the published ones, four layouts, and what is refused."""

import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.data import largest_component, load_adjacency, load_npz
from user_dgl.data.formats.npz import load_sparse
from user_dgl.errors import InputError

# nodes, edges, feature columns, sizes of classes or their number, isolated, largest component
GRAPHDATA = {
    "acm": (3025, 13128, 1870, [1061, 965, 999], 561, 2006),
    "amazon_photo": (7650, 119081, 745, 8, 115, 7487),
    "amazon_cs": (13752, 245861, 767, 10, 281, 13381),
    "coauthor_cs": (18333, 81894, 6805, 15, 0, 18333),
    "coauthor_phy": (34493, 247962, 8415, 5, 0, 34493),
    "dblp": (17716, 52867, 1639, 4, 0, 16191),
    "uai": (3067, 28308, 4973, 19, 6, 3059),
    "polblogs": (1490, 16715, None, 2, 266, 1222),
}
# nodes, edges, loops, columns, non-zeros, classes, isolated; the same of the largest component
PROGNN = {
    "cora": ((2708, 5278, 0, 1433, 7, 0), (2485, 5069)),
    "citeseer": ((3312, 4536, 124, 3703, 6, 48), (2110, 3668)),
    "polblogs": ((1490, 16715, 3, None, 2, 266), (1222, 16714)),
    "cora_ml": ((2995, 8158, 0, 2879, 7, 0), (2810, 7981)),
}


@pytest.mark.parametrize("name", GRAPHDATA)
def test_graphdata_counts(name, data_folder):
    data = load_npz(data_folder("graphdata_npz") / f"{name}.npz")
    nodes, edges, columns, classes, isolated, component = GRAPHDATA[name]
    assert (data.num_nodes, data.graph.num_edges) == (nodes, edges)
    assert (None if data.feat is None else data.feat.shape) == (columns and (nodes, columns))
    sizes = np.bincount(data.labels).tolist()
    assert classes in (sizes, len(sizes))
    assert min(sizes) > 0
    assert int((data.graph.degree == 0).sum()) == isolated
    assert largest_component(data).num_nodes == component
    if name == "amazon_photo":
        assert data.notes[0] == "1 self-loop entries dropped"
        assert "143662 entries" in data.notes[1]
    if name == "uai":
        assert data.notes == ("6 self-loop entries dropped",)
    if name == "dblp":
        assert int((data.feat.getnnz(axis=1) == 0).sum()) == 64


@pytest.mark.parametrize("name", PROGNN)
def test_prognn_counts(name, data_folder):
    data = load_npz(data_folder("prognn_meta") / f"{name}.npz")
    (nodes, edges, loops, columns, classes, isolated), component = PROGNN[name]
    assert (data.num_nodes, data.graph.num_edges) == (nodes, edges)
    assert (None if data.feat is None else data.feat.shape) == (columns and (nodes, columns))
    assert data.labels.max() + 1 == classes
    assert int((data.graph.degree == 0).sum()) == isolated
    notes = " | ".join(data.notes)
    assert (f"{loops} self-loop entries" in notes) == bool(loops)
    assert (data.graph.weight is not None) == (name == "polblogs")
    part = largest_component(data)
    assert (part.num_nodes, part.graph.num_edges) == component
    assert part.notes[-1].endswith(f"kept: {component[0]} of {nodes} nodes")
    # Ascending original ids.
    assert (np.diff([int(i) for i in part.node_ids]) > 0).all()


def test_the_two_polblogs_are_equal(data_folder):
    one = load_npz(data_folder("graphdata_npz") / "polblogs.npz")
    other = load_npz(data_folder("prognn_meta") / "polblogs.npz")
    np.testing.assert_array_equal(one.graph.keys, other.graph.keys)
    np.testing.assert_array_equal(one.labels, other.labels)


ADJACENCY = sp.csr_matrix(
    # 0 -> 1 with weight 2, both directions of (1, 2), a loop, and a stored zero at (3, 0)
    (np.array([2.0, 1, 1, 1, 0]), (np.array([0, 1, 2, 2, 3]), np.array([1, 2, 1, 2, 0]))),
    shape=(4, 4),
)
FEATURES = sp.csr_matrix(np.array([[1, 0], [0, 2.5], [0, 0], [3, 0]]))
LABELS = np.array([5, 1, 5, 1], dtype=np.int32)


def as_parts(prefix, matrix):
    return {f"{prefix}_{p}": getattr(matrix, p) for p in ("data", "indices", "indptr", "shape")}


def parts(**changes):
    return {
        **as_parts("adj", ADJACENCY),
        **as_parts("attr", FEATURES),
        "labels": LABELS,
        **changes,
    }


def objects(**changes):
    return {"adj_matrix": ADJACENCY, "node_attr": FEATURES, "node_label": LABELS, **changes}


def write(path, arrays):
    boxed = {}
    for name, value in arrays.items():
        if sp.issparse(value) or isinstance(value, dict):
            boxed[name] = np.empty((), dtype=object)
            boxed[name][()] = value
        elif value is not None:
            boxed[name] = value
    np.savez(path, **boxed)
    return path


@pytest.mark.parametrize("layout", [parts, objects])
def test_layouts(layout, tmp_path):
    extra = {"metadata": {"class_names": ["a", "b"]}}
    data = load_npz(write(tmp_path / "graph.npz", layout(**extra)))
    assert list(zip(data.graph.src.tolist(), data.graph.dst.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
    ]
    assert data.num_nodes == 4
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES.toarray())
    assert data.labels.tolist() == [1, 0, 1, 0]
    assert data.notes == (
        "1 self-loop entries dropped",
        "directed: made symmetric, 3 entries give 2 undirected edges",
        "1 stored zeros are not edges",
    )
    np.testing.assert_allclose(data.graph.weight, [4 / 3, 2 / 3], rtol=1e-6)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_scipy_files(form, tmp_path):
    sp.save_npz(tmp_path / "a.npz", ADJACENCY.asformat(form))
    data = load_npz(tmp_path / "a.npz")
    graph, notes = load_adjacency(tmp_path / "a.npz")
    assert notes == list(data.notes)
    assert "1 self-loop entries dropped" in notes
    assert data.graph.keys.tolist() == graph.keys.tolist() == [1, 6]
    assert graph.num_nodes == 4
    assert data.feat is None
    assert data.labels is None


def test_features_and_labels_may_be_absent(tmp_path):
    path = write(tmp_path / "graph.npz", as_parts("adj", ADJACENCY))
    assert load_npz(path).feat is None
    assert load_npz(path).labels is None


EDGES = np.array([[0, 1], [1, 2], [2, 2], [0, 1]])


@pytest.mark.parametrize("names", [("node_features", "node_labels"), ("x", "y")])
def test_list_of_edges(names, tmp_path):
    """Node 3 has no edge: the number of nodes is that of the features."""
    arrays = dict(zip(names, (FEATURES.toarray(), LABELS), strict=True))
    masks = {"train_masks": np.ones((3, 4), dtype=bool)}
    for given in ({"edges": EDGES}, {"edge_index": np.vstack([EDGES, EDGES[:, ::-1]]).T}):
        data = load_npz(write(tmp_path / "graph.npz", {**given, **arrays, **masks}))
        assert data.graph.keys.tolist() == [1, 6]
        assert data.num_nodes == 4
        np.testing.assert_array_equal(data.feat.toarray(), FEATURES.toarray())
        assert data.labels.tolist() == [1, 0, 1, 0]
        assert any("merged" in note for note in data.notes)
        assert not any("directed" in note for note in data.notes)
    alone = load_npz(write(tmp_path / "graph.npz", {"edges": EDGES}))
    assert alone.num_nodes == 3
    assert alone.feat is None
    assert alone.labels is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"edges": EDGES.T}, r"edges of shape \(2, 4\): expected \(M, 2\)"),
        ({"edge_index": EDGES}, r"edge_index of shape \(4, 2\): expected \(2, M\)"),
        ({"edges": EDGES + 0.5}, "edges: expected an array of whole numbers"),
        ({"edges": EDGES, "y": LABELS[:2]}, "edges and 2 nodes: .*node"),
        ({"edges": EDGES, "num_nodes": np.array([4, 4])}, "num_nodes: expected a whole number"),
        ({"edges": EDGES, "num_nodes": 3.7}, "num_nodes: expected a whole number"),
        ({"edges": EDGES, "num_nodes": -1}, "num_nodes: expected a whole number"),
        ({"edges": EDGES, "num_nodes": 5, "y": LABELS}, "labels of shape"),
        ({"edges": EDGES, "edge_weight": np.ones(3)}, "edge_weight: weights of shape"),
        ({"edges": EDGES * 10**15}, "memory"),
    ],
)
def test_wrong_lists_of_edges_are_refused(given, said, tmp_path):
    with pytest.raises(InputError, match=said):
        load_npz(write(tmp_path / "graph.npz", given))


@pytest.mark.parametrize("dtype", [np.int64, np.uint32])
def test_weights_and_number_of_nodes_of_a_list_of_edges(dtype, tmp_path):
    arrays = {"edges": EDGES.astype(dtype), "edge_weight": np.array([1.0, 2, 3, 0])}
    data = load_npz(write(tmp_path / "graph.npz", {**arrays, "num_nodes": 6}))
    assert data.num_nodes == 6
    np.testing.assert_allclose(data.graph.data_weight, [1, 2])
    assert "1 edges of weight 0 are no edges" in data.notes
    assert load_npz(write(tmp_path / "graph.npz", arrays)).num_nodes == 3


def test_a_list_of_edges_beside_an_adjacency_is_named_and_not_read(tmp_path):
    for layout in (parts, objects):
        data = load_npz(write(tmp_path / "graph.npz", layout(edges=np.array([[0, 3]]))))
        assert data.graph.keys.tolist() == [1, 6]
        assert any(note.startswith("arrays not read: edges; ") for note in data.notes)
    mixed = {"edges": EDGES, **as_parts("attr", FEATURES)}
    data = load_npz(write(tmp_path / "graph.npz", mixed))
    assert data.feat is None
    assert any("not read: attr_data, attr_indices" in note for note in data.notes)


def test_dense_features_beside_the_parts_of_the_adjacency(tmp_path):
    arrays = {**as_parts("adj", ADJACENCY), "attr_matrix": FEATURES.toarray(), "labels": LABELS}
    data = load_npz(write(tmp_path / "graph.npz", arrays))
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES.toarray())
    assert not any("not read" in note for note in data.notes)


def test_arrays_that_are_not_read_are_named(tmp_path):
    """Features under another name must not be left out in silence."""
    data = load_npz(write(tmp_path / "graph.npz", parts(embedding=FEATURES.toarray())))
    (note,) = (note for note in data.notes if "not read" in note)
    assert note.startswith("arrays not read: embedding; ")


def test_dense_members(tmp_path):
    dense = {"adj_matrix": ADJACENCY.toarray(), "node_attr": FEATURES.toarray()}
    data = load_npz(write(tmp_path / "graph.npz", dense))
    assert data.graph.num_edges == 2
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES.toarray())


@pytest.mark.parametrize("dtype", ["f2", ">f8", ">i4", "u1"])
@pytest.mark.parametrize("layout", ["parts", "dense"])
def test_any_type_of_number(dtype, layout, tmp_path):
    arrays = {"adj_matrix": ADJACENCY.toarray().astype(dtype)}
    if layout == "parts":
        indices = ADJACENCY.indices.astype(">i8")
        arrays = parts(adj_data=ADJACENCY.data.astype(dtype), adj_indices=indices)
    assert load_npz(write(tmp_path / "graph.npz", arrays)).graph.keys.tolist() == [1, 6]


class Touch:
    def __reduce__(self):
        return (open, ("pwned", "w"))


@pytest.mark.parametrize("name", ["adj_matrix", "node_attr", "node_label"])
def test_hostile_members_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    box = np.empty((), dtype=object)
    box[()] = Touch()
    path = write(tmp_path / "graph.npz", objects(**{name: box}))
    with pytest.raises(InputError, match=rf"graph\.npz: {name}: pickle refused.* \w+\.open"):
        load_npz(path)
    assert not (tmp_path / "pwned").exists()


WRONG = ADJACENCY.copy()
WRONG.data = np.array([1, 1, 1, -1, np.nan])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": LABELS, "b": LABELS}, "holds a, b: expected adj_data"),
        ({}, "holds nothing"),
        (parts(adj_indices=np.array([1, 2, 1, 2, 4])), "not a valid CSR matrix"),
        (parts(adj_indices=np.array([1, 2, 1, 2, -1])), "not a valid CSR matrix"),
        (parts(adj_indptr=np.array([0, 1, 2, 4, 9])), "not a valid CSR matrix"),
        (parts(adj_indptr=np.array([0, 1, -9, -9, -9])), "not a valid CSR matrix"),
        (parts(adj_indptr=None, adj_shape=None), "lacks adj_indptr, adj_shape"),
        (parts(attr_shape=np.array([4, 1])), "not a valid CSR matrix"),
        (parts(labels=LABELS[:3]), r"labels of shape \(3,\).* 4 nodes"),
        (parts(labels=np.eye(4)), r"labels of shape \(4, 4\)"),
        (parts(**as_parts("attr", FEATURES[:3])), "3 feature rows for 4 nodes"),
        (parts(**as_parts("attr", sp.vstack([FEATURES] * 2, "csr"))), "8 feature rows for 4 nodes"),
        (objects(node_attr=np.ones((5, 2))), "5 feature rows for 4 nodes"),
        (parts(**as_parts("adj", ADJACENCY[:3])), r"square adjacency.*\(3, 4\)"),
        (parts(**as_parts("adj", WRONG)), "negative, NaN or infinite.* 2 rows .*: 2, 3:"),
        (parts(attr_data=np.array([1, np.inf, 3])), "NaN, empty or infinite.* 1 rows .*: 1:"),
        (objects(node_attr=np.array(["a", "b"])), "expected a row of real numbers"),
        (parts(labels=np.zeros(4, dtype="M8[D]")), r"graph\.npz: label of type datetime64"),
        (objects(adj_matrix={"a": 1}), "holds a dict, expected arrays"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused(arrays, message, tmp_path):
    with pytest.raises(InputError, match=message) as caught:
        load_npz(write(tmp_path / "graph.npz", arrays))
    assert "graph.npz: " in str(caught.value)


def test_damaged_files(tmp_path):
    path = write(tmp_path / "graph.npz", parts())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"graph\.npz: not an npz file"):
        load_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name in as_parts("adj", ADJACENCY):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00broken")
    with pytest.raises(InputError, match=r"graph\.npz: adj_data: damaged"):
        load_npz(path)
    path.write_bytes(pickle.dumps(ADJACENCY))
    with pytest.raises(InputError, match=r"graph\.npz: not an npz file"):
        load_adjacency(path)
    with pytest.raises(InputError, match=r"missing\.npz: No such file"):
        load_npz(tmp_path / "missing.npz")


def test_load_sparse_checks_what_scipy_does_not(tmp_path):
    path = tmp_path / "a.npz"
    right = {k.removeprefix("adj_"): v for k, v in parts().items() if k[:4] == "adj_"}
    right["format"] = np.array(b"csr")
    outside = {"indices": np.array([1, 2, 1, 2, 9])}
    # The last start says how many entries there are; SciPy takes a negative number for none.
    negative = {"indptr": np.array([0, 1, -9, -9, -9])}
    for wrong in (outside, negative):
        write(path, right | wrong)
        with pytest.raises(InputError, match=r"a\.npz: not a valid sparse matrix"):
            load_sparse(path)
    write(path, parts())
    with pytest.raises(InputError, match=r"a\.npz: holds .*: expected a matrix saved with scipy"):
        load_adjacency(path)
