"""Adversarially regularised graph autoencoder (Pan et al., 2018)."""

from dataclasses import replace

from user_dgl.baselines.gae import GAE

# As in the authors' code; the paper speaks of steps of the discriminator instead.
_RECONSTRUCTIONS = 5


class ARGA(GAE):
    """`GAE` whose embeddings a discriminator cannot tell from draws of N(0, 1)."""

    defaults = replace(GAE.defaults, lr=0.001)
    encoder_name = "arga"

    def optimizers(self):
        return {
            "model": self.adam(self.encoder.weights),
            "discriminator": self.adam(self.encoder.discriminator.parameters()),
            "generator": self.adam(self.encoder.weights),
        }

    def updates(self, epoch):
        discriminator = self.encoder.discriminator
        for _ in range(_RECONSTRUCTIONS):
            yield "model", {"reconstruction": self.reconstruction(self.embed())}
        yield "discriminator", {"discriminator": discriminator.loss(self.embed().detach())}
        yield "generator", {"generator": discriminator.deception(self.embed())}
