"""What models without labels learn from: links, a prior, a discriminator, mutual information.

Functions of a graph and of embeddings H (N, d), shared by `model.loss`, by the encoders that
USER supports and by the baselines. All are linear in edges, nodes and samples.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import softplus


def gaussian_divergence(mean: torch.Tensor, log_std: torch.Tensor) -> torch.Tensor:
    r"""Mean of :math:`\mathrm{KL}(\mathcal N(\mu_i, \sigma_i^2) \| \mathcal N(0, I))`."""
    square = mean.square() + (2 * log_std).exp()
    return 0.5 * (square - 1 - 2 * log_std).sum(1).mean()


class Discriminator(nn.Module):
    """Tells rows of an embedding from draws of the prior N(0, 1) (Pan et al., 2018).

    Parameters
    ----------
    in_feats : int
    hidden_feats : sequence of int
    """

    def __init__(self, in_feats: int, hidden_feats: Sequence[int] = (16, 64)):
        super().__init__()
        layers: list[nn.Module] = []
        for width in hidden_feats:
            layers += [nn.Linear(in_feats, width), nn.ReLU()]
            in_feats = width
        self.layers = nn.Sequential(*layers, nn.Linear(in_feats, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Logits (N,) of being a draw of the prior."""
        return self.layers(rows).squeeze(1)

    def deception(self, hidden: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of passing for draws of the prior, without gradient in the weights here."""
        frozen = {name: part.detach() for name, part in self.named_parameters()}
        return softplus(-functional_call(self, frozen, (hidden,))).mean()

    def loss(self, hidden: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Cross-entropy against as many draws of the prior as there are rows."""
        drawn = torch.randn(hidden.shape, generator=generator).to(hidden)
        return contrast(self(drawn), self(hidden))


class GraphSummary(nn.Module):
    r"""Mutual information of nodes with a summary of the graph (Velickovic et al., 2019).

    :math:`\sigma(h_i^T W s)` tells the rows of H from those of corrupted features,
    :math:`s = \sigma(\frac1N \sum_i h_i)`.

    Parameters
    ----------
    num_feats : int
        d.
    """

    def __init__(self, num_feats: int):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_feats, num_feats)))
        self.bias = nn.Parameter(torch.zeros(()))

    def loss(self, hidden: torch.Tensor, corrupted: torch.Tensor) -> torch.Tensor:
        """Cross-entropy, half of each kind; H and its corruption (N, d)."""
        direction = self.weight @ torch.sigmoid(hidden.mean(0))
        return contrast(hidden @ direction + self.bias, corrupted @ direction + self.bias) / 2


def contrast(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of logits (N,) that should be high and of others that should be low."""
    return softplus(-real).mean() + softplus(fake).mean()
