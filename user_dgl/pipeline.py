"""From settings to a run directory: data, noise, training, scores."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from user_dgl.config import Config
from user_dgl.data import UNLABELLED, AttributedGraph, data_root, load_data
from user_dgl.data.edge_list import read_labels
from user_dgl.errors import InputError
from user_dgl.features import prepare_features
from user_dgl.floors import floors
from user_dgl.graph import Graph
from user_dgl.memory import peak_memory_mb
from user_dgl.metrics import (
    clustering_metrics,
    davies_bouldin,
    partition_scores,
    weight_ap,
    weight_auc,
)
from user_dgl.partition_trainer import PartitionTrainer
from user_dgl.perturb import Perturbed, perturb
from user_dgl.run_directory import RunDirectory
from user_dgl.smoothing import DEFAULT_SELF_SHARE
from user_dgl.trainer import Fit, Trainer
from user_dgl.versions import versions


def load_noisy_data(
    config: Config, log: Callable[[str], None]
) -> tuple[AttributedGraph, Perturbed]:
    """The data set, and its graph after the noise that the settings ask for.

    What was cleaned while reading goes to ``log``, a line each.
    """
    data = load_data(config.data)
    noisy = perturb(data.graph, config.data.noise, config.seed, data_root(config.data))
    for note in (*data.notes, *noisy.notes):
        log(f"Note: {note}")
    return data, noisy


def train(config: Config, output_dir: Path, log: Callable[[str], None]) -> dict[str, Any]:
    """Run the settings to the end and write the run directory.

    Data are read and checked before the directory is touched.

    Parameters
    ----------
    config : Config
    output_dir : Path
    log : callable
        Gets each line for people.

    Returns
    -------
    dict
        The content of ``result.json``.

    Raises
    ------
    InputError, NonFiniteLossError
    """
    started = time.perf_counter()
    if config.train.resume and RunDirectory(output_dir).finished():
        RunDirectory(output_dir).check_same_settings(config)
        log(f"{output_dir}: the run there is finished; nothing to do")
        return RunDirectory(output_dir).read_result()
    warnings = config.inert_settings()
    data, noisy = load_noisy_data(config, log)
    raw_feat = data.feat
    if raw_feat is None:
        raw_feat = noisy.graph.to_scipy()
        # Such features hold the edges that critic and view leave out to judge by them.
        config = _without_judging(config)
        warnings.append(
            "the data have no features: the neighbours of a node serve as its features, every edge "
            "starts at weight 1 and the share of own features is not chosen"
        )
    for warning in warnings:
        log(f"Warning: {warning}")
    feat = prepare_features(raw_feat, config.features)
    kind = PartitionTrainer if config.train.mode == "partition" else Trainer
    trainer = kind(noisy.graph, feat, config, log=log)
    resolved = dataclasses.replace(
        config,
        output_dir=str(output_dir),
        data=dataclasses.replace(config.data, root=str(data_root(config.data).resolve())),
    )
    run, checkpoint = RunDirectory.open_for_training(output_dir, resolved)
    log(
        f"{data.num_nodes} nodes, {noisy.graph.num_edges} edges, {feat.shape[1]} features, "
        f"engine {trainer.engine}; writing to {output_dir}"
    )
    trainer.record, trainer.save = run.record, run.save_checkpoint
    fit = trainer.fit(checkpoint)
    choices, stages, criticism = _choices(trainer), trainer.stages, trainer.prior.criticism
    del trainer  # its state is larger than all that is still to come
    node_ids = data.node_ids or range(data.num_nodes)
    added = noisy.added.numpy()
    run.write_input(noisy.graph, added, data.labels)
    run.write_clusters(node_ids, fit.clusters)
    run.write_embedding(fit.embedding)
    run.write_learned_graph(fit.graph, fit.weight)
    share = criticism and criticism.noise_share
    result = _result(config, data, noisy, fit, share, warnings) | choices
    if config.eval.floors:
        clusters, labels = config.model.num_clusters, _labels(data.labels, data.num_nodes)
        result["floors"] = floors(raw_feat, noisy.graph, clusters, config.seed, labels)
        if config.features.changes_columns():
            # What preparation alone is worth, and what training adds to it.
            prepared = floors(feat, noisy.graph, clusters, config.seed, labels)
            result["floors_prepared"] = prepared
    result["stages"] = [
        *stages,
        {
            "name": "user",
            "restarts": config.train.restarts,
            "epochs": config.train.epochs,
            "seconds": sum(fit.epoch_seconds),
        },
    ]
    result["peak_memory_mb"] = peak_memory_mb()
    result["seconds_total"] = time.perf_counter() - started
    run.write_result(result)
    for warning in fit.warnings:
        log(f"Warning: {warning}")
    return result


def _without_judging(config: Config) -> Config:
    structure = dataclasses.replace(config.structure, prior="uniform")
    smooth = config.model.smooth
    if smooth.self_share is None:
        smooth = dataclasses.replace(smooth, self_share=DEFAULT_SELF_SHARE)
    model = dataclasses.replace(config.model, smooth=smooth)
    return dataclasses.replace(config, structure=structure, model=model)


def evaluate(run_dir: Path, labels_file: Path | None = None) -> dict[str, Any]:
    """Metrics and label-free scores recomputed from the files of a run; trains nothing.

    Parameters
    ----------
    run_dir : Path
    labels_file : Path, optional
        Labels by order or by id; default: those of the run's data.

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
    if not len(node_ids) == len(embedding) == graph.num_nodes:
        raise InputError(
            f"{run_dir}: {graph.num_nodes} nodes, {len(node_ids)} clusters and {len(embedding)} "
            "embeddings do not belong together"
        )
    if labels_file is not None:
        labels = read_labels(labels_file, node_ids, graph.num_nodes)
    report = _scores(graph, clusters, embedding, _labels(labels, graph.num_nodes))
    observed_weight = run.read_learned_weight(graph)
    report["weight_auc"] = weight_auc(observed_weight, added)
    report["weight_ap"] = weight_ap(observed_weight, added)
    return report


def _labels(labels: np.ndarray | None, num_nodes: int) -> np.ndarray:
    return np.full(num_nodes, UNLABELLED) if labels is None else labels


def _scores(graph: Graph, clusters, embedding, labels) -> dict[str, Any]:
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


def _result(
    config: Config,
    data: AttributedGraph,
    noisy: Perturbed,
    fit: Fit,
    estimated_share: float | None,
    warnings: list[str],
) -> dict[str, Any]:
    noise, labels = config.data.noise, _labels(data.labels, data.num_nodes)
    observed_weight = fit.weight[fit.observed]
    flips = noise.kind == "random_flip"
    return {
        "task": config.task,
        "num_nodes": data.num_nodes,
        "num_observed_edges": noisy.graph.num_edges,
        "num_candidate_edges": int((~fit.observed).sum()),
        "num_features": data.num_nodes if data.feat is None else data.feat.shape[1],
        "num_clusters": config.model.num_clusters,
        **_scores(noisy.graph, fit.clusters, fit.embedding, labels),
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
            "estimated_share": estimated_share,
            "weight_auc": weight_auc(observed_weight, noisy.added.numpy()),
            "weight_ap": weight_ap(observed_weight, noisy.added.numpy()),
        },
        "structure": {
            "observed_weight": _summary(observed_weight),
            "candidate_weight": _summary(fit.weight[~fit.observed]),
        },
        "loss": fit.loss,
        "restart_losses": fit.restart_losses,
        "epochs": config.train.epochs,
        "seconds_per_epoch": statistics.median(fit.epoch_seconds),
        "engine": fit.engine,
        "world_size": 1,
        "seed": config.seed,
        "versions": versions(),
        "notes": [*data.notes, *noisy.notes],
        "warnings": [*warnings, *fit.warnings],
    }


def _choices(trainer: Trainer) -> dict[str, Any]:
    """What the critic and the view chose, and the parts, as far as there are any."""
    chosen: dict[str, Any] = {}
    criticism, view = trainer.prior.criticism, trainer.view
    if criticism is not None:
        scores = _by_text(criticism.power_scores)
        chosen["critic"] = {"power": criticism.power, "held_out_scores": scores}
    if isinstance(trainer, PartitionTrainer):
        chosen["partition"] = trainer.partition
    if view is not None:
        scores = _by_text(view.scores)
        chosen["view"] = {"self_share": view.self_share, "held_out_scores": scores}
    return chosen


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
