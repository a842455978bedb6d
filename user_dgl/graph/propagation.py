"""Products with the normalised adjacency S, their interface, and smoothing with S."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import scipy.sparse as sp
import torch
from torch import nn

from user_dgl.graph import Graph
from user_dgl.graph.csr_engine import csr_tensor
from user_dgl.graph.ops import edge_dot, neighbor_sum, weighted_degree


class Propagator(Protocol):
    """Interface of S for encoders and heads: all of S, or the rows of S of some nodes.

    `Propagation` is S of a whole graph. `user_dgl.graph.part_propagation.PartPropagation` has the
    rows of a part of the graph, `user_dgl.distributed.propagation.ShardPropagation` those of one of
    several processes, and `user_dgl.training.out_of_sample.ExtendedPropagation` those of new nodes.
    The nodes of these rows are called own nodes. An encoder can be trained in parts if it calls
    `extend` after each layer.
    """

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the rows of S x of the own nodes; x (N, d) has all nodes that these rows need."""

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """Apply BatchNorm to a layer's output, with the statistics of all nodes of the graph."""

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Add rows of other nodes to a layer's output, so that a product with S can follow."""


@dataclass(frozen=True, eq=False)
class Propagation(Propagator):
    r"""Symmetric normalisation with self-loops, :math:`S = D^{-1/2} (A + I) D^{-1/2}`.

    S is stored as one weight for each pair and each node. A product with S then needs only one pass
    over the (N, d) block. The row of a node without edges is unchanged by the product.

    Attributes
    ----------
    graph : Graph
    off_diagonal : Tensor (P,)
        :math:`w_{\{u,v\}} / \sqrt{D_u D_v}` with :math:`D = 1 +` weighted degree.
    diagonal : Tensor (N,)
        :math:`D^{-1}`.
    engine : str
    """

    graph: Graph
    off_diagonal: torch.Tensor
    diagonal: torch.Tensor
    engine: str

    @classmethod
    def of(
        cls,
        graph: Graph,
        weight: torch.Tensor,
        engine: str,
        outside: torch.Tensor | None = None,
    ) -> "Propagation":
        """Make S of a weighted graph.

        If the graph is a part of a larger one, ``outside`` (N,) is the weighted degree of each node
        by edges that are not in the part.
        """
        degree = 1 + weighted_degree(graph, weight, engine)
        scale = (degree if outside is None else degree + outside).rsqrt()
        off_diagonal = weight * edge_dot(graph, scale[:, None], engine)
        return cls(graph, off_diagonal, scale.square(), engine)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Compute S x for x (N, d)."""
        return neighbor_sum(self.graph, self.off_diagonal, x, self.engine, self.diagonal)

    def matrix(self) -> torch.Tensor:
        """Convert S to a torch CSR tensor (N, N) on the CPU, without autograd.

        It is faster for many products with few columns, where calling this object takes longer than
        the arithmetic.
        """
        matrix = self.graph.to_scipy(self.off_diagonal) + sp.diags(self.diagonal.numpy())
        indptr, indices = torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices)
        return csr_tensor(indptr, indices, torch.from_numpy(matrix.data), matrix.shape)

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """Apply BatchNorm; x has the rows of all nodes."""
        return norm(x)

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Return the output unchanged, because it has the rows of all nodes."""
        return hidden


def smooth(propagation: Propagator, x: torch.Tensor, hops: int, self_share: float) -> torch.Tensor:
    r"""Smooth x over the graph: :math:`a x + \frac{1 - a}{K} \sum_{t=1}^K S^t x`.

    The smoothing of SSGC (Zhu and Koniusz, 2021), here on a weighted graph.

    Parameters
    ----------
    propagation : Propagation
    x : Tensor (N, d)
    hops : int
        K.
    self_share : float
        a.
    """
    step, total = x, torch.zeros_like(x)
    for _ in range(hops):
        step = propagation(step)
        total.add_(step)
    return total.mul_((1 - self_share) / hops).add_(x, alpha=self_share)


def smooth_each(
    propagation: Propagator, x: torch.Tensor, settings: Sequence[tuple[int, float]]
) -> Iterator[tuple[int, torch.Tensor]]:
    """Smooth x in several ways, each as `smooth` does, with the products of the longest one.

    Parameters
    ----------
    propagation : Propagation
    x : Tensor (N, d)
    settings : sequence of (int, float)
        Hops, 1 or more, and own share of each way.

    Yields
    ------
    int, Tensor (N, d)
        Place in ``settings``, and the smoothed x. Ways with fewer hops come first.
    """
    step, total = x, torch.zeros_like(x)
    for hop in range(1, max((hops for hops, _ in settings), default=0) + 1):
        step = propagation(step)
        total.add_(step)
        for place, (hops, share) in enumerate(settings):
            if hops == hop:
                yield place, (total * ((1 - share) / hops)).add_(x, alpha=share)
