"""GML, GEXF, Pajek and node-link JSON, which networkx reads."""

import json

import networkx as nx
import pytest
from graph_files import LAUGHS, notes, pairs, refused, saved, write

from user_dgl.data import load_edge_list

GRAPH = nx.Graph([("a b", "c"), ("c", "d"), ("d", "a b"), ("d", "e")])
GRAPH.add_node("alone")
WANTED = {frozenset(map(str, pair)) for pair in GRAPH.edges}


def gml(graph):
    return saved(lambda file: nx.write_gml(graph, file))


def gexf(graph):
    return saved(lambda file: nx.write_gexf(graph, file))


def pajek(graph):
    return saved(lambda file: nx.write_pajek(graph, file))


def node_link(graph, key="links"):
    return json.dumps(nx.node_link_data(graph, edges=key)).encode()


WRITERS = {".gml": gml, ".gexf": gexf, ".net": pajek, ".json": node_link}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_graphs_of_networkx(ending, kind, tmp_path):
    graph = kind(GRAPH)
    if graph.is_multigraph():
        graph.add_edge("c", "d")
    content = WRITERS[ending](graph)
    # The content tells the format, whatever the name of the file is.
    for name in ("g" + ending, "g.txt"):
        data = load_edge_list(write(tmp_path / name, content))
        assert sorted(data.node_ids) == ["a b", "alone", "c", "d", "e"]
        assert pairs(data) == WANTED
        assert int(data.graph.degree[data.node_ids.index("alone")]) == 0
    whole = nx.relabel_nodes(graph, {name: k for k, name in enumerate(graph)})
    data = load_edge_list(write(tmp_path / ("g" + ending), WRITERS[ending](whole)))
    assert data.node_ids is None
    assert data.graph.num_edges == 4


@pytest.mark.parametrize("ending", WRITERS)
def test_weights_and_attributes(ending, tmp_path):
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=2.0)
    graph.add_edge("b", "c", weight=0.0)
    graph.add_edge("c", "a", weight=1.0)
    if ending != ".net":
        for name, node in graph.nodes.items():
            node.update(feat_0=float(ord(name)), feat_1=1.0)
    data = load_edge_list(write(tmp_path / ("g" + ending), WRITERS[ending](graph)))
    assert pairs(data) == {frozenset("ab"), frozenset("ac")}
    assert "1 edges of weight 0 dropped" in notes(data)
    if ending != ".net":
        assert data.feat.toarray().tolist() == [[97, 1], [98, 1], [99, 1]]
    graph.add_edge("a", "b", weight=-1.0)
    refused(
        write(tmp_path / ("g" + ending), WRITERS[ending](graph)), "weight -1.*expected 0 or more"
    )


def test_names_of_nodes_in_gml_and_graphml(tmp_path):
    nodes = "".join(f'node [ id {i} name "v{i}" label "same" ]\n' for i in range(3))
    text = f'Creator "igraph"\nVersion 1\ngraph\n[\n directed 0\n{nodes}'
    text += (
        "edge [ source 0 target 1 ]\nedge [ source 0 target 1 ]\nedge [ source 1 target 2 ]\n]\n"
    )
    data = load_edge_list(write(tmp_path / "g.gml", text.encode()))
    assert data.node_ids == ("v0", "v1", "v2")
    assert data.graph.num_edges == 2
    assert "the attribute name holds the ids of the nodes" in notes(data)
    graph = nx.Graph([("n0", "n1"), ("n1", "n2")])
    nx.set_node_attributes(graph, {"n0": "x", "n1": "y", "n2": "z"}, "name")
    path = write(tmp_path / "g.graphml", saved(lambda file: nx.write_graphml(graph, file)))
    labels = write(tmp_path / "l.csv", b"name,club\nz,1\nx,0\ny,0\n")
    data = load_edge_list(path, None, labels)
    assert data.node_ids == ("x", "y", "z")
    assert data.labels.tolist() == [0, 0, 1]


def test_pajek_with_names_of_relations(tmp_path):
    head = b'% c\n*Vertices 3\n1 "a" 0.1 0.2\n2 "b c"\n3 d\n'
    text = head + b'*Arcs :1 "likes"\n1 2 1\n*Edges :2 "knows"\n2 3 1\n'
    data = load_edge_list(write(tmp_path / "g.net", text))
    assert pairs(data) == {frozenset(("a", "b c")), frozenset(("b c", "d"))}
    # Other files are called .net too.
    assert load_edge_list(write(tmp_path / "g.net", b"1 2\n2 3\n")).graph.num_edges == 2
    for content, message in (
        (head + b"*Edgeslist\n1 2 3\n", r"section \*Edgeslist: expected \*vertices, \*arcs"),
        (head + b"*Matrix\n0 1 0\n", r"section \*Matrix: expected"),
        (head + b"*Edges\n1 9\n", "3 vertices announced, 4 found"),
        (
            head.replace(b"d\n", b"a\n") + b"*Edges\n1 2\n",
            "3 vertices announced, 2 found: two have",
        ),
        (b"*Vertices 1000000000\n*Edges\n1 2\n", "1000000000 vertices announced, 0 lines"),
        (head + head, r"2 sections \*vertices: expected one"),
        (b"*Vertices 3 2\n", "expected .vertices and their number"),
        (b"*Vertices x\n", "expected .vertices and their number"),
    ):
        refused(write(tmp_path / "g.net", content), message)


def test_json_of_d3_and_refusals(tmp_path):
    def load(content):
        return load_edge_list(write(tmp_path / "g.json", json.dumps(content).encode()))

    nodes, links = [{"name": "x"}, {"name": "y"}, {"name": "z"}], [{"source": 0, "target": 2}]
    assert load({"nodes": nodes, "links": links}).num_nodes == 3
    assert load({"nodes": [{"id": "x"}, {"id": "y"}], "edges": []}).graph.num_edges == 0
    ids = [{"id": "x"}, {"id": "y"}]
    for content, message in (
        (
            {"nodes": ids, "links": [{"source": 0, "target": 1}]},
            "source 0, but no node has this id",
        ),
        ({"nodes": ids + ids, "links": []}, "two nodes have the same id"),
        ({"nodes": [{"id": [1]}], "links": []}, r"id \[1\]: expected text or a whole number"),
        ({"nodes": [{"id": 1.5}], "links": []}, r"id 1.5: expected text or a whole number"),
        ({"nodes": [{"id": "x"}, {}], "links": []}, "id None: expected text"),
        ({"nodes": [1], "links": []}, "JSON without lists of objects `nodes` and `links`"),
        ({"elements": {"nodes": []}}, "JSON without lists of objects"),
        ([1, 2], "JSON without lists of objects"),
        ({"nodes": [], "links": []}, "no nodes"),
    ):
        refused(write(tmp_path / "g.json", json.dumps(content).encode()), message)
    refused(write(tmp_path / "g.json", b'{"nodes": ['), "not JSON")
    refused(write(tmp_path / "g.json", b'{"nodes": ' + b"[" * 100_000), "not JSON")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.gml", b"graph [ node [ id 0 ] edge [ source 0 target 1 ] ]", "not a usable GML file"),
        ("g.gml", b"graph [ node [ id 0 ] node [ id 0 ] ]", "not a usable GML file"),
        ("g.gml", b"graph [" * 5000, "not a usable GML file"),
        ("g.gml", b"graph [ node [ id 0 \xff ] ]", "not UTF-8"),
        ("g.gml", b"graph [ ]", "no nodes"),
        ("g.gexf", b"<gexf><graph><nodes/></graph>", "not XML"),
        ("g.gexf", b"<gexf><graph><nodes/><edges/></graph></gexf>", "GEXF file|no nodes"),
        ("g.gexf", LAUGHS.encode() + b"<gexf/>", "entity 'a': entities are not supported"),
        ("g.txt", b"<?xml version='1.0'?>" + LAUGHS.encode() + b"<gexf/>", "an XML file|entity"),
    ],
)
def test_damaged_files_and_bombs(name, content, message, tmp_path):
    refused(write(tmp_path / name, content), message)


def test_an_edge_to_an_unknown_node_of_gexf(tmp_path):
    content = gexf(GRAPH).replace(b'target="c"', b'target="stranger"')
    refused(
        write(tmp_path / "g.gexf", content), r"g\.gexf:\d+: edge to node 'stranger', but no node"
    )


def test_files_that_would_not_fit_the_memory(tmp_path, monkeypatch):
    from user_dgl.data.reading import files

    for ending, writer in WRITERS.items():
        path = write(tmp_path / ("g" + ending), writer(nx.path_graph(300)))
        monkeypatch.setattr(
            files, "available_memory_mb", lambda path=path: path.stat().st_size / 5e5
        )
        refused(path, "needs .* GB of memory")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("1 2 0,5\n2 3 7,5", "edge '1 2 0,5': weight '0,5' is not a number"),
        ("1 2 0.5\n3", "edge '3': expected two vertices"),
        ('"a" "b" 1,5\n2 3', "weight '1,5' is not a number"),
    ],
)
def test_rows_of_pajek_that_networkx_would_change(edges, message, tmp_path):
    text = f'*Vertices 3\n1 "a"\n2 "b"\n3 "c"\n*Edges\n{edges}\n'
    refused(write(tmp_path / "g.net", text.encode()), message)


def test_pajek_with_colours_of_edges(tmp_path):
    rows = '1 2 c Blue\n2 3 1 l "of a friend"\n1 "c" 2.5\n'
    text = f'*Vertices 3\n1 "a"\n2 "b"\n3 "c"\n*Edges\n{rows}'
    assert load_edge_list(write(tmp_path / "g.net", text.encode())).graph.num_edges == 3


@pytest.mark.parametrize("ending", [".gml", ".gexf", ".json"])
def test_a_weight_of_another_name_is_said(ending, tmp_path):
    graph = nx.Graph()
    graph.add_edge("a", "b", value=3)
    graph.add_edge("b", "c", value=1)
    data = load_edge_list(write(tmp_path / ("g" + ending), WRITERS[ending](graph)))
    assert "edge attribute value is not read: rename it to weight" in notes(data)
    assert data.graph.weight is None
