"""The loop that all trainers share: seeding, guarded updates, reports, checkpoints, resuming."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from tqdm.auto import tqdm

from user_dgl.config import Config
from user_dgl.data.attributed_graph import one_line
from user_dgl.errors import InputError, NonFiniteLossError, StoppedError
from user_dgl.runtime.allocator import freed_memory_kept
from user_dgl.structure.learned_adjacency import LearnedAdjacency
from user_dgl.training.hooks import Hooks


@dataclass
class Progress:
    """Where training stands; all of it goes into a checkpoint."""

    epoch: int = 0
    epoch_seconds: list[float] = field(default_factory=list)
    all_clusters_used: bool = False
    collapsed: bool = False

    def state_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return {
            "epoch": self.epoch,
            "epoch_seconds": self.epoch_seconds,
            "all_clusters_used": self.all_clusters_used,
            "collapsed": self.collapsed,
        }


class EpochReport(NamedTuple):
    """What an epoch tells.

    Attributes
    ----------
    terms : dict of str to float
        Means of the loss terms over replicas, and their ``total``.
    clusters_in_use : int or None
        Of the replica that uses fewest; None where there are no clusters before the end.
    extra : dict of str to float
        Further numbers to report.
    """

    terms: dict[str, float]
    clusters_in_use: int | None
    extra: dict[str, float]


class EpochLoop(ABC):
    """Runs the epochs of a trainer, which says what an epoch and a checkpoint are.

    Parameters
    ----------
    config : Config
    hooks : Hooks
    """

    # What helps against a loss that is not finite.
    remedy = "Lower train.lr or the weight of that term"

    def __init__(self, config: Config, hooks: Hooks):
        self.config, self.hooks, self.log = config, hooks, hooks.log
        self.progress = Progress()
        self.keeps_freed_memory = False
        self.optimizer: torch.optim.Optimizer
        self.schedule: torch.optim.lr_scheduler.ReduceLROnPlateau | None = None

    # What a trainer gives.

    @abstractmethod
    def build(self) -> None:
        """Make model and optimiser for a training from the beginning."""

    @abstractmethod
    def step(self) -> EpochReport:
        """Train one epoch."""

    @abstractmethod
    def evaluate(self) -> Any:
        """The present state and the terms of its loss, without dropout; nothing is trained."""

    @abstractmethod
    def result(self) -> Any:
        """What `fit` returns."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """The content of a checkpoint: tensors and plain types."""

    @abstractmethod
    def load_state_dict(self, state: Any) -> None:
        """Build what a checkpoint describes; any exception means that it is not of this run."""

    def threads(self) -> AbstractContextManager[None]:
        """The threads that training takes; as many as torch has."""
        return nullcontext()

    def reduce_gradients(self) -> None:
        """Gradients between the backward pass and the update; several processes sum theirs."""

    def zero_grad(self) -> None:
        """Forget the gradients, so that no block of the graph's size stays between epochs."""
        self.optimizer.zero_grad(set_to_none=True)

    def refresh_candidates(self) -> None:
        """Draw new candidate pairs where they are due."""

    def converged(self) -> bool:
        """Whether training ends before the last epoch that was asked for."""
        return False

    def agree_to_stop(self, number: int | None) -> int | None:
        """The signal to stop for; several processes stop together."""
        return number

    def report_sections(self) -> dict[str, Any]:
        """Sections of ``result.json`` that this trainer adds."""
        return {}

    # -----------------------------------------------------------------------------------------

    def fit(self, checkpoint: Any = None) -> Any:
        """Train to the end, or go on from a checkpoint.

        Parameters
        ----------
        checkpoint : optional
            What the hook ``save`` got; of several processes, the list of what each got.

        Raises
        ------
        InputError
            The checkpoint is of other data or of another version.
        NonFiniteLossError
            A term is NaN or infinite; nothing was updated with it.
        """
        with torch.random.fork_rng(devices=[]), self.threads(), denormals_flushed():
            seed_torch(self.config.seed, 0)
            if checkpoint is None:
                self.build()
            else:
                self.resume(checkpoint)
            self._run_epochs()
            return self.result()

    def resume(self, checkpoint: Any) -> None:
        """`load_state_dict`, whose faults become one line."""
        try:
            self.load_state_dict(checkpoint)
        except (InputError, MemoryError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:  # which of many kinds depends on what is wrong with it
            raise InputError(
                "the checkpoint is not one of this version of user_dgl "
                f"({one_line(error)}): start anew with overwrite=true"
            ) from None

    def make_optimizer(self, model: nn.Module, structure: LearnedAdjacency) -> None:
        """Adam and schedule for a model, and for the weights of A' if they are learned."""
        train = self.config.train
        network = [each for each in model.parameters() if each is not structure.theta]
        groups: list[dict[str, Any]] = [{"params": network, "weight_decay": train.weight_decay}]
        if structure.learnable:
            lr = train.lr if train.structure_lr is None else train.structure_lr
            groups.append(structure.parameter_group(lr))
        self.optimizer = torch.optim.Adam(groups, lr=train.lr)
        self.schedule = None
        if train.plateau_factor < 1:
            self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
                self.optimizer, factor=train.plateau_factor, patience=train.plateau_patience
            )

    def update(
        self,
        terms: dict[str, torch.Tensor],
        optimizer: torch.optim.Optimizer | None = None,
        schedules: bool = True,
    ) -> tuple[dict[str, float], bool]:
        """Lower the sum of some terms by one step, if all of them are finite.

        Parameters
        ----------
        terms : dict of str to Tensor (R,) or ()
            Of each replica. They are summed, not averaged: the gradient of a replica must not
            depend on how many there are.
        optimizer : Optimizer, optional
            Default: the trainer's.
        schedules : bool
            Whether the learning rate is told of the loss; a trainer with several updates an epoch
            does so itself, see `advance_schedule`.

        Returns
        -------
        dict of str to float, bool
            Mean of each term over replicas, and whether there was anything to train.

        Raises
        ------
        NonFiniteLossError
            Before anything is changed.
        """
        values = finite_means(
            terms,
            f"epoch {self.progress.epoch + 1}: the loss is not finite ({{}}); the model was not "
            f"updated with it. {self.remedy}",
        )
        total = sum(term.sum() for term in terms.values())
        trains = isinstance(total, torch.Tensor) and total.requires_grad
        if isinstance(total, torch.Tensor) and trains:
            total.backward()
            self.reduce_gradients()
            (optimizer or self.optimizer).step()
            if schedules:
                self.advance_schedule(values)
        self.zero_grad()
        return values, trains

    def advance_schedule(self, values: dict[str, float]) -> None:
        """Tell the schedule of the learning rate the loss of an epoch."""
        if self.schedule is not None:
            self.schedule.step(sum(values.values()))

    # -----------------------------------------------------------------------------------------

    def _run_epochs(self) -> None:
        train, progress = self.config.train, self.progress
        self.hooks.begin()
        if progress.epoch == 0:
            self.hooks.save(self.state_dict())
        # disable=None: a bar on a terminal, none in a file, where the log lines serve.
        bar = tqdm(
            total=train.epochs,
            initial=progress.epoch,
            desc="training",
            disable=None if self.hooks.shows_progress else True,
            leave=False,
        )
        keeps_freed = self.keeps_freed_memory
        with bar, ExitStack() as memory:
            while not self._ended():
                started = time.perf_counter()
                self.refresh_candidates()
                report = self.step()
                if torch.cuda.is_initialized():
                    torch.cuda.synchronize()  # a GPU is behind what it was told to do
                seconds = time.perf_counter() - started
                progress.epoch_seconds.append(seconds)
                progress.epoch += 1
                if keeps_freed:
                    # Not before: what outlives an epoch would lie between the blocks that do not.
                    memory.enter_context(freed_memory_kept())
                    keeps_freed = False
                self._report(report, seconds)
                bar.update()
                number = self.agree_to_stop(self.hooks.stop.number)
                due = progress.epoch % train.checkpoint_every == 0
                if due or number is not None or self._ended():
                    self.hooks.save(self.state_dict())
                if number is not None:
                    raise StoppedError(
                        f"by signal {number} after epoch {progress.epoch}, which is saved; "
                        "train.resume=true goes on from there",
                        number,
                    )

    def _ended(self) -> bool:
        return self.progress.epoch >= self.config.train.epochs or self.converged()

    def _report(self, report: EpochReport, seconds: float) -> None:
        progress, train, terms = self.progress, self.config.train, report.terms
        row: dict[str, Any] = {"epoch": progress.epoch, "loss": terms["total"]}
        row |= {name: value for name, value in terms.items() if name != "total"}
        if report.clusters_in_use is not None:
            row["clusters_in_use"] = report.clusters_in_use
            self._watch_collapse(report.clusters_in_use)
        row |= {"lr": self.optimizer.param_groups[0]["lr"], "seconds": seconds}
        self.hooks.record(row | report.extra)
        if progress.epoch % train.log_every and not self._ended():
            return
        parts = [f"Epoch {progress.epoch:05d}", f"Loss {terms['total']:.4f}"]
        parts += [f"{name} {value:.4f}" for name, value in terms.items() if name != "total"]
        parts += [f"{name.replace('_', ' ')} {value:.4f}" for name, value in report.extra.items()]
        if report.clusters_in_use is not None:
            parts.append(f"Clusters {report.clusters_in_use}")
        parts.append(f"Time {seconds:.3f}")
        self.log(" | ".join(parts))

    def _watch_collapse(self, in_use: int) -> None:
        progress, asked = self.progress, self.config.model.num_clusters
        if in_use == asked:
            progress.all_clusters_used = True
        elif progress.all_clusters_used and not progress.collapsed:
            progress.collapsed = True
            self.log(f"Warning: epoch {progress.epoch}: {in_use} of {asked} clusters in use")


def seed_torch(seed: int, stage: int) -> None:
    """Seed torch's generator for a stage of a run, independently of all other stages."""
    sequence = np.random.SeedSequence([seed, stage])
    torch.default_generator.manual_seed(int(sequence.generate_state(1)[0]))


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Numbers below 1e-38 count as 0: saturated memberships and their squares are full of them.

    A CPU takes a hundred times as long to multiply one, and beside numbers of ordinary size it
    changes nothing.
    """
    before = bool(torch.tensor(1e-40) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def clusters_in_use(clusters: torch.Tensor, num_clusters: int) -> int:
    """Number of clusters that have nodes, in the replica of clusters (N, R) that uses fewest."""
    return min(
        int((torch.bincount(column, minlength=num_clusters) > 0).sum())
        for column in clusters.unbind(1)
    )


def finite_means(terms: dict[str, torch.Tensor], message: str) -> dict[str, float]:
    """Mean of each term over replicas.

    Raises
    ------
    NonFiniteLossError
        With the message, into which the terms are put, where one is not finite in some replica.
    """
    values = {name: term.mean().item() for name, term in terms.items()}
    if not all(math.isfinite(value) for value in values.values()):
        shown = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
        raise NonFiniteLossError(message.format(shown))
    return values


def with_total(values: dict[str, float]) -> dict[str, float]:
    """The terms and their ``total``."""
    return values | {"total": sum(values.values())}
