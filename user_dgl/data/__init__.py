"""Data sets as attributed graphs; `load_data` loads the one that a config names."""

from user_dgl.data.attributed_graph import (
    UNLABELLED,
    AttributedGraph,
    index_labels,
    largest_component,
)
from user_dgl.data.edge_list.edges import load_edge_list
from user_dgl.data.edge_list.labels import read_labels
from user_dgl.data.formats.npz import load_adjacency, load_npz
from user_dgl.data.load import data_root, find_file, load_data
from user_dgl.data.sets.musae import load_musae
from user_dgl.data.sets.ogb import load_ogb
from user_dgl.data.sets.planetoid import load_planetoid
from user_dgl.data.sets.synthetic import block_model
from user_dgl.data.sets.wiki import load_wiki

__all__ = [
    "UNLABELLED",
    "AttributedGraph",
    "block_model",
    "data_root",
    "find_file",
    "index_labels",
    "largest_component",
    "load_adjacency",
    "load_data",
    "load_edge_list",
    "load_musae",
    "load_npz",
    "load_ogb",
    "load_planetoid",
    "load_wiki",
    "read_labels",
]
