"""Rows of the tables of results: methods, floors, the paper's figures, paired differences."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from reproduction import paper
from reproduction.cells import ASSIGNMENTS
from reproduction.datasets import LFR
from reproduction.plan import LINK_METHODS, METHODS, OPTIONAL, PREPARED, PREPARED_DIFFERENCE
from reproduction.summary import enough_seeds, markdown, mean_std, paired

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
    "polblogs_largest": "Polblogs, largest component",
    "cora_ml_attacked": "Cora-ML, attacked",
    "pubmed_attacked": "PubMed, attacked",
    "polblogs_attacked": "Polblogs, attacked",
    "lastfm_asia": "LastFM Asia",
    "email_eu_core": "email-Eu-core",
    **{name: name.upper().replace("_", " ") for name in LFR},
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


def in_plan_order(plan: pd.DataFrame, column: str, present) -> list:
    """Return the values of the plan that are present, in the order of the plan."""
    present = set(present)
    return [value for value in plan[column].unique() if value in present]


def num_planned(plan: pd.DataFrame, dataset: str, rate: int) -> int:
    chosen = plan[(plan["dataset"] == dataset) & (plan["rate"] == rate)]
    return chosen["seed"].nunique()


def by_rate(
    rows: pd.DataFrame, column: str, planned: dict[int, int], spread: bool = True
) -> list[str]:
    """Return the mean of a column at each rate."""
    at = {rate: rows[rows["rate"] == rate] for rate in planned}
    return [mean_std(at[r][column], n, enough_seeds(at[r]), spread) for r, n in planned.items()]


def paired_by_rate(rows: pd.DataFrame, difference: pd.Series, planned: dict[int, int]) -> list[str]:
    """Return the mean difference at each rate.

    Parameters
    ----------
    rows : DataFrame
        All rows that are compared.
    difference : Series
        By (rate, seed).
    planned : dict of int to int
    """
    rates = difference.index.get_level_values("rate")
    return [
        paired(difference[rates == r], n, enough_seeds(rows[rows["rate"] == r]))
        for r, n in planned.items()
    ]


def by_seed(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return a column of one method by (rate, seed)."""
    return rows.set_index(["rate", "seed"])[column].astype(float)


def floor_rows(
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
            body.append([name, *by_rate(once, column, planned)])
        else:
            body += [
                [f"{name} ({method})", *by_rate(chosen, column, planned)]
                for method, chosen in known.groupby("method", sort=False)
            ]
    return body


def method_rows(rows: pd.DataFrame, metric: str, planned: dict[int, int]) -> list[list[str]]:
    body = []
    for method, chosen in rows.groupby("method", sort=False):
        body.append([method, *by_rate(chosen, metric, planned)])
        for name in ASSIGNMENTS if metric == "nmi" else []:
            if chosen[f"nmi_{name}"].notna().any():
                body.append([f"{method}, {name}", *by_rate(chosen, f"nmi_{name}", planned)])
    return body


def paper_rows(table: str, dataset: str, rates: Sequence[int]) -> list[list[str]]:
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
        best.append(f"{printed(chosen.loc[first])} ({first})")
        user.append(printed(chosen.loc["USER"]))
    return [best, user]


def printed(figure: pd.Series) -> str:
    text = f"{figure['mean']:.1f}"
    return text if np.isnan(figure["std"]) else f"{text} ± {figure['std']:.1f}"


def of_paper(table: str, dataset: str, rates: Sequence[int]) -> list[list[str]]:
    """Return a row for each method of the paper."""
    figures, body = paper.printed(table, dataset), []
    for method in paper.METHODS:
        chosen = figures[figures["method"] == method].set_index("rate")
        if not chosen.empty:
            cells = [printed(chosen.loc[rate]) if rate in chosen.index else "" for rate in rates]
            body.append([method, *cells])
    return body


def all_of_paper(table: str, dataset: str, rates: Sequence[int]) -> list[str]:
    """Return a table of the paper's eleven methods."""
    body = of_paper(table, dataset, rates)
    if not body:
        return []
    return [f"NMI of the paper's methods on {NAMES[dataset]}:", "", *markdown(
        ["paper", *(f"{rate} %" for rate in rates)], body
    )]  # fmt: skip


RIVALS_NOTE = (
    "The settings of default are the same for every data set. The baselines have the settings of "
    "their papers and raw features. Where the features that default sees change a baseline by more "
    f"than {PREPARED_DIFFERENCE:g} points at a rate, it has a second row."
)


def always_shown(plan: pd.DataFrame) -> list[str]:
    """Methods of a table of rivals that have a row even if none of their cells is finished."""
    return [method for method in plan["method"].unique() if method not in OPTIONAL]


def without_equal(rows: pd.DataFrame) -> pd.DataFrame:
    """Drop baselines on prepared features whose NMI is close to that on raw ones at every rate."""
    dropped = []
    for method in rows["method"].unique():
        if method.endswith(PREPARED):
            raw = rows[rows["method"] == method.removesuffix(PREPARED)]
            prepared = rows[rows["method"] == method]
            difference = by_seed(prepared, "nmi") - by_seed(raw, "nmi")
            means = difference.groupby(level="rate").mean().abs()
            if not (means > PREPARED_DIFFERENCE).any():
                dropped.append(method)
    return rows[~rows["method"].isin(dropped)]


def beside_paper(
    table: str,
    dataset: str,
    rows: pd.DataFrame,
    methods: Sequence[str],
    planned: dict[int, int],
) -> list[list[str]]:
    """Return a row for each method, with the paper's figures, and a row for the paper's USER."""
    figures = paper.printed(table, dataset).set_index(["method", "rate"])["mean"]
    body = [
        [
            config_label(method, dataset),
            *(
                f"{entry} ({figures[method, rate]:.1f})".strip()
                if (method, rate) in figures
                else entry
                for rate, entry in zip(
                    planned, by_rate(rows[rows["method"] == method], "nmi", planned), strict=True
                )
            ),
        ]
        for method in methods
    ]
    return [*body, ["paper: USER", *(f"({figures['USER', rate]:.1f})" for rate in planned)]]


def config_label(method: str, dataset: str) -> str:
    """Name of a method in a table of rivals; ours with the config that it stands for."""
    if method not in METHODS:
        return method
    return f"{method} (`configs/{METHODS[method].format(dataset=dataset)}`)"


def ahead_of(rows: pd.DataFrame, first: str, planned: dict[int, int]) -> list[list[str]]:
    """Return the paired differences between one method and each other method."""
    ours, body = rows[rows["method"] == first], []
    for method in rows["method"].unique() if len(ours) else ():
        if method != first:
            theirs = rows[rows["method"] == method]
            difference = by_seed(ours, "nmi") - by_seed(theirs, "nmi")
            both = pd.concat([ours, theirs])
            body.append([f"{first} − {method}", *paired_by_rate(both, difference, planned)])
    return body


def differences(rows: pd.DataFrame, floor: str, metric: str = "nmi") -> pd.Series:
    """Differences of one method to a floor, by (rate, seed)."""
    return by_seed(rows, metric) - by_seed(rows, f"{floor}_{metric}")


def link_rows(rows: pd.DataFrame, metric: str, planned: dict[int, int]) -> list[list[str]]:
    """Return a row for each method: dot products, and for ours also the learned score."""
    body = []
    for method, score, name in (
        *((name, "dot", name) for name in LINK_METHODS if name != "USER-DGL"),
        ("USER-DGL", "dot", "USER-DGL, dot product"),
        ("USER-DGL", "learned", "USER-DGL"),
    ):
        chosen = rows[rows["method"] == method]
        if not chosen.empty:
            body.append([name, *by_rate(chosen, f"{score}_{metric}", planned)])
    return body


def link_differences(rows: pd.DataFrame, metric: str, planned: dict[int, int]) -> list[list[str]]:
    """Return a row for the difference of the learned score to each floor and method."""
    ours = rows[rows["method"] == "USER-DGL"]
    others = [(ours, floor, name) for floor, name in LINK_FLOORS.items()]
    others += [(rows[rows["method"] == n], "dot", n) for n in LINK_METHODS if n != "USER-DGL"]
    body = []
    for theirs, score, name in others:
        difference = by_seed(ours, f"learned_{metric}") - by_seed(theirs, f"{score}_{metric}")
        if difference.notna().any():
            both = pd.concat([ours, theirs])
            body.append([f"USER-DGL − {name}", *paired_by_rate(both, difference, planned)])
    return body


def paired_rows(
    rows: pd.DataFrame, planned: dict[int, int], metric: str = "nmi"
) -> list[list[str]]:
    """Return a row for the difference of each method to each floor."""
    body = []
    for method, chosen in rows.groupby("method", sort=False):
        for floor, name in FLOORS.items():
            difference = differences(chosen, floor, metric)
            if difference.notna().any():
                cells = paired_by_rate(chosen, difference, planned)
                body.append([f"{method} − {name}", *cells])
    return body


def denoising_rows(rows: pd.DataFrame, planned: dict[int, int]) -> list[list[str]]:
    body = []
    for method, chosen in rows.groupby("method", sort=False):
        body.append([f"{method}: AUC", *by_rate(chosen, "weight_auc", planned)])
        body.append([f"{method}: AP", *by_rate(chosen, "weight_ap", planned)])
        if chosen["estimated_share"].notna().any():
            share = chosen.assign(estimated_share=100 * chosen["estimated_share"])
            body.append([f"{method}: estimated share", *by_rate(share, "estimated_share", planned)])
        for column, name in (
            ("self_share", "share of own features"),
            ("critic_power", "power of the critic's weights"),
        ):
            if chosen[column].notna().any():
                shown = [counts(chosen.loc[chosen["rate"] == r, column]) for r in planned]
                body.append([f"{method}: {name}", *shown])
    # The noise depends on the seed alone, not on the method.
    once = rows.drop_duplicates(["rate", "seed"])
    once = once.assign(true_share=100 * once["true_share"])
    return [*body, ["true share", *by_rate(once, "true_share", planned)]]


def counts(values: pd.Series) -> str:
    """Return each value and how many seeds have it, the most frequent first."""
    shown = values.dropna().map(lambda value: value if isinstance(value, str) else f"{value:g}")
    found = shown.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    # Names of views have commas.
    return "; ".join(f"{name}: {n}" for name, n in found.items())
