"""The normalised adjacency, and smoothing with it."""

from dataclasses import dataclass

import torch

from user_dgl.graph import Graph
from user_dgl.ops import neighbor_sum, weighted_degree


@dataclass(frozen=True, eq=False)
class Propagation:
    r"""Symmetric normalisation with self-loops, :math:`S = D^{-1/2} (A + I) D^{-1/2}`.

    Kept as pair weights and a scale of the nodes; S itself is never formed. A node without edges
    keeps its own row.

    Attributes
    ----------
    graph : Graph
    weight : Tensor (P,)
    scale : Tensor (N,)
        :math:`D^{-1/2}` with :math:`D = 1 +` weighted degree.
    engine : str
    """

    graph: Graph
    weight: torch.Tensor
    scale: torch.Tensor
    engine: str

    @classmethod
    def of(cls, graph: Graph, weight: torch.Tensor, engine: str) -> "Propagation":
        """S of a weighted graph."""
        scale = (1 + weighted_degree(graph, weight, engine)).rsqrt()
        return cls(graph, weight, scale, engine)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """S x for x (N, d)."""
        scale = self.scale[:, None]
        x = scale * x
        return scale * neighbor_sum(self.graph, self.weight, x, self.engine).add_(x)


def smooth(propagation: Propagation, x: torch.Tensor, hops: int, self_share: float) -> torch.Tensor:
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
        total = total + step
    return self_share * x + (1 - self_share) / hops * total
