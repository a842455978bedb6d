"""How much memory there is, and how much this process has taken."""

import os
import resource
import sys
from pathlib import Path


def peak_memory_mb() -> float:
    """Highest resident set of this process in 10^6 bytes."""
    try:
        # Not getrusage where this exists: that one starts at the size of the process that forked
        # this one, such as a notebook's.
        return process_status("VmHWM:") / 1e6
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def resident_mb() -> float:
    """Resident set of this process now, in 10^6 bytes."""
    try:
        return process_status("VmRSS:") / 1e6
    except (OSError, IndexError):
        return peak_memory_mb()


def machine_memory_mb() -> float:
    """Memory of the machine, or of the control group that holds this process, in 10^6 bytes."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # version 2, version 1
        try:
            total = min(total, int(Path("/sys/fs/cgroup", name).read_text()))
        except (OSError, ValueError):  # another version, or "max"
            continue
    return total / 1e6


def available_memory_mb() -> float:
    """Memory that a process here could still get without swapping, in 10^6 bytes."""
    try:
        text = Path("/proc/meminfo").read_text().partition("MemAvailable:")[2]
        return min(machine_memory_mb(), int(text.split()[0]) * 1024 / 1e6)
    except (OSError, IndexError):
        return machine_memory_mb()


def process_status(name: str) -> float:
    """A size in bytes from Linux's account of this process."""
    return int(Path("/proc/self/status").read_text().partition(name)[2].split()[0]) * 1024
