"""Encoder of GraphSAGE with mean aggregation (Hamilton et al., 2017)."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import normalize, softplus

from user_dgl.encoders.base import Encoder, Pass
from user_dgl.encoders.dropout import Dropout
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.ops import edge_dot, pair_dot
from user_dgl.graph.propagation import Propagator

# Q of Hamilton et al., the weight of the random pairs relative to the neighbours.
_NEGATIVES = 20


class SAGE(Encoder):
    r"""Layers :math:`H \leftarrow \mathrm{ReLU}(H W + M H V)`, the last one without ReLU; no bias.

    M takes the mean over a node and its neighbours, weighted by S. The rows of the final H are
    scaled to norm 1.
    """

    normed = True

    def __init__(self, in_feats: int, hidden_feats: Sequence[int], dropout: float):
        super().__init__()
        widths = (in_feats, *hidden_feats)

        def weights() -> nn.ParameterList:
            return nn.ParameterList(
                nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths)
            )

        self.own, self.neighbours = weights(), weights()
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in hidden_feats[1:])
        self.out_feats = hidden_feats[-1]

    def forward(self, propagation: Propagator, features: FeatureMatrix) -> torch.Tensor:
        """Embeddings H (N, out_feats)."""
        total = propagation(features.column_mean.new_ones(features.shape[0], 1))
        own, others = features.matmul(torch.cat([self.own[0], self.neighbours[0]], 1)).chunk(2, 1)
        hidden = own + propagation(others.contiguous()) / total
        for layer, dropout in enumerate(self.dropouts, start=1):
            hidden = dropout(torch.relu(hidden))
            mean = propagation(hidden @ self.neighbours[layer]) / total
            hidden = hidden @ self.own[layer] + mean
        return normalize(hidden, dim=1)

    def supporting_loss(self, made: Pass) -> dict[str, torch.Tensor]:
        """Loss under which neighbours have similar and Q random pairs have dissimilar embeddings.

        It is the unsupervised loss of GraphSAGE with random walks of length 1.
        """
        graph, hidden, engine, pairs = made.graph, made.hidden, made.engine, made.pairs()
        if not graph.num_edges:
            return {}
        near = softplus(-edge_dot(graph, hidden, engine)).mean()
        far = softplus(pair_dot(hidden, pairs.low, pairs.high, engine)).mean()
        return {"neighbours": near + _NEGATIVES * far}
