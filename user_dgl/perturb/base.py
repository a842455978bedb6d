"""Result of every kind of noise: the noisy graph and its difference from the clean graph."""

from dataclasses import dataclass

import numpy as np
import torch

from user_dgl.errors import InputError
from user_dgl.graph import Graph


@dataclass(frozen=True, eq=False)
class Perturbed:
    """A noisy graph and its difference from the clean graph.

    Attributes
    ----------
    graph : Graph
        The noisy graph, with E pairs.
    added : bool Tensor (E,)
        Whether the pair is missing in the clean graph. Metrics read it; training never does.
    num_added, num_removed : int
        Number of pairs that only the noisy graph has, and that only the clean graph has.
    notes : tuple of str
        One line each about the noise, for example what was cleaned while a stored graph was read.
    """

    graph: Graph
    added: torch.Tensor
    num_added: int
    num_removed: int
    notes: tuple[str, ...] = ()


def compare(clean: Graph, noisy: Graph) -> Perturbed:
    """Compare a noisy graph with the clean graph.

    Raises
    ------
    InputError
        The graphs have different numbers of nodes.
    """
    if clean.num_nodes != noisy.num_nodes:
        raise InputError(
            f"the clean graph has {clean.num_nodes} nodes and the noisy graph has "
            f"{noisy.num_nodes}: they must agree"
        )
    added = torch.from_numpy(clean.positions(noisy.keys) < 0)
    num_added = int(added.sum())
    return Perturbed(noisy, added, num_added, clean.num_edges - (noisy.num_edges - num_added))


def with_drawn_weights(noisy: Graph, clean: Graph, rng: np.random.Generator) -> Graph:
    """Return the noisy graph with the weights of the clean graph, from which others are drawn.

    Added edges then cannot be told from the others by their weight. If the clean graph has no
    weights, nothing is drawn.
    """
    known = clean.weight
    if known is None or not clean.num_edges:
        return noisy
    return noisy.weighted_like(clean, lambda number: rng.choice(known.numpy(), number))


def count_flips(graph: Graph, rate: float, excluded: np.ndarray) -> int:
    """Number of pairs to flip, ``round(rate * E)``.

    Parameters
    ----------
    graph : Graph
        N nodes, E edges.
    rate : float
        Number of flips as a share of the edges.
    excluded : int64 (M,)
        Keys ``src * N + dst`` of distinct pairs that are not flipped.

    Raises
    ------
    InputError
        There are more flips than pairs that may be flipped, N (N - 1) / 2 - M.
    """
    num_nodes, num_flips = graph.num_nodes, round(rate * graph.num_edges)
    num_pairs = num_nodes * (num_nodes - 1) // 2 - len(excluded)
    if num_flips > num_pairs:
        held_out = " outside the held-out ones" if len(excluded) else ""
        raise InputError(
            f"data.noise.rate={rate}: {num_flips} flips, but {num_nodes} nodes have only "
            f"{num_pairs} pairs{held_out}: lower the rate"
        )
    return num_flips
