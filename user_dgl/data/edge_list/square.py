"""Square tables of numbers in text: an adjacency matrix or similarities, with or without names."""

from dataclasses import dataclass

import numpy as np

from user_dgl.data.edge_list.names import find_ends
from user_dgl.data.reading.cells import is_number
from user_dgl.data.reading.files import check_room
from user_dgl.data.reading.ids import index_ids, positions, repeated_row, unusable
from user_dgl.data.reading.lines import count_line_ends
from user_dgl.data.reading.text import TextFile
from user_dgl.errors import InputError

# Fewer nodes are a table only if rows and columns have the same names.
_LEAST_NODES = 3
_LEAST_DIRECTED = 4


@dataclass(frozen=True, eq=False)
class Square:
    """A square table of numbers.

    Attributes
    ----------
    matrix : ndarray (N, N) float64
        Row r and column r belong to the same node.
    names : ndarray (N,) or None
        Ids of the nodes, distinct and in ascending order; None if the table has no names.
    sure : bool
        Whether the numbers, or names of rows and columns, leave no doubt. Otherwise they may be
        rows of edges as well.
    """

    matrix: np.ndarray
    names: np.ndarray | None
    sure: bool


def read_square(text: TextFile) -> Square | None:
    """Read a file as a square table of numbers; None if it is none.

    Names stand in the first row, in the first column, or in both. There they must be the same, in
    any order.

    Raises
    ------
    InputError
        The table does not fit the memory, a row has too few cells, or a name is missing or given
        twice.
    """
    first, *rest = ([cell.strip() for cell in row] for row in text.sample)
    if not rest or any(len(row) != len(rest[0]) for row in rest):
        return None
    width = len(rest[0])
    if not _has_rows(text, width):
        return None
    named = not _numeric([row[:1] for row in rest])
    above = first[1:] if len(first) == width else first
    # The names may be numbers too.
    corner = len(first) == width - 1 or (len(first) == width and not _numeric([first[:1]]))
    twice = corner and _same(above, [row[0] for row in rest])
    if twice or named:
        if not _numeric([row[1:] for row in rest]):
            return None
        header = twice or not _numeric([first[1:]])
        return _read(text, above if header else None, True, twice)
    if not _numeric(rest) or len(first) != width:
        return None
    header = not _numeric([first])
    if header and (len(set(first)) < width or "" in first or find_ends(first).known):
        return None
    return _read(text, first if header else None, False, False)


def _has_rows(text: TextFile, width: int) -> bool:
    """Whether the number of rows is the number of columns, give or take names."""
    if width < _LEAST_NODES:
        return False
    most = 2 * width + 4
    if not width - 1 <= count_line_ends(text.body, most) + 1 <= most:
        return False
    return width - 1 <= sum(bool(line.strip()) for line in text.body.split(b"\n")) <= width + 1


def _numeric(rows: list[list[str]]) -> bool:
    return all(is_number(cell) and cell != "" for row in rows for cell in row)


def _same(above: list[str], in_front: list[str]) -> bool:
    return len(set(above)) == len(above) and "" not in above and set(in_front) <= set(above)


def _read(text: TextFile, above: list[str] | None, in_front: bool, twice: bool) -> Square | None:
    """Read the numbers, given what has names."""
    if above is not None:
        text = text.without_header()
    size = text.num_columns - in_front
    check_room(2 * 8 * size * size, text.path)
    dtypes: dict[int, type] = {c: np.float64 for c in range(in_front, text.num_columns)}
    columns = text.read(dtypes)
    if len(columns[0]) != size:
        return None
    text.check_rows() if any(len(row) != text.num_columns for row in text.sample) else None
    matrix = np.column_stack(columns[in_front:]).astype(np.float64)
    if above is not None and size > _LEAST_NODES:
        sums = matrix[:, :-1].sum(axis=1)
        if matrix.any() and np.allclose(sums, matrix[:, -1]):
            raise InputError(
                f"{text.path}: the column {above[-1]} holds the sums of the rows: remove it and "
                "the row of sums"
            )
    names = None
    if in_front:
        codes, names = _index(text, columns[0])
        order = np.argsort(codes)
        if above is not None and not twice:
            return None
        if above is not None:
            other = positions(index_ids(np.array(above, dtype=object))[1], names)
            if len(above) != size or (other < 0).any():
                return None
            across = np.argsort(index_ids(np.array(above, dtype=object))[0])
        else:
            across = order
        matrix = matrix[order][:, across]
    elif above is not None:
        codes, names = index_ids(np.array(above, dtype=object))
        order = np.argsort(codes)
        matrix = matrix[order][:, order]
    if twice:
        return Square(matrix, names, True)
    if size < _LEAST_NODES:
        return None
    diagonal = np.diag(matrix)
    constant = bool((diagonal == diagonal[0]).all())
    symmetric = np.allclose(matrix, matrix.T, equal_nan=True)
    zero_or_one = bool(np.isin(matrix, (0, 1)).all())
    if size < _LEAST_DIRECTED:
        sure = symmetric and constant
        possible = sure or (zero_or_one and constant)
    else:
        sure = symmetric or zero_or_one or (constant and diagonal[0] == 0)
        possible = sure
    return Square(matrix, names, sure) if possible else None


def _index(text: TextFile, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes, names = index_ids(ids)
    fault = unusable(names)
    if fault:
        raise text.error(int(np.argmax(codes == fault[0])), fault[1])
    row = repeated_row(codes)
    if row is not None:
        raise text.error(row, f"node {names[codes[row]]!s} given twice: keep one row")
    return codes, names


def describe(square: Square) -> list[str]:
    """Return notes on how the table was read."""
    size = len(square.matrix)
    lines = [f"read as an adjacency matrix of {size} nodes (data.layout=pairs: as rows of edges)"]
    if size > _LEAST_DIRECTED and (square.matrix != 0).sum() >= size * (size - 1):
        lines.append("every pair of nodes is an edge: leave out small values to make clusters show")
    return lines
