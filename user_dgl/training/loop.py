"""The training loop of all trainers: seeds, updates, reports, checkpoints and resuming."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn
from tqdm.auto import tqdm

from user_dgl.config import Config
from user_dgl.data.attributed_graph import one_line
from user_dgl.errors import InputError, NonFiniteLossError, StoppedError
from user_dgl.runtime.allocator import freed_memory_kept
from user_dgl.runtime.streams import Stream, seed_torch
from user_dgl.structure.learned_adjacency import LearnedAdjacency
from user_dgl.training.adam import Adam
from user_dgl.training.hooks import Hooks

# Advice where the loss is not finite before any step.
_BEFORE_STEPS = "Scale the features (features.row_norm=l2 or features.weighting=auto)"


@dataclass
class Progress:
    """Progress of a training. All fields are saved in checkpoints.

    Attributes
    ----------
    epoch : int
        Number of finished epochs.
    epoch_seconds : list of float
        Seconds of each finished epoch.
    all_clusters_used : bool
        Whether some epoch ended with a node in every cluster.
    collapsed : bool
        Whether a later epoch had empty clusters; the warning about this is given once.
    """

    epoch: int = 0
    epoch_seconds: list[float] = field(default_factory=list)
    all_clusters_used: bool = False
    collapsed: bool = False

    def state_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {
            "epoch": self.epoch,
            "epoch_seconds": self.epoch_seconds,
            "all_clusters_used": self.all_clusters_used,
            "collapsed": self.collapsed,
        }


class EpochReport(NamedTuple):
    """Numbers that a trainer reports after an epoch.

    Attributes
    ----------
    terms : dict of str to float
        Means of the loss terms over the replicas, and their ``total``.
    clusters_in_use : int or None
        Number of clusters that have nodes, in the replica where it is smallest. None if the model
        has no clusters before the end of training.
    extra : dict of str to float
        Other numbers for the report.
    """

    terms: dict[str, float]
    clusters_in_use: int | None
    extra: dict[str, float]


class EpochLoop(ABC):
    """Base class of the trainers. Subclasses define an epoch and the content of a checkpoint.

    Parameters
    ----------
    config : Config
    hooks : Hooks
    """

    # Advice where the loss is not finite after a step.
    remedy = "Lower train.lr or the weight of that term"

    # Whether `build` makes the same for a new training and for one that goes on. If not,
    # `load_state_dict` builds.
    builds_alike = True

    def __init__(self, config: Config, hooks: Hooks):
        self.config, self.hooks, self.log = config, hooks, hooks.log
        self.progress = Progress()
        self.keeps_freed_memory = False
        self.optimizer: torch.optim.Optimizer
        self.schedule: torch.optim.lr_scheduler.ReduceLROnPlateau | None = None

    # Methods that trainers define.

    @abstractmethod
    def build(self) -> None:
        """Build the model and the optimiser for a training that starts from the beginning."""

    @abstractmethod
    def step(self) -> EpochReport:
        """Train one epoch."""

    @abstractmethod
    def evaluate(self) -> Any:
        """Compute the current state and the terms of its loss, without dropout or training."""

    @abstractmethod
    def result(self) -> Any:
        """Compute the result that `fit` returns."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the content of a checkpoint: tensors and plain types."""

    @abstractmethod
    def load_state_dict(self, state: Any) -> None:
        """Build the trainer's state from a checkpoint.

        Any exception means that the checkpoint does not belong to this run.
        """

    def threads(self) -> AbstractContextManager[None]:
        """Context in which training runs, to set the number of threads. Default: unchanged."""
        return nullcontext()

    def reduce_gradients(self) -> None:
        """Change the gradients before the update; several processes sum theirs here."""

    def zero_grad(self) -> None:
        """Free the gradients, so that no tensor of the graph's size is kept between epochs."""
        self.optimizer.zero_grad(set_to_none=True)

    def refresh_candidates(self) -> None:
        """Draw new candidate pairs if the current epoch requires it."""

    def converged(self) -> bool:
        """Whether training ends now, before the number of epochs in the settings."""
        return False

    def agree_to_stop(self, number: int | None) -> int | None:
        """Return the number of the signal to stop for; several processes must agree on it."""
        return number

    def stop_if_asked(self) -> None:
        """Stop for a signal that came after the last epoch, as for one in an epoch.

        Raises
        ------
        StoppedError
            The last epoch is saved.
        """
        number = self.agree_to_stop(self.hooks.stop.number)
        if number is not None:
            raise self._stopped(number)

    def report_sections(self) -> dict[str, Any]:
        """Return the sections that this trainer adds to ``result.json``."""
        return {}

    # -----------------------------------------------------------------------------------------

    def fit(self, checkpoint: Any = None) -> Any:
        """Train to the end, from the beginning or from a checkpoint.

        Parameters
        ----------
        checkpoint : dict or list of dict, optional
            Checkpoint that was given to the hook ``save``. If several processes trained, the list
            of their checkpoints.

        Raises
        ------
        InputError
            The checkpoint is of other data or of another version.
        NonFiniteLossError
            A term is NaN or infinite. The model was not updated with it.
        """
        with torch.random.fork_rng(devices=[]), self.threads(), denormals_flushed():
            seed_torch(self.config.seed, Stream.NETWORK)
            if checkpoint is None or self.builds_alike:
                self.build()
            if checkpoint is not None:
                self.resume(checkpoint)
            self._run_epochs()
            return self.result()

    def resume(self, checkpoint: Any) -> None:
        """Call `load_state_dict` and turn its exceptions into an `InputError` of one line."""
        try:
            self.load_state_dict(checkpoint)
        except (InputError, MemoryError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:  # its type depends on the fault in the checkpoint
            raise InputError(
                "the checkpoint is not one of this version of user_dgl "
                f"({one_line(error)}): start anew with overwrite=true"
            ) from None

    def make_optimizer(self, model: nn.Module, structure: LearnedAdjacency) -> None:
        """Create Adam and its schedule for the model and, if A' is learned, for its weights."""
        train = self.config.train
        network = [each for each in model.parameters() if each is not structure.theta]
        groups: list[dict[str, Any]] = [{"params": network, "weight_decay": train.weight_decay}]
        if structure.learnable:
            lr = train.lr if train.structure_lr is None else train.structure_lr
            groups.append(structure.parameter_group(lr))
        self.optimizer = Adam(groups, lr=train.lr)
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
        """Do one step that lowers the sum of the terms, if all of them are finite.

        Parameters
        ----------
        terms : dict of str to Tensor (R,) or ()
            Terms of each replica. The replicas are summed, not averaged, so that the gradient of a
            replica does not depend on the number of replicas.
        optimizer : Optimizer, optional
            Default: the trainer's optimiser.
        schedules : bool
            Whether the schedule of the learning rate gets the loss. A trainer with several updates
            in an epoch calls `advance_schedule` itself.

        Returns
        -------
        dict of str to float, bool
            Mean of each term over the replicas, and whether the terms had gradients.

        Raises
        ------
        NonFiniteLossError
            A term is not finite. Nothing was changed.
        """
        values = finite_means(
            terms,
            f"epoch {self.progress.epoch + 1}: the loss is not finite ({{}}); the model was not "
            f"updated with it. {self.remedy if self.progress.epoch else _BEFORE_STEPS}",
        )
        total = sum(term.sum() for term in terms.values())
        if not isinstance(total, torch.Tensor) or not total.requires_grad:
            return values, False
        total.backward()
        self.reduce_gradients()
        (optimizer or self.optimizer).step()
        if schedules:
            self.advance_schedule(values)
        self.zero_grad()
        return values, True

    def advance_schedule(self, values: dict[str, float]) -> None:
        """Give the loss of an epoch to the schedule of the learning rate."""
        if self.schedule is not None:
            self.schedule.step(sum(values.values()))

    # -----------------------------------------------------------------------------------------

    def _run_epochs(self) -> None:
        """Train until the last epoch or until a signal asks to stop; report and save."""
        train, progress = self.config.train, self.progress
        self.hooks.begin()
        if progress.epoch == 0:
            self.hooks.save(self.state_dict())
        # disable=None shows the bar on a terminal only. In a file the lines of the log are enough.
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
                    torch.cuda.synchronize()  # a GPU works asynchronously, so the clock must wait
                seconds = time.perf_counter() - started
                progress.epoch_seconds.append(seconds)
                progress.epoch += 1
                if keeps_freed:
                    # Only after the first epoch. Before, tensors that stay would be placed between
                    # the blocks that are freed in every epoch.
                    memory.enter_context(freed_memory_kept())
                    keeps_freed = False
                self._report(report, seconds)
                bar.update()
                number = self.agree_to_stop(self.hooks.stop.number)
                due = progress.epoch % train.checkpoint_every == 0
                if due or number is not None or self._ended():
                    self.hooks.save(self.state_dict())
                if number is not None:
                    raise self._stopped(number)

    def _stopped(self, number: int) -> StoppedError:
        return StoppedError(
            f"by signal {number} after epoch {self.progress.epoch}, which is saved; "
            "train.resume=true goes on from there",
            number,
        )

    def _ended(self) -> bool:
        """Whether no epoch is left."""
        return self.progress.epoch >= self.config.train.epochs or self.converged()

    def _report(self, report: EpochReport, seconds: float) -> None:
        """Record the numbers of an epoch; every ``log_every`` epochs, log them too."""
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
        """Warn once if clusters become empty after all of them had nodes."""
        progress, asked = self.progress, self.config.model.num_clusters
        if in_use == asked:
            progress.all_clusters_used = True
        elif progress.all_clusters_used and not progress.collapsed:
            progress.collapsed = True
            self.log(f"Warning: epoch {progress.epoch}: {in_use} of {asked} clusters in use")


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Treat numbers below 1e-38 (denormals) as 0 in the block.

    Memberships near 0 and 1 and their squares produce many of them. A CPU needs about a hundred
    times as long to multiply a denormal, and its effect on sums with ordinary numbers is 0.
    """
    before = bool(torch.tensor(1e-40) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def clusters_in_use(clusters: torch.Tensor, num_clusters: int) -> int:
    """Count the clusters that have nodes in each replica, and return the smallest count.

    Parameters
    ----------
    clusters : int64 Tensor (N, R)
        Clusters of each replica.
    num_clusters : int
    """
    return min(
        int((torch.bincount(column, minlength=num_clusters) > 0).sum())
        for column in clusters.unbind(1)
    )


def finite_means(terms: dict[str, torch.Tensor], message: str) -> dict[str, float]:
    """Compute the mean of each term over the replicas.

    Parameters
    ----------
    terms : dict of str to Tensor (R,) or ()
    message : str
        Error message; ``{}`` in it is replaced by the terms and their values.

    Raises
    ------
    NonFiniteLossError
        A term is not finite in some replica.
    """
    values = {name: term.mean().item() for name, term in terms.items()}
    if not all(math.isfinite(value) for value in values.values()):
        shown = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
        raise NonFiniteLossError(message.format(shown))
    return values


def with_total(values: dict[str, float]) -> dict[str, float]:
    """Add the sum of the terms as ``total``."""
    return values | {"total": sum(values.values())}
