"""Readers that run in a process of their own, as damaged files may end it."""

import faulthandler
import multiprocessing
import os
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from user_dgl.data.attributed_graph import one_line
from user_dgl.errors import InputError
from user_dgl.runtime.machine import available_memory_mb, process_status


def read_in_sandbox(read: Callable[..., Any], path, *arguments) -> Any:
    """What ``read(path, *arguments)`` returns, from a fork of this process.

    SciPy's reader of MATLAB files and DGL's of its own are C and C++ that follow the sizes and
    places which a file claims: on damaged ones they end the process or fill its memory. They run
    apart, with no more memory than is available.

    Parameters
    ----------
    read : callable
        Raises `InputError` for what it finds wrong itself; returns what can be pickled.
    path : path
        Of the file, named in messages.
    *arguments
        More for ``read``.

    Raises
    ------
    InputError
        That of ``read``, or because its process has ended.
    """
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_answer, args=(sender, read, path, *arguments), daemon=True)
    process.start()
    sender.close()
    try:
        problem, result = receiver.recv()
    except EOFError:
        raise InputError(f"{path}: ends the process that reads it: is it damaged?") from None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if problem is not None:
        raise InputError(problem)
    return result


def _answer(sender: Connection, read: Callable[..., Any], path, *arguments) -> None:
    """What the other process does."""
    # What such code prints on its end, and Python's trace of it, is for nobody.
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # A fork has none of the threads that its parent may have started for parallel loops.
    torch.set_num_threads(1)
    most = int(process_status("VmSize:") + 1e6 * available_memory_mb())
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer = (None, read(path, *arguments))
    except InputError as error:
        answer = (str(error), None)
    except Exception as error:  # of libraries, on files that they do not expect
        answer = (f"{path}: cannot be read ({one_line(error)}): is it damaged?", None)
    sender.send(answer)
