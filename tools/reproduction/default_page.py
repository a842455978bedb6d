"""Page and short forms of the table of the default config, its floors and other tools."""

from collections.abc import Iterator, Sequence

import pandas as pd

from reproduction import paper
from reproduction.cells import KEY, Cell
from reproduction.pyagc_models import MODELS as PYAGC
from reproduction.rivals import RIVALS
from reproduction.rows import FLOORS, NAMES, counts, in_plan_order
from reproduction.summary import (
    LEGEND,
    PAIRED_LEGEND,
    STAR,
    enough_seeds,
    markdown,
    mean_std,
    paired,
)

METRICS = ("nmi", "ari", "ami")
# The best floor and the best rival of the short form have the highest mean of this score.
BEST_BY = "nmi"
_OURS = "default"
_OTHERS = [*PYAGC, *RIVALS]
_COST = (
    "Seconds are wall seconds of the whole process, median: start of Python, reading, clustering. "
    "Peak memory (MB) is the highest one of the process. A training runs without floors. Other "
    "tools read a graph that was prepared."
)


def page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    """The page below the head of `tables.report`.

    Parameters
    ----------
    rows : DataFrame
        Finished cells, as `cells.COLUMNS`.
    plan : DataFrame
        Keys of all cells of the table.

    Returns
    -------
    list of str
        Lines.
    """
    lines = [
        LEGEND + " " + PAIRED_LEGEND.replace("NMI", "the score") + " " + _COST,
        "",
        "CCA-SSG, NS4GC and M-S2CAG are those of PyAGC and see features and edges, with the "
        "settings of its benchmark for Cora, Photo and Physics and its default settings elsewhere. "
        "Leiden, Louvain, Infomap and spectral clustering see the edges alone. Leiden at K, "
        "spectral clustering and PyAGC are told the number of clusters, as the default and the "
        "floors are; "
        "the others find their own number. No cluster of Leiden, Louvain or Infomap joins two "
        "components. Where there are more components than K, Leiden at K has K clusters in the "
        "largest one, and each other component is a cluster more. Single nodes raise NMI; AMI and "
        "ARI correct for chance.",
        "",
        *_verdicts(rows, plan),
        *_steps(rows, plan),
        *_choices(rows, plan),
    ]
    for dataset, rate, seeds in _graphs(plan):
        scores = _scores(rows, dataset, rate)
        if scores.empty:
            continue
        methods = _methods(scores)
        body = [
            [
                _name(method),
                *(mean_std(of[m], seeds, enough_seeds(of)) for m in METRICS),
                _range(of["num_clusters_found"]),
                _number(of["wall_seconds"].median(), ".1f"),
                _number(of["peak_memory_mb"].max(), ",.0f"),
            ]
            for method, of in ((m, scores[scores["method"] == m]) for m in methods)
        ]
        header = ["method", *(m.upper() for m in METRICS), "clusters", "seconds", "peak MB"]
        lines += [f"## {_title(dataset, rate)}", "", *markdown(header, body)]
        body = [
            [f"{_name(_OURS)} − {_name(method)}"]
            + [_paired(scores, method, m, seeds) for m in METRICS]
            for method in methods
            if method != _OURS
        ]
        body = [line for line in body if any(line[1:])]
        if body:
            best = _best(scores, FLOORS)
            floor = [f"Best floor by {BEST_BY.upper()}: {_name(best)}.", ""] if best else []
            lines += [*floor, *markdown(["difference", *(m.upper() for m in METRICS)], body)]
    return lines


def _verdicts(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    """Lines that count on how many graphs the default is above or below its best floor.

    Graphs with too few seeds do not count.
    """
    counts: dict[str, dict[str, int]] = {}
    for dataset, rate, seeds in _graphs(plan):
        scores = _scores(rows, dataset, rate)
        best = _best(scores, FLOORS)
        text = _paired(scores, best, BEST_BY, seeds) if best else ""
        for verdict in ("above", "equal", "below"):
            if verdict in text and STAR not in text:
                of = counts.setdefault(f"{rate} % flips" if rate else "clean", {})
                of[verdict] = of.get(verdict, 0) + 1
    return [
        f"Default beside its best floor, by {BEST_BY.upper()}, {kind}: "
        + ", ".join(f"{of.get(v, 0)} graphs {v}" for v in ("above", "equal", "below"))
        + ", of those with enough seeds.\n"
        for kind, of in counts.items()
    ]


def _steps(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    """The table of what each step of the default adds to the NMI."""
    body = []
    for dataset, rate, seeds in _graphs(plan):
        ours = rows[
            (rows["dataset"] == dataset) & (rows["rate"] == rate) & (rows["method"] == _OURS)
        ]
        if ours[["nmi_kmeans", "nmi_code", "nmi_head"]].notna().all(axis=None) and len(ours):
            enough = enough_seeds(ours)
            body.append(
                [
                    _title(dataset, rate),
                    mean_std(ours["nmi_kmeans"], seeds, enough),
                    paired(ours["nmi_code"] - ours["nmi_kmeans"], seeds, enough),
                    paired(ours["nmi_head"] - ours["nmi_code"], seeds, enough),
                ]
            )
    if not body:
        return []
    header = ["graph", "k-means of the view", "nodes moved − k-means", "trained head − nodes moved"]
    about = (
        "The default takes the clusters of its view after nodes were moved to save bits "
        "(`labels: code`); `labels: kmeans` and `labels: head` take the two others of this table. "
        "NMI. Without features there is one clustering of the graph, and the first two are equal."
    )
    return ["## What each step adds", "", about, "", *markdown(header, body)]


# Choices that the default makes: column of the rows, and its name on the page.
_CHOICES = {
    "view": "view",
    "critic_power": "power of the critic's weights",
    "labels_from": "labels",
    "num_clusters_found": "clusters",
}


def _choices(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    """The table of how often each outcome of a choice was taken."""
    body = []
    for dataset, rate, _ in _graphs(plan):
        ours = rows[
            (rows["dataset"] == dataset) & (rows["rate"] == rate) & (rows["method"] == _OURS)
        ]
        if len(ours):
            taken = [counts(ours[column]) for column in _CHOICES]
            body.append([_title(dataset, rate), str(len(ours)), *taken])
    if not body:
        return []
    about = (
        "How often the default took each outcome, by number of seeds. Rows of versions before the "
        "columns have none."
    )
    header = ["graph", "seeds", *_CHOICES.values()]
    return ["## What was chosen", "", about, "", *markdown(header, body)]


def short(rows: pd.DataFrame, cells: Sequence[Cell]) -> list[str]:
    """The table of ``results/README.md``: the default, the best floor, the best rival."""
    plan = pd.DataFrame([cell.key for cell in cells], columns=KEY)
    body = []
    for dataset, rate, seeds in _graphs(plan):
        scores = _scores(rows, dataset, rate)
        ours = scores[scores["method"] == _OURS]
        if ours.empty:
            continue
        enough = enough_seeds(ours)
        line = [_title(dataset, rate), *(mean_std(ours[m], seeds, enough) for m in ("nmi", "ari"))]
        for group in (FLOORS, _OTHERS):
            best = _best(scores, group)
            if best is None:
                line += ["", ""]
                continue
            of = scores[scores["method"] == best]
            line += [
                f"{_name(best)}: {mean_std(of[BEST_BY], seeds, enough_seeds(of))}",
                _paired(scores, best, BEST_BY, seeds),
            ]
        body.append(line)
    header = ["graph", "default, NMI", "ARI", "best floor, NMI", "default − it"]
    return markdown([*header, "best rival, NMI", "default − it"], body)


def front(rows: pd.DataFrame, cells: Sequence[Cell]) -> list[str]:
    """The table of the front page: for each graph the default and the best of all others."""
    plan = pd.DataFrame([cell.key for cell in cells], columns=KEY)
    body = []
    for dataset, rate, seeds in _graphs(plan):
        scores = _scores(rows, dataset, rate)
        ours, best = scores[scores["method"] == _OURS], _best(scores, [*FLOORS, *_OTHERS])
        if ours.empty or best is None:
            continue
        theirs = scores[scores["method"] == best]
        printed = paper.printed("random-noise", dataset)
        of_paper = printed[printed["rate"] == rate]["mean"].max()
        body.append(
            [
                _title(dataset, rate),
                _number(of_paper, ".1f"),
                f"{_name(best)}: {mean_std(theirs[BEST_BY], seeds, enough_seeds(theirs))}",
                mean_std(ours[BEST_BY], seeds, enough_seeds(ours)),
                _paired(scores, best, BEST_BY, seeds),
            ]
        )
    others = ["best of the paper's methods", "best floor or other tool"]
    return markdown(["NMI", *others, "`configs/default.yaml`", "default − it"], body)


def _graphs(plan: pd.DataFrame) -> Iterator[tuple[str, int, int]]:
    """Each graph of the plan: data set, rate, number of seeds."""
    for (dataset, rate), of in plan.groupby(["dataset", "rate"], sort=False):
        yield dataset, int(rate), of["seed"].nunique()


def _scores(rows: pd.DataFrame, dataset: str, rate: int) -> pd.DataFrame:
    """Rows of one graph, with a row for each floor and seed in place of the row of all floors."""
    chosen = rows[(rows["dataset"] == dataset) & (rows["rate"] == rate)]
    columns = ["method", "seed", *METRICS, "num_clusters_found", "wall_seconds", "peak_memory_mb"]
    parts = [chosen.loc[chosen["method"] != "floors", columns]]
    floors = chosen[chosen["method"] == "floors"]
    for floor in FLOORS if len(floors) else ():
        scores = {m: floors[f"{floor}_{m}"] for m in METRICS}
        parts.append(pd.DataFrame({"method": floor, "seed": floors["seed"], **scores}))
    parts = [part for part in parts if len(part)]
    found = pd.concat(parts, ignore_index=True) if parts else chosen[columns]
    # Floors have no number of clusters, and they may be all that is finished of a graph.
    return found.reindex(columns=columns).astype(dict.fromkeys(columns[2:], float))


def _methods(scores: pd.DataFrame) -> list[str]:
    order = pd.DataFrame({"method": [_OURS, *FLOORS, *_OTHERS]})
    return in_plan_order(order, "method", scores["method"])


def _best(scores: pd.DataFrame, group) -> str | None:
    """Return the method of a group with the highest mean score."""
    means = scores[scores["method"].isin(list(group))].groupby("method", sort=False)[BEST_BY].mean()
    means = means.dropna()
    return None if means.empty else str(means.idxmax())


def _paired(scores: pd.DataFrame, method: str, metric: str, seeds: int) -> str:
    """Return the mean difference of the default to a method, on the seeds that both have."""
    ours, theirs = (scores[scores["method"] == name] for name in (_OURS, method))
    difference = ours.set_index("seed")[metric] - theirs.set_index("seed")[metric]
    return paired(difference, seeds, enough_seeds(pd.concat([ours, theirs])))


def _name(method: str) -> str:
    return RIVALS[method].name if method in RIVALS else FLOORS.get(method, method)


def _title(dataset: str, rate: int) -> str:
    return f"{NAMES.get(dataset, dataset)}, {rate} %" if rate else NAMES.get(dataset, dataset)


def _range(values: pd.Series) -> str:
    values = values.dropna().astype(int)
    if values.empty:
        return ""
    low, high = values.min(), values.max()
    return str(low) if low == high else f"{low} to {high}"


def _number(value: float, form: str) -> str:
    return "" if pd.isna(value) else format(value, form)
