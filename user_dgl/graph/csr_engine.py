"""Engine ``csr``: products in CSR form for `user_dgl.graph.ops`, with gradients written by hand.

The functions of `user_dgl.graph.ops` define the values. The classes here are the
`torch.autograd.Function` of each of them. The adjacency is symmetric, so the gradient in x needs no
transposed matrix. The gradient in the weights is a product sampled on the upper triangle of the
adjacency, and the CSR order of that triangle is the order of the graph's pairs.
"""

import warnings
import weakref
from functools import cache
from typing import Any

import torch

from user_dgl.graph.graph import Graph

# On a CPU, (N, d) tensors are processed in blocks of this many rows where processing all rows at
# once would need one more temporary (N, d) tensor.
_BLOCK = 2**14


def _blocks(x: torch.Tensor) -> list[slice]:
    """Split the rows of x into slices.

    A GPU gets one slice for all rows, because its calls cost more than its memory.
    """
    size = _BLOCK if x.device.type == "cpu" else max(len(x), 1)
    return [slice(start, start + size) for start in range(0, len(x), size)]


def csr_tensor(
    indptr: torch.Tensor, indices: torch.Tensor, values: torch.Tensor, shape: tuple[int, int]
) -> torch.Tensor:
    """Build a torch CSR tensor from arrays that are known to be valid.

    The function skips torch's checks and hides its warning that sparse CSR is in beta state.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)


def csr_product(matrix: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Compute M x for a torch CSR tensor M (N, F) and x (F, d), without autograd."""
    parts = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    return _product(*parts, matrix.shape[1], x)


def _product(
    indptr: torch.Tensor,
    indices: torch.Tensor,
    values: torch.Tensor,
    num_columns: int,
    x: torch.Tensor,
) -> torch.Tensor:
    """Compute M x (N, d) for a CSR matrix M of N rows and F columns and x (F, d), without autograd.

    A row of the product is a weighted sum of rows of x, as in a bag of embeddings. On a CPU torch
    computes bags of float32 with code made for the width d, several times as fast as its sparse
    product (`tools/bench_scaling.py` compares both). Each row is summed by one thread, in the order
    of its entries, so that the result does not depend on the number of threads.
    """
    rows, x = len(indptr) - 1, x.detach()
    if len(x) != num_columns:
        raise RuntimeError(f"{num_columns} columns cannot be multiplied by {len(x)} rows")
    if x.device.type == "cpu" and x.dtype == values.dtype == torch.float32 and len(indices):
        return torch.embedding_bag(
            x.contiguous(),
            indices,
            indptr,
            mode=0,  # the sum
            per_sample_weights=values,
            include_last_offset=True,
        )[0]
    # cuSPARSE may read the output tensor even where it is multiplied by beta = 0, so on a GPU the
    # tensor must not hold arbitrary values such as NaN.
    out = x.new_zeros((rows, x.shape[1])) if x.is_cuda else x.new_empty((rows, x.shape[1]))
    return torch.addmm(
        out, csr_tensor(indptr, indices, values, (rows, num_columns)), x, beta=0, out=out
    )


@cache
def csr_works() -> bool:
    """Test whether torch can multiply and sample in CSR on the CPU.

    Builds of torch without MKL may not be able to.
    """
    try:
        graph, _ = Graph.from_edges(2, [0], [1])
        # Products of float32 and of one column are made in other ways.
        weight = torch.ones(1, dtype=torch.float64, requires_grad=True)
        x = torch.ones(2, 2, dtype=torch.float64)
        NeighborSum.apply(weight, x, None, graph, None).sum().backward()
        return weight.grad is not None and weight.grad.item() == 4.0
    except (RuntimeError, NotImplementedError):
        return False


# The weight, its version when it was copied, and the copy (2E,).
_SpreadWeights = list[tuple[weakref.ref[torch.Tensor], int, torch.Tensor]]

# A cache: for each graph, edge weights copied to both directions of every pair, because a training
# step uses the same weight in several products. Two weights are kept for each graph, because a step
# alternates between A' and its normalised form. An entry is dropped when its weight is freed.
_SPREAD: weakref.WeakKeyDictionary[Graph, _SpreadWeights] = weakref.WeakKeyDictionary()
_MOST_SPREAD = 2


def _spread(graph: Graph, weight: torch.Tensor) -> torch.Tensor:
    """Weight (2E,) of each entry of the symmetric CSR, cached as long as ``weight`` exists."""
    if weight.is_leaf and weight.requires_grad:
        # Parameters are not cached: other code may change them without raising their version.
        return weight.detach().index_select(0, graph.pair_of_entry)
    kept = _SPREAD.setdefault(graph, [])
    for reference, version, values in kept:
        if reference() is weight and version == weight._version:
            return values
    values = weight.detach().index_select(0, graph.pair_of_entry)

    def forget(reference: "weakref.ref[torch.Tensor]") -> None:
        kept[:] = [entry for entry in kept if entry[0] is not reference]

    kept.append((weakref.ref(weight, forget), weight._version, values))
    del kept[:-_MOST_SPREAD]
    return values


def _symmetric_product(
    graph: Graph,
    weight: torch.Tensor,
    x: torch.Tensor,
    diagonal: torch.Tensor | None = None,
    once: bool = False,
    num_rows: int | None = None,
) -> torch.Tensor:
    """Compute A x + c x without autograd; c is ``diagonal``.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    x : Tensor (N, d)
    diagonal : Tensor (N,), optional
        Default: 0.
    once : bool
        Do not cache the weight, because no other product with it will follow.
    num_rows : int, optional
        Compute only this many rows, from the first. Default: all.
    """
    n, rows = graph.num_nodes, graph.num_nodes if num_rows is None else num_rows
    own = x[:rows]
    if not graph.num_edges:
        return torch.zeros_like(own) if diagonal is None else own * diagonal[:rows, None]
    values = weight.index_select(0, graph.pair_of_entry) if once else _spread(graph, weight)
    indptr, indices = graph.indptr, graph.indices
    if rows < n:
        indptr = indptr[: rows + 1]
        indices, values = indices[: indptr[-1]], values[: indptr[-1]]
    out = _product(indptr, indices, values, n, x)
    return out if diagonal is None else out.addcmul_(own, diagonal[:rows, None])


def _row_dot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Dot product of each row (N,) of x and y (N, d), in blocks to save a temporary (N, d)."""
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


def _sampled_dot(graph: Graph, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute <x_u, y_v> (E,) for each pair u < v of the graph, without autograd."""
    if not graph.num_edges:
        return x.new_zeros(0)
    if x.shape[1] == 1:  # for one column, a gather is cheaper than a sampled product
        x, y = x.squeeze(1), y.squeeze(1)
        return x.index_select(0, graph.src) * y.index_select(0, graph.dst)
    zeros = x.new_zeros(graph.num_edges)
    pattern = csr_tensor(graph.upper_indptr, graph.dst, zeros, (graph.num_nodes, graph.num_nodes))
    # The result is written into the pattern; a new tensor for it would copy the indices.
    return torch.sparse.sampled_addmm(pattern, x, y.t(), beta=0.0, out=pattern).values()


class NeighborSum(torch.autograd.Function):
    """`user_dgl.graph.ops.neighbor_sum`, differentiable in weight, x and diagonal."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: torch.Tensor,
        x: torch.Tensor,
        diagonal: torch.Tensor | None,
        graph: Graph,
        num_rows: int | None,
    ) -> torch.Tensor:
        ctx.graph = graph
        ctx.save_for_backward(weight, x, diagonal)
        return _symmetric_product(graph, weight, x, diagonal, num_rows=num_rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
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
    """`user_dgl.graph.ops.weighted_degree`, differentiable in weight."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, graph: Graph) -> torch.Tensor:
        ctx.graph = graph
        return _symmetric_product(graph, weight, weight.new_ones(graph.num_nodes, 1)).squeeze(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        graph = ctx.graph
        return grad.index_select(0, graph.src).add_(grad.index_select(0, graph.dst)), None


class EdgeDot(torch.autograd.Function):
    """`user_dgl.graph.ops.edge_dot`, differentiable in x."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, graph: Graph) -> torch.Tensor:
        ctx.graph = graph
        ctx.save_for_backward(x)
        return _sampled_dot(graph, x, x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (x,) = ctx.saved_tensors
        return _symmetric_product(ctx.graph, grad.contiguous(), x, once=True), None


class PairDot(torch.autograd.Function):
    """`user_dgl.graph.ops.pair_dot`, differentiable in x."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, first: torch.Tensor, second: torch.Tensor
    ) -> torch.Tensor:
        n, order = len(x), torch.argsort(first)
        first, second = first[order], second[order]
        indptr = _row_starts(first, n)
        pattern = csr_tensor(indptr, second, x.new_zeros(len(order)), (n, n))
        dots = torch.sparse.sampled_addmm(pattern, x, x.t(), beta=0.0, out=pattern).values()
        ctx.save_for_backward(x, indptr, first, second, order)
        return torch.empty_like(dots).index_copy_(0, order, dots)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # One sparse product for each direction of the pairs. Adding to rows pair by pair takes
        # twice as long.
        x, indptr, first, second, order = ctx.saved_tensors
        values = grad[order]
        other = torch.argsort(second)
        transposed = _row_starts(second[other], len(x)), first[other], values[other]
        out = _product(indptr, second, values, len(x), x)
        return out.add_(_product(*transposed, len(x), x)), None, None


def _row_starts(sorted_rows: torch.Tensor, num_rows: int) -> torch.Tensor:
    """Row pointer (num_rows + 1,) of CSR entries, given the sorted row number of each entry."""
    every = torch.arange(num_rows + 1, device=sorted_rows.device)
    return torch.searchsorted(sorted_rows, every)


class InternalWeight(torch.autograd.Function):
    """`user_dgl.graph.ops.internal_weight`, differentiable in weight and assignment."""

    @staticmethod
    def forward(
        ctx: Any, weight: torch.Tensor, assignment: torch.Tensor, graph: Graph
    ) -> torch.Tensor:
        neighbors = _symmetric_product(graph, weight, assignment)
        ctx.graph = graph
        ctx.save_for_backward(assignment, neighbors)
        return column_dot(assignment, neighbors)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # e_k is quadratic in Y, so its gradient is 2 A Y, and the forward pass has computed A Y.
        assignment, neighbors = ctx.saved_tensors
        grad_weight = grad_assignment = None
        if ctx.needs_input_grad[0]:
            grad_weight = _sampled_dot(ctx.graph, assignment * (2 * grad), assignment)
        if ctx.needs_input_grad[1]:
            grad_assignment = neighbors * (2 * grad)
        return grad_weight, grad_assignment, None


class BetweenWeight(torch.autograd.Function):
    """`user_dgl.graph.ops.between_weight`, differentiable in weight and assignment."""

    @staticmethod
    def forward(
        ctx: Any, weight: torch.Tensor, assignment: torch.Tensor, graph: Graph
    ) -> torch.Tensor:
        columns = assignment.flatten(1)
        neighbors = _symmetric_product(graph, weight, columns).view_as(assignment)
        ctx.graph = graph
        ctx.save_for_backward(assignment, neighbors)
        return torch.einsum("n...k,n...l->...kl", assignment, neighbors)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # Y^T A Y is symmetric, so only G + G^T counts. The forward pass has computed A Y.
        assignment, neighbors = ctx.saved_tensors
        both = grad + grad.transpose(-1, -2)
        grad_weight = grad_assignment = None
        if ctx.needs_input_grad[0]:
            mixed = torch.einsum("n...k,...kl->n...l", assignment, both)
            columns = assignment.flatten(1).contiguous()
            grad_weight = _sampled_dot(ctx.graph, mixed.flatten(1).contiguous(), columns)
        if ctx.needs_input_grad[1]:
            grad_assignment = torch.einsum("n...k,...kl->n...l", neighbors, both)
        return grad_weight, grad_assignment, None
