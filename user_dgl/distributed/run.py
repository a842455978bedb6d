"""A run by several processes: the first one reads, splits and writes the data, and all train.

``user-dgl launch`` starts the processes, and each of them calls `train`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from user_dgl.config import Config
from user_dgl.config.paths import user_path
from user_dgl.distributed.assembly import (
    assembled,
    prepare_rank,
    read_whole,
    split_among_ranks,
)
from user_dgl.distributed.directory import PartitionDirectory
from user_dgl.distributed.partition import from_whole
from user_dgl.distributed.ranks import Ranks, joined
from user_dgl.distributed.shards import RankData
from user_dgl.distributed.trainer import ShardTrainer
from user_dgl.errors import InputError, NonFiniteLossError
from user_dgl.graph.ops import resolve_engine
from user_dgl.output.run_directory import RunDirectory
from user_dgl.pipeline.inputs import Inputs
from user_dgl.pipeline.result import ResultSections, write_outputs
from user_dgl.pipeline.train import finished_result
from user_dgl.runtime.device import device_name, gpu_peak_memory_mb, resolve_backend, resolve_device
from user_dgl.runtime.machine import machine_memory_mb, peak_memory_mb
from user_dgl.runtime.progress import StageClock
from user_dgl.training.checkpoint import load_checkpoint
from user_dgl.training.hooks import Hooks
from user_dgl.training.memory import (
    check_gathering,
    floors_memory_mb,
    gpu_memory_line,
    plan_memory,
)


def train(
    config: Config, output_dir: Path, log: Callable[[str], None], shows_progress: bool = True
) -> dict[str, Any] | None:
    """Run the settings together with the other processes.

    Parameters
    ----------
    config : Config
    output_dir : Path
        A folder that all ranks can write to: each rank writes its own checkpoints.
    log : callable
        Called with each line of the log, on the first rank.
    shows_progress : bool
        Whether the first rank shows progress bars on a terminal.

    Returns
    -------
    dict or None
        The content of ``result.json`` on the first rank, None on the others.

    Raises
    ------
    InputError, NonFiniteLossError, RankError
    """
    device, backend, fault = torch.device("cpu"), "gloo", None
    try:
        device = resolve_device(config)
        backend = resolve_backend(config.distributed.backend, device)
    except InputError as error:
        fault = error

    def check_device() -> None:
        """Raise the error that this rank has met, if any."""
        if fault is not None:
            raise fault

    def check_same(backends: list[str]) -> None:
        """Refuse different backends."""
        if len(set(backends)) > 1:
            raise InputError(
                f"the machines choose different backends, {' and '.join(sorted(set(backends)))}: "
                "set distributed.backend=gloo"
            )

    with joined(backend, config.distributed.timeout_s, device) as ranks:
        # All ranks check together. Alone, each would report the error, or be ended before it can.
        ranks.run_on_all(check_device, "the devices of all ranks")
        ranks.gather_checked(backend, check_same, "the backends of all ranks")
        try:
            return _Run(config, output_dir, log, ranks, device, shows_progress).train()
        except NonFiniteLossError:
            ranks.leave_to_first()
            raise


class _Plan(NamedTuple):
    """The decisions of the first rank, which all ranks follow.

    Only the command line of the first rank counts, because each machine has one of its own.

    Attributes
    ----------
    config : Config
    output_dir : str
    partition : str or None
        Folder of the parts; None: the first rank splits the graph.
    """

    config: Config
    output_dir: str
    partition: str | None


@dataclass(eq=False)
class _FirstRank:
    """Data that only the first rank holds.

    Attributes
    ----------
    inputs : Inputs
    sections : ResultSections
    rank_data : list of RankData or None
        The data of each rank, until they are sent; None if each rank reads its own file.
    """

    inputs: Inputs
    sections: ResultSections
    rank_data: list[RankData] | None = None


class _Run:
    """The steps of a run on one rank."""

    def __init__(
        self,
        config: Config,
        output_dir: Path,
        log: Callable[[str], None],
        ranks: Ranks,
        device: torch.device,
        shows_progress: bool,
    ):
        self.shows_progress = shows_progress
        self.config, self.output_dir, self.ranks, self.device = config, output_dir, ranks, device
        self.log = log if ranks.first else _ignore
        self.stages = StageClock(self.log, shows_progress and ranks.first)
        # `_prepare` sets one of these on the first rank. On the others both stay None.
        self._on_first: _FirstRank | None = None
        self._earlier_result: dict[str, Any] | None = None

    @property
    def first(self) -> _FirstRank:
        """The data of the first rank, which only that rank may ask for."""
        assert self._on_first is not None, "only the first rank holds these data"
        return self._on_first

    def train(self) -> dict[str, Any] | None:
        """Run all steps; returns the content of ``result.json`` on the first rank."""
        ranks = self.ranks
        plan = ranks.broadcast_from_first(self._prepare, "the data, which rank 0 loads")
        if plan is None:
            return self._earlier_result
        run = RunDirectory(Path(plan.output_dir))
        with run.one_writer():
            return self._train(plan, run)

    def _train(self, plan: _Plan, run: RunDirectory) -> dict[str, Any] | None:
        ranks = self.ranks
        with self.stages.stage("receive"):
            data = self._receive_data(plan)
        self._check_memory(plan.config, data)
        data, config = self._run_stages(data, plan.config)

        def begin() -> None:
            """Prepare the run directory on the first rank."""
            ranks.broadcast_from_first(
                lambda: run.begin(self.first.inputs.resolved(self.output_dir), checkpoint),
                "the run directory",
            )

        hooks = Hooks(
            log=self.log,
            record=run.record,
            save=lambda state: save_shards(run, state, ranks),
            begin=begin,
            shows_progress=self.shows_progress,
        )
        trainer = ShardTrainer(data, config, ranks, self.device, hooks)
        # Everything that can be checked has been checked before an existing file is changed.
        checkpoint = ranks.broadcast_from_first(
            lambda: self._checkpoint_to_resume(run), "the run directory"
        )
        names = None if checkpoint is None else checkpoint["shards"]

        def load_shards() -> list[dict[str, Any]] | None:
            """The shards of all ranks, of which this one uses the values of its own pairs."""
            if names is None:
                return None
            return [load_checkpoint(run.path / name, when_used=True) for name in names]

        checkpoints = ranks.run_on_all(load_shards, "the checkpoints of all ranks")
        if ranks.first:
            self.log(self.first.inputs.summary(trainer.engine, self.output_dir))
        kind = config.model.kind
        with hooks.stop.listening(), self.stages.stage(kind, bar=False) as entry:
            own_result = trainer.fit(checkpoints)
            # The stage has the seconds since these processes started, so it has their epochs too.
            before = 0 if checkpoint is None else checkpoint["progress"]["epoch"]
            entry |= {"epochs": len(own_result.epoch_seconds) - before, "restarts": 1}
        trainer.stop_if_asked()
        sizes = _sizes(data)
        engine, device = trainer.engine, device_name(trainer.device)
        del trainer, data
        with self.stages.stage("gather"):
            everyone = ranks.gather((own_result, sizes), "the results of all ranks")
        if everyone is None:
            return None
        inputs, sections = self.first.inputs, self.first.sections
        sections.by_name["ranks"] = [of_rank for _, of_rank in everyone]
        whole = assembled([result for result, _ in everyone], inputs.config, engine, device)
        return write_outputs(run, inputs, whole, sections, self.stages, self.log)

    def _prepare(self) -> _Plan | None:
        """Load and split the data on the first rank; None if the run is finished already."""
        self.config.check_distributed()
        resolve_engine(self.config.structure.engine)
        self._earlier_result = finished_result(self.config, self.output_dir, self.log)
        if self._earlier_result is not None:
            return None
        size, folder = self.ranks.size, self.config.distributed.partition
        if folder is None:
            whole = read_whole(self.config, self.log, self.stages)
            inputs, sections = whole.inputs, ResultSections.of(whole.preparation)
            with self.stages.stage("partition"):
                rank_data, partition = split_among_ranks(whole, size), None
            if not self.config.eval.floors:  # nothing else needs the features of all nodes now
                data = replace(inputs.data, feat=None)
                inputs = replace(inputs, data=data, raw_feat=None, feat=None)
            del whole
        else:
            parts = PartitionDirectory(user_path(folder, "distributed.partition").resolve())
            parts.check(self.config, size)
            if self.config.eval.floors:
                raise InputError(
                    "eval.floors reads the features of the whole graph, but only its parts are "
                    "there: set it to false, or distributed.partition to null"
                )
            inputs, sections = parts.of_this_version(
                parts.whole_file, lambda: from_whole(parts.read_whole(), self.config)
            )
            rank_data, partition = None, str(parts.path)
        self._on_first = _FirstRank(inputs, replace(sections, world_size=size), rank_data)
        return _Plan(inputs.config, str(self.output_dir.resolve()), partition)

    def _receive_data(self, plan: _Plan) -> RankData:
        """Get the data of this rank, from the first rank or from the folder of the parts."""
        ranks = self.ranks
        if plan.partition is not None:
            parts = PartitionDirectory(Path(plan.partition))
            return ranks.run_on_all(
                lambda: parts.read_rank_data(ranks.rank, ranks.size), "the parts of all ranks"
            )
        rank_data = self.first.rank_data if ranks.first else None
        data = ranks.scatter(rank_data, "its part of the graph, which rank 0 cuts")
        if ranks.first:
            self.first.rank_data = None  # the training needs the memory
        return data

    def _run_stages(self, data: RankData, config: Config) -> tuple[RankData, Config]:
        """Run the stages before training with all ranks, unless they have been run on the whole."""
        data, prepared = prepare_rank(data, config, self.ranks, self.log, self.stages)
        if prepared is None:
            return data, config
        if self.ranks.first:
            earlier, found = self.first.sections, ResultSections.of(prepared)
            self.first.inputs = replace(self.first.inputs, config=prepared.config)
            self.first.sections = replace(
                found, world_size=earlier.world_size, stages=earlier.stages
            )
        return data, prepared.config

    def _check_memory(self, config: Config, data: RankData) -> None:
        """Refuse what a machine or its GPUs cannot hold, and log the expected memory."""
        ranks, part, what = self.ranks, data.shard.part, "the memory of all ranks"
        num_edges, halo = len(data.edges), len(part.halo)
        here = int(os.environ.get("LOCAL_WORLD_SIZE", ranks.size))
        num_pairs = len(part.pairs)
        plan = plan_memory(
            config, num_edges, data.feat, self.device, here, halo, num_pairs=num_pairs
        )
        expected_mb = plan.expected_mb
        # What the first rank gathers at the end is not added to the training of the others, which
        # have freed their memory by then.
        sizes = config, data.num_nodes, data.num_pairs
        ranks.run_on_all(lambda: check_gathering(*sizes) if ranks.first else None, what)
        if ranks.first and config.eval.floors and self.first.inputs.raw_feat is not None:
            expected_mb = max(expected_mb, floors_memory_mb(config, self.first.inputs.raw_feat))

        def check_gpu() -> None:
            """Refuse what the GPU of this rank, if it has one, cannot hold."""
            if self.device.type == "cuda":
                sharing = -(-here // torch.cuda.device_count())
                gpu_memory_line(
                    config, num_edges, data.feat, self.device, sharing, halo, num_pairs=num_pairs
                )

        ranks.run_on_all(check_gpu, what)  # by all ranks, also where some of them have no GPU
        machine = os.environ.get("GROUP_RANK", "0")
        needs = (machine, expected_mb, machine_memory_mb())
        everyone = ranks.gather_checked(needs, check_machines, what)
        if everyone is not None:
            each = [expected for _, expected, _ in everyone]
            self.log(
                f"Memory: about {sum(each) / 1000:.2f} GB at the peak in {len(each)} processes, "
                f"{max(each) / 1000:.2f} in the largest"
            )

    def _checkpoint_to_resume(self, run: RunDirectory) -> dict[str, Any] | None:
        """Load on the first rank the checkpoint to resume, which names the shards of all ranks."""
        resolved = self.first.inputs.resolved(self.output_dir)
        checkpoint = run.checkpoint_to_resume(resolved)
        if checkpoint is None:
            return None
        if "shards" not in checkpoint:
            raise InputError(
                f"{self.output_dir}: the checkpoint there is of a single process: go on with "
                "it without the launcher"
            )
        missing = [n for n in checkpoint["shards"] if not (run.path / n).exists()]
        if missing:
            raise InputError(f"{run.path}: {missing[0]} is missing: the checkpoint is of no use")
        return checkpoint


def _ignore(line: str) -> None:
    """Drop a line of the log, on all ranks but the first."""


def _sizes(data: RankData) -> dict[str, Any]:
    """Return the sizes of a rank's part and its peak memory, for ``result.json``."""
    part = data.shard.part
    return {
        "nodes": part.num_owned,
        "halo": len(part.halo),
        "pairs": int(part.owned.sum()),
        "cut_pairs": int((~part.owned).sum()),
        "peak_memory_mb": peak_memory_mb(),
        "gpu_peak_memory_mb": gpu_peak_memory_mb(),
    }


def check_machines(everyone: list[tuple[str, float, float]]) -> None:
    """Refuse processes that need more memory than a machine has.

    Parameters
    ----------
    everyone : list of (str, float, float)
        The machine of each rank, the rank's expected peak, and the machine's memory, in 10^6 bytes.

    Raises
    ------
    InputError
    """
    for machine in dict.fromkeys(name for name, _, _ in everyone):
        here = [(expected, there) for name, expected, there in everyone if name == machine]
        expected, there = sum(peak for peak, _ in here), here[0][1]
        if expected > there:
            raise InputError(
                f"machine {machine}: its {len(here)} processes would need about "
                f"{expected / 1000:.1f} GB of memory, and it has {there / 1000:.1f}: take more "
                "machines with fewer processes each, or lower model.hidden_feats"
            )


def save_shards(run: RunDirectory, state: dict[str, Any], ranks: Ranks) -> None:
    """Write a checkpoint of all ranks. It is valid once the first rank has listed all shards."""
    epoch = state["progress"]["epoch"]
    names = [f"checkpoint-{epoch}-{rank}.pt" for rank in range(ranks.size)]
    run.save_shard(names[ranks.rank], state)
    ranks.wait("the checkpoints of all ranks")
    if ranks.first:
        for name in names:
            if not (run.path / name).exists():
                raise InputError(
                    f"{run.path}: {name} of another rank is not there: output_dir has to be a "
                    "folder that all machines see"
                )
        run.save_checkpoint({"progress": state["progress"], "shards": names})
        run.remove_shards_but(names)
    ranks.wait("the checkpoint's list, which rank 0 writes")
