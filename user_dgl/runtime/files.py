"""Files that are whole or absent."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from user_dgl.errors import InputError


def write_atomically(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file aside, flush it to the disk, then rename it onto ``path``.

    Parameters
    ----------
    path : Path
    write : callable
        Gets the open binary file.

    Raises
    ------
    InputError
        The disk is full, the folder read-only or missing; what was at ``path`` is still there.
    """
    # A name that nobody foresees, and never a file or link that is there.
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(aside, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        aside.unlink(missing_ok=True)
