"""Lines before they are split into cells: comments, single quotes, braces and tuples."""

import io
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from user_dgl.errors import InputError

# Lines that start with # or %, and of these the ones that are comments even among rows whose ids
# start so: a blank, or another mark, follows the mark.
ANY_MARK = re.compile(rb"[ \t]*[#%]")
MARK_AND_BLANK = re.compile(rb"[ \t]*[#%]+(?:[ \t!]|$)")
NO_COMMENT = re.compile(rb"(?!)")
_LOOKED_AT = 1000
_BLOCK = 2**16
# 'a b' between separators or line ends. An apostrophe inside a word, as in O'Brien, is no quote.
_SINGLE_QUOTES = re.compile(rb"(?m)(?:^|(?<=[,;|\t ]))'([^'\"\n]*)'(?=[,;|\t ]|$)")
# Attributes that networkx.write_edgelist writes at the end of a row.
_BRACES = re.compile(rb"(?m)[,;|\t ]+\{[^\n]*\}[ \t]*$")
_BRACKETS = re.compile(
    rb"(?m)(?:^|(?<=[,;|\t ]))[ \t]*(\([^()\"\n]*\)|\[[^\[\]\"\n]*\])(?=[,;|\t ]|$)"
)
_BRACKETED_ROW = re.compile(rb"[ \t]*[(\[]")
# Lines whose mark is not followed by a blank.
_MARKED = re.compile(rb"(?m)^[ \t]*[#%]+[^ \t\n#%!][^\n]*$")
_UNMARKED = re.compile(rb"(?m)^[ \t]*[^#%\s]")
# In rows separated by semicolons: a number with a decimal comma, and a number with a decimal
# point. If the second occurs, commas are not decimal commas.
_DECIMAL_COMMA = re.compile(rb"(?m)(?:^|(?<=;))([ \t]*[-+]?[0-9]*),([0-9]+[ \t]*)(?=;|$)")
_QUOTED_COMMA = re.compile(rb'(?:^|(?<=;))([ \t]*"[-+]?[0-9]*),([0-9]+"[ \t]*)(?=;|$)')
_DECIMAL_POINT = re.compile(rb'(?m)(?:^|(?<=;))[ \t]*"?[-+]?[0-9,]*\.[0-9]+"?[ \t]*(?=;|$)')
_MARK = b"\xef\xbb\xbf"
_KEY_AND_VALUE = re.compile(rb"[ \t]*[#%][^,;\t]*[:=]")


def numbered_lines(
    data: bytes, blanks: bytes, comment: re.Pattern[bytes] = ANY_MARK
) -> Iterator[tuple[int, str]]:
    """Yield number (from 1) and text of each line that is neither blank nor a comment."""
    for number, line in enumerate(io.BytesIO(data), 1):
        if line.strip(blanks) and not comment.match(line.rstrip(b"\n")):
            yield number, line.decode(errors="replace").removesuffix("\n")


def count_line_ends(data: bytes, most: int) -> int:
    """Count the line ends, but stop soon after the count exceeds ``most``."""
    count = 0
    for start in range(0, len(data), _BLOCK):
        count += data.count(b"\n", start, start + _BLOCK)
        if count > most:
            break
    return count


def without_comments(data: bytes, comment: re.Pattern[bytes]) -> tuple[bytes, int]:
    """Return the data without the lines that ``comment`` matches, and their number."""
    if comment is NO_COMMENT or not (b"#" in data or b"%" in data):
        return data, 0
    pattern = re.compile(rb"\n(?:" + comment.pattern.replace(b"$", b"(?=\\n|$)") + rb")[^\n]*")
    body, count = pattern.subn(b"", b"\n" + data)
    return body.removeprefix(b"\n"), count


def find_comments(
    path: Path,
    data: bytes,
    chosen: bool | str,
    split: Callable[[str], list[str]],
    width: int,
    names_ends: Callable[[list[str]], bool],
    of_edges: bool,
) -> re.Pattern[bytes]:
    """Decide which lines are comments.

    A line that starts with ``#`` or ``%`` is a comment, unless it may be a row whose first id
    starts so: no blank follows the mark, and it has as many cells as the rows have. Such lines are
    comments if all other rows are of numbers, and rows if there are no others. Else they may be
    both.

    Parameters
    ----------
    path : Path
        Name for messages.
    data : bytes
    chosen : bool or ``auto``
        ``data.comment``: whether such lines are comments.
    split : callable
        Splits a line into cells.
    width : int
        Number of cells of the rows; 0 if no line is without a mark.
    names_ends : callable
        Whether cells are the names of the ends of edges, so that the line is a commented header.
    of_edges : bool
        In other files, lines with a blank behind the mark are comments whatever was chosen, which
        was for the edges.

    Raises
    ------
    InputError
        Such lines may be both.
    """
    if chosen != "auto":
        return ANY_MARK if chosen else NO_COMMENT if of_edges else MARK_AND_BLANK
    if not (b"#" in data or b"%" in data):
        return ANY_MARK
    first_row = _UNMARKED.search(data)
    rows = []
    for match in islice(_MARKED.finditer(data), _LOOKED_AT):
        cells = split(match[0].decode(errors="replace"))
        enough = len(cells) == width if width else len(cells) > 1
        if enough and not _KEY_AND_VALUE.match(match[0]) and not names_ends(cells):
            # Words above the first row are a comment if blanks separate the cells.
            below = first_row is None or match.start() > first_row.start()
            if below or any(separator in match[0] for separator in (b",", b"\t", b";", b"|")):
                rows.append((match.start(), cells))
    if not rows:
        return ANY_MARK
    if not width:
        return MARK_AND_BLANK
    others = [split(line) for _, line in islice(numbered_lines(data, b" \t\n"), 20)]
    # The first row may be a header.
    others = others[1:] or others
    if all(_is_number(cell) for cells in others for cell in cells[:2]):
        return ANY_MARK
    start, cells = rows[0]
    number = data.count(b"\n", 0, start) + 1
    raise InputError(
        f"{path}:{number}: the row starts with {cells[0].strip()[:1]} and has as many cells as the "
        "others: it may be a comment or an edge of a node with this id: set data.comment=true "
        "(comments) or data.comment=false (rows)"
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not cell.strip()
    return True


def plain_quotes(data: bytes) -> bytes:
    """Replace single quotes around cells by double quotes, in text without double quotes."""
    if b"'" not in data or b'"' in data:
        return data
    return _SINGLE_QUOTES.sub(rb'"\1"', data)


def without_braces(data: bytes) -> tuple[bytes, int]:
    """Remove ``{...}`` from the ends of rows, and return how many rows had anything in them."""
    if b"{" not in data:
        return data, 0
    plain = data
    for separator in (b" ", b"\t", b","):
        plain = plain.replace(separator + b"{}\n", b"\n")
    return _BRACES.subn(b"", plain) if b"{" in plain else (plain, 0)


def quoted_brackets(data: bytes) -> tuple[bytes, bytes]:
    """Quote tuples and lists in rows that start with one, so that their commas separate nothing.

    Returns
    -------
    quoted, plain : bytes
        The data with the quotes, and the data with a word in place of each tuple, in which the
        separator can be found.
    """
    if not _BRACKETED_ROW.match(data):
        return data, data
    return _BRACKETS.sub(rb'"\1"', data), _BRACKETS.sub(b"tuple", data)


def without_marks(data: bytes) -> bytes:
    """Remove the carriage returns, and the byte-order marks at the starts of the lines.

    A mark stands inside a file if files were joined.
    """
    data = data.removeprefix(_MARK)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data.replace(b"\n" + _MARK, b"\n") if _MARK in data else data


def without_last_separators(data: bytes, separator: str) -> bytes:
    """Remove the separator from the end of the lines, if every line but comments ends with one."""
    last = separator.encode()
    if separator == " " or last not in data[-3:]:
        return data
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if data.count(last + b"\n") + data.endswith(last) == lines:  # many times as fast
        return data.replace(last + b"\n", b"\n").removesuffix(last)
    mark = re.escape(last)
    if re.search(rb"(?m)^(?![ \t]*[#%]+[ \t])[^\n]*[^\n " + mark + rb"][ ]*$", data):
        return data
    return re.sub(rb"(?m)" + mark + rb"[ ]*$", b"", data)


def without_line(body: bytes, line: bytes) -> tuple[bytes, int]:
    """Return the text without the lines that are ``line``, and their number."""
    again, count = b"\n" + line + b"\n", 0
    while body.startswith(again[1:]):
        body, count = body[len(line) + 1 :], count + 1
    while again in body:  # one pass misses every other of several in a row
        found = body.count(again)
        body, count = body.replace(again, b"\n"), count + found
    if body.endswith(again[:-1]) or body == line:
        body, count = body[: -len(line)], count + 1
    return body, count


def without_empty_end(data: bytes, separator: str) -> tuple[bytes, int]:
    """Remove the rows of empty cells at the end, as spreadsheets write them, and count them."""
    if separator == " ":
        return data, 0
    mark = separator.encode()
    kept = data.rstrip(mark + b" \t\n")
    if len(kept) == len(data):
        return data, 0
    end = data.find(b"\n", len(kept))
    rest = [] if end < 0 else data[end + 1 :].split(b"\n")
    count = sum(mark in line for line in rest)
    return (data[: end + 1], count) if count else (data, 0)


def has_decimal_commas(data: bytes, of_ids: bool) -> bool:
    """Whether rows separated by semicolons have decimal commas.

    Parameters
    ----------
    data : bytes
    of_ids : bool
        Whether all cells are ids: then ``1,2`` is a list, and only ``1,0`` is a number.
    """
    if b"," not in data or _DECIMAL_POINT.search(data):
        return False
    found = _DECIMAL_COMMA.finditer(data)
    return not of_ids or all(not match[2].strip(b"0 \t") for match in found)


def with_points(data: bytes, kept: int) -> tuple[bytes, int]:
    """Write decimal commas as points, and count them.

    Parameters
    ----------
    data : bytes
    kept : int
        Number of first columns in which cells in quotation marks stay as they are.
    """
    data, count = _DECIMAL_COMMA.subn(rb"\1.\2", data)
    if b'"' not in data:
        return data, count
    quoted = 0

    def converted(row: re.Match[bytes]) -> bytes:
        nonlocal quoted
        cells, number = _QUOTED_COMMA.subn(rb"\1.\2", row[2])
        quoted += number
        return row[1] + cells

    rows = re.compile(rb"(?m)^((?:[^;\n]*;){%d})([^\n]*)$" % kept)
    return rows.sub(converted, data), count + quoted
