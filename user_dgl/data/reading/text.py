"""Delimited text as people write it: CSV, TSV, semicolons or blanks, gzip, comments, CRLF, BOM.

The rows are parsed by pandas' C parser. Only the first rows and, after a fault, the search for its
line are split in Python, so files of many million lines stay feasible.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from user_dgl.data.attributed_graph import one_line
from user_dgl.data.reading.files import ending, read_bytes
from user_dgl.errors import InputError

_SAMPLE_ROWS = 20
# Times of its size that reading a file takes at least: it, what is parsed of it, and the columns.
_COPIES = 3
# How R, pandas and spreadsheets write a missing number or label.
MISSING = ("", "nan", "NaN", "NAN", "NA", "N/A", "null")
# In order of preference where several fit: `1;2;0,5` is three cells, and commas or semicolons win
# over the blanks inside text.
_SEPARATORS = ("\t", ";", ",")
_COMMENT_LINE = re.compile(rb"\n[ \t]*[#%][^\n]*")
# A cell of a row with semicolons that is a number, and one that rules out that they are such.
_DECIMAL_COMMA = re.compile(rb"(?m)(?:^|(?<=;))([ \t]*[-+]?[0-9]*),([0-9]+[ \t]*)(?=;|$)")
_DECIMAL_POINT = re.compile(rb"(?m)(?:^|(?<=;))[ \t]*[-+]?[0-9,]*\.[0-9]+[ \t]*(?=;|$)")
_BLANK_START = re.compile(rb"(?:[ \t]*\n)+")


def is_number(cell: str) -> bool:
    """Whether a cell is a number or one of the spellings of a missing number."""
    if cell in MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # float() takes 1_000, the C parser does not


@dataclass(frozen=True, eq=False)
class TextFile:
    """A delimited text file.

    Attributes
    ----------
    path : Path
    original : bytes
        The file with ``\\n`` line ends, for line numbers.
    body : bytes
        What is parsed: no BOM, comment lines or header.
    separator : str
        ``\\t``, ``;``, ``,``; a blank stands for any run of blanks and tabs.
    num_comments : int
        Comment lines (first character ``#`` or ``%``) left out.
    num_decimal_commas : int
        Numbers written as 0,5, which `original` and `body` have as 0.5.
    header : tuple of str, or None
        First row, once `without_header` has taken it for one.
    """

    path: Path
    original: bytes
    body: bytes
    separator: str
    num_comments: int
    num_decimal_commas: int = 0
    header: tuple[str, ...] | None = None

    @cached_property
    def sample(self) -> list[list[str]]:
        """The first rows, split."""
        return [cells for _, cells in islice(self.rows(), _SAMPLE_ROWS)]

    @property
    def num_columns(self) -> int:
        """Cells of the first row; every other row must have as many."""
        return len(self.sample[0])

    def without_header(self) -> "TextFile":
        """The file with its first row taken as the names of the columns."""
        blank = _BLANK_START.match(self.body)
        body = self.body[blank.end() if blank else 0 :].partition(b"\n")[2]
        if not body.strip():
            raise InputError(f"{self.path}: only a header: expected rows below it")
        return replace(self, body=body, header=tuple(c.strip() for c in self.sample[0]))

    def notes(self) -> list[str]:
        """What was left out as comment or header."""
        lines = []
        if self.num_comments:
            lines.append(f"{self.path.name}: {self.num_comments} comment lines skipped")
        if self.num_decimal_commas:
            lines.append(
                f"{self.path.name}: {self.num_decimal_commas} decimal commas read as points"
            )
        if self.header:
            shown = ", ".join(self.header[:6]) + (", ..." if len(self.header) > 6 else "")
            lines.append(f"{self.path.name}: first row taken as header ({shown})")
        return lines

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line number (from 1) and cells of each data row: slow, for samples and faults."""
        rows = _rows(self.path, self.original, self.separator)
        return islice(rows, 1, None) if self.header else rows

    def line_of(self, row: int) -> int:
        """Line number of a data row (from 0)."""
        return next(islice(self.rows(), row, None))[0]

    def error(self, row: int, problem: str) -> InputError:
        """The error for a data row (from 0), naming file and line."""
        return InputError(f"{self.path}:{self.line_of(row)}: {problem}")

    def read(self, dtypes: dict[int, type], *, infer=()) -> list[np.ndarray]:
        """Columns of the data rows.

        Parameters
        ----------
        dtypes : dict
            Column -> ``object`` (text as written) or a NumPy number; a missing floating-point
            number is NaN. Columns in neither this nor ``infer`` are parsed as text.
        infer : tuple of int
            Columns whose type the parser finds.

        Returns
        -------
        list of ndarray
            All columns in order.

        Raises
        ------
        InputError
            Row longer than the first, cell that is no number, text that is not UTF-8. In a row
            that is shorter, text is empty and a floating-point number NaN.
        """
        full = {c: dtypes.get(c, object) for c in range(self.num_columns) if c not in infer}
        floats = [c for c, dtype in full.items() if np.issubdtype(dtype, np.floating)]
        try:
            with np.errstate(over="ignore"):  # beyond float32: infinite
                frame = pd.read_csv(
                    io.BytesIO(self.body),
                    header=None,
                    sep=r"\s+" if self.separator == " " else self.separator,
                    dtype=full,
                    # "NA" and the like are good ids, so nothing is missing but numbers.
                    keep_default_na=False,
                    na_values={c: list(MISSING) for c in floats} or None,
                    skipinitialspace=True,
                    low_memory=False,
                    engine="c",
                )
        except UnicodeDecodeError:
            raise self._not_utf8() from None
        except (ValueError, OverflowError) as error:  # ParserError is a ValueError
            numbers = [c for c, dtype in full.items() if dtype is not object]
            self.check_rows(numbers, [c for c in numbers if c not in floats])
            raise InputError(f"{self.path}: cannot be parsed: {one_line(error)}") from None
        if frame.shape[1] != self.num_columns:
            raise self.error(0, f"{frame.shape[1]} columns: is a quotation mark left open?")
        return [frame[c].to_numpy() for c in frame.columns]

    def read_lines(self) -> list[str]:
        """The one column of a file that has one, where blank lines are empty rows.

        Raises
        ------
        InputError
            Row of several cells, text that is not UTF-8.
        """
        try:
            body = self.body.decode()
        except UnicodeDecodeError:
            raise self._not_utf8() from None
        try:
            rows = list(csv.reader(io.StringIO(body), delimiter=self.separator))
        except csv.Error as error:  # a field without end
            self.check_rows()
            raise InputError(f"{self.path}: cannot be parsed: {one_line(error)}") from None
        if any(len(row) > 1 for row in rows):
            self.check_rows()
        return [row[0] if row else "" for row in rows]

    def check_rows(self, numbers=(), integers=()) -> None:
        """Search for the first faulty row, in Python: for use after something went wrong.

        Raises
        ------
        InputError
            Row whose length differs from the first row's, or whose quotation mark stays open; cell
            of ``numbers`` that is none; cell of ``integers`` that is no whole number.
        """
        first = None
        for line, cells in self.rows():
            at = f"{self.path}:{line}"
            first = first or line
            if cells[-1].endswith("\n"):
                raise InputError(f"{at}: a quotation mark is left open: close or remove it")
            if len(cells) != self.num_columns:
                raise InputError(
                    f"{at}: {len(cells)} columns, expected {self.num_columns} as in line {first}"
                )
            for column in numbers:
                cell = cells[column].strip()
                whole = column not in integers or re.fullmatch(r"[-+]?[0-9]{1,18}", cell)
                if not (whole and is_number(cell)):
                    kind = "whole number" if column in integers else "number"
                    raise InputError(f"{at}: column {column + 1}: {cell!r} is not a {kind}: fix it")

    def _not_utf8(self) -> InputError:
        for number, line in enumerate(io.BytesIO(self.original), 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return InputError(f"{self.path}:{number}: not UTF-8 text: save it as UTF-8")
        raise AssertionError("pandas and Python disagree on UTF-8")


def open_text(path: Path, *, single_column=False) -> TextFile:
    """Open a delimited text file and find its separator.

    Parameters
    ----------
    path : Path
    single_column : bool
        Whether rows may be lines of text, blanks included.

    Raises
    ------
    InputError
        File missing, empty, not text.
    """
    path = Path(path)
    data = read_bytes(path, _COPIES)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path}: UTF-16 text: save it as UTF-8")
    if b"\0" in data:
        raise InputError(
            f"{path}: holds NUL bytes: expected text (UTF-8); binary formats are told by their "
            "ending: .npz, .npy, .mat, .bin"
        )
    if data.startswith(b"%%MatrixMarket") and ending(path) != ".mtx":
        raise InputError(f"{path}: a MatrixMarket file: name it .mtx or .mtx.gz")
    if data.lstrip()[:5] in (b"<?xml", b"<grap"):
        raise InputError(f"{path}: an XML file: name it .graphml if it is GraphML")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    body, num_comments = data, 0
    if b"#" in data or b"%" in data:
        body, num_comments = _COMMENT_LINE.subn(b"", b"\n" + data)
        body = body.removeprefix(b"\n")
    if not body.strip():
        raise InputError(f"{path}: no rows: the file is empty or holds only comments")
    separator, num_commas = _find_separator(data, single_column), 0
    if separator == ";" and not _DECIMAL_POINT.search(body):
        body, num_commas = _DECIMAL_COMMA.subn(rb"\1.\2", body)
        data = _DECIMAL_COMMA.sub(rb"\1.\2", data)
    return TextFile(path, data, body, separator, num_comments, num_commas)


def read_columns(path: Path, dtypes: tuple[type, ...]) -> tuple[TextFile, list[np.ndarray]]:
    """A file without header whose columns are known.

    Raises
    ------
    InputError
        As `open_text` and `TextFile.read`, and for another number of columns.
    """
    text = open_text(path)
    if text.num_columns != len(dtypes):
        raise text.error(0, f"{text.num_columns} columns, expected {len(dtypes)}")
    return text, text.read(dict(enumerate(dtypes)))


def has_header(first: list[str], rest: list[list[str]], known: Callable[[list[str]], bool]) -> bool:
    """Whether the first of the sampled rows names the columns.

    It does where it holds text, and no number, above columns of numbers; an empty name above ids
    (the index column of a data frame); or names, in lower case, that the caller knows.
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
        if all(map(is_number, cells)) and not set(cells) <= set(MISSING)
    ]
    return bool(above_numbers) and not any(above_numbers)


def _lines(data: bytes, blanks: bytes) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(io.BytesIO(data), 1):
        if line.strip(blanks) and line.lstrip(b" \t")[:1] not in (b"#", b"%"):
            yield number, line.decode(errors="replace").removesuffix("\n")


def _rows(path: Path, data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    # What counts as a blank line is what pandas skips: tabs are cells in a tab-separated file.
    for number, line in _lines(data, b" \n" if separator == "\t" else b" \t\n"):
        try:
            cells = _split(line, separator)
        except csv.Error as error:  # a cell beyond csv.field_size_limit
            raise InputError(
                f"{path}:{number}: cannot be split ({one_line(error)}): is a quotation mark left "
                "open?"
            ) from None
        yield number, cells


def _split(line: str, separator: str) -> list[str]:
    if separator == " ":  # and tabs: what pandas takes for blanks, fewer than str.split()
        line = line.replace("\t", " ").strip(" ")
    if '"' not in line:
        cells = line.split(separator)
        return [cell for cell in cells if cell] if separator == " " else cells
    # A line end, so that the last cell keeps it if a quotation mark is left open.
    return next(csv.reader([line + "\n"], delimiter=separator, skipinitialspace=True))


def _split_or_whole(line: str, separator: str) -> list[str]:
    try:
        return _split(line, separator)
    except csv.Error:  # a long row that another separator may split
        return [line]


def _find_separator(data: bytes, single_column: bool) -> str:
    lines = [line for _, line in islice(_lines(data, b" \t\n"), _SAMPLE_ROWS)]
    best, best_score, best_rows = "\t", (0.5, 0.0), []
    for separator in (*_SEPARATORS, " "):
        rows = [_split_or_whole(line, separator) for line in lines]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        # Rows that it splits at all, then rows of the commonest length: one malformed row must not
        # hide the separator, or its line could not be named.
        score = (widths.total() / len(rows), max(widths.values(), default=0) / len(rows))
        if score > best_score:
            best, best_score, best_rows = separator, score, rows
    if single_column and best_score != (1.0, 1.0):
        # Either lines of text of which some hold a blank, or ids of which some lack their label.
        ids = [row[0] for row in best_rows if len(row) == 2]
        if not 2 * len(ids) > len(lines) or len(set(ids)) < len(ids):
            return "\t"
    return best
