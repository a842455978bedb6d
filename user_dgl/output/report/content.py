"""Content of the report: the files of a run, read and checked, and numbers of its clusters.

A file that the run has not written yet is left out, so that an unfinished run has a report too.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.output.run_directory import RunDirectory

_TYPICAL_NODES = 3
_LONGEST_ID = 40


class Clusters:
    """Clusters of the nodes, sorted by size with the largest first.

    Parameters
    ----------
    node_ids : list of str (N,)
    clusters : int (N,)

    Attributes
    ----------
    node_ids : list of str (N,)
    names : (K,)
        Numbers of the clusters in ``clusters.csv``.
    sizes : (K,)
        Number of nodes in each cluster.
    rank : (N,)
        Position of each node's cluster in ``names``.
    order : (N,)
        Nodes sorted by the rank of their cluster.
    """

    def __init__(self, node_ids: list[str], clusters: np.ndarray):
        names, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        largest_first = np.argsort(-sizes, kind="stable")
        place = np.empty(len(names), dtype=np.int64)
        place[largest_first] = np.arange(len(names))
        self.node_ids = node_ids
        self.names, self.sizes = names[largest_first], sizes[largest_first]
        self.rank = place[codes]
        self.order = np.argsort(self.rank, kind="stable")


class ObservedGraph(NamedTuple):
    """The observed graph A.

    Attributes
    ----------
    graph : Graph
        E edges.
    added : bool (E,)
        Which edges the noise has added.
    """

    graph: Graph
    added: np.ndarray


@dataclass(eq=False)
class Content:
    """The files of a run. An attribute is None if its file is missing.

    Attributes
    ----------
    missing : list of str
        Names of the missing files.
    config : str or None
        Text of ``config.yaml``.
    rows : list of dict or None
        Rows of ``metrics.jsonl``.
    result : dict or None
        Content of ``result.json``.
    clusters : Clusters or None
    embedding : (N, d) or None
    observed : ObservedGraph or None
    learned : scipy CSR (N, N) or None
        The learned graph A'.
    """

    missing: list[str]
    config: str | None = None
    rows: list[dict[str, Any]] | None = None
    result: dict[str, Any] | None = None
    clusters: Clusters | None = None
    embedding: np.ndarray | None = None
    observed: ObservedGraph | None = None
    learned: sp.csr_matrix | None = None


def read_content(run: RunDirectory) -> Content:
    """Read the files of a run that are there, and check that they belong together.

    Raises
    ------
    InputError
        There is no run, a file is damaged, or the files are of different runs.
    """
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
            "and give the output_dir of the run"
        )
    counts = {}
    if there[run.config_file]:
        content.config = run.read_config_text()
    if there[run.metrics_file]:
        content.rows = run.read_metrics()
    if there[run.result_file]:
        content.result = run.read_result()
    if there[run.clusters_file]:
        node_ids, clusters = run.read_clusters()
        content.clusters = Clusters(node_ids, clusters)
        counts["clusters"] = len(clusters)
    if there[run.embedding_file]:
        content.embedding = run.read_embedding()
        counts["embeddings"] = len(content.embedding)
    if there[run.input_file]:
        graph, added, _ = run.read_input()
        content.observed = ObservedGraph(graph, added)
        counts["nodes"] = graph.num_nodes
    if there[run.learned_file]:
        content.learned = run.read_learned_graph()
        counts["rows of A'"] = content.learned.shape[0]
    run.check_sizes(**counts)
    return content


def share_of_weight_inside(matrix: sp.csr_matrix, groups: np.ndarray) -> list[float | None]:
    """Return for each group the percentage of its nodes' edge weight that stays inside the group.

    The value of a group without weight is None.
    """
    entries = matrix.tocoo()
    rows, columns = groups[entries.row], groups[entries.col]
    size = int(groups.max()) + 1
    volume = np.bincount(rows, entries.data, minlength=size)
    same = rows == columns
    internal = np.bincount(rows[same], entries.data[same], minlength=size)
    return [
        100 * part / all_ if all_ else None for part, all_ in zip(internal, volume, strict=True)
    ]


def typical_nodes(clusters: Clusters, embedding: np.ndarray) -> list[str]:
    """Return for each cluster the ids of the nodes whose embeddings are nearest to its mean."""
    typical = []
    for nodes in np.split(clusters.order, np.cumsum(clusters.sizes)[:-1]):
        rows = embedding[nodes]
        nearest = np.argsort(((rows - rows.mean(0)) ** 2).sum(1), kind="stable")[:_TYPICAL_NODES]
        typical.append(" · ".join(_short(clusters.node_ids[node]) for node in nodes[nearest]))
    return typical


def _short(text: str) -> str:
    """Cut off a long id."""
    return text if len(text) <= _LONGEST_ID else text[: _LONGEST_ID - 1] + "…"
