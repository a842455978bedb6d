"""Encoder of the variational graph autoencoder (Kipf and Welling, 2016)."""

from collections.abc import Sequence

import torch
from torch import nn

from user_dgl.encoders.base import Pass
from user_dgl.encoders.gae import GAE
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.propagation import Propagator
from user_dgl.losses.discriminators import gaussian_divergence
from user_dgl.losses.reconstruction import link_cross_entropy

# exp(10) = 22,000. Its square does not overflow in float32.
_LARGEST_LOG_STD = 10.0


class VGAE(GAE):
    """`GAE` whose last layer computes the mean and the log standard deviation of each node's H."""

    normed = True

    def __init__(self, in_feats: int, hidden_feats: Sequence[int], dropout: float):
        *inner, last = hidden_feats
        super().__init__(in_feats, (*inner, 2 * last), dropout)
        # Each half is a layer of its own and is initialised as such.
        for part in self.weights[-1].data.chunk(2, 1):
            nn.init.xavier_uniform_(part)
        self.out_feats = last

    def moments(
        self, propagation: Propagator, features: FeatureMatrix
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute means and logarithms of standard deviations, each (N, out_feats).

        The latter are at most 10 (not in the paper): unscaled features would make the deviations
        infinite before the first step.
        """
        mean, log_std = super().forward(propagation, features).chunk(2, 1)
        return mean, log_std.clamp_max(_LARGEST_LOG_STD)

    @staticmethod
    def sample(mean: torch.Tensor, log_std: torch.Tensor) -> torch.Tensor:
        """Draw H (N, out_feats) from the normal distributions with these moments."""
        return mean + torch.randn(mean.shape).to(mean) * log_std.exp()

    def encode(
        self, propagation: Propagator, features: FeatureMatrix
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Compute H (N, out_feats) and the moments. H is a draw in training, else the means."""
        moments = self.moments(propagation, features)
        return self.sample(*moments) if self.training else moments[0].contiguous(), moments

    def forward(self, propagation: Propagator, features: FeatureMatrix) -> torch.Tensor:
        """Embeddings H (N, out_feats): a draw in training, else the means."""
        return self.encode(propagation, features)[0]

    def supporting_loss(self, made: Pass) -> dict[str, torch.Tensor]:
        """Terms of the loss: link reconstruction, and divergence of H from N(0, 1)."""
        reconstruction = link_cross_entropy(made.graph, made.hidden, made.pairs(), made.engine)
        return self.bound(reconstruction, *made.beside)

    @staticmethod
    def bound(
        reconstruction: torch.Tensor, mean: torch.Tensor, log_std: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Terms of the variational bound.

        As in the authors' code, the reconstruction is a mean over pairs, and the mean divergence of
        the nodes is divided by the number of nodes.
        """
        divergence = gaussian_divergence(mean, log_std) / len(mean)
        return {"reconstruction": reconstruction, "divergence": divergence}
