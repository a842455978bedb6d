"""Engine ``dgl``: DGL graphs and DGL's message passing, the reference for `user_dgl.graph.ops`.

DGL is imported on first use, because the import takes seconds.
"""

import weakref
from types import ModuleType
from typing import Any

import torch

from user_dgl.graph.graph import Graph

# The class dgl.DGLGraph. DGL has no type information, and only `user_dgl._dgl` may import it.
DGLGraph = Any

_DGL_GRAPHS: weakref.WeakKeyDictionary[Graph, tuple[DGLGraph, DGLGraph]] = (
    weakref.WeakKeyDictionary()
)


def dgl_ops() -> ModuleType:
    """Return the module ``dgl.ops``.

    Raises
    ------
    InputError
        DGL is not installed.
    """
    from user_dgl._dgl import dgl

    return dgl.ops


def both_directions(graph: Graph) -> DGLGraph:
    """DGLGraph with both directions of every pair, on the CPU; see `dgl_graphs`."""
    return dgl_graphs(graph)[0]


def dgl_graphs(graph: Graph) -> tuple[DGLGraph, DGLGraph]:
    """Two DGLGraphs on the CPU, built once for each `Graph` and cached as long as it exists.

    The first has 2E edges: all u -> v in the order of the pairs, then all v -> u. The second has
    only the E edges u -> v.
    """
    from user_dgl._dgl import dgl

    if graph not in _DGL_GRAPHS:
        both = (torch.cat([graph.src, graph.dst]), torch.cat([graph.dst, graph.src]))
        _DGL_GRAPHS[graph] = (
            dgl.graph(both, num_nodes=graph.num_nodes),
            dgl.graph((graph.src, graph.dst), num_nodes=graph.num_nodes),
        )
    return _DGL_GRAPHS[graph]
