"""Pictures of a run: the arrays that they show, and functions that draw them.

Drawing needs matplotlib, the extra ``plot``. Figures are made without pyplot, so that nothing
changes in a caller's plots. The widths suit the screen of a phone. The colours are Paul
Tol's scheme "muted", which colour-blind people can tell apart. A colour is never the only sign of
anything.
"""

import io
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pandas.api.types import is_integer_dtype

from user_dgl.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

_COLORS = (
    "#332288", "#CC6677", "#117733", "#DDCC77", "#88CCEE", "#882255", "#44AA99", "#999933",
    "#AA4499",
)  # fmt: skip
_MARKERS = "os^DvPX"
_WIDTH = 4.6  # inches
MOST_NAMED = 25  # clusters
NUM_LOOKS = len(_MARKERS) * len(_COLORS)


@contextmanager
def drawing() -> Iterator[None]:
    """Set the style of all pictures, independently of the machine's settings of matplotlib.

    Raises
    ------
    InputError
        matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise InputError(
            "pictures need matplotlib, which is not installed: pip install 'user_dgl[plot]'"
        ) from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "font.size": 9,
                "axes.titlesize": 9,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.grid": False,
                "figure.constrained_layout.use": True,
                "savefig.dpi": 180,
            }
        )
        yield


def png(figure: "Figure") -> bytes:
    """Return a figure as PNG."""
    file = io.BytesIO()
    # The version of matplotlib is left out, so that equal runs give equal files.
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


# -------------------------------------------------------------------------------------------------
# Graphs


def normalised(adjacency: sp.csr_matrix) -> sp.csr_matrix:
    """Return D^-1/2 A D^-1/2, where rows of isolated nodes stay 0."""
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    scale = np.zeros_like(degree)
    np.divide(1, np.sqrt(degree), out=scale, where=degree > 0)
    return (sp.diags(scale) @ adjacency @ sp.diags(scale)).tocsr()


def heat_map(adjacency: sp.csr_matrix, order: np.ndarray, bins: int) -> np.ndarray:
    """Sum the weights in a grid of ``bins`` by ``bins`` groups of nodes, consecutive in ``order``.

    >>> heat_map(sp.csr_matrix([[0, 2.0], [2.0, 0]]), np.array([1, 0]), 1)
    array([[4.]])
    """
    size = len(order)
    bins = min(bins, size)
    position = np.empty(size, dtype=np.int64)
    position[order] = np.arange(size) * bins // size
    entries = adjacency.tocoo()
    places = (position[entries.row], position[entries.col])
    return sp.coo_matrix((entries.data, places), shape=(bins, bins)).toarray()


def share_inside(adjacency: sp.csr_matrix, groups: np.ndarray) -> float:
    """Return the share of the weight that is between nodes of the same group."""
    entries = adjacency.tocoo()
    inside = groups[entries.row] == groups[entries.col]
    return float(entries.data[inside].sum() / entries.data.sum())


def draw_heat_map(
    image: np.ndarray, top: float, names: np.ndarray, sizes: np.ndarray, title: str
) -> "Figure":
    """Draw a heat map with lines between groups of nodes, and names of the larger groups.

    Parameters
    ----------
    image : (B, B)
        Return value of `heat_map`.
    top : float
        Weight with the darkest colour.
    names : int (K,)
        Groups, in their order along both axes.
    sizes : int (K,)
        Number of nodes in each group.
    title : str
    """
    from matplotlib.colors import PowerNorm

    figure, axes = _figure(5.3)
    ends = np.cumsum(sizes)
    size = int(ends[-1])
    # Colours follow the square root of the weight: most cells hold one or two edges, a few many.
    shown = axes.imshow(
        image, cmap="Blues", norm=PowerNorm(0.5, vmin=0, vmax=top, clip=True),
        extent=(0, size, size, 0),
    )  # fmt: skip
    axes.spines[:].set_visible(True)
    if len(sizes) <= 20:  # more lines would hide the cells
        for end in ends[:-1]:
            axes.axhline(end, color="#CC6677", linewidth=0.5)
            axes.axvline(end, color="#CC6677", linewidth=0.5)
    wide = np.flatnonzero(sizes >= 0.04 * size)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks((ends - sizes / 2)[wide], [str(names[group]) for group in wide])
        axis.set_tick_params(length=0, labelsize=8)
    axes.xaxis.tick_top()
    axes.set_title(title)
    axes.set_ylabel("cluster")
    bar = figure.colorbar(shown, location="bottom", shrink=0.7, aspect=30, extend="max")
    steps = [top * share**2 for share in (0, 1 / 3, 2 / 3, 1)]
    bar.set_ticks(steps, labels=[f"{step:.3g}" for step in steps])
    bar.set_label("weight in a cell")
    return figure


# -------------------------------------------------------------------------------------------------
# Training, weights, nodes


def draw_loss(rows: pd.DataFrame, curves: dict[str, list[str]]) -> "Figure":
    """Draw panels of numbers over epochs, one below the other.

    Parameters
    ----------
    rows : DataFrame
        Has a column ``epoch``.
    curves : dict of str to list of str
        Title of each panel and the columns that it shows. A second column is drawn as points.
    """
    figure, panels = _figure(0.4 + 1.15 * len(curves), len(curves), sharex=True)
    for axes, (title, columns) in zip(np.atleast_1d(panels), curves.items(), strict=True):
        for column, style in zip(columns, ("-", "o"), strict=False):
            known = rows[["epoch", column]].dropna()
            style = "o" if len(known) == 1 else style
            color = _COLORS[columns.index(column)]
            axes.plot(known["epoch"], known[column], style, color=color, markersize=4)
        axes.set_title(title, loc="left")
        counts = is_integer_dtype(rows[columns[0]])
        if counts:
            axes.set_ylim(0, 1.15 * rows[columns[0]].max())
        axes.yaxis.set_major_locator(_ticks(4, integer=counts))
        axes.ticklabel_format(axis="y", useOffset=False, scilimits=(-3, 5))
        axes.grid(axis="y", alpha=0.3)
    axes.xaxis.set_major_locator(_ticks(6, integer=True))
    axes.set_xlabel("epoch")
    return figure


def draw_weights(groups: dict[str, np.ndarray]) -> "Figure":
    """Draw histograms of weights on a common scale, one below the other.

    Parameters
    ----------
    groups : dict of str to (P,)
        Title and weights of each histogram. No group is empty.
    """
    figure, panels = _figure(0.4 + 1.3 * len(groups), len(groups), sharex=True)
    top = max(weight.max() for weight in groups.values()) or 1.0
    edges = np.linspace(0, top, 41)
    for axes, color, (title, weight) in zip(
        np.atleast_1d(panels), (0, 1, 4), groups.items(), strict=False
    ):
        axes.hist(weight, bins=edges, color=_COLORS[color])
        axes.set_title(f"{len(weight):,} {title}", loc="left")
        axes.set_ylabel("pairs")
        _count(axes.yaxis)
    axes.set_xlabel("weight in A'")
    return figure


def draw_map(points: np.ndarray, groups: np.ndarray, names: np.ndarray) -> "Figure":
    """Draw points in the plane, with the colour and marker of their group.

    The names of large groups are written at their middle.

    Parameters
    ----------
    points : (M, 2)
    groups : int (M,)
    names : int (K,)
        Groups, the largest first.
    """
    figure, axes = _figure(4.2)
    size = float(np.clip(9000 / len(points), 5, 40))
    # Neighbours in this order differ in both; the numbers of markers and colours have no factor in
    # common, so that all pairs come up before one is repeated.
    looks = zip(itertools.cycle(_MARKERS), itertools.cycle(_COLORS), strict=False)
    for group, (marker, color) in zip(range(len(names)), looks, strict=False):
        x, y = points[groups == group].T
        axes.scatter(x, y, s=size, color=color, marker=marker, alpha=0.7, linewidths=0)
    for group in range(min(len(names), MOST_NAMED)):
        own = points[groups == group]
        if not len(own):
            continue
        # Written at a member, because the middle of two patches may belong to another group.
        middle = own[((own - np.median(own, axis=0)) ** 2).sum(1).argmin()]
        axes.annotate(
            str(names[group]), middle, xytext=(0, 9), textcoords="offset points", ha="center",
            va="center", fontsize=8, bbox={"boxstyle": "round,pad=0.2", "fc": "white", "lw": 0.5},
        )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    axes.set_aspect("equal", adjustable="datalim")
    return figure


def draw_sizes(names: np.ndarray, sizes: np.ndarray) -> "Figure":
    """Draw the sizes of the clusters as bars in the given order, with names if there are few."""
    figure, axes = _figure(2.4)
    axes.bar(np.arange(len(names)), sizes, width=0.8, color=_COLORS[0])
    if len(names) <= MOST_NAMED:
        axes.set_xticks(np.arange(len(names)), names, fontsize=9 if len(names) <= 15 else 7)
        axes.set_xlabel("cluster")
    else:
        axes.xaxis.set_major_locator(_ticks(6, integer=True))
        axes.set_xlabel("clusters, the largest first")
    axes.set_ylabel("nodes")
    _count(axes.yaxis)
    return figure


def draw_choice(curve: dict[int, float], label: str) -> "Figure":
    """Draw a score of whole numbers, and mark the highest score."""
    figure, axes = _figure(2.4)
    axes.plot(list(curve), list(curve.values()), "o-", color=_COLORS[0], markersize=4)
    best = max(curve, key=lambda number: curve[number])
    axes.plot(best, curve[best], "o", color=_COLORS[1], markersize=9, fillstyle="none")
    axes.xaxis.set_major_locator(_ticks(8, integer=True))
    axes.set_xlabel("clusters")
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)
    return figure


def _figure(height: float, rows: int = 1, **options: Any) -> tuple["Figure", Any]:
    """Return a figure and its axes: an array of them if there are several rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height))
    return figure, figure.subplots(rows, 1, **options)


def _ticks(most: int, **options: Any) -> "MaxNLocator":
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, **options)


def _count(axis: "Axis") -> None:
    """Set ticks for whole numbers of any size: 20, 5k, 2M."""
    from matplotlib.ticker import EngFormatter

    axis.set_major_locator(_ticks(4, integer=True))
    axis.set_major_formatter(EngFormatter(sep=""))
