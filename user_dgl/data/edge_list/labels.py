"""Files of node labels: one a line in node order, ``id label`` lines, ``.npy``, ``.npz``, ``.mat``.

Labels serve scores only; see `user_dgl.data.attributed_graph.AttributedGraph`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from user_dgl.data.attributed_graph import UNLABELLED, index_labels
from user_dgl.data.edge_list.features import (
    check_rows_by_id,
    index_array_ids,
    load_array,
    load_npz_array,
)
from user_dgl.data.formats.mat import LABEL_NAMES, find, one_label_a_node, read_mat
from user_dgl.data.reading.files import ending
from user_dgl.data.reading.ids import (
    ID_NAMES,
    index_ids,
    is_text,
    positions,
    spelling_hint,
    tidy_ids,
)
from user_dgl.data.reading.text import MISSING, TextFile, has_header, open_text
from user_dgl.errors import InputError

_LABEL_NAMES = frozenset(("label", "labels", "class", "classes", "cluster", "group", "community"))


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Labels as the file holds them.

    Attributes
    ----------
    path : Path
    values : ndarray (R,)
        Text, blank where missing, or numbers.
    text : TextFile or None
    codes, names : ndarray or None
        Distinct ids, ascending, and the position of each row's id among them; None: node order.
    """

    path: Path
    values: np.ndarray
    text: TextFile | None = None
    codes: np.ndarray | None = None
    names: np.ndarray | None = None

    @property
    def by_id(self) -> bool:
        """Whether rows carry ids."""
        return self.names is not None

    def error(self, row: int, problem: str) -> InputError:
        """The error for a row, at its line if the file has lines."""
        return self.text.error(row, problem) if self.text else InputError(f"{self.path}: {problem}")

    @property
    def num_rows(self) -> int:
        """Rows up to the last that holds a label."""
        return _last_given(self.values)


def read_label_rows(path: Path) -> LabelRows:
    """Labels of a file.

    Raises
    ------
    InputError
        File unreadable, more than two columns, an id given twice.
    """
    path, kind = Path(path), ending(path)
    if kind == ".mat":
        variables = read_mat(path, LABEL_NAMES)
        name = find(variables, LABEL_NAMES)
        values, problem = one_label_a_node(variables[name], path)
        if problem:
            raise InputError(f"{path}: {name}: {problem}: expected one a node")
        return LabelRows(path, values)
    if kind in (".npy", ".npz"):
        values, ids = (load_array(path), None) if kind == ".npy" else load_npz_array(path)
        if values.ndim != 1 or values.dtype.kind not in "biufU":
            raise InputError(
                f"{path}: array of shape {values.shape} and type {values.dtype}: expected one "
                "label for each node"
            )
        if ids is None:
            return LabelRows(path, values)
        return LabelRows(path, values, None, *index_array_ids(ids, len(values), path))
    text = open_text(path, single_column=True)
    if has_header(text.sample[0], text.sample[1:], _names_columns):
        text = text.without_header()
    width = text.num_columns
    if width > 2:
        raise text.error(0, f"{width} columns: expected `label` or `id label` lines")
    if width == 1:
        return LabelRows(path, _tidy(text.read_lines()), text)
    ids, values = text.read({})
    codes, names = index_ids(ids)
    check_rows_by_id(text, codes, names)
    return LabelRows(path, _tidy(values), text, codes, names)


def match_labels(
    rows: LabelRows, names: np.ndarray, all_named: bool = True
) -> tuple[np.ndarray, list[str]]:
    """Labels of the nodes, and notes on what was done.

    Parameters
    ----------
    rows : LabelRows
    names : ndarray (N,)
        Ids in node order.
    all_named : bool
        Whether an id that is none of them must be a slip; else it may be a node without edges.

    Returns
    -------
    labels : int64 (N,)
        0..C-1, or `UNLABELLED`.
    notes : list of str

    Raises
    ------
    InputError
        Rows that do not fit the nodes.
    """
    notes = rows.text.notes() if rows.text else []
    labels = np.full(len(names), UNLABELLED, dtype=np.int64)
    if rows.by_id:
        place = positions(names, rows.names)[rows.codes]
        known = place >= 0
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            # Ids beyond the graph are harmless only if they cannot be misspelt or shifted ones.
            if known.sum() < len(names) and (all_named or not known.any()):
                name = rows.names[rows.codes[row]]
                problem = f"node {name!s} is not in the graph: check the id"
                raise rows.error(row, problem + spelling_hint(name))
            notes.append(f"{rows.path.name}: {int((~known).sum())} ids outside the graph left out")
        labels[place[known]] = index_labels(rows.values[known], rows.path)
    else:
        if is_text(names):
            raise InputError(
                f"{rows.path}: labels without ids, but node ids are text: write `id label` lines"
            )
        labels[:] = index_labels(_in_order(rows, len(names)), rows.path)
    given = int((labels != UNLABELLED).sum())
    if given < len(names):
        notes.append(f"{rows.path.name}: {given} of {len(names)} nodes have a label")
    return labels, notes


def read_labels(path: Path, node_ids: tuple[str, ...] | None, num_nodes: int) -> np.ndarray:
    """Labels of a file for the nodes of a graph.

    Parameters
    ----------
    path : Path
        Text with one label a line in node order (a blank line: none) or ``id label`` lines in any
        order, with or without header; ``.npy``, one label a node; ``.npz``, `numpy.savez` of the
        labels and perhaps of the ids they belong to, ``ids``; or ``.mat``, a variable named as in
        `user_dgl.data.formats.mat.LABEL_NAMES`.
    node_ids : tuple of str (N,) or None
        Ids in node order; None: 0..N-1.
    num_nodes : int
        N.

    Returns
    -------
    int64 (N,)
        0..C-1, or `UNLABELLED` for nodes without label. Ids outside the graph are left out if
        every node of the graph has its row.

    Raises
    ------
    InputError
        File unreadable or not fitting the nodes.
    """
    names = np.arange(num_nodes) if node_ids is None else tidy_ids(node_ids)
    return match_labels(read_label_rows(path), names)[0]


def _names_columns(names: list[str]) -> bool:
    return names[-1] in _LABEL_NAMES or (len(names) > 1 and names[0] in ID_NAMES)


def _tidy(values) -> np.ndarray:
    values = [value.strip() for value in values]
    return np.array(["" if value in MISSING else value for value in values], dtype=object)


def _last_given(values: np.ndarray) -> int:
    if values.dtype != object:
        return len(values)
    given = np.flatnonzero(values != "")
    return int(given[-1]) + 1 if len(given) else 0


def _in_order(rows: LabelRows, num_nodes: int) -> np.ndarray:
    values = rows.values
    if values.dtype == object and len(values) != num_nodes:
        if rows.num_rows <= num_nodes < len(values):
            return values[:num_nodes]
        if (values != "").sum() == num_nodes:  # blank lines between labels
            return values[values != ""]
    if len(values) != num_nodes:
        raise InputError(
            f"{rows.path}: {rows.num_rows} labels for {num_nodes} nodes: give one line for each "
            "node, or `id label` lines"
        )
    return values
