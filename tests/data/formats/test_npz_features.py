"""Features and ids in npz files."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from graph_files import EDGES, FEATURES, FORMATS, N, refused, text, write

from user_dgl.data import load_edge_list
from user_dgl.data.formats.npz import write_npz
from user_dgl.errors import InputError


@pytest.mark.parametrize(
    "save",
    [
        lambda p: np.savez(p, features=FEATURES),
        lambda p: np.savez(p, X=FEATURES[::-1], ids=np.arange(N)[::-1]),
        lambda p: np.savez_compressed(p, x=FEATURES, node_id=np.arange(N).astype(str)),
        lambda p: sp.save_npz(p, sp.coo_matrix(FEATURES)),
    ],
)
def test_npz_features(save, tmp_path):
    save(tmp_path / "f.npz")
    data = load_edge_list(write(tmp_path / "e.csv", FORMATS["e.csv"]), tmp_path / "f.npz")
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES)
    assert data.node_ids is None


def test_sparse_features_in_half_precision(tmp_path):
    """SciPy stores them, although it cannot compute with them."""
    rows = sp.csr_matrix(np.round(FEATURES))
    parts = {"indices": rows.indices, "indptr": rows.indptr, "shape": rows.shape, "format": b"csr"}
    np.savez(tmp_path / "f.npz", data=rows.data.astype(np.float16), **parts)
    data = load_edge_list(write(tmp_path / "e.csv", FORMATS["e.csv"]), tmp_path / "f.npz")
    np.testing.assert_array_equal(data.feat.toarray(), np.round(FEATURES))


def test_npz_features_from_one(tmp_path):
    np.savez(tmp_path / "f.npz", x=FEATURES, ids=np.arange(1, N + 1))
    rows = "".join(f"{u + 1} {v + 1}\n" for u, v in EDGES)
    data = load_edge_list(write(tmp_path / "e", rows), tmp_path / "f.npz")
    assert data.node_ids == tuple(str(i) for i in range(1, N + 1))
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES)
    refused(write(tmp_path / "zero", text(" ")), "node 0 has no row in", tmp_path / "f.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": FEATURES, "b": FEATURES}, "holds a, b: expected one array"),
        ({"ids": np.arange(N)}, "holds ids: expected one array"),
        ({"x": FEATURES, "ids": np.arange(N - 1)}, r"ids of shape \(12,\) .* for 13 rows"),
        ({"x": FEATURES, "ids": np.arange(N) / 2}, "ids of shape .* type float64"),
        ({"x": FEATURES, "ids": np.arange(N) // 2}, "node 0 given twice, again in row 1"),
        ({"x": FEATURES, "ids": np.array([""] * N)}, "row 0: an id is missing"),
        ({"x": np.where(FEATURES > 4, np.inf, FEATURES)}, r"NaN, .*data\.missing_features"),
        ({"x": FEATURES.astype(str)}, "features of shape .* type <U"),
        ({"x": FEATURES.astype(object)}, "features of shape .* type object"),
    ],
)
def test_npz_features_refused(arrays, message, tmp_path):
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(InputError, match=message):
        load_edge_list(write(tmp_path / "e.csv", FORMATS["e.csv"]), tmp_path / "f.npz")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (("a", "b") * 6, "node_ids: some are given twice"),
        (("a", "a ", *"bcdefghijk"), "id 'a' given twice, apart from blanks"),
        (("a", " ", *"bcdefghijk"), "node 1: an id is missing"),
        ((*"abcdefghijk", "\ud800"), "node_ids: text that is not valid Unicode"),
    ],
)
def test_ids_of_an_npz_refused(ids, message, tmp_path):
    data = load_edge_list(write(tmp_path / "e.csv", FORMATS["e.csv"]))
    with open(tmp_path / "g.npz", "wb") as file:
        write_npz(file, replace(data, node_ids=ids))
    refused(tmp_path / "g.npz", message)
