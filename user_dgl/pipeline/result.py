"""Writes the files of a finished run, with the content of ``result.json``."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from user_dgl.data import UNLABELLED
from user_dgl.evaluation.floors import floors, link_floors
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.evaluation.ranking_metrics import weight_ap, weight_auc
from user_dgl.evaluation.structure_metrics import davies_bouldin, partition_scores
from user_dgl.graph import Graph
from user_dgl.links.files import write_link_model, write_links
from user_dgl.links.prediction import LinkModel
from user_dgl.output.run_directory import RunDirectory
from user_dgl.pipeline.inputs import Inputs
from user_dgl.runtime.device import gpu_peak_memory_mb
from user_dgl.runtime.machine import peak_memory_mb
from user_dgl.runtime.progress import StageClock
from user_dgl.runtime.versions import versions
from user_dgl.training.result import TrainingResult
from user_dgl.training.stages import Preparation


@dataclass(frozen=True, eq=False)
class ResultSections:
    """Sections of ``result.json`` that do not come from the fit.

    Attributes
    ----------
    by_name : dict
        Sections under a name of their own: ``critic``, ``num_clusters_curve``, ``view``,
        ``partition``, ``ranks``.
    estimated_share : float or None
        Share of noise among the edges that the critic estimates.
    world_size : int
        Number of processes.
    warnings : sequence of str
        Warnings of the stages before training.
    stages : sequence of dict
        Stages that ran before this run, by ``user-dgl partition``, as `StageClock.entries`.
    """

    by_name: dict[str, Any]
    estimated_share: float | None
    world_size: int = 1
    warnings: Sequence[str] = ()
    stages: Sequence[dict[str, Any]] = ()

    @classmethod
    def of(cls, preparation: Preparation | None) -> "ResultSections":
        """Make the sections of the stages before training; empty ones without these stages."""
        by_name: dict[str, Any] = {}
        if preparation is None:
            return cls(by_name, None)
        critic_scores, view = preparation.prior.critic_scores, preparation.view
        if critic_scores is not None:
            by_name["critic"] = {
                "power": critic_scores.power,
                "by_judges": critic_scores.by_judges,
            }
        if preparation.num_clusters_curve is not None:
            by_name["num_clusters_curve"] = _by_text(preparation.num_clusters_curve)
        if view is not None:
            by_name["view"] = view.report()
        share = None if critic_scores is None else critic_scores.noise_share
        warnings = [] if view is None else view.warnings
        return cls(by_name, share, warnings=warnings)


def write_outputs(
    run: RunDirectory,
    inputs: Inputs,
    result: TrainingResult,
    sections: ResultSections,
    stages: StageClock,
    log: Callable[[str], None],
    links: LinkModel | None = None,
) -> dict[str, Any]:
    """Write the files of a finished training, ``result.json`` last.

    Parameters
    ----------
    run : RunDirectory
    inputs : Inputs
    result : TrainingResult
    sections : ResultSections
    stages : StageClock
        Has measured the run from its start.
    log : callable
        Called with each line of the log.
    links : LinkModel, optional
        For link prediction.

    Returns
    -------
    dict
        The content of ``result.json``.
    """
    config, data, noisy = inputs.config, inputs.data, inputs.noisy
    node_ids = data.node_ids or range(data.num_nodes)
    with stages.stage("write"):
        run.write_input(noisy.graph, noisy.added.numpy(), data.labels)
        run.write_clusters(node_ids, result.clusters)
        run.write_embedding(result.embedding)
        run.write_learned_graph(result.graph, result.weight)
    with stages.stage("scores"):
        content = _content(inputs, result, sections) | sections.by_name
    if links is not None and inputs.split is not None:
        content["cluster_metrics"] = content["metrics"]
        write_links(run, inputs.split)
        write_link_model(run, links.score, links.feat, links.probs)
        with stages.stage("link scores"):
            content |= links.report(inputs.split.held_out, config.links.score)
    if config.eval.floors:
        with stages.stage("floors"):
            content |= _floor_sections(inputs, log)
    content["stages"] = [*sections.stages, *stages.entries]
    # The peak of the first process is measured now; the others measured theirs when they ended.
    others = sections.by_name.get("ranks", [])[1:]
    content["peak_memory_mb"] = peak_memory_mb() + sum(rank["peak_memory_mb"] for rank in others)
    on_gpu = [gpu_peak_memory_mb(), *(rank["gpu_peak_memory_mb"] for rank in others)]
    content["gpu_peak_memory_mb"] = None if None in on_gpu else sum(on_gpu)
    content["seconds_total"] = stages.seconds()
    run.write_result(content)
    for warning in result.warnings:
        log(f"Warning: {warning}")
    return content


def _floor_sections(inputs: Inputs, log: Callable[[str], None]) -> dict[str, Any]:
    """Make ``floors``, and ``floors_prepared`` if the preparation changes the columns.

    The second section shows the effect of the preparation alone, so that the effect of training can
    be told from it.
    """
    config, graph = inputs.config, inputs.noisy.graph
    labels = labels_or_unlabelled(inputs.data.labels, inputs.data.num_nodes)
    if inputs.split is None and (labels == UNLABELLED).all():
        log("Note: no labels, so the floors would have no scores: not run")
        return {}
    features = {"floors": inputs.raw_feat}
    if config.features.changes_columns():
        features["floors_prepared"] = inputs.feat
    if inputs.split is not None:
        test = inputs.split.test
        return {name: link_floors(feat, graph, test) for name, feat in features.items()}
    clusters = config.model.num_clusters
    assert isinstance(clusters, int), "a finished run has a number of clusters"
    return {
        name: floors(feat, graph, clusters, config.seed, labels) for name, feat in features.items()
    }


def labels_or_unlabelled(labels: np.ndarray | None, num_nodes: int) -> np.ndarray:
    """Return the labels, or `UNLABELLED` for every node if there are none."""
    return np.full(num_nodes, UNLABELLED) if labels is None else labels


def scores_of(
    graph: Graph, clusters: np.ndarray, embedding: np.ndarray, labels: np.ndarray
) -> dict[str, Any]:
    """Compute the part of ``result.json`` that the files of a run and the labels determine."""
    return {
        "metrics": clustering_metrics(labels, clusters),
        "num_labelled_nodes": int((labels != UNLABELLED).sum()),
        "num_clusters_found": len(np.unique(clusters)),
        "scores": {
            **partition_scores(graph, clusters),
            "davies_bouldin": davies_bouldin(embedding, clusters),
        },
    }


def trust_of(observed_weight: np.ndarray, graph: Graph) -> np.ndarray:
    """What A' says of each observed edge without what the data say of it, float64 (E,).

    Edges that A' trusts equally have equal values, whatever their weight in the data.

    Parameters
    ----------
    observed_weight : float32 (E,)
        Weights of the observed pairs in A'.
    graph : Graph
        The observed graph.
    """
    if graph.weight is None:
        return observed_weight
    trust = observed_weight.astype(np.float64) / graph.edge_weight.numpy()
    # The weight in A' is rounded to float32, so that the quotient has six digits.
    unit = 10.0 ** (np.floor(np.log10(np.maximum(trust, np.finfo(np.float32).tiny))) - 5)
    return np.round(trust / unit) * unit


def _content(inputs: Inputs, result: TrainingResult, sections: ResultSections) -> dict[str, Any]:
    """Make the sections of ``result.json`` that every run has."""
    config, data, noisy = inputs.config, inputs.data, inputs.noisy
    noise, labels = config.data.noise, labels_or_unlabelled(data.labels, data.num_nodes)
    observed_weight = result.weight[result.observed]
    trust = trust_of(observed_weight, noisy.graph)
    flips = noise.flips
    scores = scores_of(noisy.graph, result.clusters, result.embedding, labels)
    return {
        "task": config.task,
        "num_nodes": data.num_nodes,
        "num_observed_edges": noisy.graph.num_edges,
        "num_candidate_edges": int((~result.observed).sum()),
        "num_features": inputs.num_features,
        "num_clusters": config.model.num_clusters,
        **scores,
        "labels_from": result.labels_from,
        "assignments": {
            # The metrics of the result are known. AMI takes seconds on large graphs.
            name: scores["metrics"]
            if np.array_equal(clusters, result.clusters)
            else clustering_metrics(labels, clusters)
            for name, clusters in result.assignments.items()
        },
        "noise": {
            "kind": noise.kind,
            # A graph from a file has no rate that is known here.
            "rate": noise.rate if flips else None if noise.kind == "file" else 0.0,
            "seed": (config.seed if noise.seed is None else noise.seed) if flips else None,
            "edges_added": noisy.num_added,
            "edges_removed": noisy.num_removed,
            "true_share": noisy.num_added / max(noisy.graph.num_edges, 1),
            "estimated_share": sections.estimated_share,
            "weight_auc": weight_auc(trust, noisy.added.numpy()),
            "weight_ap": weight_ap(trust, noisy.added.numpy()),
        },
        "structure": {
            "observed_weight": _summary(observed_weight),
            "candidate_weight": _summary(result.weight[~result.observed]),
        },
        "loss": result.loss,
        "restart_losses": result.restart_losses,
        "epochs": len(result.epoch_seconds),
        "seconds_per_epoch": statistics.median(result.epoch_seconds),
        "engine": result.engine,
        "device": result.device,
        "world_size": sections.world_size,
        "seed": config.seed,
        "versions": versions(),
        "notes": [*data.notes, *noisy.notes],
        "warnings": [*inputs.warnings, *sections.warnings, *result.warnings],
    }


def _by_text(scores: dict[int, float] | dict[float, float]) -> dict[str, float]:
    """Return the scores with their keys as text, which JSON needs."""
    return {f"{value:g}": score for value, score in scores.items()}


def _summary(weight: np.ndarray) -> dict[str, float] | None:
    """Summarise weights; None if there are none."""
    if not len(weight):
        return None
    return {
        "mean": float(weight.mean()),
        "std": float(weight.std()),
        "min": float(weight.min()),
        "max": float(weight.max()),
    }
