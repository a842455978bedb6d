"""USER: learned structure, supported encoders, assignment heads."""

from functools import cache, partial

import torch
from torch import nn

from user_dgl.clustering.smoothed_view import SmoothedView
from user_dgl.config import ModelConfig
from user_dgl.encoders.base import Pass
from user_dgl.encoders.dropout import Dropout
from user_dgl.encoders.registry import encoder_class
from user_dgl.encoders.smooth import Smooth
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph.pairs import sample_pairs
from user_dgl.graph.propagation import Propagation, Propagator
from user_dgl.model.heads import CentroidHead
from user_dgl.model.state import State, columns_of_each
from user_dgl.structure.learned_adjacency import LearnedAdjacency


class USER(nn.Module):
    r"""The paper's framework in sparse form, once or as several replicas side by side.

    :math:`H = \mathrm{GNN}(S, X)` (Eq. 6) and :math:`Y = \mathrm{softmax}(H W^Y)` (Eq. 7), S being
    the normalised A' or, as in the authors' code, the normalised mixture
    :math:`m A_{norm} + (1 - m) A'_{norm}` with m = 0.5.

    Replicas have encoders and heads of their own, initialised independently. What they share is
    computed once: A' and its normalisation, and every product with the graph as narrow as Y.
    Encoders run one after another: their products with the graph and the features are bound by
    memory, and on a CPU a block of (N, d) that fits the cache takes half the time a column of one
    block of (N, R d).

    Parameters
    ----------
    structure : LearnedAdjacency
        With one A' for all replicas or one for each.
    in_feats : int
    config : ModelConfig
        ``num_clusters`` set.
    engine : str
    num_replicas : int
        R.
    view : SmoothedView, optional
        For encoder ``smooth``: where encoder and centroids start.
    """

    def __init__(
        self,
        structure: LearnedAdjacency,
        in_feats: int,
        config: ModelConfig,
        engine: str,
        num_replicas: int = 1,
        view: SmoothedView | None = None,
    ):
        super().__init__()
        self.config, self.engine = config, engine
        self.encoders, self.heads = nn.ModuleList(), nn.ModuleList()
        for _ in range(num_replicas):
            if view is not None:
                self.encoders.append(Smooth(view.points, config.smooth.hops, view.self_share))
                self.heads.append(CentroidHead(view.centroids, config.temperature))
                continue
            encoder = encoder_class(config.encoder)(in_feats, config.hidden_feats, config.dropout)
            self.encoders.append(encoder)
            self.heads.append(nn.Linear(encoder.out_feats, config.num_clusters))
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(encoder.out_feats, track_running_stats=False)
            if encoder.normed
            else nn.Identity()
            for encoder in self.encoders
        )
        self.dropouts = nn.ModuleList(Dropout(config.dropout) for _ in self.heads)
        self.logit_dropout = Dropout(config.logit_dropout)
        self.set_structure(structure)

    def set_structure(self, structure: LearnedAdjacency) -> None:
        """Put another A' in place, with the same observed edges."""
        self.structure, self._encoded = structure, None
        if not self.config.observed_mix:
            return
        # A_norm never changes: its pair weights are kept, 0 on the candidates.
        observed = structure.observed.to(structure.theta.dtype)
        norm = Propagation.of(structure.graph, observed, self.engine).off_diagonal
        self.register_buffer("_observed_norm", norm, persistent=False)

    def propagation(self, weight: torch.Tensor) -> Propagation:
        """S for weights A' (P,)."""
        graph, mix = self.structure.graph, self.config.observed_mix
        learned = Propagation.of(graph, weight, self.engine)
        if mix == 0:
            return learned
        # As in the authors' code: both graphs are normalised, mixed without their diagonals, and
        # the mixture is normalised again.
        mixture = mix * self._observed_norm + (1 - mix) * learned.off_diagonal
        return Propagation.of(graph, mixture, self.engine)

    def forward(self, features: FeatureMatrix) -> State:
        """One pass over the whole graph."""
        structure = self.structure
        weights, propagations, encoded = self._encode(features)
        hidden = tuple(h for h, _ in encoded)
        logits, dropped = self.logits(hidden, propagations)
        return State(
            graph=structure.graph,
            weights=weights,
            observed=structure.observed,
            learnable=structure.learnable,
            hidden=hidden,
            propagations=propagations,
            logits=logits,
            clusters=logits.argmax(2),
            assignment=torch.softmax(dropped, 2),
            supporting=partial(self._supporting, features, encoded, propagations),
        )

    def _supporting(
        self, features, encoded, propagations, observed, samples_per_node, generator
    ) -> list[dict[str, torch.Tensor]]:
        """Terms () of each encoder's own loss."""
        num_samples = samples_per_node * observed.num_nodes
        pairs = cache(lambda: sample_pairs(observed, num_samples, generator))
        return [
            encoder.supporting_loss(
                Pass(observed, s, features, *each, pairs, generator, self.engine)
            )
            for encoder, s, each in zip(
                self.encoders, self.of_each(propagations), encoded, strict=True
            )
        ]

    def forward_part(
        self, features: FeatureMatrix, propagation: Propagator
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """H (n, d), logits (n, K) and what dropout leaves of them, of one replica on a part.

        ``propagation`` may be a `user_dgl.graph.part_propagation.PartPropagation`.
        """
        hidden = self.encoders[0](propagation, features)
        logits, dropped = self.logits((hidden,), (propagation,))
        return hidden, logits[:, 0], dropped[:, 0]

    def logits(self, hidden, propagations) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (n, R, K) of the H of each replica, and what dropout leaves of them."""
        config = self.config
        layers = zip(self.norms, self.dropouts, hidden, strict=True)
        dropped = [dropout(norm(h)) for norm, dropout, h in layers]
        heads = list(zip(self.heads, dropped, strict=True))
        if config.head == "graph_conv":
            # S (H W) costs K columns where (S H) W would cost d.
            mapped = _side_by_side([h @ head.weight.t() for head, h in heads])
            logits = _side_by_side([s(x) for s, x in columns_of_each(propagations, mapped)])
            logits = logits.add_(torch.cat([head.bias for head in self.heads]))
        else:
            logits = _side_by_side([head(h) for head, h in heads])
        by_replica = len(logits), len(self.heads), config.num_clusters
        return logits.view(by_replica), self.logit_dropout(logits).view(by_replica)

    def _encode(self, features: FeatureMatrix):
        """Weights of A', what multiplies with them, and what `Encoder.encode` gives."""
        if self._encoded is not None:
            return self._encoded
        weights = self.structure().unbind()
        propagations = tuple(self.propagation(weight) for weight in weights)
        encoded = tuple(
            encoder.encode(propagation, features)
            for encoder, propagation in zip(self.encoders, self.of_each(propagations), strict=True)
        )
        if not self.config.traits.learns and not self.structure.learnable:
            # Neither A' nor the encoder learns: H is the same in every epoch.
            self._encoded = weights, propagations, encoded
        return weights, propagations, encoded

    def embeddings(self, state: State) -> list[torch.Tensor]:
        """What each head reads (N, d): S H with head ``graph_conv``, else H, before BatchNorm."""
        return self.read_by_heads(state.hidden, state.propagations)

    def read_by_heads(self, hidden, propagations) -> list[torch.Tensor]:
        """The same of the H of each replica, and of what multiplies with their S."""
        if self.config.head == "graph_conv":
            return [s(h) for s, h in zip(self.of_each(propagations), hidden, strict=True)]
        return list(hidden)

    def of_each(self, shared_or_own: tuple) -> tuple:
        """One for each replica of what there is one or R of."""
        return shared_or_own * (len(self.heads) // len(shared_or_own))


def _side_by_side(blocks: list[torch.Tensor]) -> torch.Tensor:
    """Blocks of columns as one; a single one as it is, which torch would copy."""
    return torch.cat(blocks, 1) if len(blocks) > 1 else blocks[0]
