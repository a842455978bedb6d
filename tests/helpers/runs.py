"""Run directories written by hand, for tests of reports and exports."""

import numpy as np
import torch

from user_dgl.config import load_config
from user_dgl.graph import Graph
from user_dgl.output.run_directory import RunDirectory
from user_dgl.runtime.versions import versions


def write_run(path, graph: Graph, weight, clusters, *, ids=None, observed=None, added=None, **more):
    """Write a finished run whose learned graph A' has the pairs of ``graph``.

    ``observed`` (E,) marks the pairs that are observed edges; ``added`` marks the observed edges
    that noise added; ``more`` goes into ``result.json``.
    """
    num_nodes = graph.num_nodes
    config = load_config(None, ["model.num_clusters=2"])
    run = RunDirectory(path)
    run.begin(config, run.checkpoint_to_resume(config))
    seen = np.ones(graph.num_edges, bool) if observed is None else np.asarray(observed)
    edges = Graph(num_nodes, graph.src[torch.from_numpy(seen)], graph.dst[torch.from_numpy(seen)])
    run.write_input(edges, np.zeros(len(edges.src), bool) if added is None else added, None)
    run.write_clusters(ids or range(num_nodes), np.asarray(clusters))
    # Each cluster has a column of its own, so that the clusters lie apart.
    noise = np.random.default_rng(0).normal(size=(num_nodes, max(clusters) + 1))
    run.write_embedding(4 * np.eye(noise.shape[1])[clusters] + 0.1 * noise)
    run.write_learned_graph(graph, np.asarray(weight, dtype=np.float32))
    for epoch in (1, 2, 3):
        row = {"epoch": epoch, "loss": -epoch, "npsi": -epoch, "clusters_in_use": 2}
        run.record({**row, "lr": 0.1, "seconds": 0.5})
    found = len(set(clusters))
    run.write_result(
        {
            "num_nodes": num_nodes,
            "num_observed_edges": edges.num_edges,
            "num_features": 3,
            "num_clusters": found,
            "num_clusters_found": found,
            "seconds_total": 1.0,
            "metrics": dict.fromkeys(("nmi", "acc", "ari", "f1", "ami")),
            "versions": versions(),
            **more,
        }
    )
    return run


def ring(num_nodes: int) -> Graph:
    """A cycle."""
    nodes = np.arange(num_nodes)
    return Graph.from_edges(num_nodes, nodes, (nodes + 1) % num_nodes)[0]
