"""Edge lists, one trap at a time."""

import gzip
import re
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from edge_lists import PATH, ROWS, as_csv, by_id
from graph_files import notes, pairs

from user_dgl.data import load_edge_list
from user_dgl.errors import InputError

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
        ("1.5.0,1\n1,2.0\n", ["1", "1.5.0", "2.0"]),
        ("1e3,x\nx,1000\n", ["1000", "1e3", "x"]),
        ("Na,nana\nnana,Nil\n", ["Na", "Nil", "nana"]),
        ("True,False\nFalse,Nobody\n", ["False", "Nobody", "True"]),
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
    path = files.save("e.csv", "who,whom\n" + ring)
    with pytest.raises(
        InputError,
        match=r"e\.csv:1: the first row may be a header or an edge, as neither 'who' nor 'whom' "
        "occurs again: set data.header=true or data.header=false",
    ):
        load_edge_list(path)
    assert load_edge_list(path, header=False).num_nodes == 5
    data = load_edge_list(path, header=True)
    assert data.node_ids == ("ann", "bob", "cy")
    assert "header (who, whom)" in notes(data)
    # One of many pairs whose ids do not occur again is no surprise.
    data = files("".join(f"a{i},b{i}\n" for i in range(9)))
    assert data.graph.num_edges == 9
    assert "'a0' nor 'b0' occurs again: set data.header=true" in notes(data)
    assert "occurs again" not in notes(files("0,9\n" + ring))
    assert "occurs again" not in notes(files(ring))
    path = files.save("e.csv", "from,to\n" + ring)
    assert load_edge_list(path, header=False).num_nodes == 5
    for first in (
        "from_city,to_city",
        "Sender,Receiver",
        "follower;followee",
        "source_x\ttarget_x",
        "person_a,person_b",
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
    assert "not a table of edges, so data.header has no effect" in notes(
        load_edge_list(path, header=True)
    )


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
        files(floats + "3.0,x\n", "id,x,y\n" + as_csv(ROWS, ids=range(4)))
    with pytest.raises(InputError, match=r"such as '0\.0' in .*with a decimal point: write 0\)"):
        files(floats + "3.0,x\n", as_csv(ROWS))
    with pytest.raises(InputError, match=r"labels:2: node 0\.0 is not in .*: write 0\)"):
        files(PATH, None, "id,label\n0.0,a\nx,b\n")
    # If all ids are whole numbers, the point says nothing.
    for features in ("id,x,y\n" + as_csv(ROWS, ids=range(4)), as_csv(ROWS)):
        data = files(floats, features, "id,label\n3.0,b\n0.0,a\n1.0,b\n2,a\n")
        assert data.node_ids is None
        assert data.feat.toarray().tolist() == ROWS.tolist()
        assert data.labels.tolist() == [0, 1, 0, 1]
        assert "4 ids are read in another spelling, such as '0.0' as '0'" in notes(data)


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


def test_weights(files):
    data = files("u,v,weight\n0,1,2\n1,2,1e-05\n2,3,0\n3,0,0.0\n0,4,1\n")
    assert data.graph.num_edges == 3
    assert data.num_nodes == 5
    assert "2 rows of weight 0 dropped" in notes(data)
    assert "weights are in column 'weight'" in notes(data)
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


def test_many_lines_are_read_in_bulk(files, monkeypatch):
    # Only the sample of first rows may be split in Python.
    from user_dgl.data.reading import separators, text

    count = 0
    split = separators.split

    def counted(line, separator):
        nonlocal count
        count += 1
        return split(line, separator)

    monkeypatch.setattr(text, "split", counted)
    monkeypatch.setattr(separators, "split", counted)
    ends = np.random.default_rng(0).integers(0, 20_000, (200_000, 2))
    for name in ("%d,%d", "n%d,n%d"):
        count = 0
        content = "\n".join(name % (u, v) for u, v in ends.tolist())
        data = files(content)
        assert data.graph.num_edges > 199_000
        assert count < 1000
