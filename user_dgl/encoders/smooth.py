"""Encoder without weights of its own: features smoothed over A'."""

import torch
from torch import nn

from user_dgl.encoders.base import Encoder
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.propagation import Propagator, smooth


class Smooth(Encoder):
    r"""Unit rows of :math:`a Z + \frac{1 - a}{K} \sum_{t=1}^K S^t Z`.

    Not in the paper. Nothing is learned but S, so there is nothing to overfit to a wrong edge.

    Parameters
    ----------
    points : Tensor (N, d)
        Z, see `user_dgl.clustering.smoothed_view`.
    hops : int
        K.
    self_share : float
        a.
    """

    def __init__(self, points: torch.Tensor, hops: int, self_share: float):
        super().__init__()
        # Computed again from the data when training goes on from a checkpoint.
        self.register_buffer("points", points, persistent=False)
        self.hops, self.self_share = hops, self_share
        self.out_feats = points.shape[1]

    def forward(self, propagation: Propagator, features: FeatureMatrix) -> torch.Tensor:
        """Embeddings H (N, d); rows of nodes without features or neighbours stay 0."""
        smoothed = smooth(propagation, self.points, self.hops, self.self_share)
        return nn.functional.normalize(smoothed, dim=1)
