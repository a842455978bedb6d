"""Encoder of the variational graph autoencoder (Kipf and Welling, 2016)."""

from collections.abc import Sequence

import torch
from torch import nn

from user_dgl.encoders.base import Pass
from user_dgl.encoders.gae import GAE
from user_dgl.losses.discriminators import gaussian_divergence
from user_dgl.losses.reconstruction import link_cross_entropy


class VGAE(GAE):
    """`GAE` whose last layer gives mean and logarithm of the standard deviation of each node."""

    normed = True

    def __init__(self, in_feats: int, hidden_feats: Sequence[int], dropout: float):
        *inner, last = hidden_feats
        super().__init__(in_feats, (*inner, 2 * last), dropout)
        for part in self.weights[-1].data.chunk(2, 1):  # each as the layer of its own that it is
            nn.init.xavier_uniform_(part)
        self.out_feats = last

    def moments(self, propagation, features) -> tuple[torch.Tensor, torch.Tensor]:
        """Means and logarithms of standard deviations (N, out_feats)."""
        return super().forward(propagation, features).chunk(2, 1)

    @staticmethod
    def sample(mean, log_std) -> torch.Tensor:
        """Draws (N, out_feats) by the moments."""
        return mean + torch.randn(mean.shape).to(mean) * log_std.exp()

    def encode(self, propagation, features):
        """H (N, out_feats), draws in training and the means else, and the moments."""
        moments = self.moments(propagation, features)
        return self.sample(*moments) if self.training else moments[0].contiguous(), moments

    def forward(self, propagation, features) -> torch.Tensor:
        """Embeddings H (N, out_feats): draws in training, the means else."""
        return self.encode(propagation, features)[0]

    def supporting_loss(self, made: Pass) -> dict[str, torch.Tensor]:
        """Cross-entropy of the links of H, and divergence from N(0, 1)."""
        reconstruction = link_cross_entropy(made.graph, made.hidden, made.pairs(), made.engine)
        return self.bound(reconstruction, *made.beside)

    @staticmethod
    def bound(reconstruction, mean, log_std) -> dict[str, torch.Tensor]:
        """Terms of the variational bound.

        As in the authors' code, whose reconstruction is a mean over pairs, so that the divergence
        of all nodes counts like that of a pair.
        """
        divergence = gaussian_divergence(mean, log_std) / len(mean)
        return {"reconstruction": reconstruction, "divergence": divergence}
