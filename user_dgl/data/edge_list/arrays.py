"""Arrays of NumPy files, and the ids of their rows."""

from pathlib import Path

import numpy as np

from user_dgl.data.attributed_graph import check_text, one_line
from user_dgl.data.edge_list.names import ID_NAMES
from user_dgl.data.formats.npz import member_names, read_member
from user_dgl.data.reading.files import file_size
from user_dgl.data.reading.ids import index_ids, repeated_row, unusable
from user_dgl.errors import InputError


def load_array(path: Path) -> np.ndarray:
    """Map the array of an ``.npy`` file into memory. Pickled objects are refused.

    Raises
    ------
    InputError
        The file is unreadable or damaged, contains objects or is in fact an ``.npz`` file.
    """
    file_size(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: check the path") from None
    except Exception as error:  # NumPy raises many kinds on damaged headers
        problem = one_line(error)
        if "pickle" in problem:  # NumPy's message advises to allow pickles, which is not safe
            problem = "it contains objects, or has another format"
        raise InputError(f"{path}: not a plain npy array ({problem}): save it again") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: holds several arrays: save only one, with numpy.save")
    return array


def load_npz_array(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Read the only array of an ``.npz`` file, and the ids of its rows if the file has them.

    Returns
    -------
    array : ndarray
    ids : ndarray or None

    Raises
    ------
    InputError
        The file is unreadable or damaged, or contains several arrays or pickled objects.
    """
    arrays = {name: read_member(path, name) for name in sorted(member_names(path))}
    ids = [name for name in arrays if name.lower() in ID_NAMES]
    others = [name for name in arrays if name not in ids]
    plain = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    if len(others) != 1 or len(ids) > 1 or len(plain) < len(arrays):
        raise InputError(
            f"{path}: holds {', '.join(arrays) or 'nothing'}: expected one array, and perhaps "
            "another one called `ids`, saved with numpy.savez"
        )
    return plain[others[0]], plain[ids[0]] if ids else None


def index_array_ids(ids: np.ndarray, num_rows: int, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Check the ids of an array's rows, and apply `index_ids` to them.

    Parameters
    ----------
    ids : ndarray
        One id per row, as the file contains them.
    num_rows : int
        Number of rows of the array.
    path : Path
        Name for messages.

    Returns
    -------
    codes, names : ndarray
        See `index_ids`.

    Raises
    ------
    InputError
        There is not one id per row, or an id is unusable or occurs twice.
    """
    if ids.shape != (num_rows,) or ids.dtype.kind not in "iuU":
        raise InputError(
            f"{path}: ids of shape {ids.shape} and type {ids.dtype} for {num_rows} rows: expected "
            "a whole number or text for each row"
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
