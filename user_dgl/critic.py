r"""Edge critic: from the features alone, which observed edges look like random pairs.

Not in the paper. A network that sees no edge at inference learns to map the ends of edges close
together. It is cross-fitted: each edge is scored by a network whose training left it out, for a
network that has seen an edge finds it likely, noise or not. Scores of random pairs give the null
distribution, and comparing both gives the share of edges that look random and a weight for each.

The contrast is that of NS4GC (Liu et al., TKDE 2024) with its N x N term sampled and its encoder
stripped of edges; the share is Storey's estimate (2002), the weight one minus the local false
discovery rate.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from sklearn.isotonic import IsotonicRegression
from torch import nn

from user_dgl.config import CriticConfig
from user_dgl.feature_matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.ops import edge_dot, neighbor_sum

# The least weight of an edge: a weight of 0 could not be learned away from.
_LEAST_WEIGHT = 0.01


@dataclass(frozen=True, eq=False)
class Criticism:
    """What the critic says of a graph.

    Attributes
    ----------
    weight : float32 (E,)
        In [0.01, 1], higher for an edge that the features support.
    noise_share : float
        Estimated share of the edges that look like random pairs, in [0, 1].
    """

    weight: np.ndarray
    noise_share: float


def criticise(
    graph: Graph, features: FeatureMatrix, config: CriticConfig, seed: int, engine: str
) -> Criticism:
    """Weight each observed edge by critics that were not trained on it.

    Parameters
    ----------
    graph : Graph
    features : FeatureMatrix
    config : CriticConfig
    seed : int
    engine : str

    Returns
    -------
    Criticism
    """
    if graph.num_edges < config.folds or graph.num_nodes < 3:
        return Criticism(np.ones(graph.num_edges, dtype=np.float32), 0.0)
    rng = np.random.default_rng([seed, 1])
    fold_of = rng.permutation(graph.num_edges) % config.folds
    keys, num_nodes = graph.keys, graph.num_nodes
    edge_score, null_score = np.empty(graph.num_edges, dtype=np.float32), []
    for fold in range(config.folds):
        left_out = fold_of == fold
        seen = Graph.from_keys(num_nodes, keys[~left_out]).to(features.device)
        embedding = _fit(seen, features, config, int(rng.integers(2**31)), engine)
        held = Graph.from_keys(num_nodes, keys[left_out]).to(features.device)
        edge_score[left_out] = edge_dot(held, embedding, engine).cpu().numpy()
        u, v = rng.integers(0, num_nodes, (2, max(int(left_out.sum()), 1000)))
        random, _ = Graph.from_edges(num_nodes, u, v)
        null_score.append(edge_dot(random.to(features.device), embedding, engine).cpu().numpy())
    null_score = np.concatenate(null_score)
    share = noise_share(edge_score, null_score)
    return Criticism(edge_weight(edge_score, null_score, share), share)


def noise_share(edge_score: np.ndarray, null_score: np.ndarray) -> float:
    r"""Storey's estimate: twice the share of edges that score below the median random pair.

    Half of all random pairs lie there and, if real edges score high, next to no real edge.
    """
    return float(min(np.mean(edge_score < np.median(null_score)) / 0.5, 1.0))


def edge_weight(edge_score: np.ndarray, null_score: np.ndarray, share: float) -> np.ndarray:
    r"""One minus the local false discovery rate, :math:`1 - \pi_0 p_0(c_e) / p(c_e)`.

    The ratio of densities comes from the odds that an isotonic regression gives a score to be an
    edge's rather than a random pair's; so a higher score never gets a lower weight.

    Parameters
    ----------
    edge_score : (E,)
    null_score : (R,)
    share : float
        :math:`\pi_0`.

    Returns
    -------
    float32 (E,) in [0.01, 1]
    """
    score = np.concatenate([edge_score, null_score])
    is_edge = np.concatenate([np.ones(len(edge_score)), np.zeros(len(null_score))])
    chance = IsotonicRegression(out_of_bounds="clip").fit(score, is_edge).predict(edge_score)
    with np.errstate(divide="ignore"):
        null_over_edge = (1 - chance) / chance * (len(edge_score) / len(null_score))
    return np.clip(1 - share * null_over_edge, _LEAST_WEIGHT, 1.0).astype(np.float32)


def _fit(
    graph: Graph, features: FeatureMatrix, config: CriticConfig, seed: int, engine: str
) -> torch.Tensor:
    """Unit embeddings (N, d) of a network trained on the edges of ``graph``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _Network(features.shape[1], config.hidden_feats).to(features.device)
        optimizer = torch.optim.Adam(
            network.parameters(), lr=config.lr, weight_decay=config.weight_decay
        )
        for _ in range(config.epochs):
            loss = _contrast(network, graph, features, config, engine)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            return network(features)


def _contrast(network, graph, features, config, engine) -> torch.Tensor:
    r"""Pull two maskings of a node and the ends of edges together, push random pairs apart.

    .. math::
        -\frac1N \sum_i \langle f_i, f'_i \rangle
        - \frac{1}{2E} \sum_{u \sim v} \langle f_u, f'_v \rangle
        + \frac{1}{N |R|} \sum_{i, r \in R} \sigma((\langle f_i, f'_r \rangle - s) / \tau)
    """
    first, second = (network(features, config.column_mask) for _ in range(2))
    ones = first.new_ones(graph.num_edges)
    # Both directions of every edge in one product, without an (E, d) tensor.
    together = (first * neighbor_sum(graph, ones, second, engine)).sum() / (2 * graph.num_edges)
    sampled = torch.randint(len(first), (min(config.num_negatives, len(first)),))
    apart = torch.sigmoid((first @ second[sampled].t() - config.margin) / config.temperature)
    return apart.mean() - (first * second).sum(1).mean() - together


class _Network(nn.Module):
    """Perceptron on sparse features with unit outputs."""

    def __init__(self, in_feats: int, hidden_feats):
        super().__init__()
        self.first = nn.Linear(in_feats, hidden_feats[0])
        widths = list(hidden_feats)
        self.rest = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        for layer in (self.first, *self.rest):
            nn.init.xavier_uniform_(layer.weight)
            # Unit rows of many columns make small sums, which a random bias would drown.
            nn.init.zeros_(layer.bias)

    def forward(self, features: FeatureMatrix, column_mask: float = 0.0) -> torch.Tensor:
        weight = self.first.weight.t()
        if column_mask:
            kept = torch.rand(len(weight), 1, device=weight.device) >= column_mask
            weight = weight * kept
        hidden = features.matmul(weight) + self.first.bias
        for layer in self.rest:
            hidden = layer(torch.relu(hidden))
        return nn.functional.normalize(hidden, dim=1)
