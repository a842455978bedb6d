"""Engine ``dgl``: graphs of DGL, whose message passing is the reference."""

import weakref

import torch

from user_dgl.graph import Graph

_DGL_GRAPHS: "weakref.WeakKeyDictionary[Graph, tuple]" = weakref.WeakKeyDictionary()


def dgl_ops():
    from user_dgl._dgl import dgl

    return dgl.ops


def both_directions(graph: Graph):
    """DGLGraph of both directions, on the CPU and kept with the graph."""
    return dgl_graphs(graph)[0]


def dgl_graphs(graph: Graph):
    """DGLGraphs of both directions (all u -> v, then all v -> u) and of the pairs alone."""
    from user_dgl._dgl import dgl

    if graph not in _DGL_GRAPHS:
        both = (torch.cat([graph.src, graph.dst]), torch.cat([graph.dst, graph.src]))
        _DGL_GRAPHS[graph] = (
            dgl.graph(both, num_nodes=graph.num_nodes),
            dgl.graph((graph.src, graph.dst), num_nodes=graph.num_nodes),
        )
    return _DGL_GRAPHS[graph]
