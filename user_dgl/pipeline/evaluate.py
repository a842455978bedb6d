"""Recomputes metrics and scores from the files of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from user_dgl.data.edge_list.labels import match_labels, read_label_rows
from user_dgl.data.reading.ids import tidy_ids
from user_dgl.evaluation.ranking_metrics import weight_ap, weight_auc
from user_dgl.links.files import read_links
from user_dgl.links.prediction import read_link_model
from user_dgl.output.run_directory import RunDirectory
from user_dgl.pipeline.result import labels_or_unlabelled, scores_of, trust_of


def evaluate(
    run_dir: Path,
    labels_file: Path | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Recompute metrics and label-free scores from the files of a run. Nothing is trained.

    For link prediction, ``metrics`` are those of the held-out pairs, and ``cluster_metrics`` are
    those of the clusters.

    Parameters
    ----------
    run_dir : Path
    labels_file : Path, optional
        Labels in node order or with ids; default: the labels of the run's data. As in training,
        ids of nodes that the graph does not have are left out.
    log : callable
        Called with each note on how the file was read.

    Returns
    -------
    dict
        ``metrics``, ``num_labelled_nodes``, ``scores``, ``num_clusters_found``, ``weight_auc``,
        ``weight_ap``.
    """
    run = RunDirectory(run_dir)
    graph, added, labels = run.read_input()
    node_ids, clusters = run.read_clusters()
    embedding = run.read_embedding()
    run.check_sizes(nodes=graph.num_nodes, clusters=len(node_ids), embeddings=len(embedding))
    if labels_file is not None:
        # Nodes without edges, or of other components, may be in the file and not in the graph.
        rows, names = read_label_rows(labels_file), tidy_ids(tuple(node_ids))
        labels, notes = match_labels(rows, names, all_named=False)
        for note in notes:
            log(note)
    report = scores_of(graph, clusters, embedding, labels_or_unlabelled(labels, graph.num_nodes))
    observed_weight = run.read_learned_weight(graph)
    trust = trust_of(observed_weight, graph)
    report["weight_auc"] = weight_auc(trust, added)
    report["weight_ap"] = weight_ap(trust, added)
    held_out = read_links(run)
    if held_out is not None:
        report["cluster_metrics"] = report["metrics"]
        report |= read_link_model(run).report(held_out, run.read_config().links.score)
    return report
