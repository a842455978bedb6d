"""NumPy arrays."""

import numpy as np
import pytest
from graph_files import EDGES, FEATURES, FORMATS, N, refused, write

from user_dgl.data import load_edge_list
from user_dgl.errors import InputError


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(EDGES, dtype=float), "expected an adjacency .* or whole numbers"),
        (np.zeros((0, 2), dtype=int), "expected an adjacency"),
        (np.zeros((3, 4)), r"square adjacency matrix of numbers, got shape \(3, 4\)"),
        (np.zeros(3), "square adjacency"),
        (np.array([["a", "b"]] * 3), "expected an adjacency"),
        (np.array([[0, -1.0, 0], [0, 0, 0], [0, 0, 0]]), "negative, NaN or infinite"),
        (np.array(EDGES, dtype=object), "not a plain npy array"),
    ],
)
def test_arrays_refused(array, message, tmp_path):
    refused(write(tmp_path / "e.npy", array), message)


def test_ids_of_an_array_of_edges(tmp_path):
    large = 2**63 - 1
    data = load_edge_list(write(tmp_path / "e.npy", np.array([[large, 5], [5, 7], [7, large]])))
    assert data.node_ids == ("5", "7", str(large))
    data = load_edge_list(write(tmp_path / "e.npy", np.array([[2**64 - 1, 5]] * 3, np.uint64)))
    assert data.node_ids == ("5", str(2**64 - 1))


@pytest.mark.parametrize("order", "<>")
def test_text_of_arrays_that_is_no_unicode(order, tmp_path):
    """NumPy makes strings of such numbers that Python itself cannot handle."""
    numbers = np.full(N, 0x110000, dtype=f"{order}u4")
    text = numbers.view(f"{order}U1")
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    np.save(tmp_path / "l.npy", text)
    with pytest.raises(InputError, match=r"l\.npy: text that is not valid Unicode"):
        load_edge_list(edges, None, tmp_path / "l.npy")
    np.savez(tmp_path / "f.npz", x=FEATURES, ids=text)
    with pytest.raises(InputError, match=r"f\.npz: text that is not valid Unicode"):
        load_edge_list(edges, tmp_path / "f.npz")
