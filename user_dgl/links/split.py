"""Held-out edges and non-edges for link prediction, as in Kipf and Welling (2016) and the paper."""

from dataclasses import dataclass

import numpy as np

from user_dgl.config import LinksConfig
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.graph.pairs import LabelledPairs, draw_pairs


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A graph in three parts, whose pairs are disjoint.

    Attributes
    ----------
    training : Graph
        All nodes, and the edges that are not held out: the clean graph of a run.
    validation, test : LabelledPairs
        Held out: for scores after training.
    """

    training: Graph
    validation: LabelledPairs
    test: LabelledPairs

    @property
    def held_out(self) -> dict[str, LabelledPairs]:
        """Both parts by name."""
        return {"validation": self.validation, "test": self.test}

    @property
    def held_out_keys(self) -> np.ndarray:
        """Keys ``src * N + dst`` of all edges and non-edges that are held out, int64 (M,)."""
        u, v = np.concatenate([self.validation.pairs, self.test.pairs], axis=1)
        return u * self.training.num_nodes + v


def split_links(graph: Graph, config: LinksConfig, seed: int) -> LinkSplit:
    """Hold ``round(share * E)`` edges out for validation and for test, each beside non-edges.

    Edges are drawn uniformly. Non-edges are drawn uniformly from the pairs that the whole graph
    lacks, so none of them is an edge held out, and there are as many of them. Linear in edges.

    Parameters
    ----------
    graph : Graph
        Clean, N nodes, E edges.
    config : LinksConfig
    seed : int
        Seed of the draws where ``config.seed`` is null.

    Returns
    -------
    LinkSplit

    Raises
    ------
    InputError
        The shares leave no edge to train on, or the graph has fewer non-edges than are drawn.
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
            f"links: {held_out} non-edges wanted, as many as edges held out, but the graph has "
            f"{num_non_edges}: lower links.validation_share or links.test_share"
        )
    # Seeded apart from the flips, which take the same number.
    rng = np.random.default_rng([seed if config.seed is None else config.seed, 7])
    keys = graph.keys
    edges = rng.permutation(keys)
    non_edges = rng.permutation(draw_pairs(num_nodes, held_out, keys, rng))
    at = sizes[0]
    return LinkSplit(
        Graph.from_keys(num_nodes, edges[held_out:]),
        LabelledPairs.of_keys(num_nodes, edges[:at], non_edges[:at]),
        LabelledPairs.of_keys(num_nodes, edges[at:held_out], non_edges[at:]),
    )
