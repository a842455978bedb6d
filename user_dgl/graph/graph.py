"""The class `Graph`: an undirected graph stored as pairs, with its symmetric CSR form.

A graph stores each undirected pair once, with ``src < dst``, sorted by (src, dst). Position ``e``
of any (E,) tensor of edge weights therefore means the same pair everywhere, and the learned
adjacency is always symmetric (A' = A'^T). In this order the pairs are the upper triangle of the
adjacency in CSR order. The full CSR has both directions of every pair, 2E entries, and
`Graph.pair_of_entry` maps each entry to its pair.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike

from user_dgl.errors import InputError

_INT32_MAX = 2**31 - 1
# The keys u * N + v of more nodes do not fit int64.
_MOST_NODES = 3_037_000_499


@dataclass(frozen=True)
class Cleaning:
    """What `Graph.from_edges` removed from the given entries.

    Attributes
    ----------
    self_loops : int
        Entries that were dropped because both ends are the same node.
    repeated : int
        Entries that were merged with an earlier entry of the same pair, in either direction.
    """

    self_loops: int = 0
    repeated: int = 0

    def __str__(self) -> str:
        parts = []
        if self.self_loops:
            parts.append(f"{self.self_loops} self-loop entries dropped")
        if self.repeated:
            parts.append(f"{self.repeated} repeated or reversed entries merged")
        return ", ".join(parts)


def index_dtype(num_nodes: int, num_pairs: int) -> torch.dtype:
    """Return int32 if node ids and positions in the 2E directed entries fit in it, else int64."""
    return torch.int32 if max(num_nodes, 2 * num_pairs) <= _INT32_MAX else torch.int64


@dataclass(frozen=True, eq=False)
class Graph:
    """Undirected graph without self-loops and repeated edges; edges may have weights.

    Attributes
    ----------
    num_nodes : int
        N, including nodes without edges.
    src, dst : Tensor (E,)
        The two ends of each pair, ``src < dst``, sorted by (src, dst), int32 or int64.
    weight : float32 Tensor (E,) or None
        Positive weight of each edge in A, with a mean near 1, so that they add up to about E and
        compare with the self-loops of weight 1 that smoothing adds. None means that all are 1.
    unit : float
        What a weight of 1 is in the data: the mean of the weights that they give.
    """

    num_nodes: int
    src: torch.Tensor
    dst: torch.Tensor
    weight: torch.Tensor | None = None
    unit: float = 1.0

    @classmethod
    def from_edges(
        cls, num_nodes: int, u: ArrayLike, v: ArrayLike, weight: ArrayLike | None = None
    ) -> tuple["Graph", Cleaning]:
        """Build a graph from entries in any order and direction.

        Parameters
        ----------
        num_nodes : int
        u, v : array-like of int (M,)
            The two ends of each entry. Self-loops are dropped. Repeated and reversed entries are
            merged.
        weight : array-like of float (M,), optional
            Positive weight of each entry, in any unit. Merged entries get the mean of their
            weights. The weights of the graph are these, divided by their mean.

        Returns
        -------
        Graph, Cleaning

        Raises
        ------
        InputError
            ``u`` and ``v`` are not two equally long lists of whole numbers, or an end is outside
            0..num_nodes-1, or the keys of so many nodes are no int64. The weights are not positive,
            not finite or not as many.

        >>> graph, cleaning = Graph.from_edges(3, [0, 1, 1], [1, 0, 1])
        >>> graph.num_edges, str(cleaning)
        (1, '1 self-loop entries dropped, 1 repeated or reversed entries merged')
        >>> Graph.from_edges(3, [0, 1], [1, 2], weight=[10, 30])[0].weight.tolist()
        [0.5, 1.5]
        """
        if num_nodes > _MOST_NODES:
            raise InputError(f"a graph of {num_nodes} nodes: at most {_MOST_NODES} are possible")
        first, second = _ids(u), _ids(v)
        if first.shape != second.shape or first.ndim != 1:
            raise InputError(
                f"edges: expected two equally long lists, got {first.shape} and {second.shape}"
            )
        if len(first):
            low, high = min(first.min(), second.min()), max(first.max(), second.max())
            if low < 0 or high >= num_nodes:
                raise InputError(
                    f"edges: node ids {low}..{high} do not fit a graph of {num_nodes} nodes "
                    f"(0..{num_nodes - 1})"
                )
        strength = None if weight is None else _positive(weight, len(first))
        proper = first != second
        loops = len(first) - int(proper.sum())
        if loops:
            first, second = first[proper], second[proper]
            strength = None if strength is None else strength[proper]
        keys = pair_keys(num_nodes, first, second)
        if strength is None:
            graph = cls.from_keys(num_nodes, keys)
        else:
            keys, mean, unit = _mean_weight(keys, strength)
            graph = replace(cls._of_ascending(num_nodes, keys), weight=mean, unit=unit)
        return graph, Cleaning(loops, len(first) - graph.num_edges)

    @classmethod
    def from_keys(cls, num_nodes: int, keys: np.ndarray) -> "Graph":
        """Build a graph from int64 keys ``src * num_nodes + dst`` with src < dst.

        The keys may be in any order and may repeat.
        """
        # np.unique is not used: it hashes integers, which is many times slower than sorting where
        # most keys are distinct.
        return cls._of_ascending(num_nodes, _distinct(np.sort(keys)))

    @classmethod
    def _of_ascending(cls, num_nodes: int, keys: np.ndarray) -> "Graph":
        """Build a graph from distinct keys in ascending order."""
        dtype = index_dtype(num_nodes, len(keys))
        width = np.int32 if dtype == torch.int32 else np.int64
        # NumPy has no vector instructions for divmod.
        src = keys // max(num_nodes, 1)
        dst = keys - src * num_nodes
        return cls(
            num_nodes, torch.from_numpy(src.astype(width)), torch.from_numpy(dst.astype(width))
        )

    def weighted_like(
        self, known: "Graph", others: Callable[[int], np.ndarray] | None = None
    ) -> "Graph":
        """Return this graph with the weights that its edges have in another graph of its nodes.

        Parameters
        ----------
        known : Graph
            Graph with the weights.
        others : callable, optional
            Gets the number of edges that ``known`` does not have, and returns their weights.
            Default: 1 each.
        """
        if known.weight is None:
            return self
        place = known.positions(self.keys)
        found = place >= 0
        weight = np.ones(self.num_edges, dtype=np.float32)
        weight[found] = known.weight.cpu().numpy()[place[found]]
        if others is not None:
            weight[~found] = others(int((~found).sum()))
        return replace(self, weight=torch.from_numpy(weight), unit=known.unit)

    @property
    def edge_weight(self) -> torch.Tensor:
        """Weight of each edge (E,), float32. Each access builds it again if all are 1."""
        if self.weight is not None:
            return self.weight
        return torch.ones(self.num_edges, device=self.src.device)

    @property
    def data_weight(self) -> torch.Tensor | None:
        """Weight of each edge in the unit of the data (E,); None if all are equal.

        float32, or float64 where a weight is too large or too small for float32.
        """
        if self.weight is None:
            return None
        weight = self.weight.double() * self.unit
        single, limits = weight.float(), torch.finfo(torch.float32)
        fits = (single >= limits.tiny) & (single <= limits.max)
        return single if bool(fits.all()) else weight

    @property
    def num_edges(self) -> int:
        """E, the number of undirected pairs."""
        return len(self.src)

    @property
    def keys(self) -> np.ndarray:
        """Sorted int64 keys ``src * num_nodes + dst`` (E,).

        Each access computes them again (8 bytes a pair).
        """
        src, dst = self.src.cpu().numpy(), self.dst.cpu().numpy()
        return src.astype(np.int64) * self.num_nodes + dst

    @cached_property
    def upper_indptr(self) -> torch.Tensor:
        """Row pointer (N + 1,) of the upper triangle, whose column indices are `dst`."""
        counts = torch.bincount(self.src, minlength=self.num_nodes)
        return _pointer(counts, self.src.dtype)

    @cached_property
    def _entries(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The properties `indptr`, `indices` and `pair_of_entry`."""
        src, dst = self.src.numpy(), self.dst.numpy()
        pair = np.arange(self.num_edges, dtype=src.dtype)
        # scipy's conversion keeps the order of the entries within each row. The lower triangle
        # comes first, and for each dst its sources ascend, so every row is sorted.
        matrix = sp.coo_matrix(
            (
                np.concatenate([pair, pair]),
                (np.concatenate([dst, src]), np.concatenate([src, dst])),
            ),
            shape=(self.num_nodes, self.num_nodes),
        ).tocsr()
        width = src.dtype
        return (
            torch.from_numpy(matrix.indptr.astype(width, copy=False)),
            torch.from_numpy(matrix.indices.astype(width, copy=False)),
            torch.from_numpy(matrix.data.astype(width, copy=False)),
        )

    @property
    def indptr(self) -> torch.Tensor:
        """Row pointer (N + 1,) of the symmetric CSR."""
        return self._entries[0]

    @property
    def indices(self) -> torch.Tensor:
        """Column indices (2E,) of the symmetric CSR, sorted in each row."""
        return self._entries[1]

    @property
    def pair_of_entry(self) -> torch.Tensor:
        """Position (2E,) of the pair that each entry of the symmetric CSR belongs to."""
        return self._entries[2]

    @cached_property
    def degree(self) -> torch.Tensor:
        """Number of neighbours of each node (N,), int64."""
        if "_entries" in self.__dict__:
            return (self.indptr[1:] - self.indptr[:-1]).long()
        # Readers of large files need no more than this, and the symmetric CSR takes longer.
        ends = (self.src, self.dst)
        first, second = (torch.bincount(end, minlength=self.num_nodes) for end in ends)
        return first + second

    def to(self, device: str | torch.device) -> "Graph":
        """Return the graph with its pairs and its CSR form on a device."""
        if self.src.device == torch.device(device):
            return self
        weight = None if self.weight is None else self.weight.to(device)
        src, dst = self.src.to(device), self.dst.to(device)
        moved = Graph(self.num_nodes, src, dst, weight, self.unit)
        # scipy builds the CSR on the CPU, so it is moved and not built again. cached_property
        # stores its value in __dict__.
        moved.__dict__["_entries"] = tuple(part.to(device) for part in self._entries)
        return moved

    def positions(self, keys: np.ndarray) -> np.ndarray:
        """Position of each key among the pairs of this graph, int64; -1 if it is no edge."""
        if not self.num_edges:
            return np.full(len(keys), -1, dtype=np.int64)
        own = self.keys
        place = np.searchsorted(own, keys)
        inside = place < self.num_edges
        found = inside & (own[np.where(inside, place, 0)] == keys)
        return np.where(found, place, -1)

    def to_scipy(self, weight: torch.Tensor | None = None) -> sp.csr_matrix:
        """Symmetric scipy CSR (N, N) with entries ``weight`` (E,), by default the graph's own.

        The matrix shares no memory with the graph.
        """
        weight = self.weight if weight is None else weight
        if weight is None:
            data = np.ones(2 * self.num_edges, dtype=np.float32)
        else:
            data = weight.detach().cpu().numpy()[self.pair_of_entry.cpu().numpy()]
        return sp.csr_matrix(
            # Copied, because methods of scipy such as eliminate_zeros change arrays in place.
            (data, self.indices.cpu().numpy().copy(), self.indptr.cpu().numpy().copy()),
            shape=(self.num_nodes, self.num_nodes),
        )


def pair_keys(num_nodes: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Keys ``src * num_nodes + dst`` with src < dst, int64, of pairs with ends in any order."""
    u, v = u.astype(np.int64, copy=False), v.astype(np.int64, copy=False)
    keys = np.minimum(u, v)
    keys *= num_nodes
    keys += np.maximum(u, v)
    return keys


def _ids(values: ArrayLike) -> np.ndarray:
    """Convert node ids to int64.

    Other types than integers are refused, because NumPy's conversion would turn 0.7 into 0.
    """
    values = np.asarray(values)
    if values.size and values.dtype.kind not in "iu":
        raise InputError(f"edges: expected whole numbers as node ids, got {values.dtype} values")
    return values.astype(np.int64, copy=False)


def _positive(weight: ArrayLike, number: int) -> np.ndarray:
    """Convert weights to float64 (M,), and check that they are positive and finite."""
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (number,):
        raise InputError(f"edges: {number} entries, but weights of shape {values.shape}")
    # NaN makes both comparisons false.
    if number and not (values.min() > 0 and values.max() < np.inf):
        bad = ~(np.isfinite(values) & (values > 0))
        raise InputError(f"edges: weight {values[bad][0]:g}: expected a positive number")
    return values


def _starts(ascending: np.ndarray) -> np.ndarray:
    """Positions at which a new value begins among ascending values."""
    return np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)])


def _distinct(ascending: np.ndarray) -> np.ndarray:
    """Drop the repeats from ascending values."""
    starts = _starts(ascending)
    return ascending if len(starts) == len(ascending) else ascending[starts]


def _sorted_with_order(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return keys of 0 or more in ascending order, and the position at which each one stood."""
    bits = len(keys).bit_length()
    if (int(keys.max()) + 1) << bits > 2**64:
        order = np.argsort(keys)  # a stable sort takes three times as long
        return keys[order], order
    # Key and position in one number: numbers are sorted several times faster than positions.
    packed = keys.astype(np.uint64)
    packed <<= np.uint64(bits)
    packed |= np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64((1 << bits) - 1)).view(np.int64)
    packed >>= np.uint64(bits)
    return packed.view(np.int64), order


def _mean_weight(
    keys: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, torch.Tensor | None, float]:
    """Distinct keys in ascending order, and the mean weight of each over the mean of all.

    The weights are None if all are equal. The last value is the mean of all.
    """
    if not len(keys):
        return keys, None, 1.0
    largest = float(weight.max())
    if weight.min() == largest:
        return _distinct(np.sort(keys)), None, largest
    keys, order = _sorted_with_order(keys)
    mean = weight[order]
    # Division by the largest weight first: sums of huge weights would overflow.
    mean /= largest
    starts = _starts(keys)
    if len(starts) < len(keys):
        mean = np.add.reduceat(mean, starts) / np.diff(np.append(starts, len(keys)))
        keys = keys[starts]
    unit = float(mean.mean())
    mean /= unit
    if mean.min() == mean.max():
        return keys, None, unit * largest
    # A weight that is tiny beside the others must not become 0, because the edge is there.
    np.maximum(mean, np.finfo(np.float32).tiny, out=mean)
    return keys, torch.from_numpy(mean.astype(np.float32)), unit * largest


def _pointer(counts: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Row pointer (N + 1,) of rows with ``counts`` (N,) entries."""
    pointer = torch.zeros(len(counts) + 1, dtype=torch.int64, device=counts.device)
    torch.cumsum(counts, 0, out=pointer[1:])
    return pointer.to(dtype)
