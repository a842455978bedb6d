"""The memory allocator of the C library: freed memory is kept between epochs."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# glibc's numbers for parameters of malloc. Once one is set, it no longer adapts them to what a
# process allocates: afterwards they stay where that would have taken them at most.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = 2**26, 2**25, 65536


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Memory that is freed stays with the process, to be used again, until the end of the block.

    The C library of most Linux systems returns each block of more than 32 MB to the system, and
    whoever asks for the next one waits until its pages were cleared: a quarter of the time of an
    epoch at a million nodes.
    """
    libc = glibc()
    if libc is None:
        yield
        return
    libc.mallopt(_M_MMAP_MAX, 0)
    libc.mallopt(_M_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        libc.mallopt(_M_MMAP_MAX, _MMAP_MAX)
        libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)
        libc.malloc_trim(0)


def glibc() -> ctypes.CDLL | None:
    """The C library of this process if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") else None
