"""Variational graph autoencoder (Kipf and Welling, 2016)."""

from collections.abc import Iterator

from user_dgl.baselines.base import Terms
from user_dgl.baselines.gae import GAE
from user_dgl.encoders.vgae import VGAE as VGAEEncoder


class VGAE(GAE):
    """`GAE` that draws each node's embedding from a Gaussian with the prior N(0, 1)."""

    encoder_name = "vgae"
    encoder: VGAEEncoder

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        encoder, problem = self.encoder, self.problem
        moments = encoder.moments(problem.propagation, problem.features)
        yield "model", encoder.bound(self.reconstruction(encoder.sample(*moments)), *moments)
