"""Weights in a text of edges: which column holds them, and when a column of numbers is none."""

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.config import DataConfig
from user_dgl.data import load_data, load_edge_list
from user_dgl.errors import InputError


@pytest.fixture
def load(tmp_path):
    def load(text, **keys):
        (tmp_path / "edges.csv").write_text(text)
        return load_data(DataConfig(kind="edge_list", edges=str(tmp_path / "edges.csv"), **keys))

    return load


def _weights(data):
    """Weights by edge, in the unit of the file; None if there are none."""
    if data.graph.weight is None:
        return None
    ends = zip(data.graph.src.tolist(), data.graph.dst.tolist(), strict=True)
    values = np.round(data.graph.weight.numpy() * data.graph.unit, 5).tolist()
    return dict(zip(ends, values, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "source,target,weight\n0,1,0.5\n1,2,2\n2,0,4\n",
        "weight,source,target\n0.5,0,1\n2,1,2\n4,2,0\n",
        "0,1,0.5\n1,2,2\n2,0,4\n",
        "0 1 0.5\n1 0 0.5\n1 2 2\n2 0 4\n2 1 2\n",
    ],
)
def test_weights_are_found(load, text):
    data = load(text)
    assert _weights(data) == {(0, 1): 0.5, (0, 2): 4.0, (1, 2): 2.0}
    assert "weights of 0.5 to 4, which are used" in " ".join(data.notes)


def test_the_column_is_named_or_counted(load):
    text = "source,target,hours\n0,1,3\n1,2,1\n2,0,7\n"
    assert _weights(load(text)) is None
    found = {(0, 1): 3.0, (0, 2): 7.0, (1, 2): 1.0}
    assert _weights(load(text, weights="hours")) == found
    assert _weights(load(text, weights=3)) == found
    with pytest.raises(
        InputError, match=r"data\.weights names bogus, the columns are source, targ"
    ):
        load(text, weights="bogus")
    with pytest.raises(InputError, match="weights=target: this column holds ends"):
        load(text, weights="target")


def test_weights_are_ignored_on_request(load):
    data = load("source,target,weight\n0,1,0.5\n1,2,2\n2,3,0\n", weights="ignore")
    assert data.graph.weight is None
    assert data.graph.num_edges == 3  # every row is an edge
    assert "column 'weight' ignored" in " ".join(data.notes)
    assert load("source,target,weight\n0,1,0.5\n1,2,-2\n", weights="ignore").graph.num_edges == 2


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ((1, 2, 3, 4), "counts from row to row"),
        ((0, 1, 1, 5), "counts from row to row"),
        ((1082040961, 1082040000, 1082049999, 1082040961), "so it is a time"),
        ((0, 0, 0, 0), "so it is a type"),
    ],
)
def test_numbers_without_name_that_are_no_weights(load, column, why):
    ends = ((7, 1), (1, 2), (2, 9), (9, 7))
    rows = [f"{u},{v},{number}" for (u, v), number in zip(ends, column, strict=True)]
    data = load("\n".join(rows) + "\n")
    assert data.graph.num_edges == 4
    assert _weights(data) is None
    assert why in " ".join(data.notes)
    if any(column):
        assert _weights(load("\n".join(rows) + "\n", columns=(1, 2), weights=3)) is not None


def test_signed_edges_are_refused_with_advice(load):
    with pytest.raises(InputError, match=r":3: weight -2 .*edges with a sign are not supported"):
        load("source,target,weight\n0,1,0.5\n1,2,-2\n")


def test_a_column_is_read_from_a_text_of_edges_only():
    with pytest.raises(InputError, match="expected auto or ignore, got 'hours'"):
        DataConfig(kind="synthetic", weights="hours")


def test_row_numbers_in_front_of_a_star_are_not_its_ends(load):
    with pytest.raises(InputError, match=r"column 1 counts the rows: columns 1 and 2 or columns 2"):
        load("0,0,2\n1,0,4\n2,0,6\n")
    assert load("0,0,2\n1,0,4\n2,0,6\n", columns=(2, 3)).graph.num_edges == 3


@pytest.mark.parametrize("unit", [1e300, 1e-300, 1e-42])
def test_weights_beyond_single_precision_keep_their_ratio(tmp_path, unit):
    """In single precision, a weight in the unit of the data would be infinite, 0 or inexact."""
    matrix = sp.coo_matrix(([unit, 3 * unit], ([0, 1], [1, 2])), shape=(3, 3))
    sp.save_npz(tmp_path / "g.npz", matrix)
    data = load_edge_list(tmp_path / "g.npz")
    assert data.graph.weight.tolist() == [0.5, 1.5]
    assert data.graph.data_weight.tolist() == pytest.approx([unit, 3 * unit], abs=0)
