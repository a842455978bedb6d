"""Encoder of the adversarially regularised graph autoencoder (Pan et al., 2018)."""

from collections.abc import Sequence

import torch

from user_dgl.encoders.base import Pass
from user_dgl.encoders.gae import GAE
from user_dgl.losses.discriminators import Discriminator
from user_dgl.losses.reconstruction import link_cross_entropy


class ARGA(GAE):
    """`GAE` trained so that a discriminator cannot distinguish H from samples of N(0, 1)."""

    normed = True

    def __init__(self, in_feats: int, hidden_feats: Sequence[int], dropout: float):
        super().__init__(in_feats, hidden_feats, dropout)
        self.discriminator = Discriminator(self.out_feats)

    def supporting_loss(self, made: Pass) -> dict[str, torch.Tensor]:
        """Terms of the loss: link reconstruction, deception of the discriminator, discriminator."""
        reconstruction = link_cross_entropy(made.graph, made.hidden, made.pairs(), made.engine)
        return {
            "reconstruction": reconstruction,
            "generator": self.discriminator.deception(made.hidden),
            # H is detached, so that this term trains the discriminator only. One optimiser can then
            # train the encoder and the discriminator.
            "discriminator": self.discriminator.loss(made.hidden.detach(), made.generator),
        }
