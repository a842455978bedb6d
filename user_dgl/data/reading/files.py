"""Files as bytes: their format by the ending, their size, and the memory that they need."""

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
# NumPy, zipfile or DGL map these files or read parts of them, and none of them supports gzip.
_IN_PLACE = (".npy", ".npz", ".bin", ".dgl")


def ending(path: Path) -> str:
    """Return the ending that names the format, in lower case and without a final ``.gz``.

    Raises
    ------
    InputError
        The file is gzipped, but its format cannot be read from a gzipped file.

    >>> ending(Path("a/Graph.MTX.gz")), ending(Path("edges.csv"))
    ('.mtx', '.csv')
    """
    path = Path(path)
    packed = path.suffix.lower() == ".gz"
    if packed:
        path = path.with_suffix("")
    kind = path.suffix.lower()
    if packed and kind in _IN_PLACE:
        raise InputError(f"{path}.gz: {kind} files cannot be read gzipped: unpack it with gunzip")
    return kind


def check_room(num_bytes: float, source: Path | str) -> None:
    """Check that the available memory suffices.

    A file of a few kilobytes may unpack to many gigabytes, or claim that size. A check before
    reading gives the user a message instead of a machine without memory.

    Parameters
    ----------
    num_bytes : float
        Memory that ``source`` needs.
    source : path or text
        Name for the message.

    Raises
    ------
    InputError
        More memory is needed than is available.
    """
    available = available_memory_mb()
    if num_bytes / 1e6 > available:
        raise InputError(
            f"{source}: needs {num_bytes / 1e9:.3g} GB of memory, but {available / 1e3:.3g} GB are "
            "available: is it damaged?"
        )


def file_size(path: Path) -> int:
    """Return the size of a regular file in bytes, without opening it.

    Pipes and devices are refused, because they may be endless and can be read only once.

    Raises
    ------
    InputError
        The path does not exist, or is not a regular file.
    """
    try:
        found = Path(path).stat()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {problem}: check the path") from None
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: Is a directory: check the path")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: a pipe or device: save its content as a file first")
    return found.st_size


def read_bytes(path: Path, copies: float = 1) -> bytes:
    """Return the content of a file. Gzipped content is unpacked, whatever the name of the file.

    Parameters
    ----------
    path : Path
    copies : float
        Memory that the caller will need to process the content, as a multiple of its size.

    Raises
    ------
    InputError
        The file is unreadable, its gzip data are damaged, or the available memory is too small.
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
        # The size is counted before any data are kept, because gzip data may unpack to a thousand
        # times their size.
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            check_room((1 + copies) * unpacked_size(file.read), path)
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}: damaged gzip ({one_line(error)}): download or create it again"
        ) from None


def first_bytes(path: Path, count: int) -> bytes:
    """Return the first bytes of a file; of the unpacked content if it is gzipped.

    Raises
    ------
    InputError
        The file is unreadable, or its gzip data are damaged.
    """
    file_size(path)
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            return gzip.GzipFile(fileobj=file).read(count) if packed else file.read(count)
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path}: {error.strerror}: check the path") from None
        raise InputError(
            f"{path}: damaged gzip ({one_line(error)}): download or create it again"
        ) from None


def unpacked_size(read: Callable[[int], bytes]) -> int:
    """Count the bytes of a stream. The count stops soon after it exceeds the available memory.

    Parameters
    ----------
    read : callable
        Returns the next bytes of the stream, at most as many as its argument says.
    """
    size, most = 0, 1e6 * available_memory_mb()
    while size <= most and (block := read(_BLOCK)):
        size += len(block)
    return size
