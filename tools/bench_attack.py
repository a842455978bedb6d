#!/usr/bin/env python3
"""Harm, time and memory of the meta-attack in one of its forms, on the data of a config.

``python tools/bench_attack.py CONFIG [section.key=value ...] --form exact --rates 5 10 15 20``

The script attacks the graph and prints a CSV row for each rate: time and peak memory of the attack,
and NMI of two victims on the attacked graph, `smooth_kmeans` and ``model.kind=gae``, each the mean
over ``--victims`` seeds. The second is the baseline GAE with the settings of the section
``baseline``, as in every other table. Forms ``none`` and ``random_flip`` give rows to compare with.
``--out DIR`` keeps the attacked graphs, for ``data.noise.kind=file``. The exact form runs once, to
the highest rate, because it makes the flips of the lower rates first.
"""

import argparse
import csv
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from user_dgl.baselines import resolve_baseline
from user_dgl.baselines.trainer import BaselineTrainer
from user_dgl.config import load_config
from user_dgl.data import load_data
from user_dgl.evaluation.floors import smooth_kmeans
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.features.preparation import prepare_features
from user_dgl.perturb import Victim, random_flip
from user_dgl.perturb.metattack import attack_steps
from user_dgl.perturb.stored import recipe_of, write_graph
from user_dgl.runtime.files import write_atomically
from user_dgl.runtime.machine import peak_memory_mb

COLUMNS = (
    "form", "rate", "seed", "flips", "added", "surrogate_loss", "seconds", "cpu_seconds",
    "peak_memory_mb", "smooth_kmeans_nmi", "gae_nmi",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    forms = ("none", "random_flip", "exact", "large")
    parser.add_argument("--form", choices=forms, default="large")
    parser.add_argument("--rates", nargs="+", type=float, default=[5.0, 10.0, 15.0, 20.0])
    parser.add_argument("--victims", type=int, default=2, metavar="SEEDS", help="0: no victims")
    parser.add_argument("--out", type=Path, metavar="DIR")
    arguments = parser.parse_intermixed_args(argv)
    config = load_config(arguments.config, arguments.overrides)
    data = load_data(config.data)
    rates = [0.0] if arguments.form == "none" else arguments.rates
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(COLUMNS)
    # All attacks come first, so that the memory of the victims does not count.
    attacked = list(attack(config, data, arguments.form, rates))
    for rate, graph, figures in attacked:
        if arguments.out is not None:
            save(config, arguments.form, rate, data.graph, graph, arguments.out)
        nmi = victims(config, data, graph, arguments.victims)
        flips = np.setxor1d(graph.keys, data.graph.keys)
        added = int((data.graph.positions(flips) < 0).sum())
        shown = [f"{value:.4g}" for value in (*figures, *nmi)]
        rows.writerow([arguments.form, f"{rate:g}", config.seed, len(flips), added, *shown])
        sys.stdout.flush()
    return 0


def attack(config, data, form, rates):
    """Yield for each rate in percent: the rate, the graph, (loss, seconds, CPU seconds, MB)."""
    num_edges, settings = data.graph.num_edges, noise_of(config, form, 0).attack
    victim = Victim(data.feat, data.labels)
    if form in ("none", "random_flip"):
        for rate in rates:
            graph = random_flip(data.graph, rate / 100, config.seed).graph
            yield rate, graph, (np.nan, 0.0, 0.0, peak_memory_mb())
        return
    budgets = {round(rate / 100 * num_edges): rate for rate in sorted(rates)}
    runs = [[budget] for budget in budgets] if form == "large" else [list(budgets)]
    for wanted in runs:
        started = time.perf_counter(), time.process_time()
        for graph, loss, flips in attack_steps(
            data.graph, max(wanted), config.seed, settings, victim
        ):
            if flips in wanted:
                spent = time.perf_counter() - started[0], time.process_time() - started[1]
                yield budgets[flips], graph, (loss, *spent, peak_memory_mb())


def noise_of(config, form, rate):
    """Return the noise settings with this form and rate."""
    noise = config.data.noise
    if form in ("exact", "large"):
        form, noise = "metattack", replace(noise, attack=replace(noise.attack, form=form))
    return replace(noise, kind=form, rate=rate / 100)


def save(config, form, rate, clean, graph, folder) -> None:
    """Write an attacked graph in the way of ``user-dgl perturb``."""
    noisy = replace(config, data=replace(config.data, noise=noise_of(config, form, rate)))
    recipe = recipe_of(noisy, clean)
    name = config.data.name or Path(config.data.path or config.data.kind).stem
    path = folder / f"{name}_{form}_{rate:g}_{config.seed}.npz"
    write_atomically(path, lambda file: write_graph(file, graph, recipe))


def victims(config, data, graph, seeds) -> tuple[float, float]:
    """Return mean NMI of `smooth_kmeans` and of the autoencoder on a graph; NaN without seeds."""
    clusters = config.model.num_clusters
    gae, _ = resolve_baseline(load_config(config, ["model.kind=gae"]))
    feat = prepare_features(data.feat, gae.features)
    scores = []
    for seed in range(seeds):
        found = (
            smooth_kmeans(data.feat, graph, clusters, seed),
            BaselineTrainer(graph, feat, replace(gae, seed=seed)).fit().clusters,
        )
        scores.append([clustering_metrics(data.labels, each)["nmi"] for each in found])
    return tuple(np.mean(scores, axis=0)) if scores else (np.nan, np.nan)


if __name__ == "__main__":
    sys.exit(main())
