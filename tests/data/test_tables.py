"""Tables in memory: numbers of every type, names of rows and columns, refusals."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from user_dgl.data.categories import CategoryEncoder
from user_dgl.data.tables import as_table, is_default, positions_of
from user_dgl.errors import InputError

NUMBERS = [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]


@pytest.mark.parametrize(
    "values",
    [
        NUMBERS,
        np.array(NUMBERS, dtype=object),
        np.asmatrix(NUMBERS),
        sp.csr_array(NUMBERS),
        torch.tensor(NUMBERS, dtype=torch.bfloat16),
        pd.DataFrame(NUMBERS),
        pd.DataFrame({"a": [1, 2, 3], "b": [False, True, False]}),
        pd.DataFrame({"a": pd.array([1, 2, 3], "Int64"), "b": pd.array([False, True, False])}),
        pd.DataFrame({"a": [1, Decimal(2), 3.0], "b": [0, True, np.bool_(False)]}, dtype=object),
        pd.DataFrame(NUMBERS).astype(pd.SparseDtype(float, 0)),
        pd.DataFrame(NUMBERS).astype(pd.SparseDtype(float)),
    ],
    ids=[
        "lists", "object", "matrix", "csr_array", "bfloat16", "frame", "bool", "nullable",
        "object columns", "sparse columns", "sparse columns of NaN",
    ],
)  # fmt: skip
def test_numbers_of_every_type(values):
    table = as_table(values, "x")
    matrix = table.matrix.toarray() if sp.issparse(table.matrix) else np.asarray(table.matrix)
    np.testing.assert_array_equal(matrix.astype(float), NUMBERS)
    assert table.rows is None


def test_names():
    table = as_table(pd.DataFrame(NUMBERS, index=["p", "q", "r"], columns=["a", "b"]), "x")
    assert list(table.rows) == ["p", "q", "r"]
    assert list(table.columns) == ["a", "b"]
    assert as_table(pd.DataFrame(NUMBERS), "x").columns is None
    assert is_default(pd.RangeIndex(3))
    assert not is_default(pd.RangeIndex(1, 4))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"a": [1, 2], "c": ["red", "blue"]}, "x: not numbers: column 'c' has text, such as 'red'"),
        ({"c": pd.Categorical([5, 7])}, "column 'c' has categories, such as 5"),
        ({"c": pd.to_datetime(["2020-01-01", "2020-01-02"])}, "column 'c' has datetime64"),
        ({"c": [1, "2"]}, "column 'c' has numbers and text"),
        ({"c": ["1", "2"]}, "column 'c' has text, such as '1'"),
        ({"c": [1j, 2]}, "column 'c' has complex numbers"),
        ({"a": [1, 2], "c": [1, None]}, "1 missing, .* row 1, column 'c': fill them in"),
        ({"c": pd.array([None, 1], "Int64")}, "1 missing, .* row 0, column 'c'"),
        ({"c": [1.0, np.inf]}, "1 missing, NaN or infinite .* row 1, column 'c'"),
    ],
)
def test_cells_that_are_no_numbers(frame, message):
    with pytest.raises(InputError, match=message):
        as_table(pd.DataFrame(frame), "x")


def test_complex_numbers_and_ragged_lists():
    with pytest.raises(InputError, match="Complex data not supported"):
        as_table(np.array([[1j]]), "x")
    with pytest.raises(InputError, match="x: not a matrix"):
        as_table([[1], [1, 2]], "x")


@pytest.mark.parametrize(
    ("wanted", "given", "message"),
    [
        (["a", "b"], ["a", "c"], "there: no name 'b', which what has: both must have the same"),
        (["a"], ["a", "c"], "there: 1 names that what does not have, the first is 'c'"),
        (["a", "a"], ["a"], "what: name 'a' given twice"),
        (["a"], ["a", "a"], "there: name 'a' given twice"),
        ([1, 2], ["1", "2"], r"no name 1, .* \(2 such names\): .* convert with astype\(str\)"),
    ],
)
def test_names_that_differ(wanted, given, message):
    with pytest.raises(InputError, match=message):
        positions_of(pd.Index(wanted), pd.Index(given), "what", "there")


def test_positions():
    place = positions_of(pd.Index(["b", "a"]), pd.Index(["a", "b"]), "what", "there")
    assert place.tolist() == [1, 0]


def test_sparse_columns_of_booleans_and_numbers():
    frame = pd.DataFrame({"a": [0, 2, 0], "b": [False, True, False]})
    sparse = frame.astype({"a": "Sparse[int]", "b": "Sparse[bool]"})
    np.testing.assert_array_equal(as_table(sparse, "x").matrix.toarray(), [[0, 0], [2, 1], [0, 0]])


@pytest.mark.parametrize("layout", [torch.Tensor.to_dense, torch.Tensor.to_sparse])
def test_half_precision(layout):
    matrix = as_table(layout(torch.eye(2).half().to_sparse()), "x").matrix
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    np.testing.assert_array_equal(dense, np.eye(2))


def test_categories_are_those_of_the_fit():
    """What the cells of new rows look like does not matter, and text elsewhere is refused."""
    encoder = CategoryEncoder()
    as_table(pd.DataFrame({"x": [1.0, 2, 3], "grade": [1, 2, "A"]}), "features", encoder)
    new = as_table(pd.DataFrame({"x": [5.0], "grade": [2]}), "features", encoder)
    np.testing.assert_array_equal(new.matrix.toarray(), [[5, 0, 1, 0]])
    with pytest.raises(InputError, match=r"column 'x' has text, .*: the fit had numbers"):
        as_table(pd.DataFrame({"x": ["unknown"], "grade": [2]}), "features", encoder)
