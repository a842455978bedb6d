"""Small graphs for tests, with the shapes that break things."""

from dataclasses import replace

import numpy as np
import torch

from user_dgl.graph import Graph


def random_graph(num_nodes=20, num_edges=40, seed=0) -> Graph:
    """Random graph whose last three nodes have no edges."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, num_nodes - 3, (2, num_edges))
    return Graph.from_edges(num_nodes, *ends)[0]


def cliques(num_cliques=4, size=5) -> tuple[Graph, torch.Tensor]:
    """Disjoint cliques of equal size, and the clique of each node."""
    u, v = np.triu_indices(size, 1)
    shift = size * np.arange(num_cliques)[:, None]
    graph, _ = Graph.from_edges(num_cliques * size, (u + shift).ravel(), (v + shift).ravel())
    return graph, torch.arange(num_cliques).repeat_interleave(size)


def empty_graph(num_nodes=5) -> Graph:
    """Nodes without edges."""
    return Graph.from_edges(num_nodes, [], [])[0]


def with_int64(graph: Graph) -> Graph:
    """The same graph with int64 ids."""
    return Graph(graph.num_nodes, graph.src.long(), graph.dst.long())


def dense(graph: Graph, weight: torch.Tensor) -> torch.Tensor:
    """Dense symmetric adjacency, differentiable in the weights: the oracle."""
    upper = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=weight.dtype)
    upper = upper.index_put((graph.src.long(), graph.dst.long()), weight)
    return upper + upper.t()


GRAPHS = {
    "random": random_graph(),
    "disconnected": cliques(3, 4)[0],
    "single edge": Graph.from_edges(4, [1], [2])[0],
    "no edges": empty_graph(),
}


def with_random_weights(graph: Graph, seed=0) -> Graph:
    """The same edges with weights between 0.2 and 1.8."""
    weight = np.random.default_rng(seed).uniform(0.2, 1.8, graph.num_edges).astype(np.float32)
    return replace(graph, weight=torch.from_numpy(weight))
