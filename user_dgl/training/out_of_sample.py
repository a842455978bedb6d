r"""Clusters of new nodes, which were not in the graph when the model was trained.

Nothing is trained. S is extended by one row for each new node, computed from the edges that are
given for it. With :math:`D_i = 1 + \sum_j w_{ij}` for a new node i, its row has
:math:`w_{ij} / \sqrt{D_i D_j}` and, on the diagonal, :math:`D_i^{-1}`. The rows of the fitted nodes
do not change. So a new node changes neither the fitted nodes nor the new nodes to which it has no
edge. A new node with the features of a fitted node, and with its row of the weights that the
features were smoothed with, gets the same embedding.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.metrics import pairwise_distances_argmin
from torch import nn

from user_dgl.clustering.consensus import joined_points
from user_dgl.clustering.smoothing import Projection, without_rounding
from user_dgl.encoders.smooth import Smooth
from user_dgl.features.matrix import ColumnStatistics, FeatureMatrix
from user_dgl.graph.csr_engine import csr_product, csr_tensor
from user_dgl.graph.propagation import Propagation, Propagator
from user_dgl.model import USER
from user_dgl.training.result import TrainingResult
from user_dgl.training.trainer import Trainer


class ExtendedPropagation(Propagator):
    """S of N fitted nodes followed by M new nodes.

    Parameters
    ----------
    fitted : Propagation
        S of the fitted nodes.
    rows : scipy CSR (M, N + M)
        Rows of S of the new nodes.
    """

    def __init__(self, fitted: Propagation, rows: sp.csr_matrix):
        self._fitted, self._num_fitted = fitted, fitted.graph.num_nodes
        indptr, indices, values = map(torch.from_numpy, (rows.indptr, rows.indices, rows.data))
        self._rows = csr_tensor(indptr, indices, values.to(fitted.off_diagonal), rows.shape)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Compute S x for x (N + M, d)."""
        return torch.cat([self._fitted(x[: self._num_fitted]), csr_product(self._rows, x)])

    def normalise(self, layer: int, norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        """Apply BatchNorm with the statistics of the fitted nodes."""
        return _by_first_rows(self._num_fitted, norm, x)

    def extend(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Return the output of a layer as it is, because it has the rows of all nodes."""
        return hidden


def _by_first_rows(num_rows: int, norm: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Apply BatchNorm, if the norm is one, with the statistics of the first rows of x."""
    if not isinstance(norm, nn.BatchNorm1d):
        return norm(x)
    fitted = x[:num_rows]
    mean, variance = fitted.mean(0), fitted.var(0, correction=0)
    return nn.functional.batch_norm(x, mean, variance, norm.weight, norm.bias, eps=norm.eps)


class OutOfSample:
    """Assignment of new nodes to the clusters of a trained model.

    Parameters
    ----------
    trainer : Trainer
        Trainer after `fit`. Its model is moved to the CPU and must not be used by it any more.
    fit : TrainingResult
        Result of the trainer's `fit`.
    feat : scipy CSR (N, F)
        Features with which it was trained.
    """

    def __init__(self, trainer: Trainer, fit: TrainingResult, feat: sp.csr_matrix):
        self._model = model = trainer.model.cpu().eval()
        model.structure.graph = model.structure.graph.to("cpu")
        model.set_structure(model.structure)
        self._best, self._labels_from = int(np.argmin(fit.restart_losses)), fit.labels_from
        self._consensus, self._dtype = trainer.config.train.consensus, trainer.features.dtype
        # With a view, the encoder already has the projected features of the fitted nodes.
        view = trainer.view
        self._feat: sp.csr_matrix | None = feat if view is None else None
        self._projection: Projection | None = None if view is None else view.projection
        self._reads_edges = view is not None and view.reads_edges
        if fit.labels_from != "head":
            # `_seen` needs at least one new node. One without edges and features changes no other.
            num_nodes, num_columns = feat.shape
            alone = sp.csr_matrix((1, num_nodes + 1)), sp.csr_matrix((1, num_columns))
            points, clusters = self._seen(*alone)[:num_nodes], fit.clusters
            self._found = np.unique(clusters)
            self._means = np.stack([points[clusters == k].mean(0) for k in self._found])

    def assign(self, weight: sp.csr_matrix, feat: sp.csr_matrix) -> np.ndarray:
        """Assign new nodes to clusters.

        If the clusters of the fit come from the head, the head assigns the new nodes too. If they
        come from the view, a new node is assigned to the cluster with the nearest mean.

        Parameters
        ----------
        weight : scipy CSR (M, N + M)
            Weights in A' of the edges of the new nodes, to the fitted nodes and to each other.
            Self-loops are not allowed.
        feat : scipy CSR (M, F)
            Features of the new nodes, prepared in the same way as those of the fit.

        Returns
        -------
        int64 ndarray (M,)
        """
        seen = self._seen(weight, feat)[-weight.shape[0] :]
        if self._labels_from == "head":
            return seen.argmax(1)
        return self._found[pairwise_distances_argmin(seen, self._means)]

    @torch.no_grad()
    def _seen(self, weight: sp.csr_matrix, feat: sp.csr_matrix) -> np.ndarray:
        """Compute the rows that decide the clusters: logits (N + M, K) or points of k-means."""
        model = self._model
        if self._reads_edges:
            feat = weight[:, : model.structure.graph.num_nodes]
        propagations = tuple(_extended(model, own, weight) for own in model.structure().unbind())
        hidden = self._hidden(model.of_each(propagations), feat)
        if self._labels_from in ("kmeans", "code"):
            return hidden[0].numpy()
        by_fitted = partial(_by_first_rows, model.structure.graph.num_nodes)
        logits, _ = model.logits(hidden, propagations, by_fitted)
        if self._labels_from == "head":
            return logits[:, self._best].numpy()
        embeddings = [h.numpy() for h in model.read_by_heads(hidden, propagations)]
        return joined_points(self._consensus, torch.softmax(logits, 2).numpy(), embeddings)

    def _hidden(self, of_each: Sequence[Propagator], feat: sp.csr_matrix) -> list[torch.Tensor]:
        """Compute H (N + M, d) of each replica from the propagation of each replica."""
        encoders = self._model.encoders
        if self._projection is None:
            columns = ColumnStatistics.of(self._feat)
            both = sp.vstack([self._feat, feat], format="csr")
            features = FeatureMatrix(both, self._dtype, columns=columns)
            return [encoder(s, features) for encoder, s in zip(encoders, of_each, strict=True)]
        (encoder,) = encoders
        assert isinstance(encoder, Smooth)
        fitted = encoder.points
        assert isinstance(fitted, torch.Tensor)  # a buffer, whose type torch does not declare
        new = self._projection(feat)
        if not self._reads_edges:
            without_rounding(new, torch.linalg.matrix_norm(self._projection.matrix))
        points = torch.cat([fitted, new.to(fitted)])
        return [type(encoder)(points, encoder.hops, encoder.self_share)(of_each[0], None)]


def _extended(model: USER, own: torch.Tensor, weight: sp.csr_matrix) -> ExtendedPropagation:
    """Build the extended S from weights of A': fitted pairs (P,) and new rows (M, N + M)."""
    graph, mix = model.structure.graph, model.config.observed_mix
    fitted = model.propagation(own)
    if mix:
        # As in `USER.propagation`. Each edge of a new node counts as an observed edge, with its
        # weight if the edges of the data have weights.
        in_data = model.structure.observed * graph.edge_weight.to(own)
        observed = Propagation.of(graph, in_data, model.engine)
        learned = Propagation.of(graph, own, model.engine)
        new = weight.astype(bool).astype(np.float64) if graph.weight is None else weight
        norm, _ = _normalised(new, observed)
        learned_norm, _ = _normalised(weight, learned)
        weight = mix * norm + (1 - mix) * learned_norm
    rows, diagonal = _normalised(weight, fitted)
    new = np.arange(len(diagonal))
    loops = sp.coo_matrix((diagonal, (new, graph.num_nodes + new)), shape=rows.shape)
    return ExtendedPropagation(fitted, sp.csr_matrix(rows + loops))


def _normalised(weight: sp.csr_matrix, fitted: Propagation) -> tuple[sp.csr_matrix, np.ndarray]:
    """Compute rows of S of new nodes: without the diagonal (M, N + M), and the diagonal (M,)."""
    diagonal = 1 / (1 + np.asarray(weight.sum(axis=1), dtype=np.float64).ravel())
    scale = np.sqrt(np.concatenate([fitted.diagonal.numpy(), diagonal]))
    return sp.diags(np.sqrt(diagonal)) @ weight @ sp.diags(scale), diagonal
