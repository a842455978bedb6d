"""The paper's noise: node pairs drawn uniformly change from edge to none or from none to edge."""

import numpy as np

from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.perturb.base import Perturbed, compare


def random_flip(graph: Graph, rate: float, seed: int) -> Perturbed:
    """Flip ``round(rate * E)`` distinct pairs, uniform over all sets of that many pairs.

    Parameters
    ----------
    graph : Graph
        N nodes, E edges.
    rate : float
        Flips as a share of the edges.
    seed : int

    Returns
    -------
    Perturbed

    Raises
    ------
    InputError
        More flips than the N (N - 1) / 2 pairs.
    """
    num_nodes, num_flips = graph.num_nodes, round(rate * graph.num_edges)
    num_pairs = num_nodes * (num_nodes - 1) // 2
    if num_flips > num_pairs:
        raise InputError(
            f"data.noise.rate={rate}: {num_flips} flips, but {num_nodes} nodes have only "
            f"{num_pairs} pairs: lower the rate"
        )
    if not num_flips:
        return compare(graph, graph)
    # Without replacement from a range: NumPy keeps a hash set where the range is far larger than
    # the sample, so nothing here grows with N^2.
    rng = np.random.default_rng(seed)
    pairs = rng.choice(num_pairs, size=num_flips, replace=False, shuffle=False)
    u, v = pair_of_index(pairs)
    keys = np.setxor1d(graph.keys, u * num_nodes + v, assume_unique=True)
    return compare(graph, Graph.from_keys(num_nodes, keys))


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
