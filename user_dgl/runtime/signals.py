"""Handling of Ctrl-C and SIGTERM: training finishes and saves the current epoch, then stops."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A service manager or scheduler may send the same signal twice. A repeated signal within this time
# (seconds) is ignored.
_REPEATS_WITHIN_S = 1.0


class StopSignal:
    """Record of the signal that asked to stop.

    Attributes
    ----------
    number : int or None
        Number of the first signal; None if no signal has arrived.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._since = 0.0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Treat SIGINT and SIGTERM as requests to stop until the end of the block.

        A second signal, more than one second after the first, raises KeyboardInterrupt at once.
        Processes that a launcher started ignore it.

        Nothing changes outside the main thread, because Python delivers signals only there, and for
        a signal that already has a handler other than Python's own.
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
            # One of several processes ignores a second signal, because its launcher kills it when
            # it takes too long.
            # The command prints "interrupted" and then this text.
            raise KeyboardInterrupt(
                "by a second signal; train.resume=true continues from the last checkpoint"
            )
