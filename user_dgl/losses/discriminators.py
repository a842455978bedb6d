"""Losses that compare embeddings with a prior or with embeddings of corrupted features.

The losses are functions of embeddings H (N, d). `user_dgl.model.loss`, the encoders that USER
supports and the baselines use them. Their time is linear in the number of nodes. They are not in
the paper; each states its source.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import softplus


def gaussian_divergence(mean: torch.Tensor, log_std: torch.Tensor) -> torch.Tensor:
    r"""Mean over nodes of :math:`\mathrm{KL}(\mathcal N(\mu_i, \sigma_i^2) \| \mathcal N(0, I))`.

    The divergence of a variational autoencoder (Kipf and Welling, 2016).

    Parameters
    ----------
    mean, log_std : Tensor (N, d)
        :math:`\mu` and :math:`\log \sigma`.
    """
    square = mean.square() + (2 * log_std).exp()
    return 0.5 * (square - 1 - 2 * log_std).sum(1).mean()


class Discriminator(nn.Module):
    """Network that distinguishes rows of H from samples of the prior N(0, 1) (Pan et al., 2018).

    Parameters
    ----------
    in_feats : int
        d, the number of columns of H.
    hidden_feats : sequence of int
        Widths of the hidden layers.
    """

    def __init__(self, in_feats: int, hidden_feats: Sequence[int] = (16, 64)):
        super().__init__()
        layers: list[nn.Module] = []
        for width in hidden_feats:
            layers += [nn.Linear(in_feats, width), nn.ReLU()]
            in_feats = width
        self.layers = nn.Sequential(*layers, nn.Linear(in_feats, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Logits (N,) of the probability that a row is a sample of the prior."""
        return self.layers(rows).squeeze(1)

    def deception(self, hidden: torch.Tensor) -> torch.Tensor:
        """Loss of the encoder: cross-entropy of H (N, d) with the label "sample of the prior".

        The weights of the discriminator get no gradient.
        """
        frozen = {name: part.detach() for name, part in self.named_parameters()}
        return softplus(-functional_call(self, frozen, (hidden,))).mean()

    def loss(self, hidden: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Loss of the discriminator: cross-entropy on H (N, d) and as many samples of the prior."""
        drawn = torch.randn(hidden.shape, generator=generator).to(hidden)
        return contrast(self(drawn), self(hidden))


class GraphSummary(nn.Module):
    r"""Mutual information of nodes with a summary of the graph (Velickovic et al., 2019).

    The score :math:`\sigma(h_i^T W s + b)` with the summary :math:`s = \sigma(\frac1N \sum_i h_i)`
    distinguishes the rows of H from the embeddings of corrupted features. W and b are learned.

    Parameters
    ----------
    num_feats : int
        d, the number of columns of H.
    """

    def __init__(self, num_feats: int):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_feats, num_feats)))
        self.bias = nn.Parameter(torch.zeros(()))

    def loss(self, hidden: torch.Tensor, corrupted: torch.Tensor) -> torch.Tensor:
        """Cross-entropy on H and on the embeddings of corrupted features, both (N, d).

        Each of the two kinds counts one half.
        """
        direction = self.weight @ torch.sigmoid(hidden.mean(0))
        return contrast(hidden @ direction + self.bias, corrupted @ direction + self.bias) / 2


def contrast(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of logits ``real`` (label 1) plus that of logits ``fake`` (label 0)."""
    return softplus(-real).mean() + softplus(fake).mean()
