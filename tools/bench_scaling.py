#!/usr/bin/env python3
"""Time and memory of the learnable-A' step and of whole epochs, by number of edges.

Two parts, each in processes of its own:

1. The kernels: neighbour sums, their gradients and the sums of NPSI, on random graphs, by the csr
   engine, by DGL message passing and by plain PyTorch ``index_add``; runs alternate, medians count.
   Beside them the time in which the machine could stream the bytes that the step reads and writes.
   On a CPU, also one neighbour sum without gradients, and the same by torch's sparse product.
2. Epochs of ``configs/large/sbm_1m.yaml`` at several sizes: seconds an epoch and peak memory, on a
   GPU that of the GPU.

Writes FILE.csv, FILE.summary.json, a table to standard output and, with matplotlib, FILE.png.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "large" / "sbm_1m.yaml"
COLUMNS = [
    "device", "engine", "mode", "num_nodes", "num_edges", "seconds_per_epoch", "peak_memory_mb",
]  # fmt: skip
SIZES = (300_000, 1_000_000, 3_000_000, 10_000_000)
EDGES_PER_NODE = 10
NUM_FEATURES, NUM_CLUSTERS = 64, 50
DGL_EDGES, INDEX_ADD_EDGES = 10_000_000, 2_000_000
FIT_EDGES = 4_000_000
RUNS = 5
# Of each run; the first ones, which pay for memory, do not count.
EPOCHS, FIRST_EPOCHS = 8, 2
BANDWIDTH_BYTES = 2**29


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-edges", type=float, default=SIZES[-1], metavar="N")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv")
    parser.add_argument("--engines", default="csr,dgl", help="of the epochs; default: csr,dgl")
    parser.add_argument("--modes", default="full", help="of the epochs; default: full")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    # The part of a measurement that needs a fresh process.
    parser.add_argument("--kernels", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.kernels:
        num_edges, engines = arguments.kernels.split(":")
        print(json.dumps(kernel_seconds(int(num_edges), engines.split(","), arguments.device)))
        return 0
    most, device = int(arguments.max_edges), arguments.device
    summary = kernels(most, device)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with open(arguments.out, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in epochs(most, arguments.engines.split(","), arguments.modes.split(","), device):
            rows.append(row)
            writer.writerow(row)
            file.flush()
    summary |= exponents(rows, device) | bytes_each(most, device)
    arguments.out.with_suffix(".summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    for name, value in summary.items():
        print(f"{name}: {value}")
    plot(rows, arguments.out.with_suffix(".png"))
    return 0


# ---------------------------------------------------------------------------------------------
# Kernels


def kernels(most: int, device: str) -> dict[str, float]:
    """Ratios of the engines' times, each at its own size, and the share of the bound reached."""
    # The DGL that pip installs is built for CPUs.
    engines = ["csr", "dgl"] if device == "cpu" else ["csr"]
    big = _in_new_process(min(DGL_EDGES, most), engines, device)
    small = _in_new_process(min(INDEX_ADD_EDGES, most), ["csr", "index_add"], device)
    print("| step on | engine | seconds | times csr |\n|---|---|---|---|")
    for measured in (big, small):
        size = f"{measured['num_nodes']:,} nodes, {measured['num_edges']:,} edges"
        for name, seconds in measured["seconds"].items():
            ratio = seconds / measured["seconds"]["csr"]
            print(f"| {size} | {name} | {seconds:.3f} | {ratio:.1f} |")
        print(f"| {size} | streaming bound | {measured['bound']:.3f} | |", flush=True)
        for name, seconds in measured["product"].items():
            ratio = seconds / measured["product"]["csr"]
            print(f"| {size} | one neighbour sum: {name} | {seconds:.3f} | {ratio:.1f} |")
    ratio = {"ratio_dgl": big["seconds"]["dgl"] / big["seconds"]["csr"]} if "dgl" in engines else {}
    return ratio | {
        "ratio_index_add": small["seconds"]["index_add"] / small["seconds"]["csr"],
        "streaming_fraction": big["bound"] / big["seconds"]["csr"],
        "bandwidth_gb_per_s": big["bandwidth"] / 1e9,
    }


def _in_new_process(num_edges: int, engines: list[str], device: str) -> dict:
    command = [sys.executable, __file__, "--out", os.devnull, "--device", device]
    command += ["--kernels", f"{num_edges}:{','.join(engines)}"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def kernel_seconds(num_edges: int, engines: list[str], device: str) -> dict:
    """Median seconds of the step by each engine on a random graph."""
    import torch

    from user_dgl.graph import Graph
    from user_dgl.losses.entropy import npsi

    num_nodes = num_edges // EDGES_PER_NODE
    rng = np.random.default_rng(0)
    ends = rng.integers(0, num_nodes, (2, num_edges))
    graph = Graph.from_edges(num_nodes, *ends)[0].to(device)
    generator = torch.Generator(device).manual_seed(0)

    def draw(function, *shape):
        return function(*shape, generator=generator, device=device)

    weight = draw(torch.rand, graph.num_edges).requires_grad_()
    x = draw(torch.randn, num_nodes, NUM_FEATURES).requires_grad_()
    target = draw(torch.randn, num_nodes, NUM_FEATURES)
    logits = draw(torch.randn, num_nodes, NUM_CLUSTERS)
    assignment = torch.softmax(logits, 1).requires_grad_()
    inputs = weight, x, assignment

    def step(forward: Callable) -> tuple[float, list]:
        for tensor in inputs:
            tensor.grad = None
        started = _now(device)
        # Not a leaf, as in training, where weights come out of softplus.
        neighbours, sums = forward(graph, weight * 1, x, assignment)
        (npsi(sums) + (neighbours * target).sum() / num_nodes).backward()
        return _now(device) - started, [tensor.grad for tensor in inputs]

    seconds: dict[str, list[float]] = {name: [] for name in engines}
    first = None
    for run in range(RUNS + 1):
        for name in engines:
            spent, gradients = step(_FORWARD[name])
            if run:  # the first run pays for memory and caches
                seconds[name].append(spent)
            elif first is None:
                first = gradients
            else:
                for one, other in zip(first, gradients, strict=True):
                    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
        first = None
    bandwidth = _bandwidth(device)
    return {
        "num_nodes": num_nodes,
        "num_edges": graph.num_edges,
        "seconds": {name: statistics.median(values) for name, values in seconds.items()},
        "bandwidth": bandwidth,
        "bound": _bytes_of_step(num_nodes, graph.num_edges) / bandwidth,
        "product": _product_seconds(graph, weight, x) if device == "cpu" else {},
    }


def _product_seconds(graph, weight, x) -> dict[str, float]:
    """Median seconds of A x by the csr engine and by torch's sparse product."""
    import torch

    from user_dgl.graph.csr_engine import csr_tensor
    from user_dgl.graph.ops import neighbor_sum

    weight, x = weight.detach(), x.detach()
    shape = graph.num_nodes, graph.num_nodes
    values = weight[graph.pair_of_entry]
    sparse = csr_tensor(graph.indptr, graph.indices, values, shape)
    ways = {
        "csr": lambda: neighbor_sum(graph, weight, x, "csr"),
        "torch's sparse product": lambda: sparse @ x,
    }
    torch.testing.assert_close(*(way() for way in ways.values()), rtol=1e-3, atol=1e-4)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(RUNS):
        for name, way in ways.items():
            started = _now("cpu")
            way()
            seconds[name].append(_now("cpu") - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _now(device: str) -> float:
    """Seconds, once the device has done what it was told to."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _by_engine(engine: str) -> Callable:
    def forward(graph, weight, x, assignment):
        from user_dgl.graph.ops import neighbor_sum
        from user_dgl.losses.entropy import partition_sums

        sums = partition_sums(graph, weight, assignment, engine)
        return neighbor_sum(graph, weight, x, engine), sums

    return forward


def _by_index_add(graph, weight, x, assignment):
    import torch

    from user_dgl.losses.entropy import PartitionSums

    source = torch.cat([graph.src, graph.dst]).long()
    target = torch.cat([graph.dst, graph.src]).long()
    both = torch.cat([weight, weight])

    def summed(values):
        return values.new_zeros(graph.num_nodes, *values.shape[1:]).index_add(0, target, values)

    degree = summed(both)
    around = summed(assignment[source] * both[:, None])
    sums = PartitionSums(degree.sum(), degree @ assignment, (assignment * around).sum(0))
    return summed(x[source] * both[:, None]), sums


_FORWARD = {"csr": _by_engine("csr"), "dgl": _by_engine("dgl"), "index_add": _by_index_add}


def _bandwidth(device: str) -> float:
    """Bytes read and written each second by a copy between blocks that are there already."""
    import torch

    source, target = torch.ones(2, BANDWIDTH_BYTES // 4, device=device)
    best = 0.0
    for _ in range(RUNS):
        started = _now(device)
        target.copy_(source)
        best = max(best, 2 * BANDWIDTH_BYTES / (_now(device) - started))
    return best


def _bytes_of_step(num_nodes: int, num_edges: int) -> int:
    """Bytes that the step reads and writes where each row gathered comes from memory.

    Products with both directions: A x, its gradient in x, A Y. Products on pairs: two for the
    gradient of the first in the weights, one for that of the sums.
    """
    both, value = 2 * num_edges, 4
    products = 2 * (both * (2 + NUM_FEATURES) + num_nodes * NUM_FEATURES)
    products += both * (2 + NUM_CLUSTERS) + num_nodes * NUM_CLUSTERS
    sampled = 2 * (num_edges * (2 + NUM_FEATURES) + num_nodes * NUM_FEATURES)
    sampled += num_edges * (2 + NUM_CLUSTERS) + num_nodes * NUM_CLUSTERS
    return value * (products + sampled)


# ---------------------------------------------------------------------------------------------
# Epochs


def epochs(most: int, engines: list[str], modes: list[str], device: str) -> Iterator[dict]:
    """Rows of the CSV file, each when it is measured."""
    sizes = [size for size in SIZES if size <= most]
    if len(sizes) < 2:
        sizes = [most // 4, most // 2, most]
    print("| engine | mode | nodes | edges | s/epoch | peak MB |\n|---|---|---|---|---|---|")
    for mode in modes:
        for engine in engines:
            for size in sizes:
                row = _train(engine, mode, size // EDGES_PER_NODE, size, device)
                print(
                    f"| {engine} | {mode} | {row['num_nodes']:,} | {row['num_edges']:,} "
                    f"| {row['seconds_per_epoch']:.2f} | {row['peak_memory_mb']:.0f} |",
                    flush=True,
                )
                yield row


def _train(engine: str, mode: str, num_nodes: int, num_edges: int, device: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "user_dgl", "train", str(CONFIG)]
        command += [
            f"data.synthetic.num_nodes={num_nodes}",
            f"data.synthetic.average_degree={2 * num_edges / num_nodes}",
            f"structure.engine={engine}",
            f"train.mode={mode}",
            f"device={device}",
            f"train.epochs={EPOCHS}",
            f"output_dir={folder}/run",
        ]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{ran.stdout}")
        result = json.loads(Path(folder, "run", "result.json").read_text())
        epochs = Path(folder, "run", "metrics.jsonl").read_text().splitlines()[FIRST_EPOCHS:]
    memory = "peak_memory_mb" if device == "cpu" else "gpu_peak_memory_mb"
    return {
        "device": result["device"],
        "engine": engine,
        "mode": mode,
        "num_nodes": result["num_nodes"],
        "num_edges": result["num_observed_edges"],
        "seconds_per_epoch": round(
            statistics.median(json.loads(epoch)["seconds"] for epoch in epochs), 4
        ),
        "peak_memory_mb": round(result[memory], 1),
    }


def _empty_mb(device: str) -> float:
    """Peak memory of a run on next to nothing: the interpreter and its libraries."""
    return _train("csr", "full", 200, 1000, device)["peak_memory_mb"]


def exponents(rows: list[dict], device: str) -> dict[str, float]:
    """Slopes in log-log scale of time and memory against edges, engine csr, mode full."""
    chosen = [row for row in rows if (row["engine"], row["mode"]) == ("csr", "full")]
    if len(chosen) < 2:
        return {"time_exponent": None, "memory_exponent": None}
    size = np.log([row["num_edges"] for row in chosen])
    empty = _empty_mb(device)
    memory = np.log([row["peak_memory_mb"] - empty for row in chosen])
    seconds = np.log([row["seconds_per_epoch"] for row in chosen])
    return {
        "time_exponent": float(np.polyfit(size, seconds, 1)[0]),
        "memory_exponent": float(np.polyfit(size, memory, 1)[0]),
        "empty_run_mb": empty,
    }


def bytes_each(most: int, device: str) -> dict[str, float]:
    """Bytes a node and an undirected edge, by least squares over four sizes."""
    large = min(FIT_EDGES, most)
    sizes = [
        (large // per_node, num_edges) for per_node in (40, 10) for num_edges in (large // 4, large)
    ]
    rows = [_train("csr", "full", *size, device) for size in sizes]
    known = np.array([(row["num_nodes"], row["num_edges"], 1) for row in rows], dtype=float)
    peak = np.array([row["peak_memory_mb"] for row in rows]) * 1e6
    node, edge, _ = np.linalg.lstsq(known, peak, rcond=None)[0]
    return {"bytes_per_node": float(node), "bytes_per_edge": float(edge)}


def plot(rows: list[dict], file: Path) -> None:
    """Time and memory by number of edges; says so where matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        print(f"no matplotlib, no {file.name}: pip install '.[plot]'")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), constrained_layout=True)
    for axis, column in zip(axes, COLUMNS[-2:], strict=True):
        for engine, mode in sorted({(row["engine"], row["mode"]) for row in rows}):
            chosen = [row for row in rows if (row["engine"], row["mode"]) == (engine, mode)]
            axis.loglog(
                [row["num_edges"] for row in chosen],
                [row[column] for row in chosen],
                marker="o",
                label=f"{engine}, {mode}",
            )
        axis.set_xlabel("edges")
        axis.set_ylabel(column.replace("_", " "))
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
