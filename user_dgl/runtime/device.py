"""Choice of the device and of the communication backend of a process."""

import os

import torch

from user_dgl.config import Config
from user_dgl.errors import InputError


def resolve_device(config: Config) -> torch.device:
    """Choose the device that this process trains on.

    ``auto`` is a GPU if torch finds one and the settings can run on a GPU, else the CPU. If several
    processes run on one machine, each gets its own GPU; processes share GPUs if there are more
    processes than GPUs.

    Raises
    ------
    InputError
        The settings require ``cuda`` and torch finds no GPU.
    """
    there = torch.cuda.is_available()
    if config.device == "cuda" and not there:
        raise InputError("device=cuda: torch sees no CUDA device here; use device=cpu")
    if config.device == "cpu" or not there or not config.fits_gpu:
        return torch.device("cpu")
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    return torch.device("cuda", local_rank % torch.cuda.device_count())


def resolve_backend(backend: str, device: torch.device) -> str:
    """Choose the communication backend of the processes of a run.

    ``auto`` is ``nccl`` if each process on this machine has its own GPU and torch has NCCL, else
    ``gloo``.

    Raises
    ------
    InputError
        The settings require ``nccl`` and it cannot be used.
    """
    own_gpu = device.type == "cuda" and torch.cuda.device_count() >= int(
        os.environ.get("LOCAL_WORLD_SIZE", 1)
    )
    works = own_gpu and torch.distributed.is_nccl_available()
    if backend == "nccl" and not works:
        raise InputError(
            "distributed.backend=nccl needs a GPU for each process and a torch with NCCL: start "
            "fewer processes, or use gloo"
        )
    return ("nccl" if works else "gloo") if backend == "auto" else backend


def device_name(device: torch.device) -> str:
    """Return ``cpu``, or ``cuda`` with the name of the GPU in brackets."""
    if device.type == "cpu":
        return "cpu"
    return f"cuda ({torch.cuda.get_device_name(device)})"


def gpu_peak_memory_mb() -> float | None:
    """Peak memory of this process's tensors on its GPU in 10^6 bytes; None if it uses no GPU."""
    return torch.cuda.max_memory_allocated() / 1e6 if torch.cuda.is_initialized() else None
