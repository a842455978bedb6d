"""Variational graph autoencoder (Kipf and Welling, 2016)."""

import torch

from user_dgl.baselines.gae import GAE


class VGAE(GAE):
    """`GAE` of draws from a Gaussian for each node, which a prior N(0, 1) holds together."""

    encoder_name = "vgae"

    def updates(self, epoch):
        problem = self.problem
        mean, log_std = self.encoder.moments(problem.propagation, problem.features)
        drawn = mean + torch.randn(mean.shape).to(mean) * log_std.exp()
        yield "model", self.encoder.bound(self.reconstruction(drawn), mean, log_std)
