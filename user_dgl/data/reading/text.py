"""Read delimited text: CSV, TSV, semicolons or blanks, with gzip, comments, CRLF or a BOM.

The C parser of pandas parses the rows. Python code splits only the first rows and, after an error,
the rows up to the faulty line. So files of many million lines can be read.
"""

import csv
import io
import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from user_dgl.data.attributed_graph import one_line
from user_dgl.data.reading.cells import MISSING, is_number
from user_dgl.data.reading.files import read_bytes
from user_dgl.data.reading.foreign import HEAD, refuse_files, refuse_other_bytes
from user_dgl.data.reading.ids import MISSING_MARKS, holds, is_text
from user_dgl.data.reading.lines import (
    ANY_MARK,
    find_comments,
    has_decimal_commas,
    numbered_lines,
    plain_quotes,
    quoted_brackets,
    with_points,
    without_braces,
    without_comments,
    without_empty_end,
    without_last_separators,
    without_line,
    without_marks,
)
from user_dgl.data.reading.separators import (
    SAMPLE_ROWS,
    SEPARATORS,
    find_separator,
    split,
    split_or_whole,
    usual_width,
    without_separator_line,
)
from user_dgl.errors import InputError

# Reading needs at least this multiple of the file's size: the file, its parsed part, the columns.
_COPIES = 3
# What `TextFile.spread_sample` reads: rows at the start, and bytes at each of four places below.
_HEAD_ROWS = 2000
_BLOCK = 2**13
_BLANK_START = re.compile(rb"(?:[ \t]*\n)+")


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
        ``\\t``, ``;``, ``,``, ``|`` or a blank, which stands for any run of blanks and tabs.
    comment : pattern
        Matches the lines that are comments.
    num_comments : int
        Number of comment lines that `body` leaves out.
    num_decimal_commas : int
        Number of values with a decimal comma, such as 0,5. `original` and `body` contain 0.5.
    header : tuple of str, or None
        Names of the columns, one for each. None until `without_header` has removed the header
        from `body`.
    header_line : str
        The line of the header, which may stand again among the rows, and is left out there too.
    num_headers : int
        How often the header stands again among the rows.
    num_braces : int
        Number of rows with attributes in braces, which are left out.
    num_empty : int
        Number of rows of empty cells at the end, which are left out.
    """

    path: Path
    original: bytes
    body: bytes
    separator: str
    num_comments: int
    num_decimal_commas: int = 0
    header: tuple[str, ...] | None = None
    comment: re.Pattern[bytes] = ANY_MARK
    header_line: str | None = None
    num_headers: int = 0
    num_braces: int = 0
    num_empty: int = 0

    @cached_property
    def sample(self) -> list[list[str]]:
        """Cells of the first data rows."""
        return [cells for _, cells in islice(self.rows(), SAMPLE_ROWS)]

    def comment_above(self) -> list[str]:
        """Return the cells of the last line above the first row, if it is a comment."""
        if not self.num_comments or self.header:
            return []
        first = next(self.rows())[0]
        above = self.original.split(b"\n", first)[: first - 1]
        if not above or not self.comment.match(above[-1]):
            return []
        line = above[-1].decode(errors="replace").strip().lstrip("#%").strip()
        return [cell.strip() for cell in split_or_whole(line, self.separator)]

    def spread_sample(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return the cells of more rows: the first ones, and these with rows from further down.

        All rows that are returned have as many cells as the first one.
        """
        width = self.num_columns
        head = [cells for _, cells in islice(self.rows(), _HEAD_ROWS) if len(cells) == width]
        spread = list(head)
        for place in range(1, 5):
            start = len(self.body) * place // 5
            block = self.body[start : start + _BLOCK]
            lines = block.decode(errors="replace").split("\n")[1:-1]
            if len(self.body) > 10 * _BLOCK:
                cells = (split_or_whole(line, self.separator) for line in lines)
                spread += [row for row in cells if len(row) == width]
        return head, spread

    @property
    def num_columns(self) -> int:
        """Number of cells in the first data row. Every other row must have the same number."""
        return len(self.sample[0])

    def without_header(self) -> "TextFile":
        """Return the file with its first row as header instead of data.

        The header may have a name fewer than the rows have cells, as R and pandas write it: then
        the first column has no name. The same line among the rows is left out as well.

        Raises
        ------
        InputError
            There are no rows below the header.
        """
        blank = _BLANK_START.match(self.body)
        line, _, body = self.body[blank.end() if blank else 0 :].partition(b"\n")
        count = 0
        if _is_named(self.sample[0]):  # a row of numbers may stand again
            body, count = without_line(body, line)
        if not body or body.isspace():
            raise InputError(f"{self.path}: only a header: expected data rows below it")
        names = tuple(cell.strip() for cell in self.sample[0])
        if self.short_header:
            names = ("", *names)
        text = line.decode(errors="replace")
        return replace(self, body=body, header=names, header_line=text, num_headers=count)

    def without_empty_end(self) -> "TextFile":
        """Return the file without rows of empty cells at its end, as spreadsheets write them.

        In rows without ids such a row is a node whose values are missing.
        """
        body, number = without_empty_end(self.body, self.separator)
        original, _ = without_empty_end(self.original, self.separator)
        return replace(self, original=original, body=body, num_empty=number)

    @property
    def short_header(self) -> bool:
        """Whether the first row has a cell fewer than the next rows.

        R and pandas write such a header: the names of the rows have no name themselves. If the
        last cells of the rows are empty, the rows just end with a separator.
        """
        first, *rest = self.sample
        longer = [row for row in rest if len(row) == len(first) + 1]
        return bool(rest) and 2 * len(longer) > len(rest) and any(row[-1].strip() for row in longer)

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
            where = "first row" if self.header_line is not None else "comment above the first row"
            lines.append(f"{self.path.name}: {where} taken as header ({shown})")
        if self.num_headers:
            lines.append(
                f"{self.path.name}: the header stands again in {self.num_headers} rows, which are "
                "left out"
            )
        if self.num_braces:
            lines.append(
                f"{self.path.name}: attributes in braces in {self.num_braces} rows ignored"
            )
        if self.num_empty:
            lines.append(f"{self.path.name}: {self.num_empty} empty rows at the end left out")
        return lines

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line number (from 1) and cells of each data row.

        This is slow, so it serves only samples and the search for faulty rows.
        """
        header = self.header_line
        for number, line in numbered_lines(self.original, self._blanks, self.comment):
            if line == header:
                header = header if _is_named(self.header or ()) else None
                continue
            try:
                cells = split(line, self.separator)
            except csv.Error as error:  # a cell beyond csv.field_size_limit
                raise InputError(
                    f"{self.path}:{number}: cannot be split ({one_line(error)}): is a quotation "
                    "mark left open?"
                ) from None
            yield number, cells

    @property
    def _blanks(self) -> bytes:
        # A line is blank if pandas skips it. In a tab-separated file, tabs separate empty cells, so
        # a line of tabs is not blank.
        return b" \n" if self.separator == "\t" else b" \t\n"

    def missing_ids(self, names: np.ndarray) -> list[str]:
        """Return the ids that stand in place of a missing one, such as NA.

        In quotation marks everywhere, ``"NA"`` is an id: R and other programs do not quote what is
        missing.
        """
        if not is_text(names):
            return []
        mark = rb" \t" if self.separator == " " else re.escape(self.separator).encode()
        found = []
        # A mark is an id where other marks are ids too, as in a network of words.
        marks = {word for word in (*MISSING_MARKS, *string.punctuation) if holds(names, word)}
        for word in sorted(MISSING | (marks & MISSING_MARKS if len(marks) == 1 else set())):
            if holds(names, word):
                bare = rb"(?m)(?:^|[" + mark + rb"])[ \t]*" + re.escape(word).encode()
                if re.search(bare + rb"[ \t]*(?:[" + mark + rb"]|$)", self.body) or not word:
                    found.append(word)
        return found

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

    def check_lengths(self, num_rows: int) -> None:
        """Raise `InputError` if one of ``num_rows`` rows is too short: it reads as empty cells."""
        quoted = self.separator == " " or b'"' in self.body
        expected = num_rows * (self.num_columns - 1)
        if not quoted and self.body.count(self.separator.encode()) == expected:
            return
        for line, cells in self.rows():
            if len(cells) < self.num_columns and '"' not in "".join(cells):
                raise InputError(
                    f"{self.path}:{line}: {len(cells)} columns, expected {self.num_columns}"
                )

    def _not_utf8(self) -> InputError:
        for number, line in enumerate(io.BytesIO(self.original), 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return InputError(f"{self.path}:{number}: not UTF-8 text: save it as UTF-8")
        raise AssertionError("pandas and Python disagree on UTF-8")


def open_text(
    path: Path,
    *,
    single_column: bool = False,
    of_edges: bool = False,
    separator: str = "auto",
    comment: bool | str = "auto",
    names_ends: Callable[[list[str]], bool] = lambda names: False,
) -> TextFile:
    """Read a delimited text file and find its separator and its comments.

    Parameters
    ----------
    path : Path
    single_column : bool
        Whether a row may be a single text that contains blanks.
    of_edges : bool
        Whether the rows are edges: attributes in braces at the end of a row are then left out, and
        a tuple or a list is one id.
    separator : str
        A name in `SEPARATORS`, or ``auto``.
    comment : bool or ``auto``
        Whether lines that start with ``#`` or ``%`` are comments, see
        `user_dgl.data.reading.lines.find_comments`.
    names_ends : callable
        Whether cells are the names of the ends of edges.

    Raises
    ------
    InputError
        The file is missing, empty or not text, or lines may be comments as well as rows.
    """
    path = Path(path)
    data = read_bytes(path, _COPIES)
    refuse_files(path, data[:HEAD])
    refuse_other_bytes(path, data)
    data, named = without_separator_line(without_marks(data))
    separator = named if named and separator == "auto" else separator
    num_braces = 0
    if of_edges:
        data, num_braces = without_braces(data)
    data = probe = plain_quotes(data)
    if of_edges:
        data, probe = quoted_brackets(data)
    found = SEPARATORS.get(separator) or find_separator(path, probe, single_column, of_edges)
    width = usual_width(data, found)
    if width > 2:  # else nothing but ids or labels would be left
        data = without_last_separators(data, found)
        width = usual_width(data, found)
    if not width:  # every line has a mark
        marked = data.replace(b"#", b"").replace(b"%", b"")
        found = SEPARATORS.get(separator) or find_separator(path, marked, single_column, of_edges)

    def cells_of(line: str) -> list[str]:
        return split_or_whole(line, found)

    comments = find_comments(path, data, comment, cells_of, width, names_ends, of_edges)
    body, num_comments = without_comments(data, comments)
    if not body or body.isspace():
        raise InputError(f"{path}: no rows: the file is empty or holds only comments")
    if named:
        body = body.removeprefix(b"\n")
    num_commas = 0
    if found == ";" and has_decimal_commas(body, of_edges and width == 2):
        # Quotation marks may be there because of the comma: then an id or a label is no number.
        kept = 2 if of_edges else width if single_column else 1
        same = body is data
        body, num_commas = with_points(body, kept)
        data = body if same else with_points(data, kept)[0]
    text = TextFile(path, data, body, found, num_comments, num_commas, comment=comments)
    text = replace(text, num_braces=num_braces)
    return text.without_empty_end() if of_edges else text


def _is_named(header: Iterable[str]) -> bool:
    """Whether a header has a cell that is no number."""
    return any(not is_number(cell.strip()) for cell in header)


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
    text = open_text(path, comment=True)
    if text.num_columns != len(dtypes):
        raise text.error(0, f"{text.num_columns} columns, expected {len(dtypes)}")
    return text, text.read(dict(enumerate(dtypes)))
