"""Files that several processes may write, and that are never seen half written."""

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path


def write_text(file: Path, text: str) -> None:
    """Write a file under another name and rename it, so that it is never seen half written."""
    aside = file.with_name(f".{file.name}.part")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, file)


@contextmanager
def locked(folder: Path):
    """Keep a second reproduce.py on the same folder from writing at the same moment."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
