"""Noise on the graph: random flips, an attack, or a stored graph such as an attacked one."""

from user_dgl.perturb.apply import NoiseRequest, perturb
from user_dgl.perturb.base import Perturbed, compare
from user_dgl.perturb.metattack import Victim, metattack
from user_dgl.perturb.random_flip import random_flip
from user_dgl.perturb.stored import stored_graph

__all__ = [
    "NoiseRequest",
    "Perturbed",
    "Victim",
    "compare",
    "metattack",
    "perturb",
    "random_flip",
    "stored_graph",
]
