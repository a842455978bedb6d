"""Load the user's own graph: a file with the graph, and optional files of features and labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.data.edge_list.arrays import load_array
from user_dgl.data.edge_list.features import Features, read_features
from user_dgl.data.edge_list.labels import LabelRows, match_labels, read_label_rows
from user_dgl.data.edge_list.layouts import TextOptions, is_adjacency_list
from user_dgl.data.edge_list.names import groups_of_ids
from user_dgl.data.edge_list.square import Square, describe, read_square
from user_dgl.data.edge_list.text_edges import (
    Pairs,
    find_columns,
    open_edges,
    read_ids,
    read_pairs_of_text,
)
from user_dgl.data.formats.adjacency_list import load_adjacency_list
from user_dgl.data.formats.registry import FORMATS, recognise
from user_dgl.data.reading.cells import is_number
from user_dgl.data.reading.files import ending, first_bytes
from user_dgl.data.reading.foreign import HEAD, refuse_graphs
from user_dgl.data.reading.ids import (
    as_text,
    counts_up,
    index_ids,
    is_text,
    positions,
    repeated_row,
    spelling_hint,
    tidy_ids,
    unusable,
)
from user_dgl.data.reading.matrices import graph_from_matrix
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.runtime.registry import load_object


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
    pairs : Pairs or None
        The rows of the file, if it is a text of edges.
    whole : bool
        Whether the file lists all nodes, also those without edges.
    in_rows : bool
        Whether the nodes have an order of their own, as the rows of a matrix have.
    features : Features or None
        Features in the same file.
    labels : LabelRows or None
        Labels in the same file.
    weight : float64 (M,) or None
        Weights of the edges.
    """

    path: Path
    u: np.ndarray
    v: np.ndarray
    names: np.ndarray
    notes: list[str]
    pairs: Pairs | None = None
    whole: bool = False
    in_rows: bool = False
    features: Features | None = None
    labels: LabelRows | None = None
    weight: np.ndarray | None = None

    @property
    def num_named(self) -> int:
        """Number of nodes that the file names."""
        return len(self.names)

    def error(self, name: int, problem: str) -> InputError:
        """Make an error for the id ``names[name]``, with the first line that contains it."""
        if self.pairs is None:
            return InputError(f"{self.path}: {problem}")
        return self.pairs.error(name, problem)


def load_edge_list(
    edges: Path,
    features: Path | None = None,
    labels: Path | None = None,
    missing: str = "refuse",
    header: bool | str = "auto",
    columns: Sequence[str | int] = (),
    separator: str = "auto",
    comment: bool | str = "auto",
    layout: str = "auto",
    weights: str | int = "auto",
    categorical: str = "refuse",
) -> AttributedGraph:
    """Load a graph from the user's own files.

    The ending of ``edges``, without a final ``.gz``, determines its format:

    - an ending in `user_dgl.data.formats.registry.FORMATS`: see the loaders there. Most of these
      files may also contain features and labels. Some formats are recognised by their content too.
    - ``.npy``: an adjacency matrix (N, N), or whole numbers (M, 2) or (2, M), which are the ids of
      the ends of each edge. An array (2, 2) is an adjacency matrix.
    - Any other ending: text in one of the layouts of `user_dgl.data.edge_list.layouts.LAYOUTS`,
      separated by commas, tabs, semicolons, bars or blanks, with or without header. A column with a
      name such as ``weight``, or without header a third column of numbers, contains weights,
      unless it counts. A row of weight 0 is not an edge. A text that may be read in two ways is
      refused.

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
    columns : sequence of str or int
        Names, or numbers from 1, of the two columns with the ends.
    separator : str
        Name of the separator of a text of edges, see `user_dgl.data.reading.separators.SEPARATORS`.
    comment : bool or "auto"
        Whether lines of a text that start with ``#`` or ``%`` are comments.
    layout : str
        Layout of a text of edges, see `user_dgl.data.edge_list.layouts.LAYOUTS`.
    weights : str or int
        ``auto``, ``ignore``, or the column of the weights of a text of edges, by its name or number
        from 1.
    categorical : str
        See `user_dgl.data.edge_list.features.read_features`.

    Returns
    -------
    AttributedGraph

    Raises
    ------
    InputError
        The files are unreadable, malformed (with the line), do not fit each other, or may be read
        in two ways (with the setting that picks one).
    """
    edges = Path(edges)
    options = TextOptions(header, tuple(columns), separator, comment, layout, weights)
    ends = _read_ends(edges, missing, options)
    feats, rows = ends.features, ends.labels
    if labels is not None:
        rows = read_label_rows(labels, comment)
    if features is not None:
        label_name = rows.column if rows is not None else None
        feats = read_features(features, ends.names, missing, categorical, comment, label_name)
    names, place, notes = _nodes(ends, feats, rows)
    for carried, given, what in (
        (ends.features, features, "features"),
        (ends.labels, labels, "labels"),
    ):
        if carried is not None and given is not None:
            notes.append(f"{edges.name}: its {what} are replaced by those of {Path(given).name}")

    u, v = ends.u, ends.v
    if names is not ends.names:
        u, v = place[u], place[v]
    graph, cleaning = Graph.from_edges(len(names), u, v, ends.weight)
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
    options = TextOptions()
    text, columns = find_columns(open_edges(Path(path), options), options)
    read = read_ids(text, columns.ends, {})
    codes, names = index_ids(np.concatenate([read[c] for c in columns.ends]))
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


def _read_ends(path: Path, missing: str, options: TextOptions) -> _Edges:
    kind = ending(path)
    if kind == ".npy":
        read = _read_array(path)
    else:
        file_format = FORMATS.get(kind)
        if file_format is None and options.layout == "auto":
            # The content tells, whatever the file is called.
            head = first_bytes(path, HEAD)
            file_format = recognise(head)
            if file_format is None:
                refuse_graphs(path, head)
        if file_format is None:
            return _read_text(path, missing, options)
        if kind == ".adjlist":
            return _read_lists(path, missing, options)
        data = load_object(file_format.load)(path, missing)
        read = _of_graph(path, data, not file_format.by_id)
    return _with_unread(read, options.given, "not a table of edges")


def _with_unread(read: _Edges, unread: list[str], because: str) -> _Edges:
    """Say which settings have no effect on such a file."""
    if unread:
        read.notes.append(
            f"{read.path.name}: {because}, so {' and '.join(unread)} "
            f"{'has' if len(unread) == 1 else 'have'} no effect"
        )
    return read


def _read_text(path: Path, missing: str, options: TextOptions) -> _Edges:
    if options.layout == "adjacency_list":
        return _read_lists(path, missing, options)
    text = open_edges(path, options)
    if options.layout == "auto" and is_adjacency_list(text):
        return _read_lists(path, missing, options)
    if options.layout == "matrix" or (options.layout == "auto" and not options.columns):
        square = read_square(text)
        if square is not None and (square.sure or options.layout == "matrix"):
            named = {"data.columns", "data.weights"}
            unread = [name for name in options.given if name in named]
            return _with_unread(_of_square(path, square), unread, "a square table")
        if options.layout == "matrix":
            raise InputError(
                f"{path}: not a square table of numbers: expected as many rows as columns, with or "
                "without the same names in the first row and the first column"
            )
        if square is not None:
            raise InputError(
                f"{path}: an adjacency matrix of {len(square.matrix)} nodes, or rows of edges: set "
                "data.layout=matrix or data.layout=pairs"
            )
    text, columns = find_columns(text, options)
    pairs = read_pairs_of_text(text, columns, options)
    header = text.header or ()  # it may have fewer names than the rows have cells
    groups = groups_of_ids([header[c] for c in columns.ends if c < len(header)])
    if groups and np.isin(pairs.u, pairs.v).any():
        raise InputError(
            f"{path}: ids of {groups[0]} and of {groups[1]}, some of which are equal: put a letter "
            "before each id that says of which group it is"
        )
    return _Edges(path, pairs.u, pairs.v, pairs.names, pairs.notes, pairs, weight=pairs.weight)


def _read_lists(path: Path, missing: str, options: TextOptions) -> _Edges:
    read = _of_graph(path, load_adjacency_list(path, missing, options.separator), False)
    known = {"data.separator"}
    if options.layout == "adjacency_list":
        known.add("data.layout")
    unread = [name for name in options.given if name not in known]
    return _with_unread(read, unread, "an adjacency list")


def _of_square(path: Path, square: Square) -> _Edges:
    graph, notes = graph_from_matrix(square.matrix, path)
    names = None if square.names is None else tuple(as_text(square.names).tolist())
    data = AttributedGraph(graph, None, node_ids=names, notes=(*describe(square), *notes))
    return _of_graph(path, data, square.names is None)


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
    stored = data.graph.data_weight
    weight = None if stored is None else stored.double().numpy()
    return _Edges(path, u, v, names, notes, None, True, in_rows, features, labels, weight)


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
        _refuse_unknown_header(edges, labels)
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


def _refuse_unknown_header(edges: _Edges, labels: LabelRows) -> None:
    """Refuse a first label that may be a header: there is one row too many, and it is unique."""
    values = labels.values
    counted = counts_up(edges.names) or counts_up(edges.names, 1)
    if labels.text is None or labels.text.header or not counted:
        return
    first = str(values[0])
    once = first not in values[1:] and len(set(values[1:])) < len(values) - 1
    if labels.num_rows == edges.num_named + 1 and first and not is_number(first) and once:
        raise labels.error(
            0,
            f"one label more than nodes, and {first!r} occurs once: remove the line if it is a "
            "header; write `id label` lines if it is the label of a node without edges",
        )


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
