"""Noise on the graph: random flips, an attack, or a stored graph such as an attacked one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from user_dgl.config import NoiseConfig
from user_dgl.data import find_file
from user_dgl.graph import Graph
from user_dgl.perturb.base import Perturbed, compare
from user_dgl.perturb.metattack import Victim, metattack
from user_dgl.perturb.random_flip import random_flip
from user_dgl.perturb.stored import stored_graph

__all__ = [
    "Perturbed",
    "Victim",
    "compare",
    "metattack",
    "perturb",
    "random_flip",
    "stored_graph",
]


def perturb(
    graph: Graph,
    noise: NoiseConfig,
    seed: int,
    root: Path,
    held_out: np.ndarray | None = None,
    victim: Victim | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Perturbed:
    """The graph with the noise of a config.

    Parameters
    ----------
    graph : Graph
        Clean.
    noise : NoiseConfig
    seed : int
        Seed of the flips where ``noise.seed`` is null.
    root : Path
        What a relative ``noise.file`` starts from.
    held_out : int64 (M,), optional
        Keys ``src * N + dst`` of pairs that noise neither adds nor removes; the graph has none of
        them. A stored graph is taken without them.
    victim : Victim, optional
        Features and labels, which ``noise.kind=metattack`` needs and no other kind is to be given.
    log : callable
        Gets each line for people.

    Raises
    ------
    InputError
        More flips than pairs; file missing or of another number of nodes; see `metattack`.
    """
    if noise.kind == "random_flip":
        seed = seed if noise.seed is None else noise.seed
        return random_flip(graph, noise.rate, seed, held_out)
    if noise.kind == "metattack":
        seed = seed if noise.seed is None else noise.seed
        return metattack(graph, noise.rate, seed, noise.attack, victim or Victim(), held_out, log)
    if noise.kind == "file":
        file = find_file(Path(root), noise.file, "data.noise.file")
        return stored_graph(graph, file, held_out)
    return compare(graph, graph)
