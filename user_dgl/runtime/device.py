"""Where a process trains: the CPU, or the GPU that is its own."""

import os

import torch

from user_dgl.config import Config
from user_dgl.errors import InputError


def resolve_device(config: Config) -> torch.device:
    """The device of the settings; ``auto`` is a GPU where torch sees one that can serve.

    Each of several processes on one machine gets a GPU of its own, or shares one where there are
    more processes than GPUs.

    Raises
    ------
    InputError
        ``cuda`` where torch sees no GPU.
    """
    there = torch.cuda.is_available()
    if config.device == "cuda" and not there:
        raise InputError("device=cuda: torch sees no CUDA device here; use device=cpu")
    if config.device == "cpu" or not there or not config.fits_gpu:
        return torch.device("cpu")
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    return torch.device("cuda", local_rank % torch.cuda.device_count())


def resolve_backend(backend: str, device: torch.device) -> str:
    """``auto`` as what the processes of a run talk by: nccl where each has a GPU, else gloo.

    Raises
    ------
    InputError
        ``nccl`` where it cannot serve.
    """
    own_gpu = device.type == "cuda" and torch.cuda.device_count() >= int(
        os.environ.get("LOCAL_WORLD_SIZE", 1)
    )
    works = own_gpu and torch.distributed.is_nccl_available()
    if backend == "nccl" and not works:
        raise InputError(
            "distributed.backend=nccl needs a GPU for each process and a torch with NCCL: start "
            "fewer, or use gloo"
        )
    return ("nccl" if works else "gloo") if backend == "auto" else backend


def device_name(device: torch.device) -> str:
    """``cpu``, or ``cuda`` with the name of the card."""
    if device.type == "cpu":
        return "cpu"
    return f"cuda ({torch.cuda.get_device_name(device)})"


def gpu_peak_memory_mb() -> float | None:
    """Most that tensors of this process held on its GPU at a time, in 10^6 bytes; None without."""
    return torch.cuda.max_memory_allocated() / 1e6 if torch.cuda.is_initialized() else None
