"""The figures that the paper prints, typed in ``paper.csv``, which names its source."""

from functools import cache
from pathlib import Path

import pandas as pd

# The tables of the paper have one column for each of these.
METHODS = [
    "DeepWalk", "GAE", "VGAE", "ARGA", "AGE", "DGI", "GIC", "GCA", "GAE_CG", "ARGA_CG", "USER",
]  # fmt: skip
# Our name of a variant: the column of the paper's ablation table.
VARIANTS = {
    "full": "USER",
    "without NPSI": "w.o. NPSI",
    "without DBI": "w.o. DBI",
    "A' = A": "Fix A'",
}


@cache
def _figures() -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name("paper.csv"), comment="#")


def printed(table: str, dataset: str) -> pd.DataFrame:
    """NMI in percent: rate, method, mean, std; empty where the paper has nothing."""
    figures = _figures()
    chosen = figures[(figures["table"] == table) & (figures["dataset"] == dataset)]
    return chosen[["rate", "method", "mean", "std"]]
