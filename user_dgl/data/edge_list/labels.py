"""Read node labels from text, ``.npy``, ``.npz`` or ``.mat`` files.

Labels are never used for training; see `user_dgl.data.attributed_graph.AttributedGraph`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from user_dgl.data.attributed_graph import UNLABELLED, index_labels
from user_dgl.data.edge_list.arrays import index_array_ids, load_array, load_npz_array
from user_dgl.data.edge_list.features import check_rows_by_id, header_above
from user_dgl.data.edge_list.names import (
    is_id,
    is_label,
    is_label_of_table,
    is_own_name,
    is_row_number,
)
from user_dgl.data.formats.mat import LABEL_NAMES, find, one_label_a_node, read_mat
from user_dgl.data.reading.cells import MISSING_CLASS, is_number
from user_dgl.data.reading.files import ending
from user_dgl.data.reading.header import has_header
from user_dgl.data.reading.ids import (
    index_ids,
    is_text,
    positions,
    spelling_hint,
    tidy_ids,
)
from user_dgl.data.reading.text import TextFile, open_text
from user_dgl.errors import InputError


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Labels of a file, not yet matched to the nodes of a graph.

    Attributes
    ----------
    path : Path
    values : ndarray (R,)
        One label per row: text, empty if it is missing, or numbers.
    text : TextFile or None
        The file, if it is a text.
    codes, names : ndarray or None
        ``names`` are the distinct ids in ascending order, and row r has the id
        ``names[codes[r]]``. None means that the rows have no ids and are in the order of the nodes.
    column : str or None
        Name of the column of the labels, if the file has a header and it is a name of its own.
    """

    path: Path
    values: np.ndarray
    text: TextFile | None = None
    codes: np.ndarray | None = None
    names: np.ndarray | None = None
    column: str | None = None

    @property
    def by_id(self) -> bool:
        """Whether the rows have ids."""
        return self.names is not None

    def error(self, row: int, problem: str) -> InputError:
        """Make an error for a row, with its line if the file is a text."""
        return self.text.error(row, problem) if self.text else InputError(f"{self.path}: {problem}")

    @property
    def num_rows(self) -> int:
        """Number of rows up to the last row with a label."""
        return _last_given(self.values)


def read_label_rows(path: Path, comment: bool | str = "auto") -> LabelRows:
    """Read a file of labels. `read_labels` describes the formats.

    ``comment`` is that of `user_dgl.data.reading.text.open_text`.

    Raises
    ------
    InputError
        The file is unreadable or has more than two columns, or an id is given twice.
    """
    path, kind = Path(path), ending(path)
    if kind == ".mat":
        variables = read_mat(path, LABEL_NAMES)
        name = find(variables, LABEL_NAMES)
        assert name is not None  # read_mat returns at least one of these variables
        labels, problem = one_label_a_node(variables[name], path)
        if labels is None:
            raise InputError(f"{path}: {name}: {problem}: expected one label per node")
        return LabelRows(path, labels)
    if kind in (".npy", ".npz"):
        values, ids = (load_array(path), None) if kind == ".npy" else load_npz_array(path)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8", "replace")
        if values.ndim != 1 or values.dtype.kind not in "biufU":
            raise InputError(
                f"{path}: array of shape {values.shape} and type {values.dtype}: expected one "
                "label for each node"
            )
        if ids is None:
            return LabelRows(path, values)
        return LabelRows(path, values, None, *index_array_ids(ids, len(values), path))
    text = open_text(path, single_column=True, comment=comment)
    text = text.without_header() if _has_header(text) else header_above(text)
    width = text.num_columns
    if width > 1:  # then all rows have ids
        text = text.without_empty_end()
    if width == 1:
        return LabelRows(path, _tidy(text.read_lines()), text)
    id_column, label_column = _find_columns(text)
    columns = text.read({})
    if width > 2:
        text.check_rows()
    codes, names = index_ids(columns[id_column])
    check_rows_by_id(text, codes, names)
    header = text.header or ()
    name = header[label_column] if len(header) == width else ""
    own = name if is_own_name(name) else None
    return LabelRows(path, _tidy(columns[label_column]), text, codes, names, own)


def _has_header(text: TextFile) -> bool:
    first, rest = text.sample[0], text.sample[1:]
    if text.short_header:
        # Row names stand in front, or the first row is an id whose label is missing.
        ids = [row[0].strip() for row in rest]
        words = not any(map(is_number, first))
        return words and (_names_columns(first) or all(map(is_number, ids)))
    return has_header(first, rest, _names_columns)


def _find_columns(text: TextFile) -> tuple[int, int]:
    """Find the columns of the ids and of the labels."""
    names = text.header or ()
    if len(names) == text.num_columns:
        ids = [c for c, name in enumerate(names) if is_id(name)]
        labels = [c for c, name in enumerate(names) if is_label_of_table(name) and c not in ids]
        plain = [c for c in labels if is_label(names[c])]
        labels = plain if len(plain) == 1 else labels  # `label` and not `label_encoded`
        others = [c for c, name in enumerate(names) if c not in ids and not is_row_number(name)]
        if len(ids) == 1 and len(labels) != 1 and len(others) == 1:
            labels = others
        if not ids and len(labels) == 1 and len(names) == 2:
            ids = [1 - labels[0]]
        if len(ids) == len(labels) == 1:
            return ids[0], labels[0]
    if text.num_columns > 2:
        raise text.error(
            0,
            f"{text.num_columns} columns: expected `label` or `id label` lines, or a header with "
            "one name such as `node` and one such as `label`",
        )
    return 0, 1


def match_labels(
    rows: LabelRows, names: np.ndarray, all_named: bool = True
) -> tuple[np.ndarray, list[str]]:
    """Match the rows of a file of labels to the nodes.

    Parameters
    ----------
    rows : LabelRows
    names : ndarray (N,)
        Ids in node order.
    all_named : bool
        Whether ``names`` is known to contain all nodes. If so, an unknown id in the file is an
        error. If not, an unknown id may belong to a node without edges.

    Returns
    -------
    labels : int64 (N,)
        0..C-1, or `UNLABELLED`.
    notes : list of str
        Lines for the user that say what was decided.

    Raises
    ------
    InputError
        The rows do not fit the nodes.
    """
    notes = rows.text.notes() if rows.text else []
    labels = np.full(len(names), UNLABELLED, dtype=np.int64)
    if rows.codes is not None and rows.names is not None:
        place = positions(names, rows.names)[rows.codes]
        known = place >= 0
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            # If every node has its row, unknown ids are harmless. Else they may be wrong spellings
            # of the ids that have no row, or ids that are counted from another number.
            if known.sum() < len(names) and (all_named or not known.any()):
                name = rows.names[rows.codes[row]]
                problem = f"node {name!s} is not in the graph: check the id"
                raise rows.error(row, problem + spelling_hint(name))
            notes.append(
                f"{rows.path.name}: {int((~known).sum())} ids that are not in the graph ignored"
            )
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
    """Read the labels of a graph's nodes from a file.

    The ending of the file determines its format:

    - ``.npy``: an array with one label per node;
    - ``.npz``: a file of `numpy.savez` with an array of labels, and perhaps the node ids of its
      rows as an array ``ids``;
    - ``.mat``: a MATLAB file with a variable named as in `user_dgl.data.formats.mat.LABEL_NAMES`;
    - any other ending: text, with or without header. Its lines are either labels in node order, and
      a blank line means no label, or they are ``id label`` in any order.

    Parameters
    ----------
    path : Path
    node_ids : tuple of str (N,) or None
        Ids in node order. None means that the ids are 0..N-1.
    num_nodes : int
        Number of nodes N.

    Returns
    -------
    int64 (N,)
        0..C-1, or `UNLABELLED` for nodes without label. Ids that are not in the graph are ignored
        if every node of the graph has its row.

    Raises
    ------
    InputError
        The file is unreadable or does not fit the nodes.
    """
    names = np.arange(num_nodes) if node_ids is None else tidy_ids(node_ids)
    return match_labels(read_label_rows(path), names)[0]


def _names_columns(names: list[str]) -> bool:
    return any(map(is_label_of_table, names)) or (len(names) > 1 and any(map(is_id, names)))


def _tidy(values: Iterable[str]) -> np.ndarray:
    stripped = [value.strip() for value in values]
    return np.array(["" if value in MISSING_CLASS else value for value in stripped], dtype=object)


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
        if (values != "").sum() == num_nodes:  # the blank lines only separate labels
            return values[values != ""]
    if len(values) != num_nodes:
        raise InputError(
            f"{rows.path}: {rows.num_rows} labels for {num_nodes} nodes: give one line for each "
            "node, or `id label` lines"
        )
    return values
