#!/usr/bin/env python3
"""What the weights of edges are worth: NMI with them and without.

``python tools/study_weights.py [--sets NAME ...] [--seeds 0-9] [--results FOLDER]``

Two graphs join each node of a real data set to its 15 nearest neighbours by features, with the
cosine as weight. In the third one the edges are drawn uniformly at random, so that only their
weights carry the blocks. In the last two a few edges are much heavier than all others. In the
first of these the weights tell more about the blocks than the edges do, in the second they tell
nothing. Each graph is written to a file and
trained on without features by ``configs/default.yaml``, once as it is and once with
``data.weights=ignore``. The script writes FOLDER/weights.csv and .md. Labels are read by the
metrics only.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from reproduction import study
from reproduction.files import write_text
from reproduction.plan import DATASETS
from reproduction.summary import (
    ENOUGH,
    LEGEND,
    PAIRED_LEGEND,
    markdown,
    mean_std,
    paired,
    with_foot,
)
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from user_dgl.config import default_config, load_config
from user_dgl.data import AttributedGraph, load_data
from user_dgl.data.formats.npz import write_npz
from user_dgl.data.reading.matrices import graph_from_matrix
from user_dgl.features.preparation import prepare_features
from user_dgl.pipeline.train import train

RESULTS = Path(__file__).with_name("results")
NEIGHBOURS = 15
METRICS = ("nmi", "ari", "ami")
WEIGHTS = ("auto", "ignore")
# The block model: nodes, blocks, mean degree, and the mean weight within blocks beside 1 between.
NODES, BLOCKS, DEGREE, WITHIN = 1000, 4, 40, 3.0
# The block model with heavy weights: blocks, mean degree, and the standard deviation of the
# logarithms of the weights.
HEAVY_BLOCKS, HEAVY_DEGREE, SPREAD = 8, 10, 1.5


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", default="0-9", metavar="0-9", help="first and last seed")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    study.add_option(parser)
    arguments = parser.parse_args(argv)
    low, _, high = arguments.seeds.partition("-")
    known = study.known_rows(arguments.results, "weights", arguments.stale)
    for name in arguments.sets:
        for seed in range(int(low), int(high or low) + 1):
            if {(name, seed, weights) for weights in WEIGHTS} <= known:
                continue
            study.add_rows(arguments.results, "weights", compare(name, seed))
            print(name, seed, flush=True)
    page = report(study.rows_of(arguments.results, "weights"))
    write_text(arguments.results / "weights.md", page)
    return 0


def compare(name: str, seed: int) -> list[dict]:
    """Train on one graph with its weights and without; return a row of scores for each."""
    data = SETS[name](seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.npz"
        with open(file, "wb") as out:
            write_npz(out, data)
        for weights in WEIGHTS:
            settings = [
                "data.kind=npz",
                f"data.path={file}",
                f"data.weights={weights}",
                f"model.num_clusters={data.labels.max() + 1}",
                f"seed={seed}",
                "eval.floors=false",
            ]
            config = load_config(default_config(), settings)
            result = train(config, Path(folder) / weights, lambda line: None)
            scores = {m: result["metrics"][m] for m in METRICS}
            rows.append({"set": name, "seed": seed, "weights": weights, **scores})
    return rows


def neighbours_of(name: str) -> Callable[[int], AttributedGraph]:
    """Return the maker of the graph of nearest neighbours; it is the same for every seed."""

    def make(seed: int) -> AttributedGraph:
        settings = [f"data.{key}={value}" for key, value in DATASETS[name][0].items()]
        config = load_config(default_config(), [*settings, "model.num_clusters=2"])
        data = load_data(config.data)
        feat = normalize(prepare_features(data.feat, config.features))
        search = NearestNeighbors(n_neighbors=NEIGHBOURS + 1, metric="cosine").fit(feat)
        distance, neighbour = search.kneighbors(feat)
        row = np.repeat(np.arange(len(neighbour)), neighbour.shape[1])
        cosine = 1 - distance.ravel()
        kept = (row != neighbour.ravel()) & (cosine > 0)
        matrix = sp.csr_matrix(
            (cosine[kept], (row[kept], neighbour.ravel()[kept])), shape=2 * (len(neighbour),)
        )
        graph, _ = graph_from_matrix(matrix, name)
        return AttributedGraph(graph, None, data.labels)

    return make


def weighted_blocks(seed: int) -> AttributedGraph:
    """Edges at random, with exponential weights whose mean is larger within the blocks."""
    rng = np.random.default_rng(seed)
    block = np.arange(NODES) % BLOCKS
    u, v = rng.integers(0, NODES, (2, NODES * DEGREE // 2))
    weight = rng.exponential(np.where(block[u] == block[v], WITHIN, 1.0))
    graph, _ = graph_from_matrix(sp.csr_matrix((weight, (u, v)), shape=(NODES, NODES)), "blocks")
    return AttributedGraph(graph, None, block)


def heavy_blocks(factor: float, mixing: float) -> Callable[[int], AttributedGraph]:
    """Return the maker of a planted partition with log-normal weights, larger by a factor inside.

    ``mixing`` is the share of edges that join blocks.
    """

    def make(seed: int) -> AttributedGraph:
        rng = np.random.default_rng(seed)
        block = rng.integers(HEAVY_BLOCKS, size=NODES)
        number = NODES * HEAVY_DEGREE // 2
        # More pairs than are needed of either kind.
        u, v = rng.integers(NODES, size=(2, 40 * number))
        inside = block[u] == block[v]
        within = np.flatnonzero(inside & (u != v))[: round((1 - mixing) * number)]
        between = np.flatnonzero(~inside)[: round(mixing * number)]
        kept = np.concatenate([within, between])
        weight = rng.lognormal(0, SPREAD, len(kept)) * np.where(inside[kept], factor, 1)
        matrix = sp.csr_matrix((weight, (u[kept], v[kept])), shape=(NODES, NODES))
        return AttributedGraph(graph_from_matrix(matrix, "blocks")[0], None, block)

    return make


SETS: dict[str, Callable[[int], AttributedGraph]] = {
    "pubmed, 15 neighbours": neighbours_of("pubmed"),
    "coauthor_cs, 15 neighbours": neighbours_of("coauthor_cs"),
    "blocks by weights": weighted_blocks,
    "blocks by edges and heavy weights": heavy_blocks(7.0, 0.6),
    "blocks by edges, heavy weights of no use": heavy_blocks(1.0, 0.4),
}


def report(rows: pd.DataFrame) -> str:
    """Return the Markdown page."""
    lines = ["# weights", "", "Made by `python tools/study_weights.py`.", ""]
    lines += [LEGEND + " " + PAIRED_LEGEND.replace("NMI", "the score"), ""]
    body = []
    for name in dict.fromkeys(rows["set"]):
        of = rows[rows["set"] == name]
        seeds = of["seed"].nunique()
        by_seed = of.pivot(index="seed", columns="weights")
        for form, label in (("auto", "with weights"), ("ignore", "without")):
            body.append(
                [name, label, *(mean_std(by_seed[m][form], seeds, ENOUGH) for m in METRICS)]
            )
        differences = (
            paired(by_seed[m]["auto"] - by_seed[m]["ignore"], seeds, ENOUGH) for m in METRICS
        )
        body.append([name, "difference", *differences])
    lines += markdown(["graph", "", *(m.upper() for m in METRICS)], body)
    return "\n".join(with_foot(lines)).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
