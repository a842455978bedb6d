"""One layout of a text of edges, stated, or none: each kind of file with its siblings.

The graph is the same in all files: 12 nodes and 20 edges. A file is read as this graph, or refused
with a message that says which option picks which reading.
"""

import io
import json
import random
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from graph_files import notes, pairs

from user_dgl.data import load_edge_list
from user_dgl.errors import InputError

GRAPH = nx.gnm_random_graph(12, 20, seed=5)
EDGES = sorted(GRAPH.edges)
IDS = {"whole": lambda i: str(i), "text": lambda i: f"org{i:02d}"}


def rows(form, ids=str, edges=EDGES):
    """A line for each edge. ``k`` is its number, ``r`` a relation, ``w`` a weight, ``t`` a time."""
    rng = random.Random(0)
    return "".join(
        form.format(
            u=ids(u), v=ids(v), k=k, k1=k + 1, r="knows" if rng.random() < 0.5 else "likes",
            w=round(rng.random(), 3), t=1082040961 + 40 * k, day=k // 3, n=rng.randint(1, 3),
        )
        + "\n"
        for k, (u, v) in enumerate(edges)
    )  # fmt: skip


def wanted(ids=str):
    return {frozenset((ids(u), ids(v))) for u, v in EDGES}


@pytest.fixture
def read(tmp_path):
    def load(text, name="edges.txt", **options):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_edge_list(tmp_path / name, **options)

    return load


def refuses(read, text, message, **options):
    with pytest.raises(InputError, match=message) as caught:
        read(text, **options)
    assert "\n" not in str(caught.value)


def outcome(read, text):
    """The graph and nothing, or nothing and the message of the refusal."""
    try:
        return read(text), ""
    except InputError as error:
        return None, str(error)


# Names of columns.


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize(
    "header",
    [
        "Source,Destination", "Origin,Destination", "nodeA,nodeB", "node1,node2", "Node 1,Node 2",
        "subject,object", "head,tail", "protein1,protein2", ":START_ID,:END_ID", "GeneA,GeneB",
        ":START_ID(Person),:END_ID(Person)", "gene_1,gene_2", "sourceId,targetId", "V1,V2", 
        "citing,cited", "user_id_1,user_id_2", "person_a,person_b", "ego,alter", "Source,Other",
        "ID(s) interactor A,ID(s) interactor B", "source.id,target.id", "SRC_ID,DST_ID",
    ],
)  # fmt: skip
def test_names_of_the_ends(header, ids, read):
    first, second = header.split(",")
    quoted = header.replace(",", '" "')
    for text in (
        header + "\n" + rows("{u},{v}", ids),
        header.replace(",", "\t") + "\tweight\n" + rows("{u}\t{v}\t{w}", ids),
        # Row names of R and of pandas, with and without a name.
        f'"{quoted}"\n' + rows('"{k1}" "{u}" "{v}"', ids),
        f'"{quoted}" "weight"\n' + rows('"{k1}" "{u}" "{v}" {w}', ids),
        f",{header}\n" + rows("{k},{u},{v}", ids),
        f"Unnamed: 0,{header}\n" + rows("{k},{u},{v}", ids),
        # Joined files.
        f"{header}\n"
        + f"\n{header}\n".join(rows("{u},{v}", ids, e) for e in (EDGES[:3], EDGES[3:])),
    ):
        data = read(text)
        assert pairs(data) == wanted(ids)
        assert "first row taken as header" in notes(data)
    if second == "Other":
        return
    for text in (
        f"id,{header},type\n" + rows("{k},{u},{v},x", ids),
        f"time,{first},relation,{second}\n" + rows("{t},{u},{r},{v}", ids),
        f"#id,{header}\n" + rows("{k},{u},{v}", ids),
        f"{first},{first}_label,{second},{second}_label\n" + rows("{u},Site {u},{v},Site {v}", ids),
    ):
        assert pairs(read(text)) == wanted(ids)


def test_two_columns_of_one_end(read):
    mail = rows("N {u},{u}@x,N {v},{v}@x", IDS["text"])
    for header, message in (
        ("from_name,from_email,to_name,to_email", r"\[from_name, to_name\] or \[from_email, to_"),
        ("u,v,source,target", r"\[u, v\] or \[source, target\]"),
        ("source,target,source,target", "may hold the ends"),
        ("start,x,end,y", "may hold the ends"),
        ("a,weight2,friend_of,b", "may hold the ends"),
    ):
        refuses(read, header + "\n" + mail, message)
    data = read("from_name,from_email,to_name,to_email\n" + mail, columns=("from_name", "to_name"))
    assert data.graph.num_edges == 20
    assert pairs(read("i,source,target\n" + rows("{k},{u},{v}"))) == wanted()
    assert pairs(read("from_id,from_name,to_id,to_name\n" + rows("{u},a,{v},b"))) == wanted()


def test_a_table_of_nodes_is_no_edge_list(read):
    for header in ("node,label", "Id,Label", "node,cluster", "name,club", "id,community"):
        text = header + "\n" + "".join(f"{i},{i % 3}\n" for i in range(12))
        refuses(read, text, "a table of nodes and no edges: give it as --features or --labels")
    refuses(
        read, "node,f0,f1\n" + "".join(f"{i},0.5,{i}.5\n" for i in range(12)), "which of the col"
    )
    refuses(read, "".join(f"{i},0.5{i}\n" for i in range(12)), "column 2 holds real numbers")
    refuses(read, "x,y\n" + "".join(f"0.{i},0.5{i}\n" for i in range(12)), "real numbers")


def test_a_first_row_that_may_be_a_header(read):
    text = "who,whom\n" + rows("{u},{v}", IDS["text"])
    refuses(read, text, ":1: the first row may be a header or an edge.* set data.header=true or")
    assert pairs(read(text, header=True)) == wanted(IDS["text"])
    assert read(text, header=False).num_nodes == 14
    # Ids that are words for ends, or look like numbered columns.
    words = ["from", "to", "source", "target", "node", "the", "of", "a", "in", "by", "at", "on"]
    text = "".join(f"{words[u]} {words[v]}\n" for u, v in [(0, 1), *EDGES])
    assert read(text).graph.num_edges == len({(0, 1), *EDGES})
    # Far below the first rows, the words turn out to be ids.
    text = "from to\n" + rows("x{k}y x{k1}y", edges=[(0, 1)] * 30) + "x9y to\n"
    refuses(read, text, r"row \(from, to\) may be a header or an edge, as 'to' is an id below: set")
    data = read("gene1,gene2\n" + rows("gene{k},gene{k1}"))
    assert data.graph.num_edges == 20
    assert "header" not in notes(data)


# Columns without names.


@pytest.mark.parametrize("separator", [",", "\t", ";", " ", "|"])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_columns_without_names(ids, separator, read):
    order = random.Random(1).sample(EDGES, len(EDGES))
    for form in (
        "{u},{v}", "{u},{v},{w}", "{u},{v},{n}", "{u},{v},{t}", "{u},{v},{k}", "{u},{v},{day}",
        "{u},{v},{r}", "{u},{v},1", "{u},{v},0", "{u},{v},2020-01-01", "{u},{v},{n},{t}",
        "{w},{u},{v}", "{t},{u},{v}", "{u},{w},{v}", "{u},->,{v}", "2020-01-01,{u},{v}",
        "{k},{u},{v}", "{k1},{u},{v}", "{n},{u},{v}", "{day},{u},{v}", "{u},pp,{v}", "{u},{r},{v}",
        "e,{u},{v}", "{u},{u},{v}", "{k},{u},{v},{w}", "{u},{n},{v}",
    ):  # fmt: skip
        for edges in (EDGES, order):
            text = rows(form.replace(",", separator), ids, edges)
            found, message = outcome(read, text)
            if found is not None:
                assert pairs(found) == wanted(ids), form
                continue
            # Only what really may be read in two ways, and the message says how to choose.
            assert not form.startswith("{u},{v}") or "data.columns=[1, 2]" in message
            assert re.search(r"set data\.columns=|write a first row", message.lower())


def test_triples_and_arrows(read):
    for form in ("{u} knows {v}", "{u}\tpp\t{v}", "{u} -> {v}", "<x/{u}> <x/p> <x/{v}> ."):
        data = read(rows(form, IDS["text"]))
        assert data.graph.num_edges == 20
        assert data.num_nodes == 12
        assert "column 1 and column 3 taken as the ends of the edges" in notes(data)
    refuses(read, rows("{u} {n} {v}"), "columns 1 and 3.* may hold the ends of the edges")
    assert pairs(read(rows("{u} {n} {v}"), columns=(1, 3))) == wanted()
    assert pairs(read(rows("{u} {n} {v}"), columns=("1", "3"))) == wanted()
    refuses(read, rows("{u} {n} {v}"), "names 1 and 4, the columns are 1 to 3", columns=(1, 4))
    refuses(read, rows("{k} {u} {v}"), "column 1 counts the rows: .* data.columns=")
    text = '<x/1> <x/name> "Ann" .\n' + rows("<x/{u}> <x/p> <x/{v}> .")
    refuses(read, text, "N-Triples, of which some have a text in place of a node")


def test_a_third_column_that_counts_is_no_weight(read):
    for form, said in (
        ("{u} {v} {k}", "column 3 counts from row to row, so it is a time or an id and no weight"),
        ("{u} {v} {day}", "column 3 counts from row to row"),
        ("{u} {v} 0", "column 3 is 0 in every row, so it is a type and no weight"),
    ):
        data = read(rows(form))
        assert pairs(data) == wanted()
        assert said in notes(data)
    text = "4 1 5\n1 2 0\n2 3 1\n3 4 5\n"
    refuses(read, text, ":2: 0 in column 3: a weight .* or a time or type.* data.columns=")
    assert read(text, columns=(1, 2)).graph.num_edges == 4
    assert read("u v weight\n" + text).graph.num_edges == 3
    assert read("0 1 0.5\n1 2 0.0\n2 3 1.0\n").graph.num_edges == 2


# Ids.


def test_rows_without_an_id_are_dropped_or_refused(read):
    for missing in ("NA", "nan", "None", "NULL", "", "NaN", "<NA>"):
        for ids in IDS.values():
            text = "from,to\n" + rows("{u},{v}", ids) + f"{ids(0)},{missing}\n"
            data = read(text)
            assert pairs(data) == wanted(ids)
            assert "1 rows without an id (NA, empty) dropped" in notes(data)
    text += "".join(f"NA,org{i:02d}\n" for i in range(12))
    refuses(read, text, ":22: an id is missing: .*; 13 of 33 rows lack an id")
    # The weight of a row goes with it.
    data = read("from,to,weight\n0,1,0\nNA,1,5\n1,2,1\n2,0,1\n3,0,1\n0,4,0\n1,4,1\n")
    assert data.graph.num_edges == 4


def test_one_id_in_several_spellings(read):
    data = read(rows("{u},{v}.0"))
    assert pairs(data) == wanted()
    assert "ids are read in another spelling, such as" in notes(data)
    assert pairs(read("source,target\n" + rows("{u}.0,{v}.00"))) == wanted()
    data = read("99999,1e+05\n100000,100001\n1.5e+05,99999\n")
    assert data.node_ids == ("99999", "100000", "100001", "150000")
    refuses(read, "1.23E+11,2\n1.24E+11,1\n", "a spreadsheet cut the id 1.23E")
    data = read("cafe\u0301,bar\nbar,caf\u00e9\nbar,zoo\n")
    assert data.node_ids == ("bar", "caf\u00e9", "zoo")
    assert "1 ids are read in another spelling" in notes(data)
    # With text among the ids, nothing says that 1.0 is a number.
    assert read("1.0,x\nx,1\n1,2.0\n").num_nodes == 4


def test_single_quotes(read):
    ids = IDS["text"]
    for form in ("'{u}','{v}'", "'{u}' '{v}'", "'{u}'\t{v}"):
        assert pairs(read(rows(form, ids))) == wanted(ids)
    data = read("'source','target'\n" + rows("'{u}, Inc.','{v}, Inc.'", ids))
    assert pairs(data) == {frozenset(f"{name}, Inc." for name in pair) for pair in wanted(ids)}
    assert read("O'Brien,D'Arcy\nD'Arcy,'n Sync\nO'Brien,'n Sync\n").num_nodes == 3


def test_ids_that_start_with_a_mark(read):
    text = "source,target\nann,#a\n#a,#b\n%c,ann\n"
    refuses(read, text, ":3: the row starts with # .* set data.comment=true .* data.comment=false")
    assert read(text, comment=False).graph.num_edges == 3
    assert read(text, comment=True).graph.num_edges == 1
    assert read("#a,#b\n#b,#c\n#c,#a\n").node_ids == ("#a", "#b", "#c")
    quoted = 'source,target\n"ann","#a"\n"#a","#b"\n"%c","ann"\n'
    assert read(quoted).graph.num_edges == 3
    # Comments, whatever follows.
    for above in (
        "# Nodes: 12 Edges: 20\n# FromNodeId\tToNodeId\n", "#FromNodeId,ToNodeId\n",
        "% sym unweighted\n% 20 12 12\n", "#nodes: 12\n", "#created today\n", "%%x\n# 1,2\n",
    ):  # fmt: skip
        assert pairs(read(above + rows("{u} {v}"))) == wanted()
        assert pairs(read(above + rows("{u},{v}"))) == wanted()
    assert pairs(read(rows("{u},{v}") + "#0,11\n")) == wanted()


# Other layouts.


@pytest.mark.parametrize("data", [[], ["weight"], True])
@pytest.mark.parametrize("delimiter", [" ", ",", "\t"])
def test_edge_lists_of_networkx(data, delimiter, read):
    graph = nx.Graph()
    graph.add_edges_from(EDGES, weight=2, kind="a, b", more=[1, {"c": 2}])
    file = io.BytesIO()
    nx.write_edgelist(graph, file, delimiter=delimiter, data=data)
    found = read(file.getvalue())
    assert pairs(found) == wanted()
    assert ("attributes in braces in 20 rows ignored" in notes(found)) == (data is True)


def test_tuples_as_ids(read):
    grid = nx.grid_2d_graph(4, 3)
    for separator in (" ", "\t", ","):
        for end in ("", f"{separator}{{}}", f"{separator}{{'weight': 1, 'a': 2}}"):
            data = read("".join(f"{u}{separator}{v}{end}\n" for u, v in grid.edges))
            assert data.num_nodes == 12
            assert pairs(data) == {frozenset(map(str, pair)) for pair in grid.edges}


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
@pytest.mark.parametrize("kind", ["zero or one", "similarity", "directed"])
def test_square_tables(kind, separator, read):
    matrix = nx.to_numpy_array(GRAPH, nodelist=range(12)).astype(int)
    if kind == "similarity":
        matrix = matrix * np.round(np.add.outer(np.arange(12), np.arange(12)) / 25 + 0.1, 2)
    if kind == "directed":
        matrix = np.triu(matrix)
    ids = IDS["text"]
    names = [ids(i) for i in range(12)]
    lines = [separator.join(map(str, row)) for row in matrix.tolist()]
    top = separator.join(names)
    order = random.Random(0).sample(range(12), 12)
    plain = "\n".join(lines) + "\n"
    data = read(plain)
    assert pairs(data) == wanted()
    assert "read as an adjacency matrix of 12 nodes (data.layout=pairs:" in notes(data)
    for text in (
        f"{top}\n{plain}",
        f"name{separator}{top}\n" + "".join(f"{ids(i)}{separator}{lines[i]}\n" for i in range(12)),
        f"name{separator}{top}\n" + "".join(f"{ids(i)}{separator}{lines[i]}\n" for i in order),
        f"{top}\n" + "".join(f'"{ids(i)}"{separator}{lines[i]}\n' for i in range(12)),
        "".join(f"{ids(i)}{separator}{lines[i]}\n" for i in range(12)),
    ):
        assert pairs(read(text)) == wanted(ids)
    frame = pd.DataFrame(matrix)
    assert pairs(read(frame.to_csv())) == wanted()


def test_small_tables_may_be_rows_of_edges(read):
    assert pairs(read("0 1 0\n1 0 1\n0 1 0\n")) == {frozenset("01"), frozenset("12")}
    assert pairs(read("0,1,5\n1,2,5\n2,0,7\n")) == {frozenset(p) for p in ("01", "12", "02")}
    assert pairs(read("0,1\n1,0\n")) == {frozenset("01")}
    text = "0 1 0\n0 0 1\n1 0 0\n"
    refuses(read, text, "an adjacency matrix of 3 nodes, or rows of edges: set data.layout=matrix")
    assert read(text, layout="matrix").graph.num_edges == 3
    assert read(text, columns=(1, 2)).num_nodes == 2
    refuses(read, rows("{u} {v}"), "not a square table of numbers", layout="matrix")
    refuses(read, "0 1 -1\n1 0 1\n-1 1 0\n", "negative")


def test_adjacency_lists(read):
    graph = nx.relabel_nodes(GRAPH, IDS["text"])
    file = io.BytesIO()
    nx.write_adjlist(graph, file)
    text = file.getvalue().decode()
    assert pairs(read(text)) == wanted(IDS["text"])
    plain = "".join(line + "\n" for line in text.split("\n")[:-1] if line[0] != "#")
    refuses(read, plain, "rows of . to . cells: set data.layout=adjacency_list if each row is")
    assert pairs(read(plain, layout="adjacency_list")) == wanted(IDS["text"])
    comma = plain.replace(" ", ",")
    assert pairs(read(comma, layout="adjacency_list", separator="comma")) == wanted(IDS["text"])
    with_attributes = io.BytesIO()
    nx.write_multiline_adjlist(graph, with_attributes)
    refuses(read, with_attributes.getvalue(), "an adjacency list with attributes")


def test_options_of_other_formats_have_no_effect(read, tmp_path):
    np.save(tmp_path / "e.npy", np.array(EDGES))
    data = load_edge_list(tmp_path / "e.npy", separator="comma", comment=True)
    assert "so data.separator and data.comment have no effect" in notes(data)


def test_separator(read):
    text = rows("a {u};b {u},a {v};b {v}")
    assert read(text, separator="comma").num_nodes == 12
    assert read(text, separator="semicolon", columns=(1, 3)).num_nodes == 18
    assert read(rows("{u}|{v}")).num_nodes == 12
    assert read(rows("{u} | {v}")).num_nodes == 12
    text = rows("{u}|edge {k}|{v}", IDS["text"])
    refuses(read, text, "blanks or bars may separate the cells: set data.separator=blank or")
    assert read(text, separator="pipe").num_nodes == 12


METIS = "12 20\n" + "".join(" ".join(str(n + 1) for n in GRAPH[i]) + "\n" for i in range(12))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (METIS, r"a METIS file, or edges \(data\.layout=pairs\)"),
        ("% comment\n" + METIS, "a METIS file"),
        ("graph G {\n" + rows('"{u}" -- "{v}";') + "}", r"a DOT file \(Graphviz\): convert it"),
        ("// x\n/* y */ strict digraph {\n" + rows("{u} -> {v}") + "}", "a DOT file"),
        ("".join(f"{i} node{i}\n" for i in range(12)) + "#\n" + rows("{u} {v}"), "a TGF file"),
        ("c x\np edge 12 20\n" + rows("e {u} {v}"), r"a DIMACS file: convert it: awk '.*print \$2"),
        ("p sp 12 20\n" + rows("a {u} {v} {n}"), "a DIMACS file"),
        ("dl n=12 format=edgelist1\ndata:\n" + rows("{u} {v}"), "a UCINET DL file"),
        ("<!DOCTYPE html>\n<html>" + rows("{u},{v}"), r"a web page \(HTML\): download the file"),
        ("version https://git-lfs.github.com/spec/v1\noid x\n", "a Git LFS pointer.*git lfs pull"),
        ("nodedef>name\n0\nedgedef>node1,node2\n" + rows("{u},{v}"), "a GDF file"),
        ("*Node data\nid x\n0 1\n*Tie data\nfrom to\n" + rows("{u} {v}"), "a VNA file"),
        ("@prefix x: <http://x/> .\n" + rows("x:{u} x:p x:{v} ."), "RDF in Turtle"),
        (str(EDGES), "pairs as Python or JSON prints them"),
        (json.dumps(EDGES), "pairs as Python or JSON prints them"),
        (str(GRAPH.edges), "pairs as Python or JSON prints them"),
        ("".join(f"{list(pair)}\n" for pair in EDGES), "a pair in brackets in each line"),
        ("".join(f"{pair},\n" for pair in EDGES), "a pair in brackets in each line"),
        ("".join(json.dumps({"u": u, "v": v}) + "\n" for u, v in EDGES), "JSON with a record in"),
        (json.dumps([{"u": u, "v": v} for u, v in EDGES]), "a JSON list of records"),
        (json.dumps(nx.to_dict_of_lists(GRAPH)), "JSON or a Python dictionary"),
        (b"PK\x03\x04" + b"\0" * 30, "a zip archive or an Excel workbook"),
        (b"PAR1" + b"\0" * 30, "a Parquet or Arrow file"),
    ],
)  # fmt: skip
def test_formats_without_a_reader_are_refused_by_name(text, message, read):
    refuses(read, text, message)


def test_sif_with_several_nodes_in_a_row(tmp_path):
    (tmp_path / "a.sif").write_text("a pp b c d\nb pp c\n")
    with pytest.raises(
        InputError, match=r"a SIF file with several nodes.* awk '\{for .*\}' a\.sif"
    ):
        load_edge_list(tmp_path / "a.sif")
    (tmp_path / "a.sif").write_text("a pp b\nb pp c\nc pd a\n")
    assert load_edge_list(tmp_path / "a.sif").num_nodes == 3


# Files of which only a part says what they are.


def test_lgl_of_igraph_is_refused(read):
    """Its lines with a mark name the node whose neighbours follow, and are no comments."""
    refuses(read, "# 1\n2 5\n3 4\n# 2\n3 7\n", "an LGL file of igraph, .*awk")
    refuses(read, "# a\nb\nc\n# b\nd\n# c\nd\n", "an LGL file of igraph, .*awk")
    for text in ("# comment\n2 5\n3 4\n3 2\n", "# edges\n2 5\n3 4\n# more\n3 2\n# end\n"):
        assert pairs(read(text)) == {frozenset(pair) for pair in ("25", "34", "23")}


def test_ids_of_two_kinds_of_nodes_that_are_counted_apart(read):
    refuses(read, "% bip unweighted\n% 3 2 2\n1 1\n1 2\n2 1\n", "nodes of two kinds.*awk")
    assert read("% bip\na1 b1\na1 b2\na2 b1\n").graph.num_edges == 3
    rows = "1,1,ACTED\n1,2,ACTED\n2,1,ACTED\n"
    refuses(read, f":START_ID(Person),:END_ID(Movie),:TYPE\n{rows}", "ids of Person and of Movie")
    data = read(f":START_ID(Person),:END_ID(Person),:TYPE\n{rows}")
    assert data.graph.num_edges == 1
    data = read(":START_ID(Person),:END_ID(Movie),:TYPE\np1,m1,A\np1,m2,A\np2,m1,A\n")
    assert data.graph.num_edges == 3


@pytest.mark.parametrize("name", ["g.txt", "g.adjlist"])
def test_adjacency_lists_with_tuples_and_quotes(read, name):
    grid = nx.grid_2d_graph(3, 3)
    text = "".join(line + "\n" for line in nx.generate_adjlist(grid))
    header = "#script.py\n# GMT Mon Nov 30 10:00:00 2026\n#\n"
    data = read(header + text, name)
    assert {frozenset(map(str, pair)) for pair in grid.edges} == pairs(data)
    quoted = '"Smith, J","Doe, A"\n"Doe, A","Roe, B"\n"Roe, B"\n'
    data = read(quoted, layout="adjacency_list")
    assert pairs(data) == {
        frozenset(pair) for pair in (("Smith, J", "Doe, A"), ("Doe, A", "Roe, B"))
    }


def test_adjacency_lists_with_two_separators(read):
    text = "Smith,J Doe,A Roe,B\nx Doe,A\ny x\n"
    refuses(read, text, "commas in some rows and blanks in others", layout="adjacency_list")
    data = read(text, layout="adjacency_list", separator="blank")
    assert sorted(data.node_ids) == ["Doe,A", "Roe,B", "Smith,J", "x", "y"]
    for name in ("g.txt", "g.adjlist"):
        cities = "New York,Boston\nBoston,Salem\nSalem,New York\nNew York\n"
        data = read(cities, name, layout="adjacency_list")
        assert sorted(data.node_ids) == ["Boston", "New York", "Salem"]
    data = read("a,b\nc d\n", "g.adjlist", separator="comma")
    assert sorted(data.node_ids) == ["a", "b", "c d"]
    data = read("0 1\t2\n1 2\n", layout="adjacency_list", separator="blank")
    assert data.graph.num_edges == 3
    data = read('5" pipe,6" pipe\n6" pipe,x\n', layout="adjacency_list")
    assert data.graph.num_edges == 2
    refuses(read, '"a b\nb c\n', "a quotation mark is left open", layout="adjacency_list")
    refuses(read, "# nothing\n", "no nodes", name="g.adjlist")


def test_settings_that_a_layout_does_not_read_are_said(read):
    data = read("a,b,c\nb,c\n", layout="adjacency_list", header=True, columns=["a", "b"])
    assert "data.header and data.columns have no effect" in notes(data)
    data = read("0 1 0\n1 0 1\n0 1 0\n", layout="matrix", weights=3)
    assert "a square table, so data.weights has no effect" in notes(data)
