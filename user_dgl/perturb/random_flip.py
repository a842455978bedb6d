"""Random flips, the noise of the paper: random pairs change from edge to non-edge or back."""

import numpy as np

from user_dgl.graph import Graph
from user_dgl.graph.pairs import draw_pairs
from user_dgl.perturb.base import Perturbed, compare, count_flips, with_drawn_weights
from user_dgl.runtime.streams import Stream, stream_rng


def random_flip(
    graph: Graph, rate: float, seed: int, excluded: np.ndarray | None = None
) -> Perturbed:
    """Flip ``round(rate * E)`` distinct pairs; each set of so many pairs is equally likely.

    If the edges have weights, those of added edges are drawn from the weights of all edges.

    Parameters
    ----------
    graph : Graph
        N nodes, E edges.
    rate : float
        Number of flips as a share of the edges.
    seed : int
    excluded : int64 (M,), optional
        Keys ``src * N + dst`` of distinct pairs that are not flipped.

    Returns
    -------
    Perturbed

    Raises
    ------
    InputError
        There are more flips than pairs that may be flipped, N (N - 1) / 2 - M.
    """
    if excluded is None:
        excluded = np.empty(0, dtype=np.int64)
    num_nodes, num_flips = graph.num_nodes, count_flips(graph, rate, excluded)
    if not num_flips:
        return compare(graph, graph)
    rng = stream_rng(seed, Stream.RANDOM_FLIP)
    flipped = draw_pairs(num_nodes, num_flips, excluded, rng)
    keys = np.setxor1d(graph.keys, flipped, assume_unique=True)
    return compare(graph, with_drawn_weights(Graph.from_keys(num_nodes, keys), graph, rng))
