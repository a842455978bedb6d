"""The noise that a config asks for, by the registry `user_dgl.config.data.NOISE_KINDS`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from user_dgl.config import NoiseConfig
from user_dgl.config.data import NOISE_KINDS
from user_dgl.data import find_file
from user_dgl.graph import Graph
from user_dgl.perturb.base import Perturbed, compare
from user_dgl.perturb.metattack import Victim, metattack
from user_dgl.perturb.random_flip import random_flip
from user_dgl.perturb.stored import stored_graph
from user_dgl.runtime.registry import load_object


@dataclass(frozen=True, eq=False)
class NoiseRequest:
    """Input of a kind of noise.

    Attributes
    ----------
    graph : Graph
        The graph before noise.
    noise : NoiseConfig
    seed : int
        Seed of everything that the noise draws.
    root : Path
        Folder that a relative ``noise.file`` starts from.
    held_out : int64 (M,) or None
        Keys ``src * N + dst`` of pairs that noise neither adds nor removes; the graph has none of
        them.
    victim : Victim or None
        Features and labels; given to a kind that reads labels, and to no other.
    log : callable
        Called with each line of the log.
    """

    graph: Graph
    noise: NoiseConfig
    seed: int
    root: Path
    held_out: np.ndarray | None
    victim: Victim | None
    log: Callable[[str], None]


def perturb(
    graph: Graph,
    noise: NoiseConfig,
    seed: int,
    root: Path | None = None,
    held_out: np.ndarray | None = None,
    victim: Victim | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Perturbed:
    """The graph with the noise of a config.

    Parameters
    ----------
    graph, noise, held_out, victim, log
        See `NoiseRequest`.
    seed : int
        Seed where ``noise.seed`` is null.
    root : Path, optional
        Folder that a relative ``noise.file`` starts from; default: the current folder.

    Raises
    ------
    InputError
        More flips than pairs; file missing or of another number of nodes; see `metattack`.
    """
    own = seed if noise.seed is None else noise.seed
    request = NoiseRequest(graph, noise, own, Path(root or "."), held_out, victim, log)
    return load_object(NOISE_KINDS[noise.kind].apply)(request)


def no_noise(request: NoiseRequest) -> Perturbed:
    """Kind ``none``: the graph as it is."""
    return compare(request.graph, request.graph)


def flip_at_random(request: NoiseRequest) -> Perturbed:
    """Kind ``random_flip``, see `random_flip`."""
    return random_flip(request.graph, request.noise.rate, request.seed, request.held_out)


def attack(request: NoiseRequest) -> Perturbed:
    """Kind ``metattack``, see `metattack`."""
    noise, victim = request.noise, request.victim or Victim()
    return metattack(
        request.graph,
        noise.rate,
        request.seed,
        noise.attack,
        victim,
        request.held_out,
        request.log,
    )


def replace_by_stored(request: NoiseRequest) -> Perturbed:
    """Kind ``file``: the graph of a file, without the pairs held out, see `stored_graph`."""
    assert request.noise.file is not None  # Config refuses the kind without a file
    file = find_file(request.root, request.noise.file, "data.noise.file")
    return stored_graph(request.graph, file, request.held_out)
