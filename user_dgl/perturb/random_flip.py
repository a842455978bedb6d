"""The paper's noise: node pairs drawn uniformly change from edge to none or from none to edge."""

import numpy as np

from user_dgl.graph import Graph
from user_dgl.perturb.base import Perturbed, compare, count_flips


def random_flip(
    graph: Graph, rate: float, seed: int, excluded: np.ndarray | None = None
) -> Perturbed:
    """Flip ``round(rate * E)`` distinct pairs, uniform over all sets of that many pairs.

    Parameters
    ----------
    graph : Graph
        N nodes, E edges.
    rate : float
        Flips as a share of the edges.
    seed : int
    excluded : int64 (M,), optional
        Keys ``src * N + dst`` of distinct pairs that are not flipped.

    Returns
    -------
    Perturbed

    Raises
    ------
    InputError
        More flips than the N (N - 1) / 2 pairs less those excluded.
    """
    if excluded is None:
        excluded = np.empty(0, dtype=np.int64)
    num_nodes, num_flips = graph.num_nodes, count_flips(graph, rate, excluded)
    if not num_flips:
        return compare(graph, graph)
    flipped = draw_pairs(num_nodes, num_flips, excluded, np.random.default_rng(seed))
    keys = np.setxor1d(graph.keys, flipped, assume_unique=True)
    return compare(graph, Graph.from_keys(num_nodes, keys))


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
