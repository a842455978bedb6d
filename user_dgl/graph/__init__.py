"""Undirected graphs stored as pairs of nodes, and the operations that use them."""

from user_dgl.graph.graph import Cleaning, Graph, index_dtype, pair_keys

__all__ = [
    "Cleaning",
    "Graph",
    "index_dtype",
    "pair_keys",
]
