"""Graph convolutional encoder of the authors' code: Kipf and Welling (2017) with BatchNorm."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import nn

from user_dgl.encoders.base import Encoder
from user_dgl.encoders.dropout import Dropout
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.propagation import Propagator

_EPS = 1e-5  # as in torch.nn.BatchNorm1d


class InputBatchNormLinear(nn.Module):
    r"""BatchNorm of the features, followed by a linear map. Sparse features stay sparse.

    .. math::
        \left(\frac{X - \mu}{\sigma} \gamma + b\right) W
        = X W' - \mu W' + b W, \qquad W' = \mathrm{diag}(\gamma / \sigma) W

    Mean and variance are those of all nodes, in training and afterwards, because X never changes.
    (The running averages of torch converge to the same values.)

    Parameters
    ----------
    in_feats, out_feats : int
    """

    def __init__(self, in_feats: int, out_feats: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(in_feats))
        self.beta = nn.Parameter(torch.zeros(in_feats))
        self.linear = nn.Linear(in_feats, out_feats, bias=False)

    def forward(self, features: FeatureMatrix) -> torch.Tensor:
        """Map features (N, F) to (N, out_feats)."""
        scale = self.gamma * (features.column_variance + _EPS).rsqrt()  # (F,)
        weight = self.linear.weight.t()  # (F, out)
        return features.centred_matmul(scale[:, None] * weight).add_(self.beta @ weight)


class GCN(Encoder):
    r"""Layers :math:`H \leftarrow \mathrm{BN}(\mathrm{ReLU}(S H W + b))` on normalised features.

    As in the authors' code, there is BatchNorm on the input and after each ReLU, and dropout
    between layers. Also after training, BatchNorm uses the statistics of the nodes of the graph, so
    that the final state does not depend on running averages.
    """

    def __init__(self, in_feats: int, hidden_feats: Sequence[int], dropout: float):
        super().__init__()
        self.first = InputBatchNormLinear(in_feats, hidden_feats[0])
        self.linears = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(hidden_feats))
        self.biases = nn.ParameterList(torch.zeros(width) for width in hidden_feats)
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(width, eps=_EPS, track_running_stats=False) for width in hidden_feats
        )
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in self.linears)
        self.out_feats = hidden_feats[-1]

    def forward(self, propagation: Propagator, features: FeatureMatrix) -> torch.Tensor:
        """Embeddings H (N, out_feats)."""
        hidden = self.first(features)
        for layer, (bias, norm) in enumerate(zip(self.biases, self.norms, strict=True)):
            if layer:
                hidden = self.linears[layer - 1](self.dropouts[layer - 1](hidden))
            hidden = propagation(hidden).add_(bias).relu_()
            hidden = propagation.extend(
                layer, propagation.normalise(layer, cast(nn.BatchNorm1d, norm), hidden)
            )
        return hidden
