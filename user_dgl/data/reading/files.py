"""Files as bytes: what their endings say, and how much they may take once unpacked."""

import gzip
import io
import stat
import zlib
from collections.abc import Callable
from pathlib import Path

from user_dgl.data.attributed_graph import one_line
from user_dgl.errors import InputError
from user_dgl.runtime.machine import available_memory_mb

_BLOCK = 2**20
# Mapped or read in parts by others, who know no gzip.
_IN_PLACE = (".npy", ".npz", ".bin", ".dgl")


def ending(path: Path) -> str:
    """The ending that names the format, in lower case: the one before ``.gz`` if that is last.

    Raises
    ------
    InputError
        A format under ``.gz`` of which parts are read, or which is not read into memory.

    >>> ending(Path("a/Graph.MTX.gz")), ending(Path("edges.csv"))
    ('.mtx', '.csv')
    """
    path = Path(path)
    packed = path.suffix.lower() == ".gz"
    if packed:
        path = path.with_suffix("")
    kind = path.suffix.lower()
    if packed and kind in _IN_PLACE:
        raise InputError(f"{path}.gz: {kind} is read where it lies: unpack it (gunzip)")
    return kind


def check_room(num_bytes: float, source) -> None:
    """Refuse what would take more memory than is available.

    A few kilobytes may unpack to, or claim, any number of gigabytes: found out beforehand, that is
    a line and not a machine that stands still.

    Parameters
    ----------
    num_bytes : float
        What `source` would take in memory.
    source : path or text
        What the message names.

    Raises
    ------
    InputError
    """
    there = available_memory_mb()
    if num_bytes / 1e6 > there:
        raise InputError(
            f"{source}: would take {num_bytes / 1e9:.3g} GB of memory, {there / 1e3:.3g} are "
            "available: is it damaged?"
        )


def file_size(path: Path) -> int:
    """Bytes of a file, which neither is opened nor has to be read.

    Raises
    ------
    InputError
        Nothing there, a folder, or what may give no end of bytes and them only once.
    """
    try:
        found = Path(path).stat()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {problem}: check the path") from None
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: Is a directory: check the path")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: a pipe or device: save what it gives as a file first")
    return found.st_size


def read_bytes(path: Path, copies: float = 1) -> bytes:
    """Content of a file, unpacked where it starts as gzip does.

    Parameters
    ----------
    path : Path
    copies : float
        Times of its content that what is made of it will take.

    Raises
    ------
    InputError
        File unreadable, gzip damaged, or more than fits the memory.
    """
    check_room(file_size(path), path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: check the path") from None
    if data[:2] != b"\x1f\x8b":
        check_room(copies * len(data), path)
        return data
    try:
        # Counted before anything is kept: it may unpack to a thousand times its size.
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            check_room((1 + copies) * unpacked_size(file.read), path)
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}: damaged gzip ({one_line(error)}): copy or make it anew"
        ) from None


def unpacked_size(read: Callable[[int], bytes]) -> int:
    """Bytes that a stream gives, up to some more than there is memory for."""
    size, most = 0, 1e6 * available_memory_mb()
    while size <= most and (block := read(_BLOCK)):
        size += len(block)
    return size
