r"""Differentiable operations on a weighted undirected graph, with a choice of two engines.

With :math:`w` (E,) on the pairs of a `Graph` and :math:`A_{uv} = A_{vu} = w_{\{u,v\}}`:

- `neighbor_sum`: :math:`A x + \mathrm{diag}(c) x`, (N, d);
- `weighted_degree`: :math:`A 1`, (N,);
- `edge_dot`: :math:`\langle x_u, x_v \rangle` for each pair, (E,), and `pair_dot` for any pairs;
- `internal_weight`: :math:`\mathrm{diag}(Y^T A Y)`, (K,);
- `between_weight`: :math:`Y^T A Y`, (K, K).

Engine ``dgl`` uses DGL's message passing and its autograd (`user_dgl.graph.dgl_engine`) and is the
reference. Engine ``csr`` computes the same values and gradients by products in CSR form
(`user_dgl.graph.csr_engine`), many times faster on a CPU.
"""

import torch

from user_dgl.errors import InputError
from user_dgl.graph.csr_engine import (
    BetweenWeight,
    EdgeDot,
    InternalWeight,
    NeighborSum,
    PairDot,
    WeightedDegree,
    csr_works,
)
from user_dgl.graph.dgl_engine import dgl_graphs, dgl_ops
from user_dgl.graph.graph import Graph

ENGINES = ("dgl", "csr")


def resolve_engine(engine: str, device: str | torch.device = "cpu") -> str:
    """Choose an engine for ``auto``, or check that a named engine can run on the device.

    Parameters
    ----------
    engine : str
        ``auto``, ``dgl`` or ``csr``. ``auto`` is ``csr`` if it can run on the device, else ``dgl``.
    device : str or torch.device

    Returns
    -------
    str
        ``dgl`` or ``csr``.

    Raises
    ------
    InputError
        The engine is unknown or cannot run on the device, or DGL is needed and not installed.
    """
    device = torch.device(device)
    serves_csr = device.type != "cpu" or csr_works()
    if engine == "auto":
        engine = "csr" if serves_csr else "dgl"
    if engine not in ENGINES:
        raise InputError(f"engine: expected one of auto, {', '.join(ENGINES)}, got {engine!r}")
    if engine == "dgl":
        dgl_ops()  # fails now, and not in the middle of a run, if DGL is missing
    elif not serves_csr:
        raise InputError(
            "engine csr: this build of torch has no sparse CSR products on the CPU; use engine=dgl"
        )
    return engine


def neighbor_sum(
    graph: Graph,
    weight: torch.Tensor,
    x: torch.Tensor,
    engine: str,
    diagonal: torch.Tensor | None = None,
    num_rows: int | None = None,
) -> torch.Tensor:
    r"""Weighted sum over neighbours, :math:`y_u = c_u x_u + \sum_{v \sim u} w_{\{u,v\}} x_v`.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    x : Tensor (N, d), of the dtype of ``weight``
    engine : str
        ``dgl`` or ``csr``.
    diagonal : Tensor (N,), optional
        Weights c of self-loops. Default: 0.
    num_rows : int, optional
        Compute the sums only for this many nodes, from the first. Default: all.

    Returns
    -------
    Tensor (N, d) or (num_rows, d)

    >>> graph, _ = Graph.from_edges(3, [0, 1], [1, 2])
    >>> neighbor_sum(graph, torch.tensor([1.0, 2.0]), torch.eye(3), "csr").tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]]
    """
    if engine == "csr":
        return NeighborSum.apply(weight, x, diagonal, graph, num_rows)
    both = torch.cat([weight, weight]).unsqueeze(1)
    total = dgl_ops().u_mul_e_sum(dgl_graphs(graph)[0], x, both)
    total = total if diagonal is None else total + diagonal[:, None] * x
    return total[:num_rows]


def weighted_degree(graph: Graph, weight: torch.Tensor, engine: str) -> torch.Tensor:
    r"""Sum of the weights at each node, :math:`d_u = \sum_{v \sim u} w_{\{u,v\}}`, (N,)."""
    if engine == "csr":
        return WeightedDegree.apply(weight, graph)
    both = torch.cat([weight, weight]).unsqueeze(1)
    return dgl_ops().copy_e_sum(dgl_graphs(graph)[0], both).squeeze(1)


def edge_dot(graph: Graph, x: torch.Tensor, engine: str) -> torch.Tensor:
    r"""Dot product of the ends of each pair, :math:`s_e = \langle x_u, x_v \rangle`, (E,)."""
    if engine == "csr":
        return EdgeDot.apply(x, graph)
    return dgl_ops().u_dot_v(dgl_graphs(graph)[1], x, x).squeeze(1)


def pair_dot(
    x: torch.Tensor, first: torch.Tensor, second: torch.Tensor, engine: str
) -> torch.Tensor:
    r"""Dot product :math:`\langle x_u, x_v \rangle` of any pairs; pairs may repeat.

    Parameters
    ----------
    x : Tensor (N, d)
    first, second : int64 Tensor (P,)
        u and v of each pair, in any order, 0 to N - 1. The range is not checked.
    engine : str
        ``dgl`` or ``csr``.

    Returns
    -------
    Tensor (P,)

    >>> x = torch.tensor([[1.0, 0.0], [2.0, 1.0]])
    >>> pair_dot(x, torch.tensor([1, 0, 1]), torch.tensor([1, 1, 1]), "csr").tolist()
    [5.0, 2.0, 5.0]
    """
    # The sampled product is not used on a GPU, because cuSPARSE may not accept repeated pairs, nor
    # for more than N^2 pairs, because torch cuts a matrix off that has more entries than places.
    if engine == "csr" and not x.is_cuda and len(first) <= len(x) ** 2:
        return PairDot.apply(x.contiguous(), first, second)
    return (x[first] * x[second]).sum(1)


def internal_weight(
    graph: Graph, weight: torch.Tensor, assignment: torch.Tensor, engine: str
) -> torch.Tensor:
    r"""Weight inside each cluster, both directions: :math:`e_k = (Y^T A Y)_{kk}`, (K,).

    ``assignment`` is Y (N, K), soft or hard.
    """
    if engine == "csr":
        return InternalWeight.apply(weight, assignment, graph)
    return (assignment * neighbor_sum(graph, weight, assignment, engine)).sum(0)


def between_weight(
    graph: Graph, weight: torch.Tensor, assignment: torch.Tensor, engine: str
) -> torch.Tensor:
    r"""Weight between clusters, both directions: :math:`Y^T A Y`, (K, K).

    The diagonal is that of `internal_weight`, and the sums of the rows are the volumes.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    assignment : Tensor (N, K) or (N, R, K)
        Y, soft or hard, of one or of R assignments.
    engine : str
        ``dgl`` or ``csr``.

    Returns
    -------
    Tensor (K, K) or (R, K, K)

    >>> graph, _ = Graph.from_edges(3, [0, 1], [1, 2])
    >>> clusters = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> between_weight(graph, torch.tensor([1.0, 2.0]), clusters, "csr").tolist()
    [[2.0, 2.0], [2.0, 0.0]]
    """
    if engine == "csr":
        return BetweenWeight.apply(weight, assignment, graph)
    neighbors = neighbor_sum(graph, weight, assignment.flatten(1), engine).view_as(assignment)
    return torch.einsum("n...k,n...l->...kl", assignment, neighbors)
