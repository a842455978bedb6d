"""Load MUSAE data sets: ``*_edges.csv``, ``*_target.csv`` and perhaps features in ``*.json``."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from user_dgl.data.attributed_graph import AttributedGraph, index_labels, one_line
from user_dgl.data.reading.matrices import as_features, graph_from_entries
from user_dgl.errors import InputError

# Names of the columns with node ids and classes. Twitch's files have new_id and mature; Facebook's
# and LastFM's files have id and page_type or target.
_ID_COLUMNS = ("new_id", "id")
_CLASS_COLUMNS = ("page_type", "mature", "target")
_MOST_FEATURES = 2**24


def load_musae(folder: Path) -> AttributedGraph:
    """Load a MUSAE data set: Facebook pages, Twitch users or LastFM users, with links and classes.

    The target file lists each of the nodes 0..N-1 once, in any order. Twitch's node ids are in the
    column ``new_id``. The features are 0 or 1, and the largest feature id determines their number.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    AttributedGraph
        Without features if the folder has no JSON file.

    Raises
    ------
    InputError
        A file is missing or malformed.
    """
    folder = Path(folder)
    edges_file, target_file = (_only(folder, f"*_{part}.csv") for part in ("edges", "target"))
    target = _table(target_file)
    ids = _whole(target_file, target, _column(target_file, target, _ID_COLUMNS))
    num_nodes = len(ids)
    missing = np.setdiff1d(np.arange(num_nodes), ids)
    if len(missing):
        raise InputError(
            f"{target_file}: {num_nodes} rows but none for node {missing[0]}: expected one for "
            f"each of the nodes 0..{num_nodes - 1}"
        )
    labels = np.empty(num_nodes, dtype=np.int64)
    column = _column(target_file, target, _CLASS_COLUMNS)
    labels[ids] = index_labels(target[column].to_numpy(), target_file)

    edges = _table(edges_file)
    if edges.shape[1] != 2:
        raise InputError(f"{edges_file}: {edges.shape[1]} columns, expected 2")
    ends = [_whole(edges_file, edges, name) for name in edges.columns]
    for end in ends:
        outside = np.flatnonzero((end < 0) | (end >= num_nodes))
        if len(outside):
            row = outside[0]
            raise InputError(
                f"{edges_file}: line {row + 2}: node {end[row]}, expected 0..{num_nodes - 1}"
            )
    graph, notes = graph_from_entries(num_nodes, *ends)
    # These files list each edge in one direction only, so the note about directed edges is omitted.
    notes = [note for note in notes if not note.startswith("directed")]
    features = sorted(folder.glob("*.json"))
    feat = _features(_only(folder, "*.json"), num_nodes) if features else None
    return AttributedGraph(graph, feat, labels, notes=tuple(notes))


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise InputError(f"{folder}: {len(found)} files are named {pattern}, expected one")
    return found[0]


def _table(file: Path) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            # Else pandas would cut a row that has more cells than the header.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(file, encoding="utf-8", index_col=False)
    except pd.errors.ParserWarning:
        raise InputError(
            f"{file}: some rows have more cells than the header: download it again"
        ) from None
    except (OSError, ValueError) as error:  # the parser errors of pandas are ValueErrors
        raise InputError(
            f"{file}: not a CSV table ({one_line(error)}): download it again"
        ) from None
    if any(str(name).strip().lstrip("-").isdecimal() for name in table.columns):
        raise InputError(f"{file}: line 1 is not a header: expected names such as id_1,id_2")
    return table


def _column(file: Path, table: pd.DataFrame, names: tuple[str, ...]) -> str:
    for name in names:
        if name in table.columns:
            return name
    raise InputError(
        f"{file}: the columns are {', '.join(map(str, table.columns))}: expected {names[0]}"
    )


def _whole(file: Path, table: pd.DataFrame, name: str) -> np.ndarray:
    values = pd.to_numeric(table[name], errors="coerce")
    bad = np.flatnonzero(values.isna() | (values % 1 != 0) | (values.abs() >= 2**53))
    if len(bad):
        raise InputError(
            f"{file}: line {bad[0] + 2}: {name} {table[name].iloc[bad[0]]!s}: expected a whole "
            "number"
        )
    return values.to_numpy(dtype=np.int64)


def _features(file: Path, num_nodes: int) -> sp.csr_matrix:
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
        nodes = np.array([int(node) for node in table], dtype=np.int64)
        counts = [len(columns) for columns in table.values()]
        columns = np.array([c for row in table.values() for c in row])
        if columns.ndim != 1:
            raise ValueError("lists within lists")
    except (OSError, ValueError, OverflowError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file}: expected a JSON object that gives a list of feature ids for each node "
            f"({one_line(error)})"
        ) from None
    outside = nodes[(nodes < 0) | (nodes >= num_nodes)]
    if len(outside):
        raise InputError(f"{file}: node {outside[0]}: expected 0..{num_nodes - 1}")
    if columns.size and (
        columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= _MOST_FEATURES
    ):
        raise InputError(f"{file}: feature ids: expected whole numbers below {_MOST_FEATURES}")
    width = int(columns.max()) + 1 if columns.size else 1
    feat = sp.csr_matrix(
        (np.ones(len(columns), np.float32), (np.repeat(nodes, counts), columns.astype(np.int64))),
        shape=(num_nodes, width),
    )
    feat.sum_duplicates()
    feat.data[:] = 1
    return as_features(feat, file)
