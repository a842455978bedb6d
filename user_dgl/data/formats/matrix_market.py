"""Read MatrixMarket files, ``.mtx`` and ``.mtx.gz``: an adjacency matrix or features."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.data.reading.matrices import check_shape, graph_from_matrix
from user_dgl.data.reading.text import TextFile, open_text
from user_dgl.errors import InputError

_HEADER = b"%%matrixmarket"
# Such a file stores one half of a symmetric matrix. The entries below the diagonal, times this
# factor, give the entries above it.
_MIRRORED = {"general": 0, "symmetric": 1, "skew-symmetric": -1}


def load_matrix_market(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load the graph of an adjacency matrix in a MatrixMarket file.

    Parameters
    ----------
    path : Path
    missing : str
        Not used, because the file has no features. All loaders of graph files have this parameter.

    Returns
    -------
    AttributedGraph
        Without features and labels. The ids are 1..N, as the file counts the nodes.

    Raises
    ------
    InputError
        `read_matrix_market` failed, or the matrix is not an adjacency matrix.
    """
    graph, notes = graph_from_matrix(read_matrix_market(path), path)
    ids = tuple(map(str, range(1, graph.num_nodes + 1)))
    return AttributedGraph(
        graph, None, None, ids, (*notes, f"ids are 1..{len(ids)}, as in the file")
    )


def read_matrix_market(path: Path) -> sp.coo_matrix:
    """Read the matrix of a MatrixMarket file, gzipped or not.

    The rows are parsed by pandas, as in other text files. SciPy's `mmread` crashes the process on
    some malformed rows (version 1.17: a number with a letter behind it).

    Raises
    ------
    InputError
        The file is unreadable, malformed (with the line) or cut off, or contains complex numbers.
    """
    text = open_text(path, comment=True)
    # The first line, for example: %%MatrixMarket matrix coordinate real general
    kinds = text.original.partition(b"\n")[0].decode(errors="replace").lower().split()
    layouts = ("coordinate", "array")
    fields = ("real", "double", "integer", "unsigned-integer", "pattern")
    if not (
        text.original[: len(_HEADER)].lower() == _HEADER
        and len(kinds) == 5
        and kinds[1] == "matrix"
        and kinds[2] in layouts
        and kinds[3] in fields[: None if kinds[2] == "coordinate" else -1]
        and kinds[4] in _MIRRORED
    ):
        raise InputError(
            f"{path}:1: expected `%%MatrixMarket matrix` and {' or '.join(layouts)}, one of "
            f"{', '.join(fields)}, and one of {', '.join(_MIRRORED)}"
        )
    size = " ".join(text.sample[0]).split()
    is_array = kinds[2] == "array"
    if len(size) != (2 if is_array else 3) or not all(n.isdecimal() for n in size):
        wanted = "rows and columns" if is_array else "rows, columns and entries"
        raise text.error(0, f"{' '.join(size)!r}: expected numbers of {wanted}")
    shape = (int(size[0]), int(size[1]))
    check_shape(shape, path)
    body, mirrored = text.without_header(), _MIRRORED[kinds[4]]
    if mirrored and shape[0] != shape[1]:
        raise text.error(0, f"{kinds[4]} of shape {shape}: expected as many rows as columns")
    read = _read_array if is_array else _read_entries
    row, column, value = read(body, shape, kinds[3], mirrored, size)
    if np.isnan(value).any():
        body.check_rows()  # a row that is too short reads as NaN, and this names its line
    if mirrored:
        below = np.flatnonzero(row != column)
        value = np.concatenate([value, mirrored * value[below]])
        row, column = (
            np.concatenate([ends, others[below]]) for ends, others in ((row, column), (column, row))
        )
    return sp.coo_matrix((value, (row, column)), shape=shape)


def _read_entries(
    body: TextFile, shape: tuple[int, int], field: str, mirrored: int, size: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    width = 2 if field == "pattern" else 3
    if body.num_columns != width:
        raise body.error(0, f"{body.num_columns} columns, expected {width}")
    row, column, *values = body.read({0: np.int64, 1: np.int64, 2: np.float64})
    _check_count(body, len(row), int(size[2]))
    for ends, count, name in ((row, shape[0], "row"), (column, shape[1], "column")):
        outside = np.flatnonzero((ends < 1) | (ends > count))
        if len(outside):
            at = int(outside[0])
            raise body.error(at, f"{name} {ends[at]}: expected 1..{count}")
    return row - 1, column - 1, values[0] if values else np.ones(len(row))


def _read_array(
    body: TextFile, shape: tuple[int, int], field: str, mirrored: int, size: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if body.num_columns != 1:
        raise body.error(0, f"{body.num_columns} columns, expected 1")
    (value,) = body.read({0: np.float64})
    rows, columns = shape
    # The values are column by column. For a symmetric matrix, each column starts at the diagonal;
    # for a skew-symmetric matrix, below it.
    expected = rows * (rows + mirrored) // 2 if mirrored else rows * columns
    _check_count(body, len(value), expected)
    if mirrored:
        column, row = np.triu_indices(rows, 0 if mirrored > 0 else 1)
    else:
        column, row = np.divmod(np.arange(expected), rows)
    return row, column, value


def _check_count(body: TextFile, found: int, expected: int) -> None:
    if found != expected:
        raise InputError(f"{body.path}: {found} entries, expected {expected}: is it cut off?")
