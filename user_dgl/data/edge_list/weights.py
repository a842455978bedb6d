"""Edges that were read from a text, and the column of their weights."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from user_dgl.data.reading.text import TextFile
from user_dgl.errors import InputError

# Numbers from this on are times in seconds, as 10^8 was in 1973. Of numbers that are not whole,
# those up to the second value, which is in 2106.
_TIME, _TIME_END = 10**8, 2**32
_YEARS = (1900, 2100)
# So many different whole numbers without a gap are numbers of the rows.
_MANY = 10


@dataclass(frozen=True, eq=False)
class Pairs:
    """Edges of a text.

    Attributes
    ----------
    u, v : int64 (M,)
        Ends of the edges, as positions in ``names``.
    names : ndarray
        Distinct ids of the nodes.
    notes : list of str
        Lines for the user that say what was decided.
    text : TextFile
        The file.
    ends : tuple of int
        Its columns with the ends.
    rows : int64 (M,) or None
        The row of the file in which each edge stands; None if it is its position.
    weight : float64 (M,) or None
        Weights of the edges, more than 0.
    """

    u: np.ndarray
    v: np.ndarray
    names: np.ndarray
    notes: list[str]
    text: TextFile
    ends: tuple[int, int]
    rows: np.ndarray | None = None
    weight: np.ndarray | None = None

    def error(self, name: int, problem: str) -> InputError:
        """Make an error for the id ``names[name]``, with the first line that contains it."""
        at = int(np.argmax((self.u == name) | (self.v == name)))
        return self.text.error(at if self.rows is None else int(self.rows[at]), problem)


def weighed_pairs(pairs: Pairs, weight: np.ndarray, where: str, chosen: bool) -> Pairs:
    """Check the weights, drop the rows of weight 0, and keep the weights of the others.

    Parameters
    ----------
    pairs : Pairs
    weight : float64 (M,)
        Numbers in the column, or NaN.
    where : str
        The column in words.
    chosen : bool
        Whether a name or the user says that they are weights. If not, numbers that count, or that
        look like times, are ignored.

    Raises
    ------
    InputError
        A weight is negative, NaN or infinite; or nobody says what the column is, and it contains 0.
    """
    text, notes = pairs.text, list(pairs.notes)

    def error(position: int, problem: str) -> InputError:
        row = position if pairs.rows is None else int(pairs.rows[position])
        return text.error(row, problem)

    reason = None if chosen else _no_weight(weight)
    if reason is not None:
        notes.append(
            f"{text.path.name}: {where} {reason} and no weight: ignored (data.weights names a "
            "column of weights)"
        )
        return replace(pairs, notes=notes)
    if not chosen and _rises(weight):
        raise error(
            0,
            f"{where} rises from row to row: times, or weights in ascending order? Write a first "
            "row with the name weight or time above it, or set data.weights=ignore",
        )
    low, high = (weight.min(), weight.max()) if len(weight) else (1.0, 1.0)
    if not (low >= 0 and high < np.inf):  # NaN makes both comparisons false
        bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        text.check_rows()  # a row that is too short reads as NaN, and this names its line
        problem = f"weight {weight[bad[0]]:g} in {where}: expected 0 or more"
        if (weight < 0).any():
            problem += (
                " (edges with a sign are not supported: keep the positive ones, or set "
                "data.weights=ignore to count every row as an edge)"
            )
        if len(bad) > 1:
            row = int(bad[1]) if pairs.rows is None else int(pairs.rows[bad[1]])
            problem += f"; {len(bad)} such rows, the next in line {text.line_of(row)}"
        raise error(int(bad[0]), problem)
    if low == 0:
        zero = weight == 0
        if not chosen and (weight == np.floor(weight)).all():
            a, b = (end + 1 for end in pairs.ends)
            raise error(
                int(np.argmax(zero)),
                f"0 in {where}: a weight (then this row is no edge) or a time or type? Write a "
                f"first row with the name weight above it, or set data.columns=[{a}, {b}] to "
                "ignore it",
            )
        notes.append(f"{text.path.name}: {int(zero.sum())} rows of weight 0 dropped")
        rows = np.flatnonzero(~zero) if pairs.rows is None else pairs.rows[~zero]
        weight = weight[~zero]
        pairs = replace(pairs, u=pairs.u[~zero], v=pairs.v[~zero], rows=rows)
        low = weight.min() if len(weight) else high
    if low != high:
        notes.append(f"{text.path.name}: weights are in {where}")
    return replace(pairs, notes=notes, weight=weight)


def _no_weight(values: np.ndarray) -> str | None:
    """Say why numbers without a name are no weights; None if they may be weights."""
    if not len(values):
        return None
    if not values.any():
        return "is 0 in every row, so it is a type"
    low, high = values.min(), values.max()
    whole = (values == np.floor(values)).all()
    if low >= _TIME and (whole or high < _TIME_END):
        return "has numbers from 100,000,000 on, so it is a time"
    if not whole:
        return None
    distinct = pd.unique(values)
    if _are_dates(values, low, high):
        return "has years or dates"
    if len(distinct) < 3:
        counts = low == 0 and len(distinct) > 1 and len(values) > 2
        rises = counts and (np.diff(values) >= 0).all()
    else:
        gapless = low == 0 and high == len(distinct) - 1
        # Each number once, in any order.
        numbers = len(distinct) == len(values) >= _MANY and high - low == len(values) - 1
        rises = (np.diff(values) >= 0).all() or gapless or numbers
    return "counts from row to row, so it is a time or an id" if rises else None


def _rises(values: np.ndarray) -> bool:
    """Whether each number is larger than the one before it. Numbers up to 1 are similarities."""
    return len(values) >= _MANY and values[-1] > 1 and bool((np.diff(values) > 0).all())


def _are_dates(values: np.ndarray, low: float, high: float) -> bool:
    """Whether whole numbers are years (2020), months (202012) or days (20201231)."""
    if _YEARS[0] <= low and high <= _YEARS[1]:
        return True
    if 100 * _YEARS[0] < low and high < 100 * _YEARS[1] + 100:
        months, days = values % 100, np.ones(1)
    elif 10_000 * _YEARS[0] < low and high < 10_000 * _YEARS[1] + 10_000:
        months, days = values // 100 % 100, values % 100
    else:
        return False
    parts = ((months, 12), (days, 31))
    return all(part.min() >= 1 and part.max() <= most for part, most in parts)
