"""Columns of categories: 0/1 columns where that is asked for, else refused with that advice."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from user_dgl.data.categories import CategoryEncoder
from user_dgl.data.graph_objects import read_objects
from user_dgl.data.tables import as_table
from user_dgl.errors import InputError

FRAME = pd.DataFrame(
    {
        "colour": ["red", "blue", "red"],
        "size": [1.5, 2.5, 3.5],
        "kind": pd.Categorical([7, 8, 7]),
        "flag": [True, False, True],
    }
)
# The numbers first, then blue, red, 7 and 8.
ENCODED = [[1.5, 1, 0, 1, 1, 0], [2.5, 0, 1, 0, 0, 1], [3.5, 1, 0, 1, 1, 0]]


def test_frame():
    encoder = CategoryEncoder()
    table = as_table(FRAME, "x", encoder)
    np.testing.assert_array_equal(table.matrix.toarray(), ENCODED)
    assert table.columns.tolist() == list(FRAME)
    assert encoder.note() == ("categories in column 'colour', 'kind' became 4 columns of 0 and 1")
    new = FRAME.assign(colour=["red", "green", "blue"])
    again = as_table(new, "x", encoder).matrix.toarray()
    # A new value has 0 in all columns.
    np.testing.assert_array_equal(again[:, 1:4], [[1, 0, 1], [0, 0, 0], [1, 1, 0]])
    with pytest.raises(InputError, match="column 'colour' has numbers, and none of them"):
        as_table(FRAME.assign(colour=1), "x", encoder)
    with pytest.raises(InputError, match="categories in column 'kind', and the fit had"):
        as_table(FRAME.drop(columns="colour"), "x", encoder)
    held = read_objects(nx.path_graph(3), FRAME, CategoryEncoder())
    np.testing.assert_array_equal(held.feat.toarray(), ENCODED)
    assert "became 4 columns" in held.notes[0]


def test_frame_without_numbers_and_without_categories():
    only = as_table(FRAME[["colour"]], "x", CategoryEncoder()).matrix
    np.testing.assert_array_equal(only.toarray(), [[0, 1], [1, 0], [0, 1]])
    assert sp.issparse(only)
    none = as_table(FRAME[["size"]], "x", CategoryEncoder())
    np.testing.assert_array_equal(none.matrix, FRAME[["size"]])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"c": ["a", None, "a"]}, "x: 1 categories are missing, the first in row 1, column 'c'"),
        ({"c": [f"n{i}" for i in range(30)]}, "column 'c' has 30 different values in 30 rows"),
        ({"c": pd.to_datetime(["2020-01-01"] * 3)}, "column 'c' has datetime64"),
        ({"c": ["a", "b", "a"], "n": [1, None, 2]}, "1 missing, .* row 1, column 'n'"),
    ],
)
def test_refused_all_the_same(frame, message):
    with pytest.raises(InputError, match=message):
        as_table(pd.DataFrame(frame), "x", CategoryEncoder())


def test_advice():
    with pytest.raises(InputError, match=r"set features.categorical=one_hot"):
        as_table(FRAME, "x")
