"""Encoder without weights: features smoothed over A'."""

import torch
from torch import nn

from user_dgl.encoders.base import Encoder
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.propagation import Propagator, smooth


class Smooth(Encoder):
    r""":math:`H = a Z + \frac{1 - a}{K} \sum_{t=1}^K S^t Z`, with rows scaled to norm 1.

    Not in the paper. Only S is learned, so no weights can overfit to a wrong edge.

    Parameters
    ----------
    points : Tensor (N, d)
        Z, see `user_dgl.clustering.smoothed_view`.
    hops : int
        K.
    self_share : float
        a.
    """

    points: torch.Tensor

    def __init__(self, points: torch.Tensor, hops: int, self_share: float):
        super().__init__()
        # Not saved in checkpoints, because a resumed run computes it again from the data.
        self.register_buffer("points", points, persistent=False)
        self.hops, self.self_share = hops, self_share
        self.out_feats = points.shape[1]

    def forward(self, propagation: Propagator, features: FeatureMatrix) -> torch.Tensor:
        """Embeddings H (N, d).

        The row of a node is 0 if neither its features nor those of its neighbours have a part in
        the axes of the points.
        """
        smoothed = smooth(propagation, self.points, self.hops, self.self_share)
        return nn.functional.normalize(smoothed, dim=1)
