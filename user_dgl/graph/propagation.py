"""The normalised adjacency, what stands for it on parts of a graph, and smoothing with it."""

from dataclasses import dataclass
from typing import Protocol

import scipy.sparse as sp
import torch
from torch import nn

from user_dgl.graph import Graph
from user_dgl.graph.csr_engine import csr_tensor
from user_dgl.graph.ops import edge_dot, neighbor_sum, weighted_degree


class Propagator(Protocol):
    """What encoders and heads multiply with: S, or S as far as some rows of it are at hand.

    `Propagation` is S of a whole graph. `user_dgl.graph.part_propagation.PartPropagation` answers
    for a part of it, `user_dgl.distributed.propagation.ShardPropagation` for one of several
    processes, `user_dgl.training.out_of_sample.ExtendedPropagation` for nodes that are new. An
    encoder that calls `extend` after each layer can be trained in parts.
    """

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Rows of S x of the own nodes, for x (N, d) of all nodes that these rows read."""

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """BatchNorm of the output of a layer by the statistics of all nodes of the graph."""

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """The output of a layer for the own nodes, and for all others that a product reads."""


@dataclass(frozen=True, eq=False)
class Propagation(Propagator):
    r"""Symmetric normalisation with self-loops, :math:`S = D^{-1/2} (A + I) D^{-1/2}`.

    Kept as one weight for each pair and each node: a product with S then needs no pass over its
    (N, d) block beside the one over the pairs. A node without edges keeps its own row.

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
        """S of a weighted graph; of a part of one, ``outside`` (N,) is the degree beyond it."""
        degree = 1 + weighted_degree(graph, weight, engine)
        scale = (degree if outside is None else degree + outside).rsqrt()
        off_diagonal = weight * edge_dot(graph, scale[:, None], engine)
        return cls(graph, off_diagonal, scale.square(), engine)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """S x for x (N, d)."""
        return neighbor_sum(self.graph, self.off_diagonal, x, self.engine, self.diagonal)

    def matrix(self) -> torch.Tensor:
        """S as a torch CSR tensor (N, N) without autograd, on the CPU.

        For many products with thin blocks, of which a call takes longer than the arithmetic.
        """
        matrix = self.graph.to_scipy(self.off_diagonal) + sp.diags(self.diagonal.numpy())
        parts = (matrix.indptr, matrix.indices, matrix.data)
        return csr_tensor(*map(torch.from_numpy, parts), matrix.shape)

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """BatchNorm by the statistics of all nodes."""
        return norm(x)

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """The output as it is: it has the rows of all nodes."""
        return hidden


def smooth(propagation: Propagator, x: torch.Tensor, hops: int, self_share: float) -> torch.Tensor:
    r"""Mean over neighbourhoods of all sizes, :math:`a x + \frac{1 - a}{K} \sum_{t=1}^K S^t x`.

    Smoothing of SSGC (Zhu and Koniusz, 2021), here on a weighted graph.

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
