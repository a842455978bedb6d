"""Any table that a usual writer makes is read back as the same graph, or refused."""

import csv
import io

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from graph_files import pairs

from user_dgl.data import load_edge_list
from user_dgl.errors import InputError
from user_dgl.output.tables import csv_text

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

EXAMPLES = hypothesis.settings(
    max_examples=500,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)

# Kinds of ids: whole numbers, numbers as text, words, and any text without a line end.
WHOLE = st.integers(-(10**4), 10**12).map(str)
ANY = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")),
    min_size=1,
    max_size=8,
)
IDS = st.sampled_from(["small", "whole", "padded", "word", "marked", "any"])
HEADERS = [
    ("source", "target"), ("Source", "Destination"), ("from", "to"), ("node1", "node2"),
    ("protein1", "protein2"), (":START_ID", ":END_ID"), ("head", "tail"), ("who", "whom"),
    ("a", "b"), ("x", "y"), ("src_id", "dst_id"), ("start", "end"),
]  # fmt: skip


def usable(name):
    """Whether an id is one that readers keep as it is: no number in another spelling, no NA."""
    return name == name.strip() and name.isprintable() and not name[:1] == name[-1:] == "'"


@st.composite
def graphs(draw):
    """Edges between distinct ids, each once and without loops."""
    kind = draw(IDS)
    number = draw(st.integers(3, 14))
    if kind == "small":
        names = [str(i + draw(st.integers(0, 1))) for i in range(0, 2 * number, 2)]
    elif kind == "any":
        names = draw(st.lists(ANY.filter(usable), min_size=3, max_size=14, unique=True))
    elif kind == "whole":
        names = draw(st.lists(WHOLE, min_size=3, max_size=14, unique=True))
    else:
        form = {"padded": "{:03d}", "word": "org{}", "marked": "#{} tag"}[kind]
        names = [form.format(i) for i in range(number)]
    number = len(names)
    every = [(i, j) for i in range(number) for j in range(i + 1, number)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=2, max_size=40, unique=True))
    flips = draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    both = zip(chosen, flips, strict=True)
    return [(names[j], names[i]) if f else (names[i], names[j]) for (i, j), f in both]


def wanted(edges):
    return {frozenset(pair) for pair in edges}


def check(path, content, edges, **options):
    """Read a file, and compare it with the edges unless it is refused."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        data = load_edge_list(path, **options)
    except InputError as error:
        hypothesis.event("refused")
        return str(error)
    hypothesis.event("read")
    # Spellings of one number or of one accent are one id.
    names = {name for pair in edges for name in pair}
    if len({*map(str, data.node_ids or range(data.num_nodes))}) == len(names):
        assert len(pairs(data)) == len(wanted(edges)), content
    else:
        assert any("another spelling" in note for note in data.notes), content
    plain = all(name.isascii() and not name[:1].isdigit() for name in names)
    if plain:
        assert pairs(data) == wanted(edges), content
    return None


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("tables") / "edges.txt"


@pytest.mark.slow
@EXAMPLES
@hypothesis.given(edges=graphs(), weights=st.booleans())
def test_tables_of_the_package(path, edges, weights):
    columns = list(zip(*edges, strict=True))
    table = pd.DataFrame({"source": columns[0], "target": columns[1]})
    if weights:
        table["weight"] = np.linspace(0.1, 1, len(table))
    message = check(path, csv_text(table), edges)
    assert message is None or "first row" in message or "spreadsheet" in message, message


@pytest.mark.slow
@EXAMPLES
@hypothesis.given(
    edges=graphs(),
    names=st.sampled_from(HEADERS),
    header=st.booleans(),
    index=st.booleans(),
    separator=st.sampled_from([",", "\t", ";", "|", " "]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    quote=st.sampled_from(['"', "'"]),
    more=st.lists(st.sampled_from(["weight", "type", "time", "id", "label"]), unique=True),
    order=st.randoms(use_true_random=False),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_tables_of_pandas(
    path, edges, names, header, index, separator, quoting, quote, more, order, end
):
    values = {
        "weight": [round(0.5 + k / 7, 3) for k in range(len(edges))],
        "type": ["mail" if k % 2 else "call" for k in range(len(edges))],
        "time": [1082040961 + 40 * k for k in range(len(edges))],
        "id": list(range(len(edges))),
        "label": [f"edge {k}" for k in range(len(edges))],
    }
    columns = [(names[0], [u for u, _ in edges]), (names[1], [v for _, v in edges])]
    columns += [(name, values[name]) for name in more]
    if header:  # without names, only the usual order of columns tells what they are
        order.shuffle(columns)
    table = pd.DataFrame(dict(columns))
    try:
        text = table.to_csv(
            sep=separator, quoting=quoting, quotechar=quote, header=header, index=index,
            lineterminator=end,
        )  # fmt: skip
    except csv.Error:
        hypothesis.reject()
    check(path, text, edges)


@pytest.mark.slow
@EXAMPLES
@hypothesis.given(
    edges=graphs(),
    names=st.sampled_from(HEADERS),
    row_names=st.booleans(),
    separator=st.sampled_from([" ", ",", "\t", ";"]),
    missing=st.integers(0, 2),
    weight=st.booleans(),
)
def test_tables_of_r(path, edges, names, row_names, separator, missing, weight):
    """``write.table``: text is quoted, row names have no name, and NA stands for a missing id."""
    hypothesis.assume(not any('"' in name for pair in edges for name in pair))
    lines = [separator.join(f'"{name}"' for name in (*names, *["weight"] * weight))]
    whole = all(name.lstrip("-").isdigit() and str(int(name)) == name for e in edges for name in e)
    quoted = (lambda name: name) if whole else (lambda name: f'"{name}"')
    every = [*((quoted(u), quoted(v)) for u, v in edges)]
    every += [(every[0][0], "NA")] * min(missing, len(edges) // 6)
    for k, (u, v) in enumerate(every):
        cells = [f'"{k + 1}"'] * row_names + [u, v] + [str(k / 4)] * weight
        lines.append(separator.join(cells))
    # The weight 0 of the first row is no edge.
    kept = edges[1:] if weight else edges
    if weight and len({n for e in kept for n in e}) < len({n for e in edges for n in e}):
        hypothesis.reject()
    check(path, "\n".join(lines) + "\n", kept)


@pytest.mark.slow
@EXAMPLES
@hypothesis.given(
    edges=graphs(),
    delimiter=st.sampled_from([" ", ",", "\t"]),
    attributes=st.sampled_from([{}, {"weight": 2}, {"weight": 0.5, "kind": "a, b", "x": (1, 2)}]),
    writer=st.sampled_from(["edgelist", "adjlist", "gml", "gexf", "graphml", "pajek", "json"]),
)
def test_files_of_networkx(path, edges, delimiter, attributes, writer):
    graph = nx.Graph()
    graph.add_edges_from(edges, **({} if writer in ("gexf", "graphml", "pajek") else attributes))
    file = io.BytesIO()
    try:
        if writer == "edgelist":
            nx.write_edgelist(graph, file, delimiter=delimiter)
        elif writer == "adjlist":
            nx.write_adjlist(graph, file, delimiter=delimiter)
        elif writer == "json":
            file.write(repr(nx.node_link_data(graph, edges="links")).replace("'", '"').encode())
        else:
            getattr(nx, f"write_{writer}")(graph, file)
    except (nx.NetworkXError, ValueError):
        hypothesis.reject()
    names = {name for pair in edges for name in pair}
    if writer in ("edgelist", "adjlist"):
        # These writers do not quote, so an id must not hold what separates or comments.
        odd = set("'\"#%{}()[],;|\t ") | {delimiter}
        hypothesis.assume(not any(set(name) & odd or not name.strip() for name in names))
    check(path, file.getvalue(), edges)
