"""Products with the rows of S of one part of a graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from user_dgl.graph.parts import Part
from user_dgl.graph.propagation import Propagation, Propagator


class PartPropagation(Propagator):
    """Rows of S of the nodes of a part, see `Propagator`.

    Values of other parts are those from the last time that these parts were processed.

    Parameters
    ----------
    propagation : Propagation
        S on the nodes of the part and its halo.
    part : Part
    halo_of : callable
        Function of the layer. Returns its last output (h, d) for the halo.
    others_of : callable
        Function of the layer. Returns the `Moments` of its last output before BatchNorm for all
        nodes that the part does not own.

    Attributes
    ----------
    hidden : dict of int to Tensor (n, d)
        Output of each layer for the owned nodes.
    moments : dict of int to Moments
        Moments of the owned nodes in each layer, before BatchNorm.
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
        """Compute the rows (n, d) of S x of the owned nodes, for x (n + h, d)."""
        return self._propagation(x)[: self._part.num_owned]

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """Apply BatchNorm with the part's current and all other nodes' last statistics."""
        own = Moments.of(x)
        self.moments[layer] = own.detach()
        moments = own + self._others_of(layer)
        scale = (moments.deviation / moments.count + norm.eps).rsqrt() * norm.weight
        return (x - moments.mean) * scale + norm.bias

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Append the last known rows of the halo to the rows of the owned nodes."""
        self.hidden[layer] = hidden.detach()
        return torch.cat([hidden, self._halo_of(layer)])


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean (d,) and sum of squared deviations from the mean (d,) of rows.

    Moments of two sets of rows can be added. The formulas of Chan, Golub and LeVeque (1983) lose no
    digits if the mean is large.
    """

    count: int
    mean: torch.Tensor
    deviation: torch.Tensor

    @classmethod
    def of(cls, x: torch.Tensor) -> "Moments":
        """Compute the moments of the rows of x."""
        mean = x.mean(0)
        return cls(len(x), mean, (x - mean).square().sum(0))

    @classmethod
    def joined(cls, sets: Sequence["Moments"]) -> "Moments":
        """Compute the moments of the rows of one or more sets, in one step for all of them."""
        sets = [moments for moments in sets if moments.count] or sets[:1]
        counts = [moments.count for moments in sets]
        means = torch.stack([moments.mean for moments in sets])
        deviations = torch.stack([moments.deviation for moments in sets])
        count = sum(counts)
        if not count:
            return sets[0]
        rows = means.new_tensor(counts)[:, None]
        mean = (rows * means).sum(0) / count
        return cls(count, mean, (deviations + rows * (means - mean).square()).sum(0))

    def __add__(self, other: "Moments") -> "Moments":
        """Moments of the rows of both."""
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
        """The same moments, detached from autograd."""
        return Moments(self.count, self.mean.detach(), self.deviation.detach())

    def state_dict(self) -> dict[str, Any]:
        """The moments by name, for a checkpoint."""
        return {"count": self.count, "mean": self.mean, "deviation": self.deviation}
