"""Refuse what shows only among the cells: first rows that count, lists of ids, tables of all pairs.

Each check here finds a file that would be read without an error, but as another graph than the one
that its author has in mind. The message says which setting picks which reading.
"""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from user_dgl.data.edge_list.layouts import TextOptions
from user_dgl.data.edge_list.weights import Pairs
from user_dgl.data.reading.cells import MISSING, is_number
from user_dgl.data.reading.ids import holds, is_text
from user_dgl.data.reading.text import TextFile
from user_dgl.errors import InputError
from user_dgl.graph import pair_keys

# A first row without any later mention of its ids is probably a header, unless more than two of the
# other rows are so, and more than this share.
_FEW_ALONE = 0.02
# With fewer nodes, all pairs may be edges by chance.
_FEW_NODES = 4
_BETWEEN = re.compile(r"[,;|\s]+")
_MARKED = re.compile(r"[,;|]|^[\[({]")
_BRACKETED = re.compile(r"[\[({].*[\])}]")
_WHOLE = re.compile(r"-?[0-9]+")
_MOST_STRANGE = 0.5
# Where blanks separate the other rows, these end an id.
_SEPARATORS = (",", ";", "|", ":")


def column_name(text: TextFile, column: int) -> str:
    """Return how messages call a column."""
    if text.header and len(text.header) > column:
        return f"column {text.header[column]!r}"
    return f"column {column + 1}"


def _setting(text: TextFile, column: int) -> str:
    """Return how a setting names a column."""
    return text.header[column] if text.header and column < len(text.header) else str(column + 1)


def counts(cell: str) -> bool:
    """Whether a cell is a number and not missing."""
    return is_number(cell.strip()) and cell.strip() not in MISSING


def refuse_lists(text: TextFile, ends: tuple[int, int]) -> None:
    """Refuse a node in one column whose neighbours stand together in a cell of the other.

    A name may contain blanks and commas as well. Cells are lists if most of their parts are ids in
    the other column, or if they are in brackets or whole numbers and the other column is not.

    Raises
    ------
    InputError
    """
    if not any(len(_parts(row[c])) > 1 for row in text.sample for c in ends if len(row) > c):
        return
    head, _ = text.spread_sample()
    for column, other in (ends, ends[::-1]):
        cells, others = ([row[c].strip() for row in head] for c in (column, other))
        lists = [cell for cell in cells if len(_parts(cell)) > 1]
        ids = {cell for cell in others if len(_parts(cell)) == 1}
        parts = [part for cell in lists for part in _parts(cell)]
        if not parts or not ids:
            continue
        shared = sum(part in ids for part in parts) >= _MOST_STRANGE * len(parts)
        if not any(_MARKED.search(cell) for cell in lists):
            # Blanks stand in names too: a few names of two words are no lists.
            shared = shared and len(lists) >= len(cells) / 2
        boxed = all(map(_BRACKETED.fullmatch, lists)) and not any(map(_BRACKETED.fullmatch, others))
        numbers = all(map(_WHOLE.fullmatch, parts)) and all(map(_WHOLE.fullmatch, others))
        if shared or boxed or numbers:
            chosen = [_setting(text, c) for c in ends]
            raise InputError(
                f"{text.path}: {column_name(text, column)} has several ids in a cell, such as "
                f"{lists[0][:60]!r}: write a row for each of them; or set data.columns="
                f"[{', '.join(chosen)}] if it is one id"
            )


def _parts(cell: str) -> list[str]:
    parts = (part.strip("'\"") for part in _BETWEEN.split(cell.strip().strip("[](){}").strip()))
    return [part for part in parts if part]


def check_first_row(pairs: Pairs, options: TextOptions) -> None:
    """Refuse or report a first row that may be a header, or count the edges, as well as an edge.

    Raises
    ------
    InputError
    """
    u, v, names, text = pairs.u, pairs.v, pairs.names, pairs.text
    if options.header != "auto" or not len(u):
        return
    if not is_text(names):
        if options.layout == "auto":
            _check_count(pairs)
        return
    if text.header:
        if options.columns:
            return
        header = [text.header[c] for c in pairs.ends if c < len(text.header)]
        # A file may be joined to one of another program, with another spelling of the header.
        forms = [form for name in header for form in dict.fromkeys((name, *_spellings(name)))]
        again = [form for form in forms if form and holds(names, form)]
        if again:
            raise InputError(
                f"{text.path}: the first row ({', '.join(text.header[:6])}) may be a header or an "
                f"edge, as {again[0]!r} is an id below: set data.header=true or data.header=false"
            )
        return
    first = np.array([u[0], v[0]])
    count = np.bincount(np.concatenate([u, v]), minlength=len(names))
    # The same row may stand again where files were joined.
    same = int(((u == u[0]) & (v == v[0])).sum())
    alone = (count[u] == 1) & (count[v] == 1) & (u != v)
    alone[0] = (count[first] == same).all() and u[0] != v[0]
    if len(u) < 2 or not alone[0] or any(map(counts, names[first])):
        return
    shown = f"neither {names[first[0]]!r} nor {names[first[1]]!r} occurs again"
    if alone[1:].sum() <= max(2, _FEW_ALONE * len(u)):
        raise text.error(
            0,
            f"the first row may be a header or an edge, as {shown}: set data.header=true or "
            "data.header=false",
        )
    pairs.notes.append(
        f"{text.path.name}: first row taken as an edge, although {shown}: set data.header=true if "
        "it is a header"
    )


def _check_count(pairs: Pairs) -> None:
    """Refuse a first row with the number of nodes and the number of rows below it."""
    u, v, names, text = pairs.u, pairs.v, pairs.names, pairs.text
    below = len(u) - 1
    if text.header or text.num_columns != 2 or below < 2 or pairs.rows is not None:
        return
    nodes, rows = int(names[u[0]]), int(names[v[0]])
    if rows != below or nodes < int(names[max(u[1:].max(), v[1:].max())]):
        return
    raise text.error(
        0,
        f"{nodes} nodes and {rows} rows below it, or an edge from {nodes} to {rows}: set "
        "data.header=true to leave the first row out, or data.header=false if it is an edge",
    )


def _spellings(name: str) -> Sequence[str]:
    return name.lower(), name.upper(), name.capitalize(), name.title()


def check_separators(pairs: Pairs) -> None:
    """Refuse rows of which blanks separate some, and commas and blanks the others.

    Raises
    ------
    InputError
    """
    names = pairs.names
    if pairs.text.separator != " " or not is_text(names):
        return
    for code, name in enumerate(names):
        if name[-1:] in _SEPARATORS and holds(names, name[:-1]):
            raise pairs.error(
                code,
                f"both {name} and {name[:-1]} are ids: write the same separator in all rows, or "
                "set data.separator",
            )


def check_all_pairs(pairs: Pairs, columns: dict[int, np.ndarray]) -> None:
    """Refuse a row for each pair of nodes, if a column that is ignored is 0 in some of them.

    ``as.data.frame(table(...))`` of R and other programs write a matrix in this way.

    Parameters
    ----------
    pairs : Pairs
    columns : dict
        The columns that are neither ends nor weights, as text.

    Raises
    ------
    InputError
    """
    number = len(pairs.names)
    every = number * (number - 1) // 2
    if number < _FEW_NODES or len(pairs.u) < every:
        return
    proper = pairs.u != pairs.v
    keys = pair_keys(number, pairs.u[proper], pairs.v[proper])
    if len(pd.unique(keys)) < every:
        return
    for column, cells in columns.items():
        values = [str(cell).strip() for cell in pd.unique(cells)]
        if (
            len(values) > 1
            and all(map(counts, values))
            and any(float(cell) == 0 for cell in values)
        ):
            raise InputError(
                f"{pairs.text.path}: a row for every pair of nodes, and "
                f"{column_name(pairs.text, column)} is 0 in some of them: set "
                f"data.weights={_setting(pairs.text, column)} "
                "if it says which are edges, or data.weights=ignore if all of them are"
            )
