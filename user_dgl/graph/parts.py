"""Division of a graph into parts: METIS, and the nodes and pairs of each part.

Each node is owned by one part. A part touches every pair that has at least one of its own nodes.
The ends of these pairs that other parts own are the halo of the part. If two parts own the ends of
a pair, both touch it, and the part of the end with the smaller id owns it.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass

import numpy as np
import torch

from user_dgl.graph.graph import Graph
from user_dgl.runtime.streams import Stream, stream_rng

# METIS gets at most this many edges a node; with more it would need several times the memory of the
# training.
METIS_EDGES_PER_NODE = 10


@dataclass(frozen=True, eq=False)
class Part:
    """Nodes and pairs of one part of a graph.

    Attributes
    ----------
    nodes : int64 Tensor (n + h,)
        Ids of the nodes that the part owns, ascending, then ids of its halo, sorted by the part
        that owns them and then ascending.
    num_owned : int
        n, the number of nodes that the part owns.
    pairs : int64 Tensor (p,)
        Positions, in the whole graph, of the pairs that the part touches, in the order of the
        edges of `graph`.
    owned : bool Tensor (p,)
        Whether the part owns the pair.
    src, dst : Tensor (p,)
        Ends of these pairs as positions in ``nodes``, in the order that `Graph` requires.
    weight : float32 Tensor (p,) or None
        Weights of these pairs in A; None if all are 1.
    """

    nodes: torch.Tensor
    num_owned: int
    pairs: torch.Tensor
    owned: torch.Tensor
    src: torch.Tensor
    dst: torch.Tensor
    weight: torch.Tensor | None = None

    @property
    def halo(self) -> torch.Tensor:
        """Ids of the nodes of the halo (h,)."""
        return self.nodes[self.num_owned :]

    def graph(self) -> Graph:
        """Graph of ``nodes`` with the pairs that the part touches.

        Each call builds a new `Graph`, because its CSR form needs more memory than the part.
        """
        return Graph(len(self.nodes), self.src, self.dst, self.weight)


def metis_assignment(graph: Graph, num_parts: int, seed: int) -> np.ndarray:
    """Assign each node (N,) to a part; parts have similar sizes and few edges between them.

    METIS (Karypis and Kumar, 1998), called through DGL. If the graph has more than ten edges a
    node, METIS gets a uniform sample of about that many edges, because on all of them it would need
    several times the memory of the training.

    The same graph may be cut in another way in another run, or later in the same one, because METIS
    as DGL has it depends on more than its input. Of 20 cuts of a graph of 120 nodes, 2 differed.

    Parameters
    ----------
    graph : Graph
    num_parts : int
    seed : int
        Seed of the sample of edges.

    Returns
    -------
    int64 ndarray (N,)
        Parts in 0..num_parts-1.

    Raises
    ------
    InputError
        DGL is not installed.
    """
    if num_parts == 1 or not graph.num_edges:
        return np.arange(graph.num_nodes) * num_parts // max(graph.num_nodes, 1)
    from user_dgl._dgl import dgl

    src, dst = graph.src.long(), graph.dst.long()
    most = METIS_EDGES_PER_NODE * graph.num_nodes
    if graph.num_edges > most:
        rng = stream_rng(seed, Stream.METIS_EDGES)
        kept = rng.random(graph.num_edges) < most / graph.num_edges
        src, dst = src[torch.from_numpy(kept)], dst[torch.from_numpy(kept)]
    both = torch.cat([src, dst]), torch.cat([dst, src])
    seen = dgl.graph(both, num_nodes=graph.num_nodes)
    with _silence():
        return dgl.metis_partition_assignment(seen, num_parts).numpy()


@contextmanager
def _silence() -> Iterator[None]:
    """Discard what is written to standard output and standard error.

    DGL reports its progress there, in Python and in C, so the file descriptors are redirected.
    """
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
    """Batch (N,) of each node; a batch is ``per_batch`` parts chosen at random.

    Parameters
    ----------
    assignment : int ndarray (N,)
        Part of each node.
    num_parts, per_batch, seed : int
    """
    place = np.empty(num_parts, dtype=np.int64)
    place[stream_rng(seed, Stream.BATCHES).permutation(num_parts)] = np.arange(num_parts)
    return place[assignment] // per_batch


def parts_of(graph: Graph, assignment: np.ndarray, num_parts: int) -> list[Part]:
    """Build the parts of an assignment (N,) of nodes to 0..num_parts-1; empty parts are omitted."""
    src, dst = graph.src.numpy(), graph.dst.numpy()
    # Sorting once costs as much as a few passes over all pairs. There may be thousands of parts.
    assignment = assignment.astype(np.min_scalar_type(num_parts))
    part_of_src, part_of_dst = assignment[src], assignment[dst]
    cut = np.flatnonzero(part_of_src != part_of_dst)
    nodes_of = _by_part(assignment, num_parts)
    pairs_of_src = _by_part(part_of_src, num_parts)
    cut_pairs_of_dst = [cut[rows] for rows in _by_part(part_of_dst[cut], num_parts)]
    place = np.full(graph.num_nodes, -1, dtype=np.int64)
    parts = []
    for number, own_nodes in enumerate(nodes_of):
        if not len(own_nodes):
            continue
        pairs = np.sort(np.concatenate([pairs_of_src[number], cut_pairs_of_dst[number]]))
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
                None if graph.weight is None else graph.weight[torch.from_numpy(pairs)],
            )
        )
    return parts


def _by_part(part_of_row: np.ndarray, num_parts: int) -> list[np.ndarray]:
    """Ascending row numbers of each part, given the part (n,) of each row."""
    order = np.argsort(part_of_row, kind="stable")
    return np.split(order, np.searchsorted(part_of_row[order], np.arange(1, num_parts)))
