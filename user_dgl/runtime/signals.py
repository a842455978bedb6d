"""Ctrl-C and SIGTERM while training: the epoch at hand is finished and saved first."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A service manager or scheduler may send the same signal twice.
_REPEATS_WITHIN_S = 1.0


class StopSignal:
    """Which signal asked to stop, if any.

    Attributes
    ----------
    number : int or None
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._since = 0.0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM as requests to stop; a second signal ends the process at once.

        Nothing changes outside of the main thread, where Python delivers no signals, and for a
        signal that has a handler of somebody else.
        """
        own = (signal.default_int_handler, signal.SIG_DFL)
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) in own:
                    before[number] = signal.signal(number, self._ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self.number is None:
            self.number, self._since = number, now
        elif now - self._since > _REPEATS_WITHIN_S and "RANK" not in os.environ:
            # One of several processes is ended by its launcher, which has waited long enough.
            raise KeyboardInterrupt("again; train.resume=true goes on from the last checkpoint")
