"""GraphML: a graph with features ``feat_*`` and a class ``label`` as attributes of its nodes."""

import io
import math
import re
import warnings
from pathlib import Path
from typing import Any
from xml.parsers import expat

import networkx as nx
import numpy as np

from user_dgl.data.attributed_graph import AttributedGraph, index_labels, one_line
from user_dgl.data.reading.files import read_bytes
from user_dgl.data.reading.ids import as_text, index_ids
from user_dgl.data.reading.matrices import as_features, graph_from_entries
from user_dgl.errors import InputError
from user_dgl.graph import Graph

FEATURE_PREFIX = "feat_"
LABEL = "label"
_WEIGHT = "weight"
# Times of its size that a file takes once it is a graph of networkx.
_COPIES = 10


def load_graphml(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Graph, features and labels of a GraphML file, gzipped or not.

    Entities are refused where they are declared, so none is ever expanded.

    Parameters
    ----------
    path : Path
        Attributes of nodes that are called ``feat_*`` are features, in the order of their numbers
        or else of their names; ``label`` is the class, unless it differs from node to node, as
        names do. ``weight`` of edges counts as in a list of edges: 0 is no edge.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Returns
    -------
    AttributedGraph
        Nodes in ascending order of their ids, as for a list of edges; undirected.

    Raises
    ------
    InputError
        File unreadable, not GraphML (with the line), several graphs, an id given twice or an edge
        to an unknown one, features that are no numbers, negative weights.
    """
    data = read_bytes(path, _COPIES)
    _Checker(path).check(data)
    graph = _parse(data, path)
    notes: list[str] = []
    if not len(graph):
        raise InputError(f"{path}: no nodes: expected node elements in the graph")
    codes, names = index_ids(np.array(list(graph), dtype=object))
    if len(names) < len(codes):
        raise InputError(f"{path}: ids that differ by blanks around them: rename them")
    order = np.argsort(codes)
    nodes = [(name, graph.graph["node_default"] | values) for name, values in graph.nodes.items()]
    feat = _features(nodes, path, missing, notes)
    labels = _labels(nodes, path, notes)
    pairs = _edges(graph, dict(zip(graph, codes.tolist(), strict=True)), path, notes)
    return AttributedGraph(
        pairs,
        None if feat is None else feat[order],
        None if labels is None else labels[order],
        tuple(as_text(names).tolist()),
        tuple(notes),
    )


class _Checker:
    """A pass over the file that finds what networkx takes silently, and knows the lines."""

    def __init__(self, path: Path):
        self.path = path
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.EntityDeclHandler = self.refuse_entity
        self.parser.StartElementHandler = self.element
        self.num_graphs = 0
        self.nodes: set[str] = set()
        self.ends: list[tuple[int, str, str]] = []

    def check(self, data: bytes) -> None:
        """Raise `InputError` where a file is malformed or its parts do not fit each other."""
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            problem = expat.ErrorString(error.code)
            raise InputError(f"{self.path}:{error.lineno}: not XML: {problem}: fix it") from None
        except InputError:
            raise
        except (ValueError, LookupError) as error:  # an encoding that it does not know
            problem = one_line(error)
            raise InputError(f"{self.path}: not XML ({problem}): save it as UTF-8") from None
        if self.num_graphs != 1:
            raise InputError(f"{self.path}: holds {self.num_graphs} graphs: expected one")
        for line, *ends in self.ends:
            for name in ends:
                if name not in self.nodes:
                    raise InputError(
                        f"{self.path}:{line}: edge to node {name!r}, which no node element names"
                    )

    def refuse_entity(self, name, *_) -> None:
        raise self.error(f"entity {name!r}: entities are not expanded: write the text out")

    def element(self, tag: str, attributes: dict[str, str]) -> None:
        kind = tag.rpartition(" ")[2]
        if kind == "graph":
            self.num_graphs += 1
        elif kind == "hyperedge":
            raise self.error("a hyperedge: expected edges of two nodes")
        elif kind == "node":
            name = self.attribute(attributes, "node", "id")
            if name in self.nodes:
                raise self.error(f"node {name!r} given twice: keep one")
            self.nodes.add(name)
        elif kind == "edge":
            ends = [self.attribute(attributes, "edge", end) for end in ("source", "target")]
            self.ends.append((self.parser.CurrentLineNumber, *ends))

    def attribute(self, attributes: dict[str, str], element: str, name: str) -> str:
        if not attributes.get(name, "").strip():
            raise self.error(f"{element} without {name}: add it")
        return attributes[name]

    def error(self, problem: str) -> InputError:
        return InputError(f"{self.path}:{self.parser.CurrentLineNumber}: {problem}")


def _parse(data: bytes, path: Path) -> nx.Graph:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parts that are not used
            return nx.read_graphml(io.BytesIO(data), force_multigraph=True)
    except Exception as error:  # networkx lets through what its parts raise on odd values
        raise InputError(f"{path}: not a usable GraphML file ({one_line(error)}): fix it") from None


def _features(nodes: list[tuple[str, dict[str, Any]]], path, missing, notes):
    columns = sorted(
        {key for _, values in nodes for key in values if key.startswith(FEATURE_PREFIX)},
        key=_natural,
    )
    if not columns:
        return None
    dense = np.full((len(nodes), len(columns)), np.nan, dtype=np.float32)
    for row, (name, values) in enumerate(nodes):
        for column, key in enumerate(columns):
            if key in values:
                dense[row, column] = _number(values[key], f"{path}: node {name!r}: {key}")
    notes.append(f"{len(columns)} features {FEATURE_PREFIX}*")
    return as_features(dense, path, missing, notes)


def _natural(key: str) -> tuple[float, str]:
    number = key.removeprefix(FEATURE_PREFIX)
    return (int(number), "") if re.fullmatch("[0-9]{1,9}", number) else (math.inf, number)


def _number(value, where: str) -> float:
    if value == "":
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where}={value!r} is not a number: fix it") from None


def _labels(nodes, path, notes) -> np.ndarray | None:
    values = [values.get(LABEL) for _, values in nodes]
    labels = index_labels(np.array(values, dtype=object), path)
    given = labels[labels >= 0]
    if not len(given):
        return None
    if len(np.unique(given)) == len(given) > 2:
        notes.append(f"{LABEL} differs from node to node: taken for a name, not for a class")
        return None
    return labels


def _edges(graph: nx.MultiGraph, place: dict[str, int], path, notes) -> Graph:
    default = graph.graph["edge_default"].get(_WEIGHT, 1.0)
    u, v, zeros, others = [], [], 0, 0
    for source, target, value in graph.edges(data=_WEIGHT, default=default):
        weight = _number(value, f"{path}: edge {source!r} to {target!r}: {_WEIGHT}")
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"{path}: edge {source!r} to {target!r}: weight {value!r}: expected 0 or more"
            )
        if weight:
            u.append(place[source])
            v.append(place[target])
        zeros += weight == 0
        others += weight not in (0, 1)
    u, v = np.array(u, dtype=np.int64), np.array(v, dtype=np.int64)
    if graph.is_directed():
        pairs, cleaned = graph_from_entries(len(place), u, v)
    else:
        pairs, cleaning = Graph.from_edges(len(place), u, v)
        cleaned = [str(cleaning)] if str(cleaning) else []
    if zeros:
        cleaned.append(f"{zeros} edges of weight 0 dropped")
    if others:
        cleaned.append(f"{others} weights other than 1 ignored: every edge counts 1")
    notes.extend(cleaned)
    return pairs
