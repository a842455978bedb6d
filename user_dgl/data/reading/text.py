"""Read delimited text: CSV, TSV, semicolons or blanks, with gzip, comments, CRLF or a BOM.

The C parser of pandas parses the rows. Python code splits only the first rows and, after an error,
the rows up to the faulty line. So files of many million lines can be read.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
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
# Reading needs at least this multiple of the file's size: the file, its parsed part, the columns.
_COPIES = 3
# R, pandas and spreadsheets write a missing number or label in these ways.
MISSING = ("", "nan", "NaN", "NAN", "NA", "N/A", "null")
# If several separators fit equally well, the first of these is taken: `1;2;0,5` is three cells.
# Blanks come last, because they also occur inside text.
_SEPARATORS = ("\t", ";", ",")
_COMMENT_LINE = re.compile(rb"\n[ \t]*[#%][^\n]*")
# In rows separated by semicolons: a number with a decimal comma, and a number with a decimal
# point. If the second occurs, commas are not decimal commas.
_DECIMAL_COMMA = re.compile(rb"(?m)(?:^|(?<=;))([ \t]*[-+]?[0-9]*),([0-9]+[ \t]*)(?=;|$)")
_DECIMAL_POINT = re.compile(rb"(?m)(?:^|(?<=;))[ \t]*[-+]?[0-9,]*\.[0-9]+[ \t]*(?=;|$)")
_BLANK_START = re.compile(rb"(?:[ \t]*\n)+")


def is_number(cell: str) -> bool:
    """Whether a cell is a number or stands for a missing number (`MISSING`)."""
    if cell in MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # float() accepts 1_000, but the C parser does not


@dataclass(frozen=True, eq=False)
class TextFile:
    """A delimited text file.

    Attributes
    ----------
    path : Path
    original : bytes
        Content with ``\\n`` line ends and without BOM, from which line numbers are counted.
    body : bytes
        The part that is parsed: without BOM, comment lines and header.
    separator : str
        ``\\t``, ``;``, ``,`` or a blank, which stands for any run of blanks and tabs.
    num_comments : int
        Number of comment lines (first character ``#`` or ``%``) that `body` leaves out.
    num_decimal_commas : int
        Number of values with a decimal comma, such as 0,5. `original` and `body` contain 0.5.
    header : tuple of str, or None
        Cells of the header. None until `without_header` has removed the header from `body`.
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
        """Cells of the first data rows."""
        return [cells for _, cells in islice(self.rows(), _SAMPLE_ROWS)]

    @property
    def num_columns(self) -> int:
        """Number of cells in the first data row. Every other row must have the same number."""
        return len(self.sample[0])

    def without_header(self) -> "TextFile":
        """Return the file with its first row as header instead of data.

        Raises
        ------
        InputError
            There are no rows below the header.
        """
        blank = _BLANK_START.match(self.body)
        body = self.body[blank.end() if blank else 0 :].partition(b"\n")[2]
        if not body.strip():
            raise InputError(f"{self.path}: only a header: expected data rows below it")
        return replace(self, body=body, header=tuple(c.strip() for c in self.sample[0]))

    def notes(self) -> list[str]:
        """Return notes on comment lines, decimal commas and the header."""
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
        """Yield line number (from 1) and cells of each data row.

        This is slow, so it serves only samples and the search for faulty rows.
        """
        rows = _rows(self.path, self.original, self.separator)
        return islice(rows, 1, None) if self.header else rows

    def line_of(self, row: int) -> int:
        """Return the line number (from 1) of a data row (from 0)."""
        return next(islice(self.rows(), row, None))[0]

    def error(self, row: int, problem: str) -> InputError:
        """Make an error that names the file and the line of a data row (from 0)."""
        return InputError(f"{self.path}:{self.line_of(row)}: {problem}")

    def read(self, dtypes: Mapping[int, type], *, infer: Collection[int] = ()) -> list[np.ndarray]:
        """Parse the data rows.

        A row that is shorter than the first row raises no error here, unless a whole number is
        missing. Its missing cells become empty text or NaN.

        Parameters
        ----------
        dtypes : mapping
            Type of a column by its number: ``object`` (text as written) or a NumPy number. A
            missing floating-point number becomes NaN. Columns that are neither here nor in
            ``infer`` are read as text.
        infer : collection of int
            Columns whose type the parser infers.

        Returns
        -------
        list of ndarray
            All columns in order.

        Raises
        ------
        InputError
            A row is longer than the first row, a cell of a numeric column is not a number, or the
            text is not UTF-8.
        """
        full = {c: dtypes.get(c, object) for c in range(self.num_columns) if c not in infer}
        floats = [c for c, dtype in full.items() if np.issubdtype(dtype, np.floating)]
        try:
            with np.errstate(over="ignore"):  # values too large for float32 become infinite
                frame = pd.read_csv(
                    io.BytesIO(self.body),
                    header=None,
                    sep=r"\s+" if self.separator == " " else self.separator,
                    dtype=full,
                    # Only numbers can be missing: "NA" and the like are valid ids.
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
        """Return the cells of a file with one column. A blank line is a row with an empty cell.

        Raises
        ------
        InputError
            A row has several cells, or the text is not UTF-8.
        """
        try:
            body = self.body.decode()
        except UnicodeDecodeError:
            raise self._not_utf8() from None
        try:
            rows = list(csv.reader(io.StringIO(body), delimiter=self.separator))
        except csv.Error as error:  # a cell longer than csv.field_size_limit
            self.check_rows()
            raise InputError(f"{self.path}: cannot be parsed: {one_line(error)}") from None
        if any(len(row) > 1 for row in rows):
            self.check_rows()
        return [row[0] if row else "" for row in rows]

    def check_rows(self, numbers: Collection[int] = (), integers: Collection[int] = ()) -> None:
        """Raise the error of the first faulty row, if there is one.

        This is slow, so it is called only after a parser or a check has failed.

        Parameters
        ----------
        numbers : collection of int
            Columns whose cells must be numbers.
        integers : collection of int
            Columns, a part of ``numbers``, whose cells must be whole numbers.

        Raises
        ------
        InputError
            A row has another length than the first row or leaves a quotation mark open, or a cell
            is not a number as required.
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


def open_text(path: Path, *, single_column: bool = False) -> TextFile:
    """Read a delimited text file and find its separator.

    Parameters
    ----------
    path : Path
    single_column : bool
        Whether a row may be a single text that contains blanks.

    Raises
    ------
    InputError
        The file is missing, empty or not text.
    """
    path = Path(path)
    data = read_bytes(path, _COPIES)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path}: UTF-16 text: save it as UTF-8")
    if b"\0" in data:
        raise InputError(
            f"{path}: holds NUL bytes: expected text (UTF-8); a binary file needs the ending of "
            "its format: .npz, .npy, .mat, .bin"
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
    """Read a file without header whose columns are known.

    Parameters
    ----------
    path : Path
    dtypes : tuple of type
        Type of each column, see `TextFile.read`.

    Returns
    -------
    TextFile, list of ndarray
        The file, for messages, and its columns.

    Raises
    ------
    InputError
        The number of columns is different, or `open_text` or `TextFile.read` failed.
    """
    text = open_text(path)
    if text.num_columns != len(dtypes):
        raise text.error(0, f"{text.num_columns} columns, expected {len(dtypes)}")
    return text, text.read(dict(enumerate(dtypes)))


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
        if all(map(is_number, cells)) and not set(cells) <= set(MISSING)
    ]
    return bool(above_numbers) and not any(above_numbers)


def _lines(data: bytes, blanks: bytes) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(io.BytesIO(data), 1):
        if line.strip(blanks) and line.lstrip(b" \t")[:1] not in (b"#", b"%"):
            yield number, line.decode(errors="replace").removesuffix("\n")


def _rows(path: Path, data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    # A line is blank if pandas skips it. In a tab-separated file, tabs separate empty cells, so a
    # line of tabs is not blank.
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
    if separator == " ":  # pandas splits here at blanks and tabs only, str.split() at more
        line = line.replace("\t", " ").strip(" ")
    if '"' not in line:
        cells = line.split(separator)
        return [cell for cell in cells if cell] if separator == " " else cells
    # If a quotation mark is left open, the last cell keeps this line end. `check_rows` needs that.
    return next(csv.reader([line + "\n"], delimiter=separator, skipinitialspace=True))


def _split_or_whole(line: str, separator: str) -> list[str]:
    try:
        return _split(line, separator)
    except csv.Error:  # the cell is too long, but another separator may split it
        return [line]


def _find_separator(data: bytes, single_column: bool) -> str:
    lines = [line for _, line in islice(_lines(data, b" \t\n"), _SAMPLE_ROWS)]
    best, best_score = "\t", (0.5, 0.0)
    best_rows: list[list[str]] = []
    for separator in (*_SEPARATORS, " "):
        rows = [_split_or_whole(line, separator) for line in lines]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        # The share of rows that it splits, then the share of rows with the most common length.
        # Shares, because one malformed row must not hide the separator: the message about that row
        # needs the separator to name the line.
        score = (widths.total() / len(rows), max(widths.values(), default=0) / len(rows))
        if score > best_score:
            best, best_score, best_rows = separator, score, rows
    if single_column and best_score != (1.0, 1.0):
        # Either the rows are texts, some of which contain a blank, or they are ids with a label,
        # and some labels are missing.
        ids = [row[0] for row in best_rows if len(row) == 2]
        if not 2 * len(ids) > len(lines) or len(set(ids)) < len(ids):
            return "\t"
    return best
