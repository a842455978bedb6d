"""A graph in parts: METIS, the pairs and nodes that a part touches, and products with a part of S.

A part owns nodes. It touches every pair that has one of them, and the other ends of these pairs are
its halo. A pair that two parts touch is owned by the part of its smaller end.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass

import numpy as np
import torch

from user_dgl.graph import Graph


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


# Edges a node that METIS is given at most: its memory would be several times the training's.
METIS_EDGES_PER_NODE = 10
