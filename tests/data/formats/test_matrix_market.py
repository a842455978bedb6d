"""MatrixMarket files."""

import gzip
from itertools import product

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graph_files import ARRAY, FORMATS, LOWER, MTX, SIZE, N, notes, refused, write

from user_dgl.data import load_edge_list
from user_dgl.data.formats.matrix_market import read_matrix_market


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows"),
        (b"0 1\n1 2\n", ":1: expected `%%MatrixMarket matrix` and coordinate or array"),
        (MTX + b"pattern general\n", "no rows"),
        (MTX + b"pattern general\n3 3 2\n", "only a header"),
        (MTX + b"pattern\n3 3 1\n1 2\n", ":1: expected `%%MatrixMarket matrix`"),
        (MTX + b"complex general\n2 2 1\n1 2 1 0\n", ":1: expected .* real, double, integer"),
        (MTX + b"pattern general\n3 3\n1 2\n", ":2: '3 3': expected numbers of rows, columns and"),
        (MTX + b"pattern general\n3 -3 1\n1 2\n", ":2: '3 -3 1': expected numbers"),
        (MTX + b"pattern general\n3 3 2\n1 2\n% c\n4 1\n", r":5: row 4: expected 1\.\.3"),
        (MTX + b"pattern general\n3 3 2\n1 2\n3 0\n", r":4: column 0: expected 1\.\.3"),
        (MTX + b"real general\n3 3 2\n1 2 1\n3 1 x\n", ":4: column 3: 'x' is not a number"),
        (MTX + b"real general\n3 3 2\n1 2 1\n3 1 3x\n", ":4: column 3: '3x' is not a number"),
        (MTX + b"real general\n3 3 2\n1 2 1\n3 1.5 1\n", ":4: column 2: '1.5' is not a whole"),
        (MTX + b"real general\n3 3 2\n1 2 1\n3 1\n", ":4: 2 columns, expected 3"),
        (MTX + b"real general\n3 3 1\n1 2\n", ":3: 2 columns, expected 3"),
        (MTX + b"pattern general\n3 3 2\n1 2\n", "1 entries, expected 2: is it cut off"),
        (MTX + b"pattern general\n3 3 1\n1 2\n1 3\n", "2 entries, expected 1"),
        (MTX + b"pattern general\n2000000000000 2000000000000 1\n1 2\n", "needs .* GB"),
        (ARRAY + b"real general\n2 2\n1\n0\n0\n", "3 entries, expected 4"),
        (ARRAY + b"real general\n9000000 9000000\n1\n", "1 entries, expected 81000000000000"),
        (ARRAY + b"real symmetric\n2 3\n1\n0\n0\n", r":2: symmetric of shape \(2, 3\)"),
        (ARRAY + b"real general\n3 3\n1\n0x\n0\n", ":4: column 1: '0x' is not a number"),
        (ARRAY + b"real general\n2 2\n1 0\n0 1\n", ":3: 2 columns, expected 1"),
        (MTX + b"pattern general\n3 2 1\n1 2\n", r"square adjacency .*\(3, 2\)"),
        (MTX + b"real general\n2 2 1\n1 2 nan\n", "negative, NaN or infinite weights in 1 rows"),
        (MTX + b"real skew-symmetric\n2 2 1\n2 1 3\n", "negative, NaN or infinite weights"),
        (gzip.compress(MTX + b"pattern general\n" + SIZE + LOWER)[:-9], "damaged gzip"),
    ],
)
def test_matrix_market_refused(content, message, tmp_path):
    refused(write(tmp_path / "g.mtx", content), message)


@pytest.mark.parametrize(
    ("symmetry", "form", "field"),
    [
        *product(("general", "symmetric", "skew-symmetric"), (sp.coo_matrix, np.asarray),
                 ("real", "integer")),
        ("general", sp.coo_matrix, "pattern"),
        ("symmetric", sp.coo_matrix, "pattern"),
    ],
)  # fmt: skip
def test_matrix_market_is_read_as_it_was_written(symmetry, form, field, tmp_path):
    values = np.random.default_rng(0).integers(-4, 5, (5, 5 if symmetry != "general" else 3))
    if symmetry != "general":
        values = values + values.T if symmetry == "symmetric" else values - values.T
    if field == "pattern":
        values = (values != 0).astype(int)
    matrix = form(values / 8 if field == "real" else values)
    file = tmp_path / "m.mtx"
    scipy.io.mmwrite(file, matrix, field=field, symmetry=symmetry)
    found = read_matrix_market(file)
    assert found.shape == values.shape
    np.testing.assert_array_equal(found.toarray(), values / 8 if field == "real" else values)


def test_matrix_market_ids_start_at_one(tmp_path):
    path = write(tmp_path / "g.mtx", FORMATS["lower.mtx"])
    data = load_edge_list(path, None, write(tmp_path / "l.csv", "1,a\n13,b\n"))
    assert data.node_ids == tuple(str(i) for i in range(1, N + 1))
    assert data.labels.tolist() == [0] + [-1] * 11 + [1]
    assert f"ids are 1..{N}" in notes(data)
    refused(path, "node 3 has no row in", write(tmp_path / "f", "0,5\n1,6\n2,7\n"))
