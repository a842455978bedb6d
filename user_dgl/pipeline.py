"""From settings to a run directory: data, noise, training, scores."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from user_dgl.baselines import resolve_baseline
from user_dgl.baselines.trainer import BaselineTrainer
from user_dgl.clustering.num_clusters import most_considered
from user_dgl.clustering.smoothed_view import DEFAULT_SELF_SHARE
from user_dgl.config import Config
from user_dgl.data import UNLABELLED, AttributedGraph, data_root, load_data, read_labels
from user_dgl.errors import InputError
from user_dgl.evaluation.floors import floors, link_floors
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.evaluation.ranking_metrics import weight_ap, weight_auc
from user_dgl.evaluation.structure_metrics import davies_bouldin, partition_scores
from user_dgl.features.preparation import prepare_features
from user_dgl.graph import Graph
from user_dgl.links.prediction import LinkModel, draw_examples, learn_links, read_link_model
from user_dgl.links.split import LinkSplit, split_links
from user_dgl.output.run_directory import RunDirectory
from user_dgl.perturb import Perturbed, Victim, perturb
from user_dgl.runtime.device import gpu_peak_memory_mb
from user_dgl.runtime.machine import peak_memory_mb
from user_dgl.runtime.signals import stop_signal
from user_dgl.runtime.versions import versions
from user_dgl.training.partition_trainer import PartitionTrainer
from user_dgl.training.result import Fit
from user_dgl.training.stages import Preparation, check_num_clusters
from user_dgl.training.trainer import Trainer


def load_noisy_data(
    config: Config, log: Callable[[str], None]
) -> tuple[AttributedGraph, Perturbed, LinkSplit | None]:
    """The data set, its graph after the noise that the settings ask for, and what is held out.

    For link prediction the graph is the data set's without the edges that are held out, before
    noise as after it. What was cleaned while reading goes to ``log``, a line each.
    """
    data, split, held_out = load_data(config.data), None, None
    if config.task == "link_prediction":
        split = split_links(data.graph, config.links, config.seed)
        data, held_out = dataclasses.replace(data, graph=split.training), split.held_out_keys
    noise, root, victim = config.data.noise, data_root(config.data), None
    if noise.kind == "metattack":  # the one kind that sees labels
        victim = Victim(data.feat, data.labels)
    noisy = perturb(data.graph, noise, config.seed, root, held_out, victim, log)
    for note in (*data.notes, *noisy.notes):
        log(f"Note: {note}")
    return data, noisy, split


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run starts from.

    Attributes
    ----------
    asked : Config
        The settings as given.
    config : Config
        As the data allow, and with the number of clusters once that is known.
    data : AttributedGraph
    noisy : Perturbed
    raw_feat, feat : scipy CSR (N, F) or None
        Features as they are, and as the settings prepare them; None where only parts are at hand.
    num_features : int
        F.
    warnings : list of str
    split : LinkSplit or None
        For link prediction: ``data`` and ``noisy`` lack what it holds out.
    """

    asked: Config
    config: Config
    data: AttributedGraph
    noisy: Perturbed
    raw_feat: sp.csr_matrix | None
    feat: sp.csr_matrix | None
    num_features: int
    warnings: list[str]
    split: LinkSplit | None = None

    def resolved(self, output_dir: Path) -> Config:
        """The settings that repeat the run from anywhere."""
        root = str(data_root(self.asked.data).resolve())
        data = dataclasses.replace(self.asked.data, root=root)
        return dataclasses.replace(self.asked, output_dir=str(output_dir), data=data)

    def summary(self, engine: str, output_dir: Path) -> str:
        """One line on what is trained."""
        return (
            f"{self.data.num_nodes} nodes, {self.noisy.graph.num_edges} edges, "
            f"{self.num_features} features, engine {engine}; writing to {output_dir}"
        )


@dataclass(frozen=True, eq=False)
class Choices:
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
    def of(cls, preparation: Preparation) -> "Choices":
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


def read_inputs(config: Config, log: Callable[[str], None]) -> Inputs:
    """Data, noise and prepared features of some settings.

    Raises
    ------
    InputError
    """
    config, warnings = resolve_baseline(config)
    data, noisy, split = load_noisy_data(config, log)
    asked = config
    config, raw_feat, more = with_features(config, noisy.graph, data.feat)
    warnings += more
    for warning in warnings:
        log(f"Warning: {warning}")
    feat = prepare_features(raw_feat, config.features)
    return Inputs(asked, config, data, noisy, raw_feat, feat, feat.shape[1], warnings, split)


def with_features(
    config: Config, graph: Graph, feat: sp.csr_matrix | None
) -> tuple[Config, sp.csr_matrix, list[str]]:
    """Features to train on, settings that suit them and warnings.

    Without features, those are the neighbours of each node: its row of the adjacency.
    """
    warnings = []
    if feat is None:
        if not graph.num_edges:
            raise InputError(
                "neither edges nor features: nothing to tell the nodes apart by; give "
                "data.features (--features FILE) or a graph with edges"
            )
        feat = graph.to_scipy()
        # Such features hold the edges that critic and view leave out to judge by them.
        config = without_judging(config)
        warnings.append(
            "the data have no features: the neighbours of a node serve as its features, every edge "
            "starts at weight 1 and the share of own features is not chosen"
        )
    columns, model = feat.shape[1], config.model
    if model.num_clusters == "auto" and columns <= most_considered(model, graph.num_nodes):
        warnings.append(
            f"model.num_clusters=auto: features of {columns} columns tell at most {columns - 1} "
            "clusters apart, so that no more are thought of"
        )
    alone = (feat.getnnz(axis=1) == 0) & (graph.degree.numpy() == 0)
    if alone.any():
        warnings.append(
            f"{alone.sum()} nodes have neither edges nor features: their clusters mean nothing"
        )
    return config, feat, warnings


def trainer_of(
    config: Config,
    graph: Graph,
    feat: sp.csr_matrix,
    log: Callable[[str], None],
    held_out: np.ndarray | None = None,
) -> Trainer | BaselineTrainer:
    """The trainer that ``model.kind`` and ``train.mode`` ask for; ``held_out`` as in `Trainer`."""
    if config.model.kind != "user":
        kind = BaselineTrainer
    else:
        kind = PartitionTrainer if config.train.mode == "partition" else Trainer
    return kind(graph, feat, config, log=log, held_out=held_out)


def finished_result(
    config: Config, output_dir: Path, log: Callable[[str], None]
) -> dict[str, Any] | None:
    """The result of a run that is to be resumed and has ended already.

    Raises
    ------
    InputError
        The settings are of no run that may enter the folder, found out before the data are read.
    """
    check_num_clusters(config)
    run = RunDirectory(output_dir)
    run.check_may_enter(resolve_baseline(config)[0])
    if not (config.train.resume and run.finished()):
        return None
    log(f"{output_dir}: the run there is finished; nothing to do")
    return run.read_result()


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
    run, finished = RunDirectory(output_dir), finished_result(config, output_dir, log)
    if finished is not None:
        return finished
    if config.distributed.partition is not None:
        log("Warning: distributed.partition has no effect without tools/launch.py")
    inputs = read_inputs(config, log)
    graph, split = inputs.noisy.graph, inputs.split
    held_out = examples = links = None
    if split is not None:
        held_out = split.held_out_keys
        examples = draw_examples(inputs.config, graph, held_out)
    trainer = trainer_of(inputs.config, graph, inputs.feat, log, held_out)

    resolved = inputs.resolved(output_dir)
    checkpoint = run.checkpoint_to_resume(resolved)
    if checkpoint is not None and "shards" in checkpoint:
        raise InputError(
            f"{output_dir}: the checkpoint there is of a distributed run: go on with "
            "tools/launch.py, with any number of processes"
        )
    inputs = dataclasses.replace(inputs, config=trainer.config)
    log(inputs.summary(trainer.engine, output_dir))
    trainer.begin = lambda: run.begin(resolved, checkpoint)
    trainer.record, trainer.save = run.record, run.save_checkpoint
    with stop_signal() as trainer.stop:
        fit = trainer.fit(checkpoint)
    choices = Choices.of(trainer.preparation)
    if isinstance(trainer, PartitionTrainer):
        choices.sections["partition"] = trainer.partition
    if examples is not None:
        feat = None if inputs.data.feat is None else inputs.feat
        links = learn_links(inputs.config, examples, fit, feat, trainer.memberships())
    del trainer  # its state is larger than all that is still to come
    return write_outputs(run, inputs, fit, choices, started, log, links)


def write_outputs(
    run: RunDirectory,
    inputs: Inputs,
    fit: Fit,
    choices: Choices,
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
    labels = _labels(data.labels, data.num_nodes)
    if links is not None:
        result["cluster_metrics"] = result["metrics"]
        run.write_links(inputs.split)
        run.write_link_model(links.score, links.feat, links.probs)
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


def without_judging(config: Config) -> Config:
    """The settings without stages that hold edges out of features made of edges."""
    structure = dataclasses.replace(config.structure, prior="uniform")
    smooth = config.model.smooth
    if smooth.self_share is None:
        smooth = dataclasses.replace(smooth, self_share=DEFAULT_SELF_SHARE)
    model = dataclasses.replace(config.model, smooth=smooth)
    return dataclasses.replace(config, structure=structure, model=model)


def evaluate(run_dir: Path, labels_file: Path | None = None) -> dict[str, Any]:
    """Metrics and label-free scores recomputed from the files of a run; trains nothing.

    Of link prediction, ``metrics`` are those of the pairs held out, and the clustering's are
    ``cluster_metrics``.

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
    run.check_sizes(nodes=graph.num_nodes, clusters=len(node_ids), embeddings=len(embedding))
    if labels_file is not None:
        labels = read_labels(labels_file, node_ids, graph.num_nodes)
    report = _scores(graph, clusters, embedding, _labels(labels, graph.num_nodes))
    observed_weight = run.read_learned_weight(graph)
    report["weight_auc"] = weight_auc(observed_weight, added)
    report["weight_ap"] = weight_ap(observed_weight, added)
    held_out = run.read_links()
    if held_out is not None:
        report["cluster_metrics"] = report["metrics"]
        report |= read_link_model(run).report(held_out, run.read_config().links.score)
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


def _result(inputs: Inputs, fit: Fit, choices: Choices) -> dict[str, Any]:
    config, data, noisy = inputs.config, inputs.data, inputs.noisy
    noise, labels = config.data.noise, _labels(data.labels, data.num_nodes)
    observed_weight = fit.weight[fit.observed]
    flips = noise.flips
    return {
        "task": config.task,
        "num_nodes": data.num_nodes,
        "num_observed_edges": noisy.graph.num_edges,
        "num_candidate_edges": int((~fit.observed).sum()),
        "num_features": inputs.num_features,
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
