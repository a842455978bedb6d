"""Training of a run, from settings to a run directory: data, noise, training, scores."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from user_dgl.baselines import resolve_baseline
from user_dgl.baselines.trainer import BaselineTrainer
from user_dgl.config import Config, DistributedConfig
from user_dgl.data.load import named_files
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.links.prediction import draw_examples, learn_links
from user_dgl.output.run_directory import RunDirectory
from user_dgl.pipeline.inputs import read_inputs
from user_dgl.pipeline.inspection import summary_lines
from user_dgl.pipeline.result import ResultSections, write_outputs
from user_dgl.runtime.progress import StageClock
from user_dgl.training.hooks import Hooks
from user_dgl.training.partition_trainer import PartitionTrainer
from user_dgl.training.stages import check_num_clusters
from user_dgl.training.trainer import Trainer


def trainer_of(
    config: Config,
    graph: Graph,
    feat: sp.csr_matrix,
    hooks: Hooks,
    held_out: np.ndarray | None = None,
) -> Trainer | BaselineTrainer:
    """Make the trainer for ``model.kind`` and ``train.mode``; ``held_out`` as in `Trainer`."""
    if config.model.kind != "user":
        return BaselineTrainer(graph, feat, config, hooks, held_out=held_out)
    return user_trainer_of(config, graph, feat, hooks, held_out)


def user_trainer_of(
    config: Config,
    graph: Graph,
    feat: sp.csr_matrix,
    hooks: Hooks,
    held_out: np.ndarray | None = None,
) -> Trainer:
    """Make the trainer of USER that ``train.mode`` asks for."""
    kind = PartitionTrainer if config.train.mode == "partition" else Trainer
    return kind(graph, feat, config, hooks, held_out=held_out)


def finished_result(
    config: Config, output_dir: Path, log: Callable[[str], None]
) -> dict[str, Any] | None:
    """Return the result of a run that is to be resumed but has already ended, or else None.

    Raises
    ------
    InputError
        A run of these settings may not use the folder. The data have not been read then.
    """
    check_num_clusters(config)
    run = RunDirectory(output_dir)
    run.check_may_enter(resolve_baseline(config)[0])
    if not (config.train.resume and run.finished()):
        return None
    log(f"Warning: {output_dir}: the run there is finished; nothing to do")
    for file in run.newer(named_files(config.data)):
        log(f"Warning: {file} was changed after this run: overwrite=true runs again with it")
    return run.read_result()


def train(
    config: Config, output_dir: Path, log: Callable[[str], None], shows_progress: bool = True
) -> dict[str, Any]:
    """Run the settings to the end and write the run directory.

    The data are read and checked before the directory is changed.

    Parameters
    ----------
    config : Config
    output_dir : Path
    log : callable
        Called with each line of the log.
    shows_progress : bool
        Whether progress bars are shown on a terminal.

    Returns
    -------
    dict
        The content of ``result.json``.

    Raises
    ------
    InputError, NonFiniteLossError
    """
    stages = StageClock(log, shows_progress)
    run, finished = RunDirectory(output_dir), finished_result(config, output_dir, log)
    if finished is not None:
        return finished
    for item in dataclasses.fields(DistributedConfig):
        if getattr(config.distributed, item.name) != item.default:
            log(f"Warning: distributed.{item.name} has no effect without user-dgl launch")
    with stages.stage("read"):
        inputs = read_inputs(config, log)
    for line in summary_lines(inputs.data):
        log(line)
    graph, split = inputs.noisy.graph, inputs.split
    held_out = examples = links = None
    if split is not None:
        held_out = split.held_out_keys
        with stages.stage("link examples"):
            examples = draw_examples(inputs.config, graph, held_out)
    resolved = inputs.resolved(output_dir)
    hooks = Hooks(
        log=log,
        record=run.record,
        save=run.save_checkpoint,
        begin=lambda: run.begin(resolved, checkpoint),
        shows_progress=shows_progress,
        stages=stages,
    )
    trainer = trainer_of(inputs.config, graph, inputs.feat, hooks, held_out)
    checkpoint = run.checkpoint_to_resume(resolved)
    if checkpoint is not None and "shards" in checkpoint:
        raise InputError(
            f"{output_dir}: the checkpoint there is of a distributed run: go on with "
            "user-dgl launch, with any number of processes"
        )
    inputs = dataclasses.replace(inputs, config=trainer.config)
    log(inputs.summary(trainer.engine, output_dir))
    with run.one_writer():
        with hooks.stop.listening(), stages.stage(config.model.kind, bar=False) as entry:
            result = trainer.fit(checkpoint)
            # The stage has the seconds of this process, so it has its epochs too.
            before = 0 if checkpoint is None else checkpoint["progress"]["epoch"]
            epochs = len(result.epoch_seconds) - before
            entry |= {"epochs": epochs, "restarts": inputs.config.train.restarts}
        trainer.stop_if_asked()
        sections = ResultSections.of(trainer.preparation)
        sections.by_name.update(trainer.report_sections())
        if examples is not None:
            feat = None if inputs.data.feat is None else inputs.feat
            with stages.stage("links"), trainer.threads():
                links = learn_links(inputs.config, examples, result, feat, trainer.memberships())
        del trainer  # it takes more memory than anything that follows
        return write_outputs(run, inputs, result, sections, stages, log, links)
