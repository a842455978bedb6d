"""Random pairs of nodes, as int64 keys ``src * num_nodes + dst`` or as two rows of node ids."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from user_dgl.graph.graph import Graph, pair_keys


def draw_pairs(
    num_nodes: int, count: int, excluded: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw distinct pairs; each set of ``count`` pairs outside ``excluded`` is equally likely.

    Time and memory are linear in the pairs drawn and excluded. The distribution is exact, even
    where ``count`` is close to the number of all pairs.

    Parameters
    ----------
    num_nodes : int
    count : int
        At most the number of pairs that are not excluded.
    excluded : int64 (M,)
        Keys ``src * num_nodes + dst``, src < dst, of distinct pairs.
    rng : Generator

    Returns
    -------
    int64 (count,)
        Keys. Their order has no meaning and is not random.
    """
    num_pairs = num_nodes * (num_nodes - 1) // 2 - len(excluded)
    # NumPy draws with a hash set where the range is far larger than the sample, so memory does not
    # grow with N^2.
    index = rng.choice(num_pairs, size=count, replace=False, shuffle=False)
    # `index` counts only the pairs that may be drawn. It becomes an index of all pairs by adding
    # the number of excluded pairs that come before it.
    taken = np.sort(index_of_pair(*np.divmod(excluded, num_nodes)))
    index += np.searchsorted(taken - np.arange(len(taken)), index, side="right")
    u, v = pair_of_index(index)
    return u * num_nodes + v


def index_of_pair(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Index of the pair u < v: the inverse of `pair_of_index`."""
    return v * (v - 1) // 2 + u


def pair_of_index(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair u < v of each index, in the order (0, 1), (0, 2), (1, 2), (0, 3), ...

    The index of a pair is ``v (v - 1) / 2 + u`` and does not depend on the number of nodes.

    >>> [part.tolist() for part in pair_of_index(np.arange(4))]
    [[0, 0, 1, 0], [1, 2, 2, 3]]
    """
    index = np.asarray(index, dtype=np.int64)
    v = ((1 + np.sqrt(1 + 8.0 * index)) / 2).astype(np.int64)
    # The square root is rounded, so v may be wrong by one (never by more while v < 2^32).
    v -= v * (v - 1) // 2 > index
    v += v * (v + 1) // 2 <= index
    return index - v * (v - 1) // 2, v


def random_pairs(
    num_nodes: int, count: int, rng: np.random.Generator, held_out: np.ndarray | None = None
) -> np.ndarray:
    """Draw pairs of different nodes (2, count) with replacement; each pair is equally likely.

    Pairs whose key ``src * num_nodes + dst``, src < dst, is in ``held_out`` are removed, and no
    others are drawn in their place, so fewer than ``count`` may be returned.
    """
    u = rng.integers(0, num_nodes, count)
    v = (u + rng.integers(1, num_nodes, count)) % num_nodes
    pairs = np.stack([u, v])
    if held_out is None:
        return pairs
    return pairs[:, ~np.isin(pair_keys(num_nodes, u, v), held_out)]


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Edges and non-edges with their labels.

    Attributes
    ----------
    pairs : int64 (2, M)
        Ends u < v of each pair; edges come first.
    is_edge : bool (M,)
    """

    pairs: np.ndarray
    is_edge: np.ndarray

    @classmethod
    def of_keys(cls, num_nodes: int, edges: np.ndarray, non_edges: np.ndarray) -> "LabelledPairs":
        """Build the pairs from their keys ``src * num_nodes + dst``."""
        keys = np.concatenate([edges, non_edges])
        pairs = np.stack(np.divmod(keys, max(num_nodes, 1)))
        return cls(pairs, np.arange(len(keys)) < len(edges))


class SampledPairs(NamedTuple):
    """Pairs drawn uniformly from all pairs, with replacement.

    Attributes
    ----------
    low, high : int64 Tensor (S,)
        The two ends of each pair, low < high.
    is_edge : bool Tensor (S,)
        Whether the graph has the pair.
    """

    low: torch.Tensor
    high: torch.Tensor
    is_edge: torch.Tensor


def sample_pairs(
    graph: Graph, num_samples: int, generator: torch.Generator | None = None
) -> SampledPairs:
    """Draw ``num_samples`` unordered pairs with equal probability.

    The result is empty for a graph of fewer than two nodes.
    """
    num_nodes, device = graph.num_nodes, graph.src.device
    size = (num_samples if num_nodes > 1 else 0,)
    u = torch.randint(max(num_nodes, 1), size, generator=generator)
    # Any node except u.
    v = torch.randint(max(num_nodes - 1, 1), size, generator=generator)
    v = v + (v >= u)
    low, high = torch.minimum(u, v), torch.maximum(u, v)
    is_edge = torch.from_numpy(graph.positions((low * num_nodes + high).numpy()) >= 0)
    return SampledPairs(low.to(device), high.to(device), is_edge.to(device))
