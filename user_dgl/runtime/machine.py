"""Memory of the machine and of this process."""

import os
import resource
import sys
from pathlib import Path


def peak_memory_mb() -> float:
    """Peak resident memory of this process in 10^6 bytes."""
    try:
        # Preferred to getrusage, whose peak includes the size of the parent process at the fork,
        # for example of a notebook.
        return process_status("VmHWM:") / 1e6
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def resident_mb() -> float:
    """Current resident memory of this process in 10^6 bytes; the peak if that is unknown."""
    try:
        return process_status("VmRSS:") / 1e6
    except (OSError, IndexError):
        return peak_memory_mb()


def machine_memory_mb() -> float:
    """Memory of the machine in 10^6 bytes, or the limit of the control group if that is lower."""
    total = 1e6 * _physical_mb()
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # control groups v2, v1
        try:
            total = min(total, int(Path("/sys/fs/cgroup", name).read_text()))
        except (OSError, ValueError):  # the other version, or no limit ("max")
            continue
    return total / 1e6


def _physical_mb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6


def available_memory_mb() -> float:
    """Memory that a process can still allocate without swapping, in 10^6 bytes.

    In a control group with a limit, it is the limit less what the group uses, without files that
    the system would drop, if that is lower. It is the memory of the machine if the system does not
    report the available part.
    """
    available = limit = machine_memory_mb()
    try:
        text = Path("/proc/meminfo").read_text().partition("MemAvailable:")[2]
        available = min(available, int(text.split()[0]) * 1024 / 1e6)
    except (OSError, IndexError):
        pass
    for folder, used, kind in (
        ("", "memory.current", ""),
        ("memory", "memory.usage_in_bytes", "total_"),
    ):  # control groups v2, v1
        group = Path("/sys/fs/cgroup", folder)
        try:
            words = (group / "memory.stat").read_text().split()
            numbers = dict(zip(words[::2], map(int, words[1::2]), strict=True))
            files = numbers[f"{kind}active_file"] + numbers[f"{kind}inactive_file"]
            held = int((group / used).read_text()) - files
        except (OSError, ValueError, KeyError):  # the other version
            continue
        if limit < _physical_mb():
            available = min(available, limit - held / 1e6)
    return max(0.0, available)


def process_status(name: str) -> float:
    """Read a size in bytes from ``/proc/self/status``.

    Parameters
    ----------
    name : str
        Name of the field with its colon, for example ``VmRSS:``.

    Raises
    ------
    OSError
        The file does not exist (other systems than Linux).
    IndexError
        The file has no such field.
    """
    return int(Path("/proc/self/status").read_text().partition(name)[2].split()[0]) * 1024
