"""Numbers over seeds as text, and Markdown tables of them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

# Seeds that a comparison needs: ten, or five where a run takes over two minutes.
ENOUGH, _ENOUGH_OF_SLOW, _SLOW_SECONDS = 10, 5, 120
STAR = "*"

LEGEND = (
    "Percent, mean ± sample standard deviation over seeds. In brackets: the number of seeds, where "
    "some are not finished or where they are too few to compare."
)
PAIRED_LEGEND = (
    "Difference in NMI on the same seeds, mean ± half the 95 % interval (Student t over seeds); "
    "above or below: the interval does not contain 0; equal: it does."
)
_FOOT = (
    f"\\{STAR} Too few seeds to compare: fewer than ten, or than five where a run takes over two "
    "minutes."
)


def enough_seeds(rows: pd.DataFrame) -> int:
    """Number of seeds that the entry of these rows needs.

    Parameters
    ----------
    rows : DataFrame
        Rows of one data set and rate that the entry compares, as `cells.COLUMNS`. The slowest
        method decides, by its fastest run.
    """
    seconds = rows["wall_seconds"].astype(float)
    if "seconds" in rows:
        seconds = seconds.fillna(rows["seconds"].astype(float))
    if not (seconds > _SLOW_SECONDS).any():  # grouping takes most of the time of a page
        return ENOUGH
    # The fastest run says best how long one takes. The others may have shared the machine.
    fastest = seconds.groupby(rows["method"]).min()
    return _ENOUGH_OF_SLOW if (fastest > _SLOW_SECONDS).any() else ENOUGH


def with_foot(lines: Sequence[str]) -> list[str]:
    """Return the lines of a page, and a line that explains the star if a table has one."""
    starred = any(STAR in line.replace("**", "") for line in lines if line.startswith("|"))
    return [*lines, *[""] * bool(lines[-1]), _FOOT, ""] if starred else list(lines)


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table and an empty line.

    >>> markdown(["a", "b"], [["1", "2"]])
    ['| a | b |', '|---|---|', '| 1 | 2 |', '']
    """
    rows = [header, ["---"] * len(header), *body]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[1] = "|" + "---|" * len(header)
    return [*lines, ""]


def mean_std(values: Sequence[float], planned: int, enough: int, spread: bool = True) -> str:
    """Return ``mean ± std``, with a star and the number of seeds where they are too few.

    Parameters
    ----------
    values : sequence of float
        One for each seed; NaN where there is none.
    planned : int
        Number of seeds of the table. The number of values is shown where it is below.
    enough : int
        Number of seeds that a comparison needs, see `enough_seeds`.
    spread : bool
        Whether to show the standard deviation.

    >>> mean_std([1.0, 3.0], 2, 2), mean_std([1.0, 3.0], 2, 10), mean_std([], 3, 10)
    ('2.0 ± 1.4', '2.0 ± 1.4* [2]', '')
    """
    values = _known(values)
    if not len(values):
        return ""
    text = format(values.mean(), "z.1f")
    if len(values) > 1 and spread:
        text += f" ± {format(values.std(ddof=1), 'z.1f')}"
    return text + _count(len(values), planned, enough)


def _known(values: Sequence[float]) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    return values[~np.isnan(values)]


def _count(num_seeds: int, planned: int, enough: int) -> str:
    """What follows an entry that has too few seeds."""
    star = STAR if num_seeds < enough else ""
    return star + (f" [{num_seeds}]" if num_seeds < max(planned, enough) else "")


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half width of its 95 % interval (Student's t; nan for one value)."""
    differences = np.asarray(differences, dtype=float)
    n = len(differences)
    if n < 2:
        return float(differences.mean()), float("nan")
    half = stats.t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    return float(differences.mean()), float(half)


def paired(differences: Sequence[float], planned: int, enough: int) -> str:
    """Return a mean difference, its interval, and "above", "equal" or "below" 0.

    Parameters and star as in `mean_std`.

    >>> paired([1.0, 2.0, 3.0], 3, 3), paired([2.0, 3.0, 4.0], 3, 10), paired([1.0], 1, 1)
    ('+2.0 ± 2.5 equal', '+3.0 ± 2.5 above* [3]', '+1.0')
    """
    differences = _known(differences)
    if not len(differences):
        return ""
    mean, half = interval(differences)
    text = f"{mean:+z.1f}"
    if len(differences) > 1:
        verdict = "equal" if abs(mean) <= half else "above" if mean > 0 else "below"
        text += f" ± {half:.1f} {verdict}"
    return text + _count(len(differences), planned, enough)
