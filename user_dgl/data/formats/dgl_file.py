"""Read DGLGraphs and the files of `dgl.save_graphs`."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from user_dgl.data.attributed_graph import AttributedGraph, index_labels
from user_dgl.data.reading.files import file_size
from user_dgl.data.reading.matrices import as_features, graph_from_entries, weighed
from user_dgl.data.reading.sandbox import read_in_sandbox
from user_dgl.errors import InputError
from user_dgl.graph import Graph


class Parts(NamedTuple):
    """Parts of a DGLGraph that are used.

    Attributes
    ----------
    num_nodes : int
    u, v : int64 (M,)
        Ends of the edges.
    weight : ndarray (M,) or None
    feat : ndarray (N, F) or None
    labels : ndarray (N,) or None
    """

    num_nodes: int
    u: np.ndarray
    v: np.ndarray
    weight: np.ndarray | None
    feat: np.ndarray | None
    labels: np.ndarray | None


def load_dgl_file(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load the graph in a file of `dgl.save_graphs`.

    Used are ``edata["weight"]``, ``ndata["feat"]`` and ``ndata["label"]``, where they are given.
    DGL reads such files with C++ code and does not unpickle anything. It runs in a process of its
    own, see `read_in_sandbox`.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Returns
    -------
    AttributedGraph

    Raises
    ------
    InputError
        The file is unreadable or damaged, contains several graphs, or its graph has several types
        of nodes or edges.
    """
    file_size(path)
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: check the path") from None
    return attributed_graph(read_in_sandbox(_read, Path(path)), path, missing)


def graph_parts(graph: Any, source: Path | str) -> Parts:
    """Extract the parts of a DGLGraph that are used.

    Parameters
    ----------
    graph : dgl.DGLGraph
    source : path or text
        Name for messages.

    Raises
    ------
    InputError
        The graph has several types of nodes or edges.
    """
    if not graph.is_homogeneous:
        raise InputError(
            f"{source}: has several types of nodes or edges ({', '.join(graph.etypes)}), expected "
            "one"
        )
    feat, labels = graph.ndata.get("feat"), graph.ndata.get("label")
    weight = graph.edata.get("weight")
    # A graph that is kept in one sparse format only does not list its edges. Features of edges are
    # in the order of the ids of the edges.
    u, v = (end.numpy() for end in graph.formats(["coo", "csr", "csc"]).edges(order="eid"))
    return Parts(
        graph.num_nodes(),
        u,
        v,
        None if weight is None else weight.numpy(),
        None if feat is None else feat.numpy(),
        None if labels is None else labels.numpy(),
    )


def attributed_graph(parts: Parts, source: Path | str, missing: str = "refuse") -> AttributedGraph:
    """Make an `AttributedGraph` from the parts of a DGLGraph.

    Parameters
    ----------
    parts : Parts
    source : path or text
        Name for messages.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Raises
    ------
    InputError
        The features are not rows of numbers, the labels are not numbers or text, or the weights
        are not a number of 0 or more for each edge.
    """
    pairs, notes = graph_of(parts, source)
    labels = parts.labels
    if labels is not None and labels.ndim != 1:
        notes.append(f"labels of shape {labels.shape} are not used: expected one label per node")
        labels = None
    return AttributedGraph(
        pairs,
        None if parts.feat is None else as_features(parts.feat, source, missing, notes),
        None if labels is None else index_labels(labels, source),
        notes=tuple(notes),
    )


def graph_of(parts: Parts, source: Path | str) -> tuple[Graph, list[str]]:
    """Make the graph from the parts of a DGLGraph, and notes on what was cleaned.

    Edges of weight 0 are dropped.

    Raises
    ------
    InputError
        ``edata["weight"]`` is not a number of 0 or more for each edge.
    """
    ends, weight, notes = np.stack([parts.u, parts.v]), parts.weight, list[str]()
    if weight is not None:
        if weight.shape == (ends.shape[1], 1):
            weight = weight[:, 0]
        ends, weight, notes = weighed(ends, weight, f"{source}: edata['weight']")
    u, v = ends
    graph, cleaned = graph_from_entries(parts.num_nodes, u, v, weight)
    return graph, [*cleaned, *notes]


def _read(path: Path) -> Parts:
    from user_dgl._dgl import dgl  # imported here because the import takes seconds

    try:
        graphs = dgl.load_graphs(str(path.absolute()))[0]
    except Exception:  # DGL and its bindings raise many kinds; their messages are C++ traces
        raise InputError(
            f"{path}: not a file of dgl.save_graphs, or damaged: save it again"
        ) from None
    if len(graphs) != 1:
        raise InputError(f"{path}: holds {len(graphs)} graphs, expected one")
    return graph_parts(graphs[0], path)
