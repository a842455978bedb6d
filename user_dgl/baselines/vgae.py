"""Variational graph autoencoder (Kipf and Welling, 2016)."""

from user_dgl.baselines.gae import GAE


class VGAE(GAE):
    """`GAE` of draws from a Gaussian for each node, which a prior N(0, 1) holds together."""

    encoder_name = "vgae"

    def updates(self, epoch):
        encoder, problem = self.encoder, self.problem
        moments = encoder.moments(problem.propagation, problem.features)
        yield "model", encoder.bound(self.reconstruction(encoder.sample(*moments)), *moments)
