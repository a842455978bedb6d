"""Planetoid: counts of the published files, and their traps on a made-up set."""

import numpy as np
import pytest
import python2_pickles
import scipy.sparse as sp

from user_dgl.data import UNLABELLED, largest_component, load_planetoid
from user_dgl.data.reading.unpickle import load_pickle
from user_dgl.errors import InputError

PUBLISHED = {
    # nodes, edges, columns, non-zeros, sizes of classes, isolated, largest component, its edges
    "cora": (2708, 5278, 1433, 49216, [351, 217, 418, 818, 426, 298, 180], 0, 2485, 5069),
    "citeseer": (3327, 4552, 3703, 105165, [249, 590, 668, 701, 596, 508], 48, 2120, 3679),
    "pubmed": (19717, 44324, 500, 988031, [4103, 7739, 7875], 0, 19717, 44324),
}
NOTES = {
    "cora": ["302 repeated entries merged"],
    "citeseer": [
        "248 self-loop entries dropped",
        # 236 repeats with the second entry of each of 124 loops
        "112 repeated entries merged",
        "15 ids are in no feature file: nodes without features and label (2407, 2489, 2553, ...)",
    ],
    "pubmed": ["6 self-loop entries dropped", "22 repeated entries merged"],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name, data_folder):
    data = load_planetoid(data_folder("planetoid"), name)
    nodes, edges, columns, nonzeros, classes, isolated, component, kept = PUBLISHED[name]
    assert data.num_nodes == nodes
    assert data.graph.num_edges == edges
    assert data.feat.shape == (nodes, columns)
    assert data.feat.dtype == np.float32
    assert data.feat.nnz == nonzeros
    assert np.bincount(data.labels[data.labels != UNLABELLED]).tolist() == classes
    assert int((data.graph.degree == 0).sum()) == isolated
    assert list(data.notes) == NOTES[name]
    assert data.node_ids is None
    part = largest_component(data)
    assert part.num_nodes == component
    assert part.graph.num_edges == kept


@pytest.mark.parametrize("name", PUBLISHED)
def test_rows_are_at_the_ids_of_test_index(name, data_folder):
    folder = data_folder("planetoid")
    data = load_planetoid(folder, name)
    allx, tx = (load_pickle(folder / f"ind.{name}.{part}") for part in ("allx", "tx"))
    ty = load_pickle(folder / f"ind.{name}.ty")
    ids = np.loadtxt(folder / f"ind.{name}.test.index", dtype=int)
    assert (np.diff(ids) < 0).any()
    assert (data.feat[: allx.shape[0]] != allx).nnz == 0
    assert (data.feat[ids] != tx).nnz == 0
    labelled = ty.any(axis=1)
    np.testing.assert_array_equal(data.labels[ids][labelled], ty.argmax(axis=1)[labelled])


def test_citeseer_ids_without_rows(data_folder):
    data = load_planetoid(data_folder("planetoid"), "citeseer")
    ids = [2407, 2489, 2553, 2682, 2781, 2953, 3042, 3063, 3212, 3214, 3250, 3292, 3305, 3306, 3309]
    np.testing.assert_array_equal(np.flatnonzero(data.labels == UNLABELLED), ids)
    assert data.feat[ids].nnz == 0
    # They have edges: the 48 isolated nodes are others.
    assert data.graph.degree[ids].tolist() == [1] * 8 + [2] + [1] * 6


ALLX = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype=np.float32)
TX = np.array([[6, 0, 0], [0, 4, 0], [0, 0, 5]], dtype=np.float32)
PARTS = {
    "allx": sp.csr_matrix(ALLX),
    "ally": np.array([[1, 0], [0, 1], [0, 0]], dtype=np.int32),
    "tx": sp.csr_matrix(TX),
    "ty": np.array([[1, 0], [1, 0], [0, 1]], dtype=np.int32),
    # A loop, a repeat, one direction only of (4, 5); nothing for node 3 of 0..6.
    "graph": {0: [1, 1, 0], 1: [0, 0], 2: [6], 6: [2], 4: [5]},
}


def write_set(folder, index="6\n4\n5\n", **changes):
    for part, value in {**PARTS, **changes}.items():
        python2_pickles.write(folder / f"ind.tiny.{part}", value)
    (folder / "ind.tiny.test.index").write_text(index)
    return folder


def test_made_up_set(tmp_path):
    data = load_planetoid(write_set(tmp_path), "tiny")
    expected = np.zeros((7, 3))
    expected[[0, 1, 2]] = ALLX
    expected[[6, 4, 5]] = TX
    np.testing.assert_array_equal(data.feat.toarray(), expected)
    assert data.labels.tolist() == [0, 1, UNLABELLED, UNLABELLED, 0, 1, 0]
    pairs = list(zip(data.graph.src.tolist(), data.graph.dst.tolist(), strict=True))
    assert pairs == [(0, 1), (2, 6), (4, 5)]
    assert data.notes == (
        "1 self-loop entries dropped",
        "2 repeated entries merged",
        "directed: made symmetric, 5 entries give 3 undirected edges",
        "1 ids are in no feature file: nodes without features and label (3)",
    )


def test_last_id_may_be_known_to_the_graph_alone(tmp_path):
    graph = {**PARTS["graph"], 7: []}
    assert load_planetoid(write_set(tmp_path, graph=graph), "tiny").num_nodes == 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"index": "6\nfour\n5\n"}, r"test\.index:2: .*'four' is not a whole number"),
        ({"index": "6\n4\n4\n"}, r"test\.index:3: id 4 "),
        ({"index": "6\n2\n5\n"}, r"test\.index:2: id 2 "),
        ({"index": "6\n4\n"}, "test.index 2: they must agree"),
        ({"ally": PARTS["ally"][:2]}, "ally 2"),
        ({"tx": sp.csr_matrix(TX[:, :2])}, "differ in the number of columns"),
        ({"allx": ALLX}, r"ind\.tiny\.allx: expected a CSR matrix, got ndarray"),
        ({"ty": sp.csr_matrix(TX)}, r"ind\.tiny\.ty: expected one-hot"),
        ({"graph": [[1], [0]]}, r"ind\.tiny\.graph: expected a dict"),
        ({"graph": {0: [-1]}}, r"ind\.tiny\.graph: negative"),
        ({"graph": {0: 1}}, r"ind\.tiny\.graph: expected a dict"),
        ({"graph": sp.csr_matrix(TX)}, r"ind\.tiny\.graph: expected a dict"),
        ({"graph": TX}, r"ind\.tiny\.graph: expected a dict"),
        ({"graph": {(0, 1): [1]}}, r"ind\.tiny\.graph: expected a dict"),
        ({"graph": {0: [2**31]}}, r"ind\.tiny\.graph: node id 2147483648: expected less"),
        ({"graph": {2**40: [0]}}, r"ind\.tiny\.graph: node id 1099511627776: expected less"),
        ({"index": "6\n4\n2147483648\n"}, r"test\.index:3: id 2147483648: expected less"),
        ({"ally": PARTS["ally"][:, :0], "ty": PARTS["ty"][:, :0]}, r"tiny\.ally: no columns"),
    ],
)
def test_files_that_do_not_fit(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_planetoid(write_set(tmp_path, **changes), "tiny")


def test_missing_files(tmp_path):
    write_set(tmp_path)
    with pytest.raises(InputError, match=r"ind\.cora\.graph: not found.*contains tiny$"):
        load_planetoid(tmp_path, "cora")
    (tmp_path / "ind.tiny.ty").unlink()
    with pytest.raises(InputError, match=r"ind\.tiny\.ty: No such file"):
        load_planetoid(tmp_path, "tiny")
