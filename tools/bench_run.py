#!/usr/bin/env python3
"""Where the time of a whole run goes: seconds and memory of each stage, by size of the graph.

``python tools/bench_run.py --nodes 100000 --edges 1000000 --runs 3``

Runs ``user-dgl train CONFIG`` on an attributed block model, in a process of its own, and prints the
medians. "start" is the time from the shell prompt to the first stage, most of which is spent on
imports. "CPU s" is the time that the processors gave to the process. On a machine that others use
too, it says more than the seconds on the clock.

Beside each run, in the same alternation, runs the least that one would do without this package: the
features smoothed over the graph, then mini-batch k-means of scikit-learn. The last column compares
CPU time with its time, so that the figures of two machines can be compared.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "default.yaml"
# As the floor smooth_kmeans.
STEPS, SELF_SHARE = 8, 0.05
SIMPLE = "smoothing and mini-batch k-means"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    parser.add_argument("--config", default=str(CONFIG), help="default: configs/default.yaml")
    parser.add_argument("--nodes", type=int, default=100_000, help="default: 100000")
    parser.add_argument("--edges", type=int, default=1_000_000, help="default: 1000000")
    parser.add_argument("--features", type=int, default=64, help="columns; default: 64")
    parser.add_argument("--clusters", type=int, default=50, help="blocks and K; default: 50")
    parser.add_argument("--threads", type=int, default=1, help="default: 1")
    parser.add_argument("--runs", type=int, default=3, help="runs of the median; default: 3")
    parser.add_argument("--simple", help=argparse.SUPPRESS)  # the part that needs a fresh process
    arguments = parser.parse_intermixed_args(argv)
    if arguments.simple:
        print(json.dumps(simple(load_settings(arguments))))
        return 0
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(arguments.threads)
    whole, least = [], []
    for _ in range(arguments.runs):
        least.append(_simple_in_new_process())
        whole.append(_train(arguments))
    _print(whole, least)
    return 0


def settings_of(arguments: argparse.Namespace) -> list[str]:
    """The settings of the block model."""
    return [
        "data.kind=synthetic",
        f"data.synthetic.num_nodes={arguments.nodes}",
        f"data.synthetic.num_blocks={arguments.clusters}",
        f"data.synthetic.average_degree={2 * arguments.edges / arguments.nodes}",
        f"data.synthetic.num_features={arguments.features}",
        f"model.num_clusters={arguments.clusters}",
    ]


def load_settings(arguments: argparse.Namespace):
    """The config of a run."""
    from user_dgl.config import load_config

    return load_config(arguments.config, [*settings_of(arguments), *arguments.overrides])


def _simple_in_new_process() -> dict:
    command = [sys.executable, __file__, "--simple", "yes", *sys.argv[1:]]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def simple(config) -> dict:
    """Seconds and NMI of smoothing and mini-batch k-means; the time of reading does not count."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import normalized_mutual_info_score
    from sklearn.preprocessing import normalize

    from user_dgl.data import load_data

    data = load_data(config.data)
    started, spent = time.perf_counter(), time.process_time()
    adjacency = data.graph.to_scipy() + sp.eye(data.num_nodes, dtype=np.float32, format="csr")
    scale = sp.diags(1 / np.sqrt(adjacency.sum(axis=1).A1), dtype=np.float32)
    operator = (scale @ adjacency @ scale).tocsr()
    x = normalize(data.feat).toarray()
    step, total = x, 0
    for _ in range(STEPS):
        step = operator @ step
        total = total + step
    smoothed = normalize(SELF_SHARE * x + (1 - SELF_SHARE) / STEPS * total)
    model = MiniBatchKMeans(
        config.model.num_clusters, batch_size=4096, n_init=3, random_state=config.seed
    )
    clusters = model.fit_predict(smoothed)
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - spent,
        "nmi": 100 * normalized_mutual_info_score(data.labels, clusters),
    }


def _train(arguments: argparse.Namespace) -> dict:
    """Stages, result and times of a run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "user_dgl", "train", arguments.config, "--quiet"]
        command += [*settings_of(arguments), *arguments.overrides, f"output_dir={folder}/run"]
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}")
        result = json.loads(Path(folder, "run", "result.json").read_text())
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"result": result, "seconds": seconds, "cpu_seconds": spent}


def _print(whole: list[dict], least: list[dict]) -> None:
    """Print the medians as a table."""
    stages: dict[str, list[dict]] = {}
    for run in whole:
        listed = run["result"]["stages"]
        start = {
            "name": "start",
            "seconds": run["seconds"] - run["result"]["seconds_total"],
            "cpu_seconds": run["cpu_seconds"] - sum(stage["cpu_seconds"] for stage in listed),
        }
        run["peak_memory_mb"] = run["result"]["peak_memory_mb"]
        for stage in (start, *listed, run | {"name": "whole run"}):
            stages.setdefault(stage["name"], []).append(stage)
    stages[SIMPLE] = least
    unit = statistics.median(run["cpu_seconds"] for run in least)
    columns = "seconds", "cpu_seconds", "peak_memory_mb"
    print("| stage | seconds | CPU s | peak MB so far | CPU s / simple |\n|---|---|---|---|---|")
    for name, runs in stages.items():
        medians = [
            statistics.median(run[column] for run in runs) if column in runs[0] else None
            for column in columns
        ]
        cells = ["" if value is None else f"{value:.4g}" for value in medians]
        print(f"| {name} | {' | '.join(cells)} | {medians[1] / unit:.3g} |")
    metrics = [run["result"]["metrics"]["nmi"] for run in whole]
    print(f"\nNMI {statistics.median(metrics):.2f}; {SIMPLE}: {least[0]['nmi']:.2f}")


if __name__ == "__main__":
    sys.exit(main())
