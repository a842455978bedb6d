"""Files of node features, rows in order or with ids: text, NumPy, SciPy, MatrixMarket, MATLAB."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import check_text, one_line
from user_dgl.data.formats.mat import FEATURE_NAMES, find, read_mat
from user_dgl.data.formats.matrix_market import read_matrix_market
from user_dgl.data.formats.npz import load_sparse, member_names, read_member
from user_dgl.data.reading.files import ending, file_size
from user_dgl.data.reading.ids import (
    ID_NAMES,
    counts_up,
    index_ids,
    is_text,
    positions,
    repeated_row,
    unusable,
)
from user_dgl.data.reading.matrices import as_features
from user_dgl.data.reading.text import MISSING, TextFile, has_header, is_number, open_text
from user_dgl.errors import InputError


@dataclass(frozen=True, eq=False)
class Features:
    """Features as the file holds them.

    Attributes
    ----------
    path : Path
    feat : scipy CSR (R, F) float32
    ids : ndarray (R,) or None
        Distinct node ids, ascending, of which `feat` is in the order; None: rows in node order.
    notes : list of str
    """

    path: Path
    feat: sp.csr_matrix
    ids: np.ndarray | None
    notes: list[str]


def read_features(path: Path, edge_names: np.ndarray, missing: str = "refuse") -> Features:
    """Features of a file.

    Parameters
    ----------
    path : Path
        ``.npy``: array (N, F); ``.npz``: `scipy.sparse.save_npz`, or `numpy.savez` of one array
        (N, F) and perhaps of the ids of its rows, ``ids``; ``.mtx``; ``.mat``, a variable named as
        in `formats.mat.FEATURE_NAMES`; else delimited text. In text, the first column holds
        ids if its name says so, if it holds text, or if it holds distinct whole numbers that either
        include more than half of the ids of the edges or count the rows.
    edge_names : ndarray
        Distinct ids that the edges name.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Raises
    ------
    InputError
        File unreadable, cell that is no number, an id given twice, NaN or infinite features.
    """
    path, kind, notes = Path(path), ending(path), []
    if kind in _MATRICES:
        matrix, ids = _MATRICES[kind](path)
        feat = as_features(matrix, path, missing, notes)
        if ids is not None:
            codes, ids = index_array_ids(ids, feat.shape[0], path)
            feat = feat[np.argsort(codes)]
        return Features(path, feat, ids, [f"{path.name}: {note}" for note in notes])
    text = open_text(path)
    first, rest = text.sample[0], text.sample[1:]
    if has_header(first, rest, lambda names: names[0] in ID_NAMES) or _counts(first):
        text = text.without_header()
    width = text.num_columns
    # A first column that may hold ids is read as text; a column alone cannot.
    columns = text.read({column: np.float32 for column in range(min(1, width - 1), width)})
    ids, notes = None, text.notes()
    if width > 1:
        codes, names = index_ids(columns[0])
        if _holds_ids(text, codes, names, edge_names):
            check_rows_by_id(text, codes, names)
            ids = names
            notes.append(f"{path.name}: features joined by the ids in the first column")
            columns = columns[1:]
        else:
            columns[0] = _as_numbers(names)[codes]
    try:
        filled = []
        feat = as_features(np.column_stack(columns), path, missing, filled)
        if filled:
            text.check_rows()
            notes += [f"{path.name}: {note}" for note in filled]
    except InputError:
        text.check_rows()  # a row cut short reads as NaN: then name its line instead
        raise
    return Features(path, feat if ids is None else feat[np.argsort(codes)], ids, notes)


def check_rows_by_id(text: TextFile, codes: np.ndarray, names: np.ndarray) -> None:
    """Refuse rows whose id is missing or that an earlier row has.

    Raises
    ------
    InputError
    """
    fault = unusable(names)
    if fault:
        raise text.error(int(np.argmax(codes == fault[0])), fault[1])
    row = repeated_row(codes)
    if row is not None:
        raise text.error(row, f"node {names[codes[row]]!s} given twice: keep one row")


def _npz_matrix(path: Path):
    return (load_sparse(path), None) if "format" in member_names(path) else load_npz_array(path)


def _mat_matrix(path: Path):
    variables = read_mat(path, FEATURE_NAMES)
    return variables[find(variables, FEATURE_NAMES)], None


# By ending: the matrix of a file, and the ids of its rows where it has them.
_MATRICES = {
    ".npy": lambda path: (load_array(path), None),
    ".npz": _npz_matrix,
    ".mtx": lambda path: (read_matrix_market(path), None),
    ".mat": _mat_matrix,
}


def load_array(path: Path) -> np.ndarray:
    """Array of an ``.npy`` file, mapped and not read; pickled objects are refused."""
    file_size(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: check the path") from None
    except Exception as error:  # NumPy's parser of headers raises many kinds on damaged ones
        problem = one_line(error)
        if "pickle" in problem:  # NumPy's advice is to load it in spite of that
            problem = "of objects, or of another format"
        raise InputError(f"{path}: not a plain npy array ({problem}): save it anew") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: holds several arrays: save the one meant with numpy.save")
    return array


def load_npz_array(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """The one array of an ``.npz`` file, and the ids of its rows if there are any beside it.

    Raises
    ------
    InputError
        File unreadable or damaged, several arrays, pickled objects.
    """
    arrays = {name: read_member(path, name) for name in sorted(member_names(path))}
    ids = [name for name in arrays if name.lower() in ID_NAMES]
    others = [name for name in arrays if name not in ids]
    plain = all(isinstance(array, np.ndarray) for array in arrays.values())
    if len(others) != 1 or len(ids) > 1 or not plain:
        raise InputError(
            f"{path}: holds {', '.join(arrays) or 'nothing'}: expected one array, and perhaps one "
            "called `ids`, saved with numpy.savez"
        )
    return arrays[others[0]], arrays[ids[0]] if ids else None


def index_array_ids(ids: np.ndarray, num_rows: int, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """`index_ids` of the ids of an array's rows; refuses those that name no row or two.

    Raises
    ------
    InputError
    """
    if ids.shape != (num_rows,) or ids.dtype.kind not in "iuU":
        raise InputError(
            f"{path}: ids of shape {ids.shape} and type {ids.dtype} for {num_rows} rows: expected "
            "a whole number or text for each"
        )
    check_text(ids, path)
    codes, names = index_ids(ids.astype(object))
    fault = unusable(names)
    if fault:
        raise InputError(f"{path}: row {int(np.argmax(codes == fault[0]))}: {fault[1]}")
    row = repeated_row(codes)
    if row is not None:
        raise InputError(f"{path}: node {ids[row]} given twice, again in row {row}: keep one")
    return codes, names


def _counts(first: list[str]) -> bool:
    # The column names that pandas gives an array: a feature row 0, 1, 2, ... would be a marvel.
    return len(first) > 2 and first == [str(column) for column in range(len(first))]


def _holds_ids(text: TextFile, codes, names, edge_names) -> bool:
    if text.header and (not text.header[0] or text.header[0].lower() in ID_NAMES):
        return True
    known = positions(names, edge_names) >= 0
    if not is_text(names):
        distinct = len(names) == len(codes)
        counting = len(names) > 2 and (counts_up(names) or counts_up(names, 1))
        # Not all: a mistyped id must be named, not turn the column of ids into a feature.
        return distinct and (2 * int(known.sum()) > len(known) or counting)
    numbers = sum(map(is_number, names))
    if numbers == len(names):
        return False
    if not known.all() and not is_text(edge_names) and 2 * numbers > len(names):
        text.check_rows(numbers=range(text.num_columns))  # a slip in a column of numbers
    return True


def _as_numbers(names: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array([np.nan if n in MISSING else float(n) for n in names]).astype(np.float32)
