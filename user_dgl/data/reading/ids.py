"""Node ids: int64 where every id is a whole number as people write it, else text.

`007` and `7` differ, so one id with leading zeros (or a sign, or more than 63 bits) makes all of
them text. Blanks around an id do not count.
"""

import re

import numpy as np
import pandas as pd

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64_MAX = 2**63 - 1
ID_NAMES = frozenset(
    ("id", "ids", "node", "nodes", "node_id", "nodeid", "node id", "vertex", "vertex_id", "name")
)


def index_ids(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct ids, ascending, and the position of each value among them.

    Parameters
    ----------
    values : ndarray (M,)
        int64, or text as objects.

    Returns
    -------
    codes : int64 (M,)
    names : ndarray (N,)
        int64, or text in the order of its code points.

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


def tidy_ids(values) -> np.ndarray:
    """Ids without surrounding blanks, as int64 where all are whole numbers, else as text."""
    text = [str(value).strip() for value in values]
    if text and all(map(_WHOLE.fullmatch, text)):
        numbers = list(map(int, text))
        if max(-min(numbers), max(numbers)) <= _INT64_MAX:
            return np.array(numbers, dtype=np.int64)
    return np.array(text, dtype=object)


def may_respell(body: bytes) -> bool:
    """Whether text may hold whole numbers that a number parser would spell otherwise: 007, -0, +7.

    A yes can be wrong (dates, exponents), a no cannot.
    """
    if b"+" in body or b"-0" in body:
        return True
    block = 1 << 24
    for start in range(0, len(body), block):
        # One byte before and one after the block, so that no zero lacks its neighbours.
        part = (b"\n" if start == 0 else b"") + body[max(start - 1, 0) : start + block + 1]
        byte = np.frombuffer(part, dtype=np.uint8)
        digit = byte - ord("0") < 10  # unsigned, so what is below "0" wraps to large numbers
        in_number = digit | (byte == ord("."))
        if ((byte[1:-1] == ord("0")) & digit[2:] & ~in_number[:-2]).any():
            return True
    return False


def is_text(names: np.ndarray) -> bool:
    """Whether ids are text."""
    return names.dtype == object


def as_text(names: np.ndarray) -> np.ndarray:
    """Ids as text (N,), objects."""
    return names if is_text(names) else np.array([str(n) for n in names.tolist()], dtype=object)


def positions(names: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Position of each wanted id among distinct ids, -1 where it is none of them."""
    if names is wanted:
        return np.arange(len(names))
    if is_text(names) or is_text(wanted):
        names, wanted = as_text(names), as_text(wanted)
    return pd.Index(names).get_indexer(pd.Index(wanted))


def counts_up(names: np.ndarray, start: int = 0) -> bool:
    """Whether the ids are start, start + 1, ... in this order."""
    return not is_text(names) and np.array_equal(names, np.arange(start, start + len(names)))


def repeated_row(values: np.ndarray) -> int | None:
    """First row whose value an earlier row has."""
    first = np.unique(values, return_index=True)[1]
    if len(first) == len(values):
        return None
    return int(np.setdiff1d(np.arange(len(values)), first)[0])


def spelling_hint(name) -> str:
    """What may be amiss with an id that another file has not, for messages.

    >>> spelling_hint("3.0"), spelling_hint("3")
    (' (ids that a program wrote as numbers with a point: write 3)', '')
    """
    whole = re.fullmatch(r"(-?[0-9]+)\.0+", str(name))
    return f" (ids that a program wrote as numbers with a point: write {whole[1]})" if whole else ""


def unusable(names: np.ndarray) -> tuple[int, str] | None:
    """Position of an id that is empty or spans lines, and what is wrong with it."""
    if is_text(names):
        for code, name in enumerate(names):
            if not name:
                return code, "an id is missing: add it or remove the row"
            if "\n" in name:
                return code, "an id spans lines: is a quotation mark left open?"
    return None


def _index(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not is_text(values) and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * len(values) + 1000:  # a table is several times faster than sorting
            seen = np.zeros(high - low + 1, dtype=bool)
            seen[values - low] = True
            place = np.cumsum(seen) - 1
            return place[values - low], np.flatnonzero(seen) + low
    names, codes = np.unique(values, return_inverse=True)
    return codes, names
