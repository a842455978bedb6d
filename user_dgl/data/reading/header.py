"""Whether the first row of a table holds the names of its columns."""

from collections.abc import Callable

from user_dgl.data.reading.cells import MISSING, is_number


def has_header(first: list[str], rest: list[list[str]], known: Callable[[list[str]], bool]) -> bool:
    """Whether the first of the sampled rows is a header.

    It is a header in three cases:

    - the caller knows its names, and no cell occurs again in its own column;
    - its first cell is empty, but no cell below it is (the index column of a data frame);
    - some columns below it contain only numbers, and its cells above them are not numbers.

    Parameters
    ----------
    first : list of str
        Cells of the first row.
    rest : list of list of str
        Cells of the next rows.
    known : callable
        Whether the cells of the first row, in lower case, are known names of columns.
    """
    rest = [row for row in rest if len(row) == len(first)]
    first = [cell.strip() for cell in first]
    below = [[cell.strip() for cell in column] for column in zip(*rest, strict=True)]
    recurs = any(cell in cells for cell, cells in zip(first, below, strict=False))
    if known([cell.lower() for cell in first]) and not recurs:
        return True
    if not rest:
        return False
    if not first[0] and all(below[0]):
        return True
    above_numbers = [
        is_number(cell)
        for cell, cells in zip(first, below, strict=True)
        if all(map(is_number, cells)) and not set(cells) <= MISSING
    ]
    return bool(above_numbers) and not any(above_numbers)
