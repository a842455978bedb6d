"""The learned sparse graph A': its weights, and the state of Adam that belongs to them."""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import softplus

from user_dgl.graph import Graph

# softplus(theta) = 0 would need theta = -inf.
_LEAST_WEIGHT = 1e-3
# Adam's defaults in torch.
_BETAS, _EPS = (0.9, 0.999), 1e-8
_MOMENTS = ("exp_avg", "exp_avg_sq")


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
        self.theta = nn.Parameter(inverse_softplus(initial_weight), requires_grad=learnable)

    @property
    def learnable(self) -> bool:
        """Whether the weights are trained."""
        return self.theta.requires_grad

    def forward(self) -> torch.Tensor:
        """Weights of all pairs (S, P)."""
        return softplus(self.theta)

    def weight(self) -> torch.Tensor:
        """Weights of all pairs of the first graph (P,), as constants."""
        return softplus(self.theta.detach()[0])

    def leaf_of(self, pairs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Theta of some pairs of the first graph as a leaf of autograd, and their weights.

        Parameters
        ----------
        pairs : int64 Tensor (p,)

        Returns
        -------
        Tensor (p,), Tensor (p,)
            The leaf collects the gradient, which `PairAdam` then applies.
        """
        theta = self.theta.detach()[0, pairs].requires_grad_(self.learnable)
        return theta, softplus(theta)

    def parameter_group(self, lr: float) -> dict[str, Any]:
        """The optimiser's group of theta.

        Weight decay is 0, because it would draw every weight to softplus(0) = 0.69.
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
        """A' on other pairs: those kept take their theta along, new ones get the initial weight.

        Parameters
        ----------
        graph : Graph
            The other pairs (Q).
        observed : bool Tensor (Q,)
        place : int64 Tensor (k,)
            Positions among the other pairs of those that are kept.
        kept : bool Tensor (P,)
            Which of the present pairs are kept, k of them.
        initial_weight : float
        """
        first = self.theta.new_full((len(self.theta), graph.num_edges), initial_weight)
        other = LearnedAdjacency(graph, observed, first)
        with torch.no_grad():
            other.theta[:, place] = self.theta[:, kept]
        return other


def inverse_softplus(weight: torch.Tensor) -> torch.Tensor:
    r""":math:`\theta` with :math:`\mathrm{softplus}(\theta) = w`, for w clamped to at least 0.001.

    >>> round(nn.functional.softplus(inverse_softplus(torch.tensor(0.5))).item(), 6)
    0.5
    """
    weight = weight.clamp_min(_LEAST_WEIGHT)
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
    """Let an optimiser train another theta; the moments of the pairs kept move along.

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
    """The optimiser's state without that of theta (1, P), and theta's moments (P,) by name."""
    state = optimizer.state_dict()
    own = state["state"].pop(_index_of(optimizer, theta), {})
    return state, {name: own[name][0] for name in _MOMENTS if name in own}


def put_moments(
    optimizer: torch.optim.Adam,
    theta: torch.Tensor,
    state: dict[str, Any],
    moments: dict[str, torch.Tensor],
) -> None:
    """Load what `take_moments` gave, with moments (P,) that may be those of other pairs."""
    of_each = dict(state["state"])
    if moments:
        step = next(iter(of_each.values()))["step"]
        own = {name: moment[None] for name, moment in moments.items()}
        of_each[_index_of(optimizer, theta)] = {"step": step.clone()} | own
    optimizer.load_state_dict({**state, "state": of_each})


def _group_of(optimizer: torch.optim.Optimizer, theta: torch.Tensor) -> dict[str, Any]:
    groups = optimizer.param_groups
    return next(group for group in groups if any(each is theta for each in group["params"]))


def _index_of(optimizer: torch.optim.Optimizer, theta: torch.Tensor) -> int:
    """The number of theta in the optimiser's state: parameters count through all groups."""
    every = [each for group in optimizer.param_groups for each in group["params"]]
    return next(index for index, each in enumerate(every) if each is theta)


class PairAdam:
    """Adam on the theta of some pairs at a time; each pair has one update an epoch.

    An optimiser of torch would update all pairs, those without a gradient too.

    Parameters
    ----------
    structure : LearnedAdjacency
        With one A'.
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
            Whose group of theta has the learning rate.
        pairs : int64 Tensor (p,)
        gradient : Tensor (p,)
        epoch : int
            Updates that each pair had before.
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
        """Moments (P,) by name."""
        return {"first": self._first, "second": self._second}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Take over what `state_dict` gave."""
        self._first, self._second = state["first"], state["second"]
