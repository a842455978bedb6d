"""DGLGraphs, and the files of `dgl.save_graphs` that hold them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from user_dgl.data.attributed_graph import AttributedGraph, index_labels
from user_dgl.data.reading.files import file_size
from user_dgl.data.reading.matrices import as_features, graph_from_entries
from user_dgl.data.reading.sandbox import read_in_sandbox
from user_dgl.errors import InputError


class Parts(NamedTuple):
    """What is used of a DGLGraph: nodes, ends (M,), features (N, F), labels (N,)."""

    num_nodes: int
    u: np.ndarray
    v: np.ndarray
    feat: np.ndarray | None
    labels: np.ndarray | None


def load_dgl_file(path: Path, missing: str = "refuse") -> AttributedGraph:
    """The graph in a file of `dgl.save_graphs`, ``ndata["feat"]`` and ``ndata["label"]``.

    DGL reads such files by C++ code and unpickles nothing; see `read_in_sandbox` for where.

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
        File unreadable or damaged, several graphs, or several types of nodes or edges.
    """
    file_size(path)
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: check the path") from None
    return attributed_graph(read_in_sandbox(_read, Path(path)), path, missing)


def graph_parts(graph, source) -> Parts:
    """What is used of a DGLGraph.

    Raises
    ------
    InputError
        Several types of nodes or edges.
    """
    if not graph.is_homogeneous:
        raise InputError(
            f"{source}: has several types of nodes or edges ({', '.join(graph.etypes)}), expected "
            "one"
        )
    feat, labels = graph.ndata.get("feat"), graph.ndata.get("label")
    return Parts(
        graph.num_nodes(),
        # A graph kept in a single format does not list its edges.
        *(end.numpy() for end in graph.formats(["coo", "csr", "csc"]).edges()),
        None if feat is None else feat.numpy(),
        None if labels is None else labels.numpy(),
    )


def attributed_graph(parts: Parts, source, missing: str = "refuse") -> AttributedGraph:
    """Graph, features and labels of a DGLGraph.

    Parameters
    ----------
    parts : Parts
    source : path or text
        What messages name.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Raises
    ------
    InputError
        Features that are no rows of numbers, labels of other types.
    """
    pairs, notes = graph_from_entries(parts.num_nodes, parts.u, parts.v)
    labels = parts.labels
    if labels is not None and labels.ndim != 1:
        notes.append(f"labels of shape {labels.shape} not used: expected one a node")
        labels = None
    return AttributedGraph(
        pairs,
        None if parts.feat is None else as_features(parts.feat, source, missing, notes),
        None if labels is None else index_labels(labels, source),
        notes=tuple(notes),
    )


def _read(path: Path) -> Parts:
    from user_dgl._dgl import dgl  # which takes seconds

    try:
        graphs = dgl.load_graphs(str(path.absolute()))[0]
    except Exception:  # DGL's own, and what its bindings raise; the messages are C++ traces
        raise InputError(f"{path}: no file of dgl.save_graphs, or damaged: save it anew") from None
    if len(graphs) != 1:
        raise InputError(f"{path}: holds {len(graphs)} graphs, expected one")
    return graph_parts(graphs[0], path)
