"""Labels beside an edge list."""

import numpy as np
import pytest
import scipy.sparse as sp
from edge_lists import PATH, ROWS, as_csv
from graph_files import notes

from user_dgl.data import read_labels
from user_dgl.errors import InputError


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("b\na\nb\nc\n", [1, 0, 1, 2]),
        ("label\nb\na\nb\nc\n", [1, 0, 1, 2]),
        ("\ufeffb\na\nb\nc\n", [1, 0, 1, 2]),
        ("\ufefflabel\nb\na\nb\nc\n", [1, 0, 1, 2]),
        ("class\n10\n9\n10\n2\n", [2, 1, 2, 0]),
        ("1\r\n1\r\n2\r\n2\r\n", [0, 0, 1, 1]),
        ("b\n\nb\nc\n", [0, -1, 0, 1]),
        ("\nb\nb\nc\n", [-1, 0, 0, 1]),
        ("b\nb\nc\n\n\n", [0, 0, 1, -1]),
        ("b\n\na\n\nb\n\nc\n\n", [1, 0, 1, 2]),
        ("# one a line\nb\na\nnan\nNA\n", [1, 0, -1, -1]),
        ("Rule Learning\nTheory\nTheory\nRule Learning\n", [0, 1, 1, 0]),
        ("3,x\n1,y\n0,x\n2,y\n", [0, 1, 1, 0]),
        ("node\tlabel\n3\t10\n1\t9\n0\t10\n", [1, 0, -1, 1]),
        ("id,label\n3,x\n1,\n0,x\n", [0, -1, -1, 0]),
        ("0 x\n1 y\n2 x\n3 y\n9 z\n", [0, 1, 0, 1]),
        ("0 x\n1\n2 x\n3 y\n", [0, -1, 0, 1]),
        ("0\n-1\n1\n0\n", [0, -1, 1, 0]),
        ("0.0\n-1.0\n10.0\n9.0\n", [0, -1, 2, 1]),
        ("0.000e+00\n-1.000e+00\n1.000e+00\n0.000e+00\n", [0, -1, 1, 0]),
        ("1.5\n-1.5\n-1.0\n1.5\n", [2, 1, 0, 2]),
        ("a\nNULL\n<NA>\nNone\n", [1, -1, -1, 0]),
        ("-1\n-1\n1\n1\n", [0, 0, 1, 1]),
        (np.array([7, 3, 3, 7], dtype=np.int8), [1, 0, 0, 1]),
        (np.array(["b", "", "a", "a"]), [1, -1, 0, 0]),
        (np.array([1.0, np.nan, 0.0, 1.0]), [1, -1, 0, 1]),
    ],
    ids=repr,
)
def test_labels(files, labels, expected):
    data = files(PATH, as_csv(ROWS), labels)
    assert data.labels.tolist() == expected
    assert data.labels.dtype == np.int64
    missing = expected.count(-1)
    assert (f"{4 - missing} of 4 nodes have a label" in notes(data)) == bool(missing)


def test_labels_by_text_id(files):
    edges, features = "b,a\n007,7\n", as_csv(ROWS, ids=["b", "a", "7", "007"])
    data = files(edges, features, "a,1\nb,2\n007,3\n7,1\n")
    assert dict(zip(data.node_ids, data.labels.tolist(), strict=True)) == {
        "a": 0,
        "b": 1,
        "007": 2,
        "7": 0,
    }
    with pytest.raises(InputError, match="labels: labels without ids, but node ids are text"):
        files(edges, features, "1\n2\n3\n1\n")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("1\n2\n3\n", "labels: 3 labels for 4 nodes"),
        ("1\n2\n3\n4\n5\n", "labels: 5 labels for 4 nodes"),
        ("1\n2\n\n3\n4\n5\n", "labels: 6 labels for 4 nodes"),
        ("0 a\n1 b\n\n0 c\n2 a\n3 a\n", "labels:4: node 0 given twice"),
        ("1 a\n2 b\n3 a\n4 b\n", "labels:4: node 4 is not in the graph"),
        ("0 a x\n1 b x\n2 a x\n", "labels:1: 3 columns"),
        ('0,a\n1,"b\n2,b\n3,a\n', "labels:2: a quotation mark is left open"),
        (np.eye(4), r"labels\.npy: array of shape \(4, 4\)"),
        (np.array([0, 1, 2]), r"labels\.npy: 3 labels for 4 nodes"),
        (np.array([0, "a", 2, 1], dtype=object), r"labels\.npy: not a plain npy"),
    ],
    ids=repr,
)
def test_labels_that_do_not_fit(files, labels, message):
    with pytest.raises(InputError, match=message):
        files(PATH, as_csv(ROWS), labels)


def test_labels_in_an_npz_file(files):
    path = files.save("labels.npz", sp.csr_matrix(ROWS))
    with pytest.raises(InputError, match=r"labels\.npz: holds data, .*: expected one array"):
        read_labels(path, None, 4)


def test_without_features_no_label_changes_the_graph(files):
    """Neither its value nor its absence: then what is trained would depend on it."""
    for labels in ("5\n6\n5\n", "5\n6\n\n", "\n\n5\n", np.array([1, 2, 2])):
        data = files("0,1\n", None, labels)
        assert data.num_nodes == 3
        assert data.feat is None
        assert "the graph has 3 nodes, one for each row" in notes(data)
        assert "1 of 3 nodes have no edges" in notes(data)
    for labels in ("8,x\n7,y\n9,x\n", "7,y\n8,x\nstranger,x\n", "7,y\n8,\n6,x\n", "7,y\n5,y\n"):
        data = files("7,8\n", None, labels)
        assert data.node_ids == ("7", "8")
        assert "1 ids that are not in the graph ignored" in notes(data)
    assert data.labels.tolist() == [0, -1]
    with pytest.raises(InputError, match="labels:1: node a is not in the graph"):
        files("7,8\n", None, "a,x\nb,y\n")


def test_read_labels(files):
    path = files.save("labels.csv", "node,label\n12,x\n7,y\n3,x\n")
    assert read_labels(path, ("3", "7"), 2).tolist() == [0, 1]
    assert read_labels(path, ("7", "3", "12"), 3).tolist() == [1, 0, 0]
    with pytest.raises(InputError, match=r"labels\.csv:2: node 12 is not in the graph"):
        read_labels(path, None, 8)
    path = files.save("labels.txt", "x\ny\nx\n")
    assert read_labels(path, None, 3).tolist() == [0, 1, 0]
    assert read_labels(path, ("1", "2", "3"), 3).tolist() == [0, 1, 0]
    with pytest.raises(InputError, match="3 labels for 4 nodes"):
        read_labels(path, None, 4)


def test_an_id_and_a_label_of_several_words(files):
    """Else each row would be a class of its own."""
    labels = "0 machine learning\n1 machine learning\n2 theory of computation\n3 databases\n"
    for content in (labels, "id label\n" + labels):
        with pytest.raises(InputError, match="an id and a label of several parts"):
            files(PATH, None, content)
    data = files(PATH, None, labels.replace(" ", ",", 1).replace("\n1 ", "\n1,")
                 .replace("\n2 ", "\n2,").replace("\n3 ", "\n3,"))  # fmt: skip
    assert data.labels.tolist() == [1, 1, 2, 0]
