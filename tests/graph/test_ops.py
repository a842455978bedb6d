"""Kernels against dense formulas, numerical gradients and each other."""

import numpy as np
import pytest
import torch
from graphs import GRAPHS, dense, random_graph, with_int64
from kernels import KERNELS

from user_dgl.errors import InputError
from user_dgl.graph import Graph, csr_engine
from user_dgl.graph.ops import (
    ENGINES,
    neighbor_sum,
    pair_dot,
    resolve_engine,
)

ORACLES = {
    "neighbor_sum": lambda a, x, graph: a @ x,
    "weighted_degree": lambda a, x, graph: a.sum(1),
    "edge_dot": lambda a, x, graph: (x @ x.t())[graph.src.long(), graph.dst.long()],
    "edge_dot of width 1": lambda a, x, graph: (x[:, :1] @ x[:, :1].t())[
        graph.src.long(), graph.dst.long()
    ],
    "internal_weight": lambda a, x, graph: (x.t() @ a @ x).diagonal(),
    "between_weight": lambda a, x, graph: x.t() @ a @ x,
}


def _inputs(graph, dtype=torch.float64, width=3):
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(graph.num_edges, generator=generator, dtype=dtype, requires_grad=True)
    x = torch.randn(graph.num_nodes, width, generator=generator, dtype=dtype, requires_grad=True)
    return weight, x


def _gradients(value, *inputs):
    generator = torch.Generator().manual_seed(1)
    cotangent = torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return torch.autograd.grad(value, inputs, cotangent, allow_unused=True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", GRAPHS)
def test_kernel_equals_the_dense_formula_with_gradients(name, kernel, engine):
    graph = GRAPHS[name]
    weight, x = _inputs(graph)
    value = KERNELS[kernel](graph, weight, x, engine)
    expected = ORACLES[kernel](dense(graph, weight), x, graph)
    torch.testing.assert_close(value, expected, rtol=0, atol=1e-12)
    found, wanted = _gradients(value, weight, x), _gradients(expected, weight, x)
    for got, want, of in zip(found, wanted, (weight, x), strict=True):
        none = torch.zeros_like(of)  # the value does not depend on this input
        torch.testing.assert_close(
            none if got is None else got, none if want is None else want, rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradcheck(kernel, engine):
    graph = random_graph(9, 12)
    inputs = _inputs(graph)
    assert torch.autograd.gradcheck(lambda w, x: KERNELS[kernel](graph, w, x, engine), inputs)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_engines_agree(kernel, dtype, tolerance):
    graph = random_graph(300, 2000)
    weight, x = _inputs(graph, dtype, width=17)
    results = []
    for engine in ENGINES:
        value = KERNELS[kernel](graph, weight, x, engine)
        results.append((value, *_gradients(value, weight, x)))
    for csr, dgl in zip(*results, strict=True):
        assert (csr is None) == (dgl is None)
        if csr is not None:
            torch.testing.assert_close(csr, dgl, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("num_pairs", [0, 1, 30, 40])
def test_dots_of_pairs_in_any_order_that_repeat(num_pairs, engine):
    _, x = _inputs(random_graph(6, 8))
    first, second = torch.randint(6, (2, num_pairs), generator=torch.Generator().manual_seed(2))
    value, expected = pair_dot(x, first, second, engine), (x @ x.t())[first, second]
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(_gradients(value, x), _gradients(expected, x))
    assert torch.autograd.gradcheck(lambda x: pair_dot(x, first, second, engine), x)


@pytest.mark.parametrize("engine", ENGINES)
def test_dots_of_pairs_of_float32_slices_and_of_one_node(engine):
    wide = torch.randn(6, 8)
    first, second = torch.tensor([5, 0, 5]), torch.tensor([1, 0, 1])
    for x in (wide[:, 2:5], wide.t()[:6]):
        torch.testing.assert_close(pair_dot(x, first, second, engine), (x @ x.t())[first, second])
    one, none = torch.full((1, 2), 3.0), torch.zeros(1, dtype=torch.int64)
    assert pair_dot(one, none, none, engine).tolist() == [18.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_int64_ids_give_the_same(engine):
    graph = random_graph(50, 200)
    assert graph.src.dtype == torch.int32
    wide = with_int64(graph)
    assert wide.indices.dtype == torch.int64
    weight, x = _inputs(graph)
    for kernel in KERNELS.values():
        value, expected = kernel(wide, weight, x, engine), kernel(graph, weight, x, engine)
        assert torch.equal(value, expected)
        pairs = zip(_gradients(value, weight, x), _gradients(expected, weight, x), strict=True)
        for got, want in pairs:
            assert (got is None and want is None) or torch.equal(got, want)


@pytest.mark.parametrize("engine", ENGINES)
def test_float32_and_constant_inputs(engine):
    graph = random_graph()
    weight, x = _inputs(graph, torch.float32)
    value = neighbor_sum(graph, weight.detach(), x, engine)
    assert value.dtype == torch.float32
    (grad,) = torch.autograd.grad(value.sum(), x)
    torch.testing.assert_close(grad, dense(graph, weight.detach()) @ torch.ones_like(x))


def test_inputs_are_left_alone():
    graph = random_graph()
    weight, x = _inputs(graph)
    before = weight.detach().clone(), x.detach().clone()
    for kernel in KERNELS.values():
        kernel(graph, weight, x, "csr").sum().backward()
    assert torch.equal(weight, before[0])
    assert torch.equal(x, before[1])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("learned", [False, True])
def test_weights_that_change_in_place_are_read_again(engine, learned):
    graph = random_graph()
    weight, x = _inputs(graph)
    weight = weight.detach().requires_grad_(learned)
    for factor in (1, 3):
        with torch.no_grad():
            weight *= factor
        expected = dense(graph, weight) @ x
        for _ in range(2):
            torch.testing.assert_close(neighbor_sum(graph, weight, x, engine), expected)


def test_resolve_engine():
    assert resolve_engine("auto") in ENGINES
    assert resolve_engine("dgl") == "dgl"
    with pytest.raises(InputError, match="expected one of auto, dgl, csr"):
        resolve_engine("cusparse")


def test_auto_falls_back_to_dgl_without_sparse_products(monkeypatch):
    monkeypatch.setattr("user_dgl.graph.ops.csr_works", lambda: False)
    assert resolve_engine("auto") == "dgl"
    with pytest.raises(InputError, match="use engine=dgl"):
        resolve_engine("csr")


@pytest.mark.parametrize("missing", ["addmm", "sparse.sampled_addmm"])
def test_a_build_without_sparse_products_is_noticed(monkeypatch, missing):
    def absent(*args, **kwargs):
        raise RuntimeError("built without MKL")

    assert csr_engine.csr_works.__wrapped__()
    monkeypatch.setattr(f"torch.{missing}", absent)
    assert not csr_engine.csr_works.__wrapped__()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_product_with_a_sparse_matrix(dtype):
    """The products of float32 are made in another way than those of float64."""
    rng = np.random.default_rng(0)
    dense = torch.from_numpy(rng.standard_normal((5, 4)) * (rng.random((5, 4)) < 0.5)).to(dtype)
    dense[3] = 0  # a row without entries
    x = torch.from_numpy(rng.standard_normal((6, 4))).to(dtype).t()  # not contiguous
    matrix = dense.to_sparse_csr()
    torch.testing.assert_close(csr_engine.csr_product(matrix, x), dense @ x)
    empty = torch.zeros(5, 4, dtype=dtype).to_sparse_csr()
    assert not csr_engine.csr_product(empty, x).any()
    for number in (3, 5):
        with pytest.raises(RuntimeError, match=f"4 columns cannot be multiplied by {number} rows"):
            csr_engine.csr_product(matrix, torch.ones(number, 2, dtype=dtype))


def test_one_node():
    graph = Graph.from_edges(1, [], [])[0]
    for engine in ENGINES:
        assert neighbor_sum(graph, torch.zeros(0), torch.ones(1, 2), engine).tolist() == [[0, 0]]
