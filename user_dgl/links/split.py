"""Held-out edges and non-edges for link prediction, as in Kipf and Welling (2016) and the paper."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from user_dgl.config import LinksConfig
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.graph.pairs import LabelledPairs, draw_pairs
from user_dgl.runtime.streams import Stream, stream_rng


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A graph split into three parts with disjoint pairs.

    Attributes
    ----------
    training : Graph
        All nodes, and the edges that are not held out. This is the clean graph of a run.
    validation, test : LabelledPairs
        Held-out edges and non-edges, for metrics after training.
    """

    training: Graph
    validation: LabelledPairs
    test: LabelledPairs

    @property
    def held_out(self) -> dict[str, LabelledPairs]:
        """The held-out parts by name."""
        return {"validation": self.validation, "test": self.test}

    @property
    def held_out_keys(self) -> np.ndarray:
        """Keys ``src * N + dst`` of all edges and non-edges that are held out, int64 (M,)."""
        u, v = np.concatenate([self.validation.pairs, self.test.pairs], axis=1)
        return u * self.training.num_nodes + v


def split_links(graph: Graph, config: LinksConfig, seed: int) -> LinkSplit:
    """Hold out ``round(share * E)`` edges and as many non-edges, for validation and for test.

    Edges are drawn uniformly. With ``config.keep_connected``, an edge that would leave its
    component in pieces is passed over. Non-edges are drawn uniformly from the pairs that are not
    edges of the whole graph, so that none of them is a held-out edge. Time is linear in the edges,
    with ``keep_connected`` E log E.

    Parameters
    ----------
    graph : Graph
        The clean graph, with N nodes and E edges.
    config : LinksConfig
    seed : int
        Seed of the draws if ``config.seed`` is null.

    Returns
    -------
    LinkSplit

    Raises
    ------
    InputError
        The shares leave no edge to train on, the graph has fewer non-edges than are drawn, or
        fewer edges outside of a spanning forest than ``keep_connected`` needs.
    """
    num_nodes, num_edges = graph.num_nodes, graph.num_edges
    sizes = [round(share * num_edges) for share in (config.validation_share, config.test_share)]
    held_out = sum(sizes)
    if held_out and held_out >= num_edges:
        raise InputError(
            f"links: {held_out} of {num_edges} edges held out leave none to train on: lower "
            "links.validation_share or links.test_share"
        )
    num_non_edges = num_nodes * (num_nodes - 1) // 2 - num_edges
    if held_out > num_non_edges:
        raise InputError(
            f"links: {held_out} non-edges wanted, as many as held-out edges, but the graph has "
            f"{num_non_edges}: lower links.validation_share or links.test_share"
        )
    # The stream differs from the one of the noise, which may have the same seed.
    rng = stream_rng(seed if config.seed is None else config.seed, Stream.LINK_SPLIT)
    keys = graph.keys
    edges = rng.permutation(keys)
    if config.keep_connected:
        edges = _forest_last(num_nodes, edges, held_out)
    non_edges = rng.permutation(draw_pairs(num_nodes, held_out, keys, rng))
    at = sizes[0]
    return LinkSplit(
        Graph.from_keys(num_nodes, edges[held_out:]).weighted_like(graph),
        LabelledPairs.of_keys(num_nodes, edges[:at], non_edges[:at]),
        LabelledPairs.of_keys(num_nodes, edges[at:held_out], non_edges[at:]),
    )


def _forest_last(num_nodes: int, edges: np.ndarray, held_out: int) -> np.ndarray:
    """Move the edges of a spanning forest behind all others; the others keep their order.

    Visit the edges in their order, and delete each one whose loss leaves its component in one
    piece: the deleted edges come first in the result. This is the reverse-delete algorithm
    (Kruskal, 1956). What it keeps is the minimum spanning forest for weights that fall along the
    order.

    Parameters
    ----------
    num_nodes : int
    edges : int64 array (E,)
        Distinct keys ``src * N + dst`` in random order.
    held_out : int
        Number of edges that must be outside of the forest.

    Raises
    ------
    InputError
        There are fewer.
    """
    weight = np.arange(len(edges), 0, -1, dtype=np.float64)
    ends = np.divmod(edges, max(num_nodes, 1))
    forest = sp.csgraph.minimum_spanning_tree(
        sp.csr_matrix((weight, ends), shape=(num_nodes, num_nodes))
    )
    kept = np.zeros(len(edges), dtype=bool)
    kept[len(edges) - forest.data.astype(np.int64)] = True
    free = int((~kept).sum())
    if held_out > free:
        raise InputError(
            f"links: {held_out} edges to hold out, but {len(edges) - free} of {len(edges)} must "
            "stay to keep every component in one piece: lower links.validation_share or "
            "links.test_share, or set links.keep_connected=false"
        )
    return np.concatenate([edges[~kept], edges[kept]])
