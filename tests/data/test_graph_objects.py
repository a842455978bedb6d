"""Graphs in memory of every kind give the same graph, with features matched by name or refused."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from user_dgl import dgl
from user_dgl.data.graph_objects import read_objects
from user_dgl.errors import InputError

# A path b - a - c - d with a feature for each node, whose value is the node's letter.
NAMES = ["b", "a", "c", "d"]
EDGES = [("b", "a"), ("a", "c"), ("c", "d")]
NUMBERED = np.array([[0, 1, 2], [1, 2, 3]])
FEAT = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}, index=["a", "b", "c", "d"])


def _adjacency():
    matrix = np.zeros((4, 4))
    matrix[NUMBERED[0], NUMBERED[1]] = matrix[NUMBERED[1], NUMBERED[0]] = 1
    return matrix


def _edges(held):
    """Edges by the names of their ends, and the feature of each name."""
    names = np.arange(held.graph.num_nodes) if held.names is None else held.names.to_numpy()
    ends = (names[end.numpy()] for end in (held.graph.src, held.graph.dst))
    return {frozenset(pair) for pair in zip(*ends, strict=True)}


def _networkx(kind=nx.Graph):
    graph = kind()
    graph.add_nodes_from(NAMES)
    graph.add_edges_from(EDGES)
    return graph


class _Attributes(dict):
    """Attributes of nodes or edges as igraph has them."""

    def attributes(self):
        return list(self)


def _igraph(name=True):
    """A graph of igraph, or what is read of it where igraph is not installed."""
    try:
        import igraph
    except ImportError:
        graph = SimpleNamespace(
            vcount=lambda: 4, get_edgelist=lambda: list(map(tuple, NUMBERED.T.tolist())),
            is_directed=lambda: False, vs=_Attributes(), es=_Attributes(),
        )  # fmt: skip
    else:
        graph = igraph.Graph(n=4, edges=NUMBERED.T.tolist())
    if name:
        graph.vs["name"] = NAMES
    return graph


def _pyg(**more):
    """A graph of PyTorch Geometric, or what is read of it where that is not installed."""
    more["edge_index"] = torch.from_numpy(np.hstack([NUMBERED, NUMBERED[::-1]]))
    try:
        from torch_geometric.data import Data
    except ImportError:
        return SimpleNamespace(keys=lambda: list(more), **more)
    return Data(**more)


@pytest.mark.parametrize(
    "make",
    [
        _networkx,
        lambda: _networkx(nx.DiGraph),
        lambda: _networkx(nx.MultiGraph),
        _igraph,
        lambda: EDGES,
        lambda: set(EDGES),
        lambda: [("c", "d"), ("a", "b"), ("c", "a")],
        lambda: _networkx().edges,
        lambda: np.array(EDGES),
        lambda: np.array(EDGES, dtype=object),
        lambda: pd.DataFrame(EDGES, columns=["one", "two"]),
        lambda: pd.DataFrame(_adjacency(), NAMES, NAMES),
        lambda: pd.DataFrame(_adjacency(), NAMES, NAMES)[["d", "c", "b", "a"]],
        lambda: pd.DataFrame(_adjacency(), NAMES, NAMES).astype("boolean"),
        lambda: nx.to_pandas_adjacency(_networkx()),
    ],
    ids=[
        "networkx", "directed", "multigraph", "igraph", "pairs", "set", "other order", "edge view",
        "text array", "object array", "two columns", "frame", "columns in another order",
        "nullable booleans", "networkx frame",
    ],
)  # fmt: skip
def test_named_nodes(make):
    held = read_objects(make(), FEAT)
    assert _edges(held) == set(map(frozenset, EDGES))
    assert held.columns.tolist() == ["x"]
    by_name = dict(zip(held.names, held.feat.toarray().ravel(), strict=True))
    assert by_name == FEAT["x"].to_dict()


@pytest.mark.parametrize(
    "make",
    [
        _adjacency,
        lambda: sp.coo_array(_adjacency()),
        lambda: torch.from_numpy(_adjacency()),
        lambda: pd.DataFrame(_adjacency()),
        lambda: _adjacency().astype(object),
        lambda: NUMBERED,
        lambda: NUMBERED.tolist(),
        lambda: torch.from_numpy(NUMBERED),
        lambda: NUMBERED.T,
        lambda: [(0, 1), (1, 2), (2, 3)],
        lambda: pd.DataFrame(NUMBERED.T),
        lambda: nx.path_graph(4),
        lambda: _igraph(name=False),
        _pyg,
        lambda: dgl.graph((NUMBERED[0], NUMBERED[1])),
    ],
    ids=[
        "ndarray", "coo_array", "tensor", "frame", "object", "edge_index", "edge_index lists",
        "edge_index tensor", "pairs", "tuples", "pairs frame", "networkx", "igraph", "pyg", "dgl",
    ],
)  # fmt: skip
def test_numbered_nodes(make):
    held = read_objects(make(), np.arange(1.0, 5.0)[:, None])
    assert held.names is None
    assert _edges(held) == {frozenset(pair) for pair in NUMBERED.T.tolist()}
    assert held.feat.toarray().ravel().tolist() == [1, 2, 3, 4]


def test_features_of_the_graph_itself():
    feat = torch.arange(1.0, 5.0)[:, None]
    assert read_objects(_pyg(x=feat)).feat.toarray().ravel().tolist() == [1, 2, 3, 4]
    assert read_objects(_pyg(x=feat), -feat).feat.toarray().min() == -4


def test_nodes_without_edges_stay():
    graph = nx.path_graph(4)
    graph.add_node(4)
    assert read_objects(graph).graph.num_nodes == 5
    assert read_objects(_pyg(num_nodes=6)).graph.num_nodes == 6
    assert read_objects(_pyg(), np.ones((6, 1))).graph.num_nodes == 6
    # Numbers of nodes reach up to the rows of the features, or to the largest.
    assert read_objects(NUMBERED + 1).graph.num_nodes == 5
    assert read_objects(NUMBERED, np.ones((7, 1))).graph.num_nodes == 7
    assert read_objects([(0, 1), (3, 1)], np.ones((7, 1))).graph.num_nodes == 7
    lone = pd.concat([FEAT, pd.DataFrame({"x": [9.0]}, index=["alone"])])
    held = read_objects(EDGES, lone)
    assert held.graph.num_nodes == 5
    assert _edges(held) == set(map(frozenset, EDGES))


def test_pairs_of_numbers_with_gaps_are_named():
    held = read_objects([(7, 5), (5, 900)])
    assert held.names.tolist() == [5, 7, 900]
    assert "3 of the numbers 5..900" in held.notes[0]


def test_names_that_are_tuples_or_of_several_types():
    grid = nx.grid_2d_graph(2, 3)
    held = read_objects(grid)
    assert held.names.tolist() == list(grid.nodes)
    assert held.graph.num_edges == grid.number_of_edges()
    assert read_objects([("a", 1), (1, "b")]).graph.num_edges == 2
    pairs = read_objects([((0, 1), (0, 2)), ((0, 2), (1, 1))])
    assert pairs.names.tolist() == [(0, 1), (0, 2), (1, 1)]
    assert pairs.graph.num_edges == 2


def test_rows_numbered_in_another_order_are_matched_by_number():
    shuffled = pd.DataFrame({"x": [3.0, 1.0, 4.0, 2.0]}, index=[2, 0, 3, 1])
    held = read_objects(_adjacency(), shuffled)
    assert held.feat.toarray().ravel().tolist() == [1, 2, 3, 4]
    assert held.names is None


def test_names_of_rows_name_the_nodes_of_a_plain_matrix():
    held = read_objects(_adjacency(), FEAT)
    assert held.names.tolist() == FEAT.index.tolist()
    assert held.feat.toarray().ravel().tolist() == [1, 2, 3, 4]


def test_weights_are_checked_and_said():
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 2.5), (1, 2, 0), (2, 3, 1)])
    graph.add_edge(3, 4)
    held = read_objects(graph)
    assert held.graph.num_edges == 3
    assert held.graph.num_nodes == 5
    notes = " ".join(held.notes)
    assert "1 edges of weight 0 are no edges" in notes
    np.testing.assert_allclose(held.graph.weight, [2.5 / 1.5, 1 / 1.5, 1 / 1.5], rtol=1e-6)
    assert held.graph.unit == pytest.approx(1.5)
    graph[0][1]["weight"] = -1
    with pytest.raises(InputError, match="negative, NaN or infinite weights of 1 edges"):
        read_objects(graph)
    graph[0][1]["weight"] = "heavy"
    with pytest.raises(InputError, match="weights of shape"):
        read_objects(graph)
    weighted = _pyg(edge_weight=torch.tensor([1.0, 1, 1, 1, 1, -2]))
    with pytest.raises(InputError, match="negative"):
        read_objects(weighted)


def test_loops_and_repeats_are_counted():
    held = read_objects([(0, 1), (1, 0), (1, 1), (1, 2)])
    assert held.notes == [
        "adjacency: 1 self-loop entries dropped, 1 repeated or reversed entries merged"
    ]


def test_anything_with_an_edge_index():
    held = read_objects(SimpleNamespace(edge_index=NUMBERED, x=np.ones((5, 2)), num_nodes=5))
    assert held.graph.num_nodes == 5
    assert held.feat.shape == (5, 2)
    assert read_objects(SimpleNamespace(edge_index=NUMBERED)).graph.num_nodes == 4
    with pytest.raises(InputError, match="edge_index: expected whole numbers"):
        read_objects(SimpleNamespace(edge_index=NUMBERED * 1.0))
    with pytest.raises(InputError, match="without edge_index"):
        read_objects(SimpleNamespace(adj_t=None, edge_index=None))


class _Heterogeneous:
    edge_types = node_types = ("a", "b")


@pytest.mark.parametrize(
    ("adjacency", "features", "message"),
    [
        (np.array([[0, 1], [1, 0]]), None, "matrix of two nodes or two pairs of nodes"),
        (np.ones((3, 4)), None, r"expected a square .* got shape \(3, 4\)"),
        (object(), None, "got object of shape"),
        ({0: [1], 1: [0]}, None, "got dict: give a square matrix"),
        ({("a", "b"): 2.0, ("b", "c"): 1.0}, None, "got dict: give a square matrix"),
        (pd.DataFrame([(0, 1), (1, 2)]), None, "matrix of two nodes or two pairs of nodes"),
        (pd.DataFrame([("a", "b"), ("b", "c")]), None, "matrix of two nodes or two pairs of"),
        (sp.coo_matrix((3 * 10**9, 3 * 10**9)), None, "needs 96 GB of memory"),
        (_adjacency(), np.ma.masked_equal(np.arange(4.0)[:, None], 2), "missing .masked. cells"),
        ("edges.csv", None, "got str of shape"),
        ([(0, 1, 5), (1, 2, 3), (2, 0, 4)], None, "some are no pairs"),
        ([(0, 1), (1,)], None, "some are no pairs"),
        ([("a", "b"), ("b", None)], None, "pair 1 .* lacks a node"),
        (_Heterogeneous(), None, "several types of nodes"),
        (NUMBERED - 1, None, r"node ids -1\.\.2"),
        (NUMBERED, np.ones((3, 1)), r"node ids 0\.\.3 do not fit a graph of 3 nodes"),
        (EDGES, np.ones((4, 1)), "rows without names, but the nodes have names, such as 'b'"),
        (EDGES, FEAT[:3], "features: no name 'd', which adjacency has"),
        (EDGES, FEAT.rename({"d": "c"}), "features: name 'c' given twice"),
        (pd.DataFrame(_adjacency(), NAMES), None, "the columns of adjacency: no name 'b'"),
        (pd.DataFrame(_adjacency(), columns=NAMES), None, "the columns of adjacency: no name 0"),
        (pd.DataFrame(np.ones((4, 3)), columns=list("abc")), None, r"adjacency\[\[A, B\]\]"),
        (pd.DataFrame(_adjacency(), NAMES, NAMES), FEAT[:3], "no name 'd'|have 3 rows"),
        (_networkx(), FEAT.rename({"a": "A"}), "features: no name 'a', which adjacency has"),
        (nx.Graph([(2, 0), (0, 1)]), np.ones((3, 1)), "in another order"),
        (_adjacency(), np.ones((3, 1)), "4 nodes, but features have 3 rows"),
        (_adjacency(), FEAT.assign(c="red"), "column 'c' has text"),
    ],
)
def test_refused(adjacency, features, message):
    with pytest.raises(InputError, match=message) as caught:
        read_objects(adjacency, features)
    assert "\n" not in str(caught.value)


def test_numbers_as_text_in_one_of_two():
    features = pd.DataFrame({"x": [1.0, 2, 3]}, index=["5", "6", "7"])
    graph = nx.path_graph([5, 6, 7])
    with pytest.raises(InputError, match=r"convert with astype\(str\)"):
        read_objects(graph, features)


def test_graphs_stay_as_they_are():
    graph = _networkx()
    frame = pd.DataFrame(_adjacency(), NAMES, NAMES)
    read_objects(graph, FEAT)
    read_objects(frame, FEAT)
    assert list(graph) == NAMES
    assert frame.equals(pd.DataFrame(_adjacency(), NAMES, NAMES))


def test_entries_at_one_place_are_summed_in_every_format():
    """As SciPy does wherever it reads them; the matrix of the caller stays as it is."""
    places = np.array([0, 0, 0, 1]), np.array([1, 1, 1, 2])
    coo = sp.coo_matrix((np.ones(4), places), shape=(3, 3))
    csr = sp.csr_matrix((np.ones(4), places[1], [0, 3, 4, 4]), shape=(3, 3))
    tensor = torch.sparse_coo_tensor(np.stack(places), np.ones(4), (3, 3))
    for matrix in (coo, csr, csr.tocsc(), tensor, coo.toarray()):
        held = read_objects(matrix)
        np.testing.assert_allclose(held.graph.weight, [1.5, 0.5])
    assert (coo.nnz, csr.nnz) == (4, 4)
    assert "adjacency: 2 repeated entries summed" in read_objects(coo).notes
    # In 8 bits the sum of 256 ones would be 0.
    many = sp.coo_matrix((np.ones(257, np.uint8), ([0] * 256 + [1], [1] * 256 + [2])), (3, 3))
    assert read_objects(many).graph.weight.max() > 1.9


def test_what_is_not_read_is_said():
    graph = dgl.graph((NUMBERED[0], NUMBERED[1]))
    graph.edata["w"] = torch.ones(3)
    assert "edata has w and no weights" in " ".join(read_objects(graph).notes)
    assert "has edge_attr and no weights" in " ".join(read_objects(_pyg(edge_attr=1)).notes)
    table = pd.DataFrame({"id": [7, 8, 9, 6], "x": [1.0, 2, 3, 4], "label": [0, 1, 0, 1]})
    notes = read_objects(_adjacency(), table).notes
    assert notes == [
        f"features: column {name!r} is used as a feature: drop it if it holds classes or ids of "
        "the nodes"
        for name in ("id", "label")
    ]
    positions = table.rename(columns={"id": "z", "label": "y"})
    assert read_objects(_adjacency(), positions).notes == []


@pytest.mark.parametrize("formats", ["csc", ["csr", "csc"]])
def test_a_dglgraph_in_one_sparse_format(formats):
    graph = dgl.graph((NUMBERED[0], NUMBERED[1]))
    graph.edata["weight"] = torch.tensor([1.0, 2.0, 3.0])
    held = read_objects(graph.formats(formats))
    np.testing.assert_allclose(held.graph.weight, [0.5, 1, 1.5])


def test_numbers_of_nodes_without_a_sign():
    assert read_objects(NUMBERED.astype(np.uint32)).graph.num_nodes == 4
