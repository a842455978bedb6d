"""Markdown tables of finished cells."""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from reproduction import default_page, paper
from reproduction.cells import KEY, Cell
from reproduction.defence import CLEANED, NETWORKS
from reproduction.plan import OPTIONAL
from reproduction.rows import (
    FLOORS,
    LINK_FLOORS,
    NAMES,
    RIVALS_NOTE,
    ahead_of,
    all_of_paper,
    always_shown,
    beside_paper,
    by_rate,
    by_seed,
    denoising_rows,
    differences,
    floor_rows,
    in_plan_order,
    link_differences,
    link_rows,
    method_rows,
    num_planned,
    of_paper,
    paired_by_rate,
    paired_rows,
    paper_rows,
    without_equal,
)
from reproduction.summary import LEGEND, PAIRED_LEGEND, markdown, with_foot


def report(table: str, rows: pd.DataFrame, cells: Sequence[Cell]) -> str:
    """The Markdown page of a table.

    Parameters
    ----------
    table : str
    rows : DataFrame
        Finished cells of current settings, as `cells.COLUMNS`.
    cells : sequence of Cell
        All cells of the table: they give the order and the seeds that a full entry has.

    Returns
    -------
    str
    """
    plan = pd.DataFrame([cell.key for cell in cells], columns=KEY)
    finished = set(rows[KEY].itertuples(index=False, name=None))
    missing = [c for c in cells if c.key not in finished and c.method not in OPTIONAL]
    lines = [
        f"# {table}",
        "",
        f"Made by `python tools/reproduce.py {table}`. Cells finished: {len(finished)}, missing: "
        f"{len(missing)}."
        + (f" user_dgl {', '.join(sorted(set(rows['user_dgl'])))}." if finished else ""),
        "",
    ]
    if finished:
        lines += with_foot(_PAGES[table](rows, plan))
    return "\n".join(lines).rstrip() + "\n"


def _metrics_known(rows: pd.DataFrame) -> list[str]:
    """Metrics that a page shows. Cells of versions before 0.4.0 have no AMI."""
    return ["nmi", "acc", "ari", *(["ami"] if rows["ami"].notna().any() else [])]


def _noise_page(table: str, notes: Sequence[str]) -> Callable:
    def page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
        lines, appendix = [LEGEND, *notes, ""], []
        for dataset, rates, planned, chosen in _by_dataset(rows, plan):
            columns = [f"{rate} %" for rate in rates]
            lines += [f"## {NAMES.get(dataset, dataset)}", ""]
            for metric in _metrics_known(chosen):
                printed = paper_rows(table, dataset, rates) if metric == "nmi" else []
                floors = floor_rows(chosen, metric, planned)
                methods = method_rows(chosen, metric, planned)
                lines += markdown([metric.upper(), *columns], [*printed, *floors, *methods])
            lines += [PAIRED_LEGEND.replace("NMI", "the score"), ""]
            for metric in _metrics_known(chosen):
                body = paired_rows(chosen, planned, metric)
                lines += markdown([metric.upper(), *columns], body)
            lines += [
                "How well 1/A' finds the edges that noise added (AUC and AP in percent), and the "
                "share of noise that the prior estimates beside the true one (percent of the "
                "observed edges):",
                "",
            ]
            lines += markdown(["noise", *columns], denoising_rows(chosen, planned))
            appendix += all_of_paper(table, dataset, rates)
        return [*lines, *_cost(rows, plan), *(["## The paper", "", *appendix] if appendix else [])]

    return page


def _rivals_page(table: str, note: str) -> Callable:
    """Make a page of the default and the baselines beside one of the paper's tables."""

    def page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
        lines = [LEGEND, f"In parentheses: the paper's mean. {note}", RIVALS_NOTE, ""]
        for dataset, _, planned in _datasets(plan):
            chosen = without_equal(_in_order(rows[rows["dataset"] == dataset], plan))
            methods = in_plan_order(plan, "method", {*chosen["method"], *always_shown(plan)})
            columns = [f"{rate} %" for rate in planned]
            lines += [f"## {NAMES.get(dataset, dataset)}", ""]
            body = floor_rows(chosen, "nmi", planned)
            body += beside_paper(table, dataset, chosen, methods, planned)
            lines += markdown(["NMI", *columns], body)
            ours = chosen[chosen["method"] == "default"]
            body = [*ahead_of(chosen, "default", planned), *paired_rows(ours, planned)]
            if body:
                lines += [PAIRED_LEGEND, "", *markdown(["NMI", *columns], body)]
        return [*lines, *_cost(rows, plan)]

    return page


def _supported_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    columns = [
        (dataset, rate, rows[(rows["dataset"] == dataset) & (rows["rate"] == rate)])
        for dataset in in_plan_order(plan, "dataset", rows["dataset"])
        for rate in in_plan_order(plan, "rate", rows["rate"])
    ]
    body, differences = [], []
    for method in in_plan_order(plan, "method", rows["method"]):
        alone, _, user = method.partition(" with ")
        entries, gains = [], []
        for dataset, rate, chosen in columns:
            n = num_planned(plan, dataset, rate)
            ours, theirs = (chosen[chosen["method"] == name] for name in (method, alone))
            entries += by_rate(ours, "nmi", {rate: n})
            difference = by_seed(ours, "nmi") - by_seed(theirs, "nmi")
            gains += paired_by_rate(pd.concat([ours, theirs]), difference, {rate: n})
        body.append([method, *entries])
        if user:
            differences.append([method, *gains])
    header = ["NMI", *(f"{NAMES[dataset]}, {rate} %" for dataset, rate, _ in columns)]
    lines = [LEGEND, "Without USER: its own loss on the observed graph, then k-means.", ""]
    lines += markdown(header, body)
    lines += ["What USER adds. " + PAIRED_LEGEND, "", *markdown(header, differences)]
    return [*lines, *_cost(rows, plan)]


def _in_order(rows: pd.DataFrame, plan: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by the order of the methods in the plan."""
    methods = in_plan_order(plan, "method", rows["method"])
    return rows.sort_values("method", key=lambda m: m.map(methods.index), kind="stable")


def _cost(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    body = [
        [NAMES.get(dataset, dataset), method, f"{chosen['seconds'].median():.0f}",
         f"{chosen['seconds'].max():.0f}", f"{chosen['peak_memory_mb'].max():.0f}"]
        for dataset in in_plan_order(plan, "dataset", rows["dataset"])
        for method, chosen in _in_order(rows[rows["dataset"] == dataset], plan).groupby(
            "method", sort=False
        )
    ]  # fmt: skip
    header = ["data set", "method", "seconds, median", "seconds, most", "peak MB, most"]
    return ["## Cost of a run", "", *markdown(header, body)]


def _floors_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    lines = [LEGEND, "Each graph has its own config. " + PAIRED_LEGEND, ""]
    floors = [floor for floor in FLOORS if rows[f"{floor}_nmi"].notna().any()]
    header = [
        "data set",
        *(metric.upper() for metric in _metrics_known(rows)),
        *(f"{FLOORS[f]} NMI" for f in floors),
        *(f"NMI − {FLOORS[f]}" for f in floors),
    ]
    for rate in in_plan_order(plan, "rate", rows["rate"]):
        body = []
        at_rate = rows[rows["rate"] == rate]
        for dataset in in_plan_order(plan, "dataset", at_rate["dataset"]):
            chosen = at_rate[at_rate["dataset"] == dataset]
            n = num_planned(plan, dataset, rate)
            scores = [*_metrics_known(rows), *(f"{floor}_nmi" for floor in floors)]
            body.append(
                [NAMES.get(dataset, dataset)]
                + [entry for name in scores for entry in by_rate(chosen, name, {rate: n})]
                + [
                    entry
                    for floor in floors
                    for entry in paired_by_rate(chosen, differences(chosen, floor), {rate: n})
                ]
            )
        lines += [f"## {rate} % flips", "", *markdown(header, body)]
    return [*lines, *_cost(rows, plan)]


def _by_dataset(
    rows: pd.DataFrame, plan: pd.DataFrame
) -> Iterator[tuple[str, list[int], dict[int, int], pd.DataFrame]]:
    """Each data set with rows: its rates, the seeds planned for each of them, its rows in order."""
    for dataset, rates, planned in _datasets(plan):
        chosen = rows[rows["dataset"] == dataset]
        if len(chosen):
            yield dataset, rates, planned, _in_order(chosen, plan)


def _datasets(plan: pd.DataFrame) -> Iterator[tuple[str, list[int], dict[int, int]]]:
    """Each data set of the plan: its rates, and the seeds planned for each of them."""
    for dataset, of_set in plan.groupby("dataset", sort=False):
        rates = [int(rate) for rate in of_set["rate"].unique()]
        yield dataset, rates, {rate: num_planned(plan, dataset, rate) for rate in rates}


def _link_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    lines = [
        LEGEND,
        "Of the edges 5 % are held out for validation and 10 % for test, with as many non-edges, "
        "by the seed; flips follow, and leave all of these pairs. The validation pairs choose "
        "nothing. Rivals and dot products score a pair by its embeddings, USER-DGL by the log-odds "
        "that it has learned from the training edges. The terms of these were chosen with the test "
        "AUC of Citeseer and Wiki at 0 and 50 % flips, seeds 0 and 1, in view.",
        "",
    ]
    for dataset, rates, planned, chosen in _by_dataset(rows, plan):
        columns = [f"{rate} %" for rate in rates]
        lines += [f"## {NAMES.get(dataset, dataset)}", ""]
        for metric in ("auc", "ap"):
            printed = [
                [f"paper: {name}", *entries]
                for name, *entries in of_paper(f"link-{metric}", dataset, rates)
            ]
            floors = floor_rows(chosen, metric, planned, LINK_FLOORS)
            body = [*printed, *floors, *link_rows(chosen, metric, planned)]
            lines += markdown([metric.upper(), *columns], body)
        lines += [PAIRED_LEGEND.replace("NMI", "AUC or AP"), ""]
        for metric in ("auc", "ap"):
            body = link_differences(chosen, metric, planned)
            lines += markdown([metric.upper(), *columns], body)
    return [*lines, *_cost(rows, plan)]


def _defence_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    lines = [
        LEGEND,
        "Accuracy of the test nodes. The graphs are the attacked ones that Pro-GNN published, the "
        "same for all seeds; the split is Pro-GNN's (Polblogs: drawn by the seed). A' is that of "
        "`user_dgl.clean_graph` with its default settings, which are the same for all graphs and "
        "rates and read no label. Networks of DeepRobust are those of its package, with the "
        "settings of its examples. In parentheses: the mean that Pro-GNN's paper prints; it chose "
        "the settings of each network by the validation nodes.",
        "",
    ]
    for dataset, rates, planned, chosen in _by_dataset(rows, plan):
        columns = [f"{rate} %" for rate in rates]
        lines += [f"## {NAMES.get(dataset, dataset)}", ""]
        lines += markdown(["accuracy", *columns], _accuracy_rows(dataset, chosen, planned))
        gains = []
        by_method = dict(iter(chosen.groupby("method", sort=False)))
        for network in NETWORKS:
            pair = [by_method.get(network + on) for on in ("", CLEANED)]
            if any(each is None for each in pair):
                continue
            alone, cleaned = (by_seed(each, "acc") for each in pair)
            entries = paired_by_rate(pd.concat(pair), cleaned - alone, planned)
            gains.append([network, *entries])
        if gains:
            lines += ["What A' adds. " + PAIRED_LEGEND.replace("NMI", "accuracy"), ""]
            lines += markdown(["accuracy", *columns], gains)
    return [*lines, *_cost(rows, plan)]


def _accuracy_rows(dataset: str, rows: pd.DataFrame, planned: dict[int, int]) -> list[list[str]]:
    """A row for each method with Pro-GNN's figures of it, and one for Pro-GNN."""
    figures = paper.printed("defence", dataset).set_index(["method", "rate"])["mean"]

    def beside(method: str, entries: Sequence[str]) -> list[str]:
        figure = [f"({figures[method, r]:.1f})" if (method, r) in figures else "" for r in planned]
        return [" ".join(filter(None, both)) for both in zip(entries, figure, strict=True)]

    body = [[name, *beside(name, entries)] for name, *entries in method_rows(rows, "acc", planned)]
    if not figures.empty:
        body.append(["Pro-GNN", *beside("Pro-GNN", [""] * len(planned))])
    return body


def _ablation_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    full = plan["method"].iloc[0]
    lines = [
        LEGEND,
        f"Under the NMI: its difference to {full!r} on the same seeds. " + PAIRED_LEGEND,
        "",
    ]
    datasets = in_plan_order(plan, "dataset", rows["dataset"])
    for rate in in_plan_order(plan, "rate", rows["rate"]):
        at_rate = rows[rows["rate"] == rate]
        printed = {name: paper.printed("ablation", name) for name in datasets}
        header = ["NMI"]
        for dataset in datasets:
            header.append(NAMES.get(dataset, dataset))
            header += ["paper"] if rate in set(printed[dataset]["rate"]) else []
        body = []
        for method in in_plan_order(plan, "method", at_rate["method"]):
            line = [method]
            for dataset in datasets:
                n = num_planned(plan, dataset, rate)
                of_set = at_rate[at_rate["dataset"] == dataset]
                ours, whole = (of_set[of_set["method"] == name] for name in (method, full))
                (text,) = by_rate(ours, "nmi", {rate: n})
                if method != full:
                    gain = by_seed(ours, "nmi") - by_seed(whole, "nmi")
                    (difference,) = paired_by_rate(pd.concat([ours, whole]), gain, {rate: n})
                    text += f" ({difference})" if difference else ""
                line.append(text)
                figures = printed[dataset]
                if rate in set(figures["rate"]):
                    figures = figures[figures["rate"] == rate].set_index("method")["mean"]
                    value = figures.get(paper.VARIANTS.get(method))
                    line.append("" if value is None else f"{value:.1f}")
            body.append(line)
        lines += [f"## {rate} % flips", "", *markdown(header, body)]
    return [*lines, *_cost(rows, plan)]


def _parameters_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    lines = [
        LEGEND,
        "The paper's model at 10 % flips, one weight varied at a time. The last row is the "
        "difference to the smallest weight. " + PAIRED_LEGEND,
        "",
    ]
    for dataset in in_plan_order(plan, "dataset", rows["dataset"]):
        lines += [f"## {NAMES.get(dataset, dataset)}", ""]
        of_set = rows[rows["dataset"] == dataset]
        methods = in_plan_order(plan, "method", of_set["method"])
        rate = int(of_set["rate"].iloc[0])
        planned = {rate: num_planned(plan, dataset, rate)}
        for parameter in dict.fromkeys(method.partition("=")[0] for method in methods):
            grid = {
                method.partition("=")[2]: of_set[of_set["method"] == method]
                for method in methods
                if method.partition("=")[0] == parameter
            }
            body = [
                [metric.upper(), *(by_rate(of, metric, planned)[0] for of in grid.values())]
                for metric in ("nmi", "acc", "ari")
            ]
            smallest, *others = grid.values()
            base, gains = by_seed(smallest, "nmi"), []
            for of in others:
                both = pd.concat([of, smallest])
                gains += paired_by_rate(both, by_seed(of, "nmi") - base, planned)
            body.append([f"NMI − NMI at {next(iter(grid))}", "", *gains])
            lines += markdown([parameter, *grid], body)
        lines += [f"![{dataset}](parameters-{dataset}.png)", ""]
    return lines


def _case_study_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    lines = []
    for row in rows.itertuples(index=False):
        name = f"{row.dataset}-{row.method}-{row.rate}"
        lines += [
            f"{NAMES.get(row.dataset, row.dataset)}, {row.method}, {row.rate} % flips, seed "
            f"{row.seed}: NMI {row.nmi:.1f}. Nodes are ordered by class, within a class by "
            "cluster; all graphs symmetrically normalised.",
            "",
            f"![{name}](case-study-{name}.png)",
            "",
        ]
    return lines


_PAGES = {
    "random-noise": _noise_page("random-noise", ["Each seed has its own flips."]),
    "meta-attack": _noise_page(
        "meta-attack",
        [
            "The graphs are the attacked ones that Pro-GNN published, the same for all seeds. The "
            "paper attacked graphs of its own, so its rows are of other graphs than ours."
        ],
    ),
    "baselines": _rivals_page(
        "random-noise", "Each seed has its own flips, the same for all methods."
    ),
    "meta-attack-own": _rivals_page(
        "meta-attack",
        "Each seed has a graph of its own, attacked by data.noise.kind=metattack, the same for all "
        "methods; the paper attacked graphs of its own.",
    ),
    "supported": _supported_page,
    "default": default_page.page,
    "defence": _defence_page,
    "large": _floors_page,
    "parts": _ablation_page,
    "link": _link_page,
    "ablation": _ablation_page,
    "parameters": _parameters_page,
    "case-study": _case_study_page,
}
