"""The separator of the cells in delimited text, and the splitting of single lines."""

import csv
import re
from collections import Counter
from itertools import islice
from pathlib import Path

from user_dgl.data.reading.lines import numbered_lines
from user_dgl.errors import InputError

SAMPLE_ROWS = 20
# If several separators fit equally well, the first of these is taken: `1;2;0,5` is three cells.
# Blanks come last, because they also occur inside text.
_ORDER = ("\t", ";", ",")
# The separators by their names in ``data.separator``.
SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ",", "pipe": "|", "blank": " "}
# A first line that tells a spreadsheet the separator.
_SEPARATOR_LINE = re.compile(rb'(?i)"?sep=(.)"?[ \t;,|]*\n')


def split(line: str, separator: str) -> list[str]:
    """Split a line into its cells. Raise `csv.Error` if one of them is too long."""
    if separator == " ":  # pandas splits here at blanks and tabs only, str.split() at more
        line = line.replace("\t", " ").strip(" ")
    if '"' not in line:
        cells = line.split(separator)
        return [cell for cell in cells if cell] if separator == " " else cells
    # If a quotation mark is left open, the last cell keeps this line end. `check_rows` needs that.
    return next(csv.reader([line + "\n"], delimiter=separator, skipinitialspace=True))


def split_or_whole(line: str, separator: str) -> list[str]:
    """Split a line into its cells; a line that cannot be split is one cell."""
    try:
        return split(line, separator)
    except csv.Error:  # the cell is too long, but another separator may split it
        return [line]


def find_separator(path: Path, data: bytes, single_column: bool, of_edges: bool) -> str:
    """Find the separator of the cells in the first rows.

    Parameters
    ----------
    path : Path
        Name for messages.
    data : bytes
    single_column : bool
        Whether a row may be a single text that contains blanks.
    of_edges : bool
        Whether a bar may be the separator. In other files it may be a part of a label.

    Raises
    ------
    InputError
        Blanks and bars may both be the separator.
    """
    lines = [line for _, line in islice(numbered_lines(data, b" \t\n"), SAMPLE_ROWS)]
    if not lines:
        return "\t"
    best, best_score = "\t", (0.5, 0.0)
    best_rows: list[list[str]] = []
    for separator in (*_ORDER, " ", *("|" if of_edges else "")):
        rows = [split_or_whole(line, separator) for line in lines]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        # The share of rows that it splits, then the share of rows with the most common length.
        # Shares, because one malformed row must not hide the separator: the message about that row
        # needs the separator to name the line.
        score = (widths.total() / len(rows), max(widths.values(), default=0) / len(rows))
        if score > best_score:
            best, best_score, best_rows = separator, score, rows
    bars = {line.count("|") for line in lines}
    if of_edges and best == " " and len(bars) == 1 and all(map(_holds_bar, best_rows)):
        raise InputError(
            f"{path}: blanks or bars may separate the cells: set data.separator=blank or "
            "data.separator=pipe"
        )
    if single_column and best_score != (1.0, 1.0) and not _short_header(best_rows):
        # Either the rows are texts, some of which contain a blank, or they are ids with a label,
        # and some labels are missing.
        ids = [row[0] for row in best_rows if len(row) == 2]
        if not 2 * len(ids) > len(lines) or len(set(ids)) < len(ids):
            firsts = [row[0] for row in best_rows[1:]]  # the first row may be a header
            numbered = len(set(firsts)) == len(firsts) > 1 and all(map(str.isdecimal, firsts))
            if numbered and 2 * sum(len(row) > 1 for row in best_rows) > len(best_rows):
                remedy = "separate them by a tab or a comma"
                if best != " ":
                    remedy = f"put labels with {best!r} in quotation marks"
                raise InputError(
                    f"{path}: an id and a label of several parts in each row: {remedy}"
                )
            return "\t"
    return best


def _holds_bar(cells: list[str]) -> bool:
    """Whether a bar stands in a cell. A bar between blanks is a cell of its own."""
    return any("|" in cell and cell.strip("|") for cell in cells)


def _short_header(rows: list[list[str]]) -> bool:
    """Whether all rows but the first have a cell more than it, and start with different cells."""
    first, *rest = rows or [[]]
    longer = all(len(row) == len(first) + 1 for row in rest)
    return len(first) > 1 and len(rest) > 2 and longer and len({r[0] for r in rest}) == len(rest)


def usual_width(data: bytes, separator: str) -> int:
    """Return the most common number of cells of the first rows; 0 if all lines have a mark."""
    lines = islice(numbered_lines(data, b" \t\n"), SAMPLE_ROWS)
    widths = Counter(len(split_or_whole(line, separator)) for _, line in lines)
    return widths.most_common(1)[0][0] if widths else 0


def without_separator_line(data: bytes) -> tuple[bytes, str]:
    """Empty a first line such as ``sep=;``, and return the name of the separator that it tells."""
    found = _SEPARATOR_LINE.match(data)
    names = [name for name, mark in SEPARATORS.items() if found and mark.encode() == found[1]]
    if not found or not names:
        return data, ""
    return data[found.end() - 1 :], names[0]  # the line end stays, for the line numbers
