"""The rows of one of several processes: `user_dgl.features.rows.Rows` over a communication."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.distributed.propagation import ShardPropagation
from user_dgl.distributed.ranks import Exchange, Ranks
from user_dgl.distributed.shards import RankData
from user_dgl.features.cosine import row_dots
from user_dgl.features.rows import M, Matrix, Rows
from user_dgl.graph import Graph
from user_dgl.graph.propagation import Propagator
from user_dgl.runtime.progress import steps

T = TypeVar("T")

# Values of rows that all ranks together fetch at a time for dot products.
_BLOCK_VALUES = 2**22


class ShardRows(Rows):
    """The rows of a rank.

    Every rank holds 6 bytes for each node of the whole graph: who owns it, and where.

    Parameters
    ----------
    data : RankData
    ranks : Ranks

    Attributes
    ----------
    graph : Graph
        Local graph of the observed pairs: the own nodes, then the halo.
    """

    def __init__(self, data: RankData, ranks: Ranks):
        part = data.shard.part
        self.alone = ranks.size == 1
        self._ranks, self._num_nodes, self._num_edges = ranks, data.num_nodes, data.num_observed
        plan = data.shard.nodes
        self._nodes = Exchange(ranks, plan.sent, plan.sent_counts, plan.received_counts)
        self._own = part.nodes[: part.num_owned].numpy()
        everyone = ranks.all_gather(self._own, "the nodes of all ranks")
        self._owner = np.empty(data.num_nodes, dtype=np.int16)
        self._place = np.empty(data.num_nodes, dtype=np.int32)
        for rank, nodes in enumerate(everyone):
            self._owner[nodes] = rank
            self._place[nodes] = np.arange(len(nodes))
        observed = data.observed
        self._edges = data.edges.numpy()
        self._owned = part.owned[observed].numpy()
        self._order = np.flatnonzero(self._owned)
        self._order = self._order[np.argsort(self._edges[self._order])]
        self.graph = Graph(
            len(part.nodes),
            part.src[observed],
            part.dst[observed],
            None if part.weight is None else part.weight[observed],
        )

    # --- sums and shared results

    def sum(self, x: np.ndarray) -> np.ndarray:
        total = torch.tensor(x)  # a copy
        return self._ranks.all_reduce_(total, "a sum over all nodes").numpy()

    def first(self, make: Callable[[], T]) -> T:
        return self._ranks.broadcast_from_first(make, "a result of rank 0")

    def share_out(self, tasks: Iterable[T], do: Callable[[T], Any]) -> list[Any]:
        every, size = list(tasks), self._ranks.size
        own = [do(task) for task in steps(every[self._ranks.rank :: size])]
        everyone = self._ranks.all_gather(own, "results of all ranks")
        return [everyone[number % size][number // size] for number in range(len(every))]

    def stacked(self, x: np.ndarray) -> tuple[np.ndarray, slice]:
        everyone = self._ranks.all_gather(x, "rows of all ranks")
        start = sum(map(len, everyone[: self._ranks.rank]))
        return np.concatenate(everyone), slice(start, start + len(x))

    # --- rows of nodes

    def own(self, values: np.ndarray) -> np.ndarray:
        return values[self._own]

    def all(self, values: np.ndarray) -> np.ndarray:
        return self._in_order(self._ranks.all_gather(values, "values of all nodes"))

    def by_first(self, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        everyone = self._ranks.gather(x, "the rows of all ranks")

        def make() -> np.ndarray:
            assert everyone is not None, "only the first rank computes this"
            return function(self._in_order(everyone))

        return self.own(self.first(make))

    def _in_order(self, everyone: list[np.ndarray]) -> np.ndarray:
        """Rows (N, ...) in the order of the nodes, of the rows that each rank has."""
        out = np.empty((self._num_nodes, *everyone[0].shape[1:]), dtype=everyone[0].dtype)
        for rank, rows in enumerate(everyone):
            here = self._owner == rank
            out[here] = rows[self._place[here]]
        return out

    def pick(self, x: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        out = np.zeros((len(nodes), *x.shape[1:]), dtype=x.dtype)
        here = self._owner[nodes] == self._ranks.rank
        out[here] = x[self._place[nodes[here]]]
        return self.sum(out)

    def extend(self, x: M) -> M:
        if isinstance(x, torch.Tensor):
            return self._nodes.extend(x, "rows of the halo")
        if isinstance(x, np.ndarray):
            return self._nodes.extend(torch.from_numpy(x), "rows of the halo").numpy()
        plan = self._nodes
        halo = self._exchanged(x, plan.sent.numpy(), plan.sent_counts, plan.received_counts)
        return sp.vstack([x, halo], format="csr")

    def pair_dots(self, x: Matrix, pairs: np.ndarray) -> np.ndarray:
        values = self.count(x.size if isinstance(x, np.ndarray) else x.nnz)
        size = max(1, _BLOCK_VALUES * self._num_nodes // max(1, values))
        dots = np.zeros(pairs.shape[1])
        for start in range(0, len(dots), size):
            block = pairs[:, start : start + size]
            # The owner of the first node of a pair computes its product.
            mine = np.flatnonzero(self._owner[block[0]] == self._ranks.rank)
            others, place = np.unique(block[1, mine], return_inverse=True)
            here, fetched = x[self._place[block[0, mine]]], self._fetched(x, others)
            dots[start + mine] = _dots(here, fetched, place.ravel())
        return self.sum(dots)

    def _fetched(self, x: Matrix, nodes: np.ndarray) -> Matrix:
        """Rows of nodes that any ranks own; each rank may ask for others."""
        order = np.argsort(self._owner[nodes], kind="stable")
        asked = np.bincount(self._owner[nodes], minlength=self._ranks.size)
        of_all = self._ranks.all_gather(asked, "how many rows each rank asks for")
        to_send = [int(counts[self._ranks.rank]) for counts in of_all]
        places = torch.empty(sum(to_send), dtype=torch.int32)
        wanted = torch.from_numpy(self._place[nodes[order]])
        self._ranks.exchange_rows(places, wanted, to_send, asked.tolist(), "the rows asked for")
        rows = self._exchanged(x, places.numpy(), to_send, asked.tolist())
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return rows[back]

    def _exchanged(
        self, x: Matrix, places: np.ndarray, sent: Iterable[int], received: Iterable[int]
    ) -> Matrix:
        """Send rows of x, those for rank 0 first, and return those of all ranks for this one."""
        rows, to, of = x[places], list(sent), list(received)

        def moved(values: np.ndarray, to: list[int], of: list[int]) -> np.ndarray:
            given = torch.from_numpy(values)
            out = given.new_empty(sum(of), *given.shape[1:])
            self._ranks.exchange_rows(out, given, of, to, "rows of other ranks")
            return out.numpy()

        if isinstance(rows, np.ndarray):
            return moved(rows, to, of)
        lengths = np.diff(rows.indptr).astype(np.int64)
        theirs = moved(lengths, to, of)
        entries_to, entries_of = _sums(lengths, to), _sums(theirs, of)
        data = moved(rows.data, entries_to, entries_of)
        indices = moved(rows.indices, entries_to, entries_of)
        indptr = np.append(0, np.cumsum(theirs))
        return sp.csr_matrix((data, indices, indptr), shape=(len(theirs), x.shape[1]))

    # --- the graph

    def num_edges(self, graph: Graph) -> int:
        return self._num_edges

    def pairs(self, values: np.ndarray) -> np.ndarray:
        return values[self._edges]

    def pick_pairs(self, values: np.ndarray, pairs: np.ndarray | None) -> np.ndarray:
        pairs = np.arange(self._num_edges) if pairs is None else pairs
        out = np.zeros((len(pairs), *values.shape[1:]), dtype=values.dtype)
        if len(pairs):
            order = np.argsort(pairs)
            # Both are sorted, which makes the search several times faster.
            own = self._edges[self._order]
            place = np.searchsorted(pairs, own, sorter=order).clip(max=len(pairs) - 1)
            place = order[place]
            here = pairs[place] == own
            out[place[here]] = values[self._order[here]]
        return self.sum(out)

    def count_pairs(self, which: np.ndarray) -> int:
        return self.count(int(which[self._owned].sum()))

    def mean_of_pairs(self, values: np.ndarray) -> float:
        own = np.array([values[self._owned].sum(dtype=np.float64)])
        return float(self.sum(own)[0]) / self._num_edges

    def propagation(self, graph: Graph, weight: torch.Tensor, engine: str) -> Propagator:
        return ShardPropagation(graph, weight, self._nodes, len(self._own), self._num_nodes, engine)

    def adjacency(self, graph: Graph) -> sp.csr_matrix:
        local = graph.to_scipy()[: len(self._own)]
        columns = self.extend(self._own)[local.indices]
        shape = (len(self._own), self._num_nodes)
        found = sp.csr_matrix((local.data, columns, local.indptr), shape=shape)
        found.sort_indices()
        return found

    def whole(self, graph: Graph) -> Graph | None:
        nodes = self.extend(self._own)
        ends = nodes[graph.src.numpy()[self._owned]], nodes[graph.dst.numpy()[self._owned]]
        weight = None if graph.weight is None else graph.weight.numpy()[self._owned]
        everyone = self._ranks.gather((*ends, weight), "the edges of all ranks")
        if everyone is None:
            return None
        u, v = (np.concatenate([each[i] for each in everyone]).astype(np.int64) for i in range(2))
        keys = np.minimum(u, v) * self._num_nodes + np.maximum(u, v)
        whole = Graph.from_keys(self._num_nodes, keys)
        if weight is None:
            return whole
        weights = np.concatenate([each[2] for each in everyone])
        return Graph(
            whole.num_nodes, whole.src, whole.dst, torch.from_numpy(weights[keys.argsort()])
        )


def _sums(lengths: np.ndarray, counts: list[int]) -> list[int]:
    """Sum of each run of ``counts`` lengths."""
    ends = np.cumsum(counts)
    total = np.append(0, np.cumsum(lengths))
    return (total[ends] - total[ends - counts]).tolist()


def _dots(left: Matrix, right: Matrix, place: np.ndarray) -> np.ndarray:
    """Dot product of each row of ``left`` with the row of ``right`` at ``place``."""
    if len(place) == 0:
        return np.zeros(0)
    both = sp.vstack([left, right], format="csr") if sp.issparse(left) else None
    if both is None:
        both = np.concatenate([left, right])
    every = np.arange(left.shape[0])
    return row_dots(both, every, left.shape[0] + place)
