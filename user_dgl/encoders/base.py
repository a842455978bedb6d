"""Base class of the supported models: an encoder and, possibly, its own loss."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.graph.pairs import SampledPairs
from user_dgl.graph.propagation import Propagator


class Pass(NamedTuple):
    """A forward pass of an encoder over a whole graph, as the input of its own loss.

    Attributes
    ----------
    graph : Graph
        Observed graph, whose edges the loss reconstructs.
    propagation : Propagator
        S that the encoder used, computed from A'.
    features : FeatureMatrix
    hidden : Tensor (N, d)
        H.
    beside
        The second output of `Encoder.encode`.
    pairs : callable
        Returns pairs drawn for non-edges. All replicas get the same pairs, so that their losses can
        be compared.
    generator : torch.Generator or None
        Random generator of all other draws.
    engine : str
    """

    graph: Graph
    propagation: Propagator
    features: FeatureMatrix
    hidden: torch.Tensor
    beside: Any
    pairs: Callable[[], SampledPairs]
    generator: torch.Generator | None
    engine: str


class Encoder(nn.Module):
    """Maps S and X to embeddings H (N, out_feats).

    Encoders with weights have these parameters:

    Parameters
    ----------
    in_feats : int
        Number of columns of X.
    hidden_feats : sequence of int
        Width of each layer. The last one is the width of H.
    dropout : float
        Dropout rate between layers.

    Attributes
    ----------
    out_feats : int
    normed : bool
        Whether BatchNorm is applied to H before the head. If the encoder's own loss gives H a mean
        far from 0, BatchNorm is needed: without it all nodes start in few clusters, and NPSI
        empties the others.
    """

    out_feats: int
    normed: ClassVar[bool] = False

    def encode(self, propagation: Propagator, features: FeatureMatrix) -> tuple[torch.Tensor, Any]:
        """Compute H (N, out_feats), and any other results that the encoder's own loss needs."""
        return self(propagation, features), None

    def supporting_loss(self, made: Pass) -> dict[str, torch.Tensor]:
        """Terms () of the encoder's own loss, the paper's L_S. Empty if it has no own loss."""
        return {}
