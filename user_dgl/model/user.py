"""The model USER: learned structure, encoders of the supported models, and assignment heads."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeVar, cast

import torch
from torch import nn

from user_dgl.clustering.smoothed_view import SmoothedView
from user_dgl.config import ModelConfig
from user_dgl.encoders.base import Encoder, Pass
from user_dgl.encoders.dropout import Dropout
from user_dgl.encoders.registry import encoder_class
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.graph.pairs import sample_pairs
from user_dgl.graph.propagation import Propagation, Propagator
from user_dgl.model.heads import CentroidHead
from user_dgl.model.state import State, columns_of_each
from user_dgl.structure.learned_adjacency import LearnedAdjacency

T = TypeVar("T")
# Result of `Encoder.encode` for each replica: H, and a value for the encoder's own loss.
Encoded = tuple[tuple[torch.Tensor, Any], ...]
# Weights of each A', the propagation of each A', and the output of each encoder.
Encoding = tuple[tuple[torch.Tensor, ...], tuple[Propagation, ...], Encoded]


class USER(nn.Module):
    r"""The framework of the paper in sparse form, with one or several replicas side by side.

    The model computes :math:`H = \mathrm{GNN}(S, X)` (Eq. 6) and
    :math:`Y = \mathrm{softmax}(H W^Y)` (Eq. 7). S is the normalised A' or, as in the authors' code,
    the normalised mixture :math:`m A_{norm} + (1 - m) A'_{norm}` with m = 0.5.

    Each replica has its own encoder and head, which are initialised independently. Shared work is
    done once for all replicas: A', its normalisation, and the products of the graph with blocks of
    K columns. The encoders run one after another. Their products with the graph and the features
    are limited by the speed of the memory. On a CPU, a block (N, d) that fits into the cache takes
    half the time per column of one block (N, R d).

    Parameters
    ----------
    structure : LearnedAdjacency
        One A' for all replicas, or one for each replica.
    in_feats : int
        Number of columns F of the features.
    config : ModelConfig
        Its ``num_clusters`` must be a number.
    engine : str
    num_replicas : int
        R.
    view : SmoothedView, optional
        Only for the encoder ``smooth``: points of the encoder and first centroids of the head.
    """

    structure: LearnedAdjacency
    _encoded: Encoding | None
    _observed_norm: torch.Tensor

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
        encoders: list[Encoder] = []
        heads: list[nn.Module] = []
        for _ in range(num_replicas):
            if view is not None:
                smooth = encoder_class(config.encoder)
                encoders.append(smooth(view.points, view.hops, view.self_share))
                heads.append(CentroidHead(view.centroids, config.temperature))
                continue
            encoder = encoder_class(config.encoder)(in_feats, config.hidden_feats, config.dropout)
            encoders.append(encoder)
            heads.append(nn.Linear(encoder.out_feats, config.known_clusters))
        self.encoders, self.heads = nn.ModuleList(encoders), nn.ModuleList(heads)
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(encoder.out_feats, track_running_stats=False)
            if encoder.normed
            else nn.Identity()
            for encoder in encoders
        )
        self.dropouts = nn.ModuleList(Dropout(config.dropout) for _ in self.heads)
        self.logit_dropout = Dropout(config.logit_dropout)
        self.set_structure(structure)

    def set_structure(self, structure: LearnedAdjacency) -> None:
        """Replace A' by another one that has the same observed edges."""
        self.structure, self._encoded = structure, None
        if not self.config.observed_mix:
            return
        # A_norm never changes, so its weights are kept. They are 0 on the candidates.
        observed = structure.observed * structure.graph.edge_weight.to(structure.theta.dtype)
        norm = Propagation.of(structure.graph, observed, self.engine).off_diagonal
        self.register_buffer("_observed_norm", norm, persistent=False)

    def propagation(self, weight: torch.Tensor) -> Propagation:
        """Compute S from the weights (P,) of A'."""
        graph, mix = self.structure.graph, self.config.observed_mix
        learned = Propagation.of(graph, weight, self.engine)
        if mix == 0:
            return learned
        # As in the authors' code, both graphs are normalised, they are mixed without their
        # diagonals, and the mixture is normalised again.
        mixture = mix * self._observed_norm + (1 - mix) * learned.off_diagonal
        return Propagation.of(graph, mixture, self.engine)

    def forward(self, features: FeatureMatrix) -> State:
        """Compute one pass over the whole graph."""
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
        self,
        features: FeatureMatrix,
        encoded: Encoded,
        propagations: tuple[Propagator, ...],
        observed: Graph,
        samples_per_node: int,
        generator: torch.Generator | None,
    ) -> list[dict[str, torch.Tensor]]:
        """Compute the terms () of each encoder's own loss, as `State.supporting`."""
        num_samples = samples_per_node * observed.num_nodes
        pairs = cache(lambda: sample_pairs(observed, num_samples, generator))
        return [
            encoder.supporting_loss(
                Pass(observed, s, features, hidden, beside, pairs, generator, self.engine)
            )
            for encoder, s, (hidden, beside) in zip(
                self._encoders(), self.of_each(propagations), encoded, strict=True
            )
        ]

    def forward_part(
        self, features: FeatureMatrix, propagation: Propagator
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Compute one pass of a single replica over a part of a graph.

        Parameters
        ----------
        features : FeatureMatrix
        propagation : Propagator
            For example a `user_dgl.graph.part_propagation.PartPropagation`.

        Returns
        -------
        Tensor (n, d), Tensor (n, K), Tensor (n, K)
            H, the logits, and the logits after dropout.
        """
        hidden = self.encoders[0](propagation, features)
        logits, dropped = self.logits((hidden,), (propagation,))
        return hidden, logits[:, 0], dropped[:, 0]

    def logits(
        self,
        hidden: Sequence[torch.Tensor],
        propagations: Sequence[Propagator],
        normalised: Callable[[nn.Module, torch.Tensor], torch.Tensor] = nn.Module.__call__,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the logits (n, R, K), before and after dropout.

        Parameters
        ----------
        hidden : sequence of R Tensors (n, d)
            H of each replica.
        propagations : sequence of S Propagators
        normalised : callable
            Function of the norm before a head and of H (n, d). Default: the norm itself, whose
            statistics are those of all rows.
        """
        config = self.config
        layers = zip(self.norms, self.dropouts, hidden, strict=True)
        dropped = [dropout(normalised(norm, h)) for norm, dropout, h in layers]
        if config.head == "graph_conv":
            linears = cast("list[nn.Linear]", list(self.heads))
            # S (H W) multiplies the graph with K columns, (S H) W would multiply it with d.
            mapped = _side_by_side(
                [h @ linear.weight.t() for linear, h in zip(linears, dropped, strict=True)]
            )
            logits = _side_by_side([s(x) for s, x in columns_of_each(propagations, mapped)])
            logits = logits.add_(torch.cat([linear.bias for linear in linears]))
        else:
            logits = _side_by_side([head(h) for head, h in zip(self.heads, dropped, strict=True)])
        by_replica = len(logits), len(self.heads), config.known_clusters
        return logits.view(by_replica), self.logit_dropout(logits).view(by_replica)

    def _encoders(self) -> list[Encoder]:
        """List the encoders with their type, which `nn.ModuleList` does not keep."""
        return cast("list[Encoder]", list(self.encoders))

    def _encode(self, features: FeatureMatrix) -> Encoding:
        """Compute the weights of A', the propagations and the output of each encoder."""
        if self._encoded is not None:
            return self._encoded
        weights = self.structure().unbind()
        propagations = tuple(self.propagation(weight) for weight in weights)
        encoded = tuple(
            encoder.encode(propagation, features)
            for encoder, propagation in zip(
                self._encoders(), self.of_each(propagations), strict=True
            )
        )
        if self.encodes_once:
            self._encoded = weights, propagations, encoded
        return weights, propagations, encoded

    @property
    def encodes_once(self) -> bool:
        """Whether H is the same in every epoch, because neither A' nor the encoder is trained."""
        return not self.config.traits.learns and not self.structure.learnable

    def embeddings(self, state: State) -> list[torch.Tensor]:
        """Input of each head (N, d), before BatchNorm: S H for the head ``graph_conv``, else H."""
        return self.read_by_heads(state.hidden, state.propagations)

    def read_by_heads(
        self, hidden: Sequence[torch.Tensor], propagations: tuple[Propagator, ...]
    ) -> list[torch.Tensor]:
        """Compute `embeddings` from the H of each replica and the S propagations."""
        if self.config.head == "graph_conv":
            return [s(h) for s, h in zip(self.of_each(propagations), hidden, strict=True)]
        return list(hidden)

    def of_each(self, shared_or_own: tuple[T, ...]) -> tuple[T, ...]:
        """Repeat a shared value so that every replica has one; R values stay as they are."""
        return shared_or_own * (len(self.heads) // len(shared_or_own))


def _side_by_side(blocks: list[torch.Tensor]) -> torch.Tensor:
    """Join blocks of columns. A single block is returned as it is, because torch would copy it."""
    return torch.cat(blocks, 1) if len(blocks) > 1 else blocks[0]
