"""Engine ``csr``: the kernels of `user_dgl.graph.ops` and their gradients by sparse CSR products.

The matrix is symmetric, so the gradient in x needs no transpose, and the gradient in w is a product
sampled on the upper triangle, whose CSR order is the order of the pairs.
"""

import warnings
import weakref
from functools import cache

import torch

from user_dgl.graph import Graph

# Rows of (N, d) tensors that a CPU handles at a time where the whole would be one block more.
_BLOCK = 2**14


def _blocks(x: torch.Tensor) -> list[slice]:
    """Slices of the rows of x; one for all on a GPU, whose calls cost more than its memory."""
    size = _BLOCK if x.device.type == "cpu" else max(len(x), 1)
    return [slice(start, start + size) for start in range(0, len(x), size)]


def csr_tensor(indptr, indices, values, shape) -> torch.Tensor:
    """torch CSR tensor of arrays that are known to be valid, without the notice of beta state."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)


def csr_product(matrix: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """M x of a torch CSR tensor (N, F) and x (F, d), without autograd.

    The same as ``matrix @ x``, which first fills a block with zeros and copies it.
    """
    shape = matrix.shape[0], x.shape[1]
    # cuSPARSE is not known to leave alone what it multiplies with 0.
    out = x.new_zeros(shape) if x.is_cuda else x.new_empty(shape)
    return torch.addmm(out, matrix, x, beta=0, out=out)


@cache
def csr_works() -> bool:
    """Whether torch can multiply and sample in CSR on the CPU (builds without MKL may not)."""
    try:
        graph, _ = Graph.from_edges(2, [0], [1])
        weight = torch.ones(1, requires_grad=True)
        NeighborSum.apply(weight, torch.ones(2, 1), None, graph, None).sum().backward()
        return weight.grad.item() == 2.0
    except (RuntimeError, NotImplementedError):
        return False


# Weights of each graph spread over both directions, for the several products of a training step:
# two, as a step multiplies with A' and with its normalised form in turns. They go with the weight.
_SPREAD: "weakref.WeakKeyDictionary[Graph, list]" = weakref.WeakKeyDictionary()
_MOST_SPREAD = 2


def _spread(graph, weight):
    """Weight (2E,) of each entry of the symmetric CSR, kept while the weight lives."""
    if weight.is_leaf and weight.requires_grad:
        # A parameter: whoever holds it may change it unseen.
        return weight.detach().index_select(0, graph.pair_of_entry)
    kept = _SPREAD.setdefault(graph, [])
    for reference, version, values in kept:
        if reference() is weight and version == weight._version:
            return values
    values = weight.detach().index_select(0, graph.pair_of_entry)

    def forget(reference):
        kept[:] = [entry for entry in kept if entry[0] is not reference]

    kept.append((weakref.ref(weight, forget), weight._version, values))
    del kept[:-_MOST_SPREAD]
    return values


def _symmetric_product(graph, weight, x, diagonal=None, once=False, num_rows=None):
    """Rows of A x + c x without autograd.

    ``once``: no other product with this weight is to be expected; ``num_rows``: only the first.
    """
    n, rows = graph.num_nodes, graph.num_nodes if num_rows is None else num_rows
    own = x[:rows]
    out = torch.zeros_like(own) if diagonal is None else own * diagonal[:rows, None]
    if not graph.num_edges:
        return out
    values = weight.index_select(0, graph.pair_of_entry) if once else _spread(graph, weight)
    indptr, indices = graph.indptr, graph.indices
    if rows < n:
        indptr = indptr[: rows + 1]
        indices, values = indices[: indptr[-1]], values[: indptr[-1]]
    return torch.addmm(out, csr_tensor(indptr, indices, values, (rows, n)), x, out=out)


def _row_dot(x, y):
    """Dot product of each row, (N,), in blocks: the product as a whole would be one (N, d) more."""
    dots = x.new_empty(len(x))
    for block in _blocks(x):
        torch.sum(x[block] * y[block], 1, out=dots[block])
    return dots


def column_dot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Dot product of each column (d,) of x and y (N, d), in blocks, without autograd."""
    dots = x.new_zeros(x.shape[1])
    for block in _blocks(x):
        dots += (x[block] * y[block]).sum(0)
    return dots


def _sampled_dot(graph, x, y):
    """<x_u, y_v> for each pair u < v, without autograd."""
    if not graph.num_edges:
        return x.new_zeros(0)
    if x.shape[1] == 1:  # a gather is cheaper than a sampled product of width one
        x, y = x.squeeze(1), y.squeeze(1)
        return x.index_select(0, graph.src) * y.index_select(0, graph.dst)
    zeros = x.new_zeros(graph.num_edges)
    pattern = csr_tensor(graph.upper_indptr, graph.dst, zeros, (graph.num_nodes, graph.num_nodes))
    # Into the pattern itself: a result of its own would copy the indices.
    return torch.sparse.sampled_addmm(pattern, x, y.t(), beta=0.0, out=pattern).values()


class NeighborSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, x, diagonal, graph, num_rows):
        ctx.graph = graph
        ctx.save_for_backward(weight, x, diagonal)
        return _symmetric_product(graph, weight, x, diagonal, num_rows=num_rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        weight, x, diagonal = ctx.saved_tensors
        grad = grad.contiguous()
        if len(grad) < len(x):
            grad = torch.cat([grad, grad.new_zeros(len(x) - len(grad), grad.shape[1])])
        grad_weight = grad_x = grad_diagonal = None
        if ctx.needs_input_grad[0]:
            # The weight of a pair acts in both directions: <g_u, x_v> + <x_u, g_v>.
            grad_weight = _sampled_dot(ctx.graph, grad, x).add_(_sampled_dot(ctx.graph, x, grad))
        if ctx.needs_input_grad[1]:
            grad_x = _symmetric_product(ctx.graph, weight, grad, diagonal)
        if ctx.needs_input_grad[2]:
            grad_diagonal = _row_dot(grad, x)
        return grad_weight, grad_x, grad_diagonal, None, None


class WeightedDegree(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, graph):
        ctx.graph = graph
        return _symmetric_product(graph, weight, weight.new_ones(graph.num_nodes, 1)).squeeze(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        graph = ctx.graph
        return grad.index_select(0, graph.src).add_(grad.index_select(0, graph.dst)), None


class EdgeDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, graph):
        ctx.graph = graph
        ctx.save_for_backward(x)
        return _sampled_dot(graph, x, x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return _symmetric_product(ctx.graph, grad.contiguous(), x, once=True), None


class PairDot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, first, second):
        n, order = len(x), torch.argsort(first)
        first, second = first[order], second[order]
        indptr = _row_starts(first, n)
        pattern = csr_tensor(indptr, second, x.new_zeros(len(order)), (n, n))
        dots = torch.sparse.sampled_addmm(pattern, x, x.t(), beta=0.0, out=pattern).values()
        ctx.save_for_backward(x, indptr, first, second, order)
        return torch.empty_like(dots).index_copy_(0, order, dots)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        # As a product in either direction: adding to rows one pair at a time takes twice as long.
        x, indptr, first, second, order = ctx.saved_tensors
        shape, values = (len(x), len(x)), grad[order]
        other = torch.argsort(second)
        transposed = _row_starts(second[other], len(x)), first[other], values[other]
        out = csr_product(csr_tensor(indptr, second, values, shape), x)
        out = torch.addmm(out, csr_tensor(*transposed, shape), x, out=out)
        return out, None, None


def _row_starts(sorted_rows, num_rows):
    """Row pointer (num_rows + 1,) of entries in the order of their rows."""
    every = torch.arange(num_rows + 1, device=sorted_rows.device)
    return torch.searchsorted(sorted_rows, every)


class InternalWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, assignment, graph):
        neighbors = _symmetric_product(graph, weight, assignment)
        ctx.graph = graph
        ctx.save_for_backward(assignment, neighbors)
        return column_dot(assignment, neighbors)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        # e_k is quadratic in Y: its gradient 2 A Y is the product that the forward pass has.
        assignment, neighbors = ctx.saved_tensors
        grad_weight = grad_assignment = None
        if ctx.needs_input_grad[0]:
            grad_weight = _sampled_dot(ctx.graph, assignment * (2 * grad), assignment)
        if ctx.needs_input_grad[1]:
            grad_assignment = neighbors * (2 * grad)
        return grad_weight, grad_assignment, None
