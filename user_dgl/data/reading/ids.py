"""Node ids: int64 if every id is a whole number in its usual spelling, else text.

The ids `007` and `7` differ. So one id with leading zeros, with a plus sign or with more than
63 bits makes all ids text. Blanks around an id are ignored. If all ids are whole numbers apart from
a decimal point or an exponent, `7.0` is 7 and `1e+05` is 100000, as R and pandas write them.
Composed and decomposed accents are one spelling.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from decimal import Decimal

import numpy as np
import pandas as pd

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
# `1E5` is no number: wells of a plate and hexadecimal ids look like this.
_ROUND = re.compile(
    r"(0|-?[1-9][0-9]{0,18})\.0*|(0(\.0+)?|-?[1-9](\.[0-9]+)?)e\+?[0-9]{1,2}|-?[1-9]\.[0-9]+E[0-9]{1,2}"
)
# A spreadsheet shows long numbers so, and their last digits are lost.
_SHORTENED = re.compile(r"-?[1-9][.,][0-9]+E\+[0-9]+")
_INT64_MAX = 2**63 - 1
# Byte-order mark, and a blank of width 0.
_INVISIBLE = "\ufeff\u200b"
# Marks that people write in place of an id. Each may also be an id.
MISSING_MARKS = frozenset(("?", "-", "--", ".", "*"))
# A larger share of rows without an id is no accident: then the table was misunderstood.
_MOST_MISSING = 0.2
# Bytes that are searched at a time. Temporary arrays of this size stay in the processor's cache.
_BLOCK = 1 << 17


def index_ids(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct ids, and the position of each value among them.

    Parameters
    ----------
    values : ndarray (M,)
        int64, or an object array of text.

    Returns
    -------
    codes : int64 (M,)
        Position of each value in ``names``.
    names : ndarray (N,)
        Distinct ids in ascending order: int64, or text sorted by code points.

    >>> codes, names = index_ids(np.array(["7", "10", " 7"], dtype=object))
    >>> codes.tolist(), names.tolist()
    ([0, 1, 0], [7, 10])
    >>> index_ids(np.array(["7", "007"], dtype=object))[1].tolist()
    ['007', '7']
    """
    if values.dtype == object:
        codes, spelled = pd.factorize(values)
        again, names = _index(tidy_ids(spelled))
        return again[codes], names
    return _index(values)


def tidy_ids(values: Iterable[object]) -> np.ndarray:
    """Return ids without surrounding blanks: int64 if all are whole numbers, else text."""
    text = [str(value).strip() for value in values]
    if not all(map(str.isascii, text)):
        text = [t if t.isascii() else _composed(t) for t in text]
    if text and all(map(_WHOLE.fullmatch, text)):
        return _as_int64(list(map(int, text)), text)
    if text and all(_WHOLE.fullmatch(t) or _ROUND.fullmatch(t) for t in text):
        numbers = [Decimal(t) for t in text]
        if all(number == int(number) for number in numbers):
            return _as_int64(list(map(int, numbers)), text)
    return np.array(text, dtype=object)


def _composed(text: str) -> str:
    """Compose accents, and remove marks without width from both ends."""
    return unicodedata.normalize("NFC", text).strip(_INVISIBLE).strip()


def _as_int64(numbers: list[int], text: list[str]) -> np.ndarray:
    fits = max(-min(numbers), max(numbers)) <= _INT64_MAX
    return np.array(numbers, dtype=np.int64) if fits else np.array(text, dtype=object)


def respelled(values: np.ndarray, names: np.ndarray) -> str | None:
    """Return a note if `index_ids` reads some of these ids in another spelling, else None.

    Parameters
    ----------
    values : ndarray (M,)
        int64, or an object array of text.
    names : ndarray (N,)
        What `index_ids` makes of them.
    """
    if values.dtype != object:
        return None
    written = [str(value).strip() for value in pd.unique(values)]
    read = tidy_ids(written)
    others = [
        (old, new) for old, new in zip(written, read.tolist(), strict=True) if old != str(new)
    ]
    if not others:
        return None
    old, new = others[0]
    return f"{len(others)} ids are read in another spelling, such as {old!r} as {str(new)!r}"


def drop_missing(
    codes: np.ndarray, names: np.ndarray, missing: Collection[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Find the rows of edges without an id at one of their ends.

    Parameters
    ----------
    codes : int64 (2, M)
        Ends of the edges, as positions in ``names``.
    names : ndarray (N,)
        Distinct ids, as `index_ids` returns them.
    missing : collection of str
        What stands in place of an id that is missing.

    Returns
    -------
    codes, names : ndarray
        The same without the rows, or unchanged where too many rows lack an id.
    kept : bool (M,) or None
        The rows that are left; None if all of them are.
    """
    if not missing:
        return codes, names, None
    without = positions(names, np.array(list(missing), dtype=object))
    kept = ~(np.isin(codes[0], without) | np.isin(codes[1], without))
    if (~kept).sum() > _MOST_MISSING * len(kept):
        return codes, names, None
    again, left = index_ids(names[codes[:, kept].ravel()])
    return again.reshape(2, -1), left, kept


def may_respell(body: bytes) -> bool:
    """Whether text may contain whole numbers in an unusual spelling: 007, -0 or +7.

    A number parser would lose that spelling. The result may be true without need, for example
    because of dates or exponents. It is never false by mistake.
    """
    if b"+" in body or b"-0" in body or (body[:1] == b"0" and body[1:2].isdigit()):
        return True
    whole = np.frombuffer(body, dtype=np.uint8)
    for start in range(1, len(body) - 1, _BLOCK):
        # One more byte on each side of the block: every zero has two neighbours.
        byte = whole[start - 1 : start + _BLOCK + 1]
        digit = byte - ord("0") < 10  # unsigned: bytes below "0" wrap around to large numbers
        found = byte[1:-1] == ord("0")
        found &= digit[2:]
        found &= ~digit[:-2]
        if found.any() and (found & (byte[:-2] != ord("."))).any():
            return True
    return False


def is_text(names: np.ndarray) -> bool:
    """Whether ids are text."""
    return names.dtype == object


def holds(names: np.ndarray, word: str) -> bool:
    """Whether a word is among distinct ids that are text."""
    place = int(np.searchsorted(names, word))
    return place < len(names) and names[place] == word


def as_text(names: np.ndarray) -> np.ndarray:
    """Return ids as an object array of text (N,)."""
    return names if is_text(names) else np.array([str(n) for n in names.tolist()], dtype=object)


def positions(names: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the position of each wanted id in ``names``, or -1 if it is not there.

    Parameters
    ----------
    names : ndarray (N,)
        Distinct ids.
    wanted : ndarray (M,)

    Returns
    -------
    int64 (M,)
    """
    if names is wanted:
        return np.arange(len(names))
    if is_text(names) or is_text(wanted):
        names, wanted = as_text(names), as_text(wanted)
    return pd.Index(names).get_indexer(pd.Index(wanted))


def counts_up(names: np.ndarray, start: int = 0) -> bool:
    """Whether the ids are the numbers start, start + 1, ... in this order."""
    return not is_text(names) and np.array_equal(names, np.arange(start, start + len(names)))


def repeated_row(values: np.ndarray) -> int | None:
    """Return the first row that repeats the value of an earlier row, or None."""
    first = np.unique(values, return_index=True)[1]
    if len(first) == len(values):
        return None
    return int(np.setdiff1d(np.arange(len(values)), first)[0])


def spelling_hint(name: object) -> str:
    """Return a hint for the message about an id that another file lacks; may be empty.

    >>> spelling_hint("3.0"), spelling_hint("3")
    (' (a program wrote this id with a decimal point: write 3)', '')
    """
    whole = re.fullmatch(r"(-?[0-9]+)\.0+", str(name))
    return f" (a program wrote this id with a decimal point: write {whole[1]})" if whole else ""


def unusable(names: np.ndarray, missing: Collection[str] = ("",)) -> tuple[int, str] | None:
    """Find an id that is missing, shortened by a spreadsheet, or contains a line end.

    Parameters
    ----------
    names : ndarray (N,)
        Distinct ids.
    missing : collection of str
        What stands in place of an id that is missing.

    Returns
    -------
    (int, str) or None
        Position of the first such id, and the problem for the message.
    """
    if is_text(names):
        for code, name in enumerate(names):
            if name in missing:
                return code, "an id is missing: add it or remove the row"
            if "E+" in name and _SHORTENED.fullmatch(name):
                return code, f"a spreadsheet cut the id {name}: export the full number as text"
            if "\n" in name:
                return code, "an id spans several lines: is a quotation mark left open?"
    return None


def _index(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not is_text(values) and len(values):
        low, high = int(values.min()), int(values.max())
        if high <= _INT64_MAX:  # differences of small types would overflow
            values = values.astype(np.int64, copy=False)
        if high - low < 4 * len(values) + 1000:  # this table is several times faster than sorting
            above = values - low if low else values
            seen = np.zeros(high - low + 1, dtype=bool)
            seen[above] = True
            names = np.flatnonzero(seen) + low
            if len(names) == len(seen):  # without gaps, the distance to the lowest is the position
                return above, names
            return (np.cumsum(seen) - 1)[above], names
    names, codes = np.unique(values, return_inverse=True)
    return codes, names
