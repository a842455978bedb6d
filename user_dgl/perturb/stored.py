"""A noisy graph from a file, such as an attacked adjacency."""

from dataclasses import replace
from pathlib import Path

from user_dgl.data.npz import load_adjacency
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.perturb.base import Perturbed, compare


def stored_graph(graph: Graph, path: Path) -> Perturbed:
    """The graph in a `scipy.sparse.save_npz` file, beside the clean one.

    Parameters
    ----------
    graph : Graph
        Clean, N nodes.
    path : Path
        Adjacency (N, N) in the same order of nodes.

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
    return replace(compare(graph, noisy), notes=tuple(f"{path.name}: {n}" for n in notes))
