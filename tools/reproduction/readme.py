"""Short forms of the tables under ``results``, put between marks in the text of its README."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from reproduction import default_page, paper
from reproduction.cells import Cell, current_rows, write_text
from reproduction.plan import (
    BASELINES,
    LARGE,
    LINK,
    LINK_BASELINES,
    METHODS,
    PARTS_METHODS,
    SUPPORTED,
    THIN_SEEDS,
    config_name,
)
from reproduction.rows import LINK_FLOORS, NAMES
from reproduction.summary import markdown, mean_std, paired

_FLOORS = ("features_kmeans", "smooth_kmeans")


def fill(file: Path, results: Path, tables: dict[str, Callable[[], list[Cell]]]) -> None:
    """Replace the text between ``<!-- TABLE -->`` and ``<!-- /TABLE -->`` in a file.

    Parameters
    ----------
    file : Path
    results : Path
        Folder of the CSV files; rows with other settings than the current ones are left out.
    tables : dict of str to callable
        The cells of each table.
    """
    text = file.read_text()
    for name, short in _SHORT.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if start not in text or end not in text:
            raise ValueError(f"{file} lacks the marks {start.strip()} and {end}")
        before, _, rest = text.partition(start)
        cells = tables[name]()
        lines = short(current_rows(cells, results), cells)
        text = before + start + "\n".join(lines).rstrip() + "\n" + end + rest.partition(end)[2]
    write_text(file, text)


def _by_rate(rows: pd.DataFrame, column: str, planned: dict[int, int]) -> list[str]:
    return [mean_std(rows.loc[rows["rate"] == rate, column], n) for rate, n in planned.items()]


def _planned(cells: list[Cell], dataset: str, method: str) -> dict[int, int]:
    """Return the number of seeds of each rate."""
    seeds: dict[int, int] = {}
    for cell in cells:
        if (cell.dataset, cell.method) == (dataset, method):
            seeds[cell.rate] = seeds.get(cell.rate, 0) + 1
    return seeds


def _rows_of(dataset: str, rows: pd.DataFrame, cells: list[Cell]) -> list[list[str]]:
    """Return rows of the floors, then of each method that has finished cells."""
    of_set = rows[rows["dataset"] == dataset]
    body: list[list[str]] = []
    for method in METHODS:
        chosen = of_set[of_set["method"] == method]
        if chosen.empty:
            continue
        planned = _planned(cells, dataset, method)
        if not body:
            body += [[f"`{f}`", *_by_rate(chosen, f"{f}_nmi", planned)] for f in _FLOORS]
        config = config_name(cells[0].table, dataset, method)
        body.append([f"`configs/{config}`", *_by_rate(chosen, "nmi", planned)])
    return body


def _random_noise(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    rates = sorted({cell.rate for cell in cells})
    body = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        printed = paper.printed("random-noise", dataset).dropna(subset="mean")
        best = printed.groupby("rate")["mean"].max()
        body.append(
            [f"**{NAMES[dataset]}**, best of the paper's", *(f"{best[r]:.1f}" for r in rates)]
        )
        body += _rows_of(dataset, rows, cells)
    return markdown(["random flips, NMI", *(f"{rate} %" for rate in rates)], body)


def _meta_attack(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    rates = sorted({cell.rate for cell in cells})
    body = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        of_set = _rows_of(dataset, rows, cells)
        if of_set:
            of_set[0][0] = f"**{NAMES[dataset]}**, {of_set[0][0]}"
        body += of_set
    return markdown(["attacked edges, NMI", *(f"{rate} %" for rate in rates)], body)


def _rivals(table: str) -> Callable:
    """Make a table of floors and methods at the lowest and highest rate; paper in parentheses."""

    def short(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
        rates = [cell.rate for cell in cells]
        columns = [
            (dataset, rate)
            for dataset in dict.fromkeys(cell.dataset for cell in cells)
            if dataset in set(rows["dataset"])
            for rate in (min(rates), max(rates))
        ]
        figures = {
            dataset: paper.printed(table, dataset).set_index(["method", "rate"])["mean"]
            for dataset, _ in columns
        }
        ours = rows[rows["method"] == "USER-DGL"]
        lines = [(f"`{floor}`", f"{floor}_nmi", ours, None) for floor in _FLOORS]
        for method in dict.fromkeys(cell.method for cell in cells):
            name = f"`{method.lower()}`" if method in BASELINES else method
            printed = "USER" if method == "USER-DGL" else method
            lines.append((name, "nmi", rows[rows["method"] == method], printed))
        body = []
        for name, column, of_method, printed in lines:
            line = [name]
            for dataset, rate in columns:
                chosen = of_method[of_method["dataset"] == dataset]
                (entry,) = _by_rate(chosen, column, {rate: len(THIN_SEEDS)})
                line.append(
                    f"{entry} ({figures[dataset][printed, rate]:.1f})"
                    if entry and printed
                    else entry
                )
            body.append(line)
        return markdown(["NMI", *(f"{NAMES[dataset]} {rate} %" for dataset, rate in columns)], body)

    return short


def _supported(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    """Return a table of each encoder without USER and with it."""
    columns = list(dict.fromkeys((cell.dataset, cell.rate) for cell in cells))
    body = []
    for encoder in SUPPORTED:
        line = [f"`model.encoder={encoder}`"]
        for dataset, rate in columns:
            chosen = rows[(rows["dataset"] == dataset) & (rows["rate"] == rate)]
            entries = (
                mean_std(chosen.loc[chosen["method"] == method, "nmi"], 0)
                for method in (encoder, f"{encoder} with USER")
            )
            line.append(" / ".join(filter(None, entries)))
        body.append(line)
    header = [f"{NAMES[dataset]} {rate} %" for dataset, rate in columns]
    return markdown(["NMI without / with USER", *header], body)


def _large(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    body = []
    for dataset, sizes in LARGE.items():
        chosen, planned = rows[rows["dataset"] == dataset], _planned(cells, dataset, "default")
        if chosen.empty:
            continue
        scores = [*(f"{floor}_nmi" for floor in _FLOORS), "nmi"]
        body.append(
            [f"`large/{dataset}.yaml`", *(f"{size:,}" for size in sizes)]
            + [mean_std(chosen[column], *planned.values()) for column in scores]
            + [f"{chosen['seconds'].median():.0f}", f"{chosen['peak_memory_mb'].max():,.0f}"]
        )
    floors = [f"`{floor}`" for floor in _FLOORS]
    return markdown(["config", "nodes", "edges", *floors, "NMI", "s", "peak MB"], body)


def _parts(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    full, parts = PARTS_METHODS
    body = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        nmi = rows[rows["dataset"] == dataset].pivot(index="seed", columns="method", values="nmi")
        if not {full, parts} <= set(nmi):
            continue
        (seeds,) = _planned(cells, dataset, full).values()
        scores = [mean_std(nmi[method], seeds) for method in PARTS_METHODS]
        body.append([f"`large/{dataset}_gcn.yaml`", *scores, paired(nmi[parts] - nmi[full], seeds)])
    return markdown(["NMI", *PARTS_METHODS, "difference, same seeds"], body)


def _link(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    """Return a table of AUC / AP; the page of the table has the standard deviations too."""
    body = []
    for dataset in LINK:
        of_set = rows[rows["dataset"] == dataset]
        planned = _planned(cells, dataset, "USER-DGL")
        printed = [
            paper.printed(f"link-{metric}", dataset).set_index(["method", "rate"])["mean"]
            for metric in ("auc", "ap")
        ]
        user = (
            " / ".join(f"{figures['USER', rate]:.1f}" for figures in printed) for rate in planned
        )
        body.append([f"**{NAMES[dataset]}**, the paper's USER", *user])
        for method, score, name in (
            ("USER-DGL", "smoothed_cosine", LINK_FLOORS["smoothed_cosine"]),
            ("USER-DGL", "prepared_smoothed_cosine", LINK_FLOORS["prepared_smoothed_cosine"]),
            ("GAE", "dot", "`configs/link/gae.yaml`"),
            *((n, "dot", f"`model.kind={n.lower()}`") for n in LINK_BASELINES),
            ("USER-DGL", "dot", f"`configs/link/{dataset}.yaml`, `links.score=dot`"),
            ("USER-DGL", "learned", f"`configs/link/{dataset}.yaml`"),
        ):
            chosen = of_set[of_set["method"] == method]
            if not chosen.empty:
                entries = zip(
                    *(_means(chosen, f"{score}_{m}", planned) for m in ("auc", "ap")), strict=True
                )
                body.append([name, *(" / ".join(filter(None, entry)) for entry in entries)])
    rates = sorted({cell.rate for cell in cells})
    return markdown(["AUC / AP", *(f"{rate} %" for rate in rates)], body)


def _means(rows: pd.DataFrame, column: str, planned: dict[int, int]) -> list[str]:
    """Return the mean at each rate, with the number of seeds where some are missing."""
    return [
        f"{values.mean():.1f}" + (f" [{len(values)}]" if len(values) < n else "")
        if len(values := rows.loc[rows["rate"] == rate, column].dropna())
        else ""
        for rate, n in planned.items()
    ]


_SHORT = {
    "random-noise": _random_noise,
    "meta-attack": _meta_attack,
    "baselines": _rivals("random-noise"),
    "meta-attack-own": _rivals("meta-attack"),
    "supported": _supported,
    "default": default_page.short,
    "large": _large,
    "parts": _parts,
    "link": _link,
}
