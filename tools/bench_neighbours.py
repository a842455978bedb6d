#!/usr/bin/env python3
"""Recall and time of the approximate search for feature neighbours against the exact one.

``python tools/bench_neighbours.py CONFIG [section.key=value ...]``

The script searches five neighbours of every node in the data of a config. For 2,000 nodes, drawn at
random, it compares them with the exact neighbours. A neighbour that is as similar as the fifth
exact neighbour counts as found.
"""

import argparse
import sys
import time

import numpy as np
from sklearn.preprocessing import normalize

from user_dgl.config import load_config
from user_dgl.data import load_data
from user_dgl.features.cosine import row_dots
from user_dgl.features.nearest import approximate_nearest
from user_dgl.features.preparation import prepare_features
from user_dgl.runtime.machine import peak_memory_mb

NEIGHBORS, QUERIES, BLOCK = 5, 2000, 50


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    arguments = parser.parse_args(argv)
    config = load_config(arguments.config, arguments.overrides)
    feat = prepare_features(load_data(config.data).feat, config.features)
    feat = feat[np.diff(feat.indptr) > 0]
    started = time.perf_counter()
    found = approximate_nearest(feat, NEIGHBORS)
    seconds = time.perf_counter() - started
    rows = normalize(feat)
    queries = np.random.default_rng(0).choice(len(found), min(QUERIES, len(found)), replace=False)
    hits = 0
    for start in range(0, len(queries), BLOCK):
        own = queries[start : start + BLOCK]
        cosine = (rows[own] @ rows.T).toarray()
        cosine[np.arange(len(own)), own] = -1
        fifth = np.partition(cosine, -NEIGHBORS, axis=1)[:, -NEIGHBORS]
        other = found[own].clip(0)
        alike = row_dots(rows, np.repeat(own, NEIGHBORS), other.ravel()).reshape(other.shape)
        hits += int(((alike >= fifth[:, None] - 1e-6) & (found[own] >= 0)).sum())
    print(
        f"{len(found):,} rows of {feat.shape[1]} columns: recall@{NEIGHBORS} "
        f"{hits / (NEIGHBORS * len(queries)):.3f}, {seconds:.0f} s, {peak_memory_mb():.0f} MB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
