"""Stages of a run: their seconds and memory, and a progress bar on a terminal.

A run measures its stages with a `StageClock`, one after the other. Functions deep inside of a stage
call `steps` on what they loop over. If a clock is measuring, its bar then shows how many steps are
done, their rate and the time left. Otherwise, as in a test or in a notebook, nothing is shown.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from tqdm import tqdm

from user_dgl.runtime.machine import peak_memory_mb

T = TypeVar("T")

_BAR: ContextVar[tqdm | None] = ContextVar("bar", default=None)


class StageClock:
    """Measures the stages of a run, which follow each other.

    Parameters
    ----------
    log : callable, optional
        Called with one line when a stage ends.
    shows_progress : bool
        Whether a bar is shown on a terminal while a stage runs. In a file, the lines are enough.

    Attributes
    ----------
    entries : list of dict
        ``name``, ``epochs``, ``seconds``, ``cpu_seconds`` and ``peak_memory_mb`` of each finished
        stage, in the form of ``result.json``. CPU seconds are those of all threads of the process.
        The peak is that of the process until the end of the stage.
    """

    def __init__(self, log: Callable[[str], None] | None = None, shows_progress: bool = False):
        self.entries: list[dict[str, Any]] = []
        self._log, self._shows_progress = log, shows_progress
        self._started = time.perf_counter()

    def seconds(self) -> float:
        """Seconds since the clock was made."""
        return time.perf_counter() - self._started

    @contextmanager
    def stage(self, name: str, epochs: int = 0, bar: bool = True) -> Iterator[dict[str, Any]]:
        """Measure the block as a stage.

        Parameters
        ----------
        name : str
        epochs : int
        bar : bool
            Whether the stage has a bar. One that has a bar of its own needs none.

        Yields
        ------
        dict
            The entry of the stage, to which the block may add.
        """
        entry: dict[str, Any] = {"name": name, "epochs": epochs}
        started, cpu_started = time.perf_counter(), time.process_time()
        shown = tqdm(
            desc=name,
            bar_format="{desc} ...",  # until the number of steps is known
            leave=False,
            disable=None if bar and self._shows_progress else True,
        )
        token = _BAR.set(None if shown.disable else shown)
        try:
            yield entry
        finally:
            _BAR.reset(token)
            shown.close()
        entry["seconds"] = time.perf_counter() - started
        entry["cpu_seconds"] = time.process_time() - cpu_started
        # Linux sums its counters of several processors only roughly, so that the peak may seem to
        # fall by some pages.
        before = max((each["peak_memory_mb"] for each in self.entries), default=0.0)
        entry["peak_memory_mb"] = max(before, peak_memory_mb())
        self.entries.append(entry)
        if self._log is not None:
            memory = f"{entry['peak_memory_mb'] / 1000:.2f} GB at the peak so far"
            self._log(f"Stage {name} | {entry['seconds']:.2f} s | {memory}")


def steps(items: Iterable[T], total: int | None = None) -> Iterator[T]:
    """Iterate over items and show on the bar of the present stage how many are done.

    Parameters
    ----------
    items : iterable
    total : int, optional
        Number of items; default: their length.

    >>> list(steps(range(3)))
    [0, 1, 2]
    """
    bar = _BAR.get()
    if bar is None or bar.n < (bar.total or 0):
        # A loop inside of another one shows nothing, because the bar has one count.
        yield from items
        return
    bar.bar_format = None
    bar.reset(len(items) if total is None and isinstance(items, Sized) else total)
    for item in items:
        yield item
        bar.update()
