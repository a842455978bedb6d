"""The files of a finished run and the content of ``result.json``."""

import statistics
import time
from collections.abc import Callable
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
from user_dgl.runtime.versions import versions
from user_dgl.training.result import TrainingResult
from user_dgl.training.stages import Preparation


@dataclass(frozen=True, eq=False)
class ResultSections:
    """What was found before and beside training, for ``result.json``.

    Attributes
    ----------
    sections : dict
        Sections of their own: ``critic``, ``num_clusters_curve``, ``view``, ``partition``,
        ``ranks``.
    stages : list of dict
    estimated_share : float or None
        Of noise, by the critic.
    world_size : int
    """

    sections: dict[str, Any]
    stages: list[dict[str, Any]]
    estimated_share: float | None
    world_size: int = 1

    @classmethod
    def of(cls, preparation: Preparation) -> "ResultSections":
        """Those of the stages before training."""
        sections: dict[str, Any] = {}
        criticism, view = preparation.prior.criticism, preparation.view
        if criticism is not None:
            scores = _by_text(criticism.power_scores)
            sections["critic"] = {"power": criticism.power, "held_out_scores": scores}
        if preparation.num_clusters_curve is not None:
            sections["num_clusters_curve"] = _by_text(preparation.num_clusters_curve)
        if view is not None:
            scores = _by_text(view.scores)
            sections["view"] = {"self_share": view.self_share, "held_out_scores": scores}
        share = criticism and criticism.noise_share
        return cls(sections, preparation.stages, share)


def write_outputs(
    run: RunDirectory,
    inputs: Inputs,
    fit: TrainingResult,
    choices: ResultSections,
    started: float,
    log: Callable[[str], None],
    links: LinkModel | None = None,
) -> dict[str, Any]:
    """Files of a finished training; returns the content of ``result.json``, written last."""
    config, data, noisy = inputs.config, inputs.data, inputs.noisy
    node_ids = data.node_ids or range(data.num_nodes)
    run.write_input(noisy.graph, noisy.added.numpy(), data.labels)
    run.write_clusters(node_ids, fit.clusters)
    run.write_embedding(fit.embedding)
    run.write_learned_graph(fit.graph, fit.weight)
    result = _result(inputs, fit, choices) | choices.sections
    labels = labels_or_unlabelled(data.labels, data.num_nodes)
    if links is not None:
        result["cluster_metrics"] = result["metrics"]
        write_links(run, inputs.split)
        write_link_model(run, links.score, links.feat, links.probs)
        result |= links.report(inputs.split.held_out, config.links.score)
    if config.eval.floors and links is not None:
        test = inputs.split.test
        result["floors"] = link_floors(inputs.raw_feat, noisy.graph, test)
        if config.features.changes_columns():
            result["floors_prepared"] = link_floors(inputs.feat, noisy.graph, test)
    elif config.eval.floors and (labels == UNLABELLED).all():
        log("Note: no labels, so the floors would have no scores: not run")
    elif config.eval.floors:
        clusters = config.model.num_clusters
        result["floors"] = floors(inputs.raw_feat, noisy.graph, clusters, config.seed, labels)
        if config.features.changes_columns():
            # What preparation alone is worth, and what training adds to it.
            prepared = floors(inputs.feat, noisy.graph, clusters, config.seed, labels)
            result["floors_prepared"] = prepared
    result["stages"] = [
        *choices.stages,
        {
            "name": config.model.kind,
            "restarts": config.train.restarts,
            "epochs": len(fit.epoch_seconds),
            "seconds": sum(fit.epoch_seconds),
        },
    ]
    if links is not None:
        result["stages"].append({"name": "links", "epochs": 0, "seconds": links.seconds})
    # Of the first process now, of the others when they ended.
    others = choices.sections.get("ranks", [])[1:]
    result["peak_memory_mb"] = peak_memory_mb() + sum(rank["peak_memory_mb"] for rank in others)
    on_gpu = [gpu_peak_memory_mb(), *(rank["gpu_peak_memory_mb"] for rank in others)]
    result["gpu_peak_memory_mb"] = None if None in on_gpu else sum(on_gpu)
    result["seconds_total"] = time.perf_counter() - started
    run.write_result(result)
    for warning in fit.warnings:
        log(f"Warning: {warning}")
    return result


def labels_or_unlabelled(labels: np.ndarray | None, num_nodes: int) -> np.ndarray:
    return np.full(num_nodes, UNLABELLED) if labels is None else labels


def scores_of(graph: Graph, clusters, embedding, labels) -> dict[str, Any]:
    """The part of a result that files and labels determine."""
    return {
        "metrics": clustering_metrics(labels, clusters),
        "num_labelled_nodes": int((labels != UNLABELLED).sum()),
        "num_clusters_found": len(np.unique(clusters)),
        "scores": {
            **partition_scores(graph, clusters),
            "davies_bouldin": davies_bouldin(embedding, clusters),
        },
    }


def _result(inputs: Inputs, fit: TrainingResult, choices: ResultSections) -> dict[str, Any]:
    config, data, noisy = inputs.config, inputs.data, inputs.noisy
    noise, labels = config.data.noise, labels_or_unlabelled(data.labels, data.num_nodes)
    observed_weight = fit.weight[fit.observed]
    flips = noise.flips
    return {
        "task": config.task,
        "num_nodes": data.num_nodes,
        "num_observed_edges": noisy.graph.num_edges,
        "num_candidate_edges": int((~fit.observed).sum()),
        "num_features": inputs.num_features,
        "num_clusters": config.model.num_clusters,
        **scores_of(noisy.graph, fit.clusters, fit.embedding, labels),
        "labels_from": fit.labels_from,
        "assignments": {
            name: clustering_metrics(labels, clusters) for name, clusters in fit.assignments.items()
        },
        "noise": {
            "kind": noise.kind,
            "rate": noise.rate if flips else 0.0,
            "seed": (config.seed if noise.seed is None else noise.seed) if flips else None,
            "edges_added": noisy.num_added,
            "edges_removed": noisy.num_removed,
            "true_share": noisy.num_added / max(noisy.graph.num_edges, 1),
            "estimated_share": choices.estimated_share,
            "weight_auc": weight_auc(observed_weight, noisy.added.numpy()),
            "weight_ap": weight_ap(observed_weight, noisy.added.numpy()),
        },
        "structure": {
            "observed_weight": _summary(observed_weight),
            "candidate_weight": _summary(fit.weight[~fit.observed]),
        },
        "loss": fit.loss,
        "restart_losses": fit.restart_losses,
        "epochs": len(fit.epoch_seconds),
        "seconds_per_epoch": statistics.median(fit.epoch_seconds),
        "engine": fit.engine,
        "device": fit.device,
        "world_size": choices.world_size,
        "seed": config.seed,
        "versions": versions(),
        "notes": [*data.notes, *noisy.notes],
        "warnings": [*inputs.warnings, *fit.warnings],
    }


def _by_text(scores: dict[float, float]) -> dict[str, float]:
    return {f"{value:g}": score for value, score in scores.items()}


def _summary(weight: np.ndarray) -> dict[str, float] | None:
    if not len(weight):
        return None
    return {
        "mean": float(weight.mean()),
        "std": float(weight.std()),
        "min": float(weight.min()),
        "max": float(weight.max()),
    }
