"""Encoder of Deep Graph Infomax (Velickovic et al., 2019)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from user_dgl.encoders.base import Encoder, Pass
from user_dgl.encoders.dropout import Dropout
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.propagation import Propagator
from user_dgl.losses.discriminators import GraphSummary


class PReLU(nn.PReLU):
    """``torch.nn.PReLU`` with one slope. Its backward pass takes a quarter of the time."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the activation to a tensor of any shape."""
        return _PReLU.apply(input, self.weight)


class _PReLU(torch.autograd.Function):
    """PReLU, differentiable in x and in the slope (1,)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, slope)
        return torch.prelu(x, slope)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, slope = ctx.saved_tensors
        grad_x = torch.ops.aten.leaky_relu_backward(grad, x, slope.item(), False)
        return grad_x, torch.dot(grad.reshape(-1), x.clamp_max(0).reshape(-1)).view(1)


class PReLUConvolutions(Encoder):
    r"""Layers :math:`H \leftarrow \mathrm{PReLU}(S H W + b)`."""

    def __init__(self, in_feats: int, hidden_feats: Sequence[int], dropout: float = 0.0):
        super().__init__()
        widths = (in_feats, *hidden_feats)
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths)
        )
        self.biases = nn.ParameterList(torch.zeros(width) for width in hidden_feats)
        self.dropouts = nn.ModuleList(Dropout(dropout) for _ in hidden_feats[1:])
        self.activations = nn.ModuleList(PReLU() for _ in hidden_feats)
        self.out_feats = hidden_feats[-1]

    def forward(self, propagation: Propagator, features: FeatureMatrix) -> torch.Tensor:
        """Embeddings H (N, out_feats)."""
        return self.convolve(propagation, self.project(features))

    # `project` and `convolve` are separate methods for losses that also embed corrupted features:
    # they can reuse the product with X, which is the most expensive step.

    def project(
        self, features: FeatureMatrix, keeps_column: torch.Tensor | None = None
    ) -> torch.Tensor:
        """X W (N, width) of the first layer, columns of X multiplied by ``keeps_column`` (F,)."""
        weight = self.weights[0]
        return features.matmul(weight if keeps_column is None else keeps_column[:, None] * weight)

    def convolve(self, propagation: Propagator, hidden: torch.Tensor) -> torch.Tensor:
        """Embeddings H (N, out_feats) from X W. Permuted rows of X W shuffle the features."""
        for layer, (bias, activation) in enumerate(zip(self.biases, self.activations, strict=True)):
            if layer:
                hidden = self.dropouts[layer - 1](hidden) @ self.weights[layer]
            hidden = activation(propagation(hidden) + bias)
        return hidden


class DGI(PReLUConvolutions):
    """Encoder trained to distinguish the graph from the same graph with shuffled features.

    The paper of Deep Graph Infomax uses a single layer.
    """

    normed = True

    def __init__(self, in_feats: int, hidden_feats: Sequence[int], dropout: float = 0.0):
        super().__init__(in_feats, hidden_feats, dropout)
        self.summary = GraphSummary(self.out_feats)

    def supporting_loss(self, made: Pass) -> dict[str, torch.Tensor]:
        """Loss of the mutual information between the nodes and a summary of the graph."""
        order = torch.randperm(len(made.hidden), generator=made.generator)
        shuffled = self.project(made.features).index_select(0, order.to(made.hidden.device))
        corrupted = self.convolve(made.propagation, shuffled)
        return {"mutual_information": self.summary.loss(made.hidden, corrupted)}
