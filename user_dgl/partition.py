"""A graph in parts: METIS, the pairs and nodes that a part touches, and products with a part of S.

A part owns nodes. It touches every pair that has one of them, and the other ends of these pairs are
its halo. A pair that two parts touch is owned by the part of its smaller end.
"""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from user_dgl.graph import Graph
from user_dgl.memory import METIS_EDGES_PER_NODE
from user_dgl.propagation import Propagation


@dataclass(frozen=True, eq=False)
class Part:
    """What a part of a graph touches.

    Attributes
    ----------
    nodes : int64 Tensor (n + h,)
        Ids of its own nodes, ascending, then of its halo, by part and then ascending.
    num_owned : int
        n.
    pairs : int64 Tensor (p,)
        Positions in the whole graph of the pairs that it touches, in the order of ``graph``.
    owned : bool Tensor (p,)
        Which of them it owns.
    src, dst : Tensor (p,)
        Their ends as places in ``nodes``, as `Graph` wants them.
    """

    nodes: torch.Tensor
    num_owned: int
    pairs: torch.Tensor
    owned: torch.Tensor
    src: torch.Tensor
    dst: torch.Tensor

    @property
    def halo(self) -> torch.Tensor:
        """Ids of the halo (h,)."""
        return self.nodes[self.num_owned :]

    def graph(self) -> Graph:
        """The pairs among ``nodes``; made anew, as its CSR form is larger than a part itself."""
        return Graph(len(self.nodes), self.src, self.dst)


def metis_assignment(graph: Graph, num_parts: int, seed: int) -> np.ndarray:
    """Part (N,) of each node, of about equal sizes, few edges between parts.

    METIS (Karypis and Kumar, 1998) as DGL calls it. Of a graph with more than ten edges a node it
    sees a uniform draw of that many: its memory would be several times that of the training.

    Parameters
    ----------
    graph : Graph
    num_parts : int
    seed : int
    """
    if num_parts == 1 or not graph.num_edges:
        return np.arange(graph.num_nodes) * num_parts // max(graph.num_nodes, 1)
    from user_dgl._dgl import dgl

    src, dst = graph.src.long(), graph.dst.long()
    most = METIS_EDGES_PER_NODE * graph.num_nodes
    if graph.num_edges > most:
        rng = np.random.default_rng([seed, 4])
        kept = rng.random(graph.num_edges) < most / graph.num_edges
        src, dst = src[torch.from_numpy(kept)], dst[torch.from_numpy(kept)]
    both = torch.cat([src, dst]), torch.cat([dst, src])
    seen = dgl.graph(both, num_nodes=graph.num_nodes)
    with _silence():
        return dgl.metis_partition_assignment(seen, num_parts).numpy()


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing to standard output and error: DGL reports its progress there, from C too."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def grouped(assignment: np.ndarray, num_parts: int, per_batch: int, seed: int) -> np.ndarray:
    """Batch (N,) of each node, parts joined at random, ``per_batch`` at a time."""
    place = np.empty(num_parts, dtype=np.int64)
    place[np.random.default_rng([seed, 5]).permutation(num_parts)] = np.arange(num_parts)
    return place[assignment] // per_batch


def parts_of(graph: Graph, assignment: np.ndarray, num_parts: int) -> list[Part]:
    """The parts of an assignment (N,) of nodes to 0..num_parts-1, without those that are empty."""
    src, dst = graph.src.numpy(), graph.dst.numpy()
    part_of_src, part_of_dst = assignment[src], assignment[dst]
    place = np.full(graph.num_nodes, -1, dtype=np.int64)
    parts = []
    for number in range(num_parts):
        own_nodes = np.flatnonzero(assignment == number)
        if not len(own_nodes):
            continue
        pairs = np.flatnonzero((part_of_src == number) | (part_of_dst == number))
        u, v = src[pairs], dst[pairs]
        outside = np.concatenate([u[part_of_src[pairs] != number], v[part_of_dst[pairs] != number]])
        halo = np.unique(outside)
        halo = halo[np.argsort(assignment[halo], kind="stable")]
        nodes = np.concatenate([own_nodes, halo])
        place[nodes] = np.arange(len(nodes))
        u, v = place[u], place[v]
        keys = np.minimum(u, v) * len(nodes) + np.maximum(u, v)
        order = np.argsort(keys)
        low, high = np.divmod(keys[order], len(nodes))
        pairs = pairs[order]
        parts.append(
            Part(
                torch.from_numpy(nodes),
                len(own_nodes),
                torch.from_numpy(pairs),
                torch.from_numpy(part_of_src[pairs] == number),
                torch.from_numpy(low.astype(src.dtype)),
                torch.from_numpy(high.astype(src.dtype)),
            )
        )
    return parts


class PartPropagation:
    """Stands for a `Propagation` where only the nodes of a part are at hand.

    Parameters
    ----------
    propagation : Propagation
        S on the nodes of the part and its halo.
    part : Part
    halo_of : callable
        Layer -> what it gave last for the halo (h, d).
    others_of : callable
        Layer -> `Moments` of what it gave last for all nodes but those of the part.

    Attributes
    ----------
    hidden : dict of int to Tensor (n, d)
        What each layer gave for the nodes owned.
    moments : dict of int to Moments
        Theirs, before BatchNorm.
    """

    def __init__(
        self,
        propagation: Propagation,
        part: Part,
        halo_of: Callable[[int], torch.Tensor],
        others_of: Callable[[int], "Moments"],
    ):
        self._propagation, self._part = propagation, part
        self._halo_of, self._others_of = halo_of, others_of
        self.hidden: dict[int, torch.Tensor] = {}
        self.moments: dict[int, Moments] = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Rows of S x of the nodes owned, (n, d), for x (n + h, d)."""
        return self._propagation(x)[: self._part.num_owned]

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """BatchNorm by the statistics of all nodes: the part's now, the others' as they were."""
        own = Moments.of(x)
        self.moments[layer] = own.detach()
        moments = own + self._others_of(layer)
        scale = (moments.deviation / moments.count + norm.eps).rsqrt() * norm.weight
        return (x - moments.mean) * scale + norm.bias

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Rows of the nodes owned, then of the halo as its parts gave them last."""
        self.hidden[layer] = hidden.detach()
        return torch.cat([hidden, self._halo_of(layer)])


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean (d,) and summed squared deviation from it (d,) of rows; they add up.

    By the formulas of Chan, Golub and LeVeque (1983), which lose no digits where the mean is large.
    """

    count: int
    mean: torch.Tensor
    deviation: torch.Tensor

    @classmethod
    def of(cls, x: torch.Tensor) -> "Moments":
        """Moments of the rows of x."""
        mean = x.mean(0)
        return cls(len(x), mean, (x - mean).square().sum(0))

    def __add__(self, other: "Moments") -> "Moments":
        count = self.count + other.count
        if not other.count:
            return self
        if not self.count:
            return other
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * (other.count / count),
            self.deviation + other.deviation + apart.square() * (self.count * other.count / count),
        )

    def detach(self) -> "Moments":
        """The same numbers as constants."""
        return Moments(self.count, self.mean.detach(), self.deviation.detach())
