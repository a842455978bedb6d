"""Products with the rows of S that belong to one part of a graph."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from user_dgl.graph.parts import Part
from user_dgl.graph.propagation import Propagation, Propagator


class PartPropagation(Propagator):
    """S where only the nodes of a part are at hand.

    Parameters
    ----------
    propagation : Propagation
        S on the nodes of the part and its halo.
    part : Part
    halo_of : callable
        Layer -> what it gave last for the halo (h, d).
    others_of : callable
        Layer -> `Moments` of what it gave last for all nodes but those of the part.

    Attributes
    ----------
    hidden : dict of int to Tensor (n, d)
        What each layer gave for the nodes owned.
    moments : dict of int to Moments
        Theirs, before BatchNorm.
    """

    def __init__(
        self,
        propagation: Propagation,
        part: Part,
        halo_of: Callable[[int], torch.Tensor],
        others_of: Callable[[int], "Moments"],
    ):
        self._propagation, self._part = propagation, part
        self._halo_of, self._others_of = halo_of, others_of
        self.hidden: dict[int, torch.Tensor] = {}
        self.moments: dict[int, Moments] = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Rows of S x of the nodes owned, (n, d), for x (n + h, d)."""
        return self._propagation(x)[: self._part.num_owned]

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """BatchNorm by the statistics of all nodes: the part's now, the others' as they were."""
        own = Moments.of(x)
        self.moments[layer] = own.detach()
        moments = own + self._others_of(layer)
        scale = (moments.deviation / moments.count + norm.eps).rsqrt() * norm.weight
        return (x - moments.mean) * scale + norm.bias

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Rows of the nodes owned, then of the halo as its parts gave them last."""
        self.hidden[layer] = hidden.detach()
        return torch.cat([hidden, self._halo_of(layer)])


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean (d,) and summed squared deviation from it (d,) of rows; they add up.

    By the formulas of Chan, Golub and LeVeque (1983), which lose no digits where the mean is large.
    """

    count: int
    mean: torch.Tensor
    deviation: torch.Tensor

    @classmethod
    def of(cls, x: torch.Tensor) -> "Moments":
        """Moments of the rows of x."""
        mean = x.mean(0)
        return cls(len(x), mean, (x - mean).square().sum(0))

    def __add__(self, other: "Moments") -> "Moments":
        count = self.count + other.count
        if not other.count:
            return self
        if not self.count:
            return other
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * (other.count / count),
            self.deviation + other.deviation + apart.square() * (self.count * other.count / count),
        )

    def detach(self) -> "Moments":
        """The same numbers as constants."""
        return Moments(self.count, self.mean.detach(), self.deviation.detach())

    def state_dict(self) -> dict[str, Any]:
        """Plain values and tensors by name."""
        return {"count": self.count, "mean": self.mean, "deviation": self.deviation}
