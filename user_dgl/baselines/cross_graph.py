"""Cross-Graph (Wang et al., 2020): two autoencoders that tell each other which edges to trust."""

from collections.abc import Iterator
from typing import ClassVar, cast

import torch
from torch import nn

from user_dgl.baselines.arga import ARGA
from user_dgl.baselines.base import Baseline, Problem, Terms
from user_dgl.baselines.gae import GAE
from user_dgl.losses.reconstruction import LinkTargets, link_scores

# How far a target moves towards the reconstruction in an epoch, as in the authors' code.
_CONCESSION = 0.02


class CrossGraph(Baseline):
    r"""A pair of autoencoders, each of which reconstructs the edges that the other one trusts.

    Before each epoch the targets of the links change from :math:`t` to
    :math:`t\,(1 - c + c\,\sigma(s))`, where s is the score of one autoencoder. The other
    autoencoder is trained with these targets. Both read the observed graph. The embeddings of the
    first one are the result.
    """

    member: ClassVar[type[GAE]]
    edge_trust: torch.Tensor
    loop_trust: torch.Tensor

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.members = nn.ModuleList(self.member(problem) for _ in range(2))
        num_edges, num_nodes = problem.graph.num_edges, problem.graph.num_nodes
        device, dtype = problem.features.device, problem.features.dtype
        # Row i: the trust that member i has left in each edge, and in the self-loop of each node.
        edge_trust = torch.ones(2, num_edges, device=device, dtype=dtype)
        loop_trust = torch.ones(2, num_nodes, device=device, dtype=dtype)
        self.register_buffer("edge_trust", edge_trust)
        self.register_buffer("loop_trust", loop_trust)

    def _autoencoders(self) -> list[GAE]:
        """Return the members with their type, which `torch.nn.ModuleList` does not keep."""
        return [cast(GAE, member) for member in self.members]

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        return {
            f"{name}_{number}": optimizer
            for number, member in enumerate(self._autoencoders())
            for name, optimizer in member.optimizers().items()
        }

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        self._concede()
        for number, member in enumerate(self._autoencoders()):
            peer = 1 - number
            member.targets = LinkTargets(self.edge_trust[peer], self.loop_trust[peer])
            for name, terms in member.updates(epoch):
                yield f"{name}_{number}", terms

    @torch.no_grad()
    def _concede(self) -> None:
        """Lower the trust of each member in the links that it reconstructs badly."""
        graph, engine = self.problem.graph, self.problem.engine
        for number, member in enumerate(self._autoencoders()):
            edge, loop = link_scores(graph, member.embed(), engine)
            self.edge_trust[number] *= 1 - _CONCESSION * torch.sigmoid(-edge)
            self.loop_trust[number] *= 1 - _CONCESSION * torch.sigmoid(-loop)

    def embed(self) -> torch.Tensor:
        return self._autoencoders()[0].embed()


class GAECrossGraph(CrossGraph):
    """`CrossGraph` of two `GAE`, as in the authors' code."""

    member = GAE
    defaults = GAE.defaults


class ARGACrossGraph(CrossGraph):
    """`CrossGraph` of two `ARGA`."""

    member = ARGA
    defaults = ARGA.defaults
