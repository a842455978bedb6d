"""The kernels of graphs, each as a function of the same arguments."""

from user_dgl.graph.ops import (
    between_weight,
    edge_dot,
    internal_weight,
    neighbor_sum,
    weighted_degree,
)

KERNELS = {
    "neighbor_sum": neighbor_sum,
    "weighted_degree": lambda graph, weight, x, engine: weighted_degree(graph, weight, engine),
    "edge_dot": lambda graph, weight, x, engine: edge_dot(graph, x, engine),
    "edge_dot of width 1": lambda graph, weight, x, engine: edge_dot(graph, x[:, :1], engine),
    "internal_weight": internal_weight,
    "between_weight": between_weight,
}
