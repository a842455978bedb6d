"""Load the user's own graph: a file with the graph, and optional files of features and labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.data.edge_list.features import Features, load_array, read_features
from user_dgl.data.edge_list.labels import LabelRows, match_labels, read_label_rows
from user_dgl.data.formats.registry import FORMATS
from user_dgl.data.reading.files import ending
from user_dgl.data.reading.ids import (
    as_text,
    counts_up,
    index_ids,
    is_text,
    may_respell,
    positions,
    repeated_row,
    spelling_hint,
    tidy_ids,
    unusable,
)
from user_dgl.data.reading.matrices import graph_from_matrix
from user_dgl.data.reading.text import MISSING, TextFile, has_header, is_number, open_text
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.runtime.registry import load_object

# Usual names of the columns with the ends of the edges and with their weights, in lower case.
_END_NAMES = frozenset(
    end + suffix
    for end in (
        "src", "dst", "source", "target", "from", "to", "head", "tail", "u", "v", "i", "j",
        "sender", "receiver", "follower", "followee",
    )
    for suffix in ("", "id", "_id", "node", "_node", "nodeid", "_node_id")
)  # fmt: skip
_END_NAMES |= {"id1", "id2", "id_1", "id_2", "node1", "node2", "node_1", "node_2"}
_END_NAMES |= {"citing", "cited"}
_END_STARTS = ("from_", "to_", "source_", "target_")
_WEIGHT_NAMES = frozenset(("weight", "weights", "w", "edge_weight", "value", "strength"))


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges of a file, not yet matched to the rows of other files.

    Attributes
    ----------
    path : Path
    u, v : int64 (M,)
        Ends of the edges, as positions in ``names``.
    names : ndarray
        Distinct ids of the nodes that the file names.
    notes : list of str
        Lines for the user that say what was decided.
    text : TextFile or None
        The file, if it is a text.
    whole : bool
        Whether the file lists all nodes, also those without edges.
    in_rows : bool
        Whether the nodes have an order of their own, as the rows of a matrix have.
    features : Features or None
        Features in the same file.
    labels : LabelRows or None
        Labels in the same file.
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
        """Number of nodes that the file names."""
        return len(self.names)

    def error(self, name: int, problem: str) -> InputError:
        """Make an error for the id ``names[name]``, with the first line that contains it."""
        if self.text is None:
            return InputError(f"{self.path}: {problem}")
        return self.text.error(int(np.argmax((self.u == name) | (self.v == name))), problem)


def load_edge_list(
    edges: Path,
    features: Path | None = None,
    labels: Path | None = None,
    missing: str = "refuse",
    header: bool | str = "auto",
    columns: Sequence[str] = (),
) -> AttributedGraph:
    """Load a graph from the user's own files.

    The ending of ``edges``, without a final ``.gz``, determines its format:

    - ``.npz``, ``.mtx``, ``.mat``, ``.graphml`` or ``.xml``, and ``.bin`` or ``.dgl``
      (`dgl.save_graphs`): see the loaders in `user_dgl.data.formats`. Most of these files may also
      contain features and labels.
    - ``.npy``: an adjacency matrix (N, N), or whole numbers (M, 2) or (2, M), which are the ids of
      the ends of each edge. An array (2, 2) is an adjacency matrix.
    - Any other ending: text with two ids per row, separated by commas, tabs, semicolons or blanks,
      with or without header. Lines that start with ``#`` or ``%`` are comments. A column with a
      name such as ``weight``, or without header a third column of numbers, contains weights. A row
      of weight 0 is not an edge, and all other weights become 1.

    Nodes are in ascending order of their ids: by value if the ids are numbers, else by code points.
    So the order of the lines does not matter. The nodes are determined as follows:

    - If the rows of the features have ids, these are the nodes.
    - If the rows of the features have no ids, row k belongs to id k; or to id k + 1, if the largest
      id equals the number of rows; or to the k-th smallest id, if there are as many ids as rows.
    - Without features, labels whose rows have no ids determine the nodes in the same way. Only the
      number of rows matters, not which of them have a label.
    - Else the nodes are those that the file of edges names.

    Parameters
    ----------
    edges : Path
    features : Path, optional
        See `user_dgl.data.edge_list.features.read_features`. These features replace those in
        ``edges``.
    labels : Path, optional
        See `user_dgl.data.edge_list.labels.read_labels`. These labels replace those in ``edges``.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.
    header : bool or "auto"
        Whether the first row of a text of edges is a header. With "auto" it is a header if it
        contains usual names for the ends of edges, or text above numbers.
    columns : sequence of str
        Names of the two columns with the ends, if the header does not use usual names.

    Returns
    -------
    AttributedGraph

    Raises
    ------
    InputError
        The files are unreadable, malformed (with the line) or do not fit each other.
    """
    edges = Path(edges)
    ends = _read_ends(edges, missing, header, columns)
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
            notes.append(f"{edges.name}: its {what} are replaced by those of {Path(given).name}")

    graph, cleaning = Graph.from_edges(len(names), place[ends.u], place[ends.v])
    if str(cleaning):
        notes.append(f"{ends.path.name}: {cleaning}")
    alone = int((graph.degree == 0).sum())
    if alone:
        notes.append(f"{ends.path.name}: {alone} of {len(names)} nodes have no edges")
    # A file of edges alone does not name the nodes without edges.
    all_named = feats is not None or ends.whole
    matched, label_notes = (None, []) if rows is None else match_labels(rows, names, all_named)
    return AttributedGraph(
        graph,
        None if feats is None else feats.feat,
        matched,
        None if counts_up(names) else tuple(as_text(names).tolist()),
        (*ends.notes, *(feats.notes if feats else ()), *notes, *label_notes),
    )


def read_pairs(path: Path, node_ids: Sequence[str]) -> np.ndarray:
    """Read pairs of nodes from a text file of edges, see `load_edge_list`.

    Columns other than the ends are ignored.

    Parameters
    ----------
    path : Path
    node_ids : sequence of str (N,)
        Ids of all nodes, in node order.

    Returns
    -------
    int64 (2, M)
        Positions in ``node_ids``, in the order of the rows.

    Raises
    ------
    InputError
        The file is unreadable or malformed, an id is not in ``node_ids``, or a pair contains the
        same node twice. The message names the line.
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
        raise text.error(row, f"node {name!s} is not one of the {len(node_ids)} nodes of the run")
    if (u == v).any():
        raise text.error(
            int(np.argmax(u == v)), "a node with itself: expected two different nodes in each row"
        )
    return place[pairs]


def _read_ends(path: Path, missing: str, header: bool | str, columns: Sequence[str]) -> _Edges:
    kind = ending(path)
    if kind != ".npy" and kind not in FORMATS:
        return _read_edges(path, header, columns)
    if kind == ".npy":
        read = _read_array(path)
    else:
        file_format = FORMATS[kind]
        data = load_object(file_format.load)(path, missing)
        read = _of_graph(path, data, not file_format.by_id)
    if header != "auto" or columns:
        read.notes.append(
            f"{path.name}: not a text file, so data.header and data.columns have no effect"
        )
    return read


def _of_graph(path: Path, data: AttributedGraph, in_rows: bool) -> _Edges:
    """Take edges, features and labels from a file that lists all nodes."""
    names = np.arange(data.num_nodes) if data.node_ids is None else tidy_ids(data.node_ids)
    fault = unusable(names)
    if fault:
        raise InputError(f"{path}: node {fault[0]}: {fault[1]}")
    row = repeated_row(names)
    if row is not None:
        raise InputError(f"{path}: id {names[row]!r} given twice, apart from blanks: rename one")
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
            "matrix (N, N), or whole numbers (M, 2), the ids of the ends of each edge"
        )
    u, v = array.T if array.shape[1] == 2 else array
    codes, names = index_ids(np.concatenate([u, v]))
    return _Edges(path, codes[: len(u)], codes[len(u) :], names, [])


def _open_ends(
    path: Path, header: bool | str = "auto", columns: Sequence[str] = ()
) -> tuple[TextFile, tuple[int, int], int | None]:
    """Open a text of edges, and find the columns of the ends and of the weight."""
    text = open_text(path)
    first, rest = text.sample[0], text.sample[1:]
    if header == "auto":
        known = has_header(first, rest, lambda names: sum(map(_names_end, names)) >= 2)
        header = bool(columns) or (known and not _names_nodes(first, rest))
    if header:
        text = text.without_header()
    if text.num_columns < 2:
        raise text.error(0, f"one column ({text.sample[0][0]!r}): expected two ids a row")
    if any(len(row) != text.num_columns for row in text.sample):
        text.check_rows()  # the parser does not refuse rows that are too short
    u_column, v_column, weight_column = _find_columns(text, columns)
    return text, (u_column, v_column), weight_column


def _read_edges(path: Path, header: bool | str, chosen: Sequence[str]) -> _Edges:
    text, (u_column, v_column), weight_column = _open_ends(path, header, chosen)
    used = (u_column, v_column, weight_column)
    dtypes = {} if weight_column is None else {weight_column: np.float64}
    columns = _read_ids(text, (u_column, v_column), dtypes)
    codes, names = index_ids(np.concatenate([columns[u_column], columns[v_column]]))
    u, v = codes[: len(codes) // 2], codes[len(codes) // 2 :]
    fault = unusable(names)
    if fault:
        text.check_rows()
        raise text.error(int(np.argmax((u == fault[0]) | (v == fault[0]))), fault[1])

    third = max(u_column, v_column) + 1
    unsure = not text.header and weight_column is None and third < text.num_columns
    # Below the sample, the third column contains some numbers. Then it is probably a column of
    # weights, and its other cells are mistakes.
    if unsure and any(map(_counts, pd.unique(columns[third]))):
        text.check_rows(numbers=(third,))
    notes = text.notes()
    if header == "auto" and not text.header and is_text(names):
        first = np.array([u[0], v[0]])
        alone = u[0] != v[0] and len(u) > 1 and (np.bincount(codes)[first] == 1).all()
        if alone and not any(map(_counts, names[first])):
            notes.append(
                f"{path.name}: first row taken as an edge, although neither {names[first[0]]!r} "
                f"nor {names[first[1]]!r} occurs again: set data.header=true if it is a header"
            )
    ignored = [_column_name(text, c) for c in range(text.num_columns) if c not in used]
    if any(cell.strip() for row in text.sample for c, cell in enumerate(row) if c not in used):
        notes.append(f"{path.name}: {', '.join(ignored)} ignored")
    if weight_column is not None:
        weight = columns[weight_column]
        where = _column_name(text, weight_column)
        bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if len(bad):
            text.check_rows()  # a row that is too short reads as NaN, and this names its line
            problem = f"weight {weight[bad[0]]:g} in {where}: expected 0 or more"
            if len(bad) > 1:
                problem += f"; {len(bad)} such rows, the next in line {text.line_of(bad[1])}"
            raise text.error(bad[0], problem)
        if (weight == 0).any():
            u, v = u[weight != 0], v[weight != 0]
            notes.append(f"{path.name}: {int((weight == 0).sum())} rows of weight 0 dropped")
        if not np.isin(weight, (0, 1)).all():
            notes.append(f"{path.name}: weights in {where} ignored: every edge has weight 1")
    return _Edges(path, u, v, names, notes, text)


def _names_nodes(first: list[str], rest: list[list[str]]) -> bool:
    # A first row that starts with an empty cell is a header above the index column of a data frame.
    # Any other first row is data if one of its cells occurs again below.
    cells = {cell.strip() for row in rest for cell in row} - {""}
    return bool(first[0].strip()) and any(cell.strip() in cells for cell in first)


def _names_end(name: str) -> bool:
    return name in _END_NAMES or name.startswith(_END_STARTS)


def _counts(cell: str) -> bool:
    """Whether a cell is a number and not missing."""
    return is_number(cell.strip()) and cell.strip() not in MISSING


def _find_columns(text: TextFile, chosen: Sequence[str]) -> tuple[int, int, int | None]:
    """Find the columns of the two ends and of the weight."""
    if not text.header:
        third = [row[2] for row in text.sample if len(row) > 2]
        return 0, 1, 2 if any(map(_counts, third)) else None
    header = list(text.header)
    if len(header) != text.num_columns:
        header = [""] * text.num_columns
    names = [name.lower() for name in header]
    weights = [c for c, name in enumerate(names) if name in _WEIGHT_NAMES]
    ends = [c for c, name in enumerate(names) if _names_end(name)][:2]
    if chosen:
        if any(header.count(name) != 1 for name in chosen):
            raise InputError(
                f"{text.path}: data.columns names {' and '.join(chosen)}, the columns are "
                f"{', '.join(text.header)}: name two of them"
            )
        ends = [header.index(name) for name in chosen]
    elif len(ends) < 2:
        # A column without name is the index column of a data frame, or is empty.
        left = [c for c, name in enumerate(names) if name and c not in weights]
        ends = left if any(names) else [0, 1]
        if len(ends) != 2 and text.num_columns > 2:
            raise InputError(
                f"{text.path}: which of the columns {', '.join(text.header)} hold the ends of the "
                f"edges? Set data.columns=[A, B]"
            )
        ends = ends if len(ends) == 2 else [0, 1]
    weights = [c for c in weights if c not in ends]
    return ends[0], ends[1], weights[0] if weights else None


def _column_name(text: TextFile, column: int) -> str:
    if text.header and len(text.header) > column:
        return f"column {text.header[column]!r}"
    return f"column {column + 1}"


def _read_ids(
    text: TextFile, ends: tuple[int, int], dtypes: Mapping[int, type]
) -> list[np.ndarray]:
    """Read all columns; the ends are int64 if all ids are whole numbers, else text."""
    sampled = tidy_ids([cells[c] for cells in text.sample for c in ends if len(cells) > c])
    if not is_text(sampled) and not may_respell(text.body):
        columns = text.read(dtypes, infer=ends)
        if all(columns[c].dtype == np.int64 for c in ends):
            return columns
    return text.read(dtypes)


def _nodes(
    edges: _Edges, features: Features | None, labels: LabelRows | None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Determine the nodes; see `load_edge_list`.

    Returns
    -------
    names : ndarray (N,)
        Ids in node order.
    place : int64
        The node of each id in ``edges.names``.
    notes : list of str
    """
    if features is not None and features.ids is not None:
        names, source = features.ids, features.path
    elif features is not None:
        return _nodes_of_rows(edges, features.feat.shape[0], "features", features.path)
    elif labels is not None and not labels.by_id and not edges.whole:
        # Rows without label count too, because labels must not influence training.
        num_rows, path = len(labels.values), labels.path
        names, place, notes = _nodes_of_rows(edges, num_rows, "labels", path)
        if len(names) > edges.num_named:
            notes.append(f"{path.name}: the graph has {num_rows} nodes, one for each row")
        return names, place, notes
    else:
        names, source = edges.names, edges.path
    place = positions(names, edges.names)
    missing = np.flatnonzero(place < 0)
    if len(missing):
        code = int(missing[0])
        name = edges.names[code]
        problem = f"node {name!s} has no row in {source}: add a row or remove its edges"
        raise edges.error(code, problem + spelling_hint(name))
    if edges.whole and len(names) != edges.num_named:
        raise InputError(
            f"{edges.path}: {edges.num_named} nodes, but {source} has {len(names)}: they must agree"
        )
    return names, place, []


def _nodes_of_rows(
    edges: _Edges, num_rows: int, what: str, source: Path
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Determine the nodes from the rows of another file that have no ids; see `_nodes`."""
    if edges.in_rows and edges.num_named == num_rows:
        return edges.names, np.arange(num_rows), []
    if is_text(edges.names):
        raise InputError(
            f"{source}: {what} without ids, but node ids are text, such as {edges.names[0]!r} in "
            f"{edges.path}: put the ids in a first column{spelling_hint(edges.names[0])}"
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
        note = (
            f"{edges.path.name}: ids have gaps: the rows of {source.name} belong to the ids in "
            "ascending order"
        )
        return edges.names, np.arange(num_rows), [note]
    raise InputError(
        f"{edges.path}: edges name {edges.num_named} nodes (largest id {high}), {what} have "
        f"{num_rows} rows ({source}): give a row for each node, or ids in the first column"
    )
