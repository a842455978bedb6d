"""Callbacks by which a trainer reports to its caller."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from user_dgl.runtime.progress import StageClock
from user_dgl.runtime.signals import StopSignal


def _ignore(_: Any) -> None:
    """Do nothing; the default of the hooks with one argument."""


def _nothing() -> None:
    """Do nothing; the default of ``begin``."""


@dataclass(frozen=True, eq=False)
class Hooks:
    """Callbacks of a training. They are given once, when the trainer is created.

    Attributes
    ----------
    log : callable
        Called with each line of the log.
    record : callable
        Called after each epoch with a dict of its numbers.
    save : callable
        Called with each checkpoint, a dict of tensors and plain types.
    begin : callable
        Called once, after the trainer is built or loaded and before the first checkpoint is saved.
    stop : StopSignal
        Tells whether a signal has asked the training to stop; see `StopSignal.listening`.
    shows_progress : bool
        Whether a progress bar is shown on a terminal.
    stages : StageClock
        Measures the stages before training.
    """

    log: Callable[[str], None] = _ignore
    record: Callable[[dict[str, Any]], None] = _ignore
    save: Callable[[dict[str, Any]], None] = _ignore
    begin: Callable[[], None] = _nothing
    stop: StopSignal = field(default_factory=StopSignal)
    shows_progress: bool = True
    stages: StageClock = field(default_factory=StageClock)
