"""Simple undirected graphs as pairs, with the CSR form that the kernels need.

A graph holds each undirected pair once, ``src < dst``, sorted by (src, dst). So position ``e`` of
any (E,) tensor of edge weights speaks of the same pair everywhere, A' = A'^T holds by construction,
and the pairs are the upper triangle of the adjacency in CSR order. The full CSR lists both
directions, 2E entries, and `Graph.pair_of_entry` says which pair an entry is.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.errors import InputError

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Cleaning:
    """What `Graph.from_edges` dropped or merged, counted in entries as given."""

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
    """int32 where node ids and positions among the 2E directed entries fit, else int64."""
    return torch.int32 if max(num_nodes, 2 * num_pairs) <= _INT32_MAX else torch.int64


@dataclass(frozen=True, eq=False)
class Graph:
    """Simple undirected graph.

    Attributes
    ----------
    num_nodes : int
        N; nodes without edges count.
    src, dst : Tensor (E,)
        Ends of each pair, ``src < dst``, sorted by (src, dst), int32 or int64.
    """

    num_nodes: int
    src: torch.Tensor
    dst: torch.Tensor

    @classmethod
    def from_edges(cls, num_nodes: int, u, v) -> tuple["Graph", Cleaning]:
        """Graph of the given entries, in any order and direction.

        Parameters
        ----------
        num_nodes : int
        u, v : array-like of int (M,)
            Ends of the entries; self-loops are dropped, repeats and reversed entries merged.

        Returns
        -------
        Graph, Cleaning

        Raises
        ------
        InputError
            An end outside 0..num_nodes-1.

        >>> graph, cleaning = Graph.from_edges(3, [0, 1, 1], [1, 0, 1])
        >>> graph.num_edges, str(cleaning)
        (1, '1 self-loop entries dropped, 1 repeated or reversed entries merged')
        """
        u, v = _ids(u), _ids(v)
        if u.shape != v.shape or u.ndim != 1:
            raise InputError(f"edges: expected two equally long lists, got {u.shape} and {v.shape}")
        if len(u) and (min(u.min(), v.min()) < 0 or max(u.max(), v.max()) >= num_nodes):
            low, high = min(u.min(), v.min()), max(u.max(), v.max())
            raise InputError(
                f"edges: node ids {low}..{high} do not fit a graph of {num_nodes} nodes "
                f"(0..{num_nodes - 1})"
            )
        proper = u != v
        loops = len(u) - int(proper.sum())
        if loops:
            u, v = u[proper], v[proper]
        graph = cls.from_keys(num_nodes, pair_keys(num_nodes, u, v))
        return graph, Cleaning(loops, len(u) - graph.num_edges)

    @classmethod
    def from_keys(cls, num_nodes: int, keys: np.ndarray) -> "Graph":
        """Graph of int64 keys ``src * num_nodes + dst``, src < dst, in any order, repeats too."""
        # Sorted, as np.unique hashes integers: many times slower where most are distinct.
        keys = np.sort(keys)
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
        dtype = index_dtype(num_nodes, len(keys))
        width = np.int32 if dtype == torch.int32 else np.int64
        src, dst = np.divmod(keys, max(num_nodes, 1))
        return cls(
            num_nodes, torch.from_numpy(src.astype(width)), torch.from_numpy(dst.astype(width))
        )

    @property
    def num_edges(self) -> int:
        """E, undirected."""
        return len(self.src)

    @property
    def keys(self) -> np.ndarray:
        """Sorted int64 keys ``src * num_nodes + dst`` (E,), made anew each time: 8 bytes a pair."""
        src, dst = self.src.cpu().numpy(), self.dst.cpu().numpy()
        return src.astype(np.int64) * self.num_nodes + dst

    @cached_property
    def upper_indptr(self) -> torch.Tensor:
        """Row pointer (N + 1,) of the upper triangle, whose column indices are `dst`."""
        counts = torch.bincount(self.src, minlength=self.num_nodes)
        return _pointer(counts, self.src.dtype)

    @cached_property
    def _entries(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        src, dst = self.src.numpy(), self.dst.numpy()
        pair = np.arange(self.num_edges, dtype=src.dtype)
        # scipy's conversion keeps the order of entries within a row: with the lower triangle first,
        # whose sources ascend for each dst, every row comes out sorted.
        matrix = sp.coo_matrix(
            (
                np.concatenate([pair, pair]),
                (np.concatenate([dst, src]), np.concatenate([src, dst])),
            ),
            shape=(self.num_nodes, self.num_nodes),
        ).tocsr()
        width = src.dtype
        return tuple(
            torch.from_numpy(array.astype(width, copy=False))
            for array in (matrix.indptr, matrix.indices, matrix.data)
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
        """Pair (2E,) that each entry of the symmetric CSR belongs to."""
        return self._entries[2]

    @cached_property
    def degree(self) -> torch.Tensor:
        """Number of neighbours (N,), int64."""
        return (self.indptr[1:] - self.indptr[:-1]).long()

    def to(self, device) -> "Graph":
        """The graph with its pairs and CSR on a device."""
        if self.src.device == torch.device(device):
            return self
        moved = Graph(self.num_nodes, self.src.to(device), self.dst.to(device))
        # cached_property stores in __dict__; scipy built the CSR, so it is moved, not rebuilt.
        moved.__dict__["_entries"] = tuple(part.to(device) for part in self._entries)
        return moved

    def positions(self, keys: np.ndarray) -> np.ndarray:
        """Position of each key among this graph's pairs, -1 where it is no pair of it."""
        if not self.num_edges:
            return np.full(len(keys), -1, dtype=np.int64)
        own = self.keys
        place = np.searchsorted(own, keys)
        inside = place < self.num_edges
        found = inside & (own[np.where(inside, place, 0)] == keys)
        return np.where(found, place, -1)

    def to_scipy(self, weight: torch.Tensor | None = None) -> sp.csr_matrix:
        """Symmetric scipy CSR, its own memory throughout; entries 1 or ``weight`` (E,)."""
        if weight is None:
            data = np.ones(2 * self.num_edges, dtype=np.float32)
        else:
            data = weight.detach().cpu().numpy()[self.pair_of_entry.cpu().numpy()]
        return sp.csr_matrix(
            # Copied: scipy's eliminate_zeros and the like would change this graph in place.
            (data, self.indices.cpu().numpy().copy(), self.indptr.cpu().numpy().copy()),
            shape=(self.num_nodes, self.num_nodes),
        )


def pair_keys(num_nodes: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Keys ``src * num_nodes + dst``, src < dst, int64, of pairs with their ends in any order."""
    u, v = u.astype(np.int64, copy=False), v.astype(np.int64, copy=False)
    return np.minimum(u, v) * num_nodes + np.maximum(u, v)


def _ids(values) -> np.ndarray:
    """Node ids as int64; NumPy's own conversion would cut 0.7 down to 0."""
    values = np.asarray(values)
    if values.size and values.dtype.kind not in "iu":
        raise InputError(f"edges: expected whole numbers as node ids, got {values.dtype} values")
    return values.astype(np.int64, copy=False)


def _pointer(counts: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    pointer = torch.zeros(len(counts) + 1, dtype=torch.int64, device=counts.device)
    torch.cumsum(counts, 0, out=pointer[1:])
    return pointer.to(dtype)
