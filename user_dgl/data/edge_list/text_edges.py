"""Read edges from delimited text: find the layout, the header and the columns, then the rows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from user_dgl.data.attributed_graph import some
from user_dgl.data.edge_list.contents import Guess, guess_ends
from user_dgl.data.edge_list.doubts import (
    check_all_pairs,
    check_first_row,
    check_separators,
    column_name,
    counts,
    refuse_lists,
)
from user_dgl.data.edge_list.layouts import TextOptions, names_ends, refuse_other_layouts
from user_dgl.data.edge_list.names import (
    Ends,
    find_ends,
    is_id,
    is_label,
    is_row_number,
    is_weight,
    weight_rank,
)
from user_dgl.data.edge_list.weights import Pairs, weighed_pairs
from user_dgl.data.reading.cells import is_number
from user_dgl.data.reading.header import has_header
from user_dgl.data.reading.ids import (
    MISSING_MARKS,
    drop_missing,
    index_ids,
    is_text,
    may_respell,
    positions,
    respelled,
    tidy_ids,
    unusable,
)
from user_dgl.data.reading.text import TextFile, open_text
from user_dgl.errors import InputError

# A table of more columns without names is not searched for the ends.
_MOST_COLUMNS = 50
_WEIGHTS_OF_NODES = 4  # see `weight_rank`
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?\b|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}\b")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]*,[0-9]+\s*")


@dataclass(frozen=True)
class Columns:
    """Columns of a text of edges.

    Attributes
    ----------
    ends : tuple of int
        Columns of the two ends.
    weight : int or None
        Column of the weights.
    why : str
        Why these are the ends, if that needs to be said.
    """

    ends: tuple[int, int]
    weight: int | None = None
    why: str = ""


def open_edges(path: Path, options: TextOptions) -> TextFile:
    """Open a text of edges, see `user_dgl.data.reading.text.open_text`."""
    return open_text(
        path,
        of_edges=True,
        separator=options.separator,
        comment=options.comment,
        names_ends=names_ends,
    )


def find_columns(text: TextFile, options: TextOptions) -> tuple[TextFile, Columns]:
    """Find the header and the columns of the ends and of the weight.

    Returns
    -------
    TextFile
        With its header, if it has one.
    Columns

    Raises
    ------
    InputError
        No two columns can hold the ends, or several pairs of columns can.
    """
    if options.layout == "auto":
        refuse_other_layouts(text)
    header = options.header
    if header == "auto":
        by_name = any(isinstance(c, str) and not c.isdigit() for c in options.columns)
        header = by_name or _has_header(text)
    if header:
        text = text.without_header()
    if text.num_columns < 2:
        raise text.error(0, f"one column ({text.sample[0][0]!r}): expected two ids a row")
    if any(len(row) != text.num_columns for row in text.sample):
        text.check_rows()  # the parser does not refuse rows that are too short
    names = list(text.header or ()) if _has_names(text) else _commented_header(text)
    weight = None
    if options.weight_column is not None:
        (weight,) = _places(text, "weights", [options.weight_column])
    if options.columns:
        first, second = _places(text, "columns", options.columns)
        columns = Columns((first, second), _weight_of(text, names, (first, second), options))
    elif names and len(names) == text.num_columns:
        columns = _by_name(text, names, options)
    else:
        columns = _by_content(text)
    if not options.columns:
        refuse_lists(text, columns.ends)
    if columns.weight is None and options.weights == "auto" and not names:
        _refuse_decimal_commas(text, max(columns.ends) + 1)
    if weight is not None and weight in columns.ends:
        raise InputError(
            f"{text.path}: data.weights={options.weights}: this column holds ends of the edges: "
            "name another one"
        )
    weight = columns.weight if weight is None else weight
    if options.weights == "ignore" or weight in columns.ends:
        weight = None
    return text, replace(columns, weight=weight)


def _has_header(text: TextFile) -> bool:
    first, rest = text.sample[0], text.sample[1:]
    if rest and all(len(row) < len(first) for row in rest):
        return False
    found = find_ends(first)
    # A joined file may have its header again among the first rows, also in another order.
    rest = [row for row in rest if _words(row) != _words(first)]
    known = found.known >= 2 and not _looks_like_ids(found, rest)
    if text.short_header:
        # The first row may lack a cell by mistake: then it is no header.
        counting = [row[0].strip() for row in rest[:3]] in (["0", "1", "2"], ["1", "2", "3"])
        return not any(map(is_number, first)) and (known or counting)
    # pandas counts columns without names, and numbers are no header of numbers.
    counted = _words(first) == sorted(str(c) for c in range(len(first)))
    if counted and rest and not any(is_number(cell.strip()) for row in rest for cell in row[:2]):
        return True
    if has_header(first, rest, lambda names: known):
        return _above_numbers(first, rest) or not _names_nodes(first, rest)
    # One known name, above text: `source,friend`.
    recurs = any(cell.strip() in {c.strip() for row in rest for c in row} for cell in first)
    return found.known >= 1 and bool(rest) and not recurs and not _looks_like_ids(found, rest)


def _has_names(text: TextFile) -> bool:
    """Whether the header has names, and not only numbers."""
    return not all(name.isdigit() for name in text.header or ())


def _words(row: list[str]) -> list[str]:
    return sorted(cell.strip().lower() for cell in row)


def _above_numbers(first: list[str], rest: list[list[str]]) -> bool:
    """Whether the first row stands above two columns of numbers and has no number in them."""
    rest = [row for row in rest if len(row) == len(first)]
    numbers = [c for c in range(len(first)) if rest and all(counts(row[c]) for row in rest)]
    return len(numbers) > 1 and not any(is_number(first[c].strip()) for c in numbers)


def _looks_like_ids(found: Ends, rest: list[list[str]]) -> bool:
    """Whether ids below look like the names of a numbered pair: gene1, gene2, gene3, ..."""
    if found.stem is None:
        return False
    stem = found.stem.replace("_", "")
    cells = {cell.strip().lower().replace("_", "") for row in rest for cell in row}
    return any(cell.startswith(stem) and len(cell) <= len(stem) + 6 for cell in cells if cell)


def _names_nodes(first: list[str], rest: list[list[str]]) -> bool:
    # A first row that starts with an empty cell is a header above the index column of a data frame.
    # Any other first row is data if one of its cells occurs again below.
    cells = {cell.strip() for row in rest for cell in row} - {""}
    return bool(first[0].strip()) and any(cell.strip() in cells for cell in first)


def _commented_header(text: TextFile) -> list[str]:
    """Names in a comment right above the first row, if they name ends and fit the columns."""
    above = text.comment_above()
    if above and len(above) == text.num_columns > 2 and find_ends(above).columns is not None:
        return above
    return []


def _places(text: TextFile, key: str, chosen: Sequence[str | int]) -> list[int]:
    """Columns that the user names or counts in ``data.<key>``."""
    header = list(text.header or ())
    shown = ", ".join(header) if header else f"1 to {text.num_columns}"
    places = []
    for name in chosen:
        if isinstance(name, int) or (not header and name.isdigit()):
            places.append(int(name) - 1)
        else:
            places.append(header.index(name) if header.count(name) == 1 else -1)
    good = all(0 <= place < text.num_columns for place in places)
    if len(set(places)) != len(chosen) or not good:
        number = "one" if len(chosen) == 1 else "two"
        raise InputError(
            f"{text.path}: data.{key} names {' and '.join(map(str, chosen))}, the columns are "
            f"{shown}: name {number} of them"
        )
    return places


def _weight_of(
    text: TextFile, names: list[str], ends: tuple[int, int], options: TextOptions
) -> int | None:
    """Find the column of the weights by its name; refuse several with equally plain names."""
    if options.weights != "auto":
        return None
    ranks = {c: weight_rank(name) for c, name in enumerate(names) if c not in ends}
    known = {c: rank for c, rank in ranks.items() if rank is not None}
    plainest = [c for c, rank in known.items() if rank == min(known.values())]
    if len(plainest) > 1 and known[plainest[0]] == _WEIGHTS_OF_NODES:
        return None
    if len(plainest) > 1:
        shown = " and ".join(names[c] for c in plainest)
        raise InputError(
            f"{text.path}: the columns {shown} may hold the weights: set "
            f"data.weights={names[plainest[0]]}, or data.weights=ignore"
        )
    return plainest[0] if plainest else None


def _by_name(text: TextFile, names: list[str], options: TextOptions) -> Columns:
    found = find_ends(names)
    weights = [c for c, name in enumerate(names) if is_weight(name)]
    ends = found.columns
    if found.rivals:
        pairs = [f"[{names[a]}, {names[b]}]" for a, b in found.rivals]
        raise InputError(
            f"{text.path}: the columns {' or '.join(pairs)} may hold the ends of the edges: "
            f"set data.columns={pairs[0]}" + "".join(f" or {pair}" for pair in pairs[1:])
        )
    if ends is None:
        # A column without name is the index column of a data frame, or is empty.
        left = [c for c, name in enumerate(names) if not is_row_number(name) and c not in weights]
        if not any(names):
            left = [0, 1] if text.num_columns == 2 else []
        if len(left) == 2 and _is_node_table(names[left[0]], names[left[1]]):
            raise InputError(
                f"{text.path}: columns {names[left[0]]} and {names[left[1]]}: a table of nodes and "
                "no edges: give it as --features or --labels; if it holds edges, set "
                f"data.columns=[{names[left[0]]}, {names[left[1]]}]"
            )
        if len(left) != 2:
            raise InputError(
                f"{text.path}: which of the columns {', '.join(names)} hold the ends of the "
                f"edges? Set data.columns=[A, B]"
            )
        ends = (left[0], left[1])
    if found.known < 2:
        _check_kinds(text, ends)
    _check_beside(text, names, found, ends)
    return Columns(ends, _weight_of(text, names, ends, options))


def _is_node_table(first: str, second: str) -> bool:
    # `target` is a label, and an end of an edge.
    labels = [is_label(name) and not find_ends([name]).known for name in (first, second)]
    return (is_id(first) and labels[1]) or (is_id(second) and labels[0])


def _check_kinds(text: TextFile, ends: tuple[int, int]) -> None:
    """Refuse two columns with unknown names of which one cannot hold ids."""
    sample = [[row[c] for c in ends] for row in text.sample]
    guess = guess_ends(sample, sample)
    if guess.ends is None:
        names = [column_name(text, c) for c in ends]
        raise InputError(
            f"{text.path}: {' and '.join(names)}: {guess.why}: if they hold the ends of the edges, "
            f"set data.columns=[{', '.join((text.header or ())[c] for c in ends)}]"
        )


def _check_beside(text: TextFile, names: list[str], found: Ends, ends: tuple[int, int]) -> None:
    """Refuse ends such as valid_from that are dates, or beside two texts with the same ids."""
    if not found.beside:
        return
    cells = {c: {row[c].strip() for row in text.sample} for c in found.beside}
    dates = all(_DATE.match(row[c].strip()) for row in text.sample for c in ends)
    others = [
        (a, b)
        for a, b in combinations(found.beside, 2)
        if dates or any(map(_is_word, cells[a] & cells[b]))
    ]
    if others:
        shown = [f"{names[a]}, {names[b]}" for a, b in (ends, others[0])]
        raise InputError(
            f"{text.path}: the columns {shown[0]} or {shown[1]} may hold the ends of the edges: "
            f"set data.columns=[{shown[0]}] or [{shown[1]}]"
        )


def _is_word(cell: str) -> bool:
    return not is_number(cell) and not _DATE.match(cell)


def _by_content(text: TextFile) -> Columns:
    if text.num_columns > _MOST_COLUMNS:
        raise _unclear(text, Guess(None, (), f"{text.num_columns} columns without names"))
    # Two columns need no comparison of their values.
    head, spread = text.spread_sample() if text.num_columns > 2 else (text.sample, text.sample)
    guess = guess_ends(head, spread)
    if guess.ends is None:
        raise _unclear(text, guess)
    ends = guess.ends
    third = max(ends) + 1
    weight = None
    copy = any(all(row[third:][:1] == [row[end]] for row in text.sample) for end in ends)
    if not copy and any(counts(cell) for row in text.sample for cell in row[third:][:1]):
        weight = third
    return Columns(ends, weight, guess.why)


def _refuse_decimal_commas(text: TextFile, column: int) -> None:
    """Refuse a column without name that may hold weights such as 0,5."""
    found = [row[column] for row in text.sample if len(row) > column]
    if found and all(map(_DECIMAL_COMMA.fullmatch, found)):
        raise InputError(
            f"{text.path}: column {column + 1} has decimal commas, such as {found[0].strip()}: "
            "write points if it holds weights, or set data.weights=ignore"
        )


def _unclear(text: TextFile, guess: Guess) -> InputError:
    pairs = [f"[{a + 1}, {b + 1}]" for a, b in guess.rivals]
    if not pairs:
        return InputError(
            f"{text.path}: {guess.why}: which columns hold the ends of the edges? Set "
            "data.columns=[A, B] with two of their numbers, counted from 1; or data.layout=matrix "
            "if it is a square table"
        )
    listed = " or ".join(f"columns {a + 1} and {b + 1}" for a, b in guess.rivals)
    return InputError(
        f"{text.path}: {guess.why}: {listed} may hold the ends of the edges: set data.columns="
        + " or data.columns=".join(pairs)
    )


def read_pairs_of_text(text: TextFile, columns: Columns, options: TextOptions) -> Pairs:
    """Read the edges.

    Raises
    ------
    InputError
        A row is malformed, too many ids are missing, or a weight is not a number of 0 or more.
    """
    path, weight_column = text.path, columns.weight
    used = (*columns.ends, weight_column)
    dtypes = {} if weight_column is None else {weight_column: np.float64}
    read = read_ids(text, columns.ends, dtypes)
    ids = np.concatenate([read[c] for c in columns.ends])
    codes, names = index_ids(ids)
    codes = codes.reshape(2, -1)
    missing = text.missing_ids(names)
    if "" in missing:
        text.check_lengths(len(ids) // 2)
    codes, names, kept = drop_missing(codes, names, missing)
    u, v = codes
    fault = unusable(names, missing)
    if fault:
        text.check_rows()
        raise _missing(text, codes, names, fault, missing)
    notes = text.notes()
    weight = None if weight_column is None else read[weight_column]
    rows = None
    if kept is not None:
        rows = np.flatnonzero(kept)
        weight = None if weight is None else weight[kept]
        marks = [repr(word) for word in missing if word in MISSING_MARKS]
        shown = ", ".join(marks) or "NA, empty"
        notes.append(f"{path.name}: {int((~kept).sum())} rows without an id ({shown}) dropped")
    if not is_text(names) and len(names) > 1 and names[0] == -1 and names[1] >= 0:
        notes.append(
            f"{path.name}: the id -1 is taken as a node: remove its {int((codes == 0).sum())} rows "
            "if it stands for a missing id"
        )
    # Combining accents are CC or CD and another byte.
    accents = is_text(names) and (b"\xcc" in text.body or b"\xcd" in text.body)
    spelling = respelled(ids, names) if accents or not is_text(names) else None
    if spelling:
        notes.append(f"{path.name}: {spelling}")
    if columns.why:
        shown = " and ".join(column_name(text, c) for c in columns.ends)
        notes.append(f"{path.name}: {shown} taken as the ends of the edges: they {columns.why}")
    _check_third(text, columns, read)
    pairs = Pairs(u, v, names, notes, text, columns.ends, rows)
    check_first_row(pairs, options)
    if options.separator == "auto":
        check_separators(pairs)
    ignored = [column_name(text, c) for c in range(text.num_columns) if c not in used]
    if any(cell.strip() for row in text.sample for c, cell in enumerate(row) if c not in used):
        notes.append(f"{path.name}: {some(ignored, 6)} ignored")
    if options.weights == "auto" and weight_column is None and kept is None:
        check_all_pairs(pairs, {c: read[c] for c in range(text.num_columns) if c not in used})
    if weight_column is None or weight is None:
        return pairs
    where = column_name(text, weight_column)
    chosen = _has_names(text) or options.weight_column is not None
    return weighed_pairs(pairs, weight, where, chosen)


def _missing(
    text: TextFile,
    codes: np.ndarray,
    names: np.ndarray,
    fault: tuple[int, str],
    missing: list[str],
) -> InputError:
    code, problem = fault
    row = int(np.argmax((codes == code).any(axis=0)))
    if names[code] in missing:
        without = positions(names, np.array(missing, dtype=object))
        number = int(np.isin(codes, without).any(axis=0).sum())
        if number > 1:
            problem += f"; {number} of {codes.shape[1]} rows lack an id"
    return text.error(row, problem)


def _check_third(text: TextFile, columns: Columns, read: list[np.ndarray]) -> None:
    """Refuse a third column without name that contains only some numbers."""
    third = max(columns.ends) + 1
    unsure = not text.header and columns.weight is None and third < text.num_columns
    # Below the sample, the third column contains some numbers. Then it is probably a column of
    # weights, and its other cells are mistakes.
    if unsure and not columns.why and any(map(counts, pd.unique(read[third]))):
        text.check_rows(numbers=(third,))


def read_ids(text: TextFile, ends: tuple[int, int], dtypes: Mapping[int, type]) -> list[np.ndarray]:
    """Read all columns; the ends are int64 if all ids are whole numbers, else text."""
    sampled = tidy_ids([cells[c] for cells in text.sample for c in ends if len(cells) > c])
    if not is_text(sampled) and not may_respell(text.body):
        columns = text.read(dtypes, infer=ends)
        if all(columns[c].dtype == np.int64 for c in ends):
            return columns
    return text.read(dtypes)
