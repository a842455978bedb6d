"""The learned sparse graph A'."""

import torch
from torch import nn

from user_dgl.graph import Graph

# softplus(theta) = 0 would need theta = -inf.
_LEAST_WEIGHT = 1e-3


class LearnedAdjacency(nn.Module):
    r"""A' of Eq. 6 as one non-negative weight a pair, :math:`w = \mathrm{softplus}(\theta)`.

    :math:`A' \ge 0` and :math:`A' = A'^T`, the constraints of Eq. 5, hold by construction. The
    paper's A' is a free N x N matrix and the authors' code learns :math:`P P^T` with P (N, N); here
    the pairs are the observed edges and sampled candidates: memory is linear in their number.

    Parameters
    ----------
    graph : Graph
        Observed and candidate pairs.
    observed : bool Tensor (P,)
        Which pairs are observed edges.
    initial_weight : Tensor (S, P)
        First weights of S graphs on the same pairs, at least 0.001 after clamping.
    learnable : bool
        False keeps the weights as they are: the paper's ablation "fix A'".
    """

    def __init__(self, graph: Graph, observed, initial_weight, learnable: bool = True):
        super().__init__()
        self.graph = graph
        self.register_buffer("observed", observed)
        self.theta = nn.Parameter(inverse_softplus(initial_weight), requires_grad=learnable)

    def forward(self) -> torch.Tensor:
        """Weights of all pairs (S, P)."""
        return nn.functional.softplus(self.theta)


def inverse_softplus(weight: torch.Tensor) -> torch.Tensor:
    r""":math:`\theta` with :math:`\mathrm{softplus}(\theta) = w`, for w clamped to at least 0.001.

    >>> round(nn.functional.softplus(inverse_softplus(torch.tensor(0.5))).item(), 6)
    0.5
    """
    weight = weight.clamp_min(_LEAST_WEIGHT)
    return weight + torch.log(-torch.expm1(-weight))
