"""Graphs that a caller holds in memory, and features that belong to them.

Graphs of DGL, networkx, igraph and PyTorch Geometric are recognised by their attributes; none of
these libraries is imported here. Nodes keep the names that the graph gives them.
"""

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from user_dgl.data.attributed_graph import AttributedGraph, some
from user_dgl.data.categories import CategoryEncoder
from user_dgl.data.edge_list.names import labels_or_ids
from user_dgl.data.formats.dgl_file import Parts, graph_of
from user_dgl.data.reading.matrices import (
    as_features,
    graph_from_entries,
    graph_from_matrix,
    graph_from_pairs,
    weighed,
)
from user_dgl.data.tables import (
    Table,
    as_array,
    as_index,
    as_matrix,
    as_table,
    is_default,
    positions_of,
    shown,
)
from user_dgl.errors import InputError
from user_dgl.graph import Graph

_FORMS = (
    "give a square matrix, an edge_index (2, M), pairs of nodes (M, 2), or a graph of networkx, "
    "igraph, DGL or PyTorch Geometric"
)


@dataclass(frozen=True, eq=False)
class HeldGraph:
    """A graph that was taken from an object.

    Attributes
    ----------
    graph : Graph
    names : pandas Index (N,) or None
        Names of the nodes in node order. None means the numbers 0..N-1.
    feat : object or None
        Features that the object carries, in node order, not yet converted.
    notes : list of str
        Lines for the user that say what was cleaned or decided.
    """

    graph: Graph
    names: pd.Index | None = None
    feat: Any = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class HeldData:
    """A graph and its features, as `read_objects` returns them.

    Attributes
    ----------
    graph : Graph
    feat : scipy CSR (N, F) float32, or None
    names : pandas Index (N,) or None
        Names of the nodes in node order. None means the numbers 0..N-1.
    columns : ndarray (F,) of str, or None
        Names of the columns of the features, if they have any.
    notes : list of str
    """

    graph: Graph
    feat: sp.csr_matrix | None
    names: pd.Index | None
    columns: np.ndarray | None
    notes: list[str]


def read_objects(
    adjacency: Any, features: Any = None, encoder: CategoryEncoder | None = None
) -> HeldData:
    """Take a graph and its features from objects in memory.

    The adjacency may be:

    - a square matrix (N, N) of any kind that `as_table` reads: every entry other than 0 is an edge.
      Entries of a sparse matrix at one place are summed. The columns of a DataFrame are put into
      the order of its rows, by name;
    - a graph of networkx, igraph, DGL or PyTorch Geometric;
    - an ``edge_index`` (2, M) of whole numbers, which are nodes 0..N-1. N is the number of rows of
      the features, or else the largest number plus 1;
    - pairs of nodes (M, 2), as an array, a DataFrame of two columns or a collection of tuples. The
      nodes may have any names. They are the rows of the features if those have names. Whole
      numbers are nodes 0..N-1 if there are features of N rows without names. Else the nodes are
      those that the pairs name, in ascending order.

    Rows of features that have names, as in a DataFrame with an index, are put into the order of the
    nodes by name. Other rows are in the order of the nodes.

    Parameters
    ----------
    adjacency : object
    features : object, optional
        None: ``ndata["feat"]`` of a DGLGraph, ``x`` of a graph of PyTorch Geometric, else none.
    encoder : CategoryEncoder, optional
        See `as_table`.

    Raises
    ------
    InputError
        The objects are of no known kind, are malformed or do not fit each other.
    """
    table = None if features is None else as_table(features, "features", encoder)
    held = _graph(adjacency, table)
    if table is None and held.feat is not None:
        table = as_table(held.feat, "features")
    names, feat, columns = held.names, None, None
    if table is not None:
        feat, columns = as_features(table.matrix, "features"), table.columns
        AttributedGraph(held.graph, feat)  # checks that they belong together
        names, order = _matched(names, table, held.graph.num_nodes)
        if order is not None:
            feat = feat[order]
    notes = [f"adjacency: {note}" for note in held.notes]
    for column in [] if columns is None else labels_or_ids(columns):
        notes.append(
            f"features: column {shown(column)} is used as a feature: drop it if it holds classes "
            "or ids of the nodes"
        )
    if encoder is not None and encoder.columns:
        notes.append(f"features: {encoder.note()}")
    return HeldData(held.graph, feat, names, columns, notes)


def _matched(
    names: pd.Index | None, table: Table, num_nodes: int
) -> tuple[pd.Index | None, np.ndarray | None]:
    """Match rows of features to nodes: names of the nodes, and the row of each (None: in order)."""
    numbers = pd.RangeIndex(num_nodes)
    if table.rows is None:
        if names is None or names.equals(numbers):
            return names, None
        if len(names.difference(numbers)) == 0:
            raise InputError(
                "features: the nodes are the numbers 0, 1, 2, ... in another order, and rows "
                "without names could belong to the numbers or to that order: give a DataFrame "
                "whose index has the nodes (an index 0, 1, 2, ... counts as no names: make it a "
                "list of the numbers, features.index = list(features.index))"
            )
        return names, None
    if names is not None:
        return names, positions_of(names, table.rows, "adjacency", "features")
    if len(table.rows.difference(numbers)) == 0:
        return None, positions_of(numbers, table.rows, "adjacency", "features")
    # Rows of a matrix have no names, so they can only be in the order of the features.
    return table.rows, None


def _graph(adjacency: Any, table: Table | None) -> HeldGraph:
    """Take a graph from an object of any kind."""
    for recognises, read in _LIBRARIES:
        if recognises(adjacency):
            return read(adjacency, table)
    if isinstance(adjacency, pd.DataFrame):
        return _of_frame(adjacency, table)
    kind = type(adjacency).__name__
    if isinstance(adjacency, dict) and not sp.issparse(adjacency):
        # As a collection it would be its keys: the pairs without their weights, or the nodes.
        raise InputError(f"adjacency: got {kind}: {_FORMS}")
    if isinstance(adjacency, Collection) and not hasattr(adjacency, "shape"):
        adjacency = list(adjacency)  # for example the edges of a graph of networkx
        if tuple in set(map(type, adjacency)):
            return _of_pairs(*_ends(adjacency), table)
    array = as_array(adjacency, "adjacency")
    if array.ndim != 2:
        raise InputError(
            f"adjacency: expected a square matrix, got {kind} of shape {array.shape}: {_FORMS}"
        )
    if isinstance(array, np.ndarray) and 2 in array.shape:
        rows, columns = array.shape
        if rows == columns and array.dtype.kind in "iu":
            raise InputError(
                "adjacency: an array (2, 2) of whole numbers is a matrix of two nodes or two pairs "
                "of nodes: give a SciPy matrix for the first, a list of tuples for the second"
            )
        if rows == 2 and array.dtype.kind in "iu":
            return _of_edge_index(array, table)
        if columns == 2 and array.dtype.kind in "iuUO":
            return _of_pairs(array[:, 0], array[:, 1], table)
    matrix, summed = _summed(as_matrix(array, "adjacency"))
    graph, notes = graph_from_matrix(matrix, "adjacency")
    return HeldGraph(graph, notes=[*summed, *notes])


def _summed(matrix: Any) -> tuple[Any, list[str]]:
    """Sum entries that a sparse matrix has at one place, as SciPy does wherever it reads them.

    Other formats than these have one entry at a place.
    """
    if getattr(matrix, "format", None) not in ("coo", "csr", "csc") or matrix.has_canonical_format:
        return matrix, []
    before = matrix.nnz
    # In small integers a sum could overflow. Booleans stay booleans.
    matrix = matrix.astype(np.float64) if matrix.dtype.kind in "iu" else matrix.copy()
    matrix.sum_duplicates()
    number = before - matrix.nnz
    return matrix, [f"{number} repeated entries summed"] if number else []


def _of_frame(frame: pd.DataFrame, table: Table | None) -> HeldGraph:
    """Take a graph from a square DataFrame, or from one of two columns with pairs of nodes."""
    num_rows, num_columns = frame.shape
    if num_columns == 2 != num_rows:
        return _of_pairs(frame.iloc[:, 0].to_numpy(), frame.iloc[:, 1].to_numpy(), table)
    if num_rows != num_columns:
        raise InputError(
            f"adjacency: a DataFrame of shape {frame.shape} is no square matrix; for a list of "
            "edges, give the two columns with the ends: adjacency[[A, B]]"
        )
    names = None
    named = not (is_default(frame.index) and is_default(frame.columns))
    if num_rows == 2 and (not named or is_default(frame.index)):
        kinds = {kind.kind for kind in frame.dtypes}  # "O" is that of text too
        if kinds <= set("iuO"):
            raise InputError(
                "adjacency: a DataFrame (2, 2) is a matrix of two nodes or two pairs of nodes: "
                "give a SciPy matrix for the first, a list of tuples for the second"
            )
    if named:
        names = frame.index
        place = positions_of(names, frame.columns, "its index", "the columns of adjacency")
        frame = frame.iloc[:, place]
    graph, notes = graph_from_matrix(as_matrix(frame, "adjacency"), "adjacency")
    return HeldGraph(graph, names, notes=notes)


def _of_edge_index(
    edge_index: np.ndarray,
    table: Table | None,
    num_nodes: int | None = None,
    weight: np.ndarray | None = None,
) -> HeldGraph:
    """Take a graph from numbers of nodes (2, M), and a weight for each edge."""
    if num_nodes is None and table is not None:
        num_nodes = table.matrix.shape[0]
    if num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.size else 0
    u, v = edge_index
    graph, notes = graph_from_entries(num_nodes, u, v, weight)
    return HeldGraph(graph, notes=notes)


def _ends(rows: list[Any]) -> tuple[list[Any], list[Any]]:
    """Split pairs into their first and their second ends."""
    if set(map(type, rows)) - {tuple, list} or set(map(len, rows)) != {2}:
        raise InputError(
            "adjacency: a list of tuples, of which some are no pairs: expected the two ends of an "
            "edge in each; for weights, give a SciPy matrix or a graph of networkx"
        )
    u, v = zip(*rows, strict=True)
    return list(u), list(v)


def _of_pairs(u: Any, v: Any, table: Table | None) -> HeldGraph:
    """Take a graph from the names of the two ends of each edge, see `read_objects`."""
    arrays = isinstance(u, np.ndarray) and isinstance(v, np.ndarray)
    named = pd.Index(np.concatenate([u, v])) if arrays else as_index([*u, *v])
    if named.hasnans:
        row = int(np.flatnonzero(named.isna())[0]) % len(u)
        raise InputError(f"adjacency: pair {row} (counted from 0) lacks a node: remove it")
    whole = pd.api.types.is_integer_dtype(named.dtype)
    notes: list[str] = []
    if table is not None and table.rows is None:
        num_nodes = table.matrix.shape[0]
        if not whole:
            raise InputError(
                "features: rows without names, but the nodes have names, such as "
                f"{shown(named[0])}: give a DataFrame whose index has the names"
            )
        ends = named.to_numpy(dtype=np.int64)
        graph, cleaned = graph_from_pairs(num_nodes, *ends.reshape(2, -1))
        return HeldGraph(graph, notes=cleaned)
    codes, first = pd.factorize(named)
    distinct = as_index(first) if named.dtype == object else pd.Index(first)
    if table is not None:
        assert table.rows is not None
        names = table.rows
        known = names.is_unique and bool((names.get_indexer(distinct) >= 0).all())
        if not known:
            positions_of(distinct, names, "adjacency", "features")
    else:
        try:
            names = distinct.sort_values()
        except TypeError:  # names of several types
            names = distinct
    place = names.get_indexer(distinct)[codes]
    graph, cleaned = graph_from_pairs(len(names), *place.reshape(2, -1))
    if whole and table is None:
        numbers = pd.RangeIndex(len(names))
        if names.equals(numbers):
            return HeldGraph(graph, notes=cleaned)
        notes.append(
            f"the pairs name {len(names)} of the numbers {names[0]}..{names[-1]}, and these are "
            "the nodes, in ascending order (node_names_)"
        )
    return HeldGraph(graph, names, notes=[*notes, *cleaned])


# Graphs of other libraries -----------------------------------------------------------------------


def _is_dgl(adjacency: Any) -> bool:
    dgl = sys.modules.get("dgl")  # a caller who has a DGLGraph has imported DGL
    return dgl is not None and isinstance(adjacency, dgl.DGLGraph)


def _of_dgl(adjacency: Any, table: Table | None) -> HeldGraph:
    if not adjacency.is_homogeneous:
        raise InputError(
            "adjacency: a DGLGraph of several types of nodes or edges: give a homogeneous one"
        )
    # Weights are in the order of the ids of the edges. A graph that is kept in one sparse format
    # only does not list its edges.
    listed = adjacency.formats(["coo", "csr", "csc"])
    u, v = (end.cpu().numpy() for end in listed.edges(order="eid"))
    weight = adjacency.edata.get("weight")
    if weight is not None:
        weight = as_array(weight, "adjacency.edata['weight']")
    parts = Parts(adjacency.num_nodes(), u, v, weight, None, None)
    graph, notes = graph_of(parts, "adjacency")
    if weight is None:
        notes = [*notes, *_not_read("edata", adjacency.edata, "edata['weight']")]
    return HeldGraph(graph, feat=adjacency.ndata.get("feat"), notes=notes)


def _not_read(where: str, found: Collection[str], wanted: str) -> list[str]:
    """Say that a graph has data of its edges, and that they are not read as weights."""
    # DGL keeps ids in names that start with an underscore.
    names = sorted(name for name in found if not name.startswith("_"))
    if not names:
        return []
    return [f"{where} has {some(names)} and no weights: nothing is read from it; set {wanted}"]


def _is_networkx(adjacency: Any) -> bool:
    return all(hasattr(adjacency, name) for name in ("is_multigraph", "is_directed", "adj"))


def _of_networkx(adjacency: Any, table: Table | None) -> HeldGraph:
    nodes, edges = list(adjacency), list(adjacency.edges(data="weight"))
    place = dict(zip(nodes, range(len(nodes)), strict=True))
    u, v, weight = zip(*edges, strict=True) if edges else ((), (), ())
    ends = [np.fromiter(map(place.__getitem__, end), np.int64, len(end)) for end in (u, v)]
    return _of_library(as_index(nodes), ends, weight, adjacency.is_directed())


def _is_igraph(adjacency: Any) -> bool:
    return all(hasattr(adjacency, name) for name in ("vcount", "get_edgelist", "vs", "es"))


def _of_igraph(adjacency: Any, table: Table | None) -> HeldGraph:
    names: Any = range(adjacency.vcount())
    if "name" in adjacency.vs.attributes():
        names = adjacency.vs["name"]
    ends = np.array(adjacency.get_edgelist(), dtype=np.int64).reshape(-1, 2).T
    weight = adjacency.es["weight"] if "weight" in adjacency.es.attributes() else ()
    return _of_library(as_index(names), ends, weight, adjacency.is_directed())


def _is_pyg(adjacency: Any) -> bool:
    return any(hasattr(adjacency, name) for name in ("edge_index", "adj_t", "edge_types"))


def _of_pyg(adjacency: Any, table: Table | None) -> HeldGraph:
    kinds = getattr(adjacency, "edge_types", None)
    if kinds is not None:
        raise InputError(
            "adjacency: a graph of PyTorch Geometric of several types of nodes or edges: give a "
            "homogeneous one, for example adjacency.to_homogeneous()"
        )
    edge_index = getattr(adjacency, "edge_index", None)
    if edge_index is None:
        raise InputError(
            "adjacency: a graph of PyTorch Geometric without edge_index: give its adj_t as a SciPy "
            "matrix (adj_t.to_scipy())"
        )
    ends = as_array(edge_index, "adjacency.edge_index")
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu":
        raise InputError(
            f"adjacency.edge_index: expected whole numbers (2, M), got shape {ends.shape} and type "
            f"{ends.dtype}"
        )
    feat = getattr(adjacency, "x", None)
    num_nodes = None if feat is None else len(feat)
    # PyTorch Geometric guesses the number of nodes if nobody gave it, with a warning.
    if num_nodes is None and "num_nodes" in getattr(adjacency, "keys", lambda: ["num_nodes"])():
        num_nodes = getattr(adjacency, "num_nodes", None)
    weight = getattr(adjacency, "edge_weight", None)
    if weight is not None:
        numbers = as_array(weight, "adjacency.edge_weight")
        ends, weight, notes = weighed(ends, numbers, "adjacency")
    else:
        found = [n for n in ("edge_attr", "weight") if getattr(adjacency, n, None) is not None]
        notes = _not_read("the graph", found, "edge_weight")
    held = _of_edge_index(ends, table, num_nodes, weight)
    return HeldGraph(held.graph, feat=feat, notes=[*held.notes, *notes])


_LIBRARIES: tuple[tuple[Callable[[Any], bool], Callable[[Any, Table | None], HeldGraph]], ...] = (
    (_is_dgl, _of_dgl),
    (_is_networkx, _of_networkx),
    (_is_igraph, _of_igraph),
    (_is_pyg, _of_pyg),
)


def _of_library(names: pd.Index, ends: Any, weight: Any, directed: bool) -> HeldGraph:
    """Make a graph from edges between the nodes ``names``, with a weight each, or None."""
    ends, notes, values = np.stack(ends), list[str](), None
    if any(each is not None for each in weight):
        # An edge without the attribute weighs 1, as in networkx.
        given = [1 if each is None else each for each in weight]
        numbers = pd.Series(given, dtype=object).infer_objects().to_numpy()
        ends, values, notes = weighed(ends, numbers, "adjacency")
    make = graph_from_entries if directed else graph_from_pairs
    u, v = ends
    graph, cleaned = make(len(names), u, v, values)
    numbered = names.equals(pd.RangeIndex(len(names)))
    return HeldGraph(graph, None if numbered else names, notes=[*cleaned, *notes])
