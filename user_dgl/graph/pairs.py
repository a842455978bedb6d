"""Pairs of nodes drawn at random, as keys or as two rows of ids."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from user_dgl.graph import Graph, pair_keys


def draw_pairs(
    num_nodes: int, count: int, excluded: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Distinct pairs, each set of ``count`` pairs outside ``excluded`` equally likely.

    Linear in the pairs drawn and excluded, and exact however many of all pairs these are.

    Parameters
    ----------
    num_nodes : int
    count : int
        At most the pairs that are not excluded.
    excluded : int64 (M,)
        Keys ``src * num_nodes + dst``, src < dst, of distinct pairs.
    rng : Generator

    Returns
    -------
    int64 (count,)
        Keys, in no order that means anything, nor in a random one.
    """
    num_pairs = num_nodes * (num_nodes - 1) // 2 - len(excluded)
    # Without replacement from a range: NumPy keeps a hash set where the range is far larger than
    # the sample, so nothing here grows with N^2.
    index = rng.choice(num_pairs, size=count, replace=False, shuffle=False)
    # The pair with i others before it that may be drawn is moved on past the excluded ones there.
    taken = np.sort(index_of_pair(*np.divmod(excluded, num_nodes)))
    index += np.searchsorted(taken - np.arange(len(taken)), index, side="right")
    u, v = pair_of_index(index)
    return u * num_nodes + v


def index_of_pair(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The inverse of `pair_of_index`, for u < v."""
    return v * (v - 1) // 2 + u


def pair_of_index(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pair u < v that each index stands for: (0, 1), (0, 2), (1, 2), (0, 3), ...

    Index ``v (v - 1) / 2 + u``, so pairs do not depend on the number of nodes.

    >>> [part.tolist() for part in pair_of_index(np.arange(4))]
    [[0, 0, 1, 0], [1, 2, 2, 3]]
    """
    index = np.asarray(index, dtype=np.int64)
    v = ((1 + np.sqrt(1 + 8.0 * index)) / 2).astype(np.int64)
    # The root is rounded: one off at most while v < 2^32.
    v -= v * (v - 1) // 2 > index
    v += v * (v + 1) // 2 <= index
    return index - v * (v - 1) // 2, v


def random_pairs(
    num_nodes: int, count: int, rng: np.random.Generator, held_out: np.ndarray | None = None
) -> np.ndarray:
    """Pairs of different nodes (2, count), each pair of nodes equally likely.

    Those with a key ``src * num_nodes + dst``, src < dst, in ``held_out`` are left out of them.
    """
    u = rng.integers(0, num_nodes, count)
    v = (u + rng.integers(1, num_nodes, count)) % num_nodes
    pairs = np.stack([u, v])
    if held_out is None:
        return pairs
    return pairs[:, ~np.isin(pair_keys(num_nodes, u, v), held_out)]


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Edges and as many non-edges.

    Attributes
    ----------
    pairs : int64 (2, M)
        Ends u < v, edges first.
    is_edge : bool (M,)
    """

    pairs: np.ndarray
    is_edge: np.ndarray

    @classmethod
    def of_keys(cls, num_nodes: int, edges: np.ndarray, non_edges: np.ndarray) -> "LabelledPairs":
        """Pairs of keys ``src * num_nodes + dst``."""
        keys = np.concatenate([edges, non_edges])
        pairs = np.stack(np.divmod(keys, max(num_nodes, 1)))
        return cls(pairs, np.arange(len(keys)) < len(edges))


class SampledPairs(NamedTuple):
    """Pairs low < high (S,) drawn uniformly from all, with replacement; which ones are edges."""

    low: torch.Tensor
    high: torch.Tensor
    is_edge: torch.Tensor


def sample_pairs(
    graph: Graph, num_samples: int, generator: torch.Generator | None = None
) -> SampledPairs:
    """Draw pairs, each unordered one equally likely; none of a graph of less than two nodes."""
    num_nodes, device = graph.num_nodes, graph.src.device
    size = (num_samples if num_nodes > 1 else 0,)
    u = torch.randint(max(num_nodes, 1), size, generator=generator)
    # Any node but u.
    v = torch.randint(max(num_nodes - 1, 1), size, generator=generator)
    v = v + (v >= u)
    low, high = torch.minimum(u, v), torch.maximum(u, v)
    is_edge = torch.from_numpy(graph.positions((low * num_nodes + high).numpy()) >= 0)
    return SampledPairs(low.to(device), high.to(device), is_edge.to(device))
