"""Whether this process is one of several, as ``user-dgl launch`` and torchrun start them."""

import os


def launched() -> bool:
    """Return whether a launcher has started this process as one of several."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def first_of_machine() -> bool:
    """Return whether this process reports what all processes of its machine find alike."""
    return os.environ.get("LOCAL_RANK", "0") == "0"
