"""Writing and reading of checkpoint files."""

import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import torch

from user_dgl.errors import InputError
from user_dgl.runtime.files import write_atomically


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Save tensors and plain types. After a crash, the previous checkpoint is still there."""

    def write(file: BinaryIO) -> None:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            # After a failed write torch raises an error of its own about the file position, which
            # hides the cause.
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise

    write_atomically(path, write)


def load_checkpoint(
    path: Path, remedy: str = "start anew with overwrite=true", when_used: bool = False
) -> dict[str, Any]:
    """Load a file written by `save_checkpoint`. Only tensors and plain types are accepted.

    Parameters
    ----------
    path : Path
    remedy : str
        Advice at the end of the error message if the file cannot be read.
    when_used : bool
        Whether tensors are read from the file only when they are used, and take no memory before.

    Raises
    ------
    InputError
        The file is missing or truncated, or it is not a checkpoint.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=when_used)
    except FileNotFoundError:
        raise InputError(f"{path}: no checkpoint there to go on from") from None
    except Exception as error:  # torch raises many types of errors for a damaged file
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        if path.is_file() and os.access(path, os.R_OK) and not zipfile.is_zipfile(path):
            first = "cut off or damaged"  # torch says only "Invalid argument"
        raise InputError(f"{path}: not a readable checkpoint ({first}): {remedy}") from None
    if not isinstance(state, dict):
        raise InputError(f"{path}: not a checkpoint of user_dgl: {remedy}")
    return state


def check_view(state: dict[str, Any], view: str | None) -> None:
    """Refuse a checkpoint of another view of the features than the one that a run trains on.

    Parameters
    ----------
    state : dict
        The checkpoint.
    view : str, optional
        Its name.

    Raises
    ------
    InputError
    """
    made_on = state.get("view")  # None in checkpoints of 0.3.0
    if made_on is not None and view is not None and made_on != view:
        raise InputError(
            f"the checkpoint is of another view of the features, {made_on}, than the one that is "
            f"chosen now, {view}: start anew with overwrite=true"
        )
