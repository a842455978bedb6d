"""The learned sparse graph A': its weights, and the state of Adam for them."""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import softplus

from user_dgl.graph import Graph

# The least weight that training starts from. A weight of 0 = softplus(theta) would need
# theta = -inf, and the gradient in theta falls with the weight.
_LEAST_WEIGHT = 1e-3
# Adam's defaults in torch.
_BETAS, _EPS = (0.9, 0.999), 1e-8
_MOMENTS = ("exp_avg", "exp_avg_sq")


class LearnedAdjacency(nn.Module):
    r"""A' of Eq. 6 with one non-negative weight a pair, :math:`w = \mathrm{softplus}(\theta)`.

    The constraints of Eq. 5, :math:`A' \ge 0` and :math:`A' = A'^T`, hold by construction. The
    paper's A' is a free N x N matrix, and the authors' code learns :math:`P P^T` with P (N, N).
    Here A' has weights only on the observed edges and on sampled candidates, so that its memory is
    linear in their number.

    Parameters
    ----------
    graph : Graph
        Observed and candidate pairs.
    observed : bool Tensor (P,)
        Which pairs are observed edges.
    initial_weight : Tensor (S, P)
        First weights of S graphs on the same pairs. If they are trained, weights below 0.001 are
        raised to 0.001.
    learnable : bool
        False: the weights are constant, as in the paper's ablation "fix A'".
    """

    def __init__(
        self,
        graph: Graph,
        observed: torch.Tensor,
        initial_weight: torch.Tensor,
        learnable: bool = True,
    ):
        super().__init__()
        self.graph = graph
        self.observed: torch.Tensor
        self.register_buffer("observed", observed)
        least = _LEAST_WEIGHT if learnable else torch.finfo(initial_weight.dtype).tiny
        theta = inverse_softplus(initial_weight, least)
        self.theta = nn.Parameter(theta, requires_grad=learnable)

    @property
    def learnable(self) -> bool:
        """Whether the weights are trained."""
        return self.theta.requires_grad

    def forward(self) -> torch.Tensor:
        """Weights (S, P) of all pairs."""
        return softplus(self.theta)

    def weight(self) -> torch.Tensor:
        """Weights (P,) of all pairs of the first graph, detached from autograd."""
        return softplus(self.theta.detach()[0])

    def leaf_of(self, pairs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Copy theta of some pairs of the first graph to a leaf of autograd, with their weights.

        Parameters
        ----------
        pairs : int64 Tensor (p,)

        Returns
        -------
        Tensor (p,), Tensor (p,)
            The leaf, which receives the gradient that `PairAdam` applies, and the weights.
        """
        theta = self.theta.detach()[0, pairs].requires_grad_(self.learnable)
        return theta, softplus(theta)

    def parameter_group(self, lr: float) -> dict[str, Any]:
        """Make the parameter group of theta for the optimiser.

        Weight decay is 0, because it would pull every weight towards softplus(0) = 0.69.
        """
        return {"params": [self.theta], "lr": lr, "weight_decay": 0.0}

    def replaced(
        self,
        graph: Graph,
        observed: torch.Tensor,
        place: torch.Tensor,
        kept: torch.Tensor,
        initial_weight: float,
    ) -> "LearnedAdjacency":
        """Make A' on other pairs. Kept pairs keep their theta; new pairs get the initial weight.

        Parameters
        ----------
        graph : Graph
            Graph of the Q other pairs.
        observed : bool Tensor (Q,)
            Whether each of the other pairs is an observed edge.
        place : int64 Tensor (k,)
            Positions of the k kept pairs among the other pairs.
        kept : bool Tensor (P,)
            Whether each of the current pairs is kept.
        initial_weight : float
            Weight of the new pairs.
        """
        first = self.theta.new_full((len(self.theta), graph.num_edges), initial_weight)
        other = LearnedAdjacency(graph, observed, first)
        with torch.no_grad():
            other.theta[:, place] = self.theta[:, kept]
        return other


def inverse_softplus(weight: torch.Tensor, least: float = _LEAST_WEIGHT) -> torch.Tensor:
    r"""Solve :math:`\mathrm{softplus}(\theta) = w` for theta; w is raised to at least ``least``.

    >>> round(nn.functional.softplus(inverse_softplus(torch.tensor(0.5))).item(), 6)
    0.5
    """
    weight = weight.clamp_min(least)
    return weight + torch.log(-torch.expm1(-weight))


# -------------------------------------------------------------------------------------------------
# The state of Adam


def replace_theta(
    optimizer: torch.optim.Adam,
    old: LearnedAdjacency,
    new: LearnedAdjacency,
    place: torch.Tensor,
    kept: torch.Tensor,
) -> None:
    """Replace theta in an optimiser. The moments of kept pairs are carried over, others are 0.

    ``place`` and ``kept`` are those of `LearnedAdjacency.replaced`.
    """
    _group_of(optimizer, old.theta)["params"] = [new.theta]
    moments = optimizer.state.pop(old.theta, None)
    if not moments:
        return
    carried = {"step": moments["step"]}
    for name in _MOMENTS:
        carried[name] = torch.zeros_like(new.theta)
        carried[name][:, place] = moments[name][:, kept]
    optimizer.state[new.theta] = carried


def take_moments(
    optimizer: torch.optim.Adam, theta: torch.Tensor
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Split the optimiser's state into the state without theta (1, P) and theta's moments (P,)."""
    state = optimizer.state_dict()
    own = state["state"].pop(_index_of(optimizer, theta), {})
    return state, {name: own[name][0] for name in _MOMENTS if name in own}


def put_moments(
    optimizer: torch.optim.Adam,
    theta: torch.Tensor,
    state: dict[str, Any],
    moments: dict[str, torch.Tensor],
) -> None:
    """Load a state from `take_moments`. The moments (P,) may be those of other pairs."""
    of_each = dict(state["state"])
    if moments:
        step = next(iter(of_each.values()))["step"]
        own = {name: moment[None] for name, moment in moments.items()}
        of_each[_index_of(optimizer, theta)] = {"step": step.clone()} | own
    optimizer.load_state_dict({**state, "state": of_each})


def _group_of(optimizer: torch.optim.Optimizer, theta: torch.Tensor) -> dict[str, Any]:
    """Find the parameter group of theta."""
    groups = optimizer.param_groups
    return next(group for group in groups if any(each is theta for each in group["params"]))


def _index_of(optimizer: torch.optim.Optimizer, theta: torch.Tensor) -> int:
    """Index of theta in the optimiser's state. Parameters are numbered through all groups."""
    every = [each for group in optimizer.param_groups for each in group["params"]]
    return next(index for index, each in enumerate(every) if each is theta)


class PairAdam:
    """Adam that updates theta of some pairs at a time. Each pair has one update an epoch.

    An optimiser of torch would update all pairs, also those without a gradient.

    Parameters
    ----------
    structure : LearnedAdjacency
        It must have one A' (S = 1).
    """

    def __init__(self, structure: LearnedAdjacency):
        self._structure = structure
        self._first, self._second = torch.zeros(2, structure.graph.num_edges).to(structure.theta)

    def step(
        self, optimizer: torch.optim.Adam, pairs: torch.Tensor, gradient: torch.Tensor, epoch: int
    ) -> None:
        """Update theta of some pairs (p,) by their gradient (p,).

        Parameters
        ----------
        optimizer : Adam
            Its parameter group of theta has the learning rate.
        pairs : int64 Tensor (p,)
        gradient : Tensor (p,)
        epoch : int
            Number of updates that each pair has had before.
        """
        step, theta = epoch + 1, self._structure.theta.detach()
        first = self._first[pairs].lerp_(gradient, 1 - _BETAS[0])
        second = (
            self._second[pairs].mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
        )
        self._first[pairs], self._second[pairs] = first, second
        lr = _group_of(optimizer, self._structure.theta)["lr"] / (1 - _BETAS[0] ** step)
        scale = second.sqrt_().div_((1 - _BETAS[1] ** step) ** 0.5).add_(_EPS)
        theta[0, pairs] = theta[0, pairs].addcdiv_(first, scale, value=-lr)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Moments (P,) of theta by name."""
        return {"first": self._first, "second": self._second}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Load a state from `state_dict`."""
        self._first, self._second = state["first"], state["second"]
