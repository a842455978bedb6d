"""What the report is made from: the files of a run, read and checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.output.run_directory import RunDirectory

_TYPICAL_NODES = 3
_LONGEST_ID = 40


class Clusters:
    """Clusters with the largest first.

    Attributes
    ----------
    names : (K,)
        As in ``clusters.csv``.
    sizes : (K,)
        Nodes of each.
    rank : (N,)
        Which of them each node is in.
    order : (N,)
        Nodes by cluster.
    """

    def __init__(self, clusters: np.ndarray):
        names, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        largest_first = np.argsort(-sizes, kind="stable")
        place = np.empty(len(names), dtype=np.int64)
        place[largest_first] = np.arange(len(names))
        self.names, self.sizes = names[largest_first], sizes[largest_first]
        self.rank = place[codes]
        self.order = np.argsort(self.rank, kind="stable")


@dataclass(eq=False)
class Content:
    """A run as read; what it has not got yet is None."""

    missing: list[str]
    config: str | None = None
    rows: list[dict[str, Any]] | None = None
    result: dict[str, Any] | None = None
    node_ids: list[str] | None = None
    clusters: Clusters | None = None
    embedding: np.ndarray | None = None
    observed: Graph | None = None
    added: np.ndarray | None = None
    learned: sp.csr_matrix | None = None


def read_content(run: RunDirectory) -> Content:
    if not run.path.is_dir():
        raise InputError(f"{run.path}: no such folder: give the output_dir of a run")
    there = {
        name: (run.path / name).is_file()
        for name in (
            run.config_file, run.metrics_file, run.input_file, run.clusters_file,
            run.embedding_file, run.learned_file, run.result_file,
        )
    }  # fmt: skip
    content = Content([name for name, is_there in there.items() if not is_there])
    if not any(there[name] for name in (run.metrics_file, run.clusters_file, run.result_file)):
        raise InputError(
            f"{run.path}: no run to report on: {', '.join(content.missing)} missing; train first, "
            "and give the run's output_dir"
        )
    counts = {}
    if there[run.config_file]:
        content.config = run.read_config_text()
    if there[run.metrics_file]:
        content.rows = run.read_metrics()
    if there[run.result_file]:
        content.result = run.read_result()
    if there[run.clusters_file]:
        content.node_ids, clusters = run.read_clusters()
        content.clusters = Clusters(clusters)
        counts["clusters"] = len(clusters)
    if there[run.embedding_file]:
        content.embedding = run.read_embedding()
        counts["embeddings"] = len(content.embedding)
    if there[run.input_file]:
        content.observed, content.added, _ = run.read_input()
        counts["nodes"] = content.observed.num_nodes
    if there[run.learned_file]:
        content.learned = run.read_learned_graph()
        counts["rows of A'"] = content.learned.shape[0]
    run.check_sizes(**counts)
    return content


def share_of_weight_inside(matrix: sp.csr_matrix, groups: np.ndarray) -> list[float | None]:
    """Of the weight at each group's nodes, what stays inside it, percent; None where none is."""
    entries = matrix.tocoo()
    rows, columns = groups[entries.row], groups[entries.col]
    size = int(groups.max()) + 1
    volume = np.bincount(rows, entries.data, minlength=size)
    same = rows == columns
    internal = np.bincount(rows[same], entries.data[same], minlength=size)
    return [
        100 * part / all_ if all_ else None for part, all_ in zip(internal, volume, strict=True)
    ]


def typical_nodes(content: Content) -> list[str]:
    typical = []
    clusters = content.clusters
    for nodes in np.split(clusters.order, np.cumsum(clusters.sizes)[:-1]):
        rows = content.embedding[nodes]
        nearest = np.argsort(((rows - rows.mean(0)) ** 2).sum(1), kind="stable")[:_TYPICAL_NODES]
        typical.append(" · ".join(short(content.node_ids[node]) for node in nodes[nearest]))
    return typical


def short(text: str) -> str:
    return text if len(text) <= _LONGEST_ID else text[: _LONGEST_ID - 1] + "…"
