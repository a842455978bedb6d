"""Figures: parameter curves and heat maps of graphs; needs matplotlib, the extra ``plot``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from reproduction.cells import Cell
from reproduction.rows import NAMES
from user_dgl.output.report.figures import heat_map, normalised, share_inside

# Bins along a side of a heat map: single edges of a graph with thousands of nodes would not be
# visible.
BINS = 150


def draw_parameters(rows: pd.DataFrame, results: Path) -> list[Path]:
    """Draw one PNG for each data set: NMI, ACC and ARI over each parameter.

    Parameters
    ----------
    rows : DataFrame
        Finished cells; a method is named like ``alpha=0.1``.
    results : Path

    Returns
    -------
    list of Path
    """
    plt = _pyplot()
    rows = rows.assign(
        parameter=rows["method"].str.partition("=")[0],
        value=rows["method"].str.partition("=")[2].astype(float),
    )
    files = []
    for dataset, of_set in rows.groupby("dataset"):
        parameters = sorted(of_set["parameter"].unique())
        figure, axes = plt.subplots(
            1, len(parameters), figsize=(4 * len(parameters), 3.2), squeeze=False, sharey=True
        )
        for axis, parameter in zip(axes[0], parameters, strict=True):
            chosen = of_set[of_set["parameter"] == parameter]
            for metric in ("nmi", "acc", "ari"):
                curve = chosen.groupby("value")[metric].agg(["mean", "std"])
                axis.errorbar(
                    curve.index, curve["mean"], curve["std"], marker="o", capsize=3,
                    label=metric.upper(),
                )  # fmt: skip
            ticks = sorted(chosen["value"].unique())
            axis.set_xscale("log", base=2)
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45)
            axis.set_xlabel(parameter)
            axis.grid(alpha=0.3)
        axes[0][0].set_ylabel("percent")
        axes[0][0].legend()
        figure.suptitle(NAMES.get(dataset, dataset))
        files.append(_save(figure, results / f"parameters-{dataset}.png"))
    return files


def draw_case_study(cells: Sequence[Cell], results: Path) -> list[Path]:
    """Draw one PNG for each run: the clean, the noisy and the learned graph side by side."""
    plt = _pyplot()
    files = []
    for cell in cells:
        graphs, labels, clusters = read_graphs(cell.run_dir(results))
        groups = clusters if labels is None else labels
        order = np.lexsort((clusters, groups))
        maps = [heat_map(normalised(graph), order, BINS) for graph in graphs]
        # One scale for all graphs, because a few crowded cells would leave the rest white.
        top = np.quantile(np.concatenate([m[m > 0] for m in maps]), 0.98)
        figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), constrained_layout=True)
        titles = ("A", f"noisy A ({cell.rate} % flips)", "A'")
        borders = np.cumsum(np.unique(groups[order], return_counts=True)[1])[:-1]
        for axis, title, image, graph in zip(axes, titles, maps, graphs, strict=True):
            size = len(order)
            axis.imshow(
                image, cmap="Greys", vmin=0, vmax=top, extent=(0, size, size, 0),
                interpolation="nearest",
            )  # fmt: skip
            for border in borders:
                axis.axhline(border, color="tab:red", linewidth=0.4, alpha=0.6)
                axis.axvline(border, color="tab:red", linewidth=0.4, alpha=0.6)
            kind = "clusters" if labels is None else "classes"
            share = 100 * share_inside(normalised(graph), groups)
            axis.set_title(f"{title}\n{share:.0f} % of the weight inside {kind}", fontsize=9)
            axis.set_xticks([])
            axis.set_yticks([])
        name = f"case-study-{cell.dataset}-{cell.method}-{cell.rate}.png"
        files.append(_save(figure, results / name))
    return files


def read_graphs(run: Path) -> tuple[list[sp.csr_matrix], np.ndarray | None, np.ndarray]:
    """Clean, noisy and learned adjacency of a run, its labels and its clusters.

    The clean graph comes from the run's data, as the noise may have removed edges.
    """
    from user_dgl.data import load_data
    from user_dgl.output.run_directory import RunDirectory

    directory = RunDirectory(run)
    noisy, _, labels = directory.read_input()
    clean = load_data(directory.read_config().data).graph
    learned = sp.load_npz(run / RunDirectory.learned_file).tocsr()
    _, clusters = directory.read_clusters()
    return [clean.to_scipy(), noisy.to_scipy(), learned], labels, clusters


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _save(figure, file: Path) -> Path:
    figure.savefig(file, dpi=150, bbox_inches="tight")
    _pyplot().close(figure)
    return file
