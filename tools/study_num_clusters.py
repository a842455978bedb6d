#!/usr/bin/env python3
"""How often criteria without labels find the true number of clusters.

``python tools/study_num_clusters.py [--sets NAME ...] [--results FOLDER]``

The script prepares each data set as ``configs/default.yaml`` does, lets each criterion choose among
the numbers that ``model.num_clusters=auto`` chooses from, and writes FOLDER/num-clusters.csv and
.md. A set that is in the CSV file is not run again. All criteria except the spectral ones judge
k-means of the smoothed features. Only this script reads labels; no criterion does.
"""

import argparse
import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from reproduction import study
from reproduction.files import write_text
from reproduction.plan import ATTACKED, DATASETS
from reproduction.summary import markdown
from scipy.linalg import svdvals
from sklearn.metrics import davies_bouldin_score
from study_embeddings import KINDS, TABLES, around, real_valued, table

from user_dgl.cleaning.priors import prior_of
from user_dgl.clustering.kmeans import kmeans, silhouette
from user_dgl.clustering.num_clusters import num_clusters_curve
from user_dgl.clustering.smoothed_view import smoothed_embedding
from user_dgl.config import Config, SyntheticConfig, default_config, load_config
from user_dgl.data import UNLABELLED, AttributedGraph, block_model, data_root, load_data
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.features.preparation import prepare_features
from user_dgl.graph import Graph
from user_dgl.graph.ops import weighted_degree
from user_dgl.losses.entropy import npsi, partition_sums
from user_dgl.perturb import perturb
from user_dgl.pipeline.inputs import with_features

RESULTS = Path(__file__).with_name("results")
STARTS = 3
# The criterion of the package comes first.
CRITERIA = {
    "auto": "`num_clusters: auto`, steepest fall of the singular values on logarithmic scales",
    "eigengap": "largest difference of neighbouring singular values",
    "entropy": "least two-dimensional structural entropy of A' (NPSI)",
    "entropy_log": "least NPSI / log2 K",
    "davies_bouldin": "least Davies-Bouldin index of the smoothed features",
    "silhouette": "largest silhouette of the smoothed features",
    "modularity": "largest modularity on A'",
}
REAL_VALUES = "real values: "
FLIPPED = ("cora", "citeseer", "wiki", "acm", "uai2010", "cora_ml", "polblogs")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    study.add_option(parser)
    arguments = parser.parse_args(argv)
    sets = all_sets()
    unknown = set(arguments.sets or ()) - set(sets)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(sets)}")
    known = study.known_rows(arguments.results, "num-clusters", arguments.stale)
    for name in arguments.sets or sets:
        if (name,) in known:
            continue
        row = {"set": name, **choices(*sets[name])}
        study.add_rows(arguments.results, "num-clusters", [row])
        print(name, flush=True)
    page = report(study.rows_of(arguments.results, "num-clusters"))
    write_text(arguments.results / "num-clusters.md", page)
    return 0


def all_sets() -> dict[str, tuple]:
    """Return loader and noise rate of each set by name: real sets, LFR, block models, real values.

    Sets with real values are of the kinds of ``study_embeddings.py``: three citation graphs, a
    table of each kind, and block models with 64 columns. Where ``auto`` asks the edges too, as
    there are few columns, the other criteria see the features only.
    """
    named = {**{k: v[0] for k, v in DATASETS.items()}, "polblogs": ATTACKED["polblogs"][0]}
    sets = {name: (lambda data=data: _load(data), 0.0) for name, data in named.items()}
    for name in FLIPPED:
        sets[f"{name} 50 %"] = (sets[name][0], 0.5)
    for mixing in (0.1, 0.3, 0.5):
        sets[f"lfr, mixing {mixing}"] = (lambda mixing=mixing: _lfr(mixing), 0.0)
    for blocks in (3, 5, 8, 12, 20):
        for mixing in (0.2, 0.5):
            for topic in (0.4, 0.2):
                config = SyntheticConfig(
                    num_nodes=max(1000, 60 * blocks),
                    num_blocks=blocks,
                    average_degree=8.0,
                    mixing=mixing,
                    num_features=max(200, 20 * blocks),
                    topic_share=topic,
                    seed=1,
                )
                name = f"{blocks} blocks, mixing {mixing}, topic {topic}"
                sets[name] = (lambda config=config: block_model(config), 0.0)
    for name in ("cora", "citeseer", "acm"):
        for kind in KINDS:
            title = f"{REAL_VALUES}{name}, {kind}"
            sets[title] = (lambda name=name, kind=kind: real_valued(name, kind), 0.0)
    for kind in TABLES:
        sets[f"{REAL_VALUES}{kind}"] = (lambda kind=kind: table(*TABLES[kind], seed=0), 0.0)
    for clusters in (3, 5, 8, 12, 20):
        title = f"{REAL_VALUES}64 columns, {clusters} clusters"
        sets[title] = (lambda clusters=clusters: _columns_around_means(clusters), 0.0)
    return sets


def _columns_around_means(clusters: int) -> AttributedGraph:
    """Block model whose features are 64 columns around a mean of each cluster."""
    means = 0.5 * np.random.default_rng(clusters).normal(size=(clusters, 64))
    return table(around(means), (1 / clusters,) * clusters, seed=0)


def _load(data: dict) -> AttributedGraph:
    return load_data(load_config(None, [f"data.{key}={value}" for key, value in data.items()]).data)


def _lfr(mixing: float) -> AttributedGraph:
    """Load the LFR graph of 1,000 nodes, without features; communities are the labels."""
    base = data_root(Config().data) / "lfr" / f"LFR_N1000_ad5_mc50_mu{mixing}"
    edges = pd.read_csv(f"{base}.csv.gz", sep="\t", header=None, usecols=[0, 1]).to_numpy()
    with gzip.open(f"{base}.json.gz") as file:
        communities = json.load(file)["communities"]
    labels = np.full(1000, UNLABELLED)
    for number, members in enumerate(communities):
        labels[members] = number
    return AttributedGraph(Graph.from_edges(1000, *edges.T)[0], None, labels)


def choices(load, rate: float) -> dict:
    """Return one row: the choice of each criterion, and its loss against the true number."""
    config = load_config(default_config())
    data = load()
    noise = replace(config.data.noise, kind="random_flip" if rate else "none", rate=rate)
    graph = perturb(data.graph, noise, config.seed, Path()).graph
    config, raw, _ = with_features(config, graph, data.feat)
    feat = prepare_features(raw, config.features)
    weight = prior_of(config.structure, graph, feat, config.seed, "csr").weight
    auto = num_clusters_curve(graph, weight, feat, config.model, config.seed, "csr")
    numbers = list(auto)
    smooth = config.model.smooth
    points = smoothed_embedding(graph, weight, feat, smooth, numbers[-1], config.seed, "csr")
    true = len(np.unique(data.labels[data.labels != UNLABELLED]))
    found = {k: kmeans(points, k, config.seed, STARTS) for k in sorted({*numbers, true})}
    scores = {"auto": auto, **curves(graph, weight, points, found)}
    quality = {k: clustering_metrics(data.labels, clusters) for k, clusters in found.items()}
    row = {"nodes": graph.num_nodes, "true": true, "most": numbers[-1]}
    for criterion in CRITERIA:
        chosen = max(numbers, key=lambda k: scores[criterion][k])
        row[criterion] = chosen
        for metric in ("nmi", "ari"):
            row[f"{criterion} {metric}"] = quality[chosen][metric] - quality[true][metric]
    return row


def curves(graph: Graph, weight: torch.Tensor, points: np.ndarray, clusterings: dict) -> dict:
    """Return the score of each criterion at each number; the highest is best."""
    spectrum = np.append(svdvals(points.astype(np.float64)), 0)
    degree = weighted_degree(graph, weight, "csr")
    scores = {name: {} for name in CRITERIA if name != "auto"}
    for k, clusters in clusterings.items():
        assignment = torch.nn.functional.one_hot(torch.from_numpy(clusters), int(k)).float()
        sums = partition_sums(graph, weight, assignment, "csr", degree)
        share = sums.volume / sums.total_weight
        entropy = npsi(sums).item()
        scores["eigengap"][k] = -np.diff(spectrum)[min(k, len(spectrum) - 1) - 1]
        scores["entropy"][k] = -entropy
        scores["entropy_log"][k] = -entropy / np.log2(k)
        scores["davies_bouldin"][k] = -davies_bouldin_score(points, clusters)
        scores["silhouette"][k] = silhouette(points, clusters, 0)
        inside = sums.internal_weight.sum() / sums.total_weight
        scores["modularity"][k] = (inside - share @ share).item()
    return scores


def report(rows: pd.DataFrame) -> str:
    """Return the Markdown page."""
    place = {name: at for at, name in enumerate(all_sets())}
    rows = rows.sort_values("set", key=lambda names: names.map(place), kind="stable")
    lines = ["# num-clusters", "", "Made by `python tools/study_num_clusters.py`.", ""]
    lines += [*(f"* {name}: {text}" for name, text in CRITERIA.items()), ""]
    reachable = rows[rows["true"] <= rows["most"]]
    values = reachable["set"].str.startswith(REAL_VALUES)
    made = reachable["set"].str.contains("blocks|lfr") & ~values
    lines += _summary(reachable[~made & ~values], "real sets")
    lines += _summary(reachable[made], "block models and LFR")
    lines += _summary(reachable[values], "real values")
    columns = ["set", "nodes", "true", "most", *CRITERIA]
    lines += markdown(columns, rows[columns].astype(str).to_numpy().tolist())
    return "\n".join(lines).rstrip() + "\n"


def _summary(rows: pd.DataFrame, title: str) -> list[str]:
    if not len(rows):
        return []
    body = []
    for name in CRITERIA:
        off = np.log2(rows[name] / rows["true"])
        body.append(
            [
                name,
                f"{(off == 0).sum()}",
                f"{((rows[name] - rows['true']).abs() <= 1).sum()}",
                f"{2 ** off.abs().mean():.2f}",
                f"{2 ** off.mean():.2f}",
                f"{rows[f'{name} nmi'].mean():+.1f}",
                f"{rows[f'{name} ari'].mean():+.1f}",
            ]
        )
    head = [
        f"{title} ({len(rows)})",
        "exact",
        "off by 1 at most",
        "off by a factor of (geometric mean)",
        "chosen / true (geometric mean)",
        "NMI against k-means at the true number",
        "ARI",
    ]
    return markdown(head, body)


if __name__ == "__main__":
    sys.exit(main())
