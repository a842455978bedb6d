"""The normalised adjacency that encoders multiply with."""

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
        return scale * (neighbor_sum(self.graph, self.weight, x, self.engine) + x)
