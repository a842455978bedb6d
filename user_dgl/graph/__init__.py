"""Graphs of undirected pairs, and the kernels that multiply with them."""

from user_dgl.graph.graph import Cleaning, Graph, index_dtype, pair_keys

__all__ = [
    "Cleaning",
    "Graph",
    "index_dtype",
    "pair_keys",
]
