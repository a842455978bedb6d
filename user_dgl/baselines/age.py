"""Adaptive Graph Encoder (Cui et al., 2020)."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from user_dgl.baselines.base import Baseline, Problem, Terms, required
from user_dgl.clustering.kmeans import kmeans
from user_dgl.config import BaselineConfig
from user_dgl.errors import InputError, NonFiniteLossError
from user_dgl.evaluation.floors import smoothed_columns
from user_dgl.evaluation.structure_metrics import davies_bouldin
from user_dgl.features.svd import truncated_svd
from user_dgl.graph.ops import pair_dot
from user_dgl.losses.discriminators import contrast

# Values of the authors' code: the share of the Laplacian that a step of the filter subtracts, the
# epochs between two choices of pairs, and the pairs in an update.
_FILTER, _CHOICE_EVERY, _BATCH = 2 / 3, 10, 10_000
# Also from the authors' code: the share of the most similar pairs that are positive at the end, and
# the share of them that are not negative at the beginning and at the end.
_LAST_POSITIVE, _NOT_NEGATIVE = 0.001, (0.1, 0.5)
# Width that smoothed features are reduced to. The paper trains on all columns.
_COLUMNS = 512
# Eigenvalues below this share of the largest one are rounding errors of 0.
_ROUNDING = 1e-9
# Upper bound of the pairs that a choice of positives and negatives compares.
_SEEN = 20_000_000


class AGE(Baseline):
    """A linear map of smoothed features, trained to make the most similar pairs more similar.

    Positive and negative pairs are chosen among all pairs of a graph of up to 4,472 nodes. In a
    larger graph they are chosen among the pairs of some drawn nodes with all nodes, as many as keep
    the memory and time of a choice constant. The clusters are spectral clusters of the
    similarities. Of all choices of pairs, the one with the lowest Davies-Bouldin index gives the
    result.
    """

    one_layer = True
    defaults = BaselineConfig(
        epochs=400, lr=0.001, hidden_feats=(500,), row_norm="none", hops=8, positive_share=0.011
    )

    points: torch.Tensor
    _positive: torch.Tensor
    _negative: torch.Tensor
    _best: tuple[torch.Tensor, torch.Tensor] | None

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.register_buffer("points", self._smoothed(), persistent=False)
        out_feats = required(problem.settings.hidden_feats)[-1]
        if out_feats < 2:
            raise InputError(
                "baseline.hidden_feats: model.kind=age subtracts the least value of each row, so "
                "that one column is 0: give 2 or more"
            )
        self.linear = nn.Linear(self.points.shape[1], out_feats)
        self._best_index, self._best = math.inf, None
        self._choose(normalize(self.points, dim=1), 0)

    @staticmethod
    def bytes_beside(num_nodes: int, settings: BaselineConfig) -> float:
        # For each compared pair: its similarity, the sorted similarity, its position among the
        # negatives and the number that draws these; in addition four blocks of points.
        return 26.0 * min(num_nodes**2, _SEEN) + 4 * 4.0 * num_nodes * _COLUMNS

    def _smoothed(self) -> torch.Tensor:
        """Return the features (N, d) after the filter."""
        problem, (num_nodes, num_features) = self.problem, self.problem.feat.shape
        columns = smoothed_columns(num_nodes, num_features, problem.num_clusters)
        if columns < num_features:
            dense = truncated_svd(problem.feat, columns, problem.seed)
        else:
            dense = problem.feat.toarray()
        points = torch.from_numpy(np.ascontiguousarray(dense)).to(problem.features.device)
        for _ in range(required(problem.settings.hops)):
            points = (1 - _FILTER) * points + _FILTER * problem.propagation(points)
        if points.shape[1] > _COLUMNS:
            reduced = truncated_svd(points.cpu().numpy(), _COLUMNS, problem.seed)
            points = torch.from_numpy(np.ascontiguousarray(reduced)).to(points.device)
        return points

    def embed(self) -> torch.Tensor:
        hidden = self.linear(self.points)
        # The authors also divide by the range, which has no effect on rows of length 1.
        return normalize(hidden - hidden.min(1, keepdim=True)[0], dim=1)

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        count = len(self._positive)
        order = torch.randperm(count).to(self._positive.device)
        start = epoch % _CHOICE_EVERY * count
        negative = self._negative[start : start + count]
        for batch, others in zip(order.split(_BATCH), negative.split(_BATCH), strict=True):
            first, second = torch.cat([self._positive[batch], others]).t()
            # As in the authors' code, the cosine is the logit. In the paper it is the probability.
            scores = pair_dot(self.embed(), first, second, self.problem.engine)
            yield "model", {"similarity": contrast(*scores.chunk(2)) / 2}

    def finish_epoch(self, epoch: int) -> None:
        """Choose new pairs every ten epochs, and keep the clusters if they are the best so far."""
        if (epoch + 1) % _CHOICE_EVERY and epoch + 1 < required(self.problem.settings.epochs):
            return
        hidden = self.embed()
        # Rows whose squares overflow are scaled to 0.
        if not torch.isfinite(hidden).all() or not hidden.any():
            raise NonFiniteLossError("the embedding is not finite, or 0: lower baseline.lr")
        self._choose(hidden, epoch + 1)
        clusters, geometry = self._spectral(hidden.double().cpu().numpy())
        index = davies_bouldin(geometry, clusters)
        if (index is not None and index < self._best_index) or self._best is None:
            self._best_index = math.inf if index is None else index
            self._best = hidden.cpu(), torch.from_numpy(clusters)

    def _choose(self, points: torch.Tensor, epoch: int) -> None:
        """Choose positive pairs (P, 2), and negative pairs for the epochs until the next choice."""
        settings, num_nodes = self.problem.settings, len(points)
        done = epoch / required(settings.epochs)
        first_share = required(settings.positive_share)
        share = first_share + done * (_LAST_POSITIVE - first_share)
        not_negative = _NOT_NEGATIVE[0] + done * (_NOT_NEGATIVE[1] - _NOT_NEGATIVE[0])
        rows = torch.randperm(num_nodes)[: max(1, _SEEN // num_nodes)].sort()[0].to(points.device)
        alike = (points[rows] @ points.t()).flatten()

        def pairs(place: torch.Tensor) -> torch.Tensor:
            """Return the pairs (P, 2) at places in ``alike``."""
            return torch.stack([rows[place // num_nodes], place % num_nodes], 1)

        count = max(1, round(share * len(alike)))
        least = alike.kthvalue(len(alike) - count + 1)[0]
        above = torch.nonzero(alike > least).squeeze(1)
        # Both directions of a pair are equally alike, so that the last one may have to be split.
        level = torch.nonzero(alike == least).squeeze(1)[: count - len(above)]
        self._positive = pairs(torch.cat([above, level]).sort()[0])
        most = alike.kthvalue(max(1, round((1 - not_negative) * len(alike))))[0]
        negative = torch.nonzero(alike <= most).squeeze(1)
        drawn = torch.randint(len(negative), (_CHOICE_EVERY * count,)).to(points.device)
        self._negative = pairs(negative[drawn])

    def _spectral(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return spectral clusters (N,) of the similarities Z Z^T, and a geometry for their index.

        The geometry has points with the same distances as the rows of Z Z^T. Both results come from
        products of width d, because the matrix itself would be N x N.
        """
        degree = np.maximum(points @ points.sum(0), 1e-12)
        scaled = points / np.sqrt(degree)[:, None]
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        num_clusters = self.problem.num_clusters
        # With fewer dimensions than clusters, the vectors of the others are rounding.
        kept = np.flatnonzero(values > _ROUNDING * values[-1])[-num_clusters:]
        top = scaled @ vectors[:, kept]
        top /= np.linalg.norm(top, axis=0) * np.sqrt(degree)[:, None]
        # Rescaled from 1 / sqrt(N), because k-means stops by an absolute tolerance.
        clusters = kmeans(top * len(points), num_clusters, self.problem.seed)
        values, vectors = np.linalg.eigh(points.T @ points)
        return clusters, points @ vectors * np.sqrt(np.maximum(values, 0))

    def read_out(self) -> tuple[np.ndarray, np.ndarray]:
        assert self._best is not None, "read_out before the first epoch has ended"
        embedding, clusters = self._best
        return embedding.numpy(), clusters.numpy()

    def get_extra_state(self) -> dict[str, Any]:
        """Return the pairs in use and the best clusters, which belong to a checkpoint."""
        return {
            "positive": self._positive,
            "negative": self._negative,
            "best": self._best,
            "best_index": self._best_index,
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_extra_state` returned."""
        device = self.points.device
        self._positive, self._negative = state["positive"].to(device), state["negative"].to(device)
        self._best, self._best_index = state["best"], state["best_index"]
