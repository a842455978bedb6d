"""Cells of tools/reproduce.py, with the results and rows that their trainings would give."""

from dataclasses import replace

import pandas as pd
from paths import CONFIGS
from reproduction import cells as cells_module
from reproduction.cells import COLUMNS, Cell

TINY = (
    "data.synthetic.num_nodes=60",
    "model.hidden_feats=[4]",
    "train.epochs=2",
    "train.restarts=1",
)


def cell_of(seed=0, **changes) -> Cell:
    """A cell that trains in about a second."""
    config = CONFIGS / "quickstart.yaml"
    cell = Cell("random-noise", "cora", "default", "random_flip", 50, seed, config, TINY)
    return replace(cell, **changes)


def result_of(nmi=50.0, **changes) -> dict:
    """The content of ``result.json`` that the tables read."""
    metrics = {"nmi": nmi, "acc": 60.0, "ari": 40.0, "f1": 55.0, "ami": 45.0}
    return {
        "metrics": metrics,
        "floors": {"features_kmeans": metrics, "smooth_kmeans": metrics},
        "noise": {
            "weight_auc": 80.0, "weight_ap": 70.0, "estimated_share": None, "true_share": 0.25,
        },
        "num_clusters_found": 5,
        "seconds_total": 1.5,
        "peak_memory_mb": 300.0,
        "versions": {"user_dgl": "0.2.0"},
    } | changes  # fmt: skip


def rows_of(**columns) -> pd.DataFrame:
    """Rows of a results file; columns that are not given have the values of `result_of`."""
    rows = pd.DataFrame(columns)
    base = cells_module.result_row(cell_of(), result_of(), "d", "c")
    for name in COLUMNS:
        if name not in rows:
            rows[name] = base[name]
    return rows[COLUMNS]
