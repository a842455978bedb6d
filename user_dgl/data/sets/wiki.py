"""Load the Wiki data set of TADW: ``graph.txt``, ``group.txt`` and ``tfidf.txt`` or ``.txt.gz``."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import AttributedGraph, index_labels
from user_dgl.data.reading.ids import repeated_row
from user_dgl.data.reading.matrices import as_features, graph_from_entries
from user_dgl.data.reading.text import TextFile, read_columns

_MAX_WORDS = 2**24


def load_wiki(folder: Path) -> AttributedGraph:
    """Load Wiki: 2,405 pages with links, tf-idf values of their words and 17 classes.

    ``group.txt`` has a line for every node, whereas 88 nodes have no words and 42 have no edges.
    The largest word index determines the number of feature columns. Labels are renumbered to
    0..C-1.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    AttributedGraph

    Raises
    ------
    InputError
        A file is missing, or a line is malformed. The message names the line.
    """
    folder = Path(folder)
    group_file, (nodes, groups) = read_columns(folder / "group.txt", (np.int64, np.int64))
    misplaced = np.flatnonzero(nodes != np.arange(len(nodes)))
    if len(misplaced):
        row = misplaced[0]
        raise group_file.error(
            row,
            f"node {nodes[row]}: expected {row}, as there must be a line for each node in order",
        )

    graph_file, (u, v) = read_columns(folder / "graph.txt", (np.int64, np.int64))
    for ends in (u, v):
        _check_ids(graph_file, ends, len(nodes), "node")
    graph, notes = graph_from_entries(len(nodes), u, v)

    words_path = folder / "tfidf.txt"
    if not words_path.exists():
        words_path = folder / "tfidf.txt.gz"
    words_file, (rows, columns, values) = read_columns(words_path, (np.int64, np.int64, np.float64))
    _check_ids(words_file, rows, len(nodes), "node")
    _check_ids(words_file, columns, _MAX_WORDS, "word")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        words_file.check_rows()  # a row that is too short reads as NaN, and this names its line
        raise words_file.error(bad[0], f"value {values[bad[0]]:g}: expected a finite number")
    row = repeated_row(rows * (columns.max() + 1) + columns)
    if row is not None:
        raise words_file.error(row, f"node {rows[row]}, word {columns[row]} given twice: keep one")
    feat = sp.csr_matrix((values, (rows, columns)), shape=(len(nodes), int(columns.max()) + 1))
    return AttributedGraph(
        graph, as_features(feat, words_path), index_labels(groups), notes=tuple(notes)
    )


def _check_ids(file: TextFile, ids: np.ndarray, count: int, kind: str) -> None:
    outside = np.flatnonzero((ids < 0) | (ids >= count))
    if len(outside):
        row = outside[0]
        raise file.error(row, f"{kind} {ids[row]}: expected 0..{count - 1}")
