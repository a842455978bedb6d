"""Figures that the paper prints; ``paper.csv`` has them and names its source."""

from functools import cache
from pathlib import Path

import pandas as pd

# The methods in the columns of the paper's tables.
METHODS = [
    "DeepWalk", "GAE", "VGAE", "ARGA", "AGE", "DGI", "GIC", "GCA", "GAE_CG", "ARGA_CG", "USER",
]  # fmt: skip
# From our name of a variant to the column of the paper's ablation table.
VARIANTS = {
    "paper model": "USER",
    "paper model without NPSI": "w.o. NPSI",
    "paper model without DBI": "w.o. DBI",
    "paper model, A' = A": "Fix A'",
}


@cache
def _figures() -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name("paper.csv"), comment="#")


def printed(table: str, dataset: str) -> pd.DataFrame:
    """Return NMI in percent by rate and method (mean, std); empty where the paper has none."""
    figures = _figures()
    chosen = figures[(figures["table"] == table) & (figures["dataset"] == dataset)]
    return chosen[["rate", "method", "mean", "std"]]
