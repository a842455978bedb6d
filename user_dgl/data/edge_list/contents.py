"""Find the ends of the edges by what stands in the columns of a table without names.

Most tables are `end, end` or `end, end, weight`. But a row may also start with its own number, a
time or a weight, or have a relation between its ends. The rules here decide by three facts: what
kind of values a column holds, which columns share values, and how many values are distinct. Where
they do not decide, nothing is guessed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from user_dgl.data.reading.cells import MISSING

# A column whose share of distinct values is below this, against another column, is a relation or a
# weight beside the ids in that one.
_FEW = 0.3
# Two columns of numbers that share more of their values than this may both hold ids.
_ALIKE = 0.5
_MUCH_MORE = 1.5
# More columns of numbers than this are features or a matrix, unless a header names them.
_MOST_NUMBERS = 4
_LEAST_ROWS = 3
# A column with fewer distinct numbers holds weights rather than ids.
_MANY_IDS = 5
# With fewer rows, a first column that counts them may hold ends as well.
_TELLING_ROWS = 10
_WHOLE = re.compile(r"[-+]?[0-9]+(\.0*)?|[-+]?[0-9](\.[0-9]+)?[eE]\+?[0-9]+")
_REAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_TIME = re.compile(
    r"[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}([T ].*)?|[0-9]{1,2}:[0-9]{2}(:[0-9.]+)?Z?"
)
_SIGNS = re.compile(r"\W+")


@dataclass(frozen=True)
class Guess:
    """What the contents of the columns tell.

    Attributes
    ----------
    ends : tuple of int, or None
        Columns of the two ends; None if that is not clear.
    rivals : tuple of tuple of int
        If it is not clear: pairs of columns that could hold them.
    why : str
        What stands against a clear answer, or why columns other than the first two were taken.
    """

    ends: tuple[int, int] | None
    rivals: tuple[tuple[int, int], ...] = ()
    why: str = ""


@dataclass(frozen=True)
class _Column:
    place: int
    kind: str  # text, whole, real, time or none
    values: frozenset[str]
    rising: bool
    counts: bool


def guess_ends(head: Sequence[Sequence[str]], spread: Sequence[Sequence[str]]) -> Guess:
    """Find the columns of the ends.

    Parameters
    ----------
    head : sequence of rows
        Cells of the first rows.
    spread : sequence of rows
        These, and rows from other places.
    """
    cells = [[row[place].strip() for row in spread] for place in range(len(spread[0]))]
    columns = [
        _column(place, [row[place].strip() for row in head], cells[place])
        for place in range(len(cells))
        # A copy of another column says nothing new.
        if len(cells) == 2 or cells[place] not in cells[:place]
    ]
    filled = [column for column in columns if column.kind != "none"]
    if len(cells) == 2:
        return _two(columns)
    signs = [c for c in filled if len(c.values) == 1 and _SIGNS.fullmatch(min(c.values))]
    filled = [column for column in filled if column not in signs]
    texts = [column for column in filled if column.kind == "text"]
    wholes = [column for column in filled if column.kind == "whole"]
    if len(texts) > 1:
        guess = _among_texts(texts, len(spread))
        if guess.ends is None or len(wholes) < 2:
            return guess
        if not any(a.values & b.values for a, b in combinations(texts, 2)):
            rivals = (guess.ends, (wholes[0].place, wholes[1].place))
            return Guess(None, tuple(sorted(rivals)), "two columns are text, and two are numbers")
        # Names and numbers of both ends: `ann bob 1 2`.
        others = [c for c in wholes if len(c.values) > _FEW * len(texts[0].values)]
        twins = [(a, b) for a, b in combinations(others, 2) if _alike(a, b) >= _ALIKE]
        if twins:
            rival = (twins[0][0].place, twins[0][1].place)
            return Guess(None, (guess.ends, rival), "two pairs of columns share ids")
        return guess
    if len(texts) == 1 and len(wholes) != 2:
        return _text_and_number(texts[0], wholes)
    if len(filled) > _MOST_NUMBERS and not texts:
        return Guess(None, (), f"{len(filled)} columns of numbers without names")
    if len(wholes) == 2:
        return _two_numbers(wholes, texts, bool(signs))
    if len(wholes) < 2:
        return Guess(None, (), "fewer than two columns hold ids")
    return _numbers(wholes, cells)


def _column(place: int, head: list[str], spread: list[str]) -> _Column:
    given = [cell for cell in spread if cell not in MISSING]
    values = frozenset(given)
    kind = "none"
    if given:
        kind = "text"
        # A mistyped cell does not make a column of numbers one of text.
        for name, pattern in (("whole", _WHOLE), ("real", _REAL), ("time", _TIME)):
            if sum(bool(pattern.fullmatch(value)) for value in values) >= 0.9 * len(values):
                kind = name
                break
    numbers = []
    if kind in ("whole", "real"):
        numbers = [float(cell) for cell in head if _REAL.fullmatch(cell)]
    pairs = list(pairwise(numbers))
    rising = len(numbers) >= 10 and len(set(numbers)) > 2 and all(a <= b for a, b in pairs)
    counts = len(numbers) > 1 and all(b - a == 1 for a, b in pairs)
    return _Column(place, kind, values, rising, counts and numbers[0] in (0, 1))


def _alike(first: _Column, second: _Column) -> float:
    """Share of common values, of the column with more distinct ones."""
    most = max(len(first.values), len(second.values))
    return len(first.values & second.values) / most if most else 0.0


def _two(columns: list[_Column]) -> Guess:
    """Two columns are the ends, unless one of them cannot be."""
    for column in columns:
        if column.kind in ("real", "time"):
            what = "real numbers" if column.kind == "real" else "times"
            return Guess(None, ((0, 1),), f"column {column.place + 1} holds {what} and no ids")
    return Guess((0, 1))


def _among_texts(texts: list[_Column], num_rows: int) -> Guess:
    varied = [c for c in texts if len(c.values) > 1] if num_rows >= _LEAST_ROWS else texts
    sharing = [(a, b) for a, b in combinations(varied, 2) if a.values & b.values]
    places = [(a.place, b.place) for a, b in sharing]
    if len(places) == 1:
        return _said(places[0], "share ids")
    if places:
        return Guess(None, tuple(places), "several pairs of columns share ids")
    if len(texts) == 2 and texts[0].place + 1 == texts[1].place:
        return _said((texts[0].place, texts[1].place), "are the only ones of text")
    rivals = tuple((a.place, b.place) for a, b in combinations(texts[:3], 2))
    return Guess(None, rivals, "no two columns share ids")


def _text_and_number(text: _Column, wholes: list[_Column]) -> Guess:
    ends = tuple((min(text.place, c.place), max(text.place, c.place)) for c in wholes)
    sharing = [c for c in wholes if text.values & c.values]
    if len(sharing) == 1:
        return _said(
            (min(text.place, sharing[0].place), max(text.place, sharing[0].place)), "share ids"
        )
    return Guess(None, ends[:3], "ids in one column are text and in the other numbers")


def _two_numbers(wholes: list[_Column], texts: list[_Column], signs: bool) -> Guess:
    first, second = wholes
    ends = (first.place, second.place)
    if ends == (0, 1):
        return Guess(ends)
    share = bool(first.values & second.values)
    # A letter in front of every row, such as `e 1 2`, tells nothing.
    texts = [column for column in texts if len(column.values) > 1]
    if not texts and (share or signs or first.place + 1 == second.place):
        return _said(ends, "are the only ones with ids")
    between = texts and first.place < texts[0].place < second.place
    if share and between:
        return _said(ends, "share ids")
    rivals = tuple(
        (a.place, b.place) for a, b in combinations(sorted((*wholes, *texts), key=_place), 2)
    )
    return Guess(None, rivals, "text and numbers stand side by side")


def _place(column: _Column) -> int:
    return column.place


def _numbers(wholes: list[_Column], cells: list[list[str]]) -> Guess:
    """Three or more columns of whole numbers: two ends, and numbers of another kind."""
    first, second, third = wholes[:3]
    usual = (first.place, second.place)
    middle, last = (first.place, third.place), (second.place, third.place)
    if len(cells[0]) < _LEAST_ROWS:
        if first.counts and len(set(map(float, third.values))) > 1:
            return Guess(None, (usual, last), f"column {first.place + 1} counts the rows")
        return Guess(usual)
    d1, d2, d3 = (len(column.values) for column in wholes[:3])
    s12, s13, s23 = _alike(first, second), _alike(first, third), _alike(second, third)
    # In a star, and in a small table, little tells row numbers from ends.
    unclear = d2 == 1 or (len(cells[0]) < _TELLING_ROWS and s12 < _ALIKE)
    if first.counts and d3 > 1 and unclear:
        return Guess(None, (usual, last), f"column {first.place + 1} counts the rows")
    if first.counts and (s23 > 0 or s12 == 0) and d3 > _FEW * d2 and not third.rising:
        return Guess(None, (usual, last), f"column {first.place + 1} counts the rows")
    if third.rising or third.counts:
        return Guess(usual)
    # Each row starts with another node: then the other columns may be its neighbours.
    if d1 == len(cells[0]) and min(s12, s13) >= _ALIKE and d3 >= _MANY_IDS:
        return Guess(None, (usual, middle), "column 1 has another id in each row")
    if d2 <= _FEW * min(d1, d3) and s13 >= _FEW:
        return Guess(None, (middle, usual), f"column {second.place + 1} has only {d2} values")
    if d1 <= _FEW * min(d2, d3) and s23 >= _FEW:
        return Guess(None, (last, usual), f"column {first.place + 1} has only {d1} values")
    if s12 == 0 and s13 == 0 and s23 > 0 and d3 > _FEW * d2:
        return _said(last, "share ids")
    if s12 == 0 and s23 == 0 and s13 > 0 and d3 > _FEW * d1:
        return _said(middle, "share ids")
    # The ends share most of their ids. If the third column shares more with one of them than the
    # other does, it may be an end, and the other a time or a weight.
    if max(s13, s23) < _ALIKE or d3 < _MANY_IDS:
        return Guess(usual)
    sorted_by_second = second.rising and not first.rising
    odd = _odd_rows(usual, cells)
    for rival, share in ((last, s23), (middle, s13)):
        fewer = odd > 0 and _odd_rows(rival, cells) < odd
        if share >= _ALIKE and (share > _MUCH_MORE * s12 or fewer or sorted_by_second):
            return Guess(None, (usual, rival), f"column {third.place + 1} has the same numbers")
    return Guess(usual)


def _odd_rows(ends: tuple[int, int], cells: list[list[str]]) -> int:
    """Number of rows that are self-loops or repeat another row, if these are the ends."""
    pairs = list(zip(cells[ends[0]], cells[ends[1]], strict=True))
    return sum(u == v for u, v in pairs) + len(pairs) - len(set(pairs))


def _said(ends: tuple[int, int], why: str) -> Guess:
    return Guess(ends, (), "" if ends == (0, 1) else why)
