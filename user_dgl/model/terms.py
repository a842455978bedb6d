"""The terms of USER's loss, each by its name in the registry `TERMS`.

A term that is a function of sums over pairs and nodes can be trained with the whole graph, in parts
and by several processes: sums of disjoint parts add up to those of the whole, where values would
not. Any other term is a function of one pass over the whole graph.
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
from user_dgl.losses.davies_bouldin import DaviesBouldinSums, davies_bouldin, davies_bouldin_sums
from user_dgl.losses.entropy import PartitionSums, npsi, partition_sums
from user_dgl.losses.observed_edges import edge_penalty
from user_dgl.losses.reconstruction import reconstruction_loss
from user_dgl.model.state import State, columns_of_each


@dataclass(frozen=True, eq=False)
class Scope:
    """The part of a graph that sums are taken over.

    Attributes
    ----------
    features : FeatureMatrix
        Of the nodes that count.
    prior : Tensor (P,)
        First weight of each pair; of no use where it is not observed.
    counted : bool Tensor (P,)
        The observed pairs that count for the tie to their first weights.
    embedding_mean : Tensor (d,) or None
        Of all nodes, where the Davies-Bouldin index is that of the embeddings.
    """

    features: FeatureMatrix
    prior: torch.Tensor
    counted: torch.Tensor
    embedding_mean: torch.Tensor | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """What all passes have in common.

    Attributes
    ----------
    config : LossConfig
    graph : Graph
        Observed graph A, weight 1 on every edge; a process of several has its part.
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
    def ones(self) -> torch.Tensor:
        """Weights of A (E,); not made where only parts of the graph are at hand."""
        return torch.ones(
            self.graph.num_edges, device=self.graph.src.device, dtype=self.features.dtype
        )

    @cached_property
    def degree(self) -> torch.Tensor:
        """Degrees of A (N,)."""
        return weighted_degree(self.graph, self.ones, self.engine)


class Term:
    """One term of the loss."""

    def weight(self, config: LossConfig) -> float:
        """Weight of the term by a key of its own; a term of weight 0 is not computed.

        By default 0: a term without a key gets its weight from ``loss.terms``.
        """
        return 0.0


class SummedTerm(Term, ABC):
    """A term that is a function of sums over pairs and nodes."""

    @abstractmethod
    def sums(self, state: State, problem: Problem, scope: Scope | None) -> Any:
        """Sums over the scope, over the whole graph without one.

        Returns
        -------
        Tensor, or tuple or dataclass of such
            Sums of disjoint scopes are added tensor by tensor; None where the term is not used.
        """

    @abstractmethod
    def value(
        self, sums: Any, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """The term (R,), not weighted, of sums over the whole graph."""


class WholeTerm(Term, ABC):
    """A term that is a function of one pass over the whole graph in one process."""

    @abstractmethod
    def values(
        self, state: State, problem: Problem, generator: torch.Generator | None
    ) -> dict[str, torch.Tensor]:
        """Not weighted terms (R,), each under the name that is reported for it."""


class LearnedEntropy(SummedTerm):
    """NPSI(A', Y), Eq. 3 of the paper on the learned graph."""

    def weight(self, config: LossConfig) -> float:
        """The paper's 1."""
        return config.npsi_weight

    def sums(self, state: State, problem: Problem, scope: Scope | None) -> Any:
        """For each A' its sums (R K / S,), replica by replica."""
        return tuple(
            partition_sums(state.graph, weight, columns, problem.engine)
            for weight, columns in columns_of_each(state.weights, state.joined)
        )

    def value(
        self, sums: Any, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """NPSI of each replica."""
        return torch.cat([npsi(_by_replica(copy, num_clusters)) for copy in sums])


class ObservedEntropy(SummedTerm):
    """NPSI(A, Y): the authors' code, not the paper's text."""

    def weight(self, config: LossConfig) -> float:
        """That of NPSI(A', Y) where ``npsi_observed`` is true."""
        return config.npsi_weight if config.npsi_observed else 0.0

    def sums(self, state: State, problem: Problem, scope: Scope | None) -> Any:
        """Sums (R K,), replica by replica."""
        assignment = state.joined
        if scope is None:
            return partition_sums(
                problem.graph, problem.ones, assignment, problem.engine, degree=problem.degree
            )
        ones = state.observed.to(assignment.dtype)
        return partition_sums(state.graph, ones, assignment, problem.engine)

    def value(
        self, sums: Any, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """NPSI of each replica."""
        return npsi(_by_replica(sums, num_clusters))


class DaviesBouldin(SummedTerm):
    """The Davies-Bouldin index of features or embeddings, Eq. 4 of the paper."""

    def weight(self, config: LossConfig) -> float:
        """The paper's beta."""
        return config.davies_bouldin_weight

    def sums(self, state: State, problem: Problem, scope: Scope | None) -> Any:
        """The sums of each replica."""
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
        """The index of each replica."""
        return torch.stack([davies_bouldin(each) for each in sums])


class Mixture(SummedTerm):
    r""":math:`-\frac1N \sum_i \log \sum_k e^{\cos(h_i, c_k) / \tau}`, for head ``centroid``.

    Not in the paper: up to a constant the negative log-likelihood of a mixture of von Mises-Fisher
    distributions (Banerjee et al., 2005), which keeps centroids where the embeddings are.
    """

    def weight(self, config: LossConfig) -> float:
        """``mixture_weight``."""
        return config.mixture_weight

    def sums(self, state: State, problem: Problem, scope: Scope | None) -> Any:
        """Sum over nodes of the log of the summed exponentials (R,)."""
        return state.logits.logsumexp(2).sum(0)

    def value(
        self, sums: Any, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """The mean over nodes."""
        return -(sums / problem.num_nodes)


class ObservedEdges(SummedTerm):
    """The tie between A' and its first weights on the observed edges.

    It is a property of A': where replicas share A', each counts the tie in full, so that it pulls
    on A' against the sum of their other terms as it would against those of a single replica.
    """

    def weight(self, config: LossConfig) -> float:
        """The authors' alpha."""
        return config.observed_edge_weight

    def sums(self, state: State, problem: Problem, scope: Scope | None) -> Any:
        """Squared differences (S,); None where A' is not trained."""
        if not state.learnable:
            return None
        counted = state.observed if scope is None else scope.counted
        prior = problem.prior if scope is None else scope.prior[counted]
        return torch.stack([(weight[counted] - prior).square().sum() for weight in state.weights])

    def value(
        self, sums: Any, problem: Problem, num_replicas: int, num_clusters: int
    ) -> torch.Tensor:
        """The same for all replicas that share A'."""
        form = problem.config.observed_edge_form
        penalty = [edge_penalty(squares, problem.num_edges, form) for squares in sums]
        return torch.stack(penalty).expand(num_replicas)


class Reconstruction(WholeTerm):
    """How far the inner products of the embeddings are from A, Eq. 8 of the paper."""

    def weight(self, config: LossConfig) -> float:
        """The paper's alpha."""
        return config.reconstruction_weight

    def values(
        self, state: State, problem: Problem, generator: torch.Generator | None
    ) -> dict[str, torch.Tensor]:
        """One draw of pairs serves all replicas."""
        config, graph = problem.config, problem.graph
        samples = config.reconstruction_samples * graph.num_nodes
        form = config.reconstruction_form
        penalty = reconstruction_loss(graph, state.hidden, samples, generator, problem.engine, form)
        return {"reconstruction": penalty}


class Supporting(WholeTerm):
    """The loss of the supported model itself, the paper's L_S in Eq. 9."""

    def weight(self, config: LossConfig) -> float:
        """The paper's alpha for these models."""
        return config.supporting_weight

    def values(
        self, state: State, problem: Problem, generator: torch.Generator | None
    ) -> dict[str, torch.Tensor]:
        """Its terms; none for an encoder without a loss of its own."""
        if state.supporting is None:
            return {}
        own = state.supporting(problem.graph, problem.config.reconstruction_samples, generator)
        return {f"supporting_{name}": torch.stack([one[name] for one in own]) for name in own[0]}


# Every term by its name, in the order of the reports. A term without a key in `LossConfig` takes
# its weight from ``loss.terms``.
TERMS: dict[str, Term] = {
    "npsi": LearnedEntropy(),
    "npsi_observed": ObservedEntropy(),
    "davies_bouldin": DaviesBouldin(),
    "mixture": Mixture(),
    "observed_edges": ObservedEdges(),
    "reconstruction": Reconstruction(),
    "supporting": Supporting(),
}


def _by_replica(sums: PartitionSums, num_clusters: int) -> PartitionSums:
    """Volumes and internal weights (R K,) as (R, K)."""
    volume, internal = sums.volume.view(-1, num_clusters), sums.internal_weight
    return PartitionSums(sums.total_weight, volume, internal.view(-1, num_clusters))
