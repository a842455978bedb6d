"""What models without labels learn from: links, a prior, a discriminator, mutual information.

Functions of a graph and of embeddings H (N, d), shared by `user_dgl.losses`, by the encoders that
USER supports and by the baselines. All are linear in edges, nodes and samples.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import softplus

from user_dgl.graph import Graph
from user_dgl.graph.ops import edge_dot, pair_dot
from user_dgl.graph.pairs import SampledPairs


class LinkTargets(NamedTuple):
    """What a decoder should say of each edge (E,) and of each node with itself (N,), 0 to 1."""

    edge: torch.Tensor
    loop: torch.Tensor


def link_scores(graph: Graph, hidden: torch.Tensor, engine: str) -> tuple[torch.Tensor, ...]:
    """Inner products of the ends of each edge (E,) and of each node with itself (N,)."""
    return edge_dot(graph, hidden, engine), hidden.square().sum(1)


def link_cross_entropy(
    graph: Graph,
    hidden: torch.Tensor,
    pairs: SampledPairs,
    engine: str,
    targets: LinkTargets | None = None,
) -> torch.Tensor:
    r"""Weighted cross-entropy of the inner product decoder (Kipf and Welling, 2016).

    With :math:`s_{ij} = \langle h_i, h_j \rangle`, :math:`\zeta` = softplus and
    :math:`T = A + I`, or the given targets there:

    .. math::
        \frac{1}{4 E} \sum_{ij} T_{ij}\, \zeta(-s_{ij})
        + \frac{1}{2 (N^2 - 2 E)} \sum_{ij} (1 - T_{ij})\, \zeta(s_{ij})

    which is the sum over all :math:`N^2` pairs with the authors' weight of edges and normalisation.
    Edges and nodes are exact. The second sum beyond them is estimated from the pairs.

    Parameters
    ----------
    graph : Graph
    hidden : Tensor (N, d)
    pairs : SampledPairs
    engine : str
    targets : LinkTargets, optional
        Default: 1 everywhere.

    Returns
    -------
    Tensor ()
    """
    num_nodes, num_edges = graph.num_nodes, graph.num_edges
    edge, loop = link_scores(graph, hidden, engine)
    no_edge = hidden.new_zeros(())
    if targets is None:
        is_edge = 2 * softplus(-edge).sum() + softplus(-loop).sum()
    else:
        is_edge = 2 * (targets.edge * softplus(-edge)).sum()
        is_edge = is_edge + (targets.loop * softplus(-loop)).sum()
        no_edge = 2 * ((1 - targets.edge) * softplus(edge)).sum()
        no_edge = no_edge + ((1 - targets.loop) * softplus(loop)).sum()
    score = pair_dot(hidden, pairs.low, pairs.high, engine)
    sampled = softplus(score).masked_fill(pairs.is_edge, 0.0).sum() / max(len(score), 1)
    no_edge = no_edge + num_nodes * (num_nodes - 1) * sampled
    return is_edge / max(4 * num_edges, 1) + no_edge / max(2 * (num_nodes**2 - 2 * num_edges), 1)


def gaussian_divergence(mean: torch.Tensor, log_std: torch.Tensor) -> torch.Tensor:
    r"""Mean of :math:`\mathrm{KL}(\mathcal N(\mu_i, \sigma_i^2) \| \mathcal N(0, I))`."""
    square = mean.square() + (2 * log_std).exp()
    return 0.5 * (square - 1 - 2 * log_std).sum(1).mean()


class Discriminator(nn.Module):
    """Tells rows of an embedding from draws of the prior N(0, 1) (Pan et al., 2018).

    Parameters
    ----------
    in_feats : int
    hidden_feats : sequence of int
    """

    def __init__(self, in_feats: int, hidden_feats: Sequence[int] = (16, 64)):
        super().__init__()
        layers: list[nn.Module] = []
        for width in hidden_feats:
            layers += [nn.Linear(in_feats, width), nn.ReLU()]
            in_feats = width
        self.layers = nn.Sequential(*layers, nn.Linear(in_feats, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Logits (N,) of being a draw of the prior."""
        return self.layers(rows).squeeze(1)

    def deception(self, hidden: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of passing for draws of the prior, without gradient in the weights here."""
        frozen = {name: part.detach() for name, part in self.named_parameters()}
        return softplus(-functional_call(self, frozen, (hidden,))).mean()

    def loss(self, hidden: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Cross-entropy against as many draws of the prior as there are rows."""
        drawn = torch.randn(hidden.shape, generator=generator).to(hidden)
        return contrast(self(drawn), self(hidden))


class GraphSummary(nn.Module):
    r"""Mutual information of nodes with a summary of the graph (Velickovic et al., 2019).

    :math:`\sigma(h_i^T W s)` tells the rows of H from those of corrupted features,
    :math:`s = \sigma(\frac1N \sum_i h_i)`.

    Parameters
    ----------
    num_feats : int
        d.
    """

    def __init__(self, num_feats: int):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_feats, num_feats)))
        self.bias = nn.Parameter(torch.zeros(()))

    def loss(self, hidden: torch.Tensor, corrupted: torch.Tensor) -> torch.Tensor:
        """Cross-entropy, half of each kind; H and its corruption (N, d)."""
        direction = self.weight @ torch.sigmoid(hidden.mean(0))
        return contrast(hidden @ direction + self.bias, corrupted @ direction + self.bias) / 2


def contrast(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of logits (N,) that should be high and of others that should be low."""
    return softplus(-real).mean() + softplus(fake).mean()
