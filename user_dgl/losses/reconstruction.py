"""Losses that compare inner products of embeddings with the adjacency (Eq. 8 of the paper)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch.nn.functional import softplus

from user_dgl.graph import Graph
from user_dgl.graph.ops import edge_dot, pair_dot
from user_dgl.graph.pairs import SampledPairs, sample_pairs


class LinkTargets(NamedTuple):
    """Target probabilities of a decoder, 0 to 1.

    Attributes
    ----------
    edge : Tensor (E,)
        Target of each edge.
    loop : Tensor (N,)
        Target of each node with itself.
    """

    edge: torch.Tensor
    loop: torch.Tensor


def link_scores(
    graph: Graph, hidden: torch.Tensor, engine: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inner products of rows of H (N, d): ends of each edge (E,), each node with itself (N,)."""
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
    :math:`T = A + I` (or the given targets in the places of edges and of the diagonal):

    .. math::
        \frac{1}{4 E} \sum_{ij} T_{ij}\, \zeta(-s_{ij})
        + \frac{1}{2 (N^2 - 2 E)} \sum_{ij} (1 - T_{ij})\, \zeta(s_{ij})

    This is the sum over all :math:`N^2` pairs with the authors' weight of edges and normalisation.
    The terms of the edges and of the diagonal are exact. The terms of all other pairs are estimated
    from the sampled pairs.

    Parameters
    ----------
    graph : Graph
    hidden : Tensor (N, d)
        H.
    pairs : SampledPairs
    engine : str
    targets : LinkTargets, optional
        Default: 1 for every edge and node.

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


def reconstruction_loss(
    graph: Graph,
    hidden: Sequence[torch.Tensor],
    num_samples: int,
    generator: torch.Generator | None,
    engine: str,
    form: str = "squared",
) -> torch.Tensor:
    r"""Unbiased estimate of the difference between :math:`\sigma(H H^T)` and A.

    An edge counts as 1 whatever its weight, because :math:`\sigma` is a probability.

    * ``squared``: :math:`\| \sigma(H H^T) - A \|_F^2` (Eq. 8 of the paper). On a sparse graph the
      non-edges outweigh the edges, so this loss alone drives H to 0.
    * ``cross_entropy``: the loss of Kipf and Welling (2016), in which edges and non-edges have the
      same total weight; see `link_cross_entropy`.

    The terms of the diagonal and of the edges are exact. The terms of the non-edges are estimated:
    pairs are drawn uniformly with replacement from all :math:`T = N (N - 1) / 2` pairs, and pairs
    that are edges contribute 0. In ``squared`` each sampled pair has the weight T / num_samples in
    each direction. Time is linear in edges, nodes and samples.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    hidden : sequence of R Tensors (N, d)
        H of each replica. All replicas use the same sampled pairs, so that their losses can be
        compared.
    num_samples : int
        Number of sampled pairs.
    generator : torch.Generator or None
    engine : str
    form : str
        ``squared`` or ``cross_entropy``.

    Returns
    -------
    Tensor (R,)
    """
    pairs = sample_pairs(graph, num_samples, generator)
    loss = _squared_error if form == "squared" else link_cross_entropy
    return torch.stack([loss(graph, h, pairs, engine) for h in hidden])


def _squared_error(
    graph: Graph, hidden: torch.Tensor, pairs: SampledPairs, engine: str
) -> torch.Tensor:
    """Form ``squared`` of `reconstruction_loss` for one H, ()."""
    num_nodes, (edges, loops) = graph.num_nodes, link_scores(graph, hidden, engine)
    score = pair_dot(hidden, pairs.low, pairs.high, engine)
    sampled = torch.sigmoid(score).square().masked_fill(pairs.is_edge, 0.0)
    return (
        torch.sigmoid(loops).square().sum()
        + 2 * (torch.sigmoid(edges) - 1).square().sum()
        + num_nodes * (num_nodes - 1) * sampled.sum() / max(len(score), 1)
    )
