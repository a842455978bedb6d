"""What one pass of USER gives."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch

from user_dgl.graph import Graph
from user_dgl.graph.propagation import Propagator


@dataclass(frozen=True, eq=False)
class State:
    """One forward pass of R replicas, which share one A' (S = 1) or have one each (S = R).

    Attributes
    ----------
    graph : Graph
        Pairs of A'.
    weights : tuple of S Tensors (P,)
        A'.
    observed : bool Tensor (P,)
    learnable : bool
    hidden : tuple of R Tensors (N, d)
        H of each encoder.
    propagations : tuple of S Propagations
        S that the encoders read.
    logits : Tensor (N, R, K)
        Before dropout.
    clusters : Tensor (N, R)
        Their arg max.
    assignment : Tensor (N, R, K)
        Y, rows sum to 1.
    supporting : callable or None
        Terms of the loss of each encoder by itself, for the observed graph, pairs drawn a node and
        a generator; None of a part of a graph.
    """

    graph: Graph
    weights: tuple[torch.Tensor, ...]
    observed: torch.Tensor
    learnable: bool
    hidden: tuple[torch.Tensor, ...]
    propagations: tuple[Propagator, ...]
    logits: torch.Tensor
    clusters: torch.Tensor
    assignment: torch.Tensor
    supporting: Callable[[Graph, int, torch.Generator | None], list[dict]] | None = None

    @cached_property
    def joined(self) -> torch.Tensor:
        """Y of all replicas side by side (N, R K); one view, so that gradients meet once."""
        num_nodes, num_replicas, num_clusters = self.assignment.shape
        return self.assignment.view(num_nodes, num_replicas * num_clusters)


def columns_of_each(copies, columns: torch.Tensor) -> list[tuple]:
    """Each A', or what stands for it, with the columns of the replicas that read it.

    Parameters
    ----------
    copies : sequence of S
        One for all replicas, or one for each.
    columns : Tensor (N, R K)
        Replica by replica.
    """
    if len(copies) == 1:
        return [(copies[0], columns)]
    blocks = columns.chunk(len(copies), 1)
    return [(copy, block.contiguous()) for copy, block in zip(copies, blocks, strict=True)]
