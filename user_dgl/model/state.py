"""The output of one forward pass of USER."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch

from user_dgl.graph import Graph
from user_dgl.graph.propagation import Propagator

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class State:
    """One forward pass of R replicas.

    The replicas share one A' (S = 1), or each replica has its own A' (S = R).

    Attributes
    ----------
    graph : Graph
        Pairs of A'.
    weights : tuple of S Tensors (P,)
        Weights of each A'.
    observed : bool Tensor (P,)
        Whether the pair is an observed edge.
    learnable : bool
        Whether the weights of A' are trained.
    hidden : tuple of R Tensors (N, d)
        Output H of each encoder.
    propagations : tuple of S Propagators
        Matrices S that the encoders multiply with.
    logits : Tensor (N, R, K)
        Logits before dropout.
    clusters : Tensor (N, R)
        Arg max of the logits.
    assignment : Tensor (N, R, K)
        Memberships Y; each row adds up to 1.
    supporting : callable or None
        Computes the terms of each encoder's own loss. The arguments are the observed graph, the
        number of pairs drawn for each node, and a generator. None if the state is that of a part of
        a graph.
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
    supporting: (
        Callable[[Graph, int, torch.Generator | None], list[dict[str, torch.Tensor]]] | None
    ) = None

    @cached_property
    def joined(self) -> torch.Tensor:
        """Y of all replicas side by side (N, R K).

        All terms of the loss read this one view, so that autograd adds up their gradients at one
        place and always in the same order.
        """
        num_nodes, num_replicas, num_clusters = self.assignment.shape
        return self.assignment.view(num_nodes, num_replicas * num_clusters)


def columns_of_each(copies: Sequence[T], columns: torch.Tensor) -> list[tuple[T, torch.Tensor]]:
    """Combine each A' with the columns of the replicas that use it.

    Parameters
    ----------
    copies : sequence of S
        One object for each A', such as its weights or its propagation; S is 1 or R.
    columns : Tensor (N, R K)
        Columns of all replicas, replica by replica.
    """
    if len(copies) == 1:
        return [(copies[0], columns)]
    blocks = columns.chunk(len(copies), 1)
    return [(copy, block.contiguous()) for copy, block in zip(copies, blocks, strict=True)]
