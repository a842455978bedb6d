"""One thread, and folders with real data for the tests that read them."""

import os

# Threads cost more than they bring on graphs of this size, by far where cores are shared. Set
# before torch is imported, and for the subprocesses of tests.
os.environ["OMP_NUM_THREADS"] = "1"

from pathlib import Path

import pytest

# Their assertions show values as those of tests do.
pytest.register_assert_rewrite("configs", "graph_files", "runs", "thread_ranks")


def pytest_configure(config):
    """Without GPUs, but for the tests of that name: results are compared bit for bit."""
    if "gpu" not in (config.option.markexpr or ""):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of data sets that USER_DGL_DATA names, absolute; skips where there is none."""
    name = os.environ.get("USER_DGL_DATA")
    if not name:
        pytest.skip("USER_DGL_DATA is not set: it names the folder of data sets")
    if not Path(name).is_dir():
        pytest.skip(f"USER_DGL_DATA={name} is no folder")
    return Path(name).resolve()  # subprocesses start in other folders


@pytest.fixture(scope="session")
def cases_root(data_root) -> Path:
    """The folder of small faulty inputs, beside `data_root`; skips where there is none."""
    folder = data_root.parent / "cases"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing")
    return folder


@pytest.fixture(scope="session")
def data_folder(data_root):
    """``data_folder(name)``: a folder below `data_root`; skips where it is missing."""

    def find(name: str) -> Path:
        folder = data_root / name
        if not folder.is_dir():
            pytest.skip(f"{folder} is missing")
        return folder

    return find
