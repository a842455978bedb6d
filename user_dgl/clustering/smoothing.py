"""Smoothing of features for several views, and projection to the leading components."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize

from user_dgl.features.rows import Rows
from user_dgl.graph import Graph
from user_dgl.graph.ops import weighted_degree
from user_dgl.graph.propagation import Propagator, smooth_each

# A product that is less than this share of the norms of its factors is rounding, also in float32.
_ROUNDING = 1e-5
# Least norm of the mean of real values whose rows have norm 1, and their constant if the norm is
# less, see `constant_of`.
_CONSTANT = 0.2


def to_power(graph: Graph, weight: torch.Tensor, power: float) -> torch.Tensor:
    r"""Weights of A' (P,), in which the ratio to the weights of A is raised to a power.

    With :math:`w` in A' and :math:`a` in A, the result is :math:`a (w / a)^p`.
    """
    if power == 1:
        return weight
    if graph.weight is None:
        return weight**power
    return graph.weight * (weight / graph.weight) ** power


class Smoothing(NamedTuple):
    """What makes S for a power of the weights of A'."""

    graph: Graph
    weight: torch.Tensor
    engine: str
    held: Rows

    def propagation(self, power: float, dtype: torch.dtype) -> Propagator:
        """S for the weights to a power."""
        weight = to_power(self.graph, self.weight, power).to(dtype)
        return self.held.propagation(self.graph, weight, self.engine)

    def neighbours(self, x: torch.Tensor) -> torch.Tensor:
        """Sums of the neighbours' rows of x (n, d), weighted by S for the weights of A'."""
        propagation = self.propagation(1.0, x.dtype)
        # All pairs of the own nodes, which come first, are in the local graph.
        degree = weighted_degree(self.graph, self.weight.to(x.dtype), self.engine)[: len(x)]
        return propagation(x).sub_(x / (1 + degree)[:, None])

    def views(
        self, x: torch.Tensor, views: list[tuple[int, float, float]]
    ) -> Iterator[tuple[tuple[int, float, float], torch.Tensor]]:
        """Smooth x (n, d) for each view: hops, own share, and power of the weights.

        Views that differ only in hops or share are smoothed once.
        """
        for power in dict.fromkeys(power for _, _, power in views):
            propagation = self.propagation(power, x.dtype)
            mixed = [(hops, share) for hops, share, own in views if own == power and share < 1]
            for place, smoothed in smooth_each(propagation, x, mixed):
                yield (*mixed[place], power), smoothed
            for hops, share, own in views:
                if own == power and share == 1:
                    yield (hops, share, power), x


class Projected(NamedTuple):
    """Axes (d, width) of a smoothed view, and the points on them with rows of norm 1."""

    axes: torch.Tensor
    embedding: np.ndarray


def projected(
    smoothed: torch.Tensor, basis: torch.Tensor | None, width: int, held: Rows
) -> Projected:
    """Project smoothed rows (n, d) to the leading right singular vectors of the rows of norm 1.

    The rows are first multiplied by a basis (d, c), if there is one.
    """
    rows = smoothed if basis is None else on_basis(smoothed, basis)
    rows = torch.nn.functional.normalize(rows, dim=1)
    # The vectors are the eigenvectors of a matrix (d, d), which takes one product to make.
    gram = torch.from_numpy(held.sum((rows.t() @ rows).double().numpy()))
    axes = torch.linalg.eigh(gram).eigenvectors[:, -width:].flip(1).to(rows.dtype)
    combined = axes if basis is None else basis @ axes
    # The sign of an axis is chance. Its largest entry is made positive, as in all processes.
    signs = combined.gather(0, combined.abs().argmax(0)[None]).sign()
    embedding = normalize(on_basis(rows, axes * signs).numpy(), copy=False)
    return Projected(combined * signs, embedding)


def constant_of(components: torch.Tensor, filled: torch.Tensor, held: Rows) -> float:
    """Constant that real values need as one more coordinate, or 0.

    Real values are often measured from their mean. Then a cluster near the mean has no direction:
    the sum of its nodes is nearly 0, and when rows are scaled to norm 1, only the noise of it is
    left. It has one if there is one more coordinate, the same for all nodes. On block models with
    40 to 128 columns, where 85 % of the nodes are one cluster, NMI is near 60 for many seeds
    without it, and 98 with it; and the number of clusters is found one too small without it, as K
    clusters around a mean of 0 span K - 1 dimensions. On citation graphs with real values, where
    clusters are of similar size, the mean NMI is the same with and without it. Constants of 0.2 and
    0.3 differ little; 0.15 is too little for some graphs with 40 columns. The critic compares nodes
    without it: with it, 3 to 5 points of NMI are lost where half of the edges are noise and there
    are 40 to 60 columns.

    Parameters
    ----------
    components : Tensor (n, d)
        Leading components of rows of norm 1.
    filled : bool Tensor (n,)
        Nodes with features. The others are 0.
    held : Rows

    Returns
    -------
    float
        0.2 of the norm of a row (root mean square), if the mean row is shorter than that; else 0.
    """
    total = held.sum(components.sum(0, dtype=torch.float64).numpy())
    squares = held.sum(components.square().sum(0, dtype=torch.float64).numpy()).sum()
    number = held.count(int(filled.sum()))
    # One process decides, because others may round differently.
    return held.first(lambda: _constant_for(total / max(1, number), squares / max(1, number)))


def _constant_for(mean: np.ndarray, square: float) -> float:
    return _CONSTANT * math.sqrt(square) if mean @ mean < _CONSTANT**2 * square else 0.0


def with_constant(components: torch.Tensor, filled: torch.Tensor, constant: float) -> torch.Tensor:
    """Put a constant column before components (n, d). Nodes that are not filled have 0 in it."""
    if not constant:
        return components
    return torch.cat([constant * filled[:, None].to(components), components], dim=1)


class Projection(NamedTuple):
    """How the points of nodes are made of their features.

    Attributes
    ----------
    matrix : Tensor (F, d)
        Applied to rows of norm 1: the features, or the adjacency in a view of the graph. If the
        randomised SVD has fewer components than the features have columns, the points are
        approximate.
    offset : Tensor (d,) or None
        Added to the points of nodes with features: the constant times its axis.
    """

    matrix: torch.Tensor
    offset: torch.Tensor | None = None

    @classmethod
    def of(cls, components: torch.Tensor, axes: torch.Tensor, constant: float) -> "Projection":
        """Join the axes (F, c) of the features to those of a view.

        The latter are (c, d), or (1 + c, d) if the view has a ``constant``.
        """
        if not constant:
            return cls(components @ axes)
        return cls(components @ axes[1:], constant * axes[0])

    def __call__(self, feat: sp.csr_matrix) -> torch.Tensor:
        """Points (M, d) of features (M, F)."""
        points = torch.from_numpy(normalize(feat) @ self.matrix.numpy())
        if self.offset is not None:
            points[torch.from_numpy(feat.getnnz(axis=1) > 0)] += self.offset.to(points)
        return points


def on_basis(x: torch.Tensor, basis: torch.Tensor) -> torch.Tensor:
    """Rows of x (n, d) times a basis (d, c); rows that have no part in the basis are 0."""
    return without_rounding(x @ basis, x.norm(dim=1) * torch.linalg.matrix_norm(basis))


def without_rounding(product: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """Set the rows (n, c) of a product to 0, in place, that are only its rounding.

    The rounding of a row must not become a direction when its norm is scaled to 1.

    Parameters
    ----------
    product : Tensor (n, c)
    largest : Tensor (n,) or ()
        Product of the norms of the factors, which the norm of a row cannot exceed.
    """
    product[product.norm(dim=1) <= _ROUNDING * largest] = 0
    return product
