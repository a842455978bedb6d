"""USER: learned structure, supported encoder, assignment head."""

from dataclasses import dataclass

import torch
from torch import nn

from user_dgl.config import ModelConfig
from user_dgl.encoders import ENCODERS, Propagation
from user_dgl.feature_matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.ops import edge_dot
from user_dgl.structure import LearnedAdjacency


@dataclass(frozen=True, eq=False)
class State:
    """One forward pass.

    Attributes
    ----------
    graph : Graph
        Pairs of A'.
    weight : Tensor (P,)
        A'.
    observed : bool Tensor (P,)
    learnable : bool
    hidden : Tensor (N, d)
        H of the encoder.
    propagation : Propagation
        S that the encoder read.
    clusters : Tensor (N,)
        Arg max of the logits before dropout.
    assignment : Tensor (N, K)
        Y, rows sum to 1.
    """

    graph: Graph
    weight: torch.Tensor
    observed: torch.Tensor
    learnable: bool
    hidden: torch.Tensor
    propagation: Propagation
    clusters: torch.Tensor
    assignment: torch.Tensor


class USER(nn.Module):
    r"""The paper's framework in sparse form.

    :math:`H = \mathrm{GNN}(S, X)` (Eq. 6) and :math:`Y = \mathrm{softmax}(H W^Y)` (Eq. 7), S being
    the normalised A' or, as in the authors' code, the normalised mixture
    :math:`m A_{norm} + (1 - m) A'_{norm}` with m = 0.5.

    Parameters
    ----------
    structure : LearnedAdjacency
    in_feats : int
    config : ModelConfig
        ``num_clusters`` set.
    engine : str
    """

    def __init__(
        self, structure: LearnedAdjacency, in_feats: int, config: ModelConfig, engine: str
    ):
        super().__init__()
        self.config, self.engine = config, engine
        self.encoder = ENCODERS[config.encoder](in_feats, config.hidden_feats, config.dropout)
        self.head = nn.Linear(self.encoder.out_feats, config.num_clusters)
        self.set_structure(structure)

    def set_structure(self, structure: LearnedAdjacency) -> None:
        """Put another A' in place, with the same observed edges."""
        self.structure = structure
        # A_norm never changes: its pair weights are kept, 0 on the candidates.
        observed = structure.observed.to(structure.theta.dtype)
        scale = Propagation.of(structure.graph, observed, self.engine).scale
        norm = observed * edge_dot(structure.graph, scale[:, None], self.engine)
        self.register_buffer("_observed_norm", norm, persistent=False)

    def propagation(self, weight: torch.Tensor) -> Propagation:
        """S for weights A' (P,)."""
        graph, mix = self.structure.graph, self.config.observed_mix
        learned = Propagation.of(graph, weight, self.engine)
        if mix == 0:
            return learned
        # As in the authors' code: both graphs are normalised, mixed without their diagonals, and
        # the mixture is normalised again.
        learned_norm = weight * edge_dot(graph, learned.scale[:, None], self.engine)
        mixture = mix * self._observed_norm + (1 - mix) * learned_norm
        return Propagation.of(graph, mixture, self.engine)

    def forward(self, features: FeatureMatrix) -> State:
        """One pass over the whole graph."""
        config, structure = self.config, self.structure
        weight = structure()
        propagation = self.propagation(weight)
        hidden = self.encoder(propagation, features)
        dropped = nn.functional.dropout(hidden, config.dropout, self.training)
        if config.head == "graph_conv":
            # S (H W) costs K columns where (S H) W would cost d.
            logits = propagation(dropped @ self.head.weight.t()) + self.head.bias
        else:
            logits = self.head(dropped)
        clusters = logits.argmax(1)
        logits = nn.functional.dropout(logits, config.logit_dropout, self.training)
        return State(
            graph=structure.graph,
            weight=weight,
            observed=structure.observed,
            learnable=structure.theta.requires_grad,
            hidden=hidden,
            propagation=propagation,
            clusters=clusters,
            assignment=torch.softmax(logits, 1),
        )

    def embedding(self, state: State) -> torch.Tensor:
        """What the head's linear map reads (N, d): S H with head ``graph_conv``, else H."""
        if self.config.head == "graph_conv":
            return state.propagation(state.hidden)
        return state.hidden
