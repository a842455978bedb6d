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
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # control groups v2, v1
        try:
            total = min(total, int(Path("/sys/fs/cgroup", name).read_text()))
        except (OSError, ValueError):  # the other version, or no limit ("max")
            continue
    return total / 1e6


def available_memory_mb() -> float:
    """Memory that a process can still allocate without swapping, in 10^6 bytes.

    In a control group, it is the limit less what the group uses, without files that the system
    would drop, if that is lower. It is the memory of the machine if the system does not report the
    available part.
    """
    available = machine_memory_mb()
    try:
        text = Path("/proc/meminfo").read_text().partition("MemAvailable:")[2]
        available = min(available, int(text.split()[0]) * 1024 / 1e6)
    except (OSError, IndexError):
        pass
    for folder, used, files in (
        ("", "memory.current", "inactive_file "),
        ("memory", "memory.usage_in_bytes", "total_inactive_file "),
    ):  # control groups v2, v1
        group = Path("/sys/fs/cgroup", folder)
        try:
            inactive = int((group / "memory.stat").read_text().partition(files)[2].split()[0])
            held = int((group / used).read_text()) - inactive
        except (OSError, ValueError, IndexError):  # the other version
            continue
        available = min(available, machine_memory_mb() - held / 1e6)
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
