#!/usr/bin/env python3
"""Time and memory of reading a text of edges, beside another version of the package.

``python tools/bench_reading.py [--lines 10000000] [--against FOLDER] [--runs 3]``

Writes files of random edges to a temporary folder and reads each with ``load_edge_list``, in a
process of its own and with one thread. FOLDER holds another version, such as ``git worktree add
FOLDER TAG`` makes it; the runs of the two versions alternate. Prints the medians. "CPU s" is the
time that the processor gave to the reading, without the imports. On a machine that others use too,
it says more than the seconds on the clock.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
LINES_PER_NODE = 10
# Steps between ids: with gaps, ids are not the positions of the nodes.
GAPS = 7
READ = """
import json, sys, time
from pathlib import Path
from user_dgl.data import load_edge_list

started = time.process_time()
graph = load_edge_list(Path(sys.argv[1])).graph
spent = time.process_time() - started
# The peak that `resource` knows includes that of the process before it starts this program.
peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
print(json.dumps({"cpu_seconds": spent, "peak_mb": peak, "num_edges": graph.num_edges}))
"""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=10_000_000, help="default: 10000000")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another version")
    parser.add_argument("--runs", type=int, default=3, help="runs of the median; default: 3")
    arguments = parser.parse_args(argv)
    versions = [ROOT] if arguments.against is None else [arguments.against, ROOT]
    print("| file | version | CPU s | peak MB | CPU s / first |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, file in write_files(Path(folder), arguments.lines):
            _compare(name, file, versions, arguments.runs)
            file.unlink()
    return 0


def write_files(folder: Path, num_lines: int) -> Iterator[tuple[str, Path]]:
    """Write each file, and yield what it is and its path."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, max(num_lines // LINES_PER_NODE, 1), (2, num_lines))
    weight = np.round(rng.uniform(0.001, 10, num_lines), 3)
    plain = pd.DataFrame({"source": ends[0], "target": ends[1]})
    gaps = (GAPS * plain).assign(weight=weight)
    blanks = {"header": False, "sep": " "}
    file = folder / "edges.csv"
    for name, table, keywords in (
        ("commas, with a header", plain, {}),
        ("blanks", plain, blanks),
        ("commas, with a header and weights", plain.assign(weight=weight), {}),
        ("blanks, with weights, ids with gaps", gaps, blanks),
    ):
        table.to_csv(file, index=False, float_format="%.3f", **keywords)
        yield name, file


def _compare(name: str, file: Path, versions: list[Path], runs: int) -> None:
    found: dict[Path, list[dict]] = {version: [] for version in versions}
    for _ in range(runs):
        for version in versions:
            found[version].append(_read(file, version))
    first = None
    for version in versions:
        seconds, peak = (
            statistics.median(run[column] for run in found[version])
            for column in ("cpu_seconds", "peak_mb")
        )
        first = first or seconds
        label = "this one" if version == ROOT else version.name
        cells = f"{seconds:.2f} | {peak:.0f} | {seconds / first:.2f}"
        print(f"| {name} | {label} | {cells} |", flush=True)
    if len({run["num_edges"] for runs_ in found.values() for run in runs_}) > 1:
        sys.exit(f"{name}: the versions read different graphs")


def _read(file: Path, version: Path) -> dict:
    environment = os.environ | {"PYTHONPATH": str(version), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", READ, str(file)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, cwd="/")
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
