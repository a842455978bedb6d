"""What every kind of noise returns."""

from dataclasses import dataclass

import numpy as np
import torch

from user_dgl.errors import InputError
from user_dgl.graph import Graph


@dataclass(frozen=True, eq=False)
class Perturbed:
    """A noisy graph beside what it was.

    Attributes
    ----------
    graph : Graph
        E pairs, noise included.
    added : bool Tensor (E,)
        Whether the clean graph lacks the pair. For scores, never for training.
    num_added, num_removed : int
        Pairs that only the noisy, or only the clean graph has.
    notes : tuple of str
        What was cleaned while reading a stored graph, one line each.
    """

    graph: Graph
    added: torch.Tensor
    num_added: int
    num_removed: int
    notes: tuple[str, ...] = ()


def compare(clean: Graph, noisy: Graph) -> Perturbed:
    """The noisy graph with its difference to the clean one.

    Raises
    ------
    InputError
        Graphs of different numbers of nodes.
    """
    if clean.num_nodes != noisy.num_nodes:
        raise InputError(f"graphs of {clean.num_nodes} and {noisy.num_nodes} nodes: must agree")
    added = torch.from_numpy(clean.positions(noisy.keys) < 0)
    num_added = int(added.sum())
    return Perturbed(noisy, added, num_added, clean.num_edges - (noisy.num_edges - num_added))


def count_flips(graph: Graph, rate: float, excluded: np.ndarray) -> int:
    """``round(rate * E)``, the pairs that a rate flips.

    Parameters
    ----------
    graph : Graph
    rate : float
    excluded : int64 (M,)
        Keys ``src * N + dst`` of distinct pairs that are not flipped.

    Raises
    ------
    InputError
        More flips than the N (N - 1) / 2 pairs less those excluded.
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
