"""A run by several processes: the first reads, cuts and writes, all of them train.

``user-dgl launch`` starts the processes; each of them calls `train`.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from user_dgl.config import Config
from user_dgl.distributed.assembly import assembled, read_and_prepare, split_among_ranks
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
from user_dgl.training.checkpoint import load_checkpoint
from user_dgl.training.hooks import Hooks
from user_dgl.training.memory import floors_memory_mb, gpu_memory_line


def train(config: Config, output_dir: Path, log: Callable[[str], None]) -> dict[str, Any] | None:
    """Run the settings together with the other processes.

    Parameters
    ----------
    config : Config
    output_dir : Path
        Where all ranks can write: each writes its own checkpoints.
    log : callable
        Gets each line for people, on the first rank.

    Returns
    -------
    dict or None
        The content of ``result.json`` on the first rank.

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

    def check() -> None:
        if fault is not None:
            raise fault

    def same_backend() -> None:
        if len(set(backends)) > 1:
            raise InputError(
                f"the processes would talk by {' and '.join(sorted(set(backends)))}, as their "
                "machines have it: set distributed.backend=gloo"
            )

    with joined(backend, config.distributed.timeout_s, device) as ranks:
        # Told together: alone, each would say it, or be ended before it can.
        ranks.run_on_all(check, "the devices of all ranks")
        backends = ranks.gather(backend, "the backends of all ranks")
        ranks.broadcast_from_first(same_backend, "the backends of all ranks")
        try:
            return _Run(config, output_dir, log, ranks, device).train()
        except NonFiniteLossError:
            ranks.leave_to_first()
            raise


class _Run:
    """One rank's way through a run."""

    def __init__(self, config: Config, output_dir: Path, log, ranks: Ranks, device: torch.device):
        self.config, self.output_dir, self.ranks, self.device = config, output_dir, ranks, device
        self.log = log if ranks.first else lambda line: None
        self.started = time.perf_counter()
        # On the first rank.
        self.inputs: Inputs | None = None
        self.choices: ResultSections | None = None
        self.of_ranks: list[RankData] | None = None
        self.finished: dict[str, Any] | None = None

    def train(self) -> dict[str, Any] | None:
        ranks = self.ranks
        # What the first rank's command line says, for all: each machine has one of its own.
        plan = ranks.broadcast_from_first(self._prepare, "the data, which rank 0 loads")
        if plan is None:
            return self.finished
        config, output_dir, folder = plan
        run = RunDirectory(Path(output_dir))
        if folder is None:
            data = ranks.scatter(self.of_ranks, "its part of the graph, which rank 0 cuts")
            self.of_ranks = None
        else:
            parts = PartitionDirectory(Path(folder))
            data = ranks.run_on_all(
                lambda: parts.read_rank_data(ranks.rank, ranks.size), "the parts of all ranks"
            )

        def begin() -> None:
            ranks.broadcast_from_first(
                lambda: run.begin(self.inputs.resolved(self.output_dir), checkpoint),
                "the run directory",
            )

        hooks = Hooks(
            log=self.log,
            record=run.record,
            save=lambda state: save_shards(run, state, ranks),
            begin=begin,
        )
        trainer = ShardTrainer(
            data,
            config,
            ranks,
            self.device,
            hooks,
        )
        self._check_memory(config, data, trainer.memory.expected_mb)
        # Nothing that was there is touched before all that can be checked is.
        checkpoint = ranks.broadcast_from_first(lambda: self._to_resume(run), "the run directory")
        names = None if checkpoint is None else checkpoint["shards"]
        checkpoints = ranks.run_on_all(
            lambda: None if names is None else [load_checkpoint(run.path / n) for n in names],
            "the checkpoints of all ranks",
        )
        if ranks.first:
            self.log(self.inputs.summary(trainer.engine, self.output_dir))
        with hooks.stop.listening():
            fit = trainer.fit(checkpoints)
        part = data.shard.part
        sizes = {
            "nodes": part.num_owned,
            "halo": len(part.halo),
            "pairs": int(part.owned.sum()),
            "cut_pairs": int((~part.owned).sum()),
            "peak_memory_mb": peak_memory_mb(),
            "gpu_peak_memory_mb": gpu_peak_memory_mb(),
        }
        engine, device = trainer.engine, device_name(trainer.device)
        del trainer, data
        everyone = ranks.gather((fit, sizes), "the results of all ranks")
        if not ranks.first:
            return None
        fits, counts = zip(*everyone, strict=True)
        self.choices.sections["ranks"] = list(counts)
        whole = assembled(list(fits), self.inputs.config, engine, device)
        return write_outputs(run, self.inputs, whole, self.choices, self.started, self.log)

    def _prepare(self) -> tuple[Config, str, str | None] | None:
        """On the first rank: data, preparation, parts; None where the run is finished."""
        self.config.check_distributed()
        resolve_engine(self.config.structure.engine)
        self.finished = finished_result(self.config, self.output_dir, self.log)
        if self.finished is not None:
            return None
        size, folder = self.ranks.size, self.config.distributed.partition
        if folder is None:
            self.inputs, preparation = read_and_prepare(self.config, self.log)
            self.choices = ResultSections.of(preparation)
            self.of_ranks = split_among_ranks(self.inputs, preparation, size)
        else:
            parts = PartitionDirectory(Path(folder).resolve())
            parts.check(self.config, size)
            if self.config.eval.floors:
                raise InputError(
                    "eval.floors sees the features of the whole graph, of which only parts are at "
                    "hand: set it to false, or distributed.partition to null"
                )
            self.inputs, self.choices = from_whole(parts.read_whole(), self.config)
        self.choices = replace(self.choices, world_size=size)
        output_dir = str(self.output_dir.resolve())
        return self.inputs.config, output_dir, folder and str(parts.path)

    def _check_memory(self, config: Config, data: RankData, expected_mb: float) -> None:
        """Refuse what a machine or its GPUs cannot hold; log what is expected."""
        ranks, part, what = self.ranks, data.shard.part, "the memory of all ranks"
        if ranks.first and config.eval.floors and self.inputs.raw_feat is not None:
            expected_mb = max(expected_mb, floors_memory_mb(config, self.inputs.raw_feat))
        if self.device.type == "cuda":
            here = int(os.environ.get("LOCAL_WORLD_SIZE", ranks.size))
            sharing = -(-here // torch.cuda.device_count())
            ranks.run_on_all(
                lambda: gpu_memory_line(
                    config, len(part.pairs), data.feat, self.device, sharing, len(part.halo)
                ),
                what,
            )
        machine = os.environ.get("GROUP_RANK", "0")
        everyone = ranks.gather((machine, expected_mb, machine_memory_mb()), what)
        ranks.broadcast_from_first(lambda: check_machines(everyone), what)
        if ranks.first:
            each = [expected for _, expected, _ in everyone]
            self.log(
                f"Memory: about {sum(each) / 1000:.2f} GB at the peak in {len(each)} processes, "
                f"{max(each) / 1000:.2f} in the largest"
            )

    def _to_resume(self, run: RunDirectory) -> dict[str, Any] | None:
        """On the first rank: the checkpoint to go on from, which names the files of all."""
        checkpoint = run.checkpoint_to_resume(self.inputs.resolved(self.output_dir))
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


def check_machines(everyone: list[tuple[str, float, float]]) -> None:
    """Refuse more than a machine has.

    Parameters
    ----------
    everyone : list of (str, float, float)
        Of each rank its machine, its expected peak and the machine's memory, in 10^6 bytes.

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
    """A checkpoint of all ranks: valid once the first names the files of all."""
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
