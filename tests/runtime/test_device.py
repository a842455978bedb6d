"""Which device and backend the settings mean, on machines with and without GPUs."""

import pytest
import torch

from user_dgl.config import load_config
from user_dgl.errors import InputError
from user_dgl.output.run_directory import RunDirectory
from user_dgl.runtime.device import device_name, resolve_backend, resolve_device
from user_dgl.training.memory import gpu_memory_line

CPU = torch.device("cpu")


@pytest.fixture
def gpus(monkeypatch):
    """``gpus(2)``: a machine with so many."""

    def have(count):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)

    return have


def _device(*overrides):
    return resolve_device(load_config(None, list(overrides)))


def test_without_a_gpu(gpus):
    gpus(0)
    assert _device() == _device("device=cpu") == CPU
    with pytest.raises(InputError, match="torch sees no CUDA device"):
        _device("device=cuda")
    assert resolve_backend("auto", CPU) == "gloo"
    with pytest.raises(InputError, match="nccl needs a GPU for each process"):
        resolve_backend("nccl", CPU)


def test_with_gpus(gpus, monkeypatch):
    gpus(2)
    assert _device() == _device("device=cuda") == torch.device("cuda", 0)
    for needs_cpu in ("device=cpu", "structure.engine=dgl", "train.mode=partition"):
        extra = ["model.observed_mix=0"] if "mode" in needs_cpu else []
        assert _device(needs_cpu, *extra) == CPU
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert _device() == torch.device("cuda", 1)
    assert resolve_backend("auto", _device()) == resolve_backend("nccl", _device()) == "nccl"
    assert resolve_backend("gloo", _device()) == "gloo"
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert _device() == torch.device("cuda", 1)  # two share it
    assert resolve_backend("auto", _device()) == "gloo"
    with pytest.raises(InputError, match="nccl needs"):
        resolve_backend("nccl", _device())


def test_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Some Card")
    assert device_name(CPU) == "cpu"
    assert device_name(torch.device("cuda", 0)) == "cuda (Some Card)"


def test_memory_of_a_gpu_and_those_who_share_it(monkeypatch):
    import scipy.sparse as sp

    for name, value in (("memory_reserved", 3e9), ("memory_allocated", 1e9)):
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (6e9, 16e9))
    settings = load_config(None, ["model.num_clusters=5", "model.hidden_feats=[64]"])
    feat, device = sp.csr_matrix((1_000_000, 100)), torch.device("cuda", 0)
    line = gpu_memory_line(settings, 10_000_000, feat, device)
    assert line.endswith("of the GPU's 8.0 free")
    with pytest.raises(InputError, match=r"4\.0 are free for each of 2 processes"):
        gpu_memory_line(settings, 30_000_000, feat, device, num_processes=2)


def test_a_run_goes_on_on_another_device(tmp_path):
    for settings in (["device=cuda"], ["device=cpu", "train.resume=true"]):
        config, run = load_config(None, settings), RunDirectory(tmp_path)
        run.begin(config, run.checkpoint_to_resume(config))
