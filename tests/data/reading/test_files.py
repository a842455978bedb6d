"""Files that are not opened, not read whole, or cannot be read."""

import gzip
import os
from pathlib import Path

import pytest

from user_dgl.data import load_edge_list, read_labels
from user_dgl.data.reading import files as data_files
from user_dgl.data.reading.unpickle import load_pickle
from user_dgl.errors import InputError


def test_what_is_no_regular_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "pipe.npy", "pipe.npz", "pipe.mat", "pipe.graphml", "pipe.bin"):
        if name != "pipe":
            (tmp_path / name).symlink_to(tmp_path / "pipe")
        with pytest.raises(InputError, match=f"{name}: a pipe or device: save its content"):
            load_edge_list(tmp_path / name)
    for load in (load_pickle, read_labels_of, load_edge_list):
        with pytest.raises(InputError, match="/dev/zero: a pipe or device"):
            load(Path("/dev/zero"))


def read_labels_of(path):
    return read_labels(path, None, 3)


def test_a_file_larger_than_the_memory_is_not_read(files, monkeypatch):
    path = files.save("e.csv", "0,1\n" * 1000)
    monkeypatch.setattr(data_files, "available_memory_mb", lambda: 0.001)
    monkeypatch.setattr(Path, "read_bytes", pytest.fail)
    for load in (load_pickle, load_edge_list):
        with pytest.raises(InputError, match=r"e\.csv: needs .* GB of memory"):
            load(path)


@pytest.mark.parametrize("name", ["e.npz.gz", "e.npy.GZ", "e.bin.gz"])
def test_packed_files_that_have_to_be_unpacked_first(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b"x"))
    with pytest.raises(InputError, match=r"cannot be read gzipped: unpack it with gunzip"):
        load_edge_list(tmp_path / name)


def test_no_advice_to_unpickle(tmp_path):
    for content in (gzip.compress(b"x"), b"\x80\x04N."):
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(
            InputError, match=r"it contains objects, or has another format.*: save it again"
        ):
            load_edge_list(tmp_path / "x.npy")


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: No such file"):
        load_edge_list(tmp_path / "none.csv")
    with pytest.raises(InputError, match="Is a directory"):
        load_edge_list(tmp_path)
