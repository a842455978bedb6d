"""Settings of the C library's memory allocator, so that freed memory is reused between epochs."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# glibc's numbers for the parameters of mallopt.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4
# Values that are set at the end. By default glibc adapts its thresholds to the allocations of the
# process, but it stops this for good once one of them is set. So the thresholds are left at the
# largest values that glibc itself would choose.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = 2**26, 2**25, 65536


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep freed memory in the process until the end of the block, so that it can be reused.

    By default glibc returns each freed block of more than 32 MB to the system. The next allocation
    then waits until the system has cleared the pages, which takes a quarter of the time of an epoch
    at a million nodes. Nothing changes with another C library than glibc.
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
    """Return the C library of this process if it is glibc, else None."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") else None
