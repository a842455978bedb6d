"""Numbers over seeds as text, and Markdown tables of them."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

LEGEND = (
    "Percent, mean ± sample standard deviation over seeds. In brackets: the number of seeds, where "
    "some are not finished."
)
PAIRED_LEGEND = (
    "Difference in NMI on the same seeds, mean ± half the 95 % interval (Student t over seeds); "
    "above or below: the interval does not contain 0; equal: it does."
)


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table and an empty line.

    >>> markdown(["a", "b"], [["1", "2"]])
    ['| a | b |', '|---|---|', '| 1 | 2 |', '']
    """
    rows = [header, ["---"] * len(header), *body]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[1] = "|" + "---|" * len(header)
    return [*lines, ""]


def mean_std(values: Sequence[float], planned: int, form: str = "z.1f") -> str:
    """Return ``mean ± std``, with the number of values in brackets where it is below ``planned``.

    >>> mean_std([1.0, 3.0], 2), mean_std([1.0, 3.0], 10), mean_std([2.0], 1), mean_std([], 3)
    ('2.0 ± 1.4', '2.0 ± 1.4 [2]', '2.0', '')
    """
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    if not len(values):
        return ""
    text = format(values.mean(), form)
    if len(values) > 1:
        text += f" ± {format(values.std(ddof=1), form)}"
    return text + (f" [{len(values)}]" if len(values) < planned else "")


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half width of its 95 % interval (Student's t; nan for one value)."""
    differences = np.asarray(differences, dtype=float)
    n = len(differences)
    if n < 2:
        return float(differences.mean()), float("nan")
    half = stats.t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    return float(differences.mean()), float(half)


def paired(differences: Sequence[float], planned: int) -> str:
    """Return a mean difference, its interval, and "above", "equal" or "below" 0.

    >>> paired([1.0, 2.0, 3.0], 3), paired([2.0, 3.0, 4.0], 10), paired([1.0], 1)
    ('+2.0 ± 2.5 equal', '+3.0 ± 2.5 above [3]', '+1.0')
    """
    differences = np.asarray(differences, dtype=float)
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        return ""
    mean, half = interval(differences)
    text = f"{mean:+z.1f}"
    if len(differences) > 1:
        verdict = "equal" if abs(mean) <= half else "above" if mean > 0 else "below"
        text += f" ± {half:.1f} {verdict}"
    return text + (f" [{len(differences)}]" if len(differences) < planned else "")
