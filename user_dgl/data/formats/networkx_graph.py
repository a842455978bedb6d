"""From a graph of networkx to an `AttributedGraph`, and the check of XML before networkx reads it.

Node attributes ``feat_*`` are features, and ``label`` is the class, whatever the format is.
"""

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import AttributedGraph, index_labels, one_line
from user_dgl.data.edge_list.names import is_weight
from user_dgl.data.reading.ids import as_text, index_ids
from user_dgl.data.reading.matrices import as_features, graph_from_entries, graph_from_pairs
from user_dgl.errors import InputError
from user_dgl.graph import Graph

if TYPE_CHECKING:
    import networkx as nx

FEATURE_PREFIX = "feat_"
LABEL = "label"
_WEIGHT = "weight"
# Name and attributes of each node.
_Nodes = list[tuple[str, dict[str, Any]]]


def parsed(parse: Callable[[ModuleType], "nx.Graph"], path: Path, what: str) -> "nx.Graph":
    """Return what a reader of networkx returns, with one message for whatever it raises.

    Parameters
    ----------
    parse : callable
        Reads the file. Its argument is the module networkx, which is imported here, because most
        runs read other formats.
    path : Path
    what : str
        Name of the format, for the message.

    Raises
    ------
    InputError
        ``parse`` raised an exception.
    """
    import networkx

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # networkx warns about parts that are not used here
            return parse(networkx)
    except Exception as error:  # networkx raises many kinds on odd values
        raise InputError(f"{path}: not a usable {what} file ({one_line(error)}): fix it") from None


def from_networkx(
    graph: "nx.Graph", path: Path, missing: str, names: dict[Any, str] | None = None
) -> AttributedGraph:
    """Make an `AttributedGraph`.

    The node attributes ``feat_*`` are the features, sorted by their numbers or, if the rest of the
    name is not a number, by name. The node attribute ``label`` is the class. If it is different for
    every node, it is treated as a name and not used. The edge attribute ``weight`` is used, and
    an edge of weight 0 is not an edge.

    Parameters
    ----------
    graph : networkx graph of any kind
    path : Path
        Name for messages.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.
    names : dict, optional
        Id of each node; default: the node itself.

    Returns
    -------
    AttributedGraph
        Undirected, with nodes in ascending order of their ids, as for a list of edges.

    Raises
    ------
    InputError
        There are no nodes, ids are missing or differ only by blanks, a feature is not a number, or
        a weight is negative.
    """
    notes: list[str] = []
    if not len(graph):
        raise InputError(f"{path}: no nodes: expected at least one node in the graph")
    ids = [_joined(str(node) if names is None else names[node], path) for node in graph]
    codes, distinct = index_ids(np.array(ids, dtype=object))
    if len(distinct) < len(codes):
        raise InputError(f"{path}: some ids differ only by blanks around them: rename them")
    order = np.argsort(codes)
    default = graph.graph.get("node_default", {})
    nodes = [(str(name), default | values) for name, values in graph.nodes.items()]
    feat = _features(nodes, path, missing, notes)
    labels = _labels(nodes, path, notes)
    pairs = _edges(graph, dict(zip(graph, codes.tolist(), strict=True)), path, notes)
    return AttributedGraph(
        pairs,
        None if feat is None else feat[order],
        None if labels is None else labels[order],
        tuple(as_text(distinct).tolist()),
        tuple(notes),
    )


def _joined(name: str, path: Path) -> str:
    """Join the halves of characters that a file has as two UTF-16 units each."""
    if name.isascii():
        return name
    try:
        return name.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise InputError(f"{path}: id {name!r} has half a character: rename the node") from None


def names_of(graph: "nx.Graph", attributes: tuple[str, ...]) -> tuple[str, dict[Any, str]] | None:
    """Return the first attribute that names every node, and the names; None if none does.

    An attribute names the nodes if every node has it, as text that is not blank and that no other
    node has.
    """
    for attribute in attributes:
        values = {node: data.get(attribute) for node, data in graph.nodes.items()}
        texts = [v.strip() for v in values.values() if isinstance(v, str) and v.strip()]
        if len(graph) == len(texts) == len(set(texts)):
            return attribute, values
    return None


class XmlChecker:
    """Parser of GraphML and GEXF that finds faults which networkx accepts, with line numbers.

    Parameters
    ----------
    path : Path
        Name for messages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.EntityDeclHandler = self.refuse_entity
        self.parser.StartElementHandler = self.element
        self.num_graphs = 0
        self.nodes: set[str] = set()
        self.ends: list[tuple[int, str, str]] = []

    def check(self, data: bytes) -> None:
        """Raise `InputError` if the file is malformed or its parts do not fit each other."""
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            problem = expat.ErrorString(error.code)
            raise InputError(f"{self.path}:{error.lineno}: not XML: {problem}: fix it") from None
        except InputError:
            raise
        except (ValueError, LookupError) as error:  # the parser does not know the encoding
            problem = one_line(error)
            raise InputError(f"{self.path}: not XML ({problem}): save it as UTF-8") from None
        if self.num_graphs != 1:
            raise InputError(f"{self.path}: holds {self.num_graphs} graphs: expected one")
        for line, source, target in self.ends:
            for name in (source, target):
                if name not in self.nodes:
                    raise InputError(
                        f"{self.path}:{line}: edge to node {name!r}, but no node element has this "
                        "id"
                    )

    def refuse_entity(self, name: str, *_: object) -> None:
        """Handle the declaration of an entity."""
        raise self.error(
            f"entity {name!r}: entities are not supported: replace each one by its text"
        )

    def element(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        kind = tag.rpartition(" ")[2]
        if kind == "graph":
            self.num_graphs += 1
        elif kind == "hyperedge":
            raise self.error("a hyperedge: expected edges between two nodes")
        elif kind == "node":
            name = self.attribute(attributes, "node", "id")
            if name in self.nodes:
                raise self.error(f"node {name!r} given twice: keep one")
            self.nodes.add(name)
        elif kind == "edge":
            source = self.attribute(attributes, "edge", "source")
            target = self.attribute(attributes, "edge", "target")
            self.ends.append((self.parser.CurrentLineNumber, source, target))

    def attribute(self, attributes: dict[str, str], element: str, name: str) -> str:
        """Return an attribute of an element, which must not be missing or blank."""
        if not attributes.get(name, "").strip():
            raise self.error(f"{element} without {name}: add it")
        return attributes[name]

    def error(self, problem: str) -> InputError:
        """Make an error that names the current line."""
        return InputError(f"{self.path}:{self.parser.CurrentLineNumber}: {problem}")


def _features(nodes: _Nodes, path: Path, missing: str, notes: list[str]) -> sp.csr_matrix | None:
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


def _number(value: str | float, where: str) -> float:
    if value == "":
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where}={value!r} is not a number: fix it") from None


def _labels(nodes: _Nodes, path: Path, notes: list[str]) -> np.ndarray | None:
    values = [values.get(LABEL) for _, values in nodes]
    labels = index_labels(np.array(values, dtype=object), path)
    given = labels[labels >= 0]
    if not len(given):
        return None
    if len(np.unique(given)) == len(given) > 2:
        notes.append(f"{LABEL} is different for every node, so it is not used as a class")
        return None
    return labels


def _edges(graph: "nx.MultiGraph", place: dict[Any, int], path: Path, notes: list[str]) -> Graph:
    default = graph.graph.get("edge_default", {}).get(_WEIGHT, 1.0)
    sources: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    zeros = 0
    for source, target, value in graph.edges(data=_WEIGHT, default=default):
        weight = _number(value, f"{path}: edge {source!r} to {target!r}: {_WEIGHT}")
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"{path}: edge {source!r} to {target!r}: weight {value!r}: expected 0 or more"
            )
        if weight:
            sources.append(place[source])
            targets.append(place[target])
            weights.append(weight)
        zeros += weight == 0
    u, v = np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64)
    make = graph_from_entries if graph.is_directed() else graph_from_pairs
    pairs, cleaned = make(len(place), u, v, np.array(weights))
    if zeros:
        cleaned.append(f"{zeros} edges of weight 0 dropped")
    notes.extend(cleaned)
    names = set(graph.graph.get("edge_default", {}))
    for _, _, values in graph.edges(data=True):
        names.update(values)
    if _WEIGHT not in names:
        notes += [
            f"edge attribute {name} is not read: rename it to {_WEIGHT} if it is the weight"
            for name in sorted(filter(is_weight, names))
        ]
    return pairs
