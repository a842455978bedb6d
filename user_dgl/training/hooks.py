"""What a trainer tells the outside, given once when it is made."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from user_dgl.runtime.signals import StopSignal


def _ignore(_: Any) -> None:
    """The default of a hook: nobody listens."""


def _nothing() -> None:
    """The default of ``begin``: there is nothing to make ready."""


@dataclass(frozen=True, eq=False)
class Hooks:
    """Callbacks of a training.

    Attributes
    ----------
    log : callable
        Gets each line for people.
    record : callable
        Gets the numbers of each epoch as a dict.
    save : callable
        Gets each checkpoint: a dict of tensors and plain types.
    begin : callable
        Called once, when the state to start from is complete and before anything of it is saved.
    stop : StopSignal
        Says whether a signal has asked the training to stop; see `StopSignal.listening`.
    shows_progress : bool
        Whether a progress bar is shown on a terminal.
    """

    log: Callable[[str], None] = _ignore
    record: Callable[[dict[str, Any]], None] = _ignore
    save: Callable[[dict[str, Any]], None] = _ignore
    begin: Callable[[], None] = _nothing
    stop: StopSignal = field(default_factory=StopSignal)
    shows_progress: bool = True
