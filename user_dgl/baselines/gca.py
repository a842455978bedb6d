"""Graph contrastive learning with adaptive augmentation (Zhu et al., 2021), by degree."""

import torch
from torch import nn
from torch.nn.functional import normalize

from user_dgl.baselines.base import Baseline
from user_dgl.config import BaselineConfig
from user_dgl.encoders import dgi as encoder

# The authors' settings, where none is for Cora and Citeseer those of their GRACE for Cora: mean
# rates at which either view loses edges and columns of the features, temperature.
_EDGE_RATES, _COLUMN_RATES, _TEMPERATURE = (0.2, 0.4), (0.3, 0.4), 0.4
_MOST_RATE = 0.7
# Nodes that an epoch contrasts with each other, all of them up to here.
_CONTRASTED = 4096


class GCA(Baseline):
    """Embeddings of a node in two views alike, and unlike those of all other nodes.

    A view loses edges between nodes of low degree and columns of the features that such nodes have
    more often than others. Beyond 4,096 nodes an epoch contrasts as many, drawn anew.
    """

    defaults = BaselineConfig(
        epochs=200, lr=5e-4, weight_decay=1e-5, hidden_feats=(256, 128), row_norm="l1"
    )
    encoder_name = "dgi"

    def __init__(self, problem):
        super().__init__(problem)
        self.encoder = encoder.PReLUConvolutions(
            problem.features.shape[1], problem.settings.hidden_feats
        )
        width = self.encoder.out_feats
        self.projection = nn.Sequential(nn.Linear(width, width), nn.ELU(), nn.Linear(width, width))
        degree = problem.graph.degree.to(problem.features.dtype)
        of_edge = (degree.log1p()[problem.graph.src] + degree.log1p()[problem.graph.dst]) / 2
        self._edge_rate = _relative_rate(of_edge)
        present = torch.from_numpy((problem.feat != 0).T @ degree.cpu().numpy())
        self._column_rate = _relative_rate(present.to(degree).log1p())

    @staticmethod
    def bytes_beside(num_nodes, settings):
        # The exponentials, across the views and in each, and as much on the way back.
        return 6 * 4.0 * min(num_nodes, _CONTRASTED) ** 2

    def updates(self, epoch):
        first, second = (
            normalize(self.projection(self._view(edges, columns)), dim=1)
            for edges, columns in zip(_EDGE_RATES, _COLUMN_RATES, strict=True)
        )
        drawn = torch.randperm(len(first))[:_CONTRASTED].to(first.device)
        first, second = first[drawn], second[drawn]
        yield "model", {"contrast": _contrast(first, second)}

    def _view(self, edge_rate, column_rate):
        """Embeddings (N, d) of a graph that lost edges and columns."""
        problem = self.problem
        edges = _kept(self._edge_rate, edge_rate)
        columns = _kept(self._column_rate, column_rate)
        product = self.encoder.project(problem.features, columns)
        return self.encoder.convolve(problem.propagation_of(edges), product)

    def embed(self):
        return self.encoder(self.problem.propagation, self.problem.features)


def _relative_rate(importance: torch.Tensor) -> torch.Tensor:
    """How fast to drop each, over the mean: the less important, the faster."""
    if not len(importance):
        return importance
    rate = importance.max() - importance
    return rate / rate.mean() if rate.mean() > 0 else torch.ones_like(rate)


def _kept(relative: torch.Tensor, rate: float) -> torch.Tensor:
    """1 where an edge or a column stays, else 0."""
    drawn = torch.rand(relative.shape).to(relative)
    return (drawn >= (rate * relative).clamp_max(_MOST_RATE)).to(relative.dtype)


def _contrast(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of telling a node's other view from all other rows, mean of both views.

    Rows have length 1, so that no exponential is too large to add up.
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
