"""Products with S and BatchNorm for matrices whose rows are distributed over the ranks."""

from typing import Any

import torch
from torch import nn

from user_dgl.distributed.ranks import Exchange, Ranks
from user_dgl.graph import Graph
from user_dgl.graph.csr_engine import column_dot
from user_dgl.graph.ops import edge_dot, neighbor_sum, weighted_degree
from user_dgl.graph.propagation import Propagator


class ShardPropagation(Propagator):
    """S where each rank has its own rows.

    Parameters
    ----------
    graph : Graph
        Pairs of the part.
    weight : Tensor (p,)
    nodes : Exchange
        Exchanges the rows of the halo.
    num_own : int
        Number of nodes that the rank owns.
    num_nodes : int
        Number of nodes of the whole graph.
    engine : str
    """

    def __init__(
        self,
        graph: Graph,
        weight: torch.Tensor,
        nodes: Exchange,
        num_own: int,
        num_nodes: int,
        engine: str,
    ):
        self._graph, self._nodes, self._num_own = graph, nodes, num_own
        self._num_nodes, self._engine = num_nodes, engine
        # The part has all pairs of its own nodes. Only the owner knows the degree of a halo node.
        degree = 1 + weighted_degree(graph, weight, engine)[:num_own]
        scale = nodes.extend(degree.rsqrt()[:, None], "the degrees of the halo")
        self._off_diagonal = weight * edge_dot(graph, scale, engine)
        self._diagonal = scale[:, 0].square()
        self._products = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the own rows (n, d) of S x from the own rows (n, d) of x."""
        self._products += 1
        x = self._nodes.extend(x, f"the halo of product {self._products}")
        weights = self._off_diagonal, self._diagonal
        return neighbor_sum(
            self._graph, weights[0], x, self._engine, weights[1], num_rows=self._num_own
        )

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """Apply BatchNorm with the statistics of all ranks' rows."""
        what = f"the statistics of layer {layer + 1}"
        return _BatchNorm.apply(
            x, norm.weight, norm.bias, norm.eps, self._num_nodes, self._nodes.ranks, what
        )

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Return the own rows unchanged, because a product fetches the rows of the halo itself."""
        return hidden


class _BatchNorm(torch.autograd.Function):
    r"""BatchNorm of a matrix whose rows are distributed over the ranks.

    .. math::
        \hat x = (x - \mu) / \sigma, \quad y = \gamma \hat x + b, \qquad
        \frac{\partial L}{\partial x} = \frac{\gamma}{\sigma} \Big(g - \frac1N \sum g
        - \frac{\hat x}{N} \sum g \hat x\Big)

    with sums over the rows of all ranks.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        gamma: torch.Tensor,
        bias: torch.Tensor,
        eps: float,
        num_nodes: int,
        ranks: Ranks,
        what: str,
    ) -> torch.Tensor:
        variance, own_mean = torch.var_mean(x, 0, correction=0)
        mean = ranks.all_reduce_(own_mean * len(x), what) / num_nodes
        square = (variance + (own_mean - mean).square()) * len(x)
        variance = ranks.all_reduce_(square, what) / num_nodes
        ctx.save_for_backward(x, gamma, mean, (variance + eps).rsqrt())
        ctx.num_nodes, ctx.ranks, ctx.what = num_nodes, ranks, what
        return nn.functional.batch_norm(x, mean, variance, gamma, bias, False, 0.0, eps)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, gamma, mean, inverse = ctx.saved_tensors
        own = torch.stack([grad.sum(0), column_dot(grad, x)])
        own[1] = (own[1] - mean * own[0]) * inverse
        total = ctx.ranks.all_reduce_(own.clone(), f"the gradient of {ctx.what}") / ctx.num_nodes
        scale = gamma * inverse
        slope = -scale * inverse * total[1]
        grad_x = torch.addcmul(-scale * total[0] - slope * mean, x, slope)
        grad_x.addcmul_(grad, scale)
        return grad_x, own[1], own[0], None, None, None, None
