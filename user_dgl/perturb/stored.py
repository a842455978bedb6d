"""A noisy graph from a file, such as an attacked adjacency."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from user_dgl.data.npz import load_adjacency
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.perturb.base import Perturbed, compare


def stored_graph(graph: Graph, path: Path, held_out: np.ndarray | None = None) -> Perturbed:
    """The graph in a `scipy.sparse.save_npz` file, beside the clean one.

    Parameters
    ----------
    graph : Graph
        Clean, N nodes.
    path : Path
        Adjacency (N, N) in the same order of nodes.
    held_out : int64 (M,), optional
        Keys of pairs that are left out of it.

    Raises
    ------
    InputError
        File missing or damaged, or of another number of nodes.
    """
    noisy, notes = load_adjacency(path)
    if noisy.num_nodes != graph.num_nodes:
        raise InputError(
            f"{path}: {noisy.num_nodes} nodes, the clean graph has {graph.num_nodes}: attacked "
            "graphs are often stored for the largest component only, see data.largest_component="
            "true"
        )
    if held_out is not None:
        keys = np.setdiff1d(noisy.keys, held_out, assume_unique=True)
        noisy = Graph.from_keys(noisy.num_nodes, keys)
    return replace(compare(graph, noisy), notes=tuple(f"{path.name}: {n}" for n in notes))
