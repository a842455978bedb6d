"""GraphML files."""

import networkx as nx
import pytest
from graph_files import (
    EDGE,
    EDGES,
    FEATURES,
    LAUGHS,
    NODES,
    N,
    graphml,
    notes,
    pairs,
    refused,
    saved,
    write,
    xml,
)

from user_dgl.data import load_edge_list
from user_dgl.errors import InputError


def test_text_ids_of_graphml(tmp_path):
    path = write(tmp_path / "g.graphml", graphml(ids=lambda i: f"n{i}"))
    data = load_edge_list(path)
    assert data.node_ids == tuple(sorted(f"n{i}" for i in range(N)))
    assert pairs(data) == {frozenset((f"n{u}", f"n{v}")) for u, v in EDGES}
    by_id = dict(zip(data.node_ids, data.feat.toarray().tolist(), strict=True))
    assert by_id["n10"] == FEATURES[10].tolist()
    # The rows of another file have an order that GraphML has not.
    with pytest.raises(InputError, match="features without ids, but node ids are text"):
        load_edge_list(path, write(tmp_path / "f.npy", FEATURES))


def test_graphml_order_of_features_parallel_edges_and_weights(tmp_path):
    graph = nx.MultiGraph()
    for node in "abc":
        graph.add_node(node, **{f"feat_{k}": k + ord(node) for k in (10, 9, 1)}, feat_x="2.5")
    graph.add_edges_from([("a", "b"), ("b", "a"), ("c", "c")])
    graph.add_edge("b", "c", weight=0.0)
    graph.add_edge("a", "c", weight=2.5)
    data = load_edge_list(
        write(tmp_path / "g.graphml", saved(lambda f: nx.write_graphml(graph, f)))
    )
    assert pairs(data) == {frozenset("ab"), frozenset("ac")}
    assert data.feat.toarray()[0].tolist() == [98, 106, 107, 2.5]
    for said in (
        "1 self-loop entries dropped, 1 repeated or reversed entries merged",
        "1 edges of weight 0 dropped", "4 features feat_*",
    ):  # fmt: skip
        assert said in notes(data)


ODD = '<node id="a"><data key="k">x</data></node>'
KEY = '<key id="k" for="node" attr.name="{}" attr.type="{}"><default>{}</default></key>'


def test_graphml_defaults_and_names(tmp_path):
    keys = KEY.format("feat_0", "double", "1.5") + '<key id="l" for="node" attr.name="label"/>'
    body = (
        '<node id="a"><data key="k">2</data><data key="l">Ann</data></node>'
        '<node id="b"><data key="l">Bob</data></node><node id="c"><data key="l">Cyd</data></node>'
    )
    data = load_edge_list(write(tmp_path / "g.graphml", xml(body + EDGE, keys=keys)))
    assert data.feat.toarray().ravel().tolist() == [2, 1.5, 1.5]
    assert data.labels is None
    assert "label is different for every node" in notes(data)


OUTSIDE = '<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (xml(f'<node id="&i;"/>{EDGE}', LAUGHS), r"g\.graphml:1: entity 'a': entities are not"),
        (xml(f'<node id="&a;"/>{EDGE}', OUTSIDE), r":1: entity 'a': entities are not supported"),
        (xml('<!DOCTYPE g [<!ENTITY % p "x"> %p;]>'), ":2: not XML"),
        (xml(NODES + '<edge source="a" target="c"/>'), r":4: edge to node 'c', but no node"),
        (xml(NODES + '<node id="a"/>' + EDGE), r":4: node 'a' given twice"),
        (xml(NODES + '<node id="a "/>' + EDGE), r"ids differ only by blanks"),
        (xml(NODES + '<node/>' + EDGE), r":4: node without id: add it"),
        (xml(NODES + '<edge source="a"/>'), r":4: edge without target"),
        (xml(NODES + "<hyperedge/>"), r":4: a hyperedge"),
        (xml(NODES + "<data>"), r":5: not XML: mismatched tag"),
        (xml(""), "no nodes"),
        ("", r":1: not XML: no element found"),
        ("0,1\n1,2\n", r":1: not XML: syntax error"),
        ("<a><b/></a>", "holds 0 graphs: expected one"),
        (xml(NODES + EDGE + "</graph><graph>"), "holds 2 graphs: expected one"),
        (xml(NODES + EDGE).encode("utf-16")[:-3], "not XML"),
        (xml(NODES + EDGE).replace("?>", ' encoding="nonsense"?>', 1), "not XML.* encoding"),
        (
            xml(ODD, keys=KEY.format("feat_0", "double", 1)),
            "not a usable GraphML file .*could not convert",
        ),
        (
            xml(ODD, keys=KEY.format("feat_0", "string", 1)),
            "node 'a': feat_0='x' is not a number",
        ),
        (xml('<node id="a"><data key="z">1</data></node>'), "no key z"),
        (
            xml(
                '<node id="a"><data key="k">1</data></node><node id="b"/>',
                keys=KEY.format("feat_0", "double", "NaN"),
            ),
            r"NaN, empty or infinite features in 1 rows .*: 1: .*data\.missing_features",
        ),
        (
            xml(NODES + '<edge source="a" target="b"><data key="k">-1</data></edge>',
                keys=KEY.format("weight", "double", 1).replace("node", "edge")),
            "edge 'a' to 'b': weight -1.0: expected 0 or more",
        ),
    ],
)  # fmt: skip
def test_graphml_refused(content, message, tmp_path):
    refused(write(tmp_path / "g.graphml", content), message)
