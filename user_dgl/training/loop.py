"""The loop that all trainers share: epochs, their reports, checkpoints, memory between epochs."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from tqdm.auto import tqdm

from user_dgl.config import Config
from user_dgl.errors import NonFiniteLossError, StoppedError
from user_dgl.runtime.allocator import freed_memory_kept
from user_dgl.runtime.signals import StopSignal


@dataclass
class Progress:
    """Where training stands; all of it goes into a checkpoint."""

    epoch: int = 0
    epoch_seconds: list[float] = field(default_factory=list)
    all_clusters_used: bool = False
    collapsed: bool = False


class EpochLoop:
    """Runs epochs of a trainer, which says what an epoch and a checkpoint are.

    Parameters
    ----------
    config : Config
    log : callable
        Gets each line for people.
    record : callable
        Gets each epoch's numbers as a dict.
    save : callable
        Gets each checkpoint as a dict of tensors and plain types.
    """

    def __init__(
        self,
        config: Config,
        log: Callable[[str], None],
        record: Callable[[dict[str, Any]], None],
        save: Callable[[dict[str, Any]], None],
    ):
        self.config, self.log, self.record, self.save = config, log, record, save
        self._progress = Progress()
        self._keeps_freed, self.shows_progress = False, True
        # Called once, when the state to start from is whole and before any of it is kept.
        self.begin: Callable[[], None] = lambda: None
        # Whoever saves checkpoints may put one here that listens, see `stop_signal`.
        self.stop = StopSignal()

    # What a trainer adds.

    def _step(self) -> tuple[dict[str, float], int | None, dict[str, float]]:
        """One epoch: means of the terms over replicas, clusters in use, further numbers to report.

        The clusters in use are those of the replica that uses fewest; None where there are no
        clusters before the end.
        """
        raise NotImplementedError

    def _checkpoint(self) -> None:
        raise NotImplementedError

    def _refresh_candidates(self) -> None:
        """New candidates where they are due."""

    def _converged(self) -> bool:
        """Whether training ends before the last epoch asked for."""
        return False

    def _agreed(self, number: int | None) -> int | None:
        """The signal to stop for; several processes stop together."""
        return number

    # -----------------------------------------------------------------------------------------

    def _make_optimizer(self, model: nn.Module, theta: torch.Tensor | None) -> None:
        """Adam and schedule for a model, and for the weights of A' if they are learned."""
        train = self.config.train
        network = [p for name, p in model.named_parameters() if name != "structure.theta"]
        groups = [{"params": network, "weight_decay": train.weight_decay}]
        if theta is not None:
            # Without weight decay: it would draw every weight to softplus(0) = 0.69.
            lr = train.lr if train.structure_lr is None else train.structure_lr
            groups.append({"params": [theta], "lr": lr, "weight_decay": 0.0})
        self.optimizer = torch.optim.Adam(groups, lr=train.lr)
        self.schedule = None
        if train.plateau_factor < 1:
            self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
                self.optimizer, factor=train.plateau_factor, patience=train.plateau_patience
            )

    def _run_epochs(self) -> None:
        train, progress = self.config.train, self._progress
        self.begin()
        if progress.epoch == 0:
            self._checkpoint()
        # disable=None: a bar on a terminal, none in a file, where the log lines serve.
        bar = tqdm(
            total=train.epochs,
            initial=progress.epoch,
            desc="training",
            disable=None if self.shows_progress else True,
            leave=False,
        )
        keeps_freed = self._keeps_freed
        with bar, ExitStack() as memory:
            while not self._ended():
                started = time.perf_counter()
                self._refresh_candidates()
                terms, in_use, extra = self._step()
                if torch.cuda.is_initialized():
                    torch.cuda.synchronize()  # a GPU is behind what it was told to do
                seconds = time.perf_counter() - started
                progress.epoch_seconds.append(seconds)
                progress.epoch += 1
                if keeps_freed:
                    # Not before: what outlives an epoch would lie between the blocks that do not.
                    memory.enter_context(freed_memory_kept())
                    keeps_freed = False
                self._report(terms, in_use, extra, seconds)
                bar.update()
                number = self._agreed(self.stop.number)
                due = progress.epoch % train.checkpoint_every == 0
                if due or number is not None or self._ended():
                    self._checkpoint()
                if number is not None:
                    raise StoppedError(
                        f"by signal {number} after epoch {progress.epoch}, which is saved; "
                        "train.resume=true goes on from there",
                        number,
                    )

    def _ended(self) -> bool:
        return self._progress.epoch >= self.config.train.epochs or self._converged()

    def _finite_means(self, terms: dict[str, torch.Tensor]) -> dict[str, float]:
        return finite_means(
            terms,
            f"epoch {self._progress.epoch + 1}: the loss is not finite ({{}}); the model was not "
            "updated with it. Lower train.lr or the weight of that term",
        )

    def _report(
        self, terms: dict[str, float], in_use: int | None, extra: dict[str, float], seconds: float
    ) -> None:
        progress, train = self._progress, self.config.train
        row = {"epoch": progress.epoch, "loss": terms["total"]}
        row |= {name: value for name, value in terms.items() if name != "total"}
        if in_use is not None:
            row["clusters_in_use"] = in_use
            self._watch_collapse(in_use)
        row |= {"lr": self.optimizer.param_groups[0]["lr"], "seconds": seconds}
        self.record(row | extra)
        if progress.epoch % train.log_every and not self._ended():
            return
        parts = [f"Epoch {progress.epoch:05d}", f"Loss {terms['total']:.4f}"]
        parts += [f"{name} {value:.4f}" for name, value in terms.items() if name != "total"]
        parts += [f"{name.replace('_', ' ')} {value:.4f}" for name, value in extra.items()]
        parts += [f"Clusters {in_use}"] if in_use is not None else []
        parts.append(f"Time {seconds:.3f}")
        self.log(" | ".join(parts))

    def _watch_collapse(self, in_use: int) -> None:
        progress, asked = self._progress, self.config.model.num_clusters
        if in_use == asked:
            progress.all_clusters_used = True
        elif progress.all_clusters_used and not progress.collapsed:
            progress.collapsed = True
            self.log(f"Warning: epoch {progress.epoch}: {in_use} of {asked} clusters in use")


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
