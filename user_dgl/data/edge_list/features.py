"""Read node features from text, NumPy, SciPy, MatrixMarket or MATLAB files."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from user_dgl.data.categories import ADVICE, CategoryEncoder
from user_dgl.data.edge_list.arrays import index_array_ids, load_array, load_npz_array
from user_dgl.data.edge_list.names import (
    is_id,
    is_label_of_table,
    is_row_number,
    labels_or_ids,
    words,
)
from user_dgl.data.formats.mat import FEATURE_NAMES, find, read_mat
from user_dgl.data.formats.matrix_market import read_matrix_market
from user_dgl.data.formats.npz import load_sparse, member_names
from user_dgl.data.reading.cells import MISSING, MISSING_CLASS, is_number
from user_dgl.data.reading.files import ending
from user_dgl.data.reading.header import has_header
from user_dgl.data.reading.ids import (
    counts_up,
    index_ids,
    is_text,
    positions,
    repeated_row,
    unusable,
)
from user_dgl.data.reading.matrices import as_features
from user_dgl.data.reading.text import TextFile, open_text
from user_dgl.errors import InputError

_DIGITS = re.compile(r"-?[0-9]+(\.0*)?")
# What stands between several numbers in one cell.
_BETWEEN_NUMBERS = re.compile(r"[\s,;|]+")


@dataclass(frozen=True, eq=False)
class Features:
    """Features of a file, not yet matched to the nodes of a graph.

    Attributes
    ----------
    path : Path
    feat : scipy CSR (R, F) float32
    ids : ndarray (R,) or None
        Node ids of the rows of `feat`, distinct and ascending. None means that the rows have no ids
        and are in the order of the nodes.
    notes : list of str
        Lines for the user that say what was decided.
    """

    path: Path
    feat: sp.csr_matrix
    ids: np.ndarray | None
    notes: list[str]


def read_features(
    path: Path,
    edge_names: np.ndarray,
    missing: str = "refuse",
    categorical: str = "refuse",
    comment: bool | str = "auto",
    label_name: str | None = None,
) -> Features:
    """Read a file of features.

    The ending of the file determines its format:

    - ``.npy``: an array (N, F);
    - ``.npz``: a file of `scipy.sparse.save_npz`, or a file of `numpy.savez` with one array (N, F)
      and perhaps the ids of its rows as an array ``ids``;
    - ``.mtx``: a MatrixMarket file;
    - ``.mat``: a MATLAB file with a variable named as in `user_dgl.data.formats.mat.FEATURE_NAMES`;
    - any other ending: delimited text.

    A text contains ids in the column whose name in the header says so. Without such a name, the
    first column contains ids in these cases: it has no name; or it contains text; or it contains
    distinct whole numbers, and either more than half of them are ids in the edges, or they count
    the rows from 0 or 1. Columns whose name is that of a label, and row numbers beside ids, are
    left out.

    Parameters
    ----------
    path : Path
    edge_names : ndarray
        Distinct ids that occur in the edges.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.
    categorical : str
        Treatment of columns of text behind the first: ``refuse`` or ``one_hot``, which makes a
        column of 0 and 1 for each value. These columns follow the others.
    comment : bool or ``auto``
        See `user_dgl.data.reading.text.open_text`.
    label_name : str, optional
        Name of the column of labels in another file: a column of this name is left out.

    Raises
    ------
    InputError
        The file is unreadable, a cell is not a number, an id is given twice, or a feature is NaN or
        infinite.
    """
    path, kind = Path(path), ending(path)
    notes: list[str] = []
    ids: np.ndarray | None
    if kind in _MATRICES:
        matrix, ids = _MATRICES[kind](path)
        feat = as_features(matrix, path, missing, notes)
        if ids is not None:
            codes, ids = index_array_ids(ids, feat.shape[0], path)
            feat = feat[np.argsort(codes)]
        return Features(path, feat, ids, [f"{path.name}: {note}" for note in notes])
    text = open_text(path, comment=comment)
    return _read_text(text, edge_names, missing, categorical, label_name)


def _read_text(
    text: TextFile,
    edge_names: np.ndarray,
    missing: str,
    categorical: str,
    label_name: str | None,
) -> Features:
    path = text.path
    text = text.without_header() if _has_header(text) else header_above(text)
    width = text.num_columns
    roles = _Roles.of(text, label_name)
    if roles.ids:
        text = text.without_empty_end()
    # The first column may contain ids, so it is read as text, unless it is the only column.
    as_text = {*roles.ids, *roles.labels, *roles.texts, *([0] if width > 1 else [])}
    # Ids of more digits than float32 has may stand in any column.
    kinds = {c: np.float64 if _has_long_ids(text, c) else np.float32 for c in range(width)}
    columns = text.read({c: kind for c, kind in kinds.items() if c not in as_text})
    notes = text.notes()
    id_column, indexed = _id_column(text, roles, columns, edge_names)
    left_out = _left_out(text, roles, id_column, columns)
    notes += [f"{path.name}: {note}" for note in left_out.values()]
    ids = None
    if id_column is not None and indexed is not None:
        codes, ids = indexed
        check_rows_by_id(text, codes, ids)
        where = "the first column" if id_column == 0 else f"column {_name(text, id_column)}"
        notes.append(f"{path.name}: features joined by the ids in {where}")
    kept = [c for c in range(width) if c != id_column and c not in left_out]
    if not kept:
        raise InputError(f"{path}: no column of features is left: {'; '.join(left_out.values())}")
    texts = [c for c in kept if c in roles.texts]
    if texts and categorical == "refuse":
        name, example = _name(text, texts[0]), _example(text, texts[0])
        numbers = _BETWEEN_NUMBERS.split(example.strip("'\"[] "))
        listed = len(numbers) > 1 and all(map(is_number, numbers))
        advice = "write each of its numbers in a column of its own" if listed else ADVICE
        raise text.error(0, f"column {name} has text, such as {example}: {advice}")
    encoder = CategoryEncoder()
    encoded = _encoded(text, {c: columns[c] for c in texts}, encoder)
    kept = [c for c in kept if c not in texts]
    named_ids = [c for c in kept if c in roles.ids]
    if named_ids:
        text.check_rows(numbers=named_ids)
    numbers = [_as_numbers(text, c, columns[c]) if c in as_text else columns[c] for c in kept]
    try:
        filled: list[str] = []
        stacked = np.column_stack(numbers) if numbers else np.empty((len(columns[0]), 0))
        feat = as_features(stacked, path, missing, filled)
        if texts:
            feat = sp.hstack([feat, encoded], format="csr")
            notes.append(f"{path.name}: {encoder.note()}")
        if filled:
            text.check_rows()
            notes += [f"{path.name}: {note}" for note in filled]
    except InputError:
        text.check_rows()  # a row that is too short reads as NaN, and this names its line
        raise
    return Features(path, feat if ids is None else feat[np.argsort(codes)], ids, notes)


@dataclass(frozen=True)
class _Roles:
    """Columns that are no features by their names, or by the text in their first rows.

    Attributes
    ----------
    ids, labels, row_numbers : tuple of int
        Columns with such a name.
    texts : tuple of int
        Other columns with text in the first rows.
    """

    ids: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()
    row_numbers: tuple[int, ...] = ()
    texts: tuple[int, ...] = ()

    @classmethod
    def of(cls, text: TextFile, label_name: str | None) -> "_Roles":
        """Find the columns."""
        names = text.header or ()
        if len(names) != text.num_columns:
            names = ()
        ids = [c for c, name in enumerate(names) if is_id(name)]
        named = set(labels_or_ids(names))
        if label_name is not None and label_name in names:
            named.add(label_name)
        labels = [c for c, name in enumerate(names) if c not in ids and name in named]
        rows = [c for c, name in enumerate(names) if is_row_number(name) and (c == 0 or not name)]
        texts = [
            c
            for c in range(text.num_columns)
            if text.num_columns > 1 and c not in (*ids, *labels) and _is_text(text, c)
        ]
        return cls(tuple(ids), tuple(labels), tuple(rows), tuple(texts))


def _is_text(text: TextFile, column: int) -> bool:
    """Whether most cells of a column that are not missing are text. "None" may be a category."""
    cells = [row[column].strip() for row in text.sample if len(row) > column]
    given = [cell for cell in cells if cell not in MISSING]
    return sum(not _is_value(cell) for cell in given) > len(given) / 2


def _is_value(cell: str) -> bool:
    return is_number(cell) or cell.lower() in ("true", "false")  # the parser reads 1 and 0


def _has_long_ids(text: TextFile, column: int) -> bool:
    cells = [row[column].strip() for row in text.sample if len(row) > column]
    return any(len(cell) > 7 for cell in cells) and all(map(_DIGITS.fullmatch, cells))


def header_above(text: TextFile) -> TextFile:
    """Take the comment above the first row as header, if it names the ids.

    A sentence is no header: all names are single words, only one of them is that of an id, and what
    stands below it are different ids. Of two columns the other one is a label.
    """
    names = text.comment_above()
    ids = [c for c, name in enumerate(names) if is_id(name)]
    words_only = all(re.fullmatch(r"[\w.-]+", name) and not is_number(name) for name in names)
    if len(names) != text.num_columns or len(ids) != 1 or not words_only:
        return text
    if len(names) < 2 or (len(names) == 2 and not is_label_of_table(names[1 - ids[0]])):
        return text
    cells = [row[ids[0]].strip() for row in text.sample if len(row) > ids[0]]
    real = any(is_number(cell) and not _DIGITS.fullmatch(cell) for cell in cells)
    distinct = len(set(cells)) == len(cells)
    return replace(text, header=tuple(names)) if distinct and not real else text


def _has_header(text: TextFile) -> bool:
    first, rest = text.sample[0], text.sample[1:]
    if text.short_header:
        return not any(map(is_number, first))
    return has_header(first, rest, lambda names: any(map(is_id, names))) or _counts(first)


def _name(text: TextFile, column: int) -> str:
    named = column < len(text.header or ())
    return repr(text.header[column]) if text.header and named else str(column + 1)


def _id_column(
    text: TextFile, roles: _Roles, columns: list[np.ndarray], edge_names: np.ndarray
) -> tuple[int | None, tuple[np.ndarray, np.ndarray] | None]:
    """Find the column of the ids, and apply `index_ids` to it."""
    if text.num_columns == 1:
        return None, None

    def names_all(column: int) -> bool:
        names = index_ids(columns[column])[1]
        return len(edge_names) > 0 and bool((positions(names, edge_names) >= 0).all())

    if len(roles.ids) == 1:
        return roles.ids[0], index_ids(columns[roles.ids[0]])
    if roles.ids:
        fitting = [column for column in roles.ids if names_all(column)]
        if len(fitting) != 1:
            shown = " and ".join(_name(text, column) for column in roles.ids)
            raise InputError(
                f"{text.path}: columns {shown} may hold the ids of the nodes: remove or rename all "
                "but one"
            )
        return fitting[0], index_ids(columns[fitting[0]])
    codes, names = index_ids(columns[0])
    # A name of a node beside the row numbers of a data frame.
    if 0 in roles.row_numbers and not names_all(0):
        named = [column for column in roles.texts if names_all(column)]
        if len(named) == 1:
            return named[0], index_ids(columns[named[0]])
    holds = _holds_ids(text, codes, names, edge_names)
    rivals = [] if holds and is_text(names) else _other_ids(text, columns, edge_names)
    named = [c for c in rivals if text.header and words(text.header[c]).endswith("id")]
    if len(named) == 1 and (not holds or 0 in roles.row_numbers):
        return named[0], index_ids(columns[named[0]].astype(np.int64))
    if rivals:
        shown = " and ".join(_name(text, c) for c in ([0] if holds else []) + rivals)
        raise InputError(
            f"{text.path}: column{'s' if holds or len(rivals) > 1 else ''} {shown} may hold the "
            "ids of the nodes: write `node` above the ids, and leave out a column of row numbers"
        )
    return (0, (codes, names)) if holds else (None, None)


def _other_ids(text: TextFile, columns: list[np.ndarray], edge_names: np.ndarray) -> list[int]:
    """Columns of numbers behind the first that hold the ids of all nodes, each once."""
    if is_text(edge_names) or len(edge_names) < 3:
        return []
    found = []
    for column in range(1, text.num_columns):
        sampled = [row[column].strip() for row in text.sample if len(row) > column]
        if len(set(sampled)) < len(sampled) or not all(map(_DIGITS.fullmatch, sampled)):
            continue
        values = columns[column]
        if values.dtype == object:
            continue
        distinct = np.unique(values[np.isfinite(values)])
        if (
            len(distinct) == len(values)
            and np.isin(edge_names.astype(values.dtype), distinct).all()
        ):
            found.append(column)
    return found


def _left_out(
    text: TextFile, roles: _Roles, id_column: int | None, columns: list[np.ndarray]
) -> dict[int, str]:
    """Columns that are no features, each with a note that says so."""
    found = {}
    for column in roles.labels:
        if column != id_column:
            found[column] = (
                f"column {_name(text, column)} left out of the features, because labels must not "
                "be trained on: rename it if it is a feature"
            )
    for column in roles.ids:
        if id_column in roles.ids and column != id_column:
            found[column] = f"column {_name(text, column)} left out: it holds other ids or names"
    for column in roles.row_numbers:
        counts = column == 0 or _are_numbered(columns[column])
        if id_column is not None and column != id_column and counts:
            found[column] = f"column {column + 1} ({_name(text, column)}) left out: it numbers rows"
    for column, cells in enumerate(columns):
        sampled = [row[column].strip() for row in text.sample if len(row) > column]
        empty = column != id_column and text.num_columns > 1 and not any(sampled)
        if empty and (np.isnan(cells).all() if cells.dtype != object else not any(cells)):
            found[column] = f"column {_name(text, column)} left out: it is empty"
    return found


def _are_numbered(cells: np.ndarray) -> bool:
    """Whether the cells are different whole numbers."""
    if cells.dtype != object:
        return len(np.unique(cells)) == len(cells) and bool((cells == np.floor(cells)).all())
    codes, names = index_ids(cells)
    return len(names) == len(codes) and not is_text(names)


def _example(text: TextFile, column: int) -> str:
    cells = (row[column].strip() for row in text.sample if len(row) > column)
    return repr(next(cell for cell in cells if not is_number(cell)))


def _encoded(
    text: TextFile, cells: dict[int, np.ndarray], encoder: CategoryEncoder
) -> sp.csr_matrix:
    """Encode the cells of columns of text."""
    names = text.header if len(text.header or ()) == text.num_columns else None
    frame = pd.DataFrame({names[c] if names else c + 1: column for c, column in cells.items()})
    missing = dict.fromkeys(MISSING_CLASS, np.nan)
    frame = frame.apply(lambda column: column.str.strip()).replace(missing)
    return encoder.encode(frame, str(text.path)) if len(cells) else sp.csr_matrix((0, 0))


def check_rows_by_id(text: TextFile, codes: np.ndarray, names: np.ndarray) -> None:
    """Check that every row has an id and that the ids are distinct.

    Parameters
    ----------
    text : TextFile
        The file, for messages.
    codes, names : ndarray
        Ids of the rows, as `index_ids` returns them.

    Raises
    ------
    InputError
        An id is missing, spans several lines or occurs twice.
    """
    fault = unusable(names, text.missing_ids(names))
    if fault:
        raise text.error(int(np.argmax(codes == fault[0])), fault[1])
    row = repeated_row(codes)
    if row is not None:
        raise text.error(row, f"node {names[codes[row]]!s} given twice: keep one row")


def _npz_matrix(path: Path) -> tuple[np.ndarray | sp.spmatrix, np.ndarray | None]:
    return (load_sparse(path), None) if "format" in member_names(path) else load_npz_array(path)


def _mat_matrix(path: Path) -> tuple[np.ndarray | sp.spmatrix, None]:
    variables = read_mat(path, FEATURE_NAMES)
    name = find(variables, FEATURE_NAMES)
    assert name is not None  # read_mat returns at least one of these variables
    return variables[name], None


# For each ending, a function that reads the matrix of a file and the ids of its rows, or None.
_MATRICES: dict[str, Callable[[Path], tuple[np.ndarray | sp.spmatrix, np.ndarray | None]]] = {
    ".npy": lambda path: (load_array(path), None),
    ".npz": _npz_matrix,
    ".mtx": lambda path: (read_matrix_market(path), None),
    ".mat": _mat_matrix,
}


def _counts(first: list[str]) -> bool:
    # pandas names the columns of an array 0, 1, 2, ... A row of features with exactly these values
    # is very unlikely.
    return len(first) > 2 and first == [str(column) for column in range(len(first))]


def _holds_ids(
    text: TextFile, codes: np.ndarray, names: np.ndarray, edge_names: np.ndarray
) -> bool:
    if text.header and not text.header[0]:
        return True
    known = positions(names, edge_names) >= 0
    if not is_text(names):
        distinct = len(names) == len(codes)
        counting = len(names) > 2 and (counts_up(names) or counts_up(names, 1))
        # More than half suffices. If all were required, a mistyped id would turn the ids into a
        # feature, instead of an error that names this id.
        return distinct and (2 * int(known.sum()) > len(known) or counting)
    numbers = sum(map(is_number, names))
    if numbers == len(names):
        return False
    if not known.all() and not is_text(edge_names) and 2 * numbers > len(names):
        # Most cells are numbers, so a text is probably a mistake.
        text.check_rows(numbers=range(text.num_columns))
    return True


def _as_numbers(text: TextFile, column: int, cells: np.ndarray) -> np.ndarray:
    """Convert cells that were read as text to numbers."""
    codes, spelled = pd.factorize(cells)
    numbers = np.empty(len(spelled))
    for code, cell in enumerate(cell.strip() for cell in spelled):
        if not _is_value(cell):
            row = int(np.argmax(codes == code))
            raise text.error(row, f"column {_name(text, column)}: {cell!r} is not a number: fix it")
        truth = {"true": 1.0, "false": 0.0}.get(cell.lower())
        numbers[code] = truth if truth is not None else np.nan if cell in MISSING else float(cell)
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)[codes]
