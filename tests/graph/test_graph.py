"""Graphs: cleaning, canonical order and CSR against dense matrices."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from paths import ROOT

from user_dgl.errors import InputError
from user_dgl.graph import Cleaning, Graph, index_dtype

INT32_MAX = 2**31 - 1


def _random_entries(seed):
    """N and entries with loops, repeats and both directions; sparse to nearly complete."""
    draw = np.random.default_rng(seed)
    num_nodes = int(draw.integers(1, 51))
    count = int(draw.integers(0, draw.choice([2, num_nodes + 1, num_nodes**2 + 1])))
    reach = int(draw.integers(1, num_nodes + 1))  # nodes from `reach` on stay isolated
    u, v = draw.integers(0, reach, size=(2, count))
    return num_nodes, u, v


def _dense(num_nodes, u, v):
    adjacency = np.zeros((num_nodes, num_nodes))
    adjacency[u, v] = adjacency[v, u] = 1
    np.fill_diagonal(adjacency, 0)
    return adjacency


def _same(one, other):
    assert one.num_nodes == other.num_nodes
    for name in ("src", "dst", "upper_indptr", "indptr", "indices", "pair_of_entry", "degree"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def _check_against_dense(graph, adjacency):
    num_nodes = len(adjacency)
    upper, full = sp.csr_matrix(np.triu(adjacency)), sp.csr_matrix(adjacency)
    assert graph.num_nodes == num_nodes
    assert graph.num_edges == upper.nnz == len(graph.src) == len(graph.dst)
    # The canonical order: row by row through the upper triangle.
    rows, columns = np.nonzero(np.triu(adjacency))
    assert graph.src.tolist() == rows.tolist()
    assert graph.dst.tolist() == columns.tolist()
    assert graph.keys.tolist() == (rows * num_nodes + columns).tolist()
    assert graph.upper_indptr.tolist() == upper.indptr.tolist()
    assert graph.indptr.tolist() == full.indptr.tolist()
    assert graph.indices.tolist() == full.indices.tolist()
    assert graph.degree.tolist() == adjacency.sum(axis=1).tolist()
    assert graph.degree.dtype == torch.int64
    for row in range(num_nodes):
        for entry in range(graph.indptr[row], graph.indptr[row + 1]):
            column, pair = int(graph.indices[entry]), int(graph.pair_of_entry[entry])
            ends = (int(graph.src[pair]), int(graph.dst[pair]))
            assert ends == (min(row, column), max(row, column))
    assert np.bincount(graph.pair_of_entry, minlength=graph.num_edges).tolist() == (
        [2] * graph.num_edges
    )


@pytest.mark.parametrize("seed", range(40))
def test_against_dense(seed):
    num_nodes, u, v = _random_entries(seed)
    adjacency = _dense(num_nodes, u, v)
    graph, cleaning = Graph.from_edges(num_nodes, u, v)
    _check_against_dense(graph, adjacency)
    loops = int((u == v).sum())
    assert cleaning == Cleaning(loops, len(u) - loops - int(adjacency.sum()) // 2)


@pytest.mark.parametrize("num_nodes", [0, 1, 2, 50])
def test_no_edges(num_nodes):
    graph, cleaning = Graph.from_edges(num_nodes, [], [])
    assert cleaning == Cleaning(0, 0)
    assert str(cleaning) == ""
    _check_against_dense(graph, np.zeros((num_nodes, num_nodes)))
    assert graph.positions(np.array([0, 1, -1])).tolist() == [-1, -1, -1]
    assert graph.to_scipy().shape == (num_nodes, num_nodes)
    assert graph.to_scipy(torch.zeros(0)).nnz == 0


def test_one_node_with_loops():
    graph, cleaning = Graph.from_edges(1, [0, 0], [0, 0])
    assert cleaning == Cleaning(self_loops=2, repeated=0)
    assert graph.num_edges == 0
    assert graph.indptr.tolist() == [0, 0]


def test_isolated_nodes_stay():
    graph, _ = Graph.from_edges(6, [4], [2])
    assert graph.degree.tolist() == [0, 0, 1, 0, 1, 0]
    assert graph.indptr.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert graph.upper_indptr.tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_by_hand():
    graph, cleaning = Graph.from_edges(4, [3, 1, 0, 2, 3, 1, 2], [0, 0, 1, 2, 1, 0, 3])
    assert cleaning == Cleaning(self_loops=1, repeated=2)
    assert str(cleaning) == ("1 self-loop entries dropped, 2 repeated or reversed entries merged")
    assert graph.src.tolist() == [0, 0, 1, 2]
    assert graph.dst.tolist() == [1, 3, 3, 3]
    assert graph.indptr.tolist() == [0, 2, 4, 5, 8]
    assert graph.indices.tolist() == [1, 3, 0, 3, 3, 0, 1, 2]
    assert graph.pair_of_entry.tolist() == [0, 1, 0, 2, 3, 1, 2, 3]
    assert graph.keys.tolist() == [1, 3, 7, 11]
    assert graph.degree.tolist() == [2, 2, 1, 3]


def test_cleaning_in_words():
    assert str(Cleaning(self_loops=3)) == "3 self-loop entries dropped"
    assert str(Cleaning(repeated=2)) == "2 repeated or reversed entries merged"


@pytest.mark.parametrize("seed", range(15))
def test_order_and_direction_of_the_entries_do_not_matter(seed):
    draw = np.random.default_rng(seed)
    num_nodes, u, v = _random_entries(seed + 100)
    graph, cleaning = Graph.from_edges(num_nodes, u, v)
    order, turned = draw.permutation(len(u)), draw.random(len(u)) < 0.5
    u, v = np.where(turned, v, u)[order], np.where(turned, u, v)[order]
    other, other_cleaning = Graph.from_edges(num_nodes, u, v)
    _same(graph, other)
    assert cleaning == other_cleaning


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        torch.tensor,
        *(lambda x, t=t: np.array(x, dtype=t) for t in (np.uint8, np.int16, np.int32, np.uint64)),
    ],
)
def test_kinds_of_ids(make):
    # Keys reach 199 * 200 + 199: the sum must not be taken in the type that was given.
    u, v = [198, 3, 0, 5], [199, 2, 199, 5]
    graph, cleaning = Graph.from_edges(200, make(u), make(v))
    assert graph.src.tolist() == [0, 2, 198]
    assert graph.dst.tolist() == [199, 3, 199]
    assert cleaning == Cleaning(1, 0)


def test_entries_are_left_as_they_were():
    u, v = np.array([2, 1, 1]), np.array([0, 1, 0])
    Graph.from_edges(3, u, v)
    assert u.tolist() == [2, 1, 1]
    assert v.tolist() == [0, 1, 0]


def test_more_nodes_than_keys_of_pairs():
    with pytest.raises(InputError, match="at most 3037000499 are possible"):
        Graph.from_edges(4_000_000_000, [0], [3_999_999_999])


@pytest.mark.parametrize(
    ("u", "v"),
    [([0], [3]), ([3], [0]), ([-1], [0]), ([0, 1], [1, -5]), ([3], [3]), ([2**62], [0])],
)
def test_ids_outside_the_graph(u, v):
    with pytest.raises(InputError, match=r"edges: node ids .* do not fit a graph of 3 nodes"):
        Graph.from_edges(3, u, v)


def test_ids_that_int64_cannot_hold():
    with pytest.raises(InputError, match="do not fit"):
        Graph.from_edges(3, np.array([2**63 + 1], dtype=np.uint64), np.array([1], dtype=np.uint64))


def test_range_is_named():
    with pytest.raises(InputError, match=r"node ids -2\.\.7 .* 5 nodes \(0\.\.4\)"):
        Graph.from_edges(5, [0, 7], [-2, 1])


@pytest.mark.parametrize("values", [[0.7], [1.0], [float("nan")], ["1"], [True]])
def test_ids_that_are_no_whole_numbers(values):
    # NumPy's conversion to int64 would read 0.7 as 0.
    for u, v in ((values, [1]), ([1], values)):
        with pytest.raises(InputError, match="expected whole numbers as node ids"):
            Graph.from_edges(3, u, v)


@pytest.mark.parametrize(("u", "v"), [([0, 1], [1]), ([[0, 1]], [[1, 0]]), (0, 1)])
def test_shapes_of_entries(u, v):
    with pytest.raises(InputError, match="expected two equally long lists"):
        Graph.from_edges(3, u, v)


# ------------------------------------------------------------------------------------ index types


@pytest.mark.parametrize(
    ("num_nodes", "num_pairs", "dtype"),
    [
        (0, 0, torch.int32),
        (INT32_MAX, 0, torch.int32),
        (INT32_MAX + 1, 0, torch.int64),
        (5, 2**30 - 1, torch.int32),  # 2^31 - 2 directed entries
        (5, 2**30, torch.int64),
        (INT32_MAX, 2**30, torch.int64),
    ],
)
def test_index_dtype(num_nodes, num_pairs, dtype):
    assert index_dtype(num_nodes, num_pairs) == dtype


@pytest.mark.parametrize(
    ("num_nodes", "dtype"), [(INT32_MAX, torch.int32), (INT32_MAX + 1, torch.int64)]
)
def test_ids_next_to_the_boundary(num_nodes, dtype):
    # Only the pairs: a row pointer of this many nodes would take 8 GB.
    last = num_nodes - 1
    graph, _ = Graph.from_edges(num_nodes, [last, last, 0], [0, last - 1, 1])
    assert graph.src.dtype == graph.dst.dtype == dtype
    assert graph.src.tolist() == [0, 0, last - 1]
    assert graph.dst.tolist() == [1, last, last]
    keys = [1, last, (last - 1) * num_nodes + last]
    assert graph.keys.tolist() == keys
    assert graph.positions(np.array([keys[2], keys[2] - 1, keys[0]])).tolist() == [2, -1, 0]


@pytest.mark.parametrize("seed", range(8))
def test_long_ids_give_the_same_csr(seed):
    num_nodes, u, v = _random_entries(seed + 200)
    short, _ = Graph.from_edges(num_nodes, u, v)
    long = Graph(num_nodes, short.src.long(), short.dst.long())
    _same(short, long)
    for name in ("upper_indptr", "indptr", "indices", "pair_of_entry"):
        assert getattr(short, name).dtype == torch.int32
        assert getattr(long, name).dtype == torch.int64
    assert long.keys.tolist() == short.keys.tolist()
    assert (short.to_scipy() != long.to_scipy()).nnz == 0


# -------------------------------------------------------------------------------------- positions


@pytest.mark.parametrize("seed", range(8))
def test_positions(seed):
    num_nodes, u, v = _random_entries(seed + 300)
    graph, _ = Graph.from_edges(num_nodes, u, v)
    pairs = list(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))
    keys = np.random.default_rng(seed).permutation(np.arange(-3, num_nodes**2 + 3))
    expected = [
        pairs.index(divmod(key, num_nodes)) if divmod(key, num_nodes) in pairs else -1
        for key in keys.tolist()
    ]
    assert graph.positions(keys).tolist() == expected
    assert graph.positions(graph.keys).tolist() == list(range(graph.num_edges))
    assert graph.positions(np.zeros(0, dtype=np.int64)).tolist() == []


def test_from_keys_is_the_inverse_of_keys():
    graph, _ = Graph.from_edges(*_random_entries(7))
    _same(graph, Graph.from_keys(graph.num_nodes, graph.keys))


# ------------------------------------------------------------------------------------------ scipy


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(5))
def test_to_scipy(seed, dtype):
    num_nodes, u, v = _random_entries(seed + 400)
    graph, _ = Graph.from_edges(num_nodes, u, v)
    assert (graph.to_scipy().toarray() == _dense(num_nodes, u, v)).all()
    weight = torch.rand(graph.num_edges, dtype=dtype, requires_grad=True)
    expected = np.zeros((num_nodes, num_nodes))
    expected[graph.src.numpy(), graph.dst.numpy()] = weight.detach().numpy()
    matrix = graph.to_scipy(weight)
    assert matrix.dtype == weight.detach().numpy().dtype
    assert matrix.has_canonical_format
    assert (matrix.toarray() == expected + expected.T).all()


def test_to_scipy_shares_no_memory():
    # scipy's eliminate_zeros moves entries within the arrays of the matrix.
    graph, _ = Graph.from_edges(4, [0, 1, 2], [1, 2, 3])
    for weight in (torch.tensor([1.0, 0.0, 2.0]), None):
        matrix = graph.to_scipy(weight)
        if weight is None:
            matrix.data[2:4] = 0
        else:
            assert matrix.nnz == 6  # a pair of weight 0 is still a pair
        matrix.eliminate_zeros()
        assert matrix.nnz == 4
        matrix.indptr[:] = 0
        matrix.indices[:] = 0
        assert graph.indices.tolist() == [1, 0, 2, 1, 3, 2]
        assert graph.indptr.tolist() == [0, 1, 3, 5, 6]


# ----------------------------------------------------------------------------------------- device


def test_to_the_same_device():
    graph, _ = Graph.from_edges(3, [0], [1])
    assert graph.to("cpu") is graph
    assert graph.to(torch.device("cpu")) is graph


@pytest.mark.parametrize(
    "device",
    [
        "meta",  # holds shapes but no values: enough to see that every part moves
        pytest.param(
            "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
        ),
    ],
)
def test_to_another_device(device):
    graph, _ = Graph.from_edges(*_random_entries(12))
    moved = graph.to(device)
    assert moved.num_nodes == graph.num_nodes
    for name in ("src", "dst", "indptr", "indices", "pair_of_entry", "degree"):
        here, there = getattr(graph, name), getattr(moved, name)
        assert there.device.type == device, name
        assert (there.shape, there.dtype) == (here.shape, here.dtype), name
        assert here.device.type == "cpu", name
    if device != "meta":
        _same(graph, moved)
        assert moved.keys.tolist() == graph.keys.tolist()
        assert (moved.to_scipy() != graph.to_scipy()).nnz == 0


def test_frozen():
    graph, _ = Graph.from_edges(3, [0], [1])
    with pytest.raises(AttributeError):
        graph.num_nodes = 4


# ------------------------------------------------------------------------------------------- size


def test_memory_is_linear():
    """200,000 nodes: an N x N matrix of bytes alone would take 40 GB."""
    # In a process of its own: the highest resident set never falls again after other tests.
    code = """
import numpy as np
import torch
from user_dgl.graph import Graph
from user_dgl.runtime.machine import peak_memory_mb as peak

u, v = np.random.default_rng(0).integers(0, 200_000, size=(2, 2_000_000))
before = peak()
graph, cleaning = Graph.from_edges(200_000, u, v)
assert graph.num_edges + cleaning.self_loops + cleaning.repeated == 2_000_000
assert 1_999_000 < graph.num_edges < 2_000_000
assert len(graph.indices) == len(graph.pair_of_entry) == 2 * graph.num_edges
assert int(graph.degree.sum()) == int(graph.indptr[-1]) == 2 * graph.num_edges
assert (graph.positions(graph.keys[::-1].copy()) == np.arange(graph.num_edges)[::-1]).all()
assert graph.upper_indptr[-1] == graph.num_edges
assert graph.to_scipy(torch.ones(graph.num_edges)).sum() == 2 * graph.num_edges
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120, capture_output=True
    )
    growth = float(done.stdout)
    assert 16 < growth < 500, growth  # MB; the pairs alone are 16, about 160 were measured
