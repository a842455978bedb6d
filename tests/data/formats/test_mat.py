"""MATLAB files."""

import resource
import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graph_files import FEATURES, LABELS, SYMMETRIC, N, notes, refused, saved, write

from user_dgl.data import load_edge_list
from user_dgl.data.reading import files as data_files
from user_dgl.data.reading import sandbox


def mat(**variables):
    return saved(scipy.io.savemat, {"W": SYMMETRIC, **variables})


def bomb():
    """A version 5 file whose one element would unpack to 4 GB."""
    header = b"MATLAB 5.0".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
    packer = zlib.compressobj(9)
    block = packer.compress(bytes(10**7)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(10**7)) + packer.flush(zlib.Z_FULL_FLUSH)
    data = block + again * 400
    return header + struct.pack("<II", 15, len(data)) + data


def with_wrong_size():
    """A file whose sizes lead SciPy's parser out of it: some releases end the process."""
    whole = saved(scipy.io.savemat, {"W": SYMMETRIC})
    return whole[:173] + b"\xff" * 4 + whole[177:]


OUT_OF_BOUNDS = sp.csc_matrix((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
OUT_OF_BOUNDS.indices[1] = 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a MATLAB file up to version 7"),
        (b"0,1\n1,2\n" * 40, "not a MATLAB file up to version 7"),
        (saved(scipy.io.savemat, {"B": SYMMETRIC}), "holds B: expected a variable called w, "),
        (saved(scipy.io.savemat, {"W": FEATURES}), "no square matrix called w, network"),
        (saved(scipy.io.savemat, {"X": FEATURES}), "no square matrix called w, network"),
        (saved(scipy.io.savemat, {"W": OUT_OF_BOUNDS}), "not a MATLAB file .*indices"),
        (mat(fea=FEATURES[:-1]), "fea has 12 rows for 13 nodes: they must agree"),
        (mat(fea=FEATURES.T), "fea has 3 rows for 13 nodes: transpose it"),
        (mat(gnd=LABELS[:-1]), "gnd has 12 labels for 13 nodes"),
        (mat(fea=np.where(FEATURES > 4, np.nan, FEATURES)), r"fea: NaN.*data\.missing_features"),
        (mat(fea=np.full((N, 1), "word")), "fea: features of .* type <U"),
        (mat(fea={"a": 1}), "fea: features of shape"),
        (mat(W=-SYMMETRIC), "negative, NaN or infinite weights"),
        (b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n", r"version 7\.3 .*with -v7"),
        (b"\x89HDF\r\n\x1a\n", r"version 7\.3"),
        (saved(scipy.io.savemat, {"W": SYMMETRIC}, do_compression=True)[:-9], "not a MATLAB file"),
        (with_wrong_size(), "crashed the process that read it|not a MATLAB file"),
        (saved(scipy.io.savemat, {"B": SYMMETRIC}).replace(b"B", b"\n", 2), r"holds .*: expected"),
    ],
)
def test_mat_refused(content, message, tmp_path):
    refused(write(tmp_path / "g.mat", content), message)


def test_a_limit_of_memory_that_is_set_already_is_no_damage(tmp_path, monkeypatch):
    """As of ``ulimit -v``, which only root may raise."""
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda what: (2**39, 2**40))
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: asked.append((what, limits)))
    monkeypatch.setattr(sandbox, "available_memory_mb", lambda: 1e9)
    sandbox._limit_memory()
    assert asked == [(resource.RLIMIT_AS, (2**39, 2**39))]

    def no_status(name):
        raise FileNotFoundError(name)

    monkeypatch.setattr(sandbox, "process_status", no_status)
    sandbox._limit_memory()
    assert len(asked) == 1
    assert load_edge_list(write(tmp_path / "g.mat", mat())).num_nodes == N


def test_several_labels_a_node_are_not_used(tmp_path):
    data = load_edge_list(write(tmp_path / "g.mat", mat(group=np.ones((N, 3)))))
    assert data.labels is None
    assert "group is not used: 13 nodes have several labels" in notes(data)


def test_published_mat(data_folder):
    data = load_edge_list(data_folder("blogcatalog3") / "blogcatalog.mat")
    assert (data.num_nodes, data.graph.num_edges) == (10312, 333983)
    assert data.labels is None


def test_a_bomb_is_found_without_unpacking_it_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "available_memory_mb", lambda: 200.0)
    path = write(tmp_path / "bomb.mat", bomb())
    refused(path, "needs .* GB")


def test_labels_without_a_column_may_not_claim_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "available_memory_mb", lambda: 200.0)
    path = write(tmp_path / "tall.mat", mat(gnd=np.zeros((10**8, 0))))
    refused(path, "needs .* GB")
