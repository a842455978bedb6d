"""Encoder of the graph autoencoder (Kipf and Welling, 2016), the encoder in the paper's text."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from user_dgl.encoders.base import Encoder
from user_dgl.encoders.dropout import Dropout
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.propagation import Propagator


class GAE(Encoder):
    r"""Layers :math:`H \leftarrow \mathrm{ReLU}(S H W)`, without ReLU in the last one."""

    def __init__(self, in_feats: int, hidden_feats: Sequence[int], dropout: float):
        super().__init__()
        widths = (in_feats, *hidden_feats)
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths)
        )
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in hidden_feats[1:])
        self.out_feats = hidden_feats[-1]

    def forward(self, propagation: Propagator, features: FeatureMatrix) -> torch.Tensor:
        """Embeddings H (N, out_feats)."""
        hidden = propagation.extend(0, propagation(features.matmul(self.weights[0])))
        for layer, weight in enumerate(list(self.weights)[1:], start=1):
            hidden = self.dropouts[layer - 1](torch.relu(hidden))
            hidden = propagation.extend(layer, propagation(hidden @ weight))
        return hidden
