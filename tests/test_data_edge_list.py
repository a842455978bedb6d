"""Edge lists with features and labels: the small cases, then one trap at a time."""

import gzip
import os
import re
import tracemalloc
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.data import UNLABELLED, load_edge_list, read_labels
from user_dgl.data.edge_list.features import read_features
from user_dgl.data.reading import files as data_files
from user_dgl.data.reading.unpickle import load_pickle
from user_dgl.errors import InputError


def pairs(data):
    """Edges as pairs of the user's ids."""
    ids = data.node_ids or tuple(str(i) for i in range(data.num_nodes))
    ends = zip(data.graph.src.tolist(), data.graph.dst.tolist(), strict=True)
    return {frozenset((ids[u], ids[v])) for u, v in ends}


def by_id(data):
    """Features by the user's ids."""
    ids = data.node_ids or tuple(str(i) for i in range(data.num_nodes))
    return dict(zip(ids, data.feat.toarray().tolist(), strict=True))


def notes(data):
    return " | ".join(data.notes)


# ---------------------------------------------------------------------------------------------
# The small cases


@pytest.fixture
def case(cases_root):
    def load(edges, features=None, labels=None):
        return load_edge_list(*(n and cases_root / n for n in (edges, features, labels)))

    return load


def test_s01_loops_and_repeats(case):
    data = case("s01_loops_dups.csv", "s01_features.csv", "s01_labels.txt")
    assert (data.num_nodes, data.graph.num_edges) == (24, 68)
    assert int(data.graph.degree.max()) == 9
    assert "header (src, dst)" in notes(data)
    assert "4 self-loop entries dropped, 43 repeated or reversed entries merged" in notes(data)
    assert data.node_ids is None
    assert np.bincount(data.labels).tolist() == [8, 8, 8]


def test_s02_text_ids(case, cases_root):
    files = ("s02_string_ids.tsv", "s02_features_by_id.tsv", "s02_labels_by_id.tsv")
    data = case(*files)
    assert (data.num_nodes, data.graph.num_edges) == (18, 51)
    assert {"007", "7", "east 09", "west-ñ3"} < set(data.node_ids)
    assert not any("\r" in i or i != i.strip() for i in data.node_ids)
    assert frozenset(("007", "7")) in pairs(data)
    # Joined by id, not by line: against the lines of the files, read another way.
    read = [(cases_root / f).read_text(encoding="utf-8").splitlines() for f in files]
    rows = [line.split("\t") for line in read[1]]
    for row in rows:
        node = data.node_ids.index(row[0])
        np.testing.assert_allclose(data.feat[node].toarray()[0], np.float32(row[1:]))
    labels = dict(line.split("\t") for line in read[2])
    assert [str(x) for x in data.labels] == [labels[i] for i in data.node_ids]
    edges = {frozenset(x.split("\t")) for x in read[0] if x and not x.startswith("#")}
    assert pairs(data) == edges


def test_s03_ids_from_one(case):
    data = case("s03_one_based.txt", "s03_features.csv", "s03_labels.txt")
    assert (data.num_nodes, data.graph.num_edges) == (21, 42)
    assert data.node_ids == tuple(str(i) for i in range(1, 22))
    assert "ids start at 1" in notes(data)
    assert int(data.graph.degree.min()) > 0
    assert by_id(data)["1"][0] == pytest.approx(2.385)
    assert np.bincount(data.labels).tolist() == [7, 7, 7]


def test_s04_nodes_without_edges(case):
    data = case("s04_isolated.csv", "s04_features.csv", "s04_labels.txt")
    assert (data.num_nodes, data.graph.num_edges) == (18, 34)
    assert np.flatnonzero(data.graph.degree.numpy() == 0).tolist() == [0, 16, 17]
    assert sp.csgraph.connected_components(data.graph.to_scipy())[0] == 5
    assert data.node_ids is None
    assert "ids count from 0" in notes(data)


def test_s05_nan_and_inf(case):
    with pytest.raises(InputError, match=r"s05_nan_inf_features\.csv: .* in 3 rows .*: 4, 11, 18:"):
        case("s05_edges.csv", "s05_nan_inf_features.csv")


def test_s06_a_feature_row_too_few(case):
    with pytest.raises(
        InputError, match=r"edges name 20 nodes \(largest id 19\), features have 19 rows"
    ):
        case("s06_edges.csv", "s06_features_short.csv")


def test_s07_labels_partly_missing(case):
    data = case("s07_edges.csv", "s07_features.csv", "s07_labels_partial.csv")
    assert data.num_nodes == 24
    missing = data.labels == UNLABELLED
    assert np.flatnonzero(missing).tolist() == [1, 2, 10, 19, 23]
    assert set(data.labels[~missing]) == {0, 1, 2}
    assert "19 of 24 nodes have a label" in notes(data)
    assert case("s07_edges.csv", "s07_features.csv").labels is None


def test_s08_weights(case):
    data = case("s08_weights_zero.csv", "s08_features.csv", "s08_labels.txt")
    assert (data.num_nodes, data.graph.num_edges) == (20, 62)
    assert "2 rows of weight 0 dropped" in notes(data)
    assert "weights in column 'weight' ignored" in notes(data)
    with pytest.raises(
        InputError, match=r"negative\.csv:9: weight -1\.5 in column 'weight'.*2 such.*line 17$"
    ):
        case("s08_weights_negative.csv", "s08_features.csv", "s08_labels.txt")


def test_s09_sparse_files(case, cases_root):
    data = case("s09_directed_csr.npz", "s09_sparse_features.npz", "s09_labels.npy")
    assert (data.num_nodes, data.graph.num_edges) == (24, 61)
    assert "made symmetric" in notes(data)
    assert "3 stored zeros are not edges" in notes(data)
    assert sp.issparse(data.feat)
    assert data.feat.shape == (24, 200)
    assert data.feat.nnz == 161
    assert data.feat.dtype == np.float32
    assert data.node_ids is None
    assert np.bincount(data.labels).tolist() == [8, 8, 8]


# ---------------------------------------------------------------------------------------------
# One trap at a time


@pytest.fixture
def files(tmp_path):
    """Writes text, bytes or arrays and loads them."""

    def save(name, content):
        path = tmp_path / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        elif sp.issparse(content):
            sp.save_npz(path, content)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def load(edges, features=None, labels=None, *, suffix=".csv"):
        named = [(f"edges{suffix}", edges), ("features", features), ("labels", labels)]
        ends = {np.ndarray: ".npy", sp.csr_matrix: ".npz"}
        return load_edge_list(
            *(
                None if content is None else save(name + ends.get(type(content), ""), content)
                for name, content in named
            )
        )

    load.save = save
    return load


TRIANGLE = {frozenset("01"), frozenset("12"), frozenset("02")}


@pytest.mark.parametrize("separator", [",", "\t", ";", " ", "   ", ", ", " \t "])
@pytest.mark.parametrize("header", ["", "src{}dst\n", "source{}target\n", "a{}b\n", "FROM{}TO\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_headers_line_ends(files, separator, header, end):
    text = header.format(separator) + "".join(f"{u}{separator}{v}\n" for u, v in ("01", "12", "20"))
    data = files(text.replace("\n", end))
    assert pairs(data) == TRIANGLE
    assert data.num_nodes == 3
    assert ("header" in notes(data)) == bool(header)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff0,1\n1,2\n2,0\n",
        "\ufeffsrc,dst\n0,1\n1,2\n2,0",
        "# a,b,c\n\n% more\n0,1\n  # indented, too\n1,2\n\n   \n2,0\n#last\n\n\n",
        "#only\r\n\r\n#comments\r\nsrc,dst\r\n\r\n0,1\r\n#x\r\n1,2\r\n2,0\r\n\r\n",
        '"0","1"\n"1","2"\n"2","0"\n',
        " 0 , 1 \n1,2\n2,0\n",
        "0,1,\n1,2,\n2,0,\n",
        ",src,dst\n0,0,1\n1,1,2\n2,2,0\n",
        ",a,b\n0,0,1\n1,1,2\n2,2,0\n",
        "id,type,target,source\n7,x,0,1\n8,x,1,2\n9,y,2,0\n",
        "0 1 {}\n1 2 {}\n2 0 {}\n",
        "0 1 {'weight': 1.0}\n1 2 {'weight': 1.0}\n2 0 {'weight': 1.0}\n",
    ],
)
def test_shapes_of_the_same_triangle(files, text):
    data = files(text)
    assert pairs(data) == TRIANGLE
    assert data.node_ids is None


def test_header_does_not_depend_on_the_order_of_lines(files):
    for lines in permutations(["u,v", "v,w", "w,u"]):
        data = files("\n".join(lines))
        assert data.graph.num_edges == 3
        assert data.node_ids == ("u", "v", "w")
    assert files("hub,other\n1,2\nhub,3\n").graph.num_edges == 3
    assert pairs(files(",0,1\n0,0,1\n1,1,2\n2,2,0\n")) == TRIANGLE  # a frame without names


def test_long_cells(files):
    long = "x" * 140_000
    with pytest.raises(InputError, match=r"edges\.csv:2: cannot be split \(field larger"):
        files(f'a,b\nb,"{long}"\n')
    # A long row of short cells is none.
    wide = ",".join(['"0.25"'] * 30_000)
    data = files("0,1\n1,2\n", "\n".join([wide] * 3))
    assert data.feat.shape == (3, 30_000)


def test_gzip_by_content(files):
    text = b"0,1\n1,2\n2,0\n"
    assert pairs(files(gzip.compress(text), suffix=".csv.gz")) == TRIANGLE
    assert pairs(files(gzip.compress(text), suffix=".txt")) == TRIANGLE
    with pytest.raises(InputError, match="damaged gzip"):
        files(gzip.compress(text)[:-4], suffix=".csv.gz")


def test_order_of_lines_and_directions_do_not_matter(files):
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 50, (200, 2))
    for name in ("{}", "n{}", "{:03d}"):
        rows = [[name.format(u), name.format(v)] for u, v in edges]
        one = files("\n".join(",".join(r) for r in rows))
        rng.shuffle(rows)
        other = files("\n".join(",".join(r[::-1]) for r in rows))
        np.testing.assert_array_equal(one.graph.keys, other.graph.keys)
        assert one.node_ids == other.node_ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("007,7\n7,8\n", ["007", "7", "8"]),
        ("7,8\n8,007\n", ["007", "7", "8"]),
        ("x,007\n007,7\n", ["007", "7", "x"]),
        ("+7,7\n7,8\n", ["+7", "7", "8"]),
        ("-0,0\n0,1\n", ["-0", "0", "1"]),
        ("1.0,1\n1,2\n", ["1", "1.0", "2"]),
        ("1e3,1000\n1000,2\n", ["1000", "1e3", "2"]),
        ("NA,nan\nnan,null\n", ["NA", "nan", "null"]),
        ("True,False\nFalse,None\n", ["False", "None", "True"]),
        ("a#b,c%\nc%,d\n", ["a#b", "c%", "d"]),
        ("10,9\n9,100\n", ["9", "10", "100"]),
        ("-5,3\n3,4\n", ["-5", "3", "4"]),
        ('"a, b",c\nc,"d ""e"""\n', ["a, b", "c", 'd "e"']),
        # Beyond float64 and up to 2^63 - 1; one more and all are text.
        (
            "9007199254740993,9007199254740992\n9223372036854775807,9007199254740992\n",
            ["9007199254740992", "9007199254740993", "9223372036854775807"],
        ),
        ("9223372036854775808,1\n1,20\n", ["1", "20", "9223372036854775808"]),
    ],
)
def test_ids_stay_as_they_are_written(files, text, ids):
    data = files(text)
    assert list(data.node_ids) == ids
    assert data.graph.num_edges == 2


def test_leading_zero_far_from_the_sample(files):
    lines = [f"{i},{i + 1}" for i in range(1, 3000)]
    assert files("\n".join(lines)).num_nodes == 3000
    lines[2000] = "2001,0002002"
    data = files("\n".join(lines))
    assert data.num_nodes == 3001
    assert "0002002" in data.node_ids


def test_text_id_far_from_the_sample(files):
    lines = [f"{i},{i + 1}" for i in range(3000)]
    lines[2500] = "2500,hub"
    assert files("\n".join(lines)).node_ids[-1] == "hub"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("# only\n\n", "no rows"),
        ("src,dst\n", "only a header"),
        ("\x1f\nab\n", r":2: one column"),
        ("0\n1\n", r":1: one column \('0'\)"),
        ("src,dst\n0,1\n\n# c\n1,2,3\n", r":5: 3 columns, expected 2 as in line 2"),
        ("3,2,u,name\n0,1\n1,2\n", r":2: 2 columns, expected 4 as in line 1"),
        ("0,1\n1\n2,0\n", r":2: 1 columns, expected 2 as in line 1"),
        ("a,b\nb,\nc,a\n", r":2: an id is missing"),
        ("a,b\n#c\n ,c\nc,a\n", r":3: an id is missing"),
        ('a,b\nb,"c\nd,e\n', r":2: a quotation mark is left open"),
        ('a,b\nb,"c\nd",e\n', r":2: a quotation mark is left open"),
        ('a,b\nb,"c\nd"\n', r":2: a quotation mark is left open"),
        ("0,1,0.5\n1,2,much\n", r":2: column 3: 'much' is not a number"),
        ("0,1,0.5\n1,2,\n", r":2: weight nan in column 3"),
        ("0,1,0.5\n1,2\n", r":2: 2 columns, expected 3"),
        ("u,v,w\n0,1,0.5\n1,2,-inf\n", r":3: weight -inf in column 'w'"),
        (b"a,b\nb,\xff\n", r":2: not UTF-8"),
        ("0,1\n1,2\n".encode("utf-16"), "UTF-16"),
        (b"0,1\n1\0,2\n", "NUL"),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n", "MatrixMarket"),
    ],
)
def test_malformed_edges(files, text, message):
    with pytest.raises(InputError, match=message) as caught:
        files(text)
    assert re.match(r"\S+edges\.csv:", str(caught.value))
    assert "\n" not in str(caught.value)


def test_malformed_row_far_from_the_sample(files):
    lines = [f"{i},{i + 1}" for i in range(5000)]
    lines[4000] += ",9"
    lines.insert(1000, "# moves the lines below by one")
    with pytest.raises(InputError, match=":4002: 3 columns, expected 2 as in line 1"):
        files("\n".join(lines))


def test_a_header_of_unknown_names(files):
    ring = "ann,bob\nbob,cy\ncy,ann\n"
    path = files.save("e.csv", "person_a,person_b\n" + ring)
    data = load_edge_list(path)
    assert data.num_nodes == 5
    assert "'person_a' nor 'person_b' occurs again: set data.header=true" in notes(data)
    data = load_edge_list(path, header=True)
    assert data.node_ids == ("ann", "bob", "cy")
    assert "header (person_a, person_b)" in notes(data)
    assert "occurs again" not in notes(files("0,9\n" + ring))
    assert "occurs again" not in notes(files(ring))
    path = files.save("e.csv", "from,to\n" + ring)
    assert load_edge_list(path, header=False).num_nodes == 5
    for first in (
        "from_city,to_city",
        "Sender,Receiver",
        "follower;followee",
        "source_x\ttarget_x",
    ):
        data = files(first + "\n" + ring.replace(",", re.sub(r"\w", "", first)))
        assert data.node_ids == ("ann", "bob", "cy")


def test_columns_of_the_ends(files):
    mails = "2020-01-01,ann,bob,5\n2020-01-02,bob,cy,7\n2020-01-03,cy,ann,9\n"
    data = files("date,Sender,Receiver,amount\n" + mails)
    assert data.node_ids == ("ann", "bob", "cy")
    assert "column 'date', column 'amount' ignored" in notes(data)
    path = files.save("e.csv", "date,who,Whom,amount\n" + mails)
    refused = r"e\.csv: which of the columns date, who, Whom, amount hold .* data\.columns=\[A, B\]"
    with pytest.raises(InputError, match=refused):
        load_edge_list(path)
    data = load_edge_list(path, columns=("who", "Whom"))
    assert data.node_ids == ("ann", "bob", "cy")
    with pytest.raises(InputError, match="names who and whom, the columns are date, who, Whom, a"):
        load_edge_list(path, columns=("who", "whom"))
    # Two are left when the weight and the index of a frame are taken away.
    assert files("x,y,weight\n0,1,1\n1,2,0\n").graph.num_edges == 1
    assert files(",x,y,w\n0,0,1,1\n1,1,2,0\n").graph.num_edges == 1
    path = files.save("e.npz", sp.csr_matrix(np.eye(3)[[1, 2, 0]]))
    assert "data.header and data.columns have no effect" in notes(load_edge_list(path, header=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 -\n2 3 1\n3 4 0\n", ":1: column 3: '-' is not a number"),
        ("2 3 1\n1 2 -\n3 4 0\n", ":2: column 3: '-' is not a number"),
        ("1,2,x\n2,3,-1\n", ":1: column 3: 'x' is not a number"),
        ("1,2,x\n" * 30 + "2,3,-1\n", ":1: column 3: 'x' is not a number"),
    ],
)
def test_a_third_column_is_of_numbers_or_is_none(files, text, message):
    with pytest.raises(InputError, match=message):
        files(text)


def test_ids_with_a_point(files):
    floats = "".join(f"{u}.0,{v}.0\n" for u, v in ("01", "12", "23"))
    with pytest.raises(
        InputError, match=r":1: node 0\.0 has no row in .*with a decimal point: write 0\)"
    ):
        files(floats, "id,x\n" + as_csv(ROWS, ids=range(4)))
    with pytest.raises(InputError, match=r"such as '0\.0' in .*with a decimal point: write 0\)"):
        files(floats, as_csv(ROWS))
    with pytest.raises(InputError, match=r"labels:2: node 0\.0 is not in .*: write 0\)"):
        files(PATH, None, "id,label\n0.0,a\n1.0,b\n")


def test_decimal_commas(files):
    edges = "u;v;w\n0;1;0,5\n1;2;0,0\n2;3;-0\n"
    data = files(edges, "id;f0;f1\n" + "".join(f"{i};{i},5;-1,25\n" for i in range(4)))
    assert data.graph.num_edges == 1
    assert by_id(data)["3"] == [3.5, -1.25]
    assert "edges.csv: 2 decimal commas read as points" in notes(data)
    assert "features: 8 decimal commas read as points" in notes(data)
    with pytest.raises(InputError, match=r":2: weight -0\.5 in column 3"):
        files("0;1;0,5\n1;2;-0,5\n")
    # Both: then the comma is something else.
    with pytest.raises(InputError, match=r":1: column 3: '1,000' is not a number"):
        files("0;1;1,000\n1;2;1.5\n")
    assert files("a, b;c\nc;d, e\n").node_ids == ("a, b", "c", "d, e")


def test_what_is_no_regular_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "pipe.npy", "pipe.npz", "pipe.mat", "pipe.graphml", "pipe.bin"):
        if name != "pipe":
            (tmp_path / name).symlink_to(tmp_path / "pipe")
        with pytest.raises(InputError, match=f"{name}: a pipe or device: save its content"):
            load_edge_list(tmp_path / name)
    for load in (load_pickle, read_labels_of, load_edge_list):
        with pytest.raises(InputError, match="/dev/zero: a pipe or device"):
            load(Path("/dev/zero"))


def read_labels_of(path):
    return read_labels(path, None, 3)


def test_a_file_larger_than_the_memory_is_not_read(files, monkeypatch):
    path = files.save("e.csv", "0,1\n" * 1000)
    monkeypatch.setattr(data_files, "available_memory_mb", lambda: 0.001)
    monkeypatch.setattr(Path, "read_bytes", pytest.fail)
    for load in (load_pickle, load_edge_list):
        with pytest.raises(InputError, match=r"e\.csv: needs .* GB of memory"):
            load(path)


@pytest.mark.parametrize("name", ["e.npz.gz", "e.npy.GZ", "e.bin.gz"])
def test_packed_files_that_have_to_be_unpacked_first(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b"x"))
    with pytest.raises(InputError, match=r"cannot be read gzipped: unpack it with gunzip"):
        load_edge_list(tmp_path / name)


def test_no_advice_to_unpickle(tmp_path):
    for content in (gzip.compress(b"x"), b"\x80\x04N."):
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(
            InputError, match=r"it contains objects, or has another format.*: save it again"
        ):
            load_edge_list(tmp_path / "x.npy")


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: No such file"):
        load_edge_list(tmp_path / "none.csv")
    with pytest.raises(InputError, match="Is a directory"):
        load_edge_list(tmp_path)


def test_weights(files):
    data = files("u,v,weight\n0,1,2\n1,2,1e-05\n2,3,0\n3,0,0.0\n0,4,1\n")
    assert data.graph.num_edges == 3
    assert data.num_nodes == 5
    assert "2 rows of weight 0 dropped" in notes(data)
    assert "weights in column 'weight' ignored" in notes(data)
    assert "ignored" not in notes(files("0 1 1\n1 2 1.0\n"))
    # Repeats of one pair with other weights, one of them 0.
    data = files("u,v,weight\n0,1,2\n1,0,0.5\n0,1,0\n1,2,0\n")
    assert pairs(data) == {frozenset("01")}
    assert "2 rows of weight 0 dropped" in notes(data)
    assert "1 repeated or reversed entries merged" in notes(data)
    # A time is no weight: neither zero nor negative times say anything about the edge.
    data = files("u,v,time\n0,1,0\n1,2,-5\n")
    assert data.graph.num_edges == 2
    assert "column 'time' ignored" in notes(data)
    for name in ("layer", "sign"):
        data = files(f"u,v,{name}\n0,1,0\n1,2,-1\n")
        assert data.graph.num_edges == 2
        assert f"column '{name}' ignored" in notes(data)
    # The column is found by its name.
    data = files("source,target,type,weight\n0,1,x,0\n1,2,y,3\n")
    assert pairs(data) == {frozenset("12")}


# ---------------------------------------------------------------------------------------------
# Features


PATH = "0,1\n1,2\n2,3\n"
ROWS = np.array([[1.5, 0], [0, 2.5], [0.5, 0.5], [0, 0]], dtype=np.float32)


def as_csv(rows, *, ids=None, separator=","):
    cells = rows.tolist() if ids is None else [[i, *r] for i, r in zip(ids, rows, strict=True)]
    return "".join(separator.join(map(str, row)) + "\n" for row in cells)


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
    ids = ["007", "a b", "7", "NA"]
    data = files("7\t007\na b\t7\n", as_csv(ROWS, ids=ids, separator="\t"))
    assert data.node_ids == ("007", "7", "NA", "a b")
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
    assert "1 weights other than 1 ignored" in notes(data)
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


# ---------------------------------------------------------------------------------------------
# Labels


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


@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")
def test_damaged_bytes_give_one_line(files, tmp_path):
    contents = {
        "edges.csv": "src,dst,weight\n" + "".join(f"{i},{(i * 7) % 30},1.5\n" for i in range(30)),
        "edges.npz": sp.random(30, 30, 0.1, random_state=0, format="csr"),
        "features.csv": as_csv(np.eye(30)[:, :5] + 0.5, ids=range(30)),
        "features.npy": np.eye(30),
        "labels.txt": "\n".join(f"{i} c{i % 3}" for i in range(30)),
        "labels.npy": np.arange(30) % 3,
    }
    whole = {name: files.save(name, content).read_bytes() for name, content in contents.items()}
    rng = np.random.default_rng(0)
    odd = list(b'0,;\t\n "#%.-+e\x00\xff')
    refused = 0
    for turn in range(600):
        name = list(whole)[turn % len(whole)]
        broken = bytearray(whole[name])
        for _ in range(rng.integers(1, 4)):
            place = rng.integers(len(broken))
            broken[place : place + rng.integers(2)] = bytes([rng.choice(odd)])
        path = files.save("broken." + name.split(".")[1], bytes(broken))
        chosen = {
            "edges": tmp_path / "edges.csv",
            "features": tmp_path / "features.csv",
            "labels": tmp_path / "labels.txt",
            name.split(".")[0]: path,
        }
        try:
            load_edge_list(**chosen)
        except InputError as error:
            refused += 1
            message = str(error)
            assert "\n" not in message
    assert 300 < refused < 600


@pytest.mark.parametrize(
    ("edges", "labels", "nodes", "num_edges", "isolated"),
    [
        ("snap/ca-AstroPh.txt.gz", None, 18772, 198050, 1),
        ("snap/email-Enron.txt.gz", None, 36692, 183831, 0),
        (
            "snap/email-Eu-core.txt.gz",
            "snap/email-Eu-core-department-labels.txt",
            1005,
            16064,
            19,
        ),
        ("snap/com-dblp.csv.gz", None, 317080, 1049866, 0),
        ("linqs_cora/cora.cites", None, 2708, 5278, 0),
        ("lfr/LFR_N100000_ad5_mc50_mu0.1.csv.gz", None, 100000, 211185, 57),
        ("musae/facebook/facebook_edges.csv", None, 22470, 170823, 0),
        (
            "musae/lastfm_asia/lastfm_asia_edges.csv",
            "musae/lastfm_asia/lastfm_asia_target.csv",
            7624,
            27806,
            0,
        ),
        ("livejournal_sub/network_v1_subgraph_speed_up.dat.gz", None, 84438, 1521988, 0),
    ],
)
def test_published_edge_lists(edges, labels, nodes, num_edges, isolated, data_root):
    if not (data_root / edges).exists():
        pytest.skip(f"{edges} is missing")
    data = load_edge_list(data_root / edges, None, labels and data_root / labels)
    assert (data.num_nodes, data.graph.num_edges) == (nodes, num_edges)
    assert int((data.graph.degree == 0).sum()) == isolated
    if labels:
        assert data.labels.max() + 1 == (42 if nodes == 1005 else 18)
    ids = [int(i) for i in data.node_ids or range(nodes)]
    assert ids == sorted(ids)


def test_many_lines_are_read_in_bulk(files, monkeypatch):
    # Only the sample of first rows may be split in Python.
    from user_dgl.data.reading import text

    count = 0
    split = text._split

    def counted(line, separator):
        nonlocal count
        count += 1
        return split(line, separator)

    monkeypatch.setattr(text, "_split", counted)
    ends = np.random.default_rng(0).integers(0, 20_000, (200_000, 2))
    for name in ("%d,%d", "n%d,n%d"):
        count = 0
        content = "\n".join(name % (u, v) for u, v in ends.tolist())
        data = files(content)
        assert data.graph.num_edges > 199_000
        assert count < 1000


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
