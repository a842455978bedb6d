"""Markdown tables of finished cells."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from reproduction import paper
from reproduction.cells import ASSIGNMENTS, KEY, Cell
from reproduction.plan import LINK_METHODS, OPTIONAL
from reproduction.summary import markdown, mean_std, paired

NAMES = {
    "cora": "Cora",
    "citeseer": "Citeseer",
    "wiki": "Wiki",
    "pubmed": "PubMed",
    "acm": "ACM",
    "dblp": "DBLP",
    "amazon_photo": "Amazon Photo",
    "coauthor_cs": "Coauthor CS",
    "uai2010": "UAI2010",
    "cora_ml": "Cora-ML",
    "polblogs": "Polblogs",
    "amazon_computers": "Amazon Computers",
    "coauthor_physics": "Coauthor Physics",
    "facebook": "Facebook",
    "twitch_de": "Twitch DE",
    "com_dblp": "com-DBLP",
}
FLOORS = {
    "features_kmeans": "features_kmeans",
    "smooth_kmeans": "smooth_kmeans",
    "prepared_features_kmeans": "features_kmeans, prepared features",
    "prepared_smooth_kmeans": "smooth_kmeans, prepared features",
}
LINK_FLOORS = {
    "features_cosine": "cosine of features",
    "smoothed_cosine": "cosine of smoothed features",
    "prepared_features_cosine": "cosine of prepared features",
    "prepared_smoothed_cosine": "cosine of smoothed prepared features",
}
LEGEND = (
    "Percent, mean ± sample standard deviation over seeds. In brackets: the number of seeds, where "
    "some are not finished."
)
PAIRED_LEGEND = (
    "Difference in NMI on the same seeds, mean ± half the 95 % interval (Student t over seeds); "
    "above or below: the interval does not contain 0; equal: it does."
)


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
        lines += _PAGES[table](rows, plan)
    return "\n".join(lines).rstrip() + "\n"


# ---------------------------------------------------------------------------------------------
# Entries of one table: rows of text for a data set, one column a rate


def _order(plan: pd.DataFrame, column: str, present) -> list:
    """Return the values of the plan that are present, in the order of the plan."""
    present = set(present)
    return [value for value in plan[column].unique() if value in present]


def _planned(plan: pd.DataFrame, dataset: str, rate: int) -> int:
    chosen = plan[(plan["dataset"] == dataset) & (plan["rate"] == rate)]
    return chosen["seed"].nunique()


def _by_rate(rows: pd.DataFrame, column: str, planned: dict[int, int]) -> list[str]:
    return [mean_std(rows.loc[rows["rate"] == r, column], n) for r, n in planned.items()]


def _floor_rows(
    rows: pd.DataFrame, metric: str, planned: dict[int, int], floors: dict[str, str] = FLOORS
) -> list[list[str]]:
    """Return a row for each floor, or one for each method if the floor depends on its features."""
    body = []
    for floor, name in floors.items():
        column = f"{floor}_{metric}"
        known = rows.dropna(subset=[column])
        if known.empty:
            continue
        groups = known.groupby(["rate", "seed"])[column]
        if (groups.max() - groups.min() < 0.01).all():
            once = known.drop_duplicates(["rate", "seed"])
            body.append([name, *_by_rate(once, column, planned)])
        else:
            body += [
                [f"{name} ({method})", *_by_rate(chosen, column, planned)]
                for method, chosen in known.groupby("method", sort=False)
            ]
    return body


def _method_rows(rows: pd.DataFrame, metric: str, planned: dict[int, int]) -> list[list[str]]:
    body = []
    for method, chosen in rows.groupby("method", sort=False):
        body.append([method, *_by_rate(chosen, metric, planned)])
        for name in ASSIGNMENTS if metric == "nmi" else []:
            if chosen[f"nmi_{name}"].notna().any():
                body.append([f"{method}, {name}", *_by_rate(chosen, f"nmi_{name}", planned)])
    return body


def _paper_rows(table: str, dataset: str, rates: Sequence[int]) -> list[list[str]]:
    """Return two rows of the paper: the best of its methods, with its name, and USER."""
    figures = paper.printed(table, dataset)
    if figures.empty:
        return []
    best, user = [f"paper: best of {figures['method'].nunique()}"], ["paper: USER"]
    for rate in rates:
        chosen = figures[figures["rate"] == rate].set_index("method")
        if chosen.empty:
            best.append("")
            user.append("")
            continue
        first = chosen["mean"].idxmax()
        best.append(f"{_printed(chosen.loc[first])} ({first})")
        user.append(_printed(chosen.loc["USER"]))
    return [best, user]


def _printed(figure: pd.Series) -> str:
    text = f"{figure['mean']:.1f}"
    return text if np.isnan(figure["std"]) else f"{text} ± {figure['std']:.1f}"


def _of_paper(table: str, dataset: str, rates: Sequence[int]) -> list[list[str]]:
    """Return a row for each method of the paper."""
    figures, body = paper.printed(table, dataset), []
    for method in paper.METHODS:
        chosen = figures[figures["method"] == method].set_index("rate")
        if not chosen.empty:
            cells = [_printed(chosen.loc[rate]) if rate in chosen.index else "" for rate in rates]
            body.append([method, *cells])
    return body


def _all_of_paper(table: str, dataset: str, rates: Sequence[int]) -> list[str]:
    """Return a table of the paper's eleven methods."""
    body = _of_paper(table, dataset, rates)
    if not body:
        return []
    return [f"NMI of the paper's methods on {NAMES[dataset]}:", "", *markdown(
        ["paper", *(f"{rate} %" for rate in rates)], body
    )]  # fmt: skip


def _beside_paper(
    table: str, dataset: str, rows: pd.DataFrame, planned: dict[int, int]
) -> list[list[str]]:
    """Return a row for each method, with the paper's figures, and a row for the paper's USER."""
    figures = paper.printed(table, dataset).set_index(["method", "rate"])["mean"]
    body = [
        [
            method,
            *(
                f"{entry} ({figures[method, rate]:.1f})".strip()
                if (method, rate) in figures
                else entry
                for rate, entry in zip(planned, _by_rate(chosen, "nmi", planned), strict=True)
            ),
        ]
        for method, chosen in rows.groupby("method", sort=False)
    ]
    return [*body, ["paper: USER", *(f"({figures['USER', rate]:.1f})" for rate in planned)]]


def _ahead_of(rows: pd.DataFrame, first: str, planned: dict[int, int]) -> list[list[str]]:
    """Return the paired differences between one method and each other method."""
    nmi = rows.pivot(index=["rate", "seed"], columns="method", values="nmi")
    if first not in nmi:
        return []
    body = []
    for method in rows["method"].unique():
        if method != first:
            difference = nmi[first] - nmi[method]
            cells = [
                paired(difference[difference.index.get_level_values("rate") == r], n)
                for r, n in planned.items()
            ]
            body.append([f"{first} − {method}", *cells])
    return body


def _differences(rows: pd.DataFrame, floor: str) -> pd.Series:
    return rows["nmi"] - rows[f"{floor}_nmi"]


def _link_rows(rows: pd.DataFrame, metric: str, planned: dict[int, int]) -> list[list[str]]:
    """Return a row for each method: dot products, and for ours also the learned score."""
    body = []
    for method, score, name in (
        *((name, "dot", name) for name in LINK_METHODS if name != "USER-DGL"),
        ("USER-DGL", "dot", "USER-DGL, dot product"),
        ("USER-DGL", "learned", "USER-DGL"),
    ):
        chosen = rows[rows["method"] == method]
        if not chosen.empty:
            body.append([name, *_by_rate(chosen, f"{score}_{metric}", planned)])
    return body


def _link_differences(rows: pd.DataFrame, metric: str, planned: dict[int, int]) -> list[list[str]]:
    chosen, body = rows[rows["method"] == "USER-DGL"], []
    for floor, name in LINK_FLOORS.items():
        difference = chosen[f"learned_{metric}"] - chosen[f"{floor}_{metric}"]
        if difference.notna().any():
            cells = [paired(difference[chosen["rate"] == r], n) for r, n in planned.items()]
            body.append([f"USER-DGL − {name}", *cells])
    return body


def _paired_rows(rows: pd.DataFrame, planned: dict[int, int]) -> list[list[str]]:
    body = []
    for method, chosen in rows.groupby("method", sort=False):
        for floor, name in FLOORS.items():
            difference = _differences(chosen, floor)
            if difference.notna().any():
                cells = [paired(difference[chosen["rate"] == r], n) for r, n in planned.items()]
                body.append([f"{method} − {name}", *cells])
    return body


def _denoising_rows(rows: pd.DataFrame, planned: dict[int, int]) -> list[list[str]]:
    body = []
    for method, chosen in rows.groupby("method", sort=False):
        body.append([f"{method}: AUC", *_by_rate(chosen, "weight_auc", planned)])
        body.append([f"{method}: AP", *_by_rate(chosen, "weight_ap", planned)])
        if chosen["estimated_share"].notna().any():
            share = chosen.assign(estimated_share=100 * chosen["estimated_share"])
            body.append(
                [f"{method}: estimated share", *_by_rate(share, "estimated_share", planned)]
            )
        for column, name in (
            ("self_share", "share of own features"),
            ("critic_power", "power of the critic's weights"),
        ):
            if chosen[column].notna().any():
                counts = [_counts(chosen.loc[chosen["rate"] == r, column]) for r in planned]
                body.append([f"{method}: {name}", *counts])
    # The noise depends on the seed alone, not on the method.
    once = rows.drop_duplicates(["rate", "seed"])
    once = once.assign(true_share=100 * once["true_share"])
    return [*body, ["true share", *_by_rate(once, "true_share", planned)]]


def _counts(values: pd.Series) -> str:
    return ", ".join(f"{name} {n}" for name, n in values.value_counts().items())


# ---------------------------------------------------------------------------------------------
# Pages


def _noise_page(table: str, notes: Sequence[str]) -> Callable:
    def page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
        lines, appendix = [LEGEND, *notes, ""], []
        for dataset in _order(plan, "dataset", rows["dataset"]):
            rates = [int(r) for r in plan.loc[plan["dataset"] == dataset, "rate"].unique()]
            planned = {rate: _planned(plan, dataset, rate) for rate in rates}
            chosen = _in_order(rows[rows["dataset"] == dataset], plan)
            columns = [f"{rate} %" for rate in rates]
            lines += [f"## {NAMES.get(dataset, dataset)}", ""]
            for metric in ("nmi", "acc", "ari"):
                printed = _paper_rows(table, dataset, rates) if metric == "nmi" else []
                floors = _floor_rows(chosen, metric, planned)
                methods = _method_rows(chosen, metric, planned)
                lines += markdown([metric.upper(), *columns], [*printed, *floors, *methods])
            lines += [PAIRED_LEGEND, ""]
            lines += markdown(["NMI", *columns], _paired_rows(chosen, planned))
            lines += [
                "How well 1/A' finds the edges that noise added (AUC and AP in percent), and the "
                "share of noise that the prior estimates beside the true one (percent of the "
                "observed edges):",
                "",
            ]
            lines += markdown(["noise", *columns], _denoising_rows(chosen, planned))
            appendix += _all_of_paper(table, dataset, rates)
        return [*lines, *_cost(rows, plan), *(["## The paper", "", *appendix] if appendix else [])]

    return page


def _rivals_page(table: str, note: str) -> Callable:
    """Make a page of USER-DGL and the baselines beside one of the paper's tables."""

    def page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
        lines = [LEGEND, f"In parentheses: the paper's mean. {note}", ""]
        for dataset in _order(plan, "dataset", rows["dataset"]):
            rates = [int(r) for r in plan.loc[plan["dataset"] == dataset, "rate"].unique()]
            planned = {rate: _planned(plan, dataset, rate) for rate in rates}
            chosen = _in_order(rows[rows["dataset"] == dataset], plan)
            columns = [f"{rate} %" for rate in rates]
            floors = {name: FLOORS[name] for name in ("features_kmeans", "smooth_kmeans")}
            lines += [f"## {NAMES.get(dataset, dataset)}", ""]
            body = _floor_rows(chosen, "nmi", planned, floors)
            body += _beside_paper(table, dataset, chosen, planned)
            lines += markdown(["NMI", *columns], body)
            lines += [PAIRED_LEGEND, ""]
            lines += markdown(["NMI", *columns], _ahead_of(chosen, "USER-DGL", planned))
        return [*lines, *_cost(rows, plan)]

    return page


def _supported_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    columns = [
        (dataset, rate, rows[(rows["dataset"] == dataset) & (rows["rate"] == rate)])
        for dataset in _order(plan, "dataset", rows["dataset"])
        for rate in _order(plan, "rate", rows["rate"])
    ]
    body, differences = [], []
    for method in _order(plan, "method", rows["method"]):
        alone, _, user = method.partition(" with ")
        entries, gains = [], []
        for dataset, rate, chosen in columns:
            nmi = chosen.pivot(index="seed", columns="method", values="nmi")
            n = _planned(plan, dataset, rate)
            entries.append(mean_std(nmi.get(method, []), n))
            gains.append(paired(nmi[method] - nmi[alone], n) if {method, alone} <= set(nmi) else "")
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
    methods = _order(plan, "method", rows["method"])
    return rows.sort_values("method", key=lambda m: m.map(methods.index), kind="stable")


def _cost(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    body = [
        [NAMES.get(dataset, dataset), method, f"{chosen['seconds'].median():.0f}",
         f"{chosen['seconds'].max():.0f}", f"{chosen['peak_memory_mb'].max():.0f}"]
        for dataset in _order(plan, "dataset", rows["dataset"])
        for method, chosen in _in_order(rows[rows["dataset"] == dataset], plan).groupby(
            "method", sort=False
        )
    ]  # fmt: skip
    header = ["data set", "method", "seconds, median", "seconds, most", "peak MB, most"]
    return ["## Cost of a run", "", *markdown(header, body)]


def _unseen_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    lines = [LEGEND, "The same recipe on every set. " + PAIRED_LEGEND, ""]
    floors = [floor for floor in FLOORS if rows[f"{floor}_nmi"].notna().any()]
    header = [
        *("data set", "NMI", "ACC", "ARI"),
        *(f"{FLOORS[f]} NMI" for f in floors),
        *(f"NMI − {FLOORS[f]}" for f in floors),
    ]
    for rate in _order(plan, "rate", rows["rate"]):
        body = []
        at_rate = rows[rows["rate"] == rate]
        for dataset in _order(plan, "dataset", at_rate["dataset"]):
            chosen = at_rate[at_rate["dataset"] == dataset]
            n = _planned(plan, dataset, rate)
            scores = ["nmi", "acc", "ari", *(f"{floor}_nmi" for floor in floors)]
            body.append(
                [NAMES.get(dataset, dataset)]
                + [mean_std(chosen[column], n) for column in scores]
                + [paired(_differences(chosen, floor), n) for floor in floors]
            )
        lines += [f"## {rate} % flips", "", *markdown(header, body)]
    return [*lines, *_cost(rows, plan)]


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
    for dataset in _order(plan, "dataset", rows["dataset"]):
        rates = [int(r) for r in plan.loc[plan["dataset"] == dataset, "rate"].unique()]
        planned = {rate: _planned(plan, dataset, rate) for rate in rates}
        chosen = _in_order(rows[rows["dataset"] == dataset], plan)
        columns = [f"{rate} %" for rate in rates]
        lines += [f"## {NAMES.get(dataset, dataset)}", ""]
        for metric in ("auc", "ap"):
            printed = [
                [f"paper: {name}", *entries]
                for name, *entries in _of_paper(f"link-{metric}", dataset, rates)
            ]
            floors = _floor_rows(chosen, metric, planned, LINK_FLOORS)
            body = [*printed, *floors, *_link_rows(chosen, metric, planned)]
            lines += markdown([metric.upper(), *columns], body)
        lines += [PAIRED_LEGEND.replace("NMI", "AUC or AP"), ""]
        for metric in ("auc", "ap"):
            body = _link_differences(chosen, metric, planned)
            lines += markdown([metric.upper(), *columns], body)
    return [*lines, *_cost(rows, plan)]


def _ablation_page(rows: pd.DataFrame, plan: pd.DataFrame) -> list[str]:
    full = plan["method"].iloc[0]
    lines = [
        LEGEND,
        f"Under the NMI: its difference to {full!r} on the same seeds. " + PAIRED_LEGEND,
        "",
    ]
    datasets = _order(plan, "dataset", rows["dataset"])
    for rate in _order(plan, "rate", rows["rate"]):
        at_rate = rows[rows["rate"] == rate]
        printed = {name: paper.printed("ablation", name) for name in datasets}
        header = ["NMI"]
        for dataset in datasets:
            header.append(NAMES.get(dataset, dataset))
            header += ["paper"] if rate in set(printed[dataset]["rate"]) else []
        body = []
        for method in _order(plan, "method", at_rate["method"]):
            line = [method]
            for dataset in datasets:
                n = _planned(plan, dataset, rate)
                of_set = at_rate[at_rate["dataset"] == dataset]
                ours = of_set[of_set["method"] == method].set_index("seed")["nmi"]
                whole = of_set[of_set["method"] == full].set_index("seed")["nmi"]
                text = mean_std(ours, n)
                if method != full:
                    difference = paired(ours - whole, n)  # by seed
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
    lines = [LEGEND, "The paper's model at 10 % flips, one weight varied at a time.", ""]
    for dataset in _order(plan, "dataset", rows["dataset"]):
        lines += [f"## {NAMES.get(dataset, dataset)}", ""]
        of_set = rows[rows["dataset"] == dataset]
        values = [method.partition("=") for method in _order(plan, "method", of_set["method"])]
        for parameter in dict.fromkeys(name for name, _, _ in values):
            grid = [f"{name}={value}" for name, _, value in values if name == parameter]
            body = []
            for metric in ("nmi", "acc", "ari"):
                entries = []
                for method in grid:
                    rate = int(of_set["rate"].iloc[0])
                    chosen = of_set.loc[of_set["method"] == method, metric]
                    entries.append(mean_std(chosen, _planned(plan, dataset, rate)))
                body.append([metric.upper(), *entries])
            header = [parameter, *(method.partition("=")[2] for method in grid)]
            lines += markdown(header, body)
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
    "unseen": _unseen_page,
    "large": _unseen_page,
    "parts": _ablation_page,
    "link": _link_page,
    "ablation": _ablation_page,
    "parameters": _parameters_page,
    "case-study": _case_study_page,
}
