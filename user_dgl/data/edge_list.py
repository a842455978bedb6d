"""One's own graph: a file of any usual format, and files of features and labels beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from user_dgl.data.base import AttributedGraph
from user_dgl.data.dgl_file import load_dgl_file
from user_dgl.data.feature_file import Features, load_array, read_features
from user_dgl.data.files import ending
from user_dgl.data.graphml import load_graphml
from user_dgl.data.ids import (
    as_text,
    counts_up,
    index_ids,
    is_text,
    may_respell,
    positions,
    repeated_row,
    tidy_ids,
    union,
    unusable,
)
from user_dgl.data.label_file import LabelRows, match_labels, read_label_rows, read_labels
from user_dgl.data.mat import load_mat
from user_dgl.data.matrices import graph_from_matrix
from user_dgl.data.matrix_market import load_matrix_market
from user_dgl.data.npz import load_npz
from user_dgl.data.text import TextFile, has_header, is_number, open_text
from user_dgl.errors import InputError
from user_dgl.graph import Graph

__all__ = ["load_edge_list", "read_labels", "read_pairs"]

_END_NAMES = frozenset(
    end + suffix
    for end in ("src", "dst", "source", "target", "from", "to", "head", "tail", "u", "v", "i", "j")
    for suffix in ("", "id", "_id", "node", "_node", "nodeid", "_node_id")
) | {"id1", "id2", "id_1", "id_2", "node1", "node2", "node_1", "node_2", "citing", "cited"}
_WEIGHT_NAMES = frozenset(("weight", "weights", "w", "edge_weight", "value", "strength"))


# What reads a graph file, by its ending. Any other is text, but for an array (.npy) of edges.
_LOADERS = {
    ".npz": load_npz,
    ".mtx": load_matrix_market,
    ".mat": load_mat,
    ".graphml": load_graphml,
    ".xml": load_graphml,
    ".bin": load_dgl_file,
    ".dgl": load_dgl_file,
}
# Those that list nodes under ids: rows of another file are matched to these as to ids in text.
_BY_ID = (".graphml", ".xml")


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges as the file holds them: ends (M,) as positions among the distinct ids `names`.

    `whole` where it says which nodes there are, and not only which have edges; `in_rows` where
    these have an order of their own, as the rows of a matrix.
    """

    path: Path
    u: np.ndarray
    v: np.ndarray
    names: np.ndarray
    notes: list[str]
    text: TextFile | None = None
    whole: bool = False
    in_rows: bool = False
    features: Features | None = None
    labels: LabelRows | None = None

    @property
    def num_named(self) -> int:
        return len(self.names)

    def error(self, name: int, problem: str) -> InputError:
        """The error for an id, at the first line that names it."""
        if self.text is None:
            return InputError(f"{self.path}: {problem}")
        return self.text.error(int(np.argmax((self.u == name) | (self.v == name))), problem)


def load_edge_list(
    edges: Path,
    features: Path | None = None,
    labels: Path | None = None,
    missing: str = "refuse",
) -> AttributedGraph:
    """A graph in the user's own files.

    Parameters
    ----------
    edges : Path
        By its ending, before a ``.gz``: ``.npz`` (`user_dgl.data.npz.load_npz`), ``.mtx``,
        ``.mat``, ``.graphml``, ``.bin`` or ``.dgl`` (`dgl.save_graphs`), which may hold features
        and labels too, see the loader of that name; ``.npy``: an adjacency (N, N), or whole numbers
        (M, 2) or (2, M), the ids of the ends. Else text: two ids a row, separated by commas, tabs,
        semicolons or blanks, with or without header; lines that start with ``#`` or ``%`` are
        comments. A column that the header calls ``weight`` or the like, or without header a third
        column of numbers, is a weight: rows of weight 0 are no edges, other weights do not count.
    features : Path, optional
        See `user_dgl.data.feature_file.read_features`; in place of those in ``edges``.
    labels : Path, optional
        See `user_dgl.data.label_file.read_labels`; in place of those in ``edges``.
    missing : str
        See `user_dgl.data.matrices.as_features`.

    Returns
    -------
    AttributedGraph
        Nodes in ascending order of their ids (numbers by value, else by code points), so the order
        of lines does not matter. With features that carry ids, these are the nodes. With rows in
        order, row k belongs to id k, or to id k + 1 if the largest id is the number of rows, or to
        the k-th smallest id if there are as many ids as rows. Without features the nodes are those
        that edges or labels name.

    Raises
    ------
    InputError
        Files unreadable, malformed (with the line), or not fitting each other.
    """
    edges = Path(edges)
    ends = _read_ends(edges, missing)
    feats, rows = ends.features, ends.labels
    if features is not None:
        feats = read_features(features, ends.names, missing)
    if labels is not None:
        rows = read_label_rows(labels)
    names, place, notes = _nodes(ends, feats, rows)
    for carried, given, what in (
        (ends.features, features, "features"),
        (ends.labels, labels, "labels"),
    ):
        if carried is not None and given is not None:
            notes.append(f"{edges.name}: its {what} give way to those of {Path(given).name}")

    graph, cleaning = Graph.from_edges(len(names), place[ends.u], place[ends.v])
    if str(cleaning):
        notes.append(f"{ends.path.name}: {cleaning}")
    matched, label_notes = (None, []) if rows is None else match_labels(rows, names)
    return AttributedGraph(
        graph,
        None if feats is None else feats.feat,
        matched,
        None if counts_up(names) else tuple(as_text(names).tolist()),
        (*ends.notes, *(feats.notes if feats else ()), *notes, *label_notes),
    )


def read_pairs(path: Path, node_ids: Sequence[str]) -> np.ndarray:
    """Pairs of nodes in a text file as `load_edge_list` reads edges; further columns do not count.

    Parameters
    ----------
    path : Path
    node_ids : sequence of str (N,)
        The nodes there are.

    Returns
    -------
    int64 (2, M)
        Positions among ``node_ids``, in the order of the rows.

    Raises
    ------
    InputError
        File unreadable or malformed, an id of no node, a node with itself; with the line.
    """
    text, columns, _ = _open_ends(Path(path))
    read = _read_ids(text, columns, {})
    codes, names = index_ids(np.concatenate([read[c] for c in columns]))
    place = positions(tidy_ids(node_ids), names)
    u, v = pairs = codes.reshape(2, -1)
    unknown = np.flatnonzero(place < 0)
    if len(unknown):
        row = int(np.argmax(np.isin(u, unknown) | np.isin(v, unknown)))
        name = names[u[row] if place[u[row]] < 0 else v[row]]
        raise text.error(row, f"node {name!s} is none of the {len(node_ids)} nodes of the run")
    if (u == v).any():
        raise text.error(int(np.argmax(u == v)), "a node with itself: expected two nodes a row")
    return place[pairs]


def _read_ends(path: Path, missing: str) -> _Edges:
    kind = ending(path)
    if kind == ".npy":
        return _read_array(path)
    if kind in _LOADERS:
        return _of_graph(path, _LOADERS[kind](path, missing), kind not in _BY_ID)
    return _read_edges(path)


def _of_graph(path: Path, data: AttributedGraph, in_rows: bool) -> _Edges:
    """Edges, features and labels of a file that says which nodes there are."""
    names = np.arange(data.num_nodes) if data.node_ids is None else tidy_ids(data.node_ids)
    fault = unusable(names)
    if fault:
        raise InputError(f"{path}: node {fault[0]}: {fault[1]}")
    row = repeated_row(names)
    if row is not None:
        raise InputError(f"{path}: id {names[row]!r} given twice, up to blanks: rename one")
    u, v = data.graph.src.numpy().astype(np.int64), data.graph.dst.numpy().astype(np.int64)
    notes = [f"{path.name}: {note}" for note in data.notes]
    features = labels = None
    if data.feat is not None:
        features = Features(path, data.feat, names, [])
    if data.labels is not None:
        labels = LabelRows(path, data.labels, None, np.arange(len(names)), names)
    return _Edges(path, u, v, names, notes, None, True, in_rows, features, labels)


def _read_array(path: Path) -> _Edges:
    array = load_array(path)
    if array.ndim != 2 or 2 not in array.shape or array.shape == (2, 2):
        graph, notes = graph_from_matrix(array, path)
        return _of_graph(path, AttributedGraph(graph, None, notes=tuple(notes)), True)
    if array.dtype.kind not in "iu" or not array.size:
        raise InputError(
            f"{path}: array of shape {array.shape} and type {array.dtype}: expected an adjacency "
            "(N, N), or whole numbers (M, 2), the ids of the ends of each edge"
        )
    u, v = array.T if array.shape[1] == 2 else array
    codes, names = index_ids(np.concatenate([u, v]))
    return _Edges(path, codes[: len(u)], codes[len(u) :], names, [])


def _open_ends(path: Path) -> tuple[TextFile, tuple[int, int], int | None]:
    """A text of edges, with the columns of their ends and of their weight."""
    text = open_text(path)
    first, rest = text.sample[0], text.sample[1:]
    known = has_header(first, rest, lambda names: sum(n in _END_NAMES for n in names) >= 2)
    if known and not _names_nodes(first, rest):
        text = text.without_header()
    if text.num_columns < 2:
        raise text.error(0, f"one column ({text.sample[0][0]!r}): expected two ids a row")
    if any(len(row) != text.num_columns for row in text.sample):
        text.check_rows()  # the parser would fill a row that is too short
    u_column, v_column, weight_column = _find_columns(text)
    return text, (u_column, v_column), weight_column


def _read_edges(path: Path) -> _Edges:
    text, (u_column, v_column), weight_column = _open_ends(path)
    used = (u_column, v_column, weight_column)
    dtypes = {} if weight_column is None else {weight_column: np.float64}
    columns = _read_ids(text, (u_column, v_column), dtypes)
    codes, names = index_ids(np.concatenate([columns[u_column], columns[v_column]]))
    u, v = codes[: len(codes) // 2], codes[len(codes) // 2 :]
    fault = unusable(names)
    if fault:
        text.check_rows()
        raise text.error(int(np.argmax((u == fault[0]) | (v == fault[0]))), fault[1])

    notes = text.notes()
    ignored = [_column_name(text, c) for c in range(text.num_columns) if c not in used]
    if any(cell.strip() for row in text.sample for c, cell in enumerate(row) if c not in used):
        notes.append(f"{path.name}: {', '.join(ignored)} ignored")
    if weight_column is not None:
        weight = columns[weight_column]
        where = _column_name(text, weight_column)
        bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if len(bad):
            text.check_rows()  # a row cut short reads as NaN: then say so
            problem = f"weight {weight[bad[0]]:g} in {where}: expected 0 or more"
            if len(bad) > 1:
                problem += f"; {len(bad)} such rows, the next in line {text.line_of(bad[1])}"
            raise text.error(bad[0], problem)
        if (weight == 0).any():
            u, v = u[weight != 0], v[weight != 0]
            notes.append(f"{path.name}: {int((weight == 0).sum())} rows of weight 0 dropped")
        if not np.isin(weight, (0, 1)).all():
            notes.append(f"{path.name}: weights in {where} ignored: every edge counts 1")
    return _Edges(path, u, v, names, notes, text)


def _names_nodes(first: list[str], rest: list[list[str]]) -> bool:
    # A row that starts with an empty name, the index column of a data frame, names no nodes.
    cells = {cell.strip() for row in rest for cell in row} - {""}
    return bool(first[0].strip()) and any(cell.strip() in cells for cell in first)


def _find_columns(text: TextFile) -> tuple[int, int, int | None]:
    """Columns of the two ends and of the weight."""
    names = [name.lower() for name in text.header or ()]
    if len(names) != text.num_columns:
        names = [""] * text.num_columns
    ends = [c for c, name in enumerate(names) if name in _END_NAMES][:2]
    if len(ends) < 2:
        # A header that starts with an empty name tops the index column of a data frame.
        start = 1 if text.header and not text.header[0] and text.num_columns > 2 else 0
        ends = [start, start + 1]
    weights = [c for c, name in enumerate(names) if name in _WEIGHT_NAMES and c not in ends]
    third = ends[1] + 1
    if not text.header and third < text.num_columns:
        cells = [row[third].strip() for row in text.sample if len(row) > third]
        if is_number(cells[0]) and not set(cells) <= {""}:
            weights = [third]
    return (*ends, weights[0] if weights else None)


def _column_name(text: TextFile, column: int) -> str:
    if text.header and len(text.header) > column:
        return f"column {text.header[column]!r}"
    return f"column {column + 1}"


def _read_ids(text: TextFile, ends: tuple[int, int], dtypes: dict) -> list[np.ndarray]:
    sampled = tidy_ids([cells[c] for cells in text.sample for c in ends if len(cells) > c])
    if not is_text(sampled) and not may_respell(text.body):
        columns = text.read(dtypes, infer=ends)
        if all(columns[c].dtype == np.int64 for c in ends):
            return columns
    return text.read(dtypes)


def _nodes(
    edges: _Edges, features: Features | None, labels: LabelRows | None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Ids in node order, node of each id of the edges, and notes."""
    if features is not None and features.ids is not None:
        names, source = features.ids, features.path
    elif features is not None:
        return _nodes_of_rows(edges, features.feat.shape[0], "features", features.path)
    elif labels is not None and not labels.by_id:
        return _nodes_of_rows(edges, labels.num_rows, "labels", labels.path)
    elif labels is not None and not edges.whole:
        names, source = union(edges.names, labels.names), labels.path
    else:
        names, source = edges.names, edges.path
    place = positions(names, edges.names)
    missing = np.flatnonzero(place < 0)
    if len(missing):
        name = int(missing[0])
        raise edges.error(
            name, f"node {edges.names[name]!s} has no row in {source}: add it or drop its edges"
        )
    if edges.whole and len(names) != edges.num_named:
        raise InputError(
            f"{edges.path}: {edges.num_named} nodes, {source} has {len(names)}: they must agree"
        )
    return names, place, []


def _nodes_of_rows(
    edges: _Edges, num_rows: int, what: str, source: Path
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """`_nodes` where rows of another file stand for the nodes, in ascending order of their ids."""
    if edges.in_rows and edges.num_named == num_rows:
        return edges.names, np.arange(num_rows), []
    if is_text(edges.names):
        raise InputError(
            f"{source}: {what} without ids, but node ids are text, such as {edges.names[0]!r} in "
            f"{edges.path}: put the ids in a first column"
        )
    low, high = int(edges.names[0]), int(edges.names[-1])
    fits = edges.num_named == num_rows or not edges.whole
    if low >= 0 and high < num_rows and fits:
        notes = []
        if low == 1:
            notes = [f"{edges.path.name}: ids count from 0, node 0 has no edges"]
        return np.arange(num_rows), edges.names, notes
    if low >= 1 and high == num_rows and fits:
        note = f"{edges.path.name}: ids start at 1: id 1 is the first row of {source.name}"
        return np.arange(1, num_rows + 1), edges.names - 1, [note]
    if edges.num_named == num_rows:
        note = f"{edges.path.name}: ids have gaps: rows of {source.name} taken in ascending order"
        return edges.names, np.arange(num_rows), [note]
    raise InputError(
        f"{edges.path}: edges name {edges.num_named} nodes (largest id {high}), {what} have "
        f"{num_rows} rows ({source}): give a row for each node, or ids in the first column"
    )
