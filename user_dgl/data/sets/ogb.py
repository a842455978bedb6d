"""Load node data sets of the Open Graph Benchmark from the unpacked files ``raw/*.csv.gz``."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from user_dgl.data.attributed_graph import AttributedGraph, index_labels, one_line
from user_dgl.data.reading.files import check_room, unpacked_size
from user_dgl.data.reading.matrices import as_features, graph_from_entries
from user_dgl.errors import InputError


def load_ogb(folder: Path) -> AttributedGraph:
    """Load a data set of one graph with features and labels, such as ogbn-arxiv or ogbn-products.

    The loader reads the files ``edge``, ``node-feat``, ``node-label`` and ``num-node-list`` in the
    folder ``raw``. It ignores the splits, because labels are not used for training. Directed edges
    become undirected.

    Parameters
    ----------
    folder : Path
        The folder that contains ``raw``, for example ``ogbn_arxiv``.

    Returns
    -------
    AttributedGraph

    Raises
    ------
    InputError
        A file is missing or malformed, or the files do not fit each other.
    """
    raw = Path(folder) / "raw"
    counts = _read(raw, "num-node-list", np.int64)
    if counts.shape != (1, 1):
        raise InputError(f"{raw}: {len(counts)} graphs: expected a data set of one graph")
    num_nodes = int(counts[0, 0])
    if num_nodes < 1:
        raise InputError(f"{raw}/num-node-list.csv.gz: {num_nodes} nodes: expected 1 or more")
    edges = _read(raw, "edge", np.int64)
    if edges.shape[1] != 2:
        raise InputError(f"{raw}/edge.csv.gz: {edges.shape[1]} columns, expected 2")
    if len(edges) and not (edges.min() >= 0 and edges.max() < num_nodes):
        row, end = np.argwhere((edges < 0) | (edges >= num_nodes))[0]
        raise InputError(
            f"{raw}/edge.csv.gz: line {row + 1}: node {edges[row, end]}, expected "
            f"0..{num_nodes - 1}"
        )
    graph, notes = graph_from_entries(num_nodes, *edges.T)
    features = as_features(_read(raw, "node-feat", np.float32), raw / "node-feat.csv.gz")
    labels = _read(raw, "node-label", np.float64)  # an empty cell becomes NaN: no label
    for name, rows in (("node-feat", features.shape[0]), ("node-label", len(labels))):
        if rows != num_nodes:
            raise InputError(f"{raw}/{name}.csv.gz: {rows} rows for {num_nodes} nodes")
    if labels.shape[1] != 1:
        raise InputError(
            f"{raw}/node-label.csv.gz: {labels.shape[1]} labels per node, expected one"
        )
    return AttributedGraph(
        graph, features, index_labels(labels[:, 0], raw / "node-label.csv.gz"), notes=tuple(notes)
    )


def _read(raw: Path, name: str, dtype: type) -> np.ndarray:
    file = raw / f"{name}.csv.gz"
    if not file.exists():
        raise InputError(f"{file}: not found: data.path must be the folder that contains raw/")
    try:
        with gzip.open(file) as unpacked:
            check_room(unpacked_size(unpacked.read), file)
        return pd.read_csv(file, header=None, dtype=dtype, skip_blank_lines=False).to_numpy()
    except InputError:
        raise
    except (OSError, ValueError, EOFError, zlib.error) as error:  # pandas raises ValueErrors
        raise InputError(
            f"{file}: not a table of numbers ({one_line(error)}): download it again"
        ) from None
