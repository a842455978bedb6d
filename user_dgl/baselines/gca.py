"""Graph contrastive learning with adaptive augmentation (Zhu et al., 2021), by degree."""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.functional import normalize

from user_dgl.baselines.base import Baseline, Problem, Terms, required
from user_dgl.config import BaselineConfig
from user_dgl.encoders import dgi as encoder

# Mean rates at which each of the two views loses edges and feature columns, and the temperature.
# The authors give no settings for Cora and Citeseer; these are the ones of their GRACE for Cora.
_EDGE_RATES, _COLUMN_RATES, _TEMPERATURE = (0.2, 0.4), (0.3, 0.4), 0.4
_MOST_RATE = 0.7
# Upper bound of the number of nodes that an epoch contrasts with each other.
_CONTRASTED = 4096


class GCA(Baseline):
    """Trains the embeddings of a node in two views to agree, and to differ from all other nodes.

    A view loses edges between nodes of low degree more often than other edges, and feature columns
    that such nodes have more often than other columns. A graph of more than 4,096 nodes contrasts
    4,096 nodes in an epoch, drawn anew each time.
    """

    defaults = BaselineConfig(
        epochs=200, lr=5e-4, weight_decay=1e-5, hidden_feats=(256, 128), row_norm="l1"
    )
    encoder_name = "dgi"

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.encoder = encoder.PReLUConvolutions(
            problem.features.shape[1], required(problem.settings.hidden_feats)
        )
        width = self.encoder.out_feats
        self.projection = nn.Sequential(nn.Linear(width, width), nn.ELU(), nn.Linear(width, width))
        degree = problem.graph.degree.to(problem.features.dtype)
        of_edge = (degree[problem.graph.src] + degree[problem.graph.dst]) / 2
        self._edge_rate = _relative_rate(of_edge)
        # As in the authors' code, a feature counts by whether a node has it, not by its value.
        of_column = torch.from_numpy((problem.feat != 0).T @ degree.cpu().numpy())
        self._column_rate = _relative_rate(of_column.to(degree))

    @staticmethod
    def bytes_beside(num_nodes: int, settings: BaselineConfig) -> float:
        # Exponentials across the views and within each view, and as many in the backward pass.
        return 6 * 4.0 * min(num_nodes, _CONTRASTED) ** 2

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        first, second = (
            normalize(self.projection(self._view(edges, columns)), dim=1)
            for edges, columns in zip(_EDGE_RATES, _COLUMN_RATES, strict=True)
        )
        drawn = torch.randperm(len(first))[:_CONTRASTED].to(first.device)
        first, second = first[drawn], second[drawn]
        yield "model", {"contrast": _contrast(first, second)}

    def _view(self, edge_rate: float, column_rate: float) -> torch.Tensor:
        """Return embeddings (N, d) of a graph that has lost edges and columns."""
        problem = self.problem
        edges = _kept(self._edge_rate, edge_rate) * problem.graph.edge_weight
        columns = _kept(self._column_rate, column_rate)
        product = self.encoder.project(problem.features, columns)
        return self.encoder.convolve(problem.propagation_of(edges), product)

    def embed(self) -> torch.Tensor:
        return self.encoder(self.problem.propagation, self.problem.features)


def _relative_rate(centrality: torch.Tensor) -> torch.Tensor:
    r"""Return the drop rate of each item over the mean rate; unimportant items drop more often.

    With the centrality w of an item and :math:`s = \log w`, this is
    :math:`(s_{\max} - s) / (s_{\max} - \bar s)`. The mean is over items of positive centrality.
    An item of centrality 0, such as a column that only nodes without neighbours have, gets the rate
    infinity.
    """
    known = centrality > 0
    if not known.any():
        return torch.ones_like(centrality)
    score = centrality.log()
    rate = score.max() - score
    mean = rate[known].mean()
    # Where all items are equally important, they drop equally often.
    return rate / mean if mean > 0 else rate.clamp_min(1.0)


def _kept(relative: torch.Tensor, rate: float) -> torch.Tensor:
    """Draw which items stay: 1 for an edge or column that stays, 0 for one that is dropped."""
    drawn = torch.rand(relative.shape).to(relative)
    return (drawn >= (rate * relative).clamp_max(_MOST_RATE)).to(relative.dtype)


def _contrast(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy of finding a node's other view among all rows, over both views.

    The rows have length 1, so that no exponential is too large to sum.
    """
    across = _exponentials(first, second)
    of_first = across.sum(1) + _sum_of_others(first)
    of_second = across.sum(0) + _sum_of_others(second)
    same = (first * second).sum(1) / _TEMPERATURE
    return ((of_first.log() + of_second.log()) / 2 - same).mean()


def _exponentials(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return (first @ (second.t() / _TEMPERATURE)).exp_()


def _sum_of_others(rows: torch.Tensor) -> torch.Tensor:
    of_all = _exponentials(rows, rows)
    return of_all.sum(1) - of_all.diagonal()
