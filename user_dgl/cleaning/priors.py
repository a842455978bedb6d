"""First weights of the observed edges in A'."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize

from user_dgl.cleaning.posterior import NOISY, edge_posterior
from user_dgl.config import CriticConfig, StructureConfig
from user_dgl.features.cosine import row_dots
from user_dgl.features.rows import ALL, Rows
from user_dgl.graph import Graph
from user_dgl.structure.critic import score_edges
from user_dgl.structure.false_discovery import EdgeScores
from user_dgl.structure.link_critic import score_edges_by_links


@dataclass(frozen=True, eq=False)
class Prior:
    """First weights of the observed edges, and the result of the critic.

    Attributes
    ----------
    weight : float32 Tensor (E,)
        First weight in A': the product of the edge's weight in A and of what the prior says.
    critic_scores : EdgeScores or None
        Result of the critic; None if no critic was used.
    """

    weight: torch.Tensor
    critic_scores: EdgeScores | None = None


def prior_of(
    config: StructureConfig,
    graph: Graph,
    feat: sp.csr_matrix,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
    held: Rows = ALL,
) -> Prior:
    """Compute the first weight of each observed edge in A'.

    It is the weight of the edge in A times

    * ``uniform``, or if A' is not learnable: 1, as in the paper.
    * ``feature_cosine``: see `cosine_weight`.
    * ``critic``: see `user_dgl.structure.critic`.
    * ``posterior``: see `trusted_edges`.
    * ``link_critic``: see `user_dgl.structure.link_critic`.

    Parameters
    ----------
    config : StructureConfig
    graph : Graph
    feat : scipy CSR (N, F)
    seed : int
    engine : str
    held_out : int64 (H,), optional
        Keys of pairs that a critic must not use as random pairs.
    held : Rows
        Of several processes, each finds the weights of its local graph. ``link_critic`` needs the
        whole graph, and ``posterior`` is ``critic`` then.
    """
    if config.prior == "uniform" or not config.learnable or not held.num_edges(graph):
        return Prior(graph.edge_weight)
    if config.prior == "feature_cosine":
        return Prior(_in_graph(graph, cosine_weight(graph, feat, config.prior_power, held)))
    asked = (graph, feat, config.critic, seed, engine, held_out)
    if config.prior == "critic":
        critic_scores = score_edges(*asked, held)
    elif config.prior == "posterior":
        critic_scores = trusted_edges(*asked, held)
    else:
        critic_scores = score_edges_by_links(*asked)
    return Prior(_in_graph(graph, critic_scores.weight), critic_scores)


def trusted_edges(
    graph: Graph,
    feat: sp.csr_matrix,
    config: CriticConfig,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
    held: Rows = ALL,
) -> EdgeScores:
    """Weights of the critic or, where many edges look random, those of two judges.

    The critic is fast, and it is right where the graph has little noise. Where at least 8 % of the
    edges look random to it, `user_dgl.cleaning.posterior.edge_posterior` starts from its weights
    and tells noise from edges better (see the table in the README of this folder). The judges have
    settings of their own; those of the critic only change the weights from which they start.

    The judges need the whole graph. Processes that share a graph do not ask them.

    Parameters and returned value are those of `user_dgl.structure.critic.score_edges`.
    """
    # The judges start from the critic's weights as they are, whatever their power in A' is.
    critic = score_edges(graph, feat, replace(config, power=1.0), seed, engine, held_out, held)
    found = critic
    share = critic.noise_share
    if held.alone and share is not None and share >= NOISY:
        posterior = edge_posterior(graph, feat, seed, engine, critic, held_out, needs_features=True)
        if posterior is not None:
            found = EdgeScores(posterior.probability, posterior.noise_share, by_judges=True)
    return replace(found, weight=found.weight**config.power, power=config.power)


def _in_graph(graph: Graph, factor: np.ndarray) -> torch.Tensor:
    """Product (E,) of the weights of the edges in A and a factor (E,)."""
    weight = torch.from_numpy(factor)
    return weight if graph.weight is None else weight * graph.weight


def cosine_weight(graph: Graph, feat: sp.csr_matrix, power: float, held: Rows = ALL) -> np.ndarray:
    r"""Compute weights of edges from the cosine of the features of their ends (not in the paper).

    With :math:`c_e` the cosine and :math:`\bar c` its mean over the edges, the weight is
    :math:`\mathrm{clip}(c_e / \bar c, 0.05, 4)^p`. All weights are 1 if the mean is not positive.

    Parameters
    ----------
    graph : Graph
    feat : scipy CSR (n, F)
    power : float
        p.
    held : Rows

    Returns
    -------
    float32 (E,)
    """
    ends = graph.src.numpy(), graph.dst.numpy()
    cosine = row_dots(held.extend(normalize(feat)), *ends).astype(np.float32)
    mean = held.mean_of_pairs(cosine)
    if mean <= 0:
        return np.ones_like(cosine)
    return np.clip(cosine / mean, 0.05, 4.0) ** power
