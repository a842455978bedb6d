#!/usr/bin/env python3
"""How well the cleaned graph ranks edges that random flips added, and how well it is calibrated.

``python tools/study_cleaning.py [--datasets cora,wiki] [--rates 10,50] [--seeds 0]`` prints a row
of Markdown for each graph: the share of added edges and its estimate, the AUC of the probability
and of the critic of a training (percent), and the expected calibration error of "this edge was
added" in ten bins of equal width. Data are read from the folder that USER_DGL_DATA names.
"""

import argparse
import json
import time

import numpy as np
from reproduction.datasets import DATASETS
from sklearn.metrics import roc_auc_score

from user_dgl.cleaning.clean import FEATURES, clean
from user_dgl.config import CriticConfig, load_config
from user_dgl.data import load_data
from user_dgl.features.preparation import prepare_features
from user_dgl.graph.ops import resolve_engine
from user_dgl.perturb.random_flip import random_flip
from user_dgl.structure.critic import score_edges

NAMES = ("cora", "citeseer", "wiki", "acm", "dblp", "amazon_photo")
HEADER = (
    "data set", "flips", "seed", "added", "estimated", "AUC", "AUC of the critic",
    "calibration error", "seconds",
)  # fmt: skip


def calibration_error(chance: np.ndarray, happened: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: mean gap between chance and frequency over bins of the chance.

    Parameters
    ----------
    chance : float ndarray (M,)
    happened : bool ndarray (M,)
    bins : int
    """
    place = np.minimum((bins * chance).astype(int), bins - 1)
    return float(np.abs(np.bincount(place, chance - happened, bins)).sum() / len(chance))


def row(name: str, rate: int, seed: int) -> list[str]:
    """Clean one flipped graph and score the result."""
    settings = [f"data={json.dumps(DATASETS[name][0])}"]
    data = load_data(load_config(None, settings).data)
    noisy = random_flip(data.graph, rate / 100, seed)
    added = noisy.added.numpy()
    started = time.perf_counter()
    result = clean(noisy.graph, data.feat, seed, candidates=0)
    seconds = time.perf_counter() - started
    feat = prepare_features(data.feat, FEATURES)
    critic = score_edges(noisy.graph, feat, CriticConfig(), seed, resolve_engine("auto")).weight
    return [
        name,
        f"{rate} %",
        str(seed),
        f"{100 * added.mean():.1f}",
        f"{100 * result.noise_share:.1f}",
        *(f"{100 * roc_auc_score(added, -w):.1f}" for w in (result.probability, critic)),
        f"{calibration_error(1 - result.probability, added):.3f}",
        f"{seconds:.0f}",
    ]


def main() -> None:
    """Print a row for each graph."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(NAMES), metavar="A,B")
    parser.add_argument("--rates", default="10,50", metavar="10,50", help="flips in percent")
    parser.add_argument("--seeds", default="0", metavar="0,1")
    arguments = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    for name in arguments.datasets.split(","):
        for rate in map(int, arguments.rates.split(",")):
            for seed in map(int, arguments.seeds.split(",")):
                print(f"| {' | '.join(row(name, rate, seed))} |", flush=True)


if __name__ == "__main__":
    main()
