"""Files that are whole or absent."""

import os
import zipfile
from pathlib import Path
from typing import Any

import torch

from user_dgl.errors import InputError
from user_dgl.runtime.files import write_atomically


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Save tensors and plain types; a crash leaves the previous checkpoint in place."""

    def write(file) -> None:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            # torch finds its own account of the file wrong once a write has failed.
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise

    write_atomically(path, write)


def load_checkpoint(path: Path, remedy: str = "start anew with overwrite=true") -> dict[str, Any]:
    """Load what `save_checkpoint` wrote, refusing anything but tensors and plain types.

    Parameters
    ----------
    path : Path
    remedy : str
        What to do where it cannot be read.

    Raises
    ------
    InputError
        Missing, truncated or foreign file.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: no checkpoint there to go on from") from None
    except Exception as error:  # torch raises many kinds for a damaged file
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        if path.is_file() and os.access(path, os.R_OK) and not zipfile.is_zipfile(path):
            first = "cut off or damaged"  # torch's own words for that are "Invalid argument"
        raise InputError(f"{path}: not a readable checkpoint ({first}): {remedy}") from None
    if not isinstance(state, dict):
        raise InputError(f"{path}: not a checkpoint of user_dgl: {remedy}")
    return state
