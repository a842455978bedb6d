"""Adversarially regularised graph autoencoder (Pan et al., 2018)."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from user_dgl.baselines.base import Terms
from user_dgl.baselines.gae import GAE
from user_dgl.encoders.arga import ARGA as ARGAEncoder

# Updates of the reconstruction in an epoch, as in the authors' code. The paper speaks of several
# steps of the discriminator instead.
_RECONSTRUCTIONS = 5


class ARGA(GAE):
    """`GAE` trained so that a discriminator cannot tell its embeddings from draws of N(0, 1)."""

    defaults = replace(GAE.defaults, lr=0.001)
    encoder_name = "arga"
    encoder: ARGAEncoder

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        return {
            "model": self.adam(self.encoder.weights),
            "discriminator": self.adam(self.encoder.discriminator.parameters()),
            "generator": self.adam(self.encoder.weights),
        }

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        discriminator = self.encoder.discriminator
        for _ in range(_RECONSTRUCTIONS):
            yield "model", {"reconstruction": self.reconstruction(self.embed())}
        yield "discriminator", {"discriminator": discriminator.loss(self.embed().detach())}
        # As in the paper. The authors' code adds the reconstruction to this loss.
        yield "generator", {"generator": discriminator.deception(self.embed())}
