"""Cross-Graph (Wang et al., 2020): two autoencoders that tell each other which edges to trust."""

from typing import ClassVar

import torch
from torch import nn

from user_dgl.baselines.arga import ARGA
from user_dgl.baselines.base import Baseline
from user_dgl.baselines.gae import GAE
from user_dgl.losses.reconstruction import LinkTargets, link_scores

# How far a target moves to the reconstruction in an epoch, as in the authors' code.
_CONCESSION = 0.02


class CrossGraph(Baseline):
    r"""A pair of autoencoders, each of which reconstructs what the other one trusts.

    Before each epoch the targets of the links go from :math:`t` to
    :math:`t\,(1 - c + c\,\sigma(s))`, s being the score of one autoencoder, and are then those of
    its peer. Both read the observed graph. The embeddings are those of the first.
    """

    member: ClassVar[type[GAE]]

    def __init__(self, problem):
        super().__init__(problem)
        self.members = nn.ModuleList(self.member(problem) for _ in range(2))
        hidden, num_nodes = problem.features, problem.graph.num_nodes
        like = {"device": hidden.device, "dtype": hidden.dtype}
        # Row i: what member i has left of each edge and of each node with itself.
        self.register_buffer("edge_trust", torch.ones(2, problem.graph.num_edges, **like))
        self.register_buffer("loop_trust", torch.ones(2, num_nodes, **like))

    def optimizers(self):
        return {
            f"{name}_{number}": optimizer
            for number, member in enumerate(self.members)
            for name, optimizer in member.optimizers().items()
        }

    def updates(self, epoch):
        self._concede()
        for number, member in enumerate(self.members):
            peer = 1 - number
            member.targets = LinkTargets(self.edge_trust[peer], self.loop_trust[peer])
            for name, terms in member.updates(epoch):
                yield f"{name}_{number}", terms

    @torch.no_grad()
    def _concede(self):
        graph, engine = self.problem.graph, self.problem.engine
        for number, member in enumerate(self.members):
            edge, loop = link_scores(graph, member.embed(), engine)
            self.edge_trust[number] *= 1 - _CONCESSION * torch.sigmoid(-edge)
            self.loop_trust[number] *= 1 - _CONCESSION * torch.sigmoid(-loop)

    def embed(self):
        return self.members[0].embed()


class GAECrossGraph(CrossGraph):
    """`CrossGraph` of two `GAE`, the authors' code."""

    member = GAE
    defaults = GAE.defaults


class ARGACrossGraph(CrossGraph):
    """`CrossGraph` of two `ARGA`."""

    member = ARGA
    defaults = ARGA.defaults
