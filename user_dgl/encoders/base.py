"""What a supported model is: an encoder, and what it learns from without USER."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.graph.pairs import SampledPairs
from user_dgl.graph.propagation import Propagator


class Pass(NamedTuple):
    """A forward pass of an encoder over a whole graph, for its own loss.

    Attributes
    ----------
    graph : Graph
        Observed graph, whose edges are to be reconstructed.
    propagation : Propagator
        S that the encoder read, of A'.
    features : FeatureMatrix
    hidden : Tensor (N, d)
        H.
    beside
        What `Encoder.encode` gave beside H.
    pairs : callable
        Gives pairs drawn for non-edges: one draw serves all replicas, so that their losses compare.
    generator : torch.Generator or None
        Of all other draws.
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

    Those with weights are made of:

    Parameters
    ----------
    in_feats : int
    hidden_feats : sequence of int
        Width of each layer; the last is the width of H.
    dropout : float
        Between layers.

    Attributes
    ----------
    out_feats : int
    normed : bool
        Whether the head reads H through BatchNorm: without, where a loss of the model's own gives H
        a mean far from 0, all nodes start in few clusters and NPSI empties the others.
    """

    out_feats: int
    normed: ClassVar[bool] = False

    def encode(self, propagation: Propagator, features: FeatureMatrix) -> tuple[torch.Tensor, Any]:
        """H (N, out_feats), and what else of the pass the model's own loss reads."""
        return self(propagation, features), None

    def supporting_loss(self, made: Pass) -> dict[str, torch.Tensor]:
        """Terms () of the model's own loss, the paper's L_S; none where it has none."""
        return {}
