"""The processes that cells run in."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path

import user_dgl

# What a fork has imported. These modules take longer to import than a small network to train.
_IMPORTED = ["user_dgl.pipeline.inputs", "user_dgl.cleaner", "user_dgl._dgl", "dgl.nn"]
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(_IMPORTED)
_FORKS_STARTED = threading.Event()


class Failure(Exception):
    """A process ended without a result; the text is shown to the user."""


class Children:
    """The running processes, so that an interrupt can end all of them.

    Attributes
    ----------
    folder : Path or None
        For files that several cells read and that nobody needs afterwards.
    """

    def __init__(self, environment: dict[str, str], folder: Path | None = None, anew: bool = False):
        self.folder = folder
        self._environment = environment
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen | multiprocessing.Process] = set()
        self._stopped = False
        self._anew = anew
        self._making: dict[Path, threading.Lock] = {}
        self._made: set[Path] = set()

    def make(self, file: Path, write: Callable[[], object]) -> None:
        """Call ``write`` to write a file, once for all cells that need it."""
        with self._lock:
            lock = self._making.setdefault(file, threading.Lock())
        with lock:
            if file in self._made or (file.exists() and not self._anew):
                return
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            try:
                write()
            except BaseException:
                file.unlink(missing_ok=True)  # half a file would be taken for a whole one
                raise
            self._made.add(file)

    def user_dgl(self, arguments: list[str]) -> float:
        """Run ``user-dgl ARGUMENTS``, as `script`."""
        return self._checked(["-m", "user_dgl", *arguments])

    def script(self, file: Path, arguments: list[str], interpreter: str | None = None) -> float:
        """Run a Python script and return its wall seconds; raise `Failure` if it fails."""
        return self._checked([str(file), *arguments], interpreter)

    def function(self, call: Callable[[list[str]], object], arguments: list[str]) -> float:
        """Call a function in a process of its own and return its wall seconds.

        The process is the fork of one that has imported the package, so that it starts at once. Its
        memory is its own.

        Raises
        ------
        Failure
            The function raises an exception, or its process is killed.
        """
        started = time.perf_counter()
        here, there = _FORKS.Pipe(duplex=False)
        child = _FORKS.Process(target=_call, args=(there, user_dgl.__file__, call, arguments))
        with self._lock:
            if self._stopped:
                raise Failure("interrupted")
            _start_forks(self._environment)
            child.start()
            self._running.add(child)
        there.close()
        try:
            error, killed = here.recv(), False
        except EOFError:
            error, killed = None, True
        child.join()
        with self._lock:
            self._running.discard(child)
        if error is not None or killed:
            raise Failure(error or f"exit status {child.exitcode}")
        return time.perf_counter() - started

    def _checked(self, arguments: list[str], interpreter: str | None = None) -> float:
        started = time.perf_counter()
        # -P: run the package that this script imports, not one in the current folder.
        status, errors = self._run([interpreter or sys.executable, "-P", *arguments])
        if status:
            lines = [line for line in errors.splitlines() if line.strip()]
            raise Failure(lines[-1].strip() if lines else f"exit status {status}")
        return time.perf_counter() - started

    def _run(self, command: list[str]) -> tuple[int, str]:
        """Run a command and return its exit status and error output."""
        with self._lock:
            if self._stopped:
                raise Failure("interrupted")
            child = subprocess.Popen(
                command,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            self._running.add(child)
        _, errors = child.communicate()
        with self._lock:
            self._running.discard(child)
        return child.returncode, errors

    def stop(self):
        with self._lock:
            self._stopped = True
            for child in self._running:
                child.terminate()


def _start_forks(environment: dict[str, str]) -> None:
    """Start the process that is forked, if it was not started yet, with an environment."""
    if _FORKS_STARTED.is_set():
        return
    # As -P: the package is not one in the current folder.
    wanted = {**environment, "PYTHONSAFEPATH": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    _FORKS_STARTED.set()


def _call(sender, package: str, call: Callable[[list[str]], object], arguments: list[str]) -> None:
    """Call a function and send the first line of its error, or None."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(quiet, stream.fileno())
    try:
        if user_dgl.__file__ != package:
            raise ImportError(f"the package is {user_dgl.__file__}, not {package}")
        call(arguments)
    except Exception as error:
        sender.send(f"{type(error).__name__}: {error}".splitlines()[0])
        sys.exit(1)
    sender.send(None)
