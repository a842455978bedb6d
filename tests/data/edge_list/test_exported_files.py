"""Files as spreadsheets, data frames and other tools write them: read right, or refused."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from edge_lists import by_id
from graph_files import notes

from user_dgl.data import load_edge_list
from user_dgl.errors import InputError

RING = "0,1\n1,2\n2,3\n3,4\n4,0\n"
TRIANGLE = "1,2\n2,3\n3,1\n"


@pytest.fixture
def load(tmp_path):
    """Loads a graph from the text or the bytes of its files."""

    def read(edges, features=None, labels=None, suffix=".csv", **options):
        paths = []
        for name, content in (("e", edges), ("f", features), ("l", labels)):
            path = tmp_path / (name + (suffix if name == "e" else ".csv"))
            if isinstance(content, str):
                content = content.encode()
            if content is not None:
                path.write_bytes(content)
            paths.append(None if content is None else path)
        return load_edge_list(*paths, **options)

    return read


def edges_of(data):
    """The edges with their weights, by the ids of their ends."""
    ids = data.node_ids or tuple(map(str, range(data.num_nodes)))
    weight = data.graph.data_weight
    weights = [1.0] * data.graph.num_edges if weight is None else weight.tolist()
    ends = zip(data.graph.src.tolist(), data.graph.dst.tolist(), weights, strict=True)
    return {(ids[u], ids[v]): pytest.approx(w) for u, v, w in ends}


# -------------------------------------------------------------------------------------------------
# Edges


@pytest.mark.parametrize(
    "text",
    [
        "employee,manager,valid_from,valid_to\nann,bob,2020-01-01,2021-01-01\n"
        "bob,cy,2020-03-01,2021-05-01\ncy,ann,2020-01-01,2021-05-01\n",
        "person,contact,age_from,age_to\nann,bob,20,30\nbob,cy,30,40\ncy,ann,40,20\n",
        "valid_from,valid_to,name,team\n2020-01-01,2021-01-01,ann,7\n2020-03-01,2021-05-01,bob,7\n",
        "1,2,valid_from,valid_to\n17,4,2020-01-01,2021-01-01\n4,3,2020-03-01,2021-05-01\n",
    ],
)
def test_words_beside_from_and_to_are_not_taken_for_the_ends(load, text):
    with pytest.raises(InputError, match=r"may hold the ends of the edges: set data\.columns="):
        load(text)


@pytest.mark.parametrize(
    "text",
    [
        "from_station,to_station,line,minutes\na,b,red,3\nb,c,red,4\nc,a,blue,5\n",
        "from_user,to_user,message,lang\na,b,hello you,en\nb,c,bonjour,fr\nc,a,hi,en\n",
        "source airport,destination airport,airline,plane\na,b,LH,320\nb,c,LH,CR2\nc,a,AF,73\n",
    ],
)
def test_words_beside_from_and_to_are_ends_where_nothing_else_is(load, text):
    assert set(edges_of(load(text))) == {("a", "b"), ("b", "c"), ("a", "c")}


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.uint64])
def test_ids_of_small_types_do_not_overflow(tmp_path, kind):
    low = -100 if np.issubdtype(kind, np.signedinteger) else 0
    pairs = np.array([[i, i + 1] for i in range(low, 120)], dtype=kind)
    np.save(tmp_path / "e.npy", pairs)
    data = load_edge_list(tmp_path / "e.npy")
    assert (data.num_nodes, data.graph.num_edges) == (121 - low, 120 - low)


def test_marks_inside_joined_files(load):
    mark = "\ufeff"
    data = load(f"{mark}source,target\na,b\nb,c\n{mark}source,target\r\nc,a\n{mark}a,d\n")
    assert set(edges_of(data)) == {("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}
    assert load("a\u200b,b\nb,c\nc,a\n").num_nodes == 3


def test_lists_of_neighbours_are_no_decimal_commas(load):
    with pytest.raises(InputError, match="several ids in a cell"):
        load("source;target\n1;2,3\n2;1,3\n3;1,2\n4;5,6\n")
    assert set(edges_of(load("1,0;2,0\n2,0;3,0\n3,0;1,0\n"))) == {
        ("1", "2"),
        ("2", "3"),
        ("1", "3"),
    }


def test_the_plainest_name_is_the_weight(load):
    data = load("source,target,value,weight\na,b,100,0.5\nb,c,7,0.7\nc,a,1,0.9\n")
    assert edges_of(data) == {("a", "b"): 0.5, ("b", "c"): 0.7, ("a", "c"): 0.9}
    data = load("source,target,source_weight,target_weight\na,b,1,2\nb,c,7,3\nc,a,1,4\n")
    assert data.graph.data_weight is None
    with pytest.raises(InputError, match=r"value and strength may hold the weights"):
        load("source,target,value,strength\na,b,100,0.5\nb,c,7,0.7\nc,a,1,0.9\n")


def test_times_that_are_not_whole_are_no_weights(load):
    rows = [(i % 7, (i * 3 + 1) % 7) for i in range(12)]
    late = "".join(f"{u} {v} {1082040961.25 + 7.5 * i}\n" for i, (u, v) in enumerate(rows))
    assert load(late).graph.data_weight is None
    amounts = "".join(f"{u} {v} {1e10 + 1.5 * (7 * i % 12)}\n" for i, (u, v) in enumerate(rows))
    assert load(amounts).graph.data_weight is not None
    rising = "".join(f"{u} {v} {36.5 * i}\n" for i, (u, v) in enumerate(rows))
    with pytest.raises(InputError, match="rises from row to row"):
        load(rising)
    assert load("source target weight\n" + rising).graph.data_weight is not None


def test_a_first_row_of_numbers_that_is_left_out_may_be_an_edge_below(load):
    text = "9,5\n1,2\n2,3\n3,4\n4,9\n9,5\n"
    assert ("5", "9") in edges_of(load(text, header=True))
    matrix = "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 2 1\n2 3 1\n3 3 3\n"
    assert load(matrix, suffix=".mtx").graph.num_edges == 2


def test_separators_at_the_ends_of_the_rows(load):
    data = load("0,1,0,1,\n1,0,1,0,\n0,1,0,1,\n1,0,1,0,\n")
    assert (data.num_nodes, data.graph.num_edges) == (4, 4)
    data = load(RING, "0,0.5,\n1,1.5,\n2,2.5,\n3,0.1,\n4,0.2,\n", "0,a,\n1,b,\n2,a,\n3,b,\n4,a,\n")
    assert data.feat.shape == (5, 1)
    assert data.labels.tolist() == [0, 1, 0, 1, 0]


def test_the_line_that_tells_a_spreadsheet_the_separator(load):
    data = load("sep=;\nSource;Target;Weight\n1;2;0,5\n2;3;1,5\n3;1;2\n")
    assert edges_of(data) == {("1", "2"): 0.5, ("2", "3"): 1.5, ("1", "3"): 2.0}
    with pytest.raises(InputError, match=r":4: "):
        load("sep=,\nSource,Target,Weight\n1,2,0.5\n2,3,x\n3,1,2\n")


def test_decimal_commas_in_quotation_marks(load):
    data = load('"source";"target";"weight"\n"0";"1";"0,5"\n"1";"2";"0,25"\n')
    assert edges_of(data) == {("0", "1"): 0.5, ("1", "2"): 0.25}


def test_labels_that_are_all_missing_stay_missing(load):
    assert load(RING, labels="0,\n1,\n2,\n3,\n4,\n").labels.tolist() == [-1] * 5


def test_a_line_for_a_spreadsheet_above_labels(load):
    assert load(RING, labels="SEP=,\n0\n1\n0\n1\n1\n").labels.tolist() == [0, 1, 0, 1, 1]


def test_quotation_marks_around_commas_that_are_no_numbers(load):
    labels = '0;"1"\n1;"1,0"\n2;"1"\n3;"1,0"\n4;"1"\n'
    assert load(RING, labels=labels).labels.tolist() == [0, 1, 0, 1, 0]
    edges = 'source;target;weight\n"1,2";"1,20";"0,5"\n"1,20";"1,3";"0,7"\n"1,3";"1,2";"0,2"\n'
    assert set(load(edges, columns=["source", "target"]).node_ids) == {"1,2", "1,20", "1,3"}


def test_a_point_in_a_comment_is_no_decimal_point(load):
    data = load(RING, "# version;1.0\nid;f1;f2\n" + "".join(f"{i};0,{i};1,5\n" for i in range(5)))
    assert data.feat.toarray()[3].tolist() == pytest.approx([0.3, 1.5])


def test_a_row_of_missing_values_at_the_end(load):
    data = load(RING, "0.5,1\n1,2\n2,3\n3,4\n,\n", missing="mean")
    assert data.feat.toarray()[4].tolist() == pytest.approx([1.625, 2.5])


def test_empty_rows_of_spreadsheets_at_the_end(load):
    data = load(
        TRIANGLE + ",\n,\n", "id,a\n1,0.5\n2,0.7\n3,1\n,\n,\n", "id,label\n1,a\n2,b\n3,a\n,\n"
    )
    assert data.num_nodes == 3
    assert data.labels.tolist() == [0, 1, 0]
    assert "2 empty rows at the end left out" in notes(data)


def test_graphml_and_gexf_with_edges_of_both_kinds(load):
    graphml = (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
        '<node id="a"/><node id="b"/><node id="c"/><edge source="a" target="b" directed="true"/>'
        '<edge id="e" directed="false" source="b" target="c"/></graph></graphml>'
    )
    assert set(edges_of(load(graphml, suffix=".graphml"))) == {("a", "b"), ("b", "c")}
    gexf = (
        '<gexf xmlns="http://gexf.net/1.2draft" version="1.2"><graph defaultedgetype="directed">'
        '<nodes><node id="a" label="a"/><node id="b" label="b"/><node id="c" label="c"/></nodes>'
        '<edges><edge id="0" source="a" target="b" type="undirected"/>'
        '<edge id="1" source="b" target="c"/></edges></graph></gexf>'
    )
    assert set(edges_of(load(gexf, suffix=".gexf"))) == {("a", "b"), ("b", "c")}


def test_matrix_market_of_unsigned_numbers(tmp_path):
    matrix = sp.coo_matrix(([1, 1], ([0, 1], [1, 2])), shape=(3, 3), dtype=np.uint64)
    scipy.io.mmwrite(tmp_path / "u.mtx", matrix)
    assert load_edge_list(tmp_path / "u.mtx").graph.num_edges == 2


def test_halves_of_characters(load):
    head = "graph [\n  node [ id 0 label "
    tail = ' ]\n  node [ id 1 label "b" ]\n  edge [ source 0 target 1 ]\n]\n'
    data = load(f'{head}"&#55357;&#56832;"{tail}', suffix=".gml")
    assert "\U0001f600" in data.node_ids
    with pytest.raises(InputError, match="half a character"):
        load(f'{head}"&#55357;"{tail}', suffix=".gml")


# -------------------------------------------------------------------------------------------------
# Features


def test_the_first_column_may_be_text_beside_the_ids(load):
    text = "gender,id,age\nf,1,5\nm,2,6\nf,3,7\n"
    with pytest.raises(InputError, match="column 'gender' has text"):
        load(TRIANGLE, text)
    data = load(TRIANGLE, text, categorical="one_hot")
    assert by_id(data) == {"1": [5, 1, 0], "2": [6, 0, 1], "3": [7, 1, 0]}
    data = load(TRIANGLE, "paid,id,age\nTrue,1,5\nFalse,2,6\nTrue,3,7\n")
    assert by_id(data) == {"1": [1, 5], "2": [0, 6], "3": [1, 7]}
    with pytest.raises(InputError, match=r":3: column 'income': '1_000' is not a number"):
        load(TRIANGLE, "income,id,age\n900,1,5\n1_000,2,6\n800,3,7\n")


@pytest.mark.parametrize("head", ["# id f1 f2 class\n", "#id f1 f2 class\n"])
def test_a_commented_header_names_the_columns(load, head):
    features = head + "1 0.5 2 0\n2 0.7 1 1\n3 0.1 5 0\n"
    data = load(TRIANGLE, features)
    assert by_id(data) == {
        "1": pytest.approx([0.5, 2]),
        "2": pytest.approx([0.7, 1]),
        "3": pytest.approx([0.1, 5]),
    }
    assert "column 'class' left out of the features" in notes(data)
    data = load(TRIANGLE, features, "# label,id\n0,1\n1,2\n0,3\n")
    assert data.labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "head",
    ["# label file\n", "# community assignments\n", "# node features\n", "# one class\n"],
)
def test_a_sentence_above_the_rows_is_no_header(load, head):
    labels = "".join(f"{i} {i * i % 5}\n" for i in (1, 2, 3, 4, 0))
    expected = load(RING, labels=labels).labels.tolist()
    assert load(RING, labels=head + labels).labels.tolist() == expected
    features = "".join(f"{i / 7} {i * i % 5}\n" for i in range(5))
    assert load(RING, head + features).feat.shape == (5, 2)


def test_numbered_columns_of_features_are_no_labels(load):
    text = "id,class_1,class_2,age\n1,0,1,3\n2,1,0,4\n3,1,1,5\n"
    assert load(TRIANGLE, text).feat.shape == (3, 3)


def test_of_several_columns_of_labels_the_plainest(load):
    data = load(TRIANGLE, labels="node,label_encoded,label\n1,0,a\n2,1,a\n3,2,b\n")
    assert data.labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "name",
    [
        *("groundtruth", "label_encoded", "label_num", "category_id", "category_code", "Label.1"),
        *("label_0", "labels_1", "label_x", "y_pred", "cls", "community_0", "cluster2"),
        *("membership_id", "partition_1"),
    ],
)
def test_columns_of_labels_are_known_by_their_names(load, name):
    data = load(TRIANGLE, f"node,age,{name}\n1,20,0\n2,30,1\n3,40,0\n")
    assert data.feat.shape == (3, 1)
    assert f"column {name!r} left out of the features" in notes(data)


def test_the_column_that_is_the_label_in_another_file_is_no_feature(load):
    data = load(TRIANGLE, "id,f,dept\n1,0.5,7\n2,0.7,8\n3,0.1,7\n", "id,dept\n1,7\n2,8\n3,7\n")
    assert data.feat.shape == (3, 1)
    assert "column 'dept' left out of the features" in notes(data)


@pytest.mark.parametrize("name", ["0", "V2", "x", "value", ""])
def test_names_that_programs_give_are_no_names_of_labels(load, name):
    features = f"id,f,{name}\n1,0.5,7.5\n2,0.7,8.5\n3,0.1,7.5\n"
    assert load(TRIANGLE, features, f"id,{name}\n1,7\n2,8\n3,7\n").feat.shape == (3, 2)


def test_a_column_without_a_name_is_a_feature_unless_it_counts(load):
    data = load(TRIANGLE, "id,age,,income\n1,20,0.5,100\n2,30,0.7,200\n3,40,0.1,300\n")
    assert by_id(data)["1"] == pytest.approx([20, 0.5, 100])
    data = load(TRIANGLE, "id,age,,income\n1,20,1,100\n2,30,2,200\n3,40,3,300\n")
    assert by_id(data)["1"] == pytest.approx([20, 100])
    for head, rows in (
        ("Unnamed: 0,node,a", ("0,1,5", "1,2,6", "0,3,7")),
        ('"","node","a"', ('"r0",1,5', '"r1",2,6', '"r2",3,7')),
    ):
        assert by_id(load(TRIANGLE, "\n".join((head, *rows)) + "\n"))["1"] == [5]


def test_an_empty_column_is_left_out(load):
    data = load(TRIANGLE, "Id,timeset,age\n1,,20\n2,,30\n3,,40\n")
    assert by_id(data) == {"1": [20], "2": [30], "3": [40]}
    assert "column 'timeset' left out: it is empty" in notes(data)


def test_long_ids_in_a_later_column(load):
    edges = "100000001,100000003\n100000003,100000005\n100000005,100000001\n"
    data = load(edges, ",age,customerid\n0,1.5,100000001\n1,2.5,100000003\n2,3.5,100000005\n")
    assert by_id(data) == {"100000001": [1.5], "100000003": [2.5], "100000005": [3.5]}


@pytest.mark.parametrize("mark", ["#N/A", "NULL", "None", "<NA>", "\\N", "n/a"])
def test_missing_values_as_programs_write_them(load, mark):
    text = f"age,inc\n1.5,3\n2,{mark}\n3,5\n4,6\n6,7\n"
    data = load(RING, text, missing="mean")
    assert data.feat.toarray()[1].tolist() == [2, 5.25]
    with pytest.raises(InputError, match="NaN, empty or infinite"):
        load(RING, text)


# -------------------------------------------------------------------------------------------------
# Labels


def test_an_unknown_header_above_labels_is_no_label(load):
    labels = "dept\nsales\nit\nsales\nit\nhr\n"
    with pytest.raises(InputError, match=r"l\.csv:1: one label more than nodes, and 'dept'"):
        load(RING, labels=labels)
    assert load(RING, labels=labels.removeprefix("dept\n")).labels.tolist() == [2, 1, 2, 1, 0]


def test_none_may_be_a_category(load):
    text = "id,a,c\n1,1,None\n2,2,None\n3,3,A\n"
    assert load(TRIANGLE, text, categorical="one_hot").feat.shape == (3, 3)


def test_ids_with_a_mark_in_front(load):
    edges = "#a,#b\n#b,#c\n#c,#a\n"
    labels = "# by hand, twice\nid,label\n#a,1\n#b,2\n#c,1\n"
    data = load(edges, "id,f\n#a,1\n#b,2\n#c,3\n", labels, comment=False)
    assert by_id(data) == {"#a": [1], "#b": [2], "#c": [3]}
    assert data.labels.tolist() == [0, 1, 0]


def test_labels_of_one_column(tmp_path, load):
    np.save(tmp_path / "l.npy", np.array([[0], [1], [0], [1], [1]]))
    (tmp_path / "e.csv").write_text(RING)
    data = load_edge_list(tmp_path / "e.csv", labels=tmp_path / "l.npy")
    assert data.labels.tolist() == [0, 1, 0, 1, 1]
    np.savez(tmp_path / "g.npz", edge_index=[[0, 1, 2], [1, 2, 0]], y=np.array([[0], [1], [1]]))
    assert load_edge_list(tmp_path / "g.npz").labels.tolist() == [0, 1, 1]
    np.save(tmp_path / "l.npy", np.array([b"a", b"b", b"a", b"b", b"b"]))
    data = load_edge_list(tmp_path / "e.csv", labels=tmp_path / "l.npy")
    assert data.labels.tolist() == [0, 1, 0, 1, 1]
