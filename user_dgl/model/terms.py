"""The terms of USER's loss. The registry `TERMS` has each term by its name.

A `SummedTerm` is computed from sums over pairs and nodes. The sums of disjoint parts add up to the
sums of the whole graph, but the values of the term do not. So the term can be trained on the whole
graph, in parts, and by several processes. A `WholeTerm` needs one pass over the whole graph.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from user_dgl.config import LossConfig
from user_dgl.features.matrix import FeatureMatrix, PointMatrix
from user_dgl.graph import Graph
from user_dgl.graph.ops import weighted_degree
from user_dgl.losses.code_length import (
    EdgeSums,
    FeatureSums,
    edge_bits,
    edge_sums,
    feature_bits,
    feature_sums,
)
from user_dgl.losses.davies_bouldin import DaviesBouldinSums, davies_bouldin, davies_bouldin_sums
from user_dgl.losses.entropy import PartitionSums, npsi, partition_sums
from user_dgl.losses.observed_edges import edge_penalty
from user_dgl.losses.reconstruction import reconstruction_loss
from user_dgl.model.state import State, columns_of_each


@dataclass(frozen=True, eq=False)
class Scope:
    """The part of a graph over which sums are taken.

    Attributes
    ----------
    features : FeatureMatrix
        Features of the nodes that belong to the part.
    prior : Tensor (P,)
        First weight of each pair. Entries of pairs that are not observed are not used.
    counted : bool Tensor (P,)
        Whether the pair is observed and its penalty is counted in this part.
    embedding_mean : Tensor (d,) or None
        Mean embedding of all nodes of the graph, if the Davies-Bouldin index is computed on the
        embeddings.
    """

    features: FeatureMatrix
    prior: torch.Tensor
    counted: torch.Tensor
    embedding_mean: torch.Tensor | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Data of the loss that are the same in every forward pass.

    Attributes
    ----------
    config : LossConfig
    graph : Graph
        Observed graph A with the weights of its edges. If several processes train together, each
        has its own part of the graph.
    features : FeatureMatrix
    engine : str
    prior : Tensor (E,) or float
        First weights of the observed edges.
    num_nodes, num_edges : int
        N and E of the whole graph.
    """

    config: LossConfig
    graph: Graph
    features: FeatureMatrix
    engine: str
    prior: torch.Tensor | float
    num_nodes: int
    num_edges: int

    @cached_property
    def edge_weight(self) -> torch.Tensor:
        """Weights of A (E,). If all are 1, they are built when they are first used.

        Training on parts of the graph never uses them.
        """
        return self.graph.edge_weight.to(self.features.dtype)

    @cached_property
    def degree(self) -> torch.Tensor:
        """Degrees of A (N,)."""
        return weighted_degree(self.graph, self.edge_weight, self.engine)


class Term:
    """Base class of the terms of the loss."""

    def weight(self, config: LossConfig) -> float:
        """Weight from the term's own key in the settings; a term of weight 0 is not computed.

        A term without its own key does not override this method. Its weight is then read from
        ``loss.terms``.
        """
        return 0.0


class SummedTerm(Term, ABC):
    """A term that is computed from sums over pairs and nodes."""

    @abstractmethod
    def sums(self, state: State, problem: Problem, scope: Scope | None) -> Any:
        """Compute the sums over the scope, or over the whole graph if the scope is None.

        Returns
        -------
        Tensor, or tuple or dataclass of tensors, or None
            Sums of disjoint scopes are added tensor by tensor. None if the term is not used.
        """

    @abstractmethod
    def value(
        self, sums: Any, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """Compute the term (R,), without its weight, from sums over the whole graph."""


class WholeTerm(Term, ABC):
    """A term that needs one pass over the whole graph in one process."""

    @abstractmethod
    def values(
        self, state: State, problem: Problem, generator: torch.Generator | None
    ) -> dict[str, torch.Tensor]:
        """Compute terms (R,), without their weight, by the names used in reports."""


class LearnedEntropy(SummedTerm):
    """NPSI(A', Y): Eq. 3 of the paper on the learned graph."""

    def weight(self, config: LossConfig) -> float:
        """``npsi_weight``; it is 1 in the paper."""
        return config.npsi_weight

    def sums(
        self, state: State, problem: Problem, scope: Scope | None
    ) -> tuple[PartitionSums, ...]:
        """Compute the sums (R K / S,) of each A', replica by replica."""
        return tuple(
            partition_sums(state.graph, weight, columns, problem.engine)
            for weight, columns in columns_of_each(state.weights, state.joined)
        )

    def value(
        self,
        sums: tuple[PartitionSums, ...],
        problem: Problem,
        num_replicas: int,
        num_clusters: int,
    ) -> torch.Tensor:
        """NPSI (R,) of each replica."""
        return torch.cat([npsi(_by_replica(copy, num_clusters)) for copy in sums])


class ObservedEntropy(SummedTerm):
    """NPSI(A, Y): a term of the authors' code that is not in the paper."""

    def weight(self, config: LossConfig) -> float:
        """The weight of NPSI(A', Y) if ``npsi_observed`` is true, else 0."""
        return config.npsi_weight if config.npsi_observed else 0.0

    def sums(self, state: State, problem: Problem, scope: Scope | None) -> PartitionSums:
        """Compute the sums (R K,), replica by replica."""
        assignment = state.joined
        if scope is None:
            return partition_sums(
                problem.graph,
                problem.edge_weight,
                assignment,
                problem.engine,
                degree=problem.degree,
            )
        weight = state.observed * state.graph.edge_weight.to(assignment.dtype)
        return partition_sums(state.graph, weight, assignment, problem.engine)

    def value(
        self, sums: PartitionSums, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """NPSI (R,) of each replica."""
        return npsi(_by_replica(sums, num_clusters))


class DaviesBouldin(SummedTerm):
    """The Davies-Bouldin index of the features or the embeddings, Eq. 4 of the paper."""

    def weight(self, config: LossConfig) -> float:
        """``davies_bouldin_weight``, the paper's beta."""
        return config.davies_bouldin_weight

    def sums(
        self, state: State, problem: Problem, scope: Scope | None
    ) -> tuple[DaviesBouldinSums, ...]:
        """Compute the sums of each replica."""
        config = problem.config
        form, num_clusters = config.davies_bouldin_form, state.assignment.shape[2]
        if config.davies_bouldin_space == "features":
            features, own = problem.features, state.joined
            if scope is not None:
                features, own = scope.features, own[: scope.features.shape[0]]
            return tuple(davies_bouldin_sums(features, own, form).split(num_clusters))
        mean = None if scope is None else scope.embedding_mean
        return tuple(
            davies_bouldin_sums(PointMatrix(hidden, mean), columns[: len(hidden)], form)
            for hidden, columns in zip(state.hidden, state.assignment.unbind(1), strict=True)
        )

    def value(
        self,
        sums: tuple[DaviesBouldinSums, ...],
        problem: Problem,
        num_replicas: int,
        num_clusters: int,
    ) -> torch.Tensor:
        """The index (R,) of each replica."""
        return torch.stack([davies_bouldin(each) for each in sums])


class Mixture(SummedTerm):
    r""":math:`-\frac1N \sum_i \log \sum_k e^{\cos(h_i, c_k) / \tau}`, for head ``centroid``.

    Not in the paper. Up to a constant, the term is the negative log-likelihood of a mixture of von
    Mises-Fisher distributions (Banerjee et al., 2005). It keeps the centroids near the embeddings.
    """

    def weight(self, config: LossConfig) -> float:
        """``mixture_weight``."""
        return config.mixture_weight

    def sums(self, state: State, problem: Problem, scope: Scope | None) -> torch.Tensor:
        """Sum the logarithms over the nodes (R,)."""
        return state.logits.logsumexp(2).sum(0)

    def value(
        self, sums: torch.Tensor, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """The negative mean (R,) over the nodes."""
        return -(sums / problem.num_nodes)


class CodeLength(SummedTerm):
    r"""Bits saved by the clusters in the code of edges and features; not in the paper.

    .. math:: -\frac{\frac EW B_E(A', Y) + B_X(X_{\ne 0}, Y)}{E + n}

    See `user_dgl.losses.code_length`. Both parts are in bits, so no coefficient stands between
    them. :math:`B_X` counts each non-zero of X once, whatever its value, because prepared features
    are weighted and scaled; n is the number of non-zeros. Columns without zeros, such as most
    real-valued ones, save no bits, and the term then rests on the edges and the other columns.

    E is the number of observed edges and W the weight of A'. :math:`B_E / W` does not depend on the
    scale of A', so larger weights alone do not lower the term, and the edges count as much against
    the features as those of A. The gradient raises the weights of pairs that the clusters make more
    likely than the mean pair, by :math:`\log_2 (P_{kl} / v_k v_l)`, and lowers those of the others.
    With clusters without edges between them and no features, the term is NPSI. Columns without
    zeros count in n but save no bits, so they make the term small.
    """

    def weight(self, config: LossConfig) -> float:
        """``code_length_weight``."""
        return config.code_length_weight

    def sums(
        self, state: State, problem: Problem, scope: Scope | None
    ) -> tuple[tuple[EdgeSums, ...], FeatureSums]:
        """Compute the sums (R / S, K, K) of each A', and those of the features (R, K, F)."""
        num_clusters = state.assignment.shape[2]
        edges = tuple(
            edge_sums(state.graph, weight, columns.unflatten(1, (-1, num_clusters)), problem.engine)
            for weight, columns in columns_of_each(state.weights, state.joined)
        )
        features = problem.features if scope is None else scope.features
        own = state.joined[: features.shape[0]].unflatten(1, (-1, num_clusters))
        return edges, feature_sums(features.pattern, own)

    def value(
        self,
        sums: tuple[tuple[EdgeSums, ...], FeatureSums],
        problem: Problem,
        num_replicas: int,
        num_clusters: int,
    ) -> torch.Tensor:
        """Minus the bits (R,) for each observed edge and each non-zero feature."""
        edges, features = sums
        # Both directions of a pair count in the sums, but not in W.
        weight = torch.cat([copy.between.sum((-2, -1)) / 2 for copy in edges])
        of_edges = torch.cat([edge_bits(copy) for copy in edges])
        # Without weight the bits are 0, whatever the divisor.
        of_edges = problem.num_edges * of_edges / weight.where(weight > 0, torch.ones_like(weight))
        # The rows of Y add up to 1, so n does not depend on Y.
        occurrences = features.occurrences.detach().sum((-2, -1))
        saved = of_edges + feature_bits(features)
        return -saved / (problem.num_edges + occurrences).clamp_min(1.0)


class ObservedEdges(SummedTerm):
    """Penalty on the difference between A' and its first weights on the observed edges.

    The penalty depends on A' only. If the replicas share one A', the penalty is counted in full for
    each replica. Its weight relative to the other terms, which are summed over the replicas, is
    then the same as for a single replica.
    """

    def weight(self, config: LossConfig) -> float:
        """``observed_edge_weight``, alpha in the authors' code."""
        return config.observed_edge_weight

    def sums(self, state: State, problem: Problem, scope: Scope | None) -> torch.Tensor | None:
        """Sum the squared differences (S,); None if A' is not trained."""
        if not state.learnable:
            return None
        counted = state.observed if scope is None else scope.counted
        prior = problem.prior if scope is None else scope.prior[counted]
        return torch.stack([(weight[counted] - prior).square().sum() for weight in state.weights])

    def value(
        self, sums: torch.Tensor, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """The penalty (R,); all replicas that share one A' have the same value."""
        form = problem.config.observed_edge_form
        penalty = [edge_penalty(squares, problem.num_edges, form) for squares in sums]
        return torch.stack(penalty).expand(num_replicas)


class Reconstruction(WholeTerm):
    """Difference between the inner products of the embeddings and A, Eq. 8 of the paper."""

    def weight(self, config: LossConfig) -> float:
        """``reconstruction_weight``, the paper's alpha."""
        return config.reconstruction_weight

    def values(
        self, state: State, problem: Problem, generator: torch.Generator | None
    ) -> dict[str, torch.Tensor]:
        """Compute the loss on one draw of pairs, which all replicas use."""
        config, graph = problem.config, problem.graph
        samples = config.reconstruction_samples * graph.num_nodes
        form = config.reconstruction_form
        penalty = reconstruction_loss(graph, state.hidden, samples, generator, problem.engine, form)
        return {"reconstruction": penalty}


class Supporting(WholeTerm):
    """The supported model's own loss, L_S in Eq. 9 of the paper."""

    def weight(self, config: LossConfig) -> float:
        """``supporting_weight``, the paper's alpha of supported models with their own loss."""
        return config.supporting_weight

    def values(
        self, state: State, problem: Problem, generator: torch.Generator | None
    ) -> dict[str, torch.Tensor]:
        """Compute the terms of that loss; there are none if the encoder has no loss of its own."""
        if state.supporting is None:
            return {}
        own = state.supporting(problem.graph, problem.config.reconstruction_samples, generator)
        return {f"supporting_{name}": torch.stack([one[name] for one in own]) for name in own[0]}


# All terms by name, in the order of the reports. The weight of a term without its own key in
# `LossConfig` is read from ``loss.terms``.
TERMS: dict[str, Term] = {
    "npsi": LearnedEntropy(),
    "npsi_observed": ObservedEntropy(),
    "davies_bouldin": DaviesBouldin(),
    "mixture": Mixture(),
    "code_length": CodeLength(),
    "observed_edges": ObservedEdges(),
    "reconstruction": Reconstruction(),
    "supporting": Supporting(),
}


def _by_replica(sums: PartitionSums, num_clusters: int) -> PartitionSums:
    """Reshape volumes and internal weights from (R K,) to (R, K)."""
    volume, internal = sums.volume.view(-1, num_clusters), sums.internal_weight
    return PartitionSums(sums.total_weight, volume, internal.view(-1, num_clusters))
