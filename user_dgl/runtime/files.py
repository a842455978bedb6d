"""Atomic writing of files."""

import os
import secrets
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
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
        # Where it could not be made, it cannot be removed either.
        with suppress(OSError):
            aside.unlink()


def check_writable(folder: Path) -> None:
    """Refuse a folder in which no file can be made, by making one that disappears.

    Of a folder that does not exist yet, the nearest one above that exists is asked.

    Raises
    ------
    InputError
    """
    for each in (folder.absolute(), *folder.absolute().parents):
        try:
            if not each.exists():
                continue
            with tempfile.TemporaryFile(dir=each):
                return
        except OSError as error:
            raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from None


def check_output_file(
    file: Path,
    suffixes: Iterable[str],
    *,
    option: str = "--out",
    kept: Iterable[Path] = (),
    replace: bool = False,
    remedy: str | None = None,
) -> None:
    """Refuse a file that cannot or must not be written, before anything is computed.

    Parameters
    ----------
    file : Path
    suffixes : iterable of str
        Endings that its name may have.
    option : str
        How the user named it, for messages.
    kept : iterable of Path
        Files that are never replaced, such as those that are read.
    replace : bool
        Whether a file that exists may be replaced.
    remedy : str, optional
        What the user can add so that it may.

    Raises
    ------
    InputError
    """
    if file.suffix not in suffixes:
        raise InputError(f"{file}: {option} takes a name that ends in {' or '.join(suffixes)}")
    try:
        folder_is_there, exists = file.parent.is_dir(), file.exists()
        is_kept = file.resolve() in {each.resolve() for each in kept}
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror or error}") from None
    if not folder_is_there:
        raise InputError(f"{file.parent}: no such folder")
    check_writable(file.parent)
    if is_kept:
        raise InputError(f"{file}: {option} names a file that is read: choose another name")
    if exists and not replace:
        otherwise = f" or add {remedy}" if remedy else ""
        raise InputError(f"{file}: exists; choose another name{otherwise}")
