"""Atomic writing of files."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from user_dgl.errors import InputError


def write_atomically(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file completely or not at all.

    The content is written to a temporary file in the same folder and flushed to the disk. The file
    is then renamed to ``path``.

    Parameters
    ----------
    path : Path
    write : callable
        Called with the open binary file to write the content.

    Raises
    ------
    InputError
        The disk is full, or the folder is missing or read-only. A file that was at ``path`` is
        unchanged.
    """
    # The name is random and the file must not exist, so that no file or link of others is used.
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
