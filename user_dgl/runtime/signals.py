"""Ctrl-C and SIGTERM while training: the epoch at hand is finished and saved first."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A service manager or scheduler may send the same wish twice.
_REPEATS_WITHIN_S = 1.0


class StopSignal:
    """Which signal asked to stop, if any.

    Attributes
    ----------
    number : int or None
    """

    def __init__(self):
        self.number: int | None = None
        self._since = 0.0

    def _ask(self, number: int, frame) -> None:
        now = time.monotonic()
        if self.number is None:
            self.number, self._since = number, now
        elif now - self._since > _REPEATS_WITHIN_S and "RANK" not in os.environ:
            # Not one of several processes, which a launcher ends that has waited long enough.
            raise KeyboardInterrupt("again; train.resume=true goes on from the last checkpoint")


@contextmanager
def stop_signal() -> Iterator[StopSignal]:
    """Takes SIGINT and SIGTERM as wishes as long as the block lasts; a second one ends it at once.

    Outside of the main thread, where Python delivers no signals, and where somebody else has taken
    them over, all stays as it is.
    """
    asked = StopSignal()
    own = (signal.default_int_handler, signal.SIG_DFL)
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in own:
                before[number] = signal.signal(number, asked._ask)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
