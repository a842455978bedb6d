"""Files that could be read without an error, but as another graph: read right, or refused.

The same graph is in most of them: 12 nodes and 20 edges.
"""

import io
import json
import random

import networkx as nx
import numpy as np
import pytest
from graph_files import notes, pairs

from user_dgl.data import load_edge_list
from user_dgl.errors import InputError

GRAPH = nx.gnm_random_graph(12, 20, seed=5)
EDGES = sorted(GRAPH.edges)
NAMES = [f"org{i:02d}" for i in range(12)]
ORDER = random.Random(3).sample(range(20), 20)


def rows(form, edges=EDGES):
    """A line for each edge: ids ``u`` and ``v``, numbers ``i`` and ``j``, its number ``k``."""
    return "".join(
        form.format(
            u=NAMES[i], v=NAMES[j], i=i, j=j, k=k, p=ORDER[k % 20] + 1, w=f"0,{k + 10}",
            year=2000 + 7 * k % 20, month=200001 + 3 * k % 12, day=20200101 + 5 * k % 28,
        )
        + "\n"
        for k, (i, j) in enumerate(edges)
    )  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def load(text, name="edges.txt", **options):
        (tmp_path / name).write_text(text)
        return load_edge_list(tmp_path / name, **options)

    return load


@pytest.fixture
def refuses(read):
    def check(text, message, **options):
        with pytest.raises(InputError, match=message) as caught:
            read(text, **options)
        assert "\n" not in str(caught.value)

    return check


def right(data, names=NAMES):
    return pairs(data) == {frozenset((str(names[i]), str(names[j]))) for i, j in EDGES}


LISTS = {NAMES[i]: [NAMES[j] for j in GRAPH[i]] for i in GRAPH if len(GRAPH[i])}


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{node}\t{','.join(found)}\n" for node, found in LISTS.items()),
        "".join(f"{node};{','.join(found)}\n" for node, found in LISTS.items()),
        "node,neighbors\n" + "".join(f'{u},"{",".join(found)}"\n' for u, found in LISTS.items()),
        "node,neighbors\n" + "".join(f'{u},"{found}"\n' for u, found in LISTS.items()),
        "node,others\n" + "".join(f"{u},{' '.join(found)}\n" for u, found in LISTS.items()),
        "".join(f'"{"|".join(found)}",{u}\n' for u, found in LISTS.items()),
        "".join(f'{7 * i},"{i},{i + 1},{i + 3}"\n' for i in range(100, 112)),
        "".join(f'{node},"[x{i}, y{i}]"\n' for i, node in enumerate(NAMES)),
    ],
)
def test_lists_of_ids_in_a_cell(text, read, refuses):
    refuses(text, "has several ids in a cell, such as .* set data.columns=.* if it is one id")
    with_header = text.startswith("node")
    chosen = text.split("\n")[0].split(",") if with_header else (1, 2)
    assert read(text, columns=chosen).num_nodes > 12


def test_names_with_blanks_and_commas_are_ids(read):
    assert right(read(rows("Ms {u}\tMs {v}")), [f"Ms {name}" for name in NAMES])
    quoted = rows('"{u}, Inc.","{v}, Inc."')
    assert right(read(quoted), [f"{name}, Inc." for name in NAMES])
    assert read("New York,York\nYork,Los Angeles\nLos Angeles,Rome\n").num_nodes == 4


def test_a_node_a_colon_and_its_neighbours(read, refuses):
    text = "".join(f"{node}: {' '.join(found)}\n" for node, found in LISTS.items())
    refuses(text, "remove the colons .* and set data.layout=adjacency_list")
    assert right(read(text.replace(":", ""), layout="adjacency_list"))
    refuses("a: b\nb: c\nc: a\n", "remove the colons")
    mail = read(rows("From: {u} To: {v}"))
    assert right(mail)


def test_a_first_row_that_counts(read, refuses):
    text = "12 20\n" + rows("{i} {j}")
    refuses(text, ":1: 12 nodes and 20 rows below it, or an edge from 12 to 20: set data.header=tr")
    assert right(read(text, header=True), range(12))
    assert read(text, header=False).num_nodes == 14
    assert read("3 9\n" + rows("{i} {j}")).graph.num_edges in (20, 21)


@pytest.mark.parametrize("header", ["Var1,Var2,Freq", "i,j,edge", "source,target,tie"])
def test_a_row_for_every_pair(header, read, refuses):
    table = "".join(f"{i},{j},{int(GRAPH.has_edge(i, j))}\n" for i in range(12) for j in range(12))
    name = header.split(",")[2]
    refuses(
        f"{header}\n{table}",
        f"a row for every pair of nodes, and column '{name}' is 0 in some of them: set data.weigh",
    )
    assert right(read(f"{header}\n{table}", weights=name), range(12))
    assert read(f"{header}\n{table}", weights="ignore").graph.num_edges == 66
    constant = table.replace(",0\n", ",1\n")
    assert read(f"{header}\n{constant}").graph.num_edges == 66


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("{p}", "counts from row to row"), ("{year}", "has years or dates"),
        ("{month}", "has years or dates"), ("{day}", "has years or dates"),
    ],
)  # fmt: skip
def test_numbers_without_a_name_that_are_no_weights(column, said, read):
    for form in ("{i} {j} ", "{u},{v},"):
        data = read(rows(form + column))
        assert right(data, range(12) if "i" in form else NAMES)
        assert data.graph.weight is None
        assert f"column 3 {said}" in notes(data)
        assert read(rows(form + column), weights=3).graph.weight is not None


def test_other_whole_numbers_are_weights(read):
    for weights in ([3, 1, 2, 2], [2020, 1, 5, 7], [10, 20, 40, 30], [20201350, 20200101, 1, 2]):
        lines = zip(EDGES, weights, strict=False)
        data = read("".join(f"{NAMES[i]},{NAMES[j]},{w}\n" for (i, j), w in lines))
        assert data.graph.weight is not None


def test_decimal_commas_without_a_name(read, refuses):
    refuses(rows("{u}\t{v}\t{w}"), "column 3 has decimal commas, such as 0,10: write points")
    assert right(read(rows("{u}\t{v}\t{w}"), weights="ignore"))
    assert read(rows("{u};{v};{w}")).graph.weight is not None


def test_columns_that_start_with_another_id_in_each_row(refuses):
    order = [3, 7, 0, 5, 1, 6, 2, 4, 11, 8, 10, 9]
    text = "".join(f"{i} {(i + 1) % 12} {(i + 5) % 12}\n" for i in order)
    refuses(text, "column 1 has another id in each row: columns 1 and 2 or columns 1 and 3 may")


def test_types_behind_the_names_of_neo4j(read):
    for header, form in (
        (":START_ID;:END_ID;:TYPE;weight:float", "{u};{v};KNOWS;{k}.5"),
        (":START_ID,weight:int,:END_ID", "{u},1{k},{v}"),
    ):
        data = read(header + "\n" + rows(form))
        assert right(data)
        assert data.graph.weight is not None


def test_columns_that_pandas_counts(read):
    assert right(read("0,1\n" + rows("{u},{v}")))
    data = read("0,1,2\n" + rows("{u},{v},0.{k}5"))
    assert right(data)
    assert "first row taken as header (0, 1, 2)" in notes(data)
    assert right(read("0,2\n0,3\n" + rows("{i},{j}")), range(12))


# Rows and ids.


@pytest.mark.parametrize("mark", ["?", "-", ".", "n/a", "Null", "#NA"])
def test_marks_in_place_of_a_missing_id(mark, read):
    text = "source,target\n" + rows("{u},{v}") + f"{NAMES[3]},{mark}\n{NAMES[4]},{mark}\n"
    data = read(text, comment=False)
    assert right(data)
    assert "2 rows without an id" in notes(data)
    if len(mark) == 1:
        assert f"({mark!r})" in notes(data)
        # Beside other marks, it is a word.
        assert read(text + f"{NAMES[0]},!\n").num_nodes == 14
    quoted = text.replace(mark, f'"{mark}"')
    assert read(quoted, comment=False).num_nodes == 13


def test_an_id_of_minus_one_is_said(read):
    data = read(rows("{i},{j}") + "3,-1\n4,-1\n")
    assert data.num_nodes == 13
    assert "the id -1 is taken as a node: remove its 2 rows if it stands for a missing" in notes(
        data
    )
    assert "-1" not in notes(read("-1,-2\n-2,0\n0,-1\n"))


def test_one_id_as_a_real_number(read):
    file = io.StringIO()
    np.savetxt(file, np.array(EDGES))  # 0.000000000000000000e+00
    assert right(read(file.getvalue()), range(12))
    assert right(read(rows("{i}.,{j}.")), range(12))
    data = read("99999,1.0E5\n100000,1.5E5\n")
    assert data.node_ids == ("99999", "100000", "150000")


def test_wells_of_a_plate_are_no_numbers(read):
    data = read("source,target\n1E1,5\n10,6\n5,6\n2E1,20\n")
    assert (data.num_nodes, data.graph.num_edges) == (6, 4)


@pytest.mark.parametrize("names", ["user_id,group_id", "group_id,user_id", "user_id,cluster_id"])
def test_members_of_groups_are_edges(names, read):
    data = read(f"{names}\n" + rows("a{u},b{v}"))
    assert data.graph.num_edges == len(EDGES)


def test_a_few_names_of_two_words_are_no_lists(read):
    names = "Madonna,Cher\nCher,Sonny Bono\nSonny,Madonna\nBono,Cher\nSonny Bono,Bono\n"
    assert read(f"source,target\n{names}").num_nodes == 5


@pytest.mark.parametrize("again", ["Source,Target", "SOURCE,TARGET", "target,source"])
@pytest.mark.parametrize("first", [9, 40])
def test_another_spelling_of_the_header_below(again, first, refuses):
    edges = (3 * EDGES)[:first]
    text = "source,target\n" + rows("{u},{v}", edges) + f"{again}\n" + rows("{u},{v}")
    refuses(text, "may be a header or an edge, as '(?i:source|target)' is an id below")


def test_a_header_that_only_stands_again(refuses):
    for text in ("source,target\nsource,target", "source,target\nsource,target\n"):
        refuses(text, "only a header")


def test_a_header_with_fewer_names_than_the_ends(read):
    text = "0\ng5\tpp\tg3\ng3\tpp\tg4\ng4\tpp\tg5\ng0\tpp\tg1\ng5\tpp\tg3\n"
    assert read(text, header=True).num_nodes == 5


def test_rows_that_are_too_short(read, refuses):
    many = 2 * EDGES
    text = rows("{u},{v}", many) + f"{NAMES[0]};{NAMES[1]}\n"
    refuses(text, ":41: 1 columns, expected 2")
    refuses(text.replace(",", " ").replace(";", ":"), ":41: 1 columns, expected 2")
    refuses('"a b","c"\n' * 30 + '"a"\n' + "d,\n", ":31: 1 columns, expected 2")
    assert "1 rows without an id" in notes(read(rows("{u},{v}", many) + f"{NAMES[0]},\n"))
    multi = "source,target,title\n" + 'b,c,"x"\n' * 25 + 'a,b,"two\nlines"\nc,,y\n'
    assert "1 rows without an id" in notes(read(multi, header=True))


def test_separators_that_change(read, refuses):
    assert read('"said,",he\nsaid,"he,"\n"he,","said,"\n').num_nodes == 4
    text = rows("{u}, {v}", EDGES[:10]) + rows("{u} {v}", EDGES[10:])
    refuses(text, ":7: both .*, and .* are ids: write the same separator in all rows")
    assert read(text, separator="blank").num_nodes == 14


# Formats.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rows("edge({u},{v})."), "facts as Prolog has them: convert it"),
        ("edges:\n" + rows("- [{u}, {v}]"), "YAML"),
        (rows("- {u}: {v}"), "YAML"),
    ],
)
def test_formats_that_are_refused_by_name(text, message, refuses):
    refuses(text, message)


def test_sums_of_a_table(refuses):
    matrix = nx.to_numpy_array(GRAPH, nodelist=range(12)).astype(int)
    full = np.block([[matrix, matrix.sum(1)[:, None]], [matrix.sum(0), matrix.sum()]])
    names = [*NAMES, "Total"]
    text = f",{','.join(names)}\n"
    text += "".join(f"{n},{','.join(map(str, r))}\n" for n, r in zip(names, full, strict=True))
    refuses(text, "the column Total holds the sums of the rows: remove it and the row of sums")


def test_links_of_d3_are_positions(read):
    content = {
        "nodes": [{"name": name} for name in NAMES],
        "links": [{"source": i, "target": j, "value": 1} for i, j in EDGES],
    }
    assert right(read(json.dumps(content), "graph.json"), range(12))
