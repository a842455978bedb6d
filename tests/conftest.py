"""Settings of all tests: one thread, no GPU, and the folders of real data."""

import os

# On graphs of this size several threads are slower than one, above all where cores are shared. The
# variable is set before torch is imported; the subprocesses of tests inherit it.
os.environ["OMP_NUM_THREADS"] = "1"

from pathlib import Path

import pytest

# Assertions of these helpers then show the compared values, as assertions of tests do.
pytest.register_assert_rewrite("configs", "graph_files", "runs", "thread_ranks")


def pytest_configure(config):
    """Hide the GPUs unless the tests marked gpu are asked for: results are compared bit for bit."""
    if "gpu" not in (config.option.markexpr or ""):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Absolute path of the data sets, from USER_DGL_DATA; without it the test is skipped."""
    name = os.environ.get("USER_DGL_DATA")
    if not name:
        pytest.skip("USER_DGL_DATA is not set: it names the folder of data sets")
    if not Path(name).is_dir():
        pytest.skip(f"USER_DGL_DATA={name} is not a folder")
    return Path(name).resolve()  # subprocesses start in other folders


@pytest.fixture(scope="session")
def cases_root(data_root) -> Path:
    """Folder of small faulty inputs, beside `data_root`; without it the test is skipped."""
    folder = data_root.parent / "cases"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing")
    return folder


@pytest.fixture(scope="session")
def data_folder(data_root):
    """Function that finds a folder below `data_root`, or skips the test if it is missing."""

    def find(name: str) -> Path:
        folder = data_root / name
        if not folder.is_dir():
            pytest.skip(f"{folder} is missing")
        return folder

    return find
