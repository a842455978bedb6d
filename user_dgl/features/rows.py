"""The nodes that a process owns, and what it needs of the others: sums, rows, random draws.

The stages before training are written for one of several processes, each of which has the rows of
its own nodes. `Rows` is what they ask of the other processes. With a single process, all rows are
its own, and there is nothing to ask for. `user_dgl.distributed.rows.ShardRows` is one of several.

A *local graph* has the own nodes first, then the nodes that their pairs touch (the halo), and all
pairs that touch an own node. Values of pairs follow its order.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.features.cosine import row_dots
from user_dgl.graph import Graph
from user_dgl.graph.propagation import Propagation, Propagator
from user_dgl.runtime.progress import steps

T = TypeVar("T")
Matrix: TypeAlias = sp.csr_matrix | np.ndarray
M = TypeVar("M", np.ndarray, torch.Tensor, sp.csr_matrix)


class Rows:
    """All rows, in a single process.

    Every process calls the same methods in the same order, and gets the same value from those that
    do not say otherwise.
    """

    # Whether there is no other process.
    alone = True

    # --- sums and shared results

    def sum(self, x: np.ndarray) -> np.ndarray:
        """Sum of an array over the processes."""
        return x

    def count(self, number: int) -> int:
        """Sum of a number over the processes."""
        return int(self.sum(np.array([number]))[0])

    def first(self, make: Callable[[], T]) -> T:
        """Result of ``make``, which only the first process calls."""
        return make()

    def share_out(self, tasks: Iterable[T], do: Callable[[T], Any]) -> list[Any]:
        """Results of ``do`` for each task; each task is done by one process."""
        return [do(task) for task in steps(list(tasks))]

    def stacked(self, x: np.ndarray) -> tuple[np.ndarray, slice]:
        """Rows of all processes, one after the other, and where the own are."""
        return x, slice(None)

    # --- rows of nodes

    def own(self, values: np.ndarray) -> np.ndarray:
        """Values (n, ...) of the own nodes, of the values (N, ...) of all nodes."""
        return values

    def all(self, values: np.ndarray) -> np.ndarray:
        """Values (N, ...) of all nodes, of the values (n, ...) that each process has of its own."""
        return values

    def by_first(self, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Own rows of what the first process computes from the rows of all nodes."""
        return function(x)

    def pick(self, x: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Rows of some nodes (S,), of the own rows x (n, ...) of each process."""
        return x[nodes]

    def extend(self, x: M) -> M:
        """Rows of the own nodes, and then of the halo, of the own rows x (n, ...)."""
        return x

    def pair_dots(self, x: Matrix, pairs: np.ndarray) -> np.ndarray:
        """Dot products (P,) of the rows of any pairs (2, P), of the own rows x (n, d)."""
        return row_dots(x, *pairs)

    # --- the graph

    def num_edges(self, graph: Graph) -> int:
        """Number of pairs of the whole graph, of a local graph."""
        return graph.num_edges

    def pairs(self, values: np.ndarray) -> np.ndarray:
        """Values of the pairs of the local graph, of the values (E, ...) of all pairs."""
        return values

    def pick_pairs(self, values: np.ndarray, pairs: np.ndarray | None) -> np.ndarray:
        """Values of distinct pairs (S,), or of all, of those that the local graph's pairs have."""
        return values if pairs is None else values[pairs]

    def count_pairs(self, which: np.ndarray) -> int:
        """Number of pairs of the whole graph for which ``which`` is true in the local graphs."""
        return int(which.sum())

    def mean_of_pairs(self, values: np.ndarray) -> float:
        """Mean over the pairs of the whole graph of the values in the local graphs."""
        return values.mean()

    def propagation(self, graph: Graph, weight: torch.Tensor, engine: str) -> Propagator:
        """S of the graph, which maps own rows to own rows."""
        return Propagation.of(graph, weight, engine)

    def adjacency(self, graph: Graph) -> sp.csr_matrix:
        """Rows (n, N) of the adjacency of the whole graph, which belong to the own nodes."""
        return graph.to_scipy()

    def whole(self, graph: Graph) -> Graph | None:
        """The whole graph in the first process, None in the others."""
        return graph


ALL = Rows()
