"""Which rows of the tables are not by the current settings and code."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from reproduction.cells import KEY, Cell, read_rows, survey


def stale_lines(
    tables: dict[str, Callable[[], list[Cell]]], results: Path, each_cell: bool = False
) -> list[str]:
    """Return a line for each table that has stale rows: how many, and of which versions.

    A row is stale if it was made with other settings than the current ones, by other code, or
    before rows named their code, or if the table has no such cell any more.

    Parameters
    ----------
    tables : dict of str to callable
        The cells of each table.
    results : Path
    each_cell : bool
        Whether each stale cell gets a line below the one of its table.
    """
    lines = []
    for table, make in tables.items():
        rows = read_rows(results, table)
        version = {tuple(row[:-1]): row[-1] for row in rows[[*KEY, "user_dgl"]].itertuples(False)}
        cells = {cell.key: cell for cell in make()}
        state = survey(
            [cell for key, cell in cells.items() if key in version], results, read="unread"
        )
        groups = {
            "older than the code": [cell.key for cell in state.stale],
            "of other settings": [cell.key for cell in (*state.changed, *state.unusable)],
            "of no cell": [key for key in version if key not in cells],
        }
        found = {what: keys for what, keys in groups.items() if keys}
        if not found:
            continue
        texts = []
        for what, keys in found.items():
            counts = sorted(Counter(str(version[key]) for key in keys).items())
            texts.append(f"{len(keys)} {what} ({', '.join(f'{n} of {v}' for v, n in counts)})")
        lines.append(f"{table}: of {len(rows)} rows {', '.join(texts)}")
        if each_cell:
            for what, keys in found.items():
                lines += [f"  {what}: {_text(key)}, {version[key]}" for key in keys]
    return lines


def _text(key: tuple) -> str:
    _, dataset, method, _, rate, seed = key
    return f"{dataset} {method} {rate} % seed {seed}"
