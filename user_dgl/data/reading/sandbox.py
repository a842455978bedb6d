"""Run a reader in a process of its own, because a damaged file may crash that process."""

import faulthandler
import multiprocessing
import os
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from user_dgl.data.attributed_graph import one_line
from user_dgl.errors import InputError
from user_dgl.runtime.machine import available_memory_mb, process_status


def read_in_sandbox(read: Callable[..., Any], path: Path, *arguments: object) -> Any:
    """Return the result of ``read(path, *arguments)``, called in a fork of this process.

    SciPy's reader of MATLAB files and DGL's reader of its own files are C and C++ code that trusts
    the sizes and offsets in a file. On a damaged file they may crash the process or fill the
    memory. The fork protects this process, and it cannot use more memory than is available.

    Parameters
    ----------
    read : callable
        Raises `InputError` for the faults that it finds itself. Its result must be picklable.
    path : Path
        File to read; messages name it.
    *arguments
        Further arguments of ``read``.

    Raises
    ------
    InputError
        ``read`` raised an exception, or its process crashed.
    """
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_answer, args=(sender, read, path, *arguments), daemon=True)
    process.start()
    sender.close()
    try:
        problem, result = receiver.recv()
    except EOFError:
        raise InputError(f"{path}: crashed the process that read it: is it damaged?") from None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if problem is not None:
        raise InputError(problem)
    return result


def _answer(sender: Connection, read: Callable[..., Any], path: Path, *arguments: object) -> None:
    """Call ``read`` in the other process, and send its problem or its result."""
    # After a crash, the messages of such code and Python's trace would only confuse the user.
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # The threads that the parent may have started for parallel loops do not exist in a fork.
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory()
    answer: tuple[str | None, Any]
    try:
        answer = (None, read(path, *arguments))
    except InputError as error:
        answer = (str(error), None)
    except Exception as error:  # libraries raise many kinds on damaged files
        answer = (f"{path}: cannot be read ({one_line(error)}): is it damaged?", None)
    try:
        sender.send(answer)
    except MemoryError:
        sender.send((f"{path}: there is not enough memory to read it", None))


def _limit_memory() -> None:
    """Let this process allocate what the machine has left, or less if its limit is lower already.

    Where the system does not report the size of a process (other systems than Linux), there is no
    limit.
    """
    try:
        most = int(process_status("VmSize:") + 1e6 * available_memory_mb())
    except (OSError, IndexError):
        return
    known = resource.getrlimit(resource.RLIMIT_AS)
    most = min([most, *(limit for limit in known if limit != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
