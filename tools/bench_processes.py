#!/usr/bin/env python3
"""Several processes against one: seconds an epoch, traffic, memory, and whether results agree.

``python tools/bench_processes.py CONFIG [section.key=value ...] --processes 1,2,4 --runs 3``

Runs of the numbers of processes alternate. Times are medians over all epochs except the first two
of each run. Results are compared with the run with the first number of processes: the largest
relative difference among the losses of all epochs, and the number of nodes in another cluster.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LAUNCH = Path(__file__).resolve().parent / "launch.py"
FIRST_EPOCHS = 2
COLUMNS = (
    "processes", "s/epoch", "speed-up", "pairs cut %", "halo of nodes %", "MB sent, each",
    "peak MB, all", "loss differs by", "nodes differ",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", help="YAML file")
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    parser.add_argument("--processes", default="1,2", help="default: 1,2")
    parser.add_argument("--runs", type=int, default=3, help="runs of each number; default: 3")
    parser.add_argument("--backend", help="backend, as for user-dgl launch")
    arguments = parser.parse_intermixed_args(argv)
    sizes = [int(size) for size in arguments.processes.split(",")]
    options = [] if arguments.backend is None else ["--backend", arguments.backend]
    runs: dict[int, list[dict]] = {size: [] for size in sizes}
    for _ in range(arguments.runs):
        for size in sizes:
            runs[size].append(_train(size, options, [arguments.config, *arguments.overrides]))
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    first = runs[sizes[0]]
    for size in sizes:
        print(f"| {' | '.join(_row(size, runs[size], first))} |")
    return 0


def _train(size: int, options: list[str], settings: list[str]) -> dict:
    """Return the results of a run."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(LAUNCH), "--nproc", str(size), *options]
        command += ["--", "train", *settings, f"output_dir={folder}/run"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}")
        run = Path(folder, "run")
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        return {
            "result": json.loads((run / "result.json").read_text()),
            "rows": rows,
            "clusters": (run / "clusters.csv").read_text().splitlines(),
        }


def _seconds(runs: list[dict]) -> float:
    return statistics.median(
        row["seconds"] for run in runs for row in run["rows"][FIRST_EPOCHS:] or run["rows"]
    )


def _row(size: int, runs: list[dict], first: list[dict]) -> list[str]:
    result, rows = runs[0]["result"], runs[0]["rows"]
    ranks = result["ranks"]
    num_pairs = sum(rank["pairs"] for rank in ranks)
    loss, expected = (np.array([row["loss"] for row in run["rows"]]) for run in (runs[0], first[0]))
    pairs = zip(runs[0]["clusters"], first[0]["clusters"], strict=True)
    return [
        str(size),
        f"{_seconds(runs):.3g}",
        f"{_seconds(first) / _seconds(runs):.2f}",
        f"{100 * sum(rank['cut_pairs'] for rank in ranks) / max(num_pairs, 1):.1f}",
        f"{100 * sum(rank['halo'] for rank in ranks) / result['num_nodes']:.1f}",
        f"{rows[-1]['megabytes_sent']:.4g}",
        f"{result['peak_memory_mb']:.0f}",
        f"{np.max(np.abs(loss - expected) / np.abs(expected)):.1e}",
        str(sum(one != other for one, other in pairs)),
    ]


if __name__ == "__main__":
    sys.exit(main())
