"""Short forms of the tables under ``results``, put between marks in the text of two READMEs."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from reproduction import default_page, paper
from reproduction.cells import Cell
from reproduction.files import write_text
from reproduction.plan import (
    BASELINES,
    LARGE,
    LINK,
    LINK_BASELINES,
    METHODS,
    OPTIONAL,
    PARTS_METHODS,
    PREPARED,
    SUPPORTED,
    THIN_SEEDS,
    config_name,
)
from reproduction.rows import (
    FLOORS,
    LINK_FLOORS,
    NAMES,
    by_rate,
    by_seed,
    differences,
    link_differences,
    paired_by_rate,
    without_equal,
)
from reproduction.summary import markdown, with_foot

_PAIRED = "Differences on the same seeds, with half the 95 % interval:"


Tables = dict[str, tuple[pd.DataFrame, list[Cell]]]


def fill(file: Path, tables: Tables) -> None:
    """Replace the text between ``<!-- TABLE -->`` and ``<!-- /TABLE -->`` in the page of results.

    Parameters
    ----------
    file : Path
    tables : dict of str to (DataFrame, list of Cell)
        Of each table the rows of finished cells with the current settings, and all cells.
    """
    text = file.read_text()
    for name, short in _SHORT.items():
        if f"<!-- {name} -->\n" not in text or f"<!-- /{name} -->" not in text:
            raise ValueError(f"{file} lacks the marks <!-- {name} --> and <!-- /{name} -->")
        text = _filled(text, name, short(*tables[name]))
    write_text(file, text)


def fill_front(file: Path, tables: Tables) -> None:
    """Replace the text between ``<!-- results -->`` and its end in the front page, if it has any.

    Parameters as for `fill`.
    """
    text = file.read_text()
    if "<!-- results -->\n" in text:
        write_text(file, _filled(text, "results", default_page.front(*tables["default"])))


def _filled(text: str, name: str, lines: list[str]) -> str:
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, _, rest = text.partition(start)
    table = "\n".join(with_foot(lines)).rstrip()
    return f"{before}{start}{table}\n{end}{rest.partition(end)[2]}"


def _planned(cells: list[Cell], dataset: str, method: str) -> dict[int, int]:
    """Return the number of seeds of each rate."""
    seeds: dict[int, int] = {}
    for cell in cells:
        if (cell.dataset, cell.method) == (dataset, method):
            seeds[cell.rate] = seeds.get(cell.rate, 0) + 1
    return seeds


def _rows_of(
    dataset: str, rows: pd.DataFrame, cells: list[Cell]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return rows of the floors and of each method with finished cells, and their differences.

    The floors are those of the method with most rows. The floor of a difference is the one of the
    highest mean NMI at its rate, of the method itself.
    """
    of_set = rows[rows["dataset"] == dataset]
    gains: list[list[str]] = []
    body = _floors_of(of_set, _planned(cells, dataset, "default"))
    for method in METHODS:
        chosen = of_set[of_set["method"] == method]
        if chosen.empty:
            continue
        planned = _planned(cells, dataset, method)
        known = [floor for floor in FLOORS if chosen[f"{floor}_nmi"].notna().any()]
        name = f"`configs/{config_name(cells[0].table, dataset, method)}`"
        body.append([name, *by_rate(chosen, "nmi", planned)])
        gain = [name]
        for rate, seeds in planned.items():
            at_rate = chosen[chosen["rate"] == rate]
            means = at_rate[[f"{floor}_nmi" for floor in known]].mean().dropna()
            if means.empty:
                gain.append("")
                continue
            best = means.idxmax().removesuffix("_nmi")
            gain += paired_by_rate(at_rate, differences(at_rate, best), {rate: seeds})
        gains.append(gain)
    return body, gains


def _floors_of(of_set: pd.DataFrame, planned: dict[int, int]) -> list[list[str]]:
    """Rows of the floors of the method with most rows, of several the default."""
    if of_set.empty:
        return []
    counts = of_set["method"].value_counts().astype(float)
    counts["default"] = counts.get("default", 0) + 0.5
    chosen = of_set[of_set["method"] == counts.idxmax()]
    known = [floor for floor in FLOORS if chosen[f"{floor}_nmi"].notna().any()]
    return [[_code(FLOORS[floor]), *by_rate(chosen, f"{floor}_nmi", planned)] for floor in known]


def _code(floor: str) -> str:
    """Name of a floor, with the function in code font."""
    function, comma, features = floor.partition(",")
    return f"`{function}`{comma}{features}"


def _with_differences(
    first: str, rates: list[int], parts: list[tuple[list[list[str]], list[list[str]]]]
) -> list[str]:
    """Return a table of means and one of the differences to the best floor."""
    columns = [f"{rate} %" for rate in rates]
    lines = markdown([first, *columns], [line for body, _ in parts for line in body])
    gains = [line for _, of_set in parts for line in of_set]
    if not gains:
        return lines
    return [*lines, _PAIRED, "", *markdown(["NMI − NMI of the best floor", *columns], gains)]


def _random_noise(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    rates = sorted({cell.rate for cell in cells})
    parts = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        printed = paper.printed("random-noise", dataset).dropna(subset="mean")
        best = printed.groupby("rate")["mean"].max()
        head = [f"**{NAMES[dataset]}**, best of the paper's", *(f"{best[r]:.1f}" for r in rates)]
        body, gains = _rows_of(dataset, rows, cells)
        parts.append(([head, *body], _titled(dataset, gains)))
    return _with_differences("random flips, NMI", rates, parts)


def _meta_attack(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    rates = sorted({cell.rate for cell in cells})
    parts = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        body, gains = _rows_of(dataset, rows, cells)
        parts.append((_titled(dataset, body), _titled(dataset, gains)))
    return _with_differences("attacked edges, NMI", rates, parts)


def _titled(dataset: str, body: list[list[str]]) -> list[list[str]]:
    """Put the name of the data set in front of its first row."""
    if not body:
        return body
    (name, *entries), *others = body
    return [[f"**{NAMES[dataset]}**, {name}", *entries], *others]


def _rivals(table: str) -> Callable:
    """Make a table of floors and methods at the lowest and highest rate; paper in parentheses."""

    def short(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
        rates = [cell.rate for cell in cells]
        ends = {rate: len(THIN_SEEDS) for rate in (min(rates), max(rates))}
        datasets = list(dict.fromkeys(cell.dataset for cell in cells))
        figures = {
            name: paper.printed(table, name).set_index(["method", "rate"])["mean"]
            for name in datasets
        }
        of_set = {name: without_equal(rows[rows["dataset"] == name]) for name in datasets}
        shown = {method for each in of_set.values() for method in each["method"]}
        body, gains = [], []
        for floor, name in FLOORS.items():
            line = [_code(name)]
            for each in of_set.values():
                line += by_rate(each[each["method"] == "default"], f"{floor}_nmi", ends)
            body.append(line)
        for method in dict.fromkeys(cell.method for cell in cells):
            if method in OPTIONAL and method not in shown:
                continue
            line, gain = [_label(method)], [f"default − {_label(method)}"]
            printed = "USER" if method == "default" else method
            for name, each in of_set.items():
                chosen, ours = (each[each["method"] == m] for m in (method, "default"))
                for rate, entry in zip(ends, by_rate(chosen, "nmi", ends), strict=True):
                    known = entry and (printed, rate) in figures[name]
                    line.append(f"{entry} ({figures[name][printed, rate]:.1f})" if known else entry)
                difference = by_seed(ours, "nmi") - by_seed(chosen, "nmi")
                gain += paired_by_rate(pd.concat([ours, chosen]), difference, ends)
            body.append(line)
            if method != "default":
                gains.append(gain)
        header = ["NMI", *(f"{NAMES[name]} {rate} %" for name in datasets for rate in ends)]
        return [*markdown(header, body), _PAIRED, "", *markdown(header, gains)]

    return short


def _label(method: str) -> str:
    """Name of a method in the short table of baselines."""
    name = method.removesuffix(PREPARED)
    if name in BASELINES:
        return f"`{name.lower()}`{method.removeprefix(name)}"
    return f"`configs/{METHODS[method]}`"


def _supported(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    """Return a table of each encoder without USER and with it."""
    columns = list(dict.fromkeys((cell.dataset, cell.rate) for cell in cells))
    body, gains = [], []
    for encoder in SUPPORTED:
        line, gain = [f"`model.encoder={encoder}`"], [f"`model.encoder={encoder}`"]
        for dataset, rate in columns:
            chosen = rows[rows["dataset"] == dataset]
            planned = {rate: _planned(cells, dataset, encoder)[rate]}
            alone, user = (
                chosen[chosen["method"] == method] for method in (encoder, f"{encoder} with USER")
            )
            entries = [*by_rate(alone, "nmi", planned), *by_rate(user, "nmi", planned)]
            line.append(" / ".join(filter(None, entries)))
            difference = by_seed(user, "nmi") - by_seed(alone, "nmi")
            gain += paired_by_rate(pd.concat([alone, user]), difference, planned)
        body.append(line)
        gains.append(gain)
    header = [f"{NAMES[dataset]} {rate} %" for dataset, rate in columns]
    lines = markdown(["NMI without / with USER", *header], body)
    return [*lines, _PAIRED, "", *markdown(["with − without USER", *header], gains)]


def _large(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    body = []
    known = [floor for floor in FLOORS if rows[f"{floor}_nmi"].notna().any()]
    for dataset, sizes in LARGE.items():
        chosen, planned = rows[rows["dataset"] == dataset], _planned(cells, dataset, "default")
        if chosen.empty:
            continue
        scores = [*(f"{floor}_nmi" for floor in known), "nmi"]
        body.append(
            [f"`large/{dataset}.yaml`", *(f"{size:,}" for size in sizes)]
            + [entry for column in scores for entry in by_rate(chosen, column, planned)]
            + [
                entry
                for floor in known
                for entry in paired_by_rate(chosen, differences(chosen, floor), planned)
            ]
            + [f"{chosen['seconds'].median():.0f}", f"{chosen['peak_memory_mb'].max():,.0f}"]
        )
    floors = [_code(FLOORS[floor]) for floor in known]
    gains = [f"NMI − {floor}" for floor in floors]
    return markdown(["config", "nodes", "edges", *floors, "NMI", *gains, "s", "peak MB"], body)


def _parts(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    body = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        of_set = rows[rows["dataset"] == dataset]
        full, parts = (of_set[of_set["method"] == method] for method in PARTS_METHODS)
        if full.empty or parts.empty:
            continue
        planned = _planned(cells, dataset, next(iter(PARTS_METHODS)))
        scores = [*by_rate(full, "nmi", planned), *by_rate(parts, "nmi", planned)]
        difference = by_seed(parts, "nmi") - by_seed(full, "nmi")
        gain = paired_by_rate(of_set, difference, planned)
        body.append([f"`large/{dataset}_gcn.yaml`", *scores, *gain])
    return markdown(["NMI", *PARTS_METHODS, "difference, same seeds"], body)


def _link(rows: pd.DataFrame, cells: list[Cell]) -> list[str]:
    """Return a table of AUC / AP; the page of the table has the standard deviations too."""
    body, gains = [], []
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
                entries = (by_rate(chosen, f"{score}_{m}", planned, False) for m in ("auc", "ap"))
                body.append([name, *map(_joined, *entries)])
        auc, ap = (link_differences(of_set, metric, planned) for metric in ("auc", "ap"))
        gains += _titled(
            dataset,
            [
                [name, *map(_joined, one, other)]
                for (name, *one), (_, *other) in zip(auc, ap, strict=True)
            ],
        )
    columns = [f"{rate} %" for rate in sorted({cell.rate for cell in cells})]
    lines = markdown(["AUC / AP", *columns], body)
    return [*lines, _PAIRED, "", *markdown(["AUC / AP", *columns], gains)] if gains else lines


def _joined(auc: str, ap: str) -> str:
    return " / ".join(filter(None, (auc, ap)))


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
