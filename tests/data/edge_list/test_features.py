"""Features beside an edge list."""

import gzip
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from edge_lists import PATH, ROWS, as_csv, by_id
from graph_files import notes, pairs

from user_dgl.data import load_edge_list
from user_dgl.data.edge_list.features import read_features
from user_dgl.errors import InputError


@pytest.mark.parametrize(
    "features",
    [
        as_csv(ROWS),
        "f0,f1\n" + as_csv(ROWS),
        as_csv(ROWS, separator="\t"),
        as_csv(ROWS, separator=" ").replace("\n", " \n"),
        as_csv(ROWS).replace("\n", "\r\n") + "\r\n",
        as_csv(ROWS[[2, 0, 3, 1]], ids=[2, 0, 3, 1]),
        "id,a,b\n" + as_csv(ROWS[[2, 0, 3, 1]], ids=[2, 0, 3, 1]),
        ",0,1\n" + as_csv(ROWS, ids=range(4)),
        ROWS,
        ROWS.astype(np.float64),
        sp.csr_matrix(ROWS),
        gzip.compress(as_csv(ROWS).encode()),
    ],
    ids=lambda value: str(type(value).__name__),
)
def test_features_of_a_path(files, features):
    data = files(PATH, features)
    assert data.feat.format == "csr"
    assert data.feat.dtype == np.float32
    assert data.feat.nnz == 4
    np.testing.assert_array_equal(data.feat.toarray(), ROWS)


def test_features_header_of_column_numbers(files):
    wide = np.hstack([ROWS, ROWS])
    data = files(PATH, "0,1,2,3\n" + as_csv(wide))
    np.testing.assert_array_equal(data.feat.toarray(), wide)


def test_integer_features_are_not_taken_for_ids(files):
    rows = np.array([[3, 1], [3, 0], [0, 0], [1, 1]])
    np.testing.assert_array_equal(files(PATH, as_csv(rows)).feat.toarray(), rows)
    one = np.array([[2.0], [0], [1], [3]])
    np.testing.assert_array_equal(files(PATH, as_csv(one)).feat.toarray(), one)


def test_features_by_text_id(files):
    ids = ["007", "a b", "7", "Na"]
    data = files("7\t007\na b\t7\n", as_csv(ROWS, ids=ids, separator="\t"))
    assert data.node_ids == ("007", "7", "Na", "a b")
    assert by_id(data) == dict(zip(ids, ROWS.tolist(), strict=True))
    assert pairs(data) == {frozenset(("7", "007")), frozenset(("a b", "7"))}
    assert "joined by the ids" in notes(data)


def test_features_by_number_with_gaps(files):
    data = files("10,30\n", as_csv(ROWS, ids=[30, 7, 10, 200]))
    assert data.node_ids == ("7", "10", "30", "200")
    assert by_id(data)["30"] == ROWS[0].tolist()
    assert pairs(data) == {frozenset(("10", "30"))}


def test_mistyped_id_beside_features_with_gaps(files):
    for header in ("", "id,a,b\n"):
        features = header + as_csv(ROWS, ids=[30, 7, 10, 201])
        with pytest.raises(InputError, match=r"edges\.csv:3: node 200 has no row in .*features"):
            files("10,30\n30,7\n7,200\n", features)


def test_rows_in_order_of_ids_with_gaps(files):
    data = files("10,30\n30,7\n7,200\n", as_csv(ROWS))
    assert data.node_ids == ("7", "10", "30", "200")
    assert by_id(data)["30"] == ROWS[2].tolist()
    assert "gaps" in notes(data)


@pytest.mark.parametrize(
    ("edges", "features", "message"),
    [
        ("0,1\n1,4\n", as_csv(ROWS), r"name 3 nodes \(largest id 4\), features have 4 rows"),
        ("0,1\n1,-1\n", as_csv(ROWS), "edges name 3 nodes"),
        ("a,b\n", as_csv(ROWS), "features: features without ids, but node ids are text"),
        ("0,1\n#\n9,0\n", as_csv(ROWS, ids=range(4)), r"edges\.csv:3: node 9 has no row in"),
        ("1,2\n3,4\n", as_csv(ROWS, ids=[2, 0, 3, 1]), r"edges\.csv:2: node 4 has no row in"),
        ("a,b\n", as_csv(ROWS, ids="bcad").replace("c", "a"), "features:3: node a given twice"),
        ("a,b\n", as_csv(ROWS, ids=["a", "", "b", "c"]), "features:2: an id is missing"),
        (PATH, "1,2\n3,x\n5,6\n7,8\n", "features:2: column 2: 'x' is not a number"),
        (PATH, "1.5,2\n3.l,4\n5.5,6\n7.5,8\n", "features:2: column 1: '3.l' is not a number"),
        (PATH, "1,2\n3\n5,6\n7,8\n", "features:2: 1 columns, expected 2"),
        (PATH, "1;2,5\n3;4,5\n", "edges name 4 nodes .*, features have 2 rows"),
        (PATH, "1,2\n3,nan\n5,\n7,1e40\n", r"features: NaN.* 3 rows .*: 1, 2, 3:"),
        (PATH, np.where(ROWS == 2.5, np.nan, ROWS), r"features\.npy: NaN.* 1 rows .*: 1:"),
        (PATH, sp.csr_matrix(np.where(ROWS == 2.5, np.inf, ROWS)), r"\.npz: NaN.*: 1:"),
        (PATH, ROWS[:3], "features have 3 rows"),
        (PATH, ROWS[0], r"features\.npy: features of shape \(2,\)"),
        (PATH, ROWS.astype(str), r"features\.npy: features of shape .* type <U"),
        (PATH, ROWS.astype(object), r"features\.npy: not a plain npy array"),
    ],
)
def test_features_that_do_not_fit(files, edges, features, message):
    with pytest.raises(InputError, match=message):
        files(edges, features)


def test_sparse_adjacency(files, tmp_path):
    adjacency = sp.csr_matrix(([1.0, 2.0], ([0, 3], [1, 0])), shape=(4, 4))
    sp.save_npz(tmp_path / "edges.npz", adjacency)
    features = files.save("f.csv", as_csv(ROWS))
    data = load_edge_list(tmp_path / "edges.npz", features)
    assert pairs(data) == {frozenset("01"), frozenset("03")}
    assert data.num_nodes == 4
    np.testing.assert_allclose(data.graph.weight, [2 / 3, 4 / 3], rtol=1e-6)
    shuffled = files.save("g.csv", as_csv(ROWS[[3, 1, 0, 2]], ids=[3, 1, 0, 2]))
    np.testing.assert_array_equal(
        load_edge_list(tmp_path / "edges.npz", shuffled).feat.toarray(), ROWS
    )
    for rows in (as_csv(ROWS[:3]), as_csv(np.vstack([ROWS, ROWS])), as_csv(ROWS, ids="abcd")):
        with pytest.raises(InputError):
            load_edge_list(tmp_path / "edges.npz", files.save("h.csv", rows))


def test_large_sparse_features_stay_sparse(files, tmp_path):
    # 2,000 x 50,000,000 dense would be 400 GB.
    wide = sp.csr_matrix((np.ones(3), ([0, 1, 1999], [5, 49_999_999, 7])), shape=(2000, 50_000_000))
    data = files("\n".join(f"{i} {i + 1}" for i in range(1999)), wide)
    assert data.feat.shape == wide.shape
    assert data.feat.nnz == 3


def test_a_large_npy_is_mapped_and_not_read(tmp_path):
    array = np.zeros((200_000, 100))  # 160 MB
    array[:, ::10] = np.arange(1, 11) / 8
    np.save(tmp_path / "features.npy", array)
    expected = sp.csr_matrix(array, dtype=np.float32)
    del array
    tracemalloc.start()
    try:
        found = read_features(tmp_path / "features.npy", np.array([], dtype=np.int64))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.feat != expected).nnz == 0
    # The values and their columns, and a block of the file.
    assert peak < 2e6 * 8 + 100e6


@pytest.mark.parametrize("dtype", ["f2", ">f4", ">f8", "f8", ">i4", "u1", "?"])
def test_features_of_any_type_of_number(tmp_path, dtype):
    array = (np.arange(12).reshape(4, 3) % 3).astype(dtype)
    np.save(tmp_path / "features.npy", array)
    found = read_features(tmp_path / "features.npy", np.array([], dtype=np.int64)).feat
    assert found.dtype == np.float32
    assert np.array_equal(found.toarray(), array.astype(np.float32))


def test_a_control_character_in_front_of_a_number_is_a_blank(tmp_path):
    # str.strip takes it for a blank, and float() does not.
    (tmp_path / "features.csv").write_text("\x1f2.5,0\n")
    found = read_features(tmp_path / "features.csv", np.array([], dtype=np.int64)).feat
    assert found.toarray().tolist() == [[2.5, 0]]
