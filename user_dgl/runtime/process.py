"""This process: whether it is one of several, as a launcher starts them, and its output."""

import os
import sys


def launched() -> bool:
    """Return whether a launcher has started this process as one of several."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def first_of_machine() -> bool:
    """Return whether this process reports what all processes of its machine find alike."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def discard_stdout() -> None:
    """Send what is printed from now on nowhere, because nobody reads it any more."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, ValueError, OSError):  # closed, or no file of this process
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
