"""The terms that USER minimises, each a function of tensors, and their weighted sum by name."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

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
class LossSums:
    """Sums over pairs and nodes that the loss is a function of; None where a term is not used.

    Those of disjoint parts of a graph add up to those of the whole.

    Attributes
    ----------
    learned : tuple of S PartitionSums or None
        Of each A'; volumes and internal weights (R K / S,), replica by replica.
    observed : PartitionSums or None
        Of A, in the same way, (R K,).
    davies_bouldin : tuple of R DaviesBouldinSums or None
    mixture : Tensor (R,) or None
        Sum over nodes of the log of the summed exponentials.
    squares : Tensor (S,) or None
        Squared differences between the weights of observed pairs and their first weights.
    """

    learned: tuple[PartitionSums, ...] | None = None
    observed: PartitionSums | None = None
    davies_bouldin: tuple[DaviesBouldinSums, ...] | None = None
    mixture: torch.Tensor | None = None
    squares: torch.Tensor | None = None

    def __add__(self, other: "LossSums") -> "LossSums":
        return _each(torch.add, self, other)

    def __sub__(self, other: "LossSums") -> "LossSums":
        return _each(torch.sub, self, other)

    def detach(self) -> "LossSums":
        """The same numbers as constants."""
        return _each(torch.Tensor.detach, self)

    def double(self) -> "LossSums":
        """In float64, in which sums that come and go leave no rest."""
        return _each(torch.Tensor.double, self)

    def tensors(self) -> list[torch.Tensor]:
        """All that adds up, in a fixed order."""
        tensors: list[torch.Tensor] = []
        _each(tensors.append, self)
        return tensors

    def with_tensors(self, tensors: Sequence[torch.Tensor]) -> "LossSums":
        """The same terms with other numbers, in the order of `tensors`."""
        given = iter(tensors)
        return _each(lambda _: next(given), self)


def _each(function, *sums):
    """Apply a function to the corresponding tensors of structures of sums."""
    first = sums[0]
    if first is None:
        return None
    if isinstance(first, torch.Tensor):
        return function(*sums)
    if isinstance(first, tuple):
        return tuple(_each(function, *parts) for parts in zip(*sums, strict=True))
    parts = {}
    for part in fields(first):
        values = [getattr(one, part.name) for one in sums]
        parts[part.name] = values[0] if "common" in part.metadata else _each(function, *values)
    return type(first)(**parts)


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


class USERLoss:
    r"""The loss of USER as named, weighted terms.

    .. math::
        \mathcal L = \gamma\,[\mathrm{NPSI}(A', Y) + \mathrm{NPSI}(A, Y)]
        + \beta\,\mathrm{DBI}(X, Y) + \alpha\,\mathcal L_{obs}(A')
        + \alpha'\,\| \sigma(H H^T) - A \|_F^2
        - \frac{\delta}{N} \sum_i \log \sum_k e^{\cos(h_i, c_k) / \tau}

    The paper (Eq. 5 and 9) has NPSI(A', Y), DBI and the reconstruction; the authors' code has both
    NPSI terms, DBI and the tie to the observed edges. The last term is in neither: for head
    ``centroid``, up to a constant the negative log-likelihood of a mixture of von Mises-Fisher
    distributions (Banerjee et al., 2005), which keeps centroids where the embeddings are. NPSI, a
    function of the graph, knows nothing of them, and DBI alone lets clusters collapse. `LossConfig`
    says which terms a run uses.

    Every replica has this loss of its own, and what is minimised is their sum. The tie is a
    property of A': where replicas share it, each counts it in full, so that it pulls on A' against
    the sum of their other terms as it would against those of a single one.

    Parameters
    ----------
    config : LossConfig
    graph : Graph
        Observed graph A, weight 1 on every edge.
    features : FeatureMatrix
    engine : str
    prior : Tensor (E,) or float
        First weights of the observed edges.
    whole : tuple of int, optional
        N and E, where ``graph`` is a part of the observed graph.
    """

    def __init__(
        self,
        config: LossConfig,
        graph: Graph,
        features: FeatureMatrix,
        engine: str,
        prior: torch.Tensor | float = 1.0,
        whole: tuple[int, int] | None = None,
    ):
        self.config, self.graph, self.features, self.engine = config, graph, features, engine
        self.prior = prior
        self._num_nodes, self._num_edges = whole or (graph.num_nodes, graph.num_edges)

    @cached_property
    def _ones(self) -> torch.Tensor:
        """Weights of A; not made where only parts are at hand."""
        return torch.ones(
            self.graph.num_edges, device=self.graph.src.device, dtype=self.features.dtype
        )

    @cached_property
    def _degree(self) -> torch.Tensor:
        return weighted_degree(self.graph, self._ones, self.engine)

    def __call__(
        self, state: State, generator: torch.Generator | None = None
    ) -> dict[str, torch.Tensor]:
        """Weighted terms of a `user_dgl.model.state.State`; their sum is the loss of each replica.

        Parameters
        ----------
        state : State
        generator : torch.Generator, optional
            For the sampled non-edges of the reconstruction.

        Returns
        -------
        dict of str to Tensor (R,)
        """
        config = self.config
        terms = self.terms(self.sums(state), *state.assignment.shape[1:])
        if config.reconstruction_weight:
            samples = config.reconstruction_samples * self.graph.num_nodes
            form = config.reconstruction_form
            penalty = reconstruction_loss(
                self.graph, state.hidden, samples, generator, self.engine, form
            )
            terms["reconstruction"] = config.reconstruction_weight * penalty
        if config.supporting_weight and state.supporting is not None:
            own = state.supporting(self.graph, config.reconstruction_samples, generator)
            for name in own[0]:
                each = torch.stack([one[name] for one in own])
                terms[f"supporting_{name}"] = config.supporting_weight * each
        return terms

    def sums(self, state: State, scope: Scope | None = None) -> LossSums:
        """What the loss is a function of, but for the reconstruction.

        Parameters
        ----------
        state : State
            Of the graph, or of a part: then of the pairs that touch its nodes, the assignment of
            these nodes first, then of the others that the pairs have.
        scope : Scope, optional
            Default: all of the graph.
        """
        config, engine = self.config, self.engine
        num_nodes, num_replicas, num_clusters = state.assignment.shape
        assignment = state.assignment.view(num_nodes, num_replicas * num_clusters)
        learned = observed = davies_bouldin = mixture = squares = None
        if config.npsi_weight:
            learned = tuple(
                partition_sums(state.graph, weight, columns, engine)
                for weight, columns in columns_of_each(state.weights, assignment)
            )
            if config.npsi_observed and scope is None:
                observed = partition_sums(
                    self.graph, self._ones, assignment, engine, degree=self._degree
                )
            elif config.npsi_observed:
                ones = state.observed.to(assignment.dtype)
                observed = partition_sums(state.graph, ones, assignment, engine)
        if config.davies_bouldin_weight:
            form = config.davies_bouldin_form
            if config.davies_bouldin_space == "features":
                features, own = self.features, assignment
                if scope is not None:
                    features, own = scope.features, assignment[: scope.features.shape[0]]
                every = davies_bouldin_sums(features, own, form)
                davies_bouldin = tuple(every.split(num_clusters))
            else:
                mean = None if scope is None else scope.embedding_mean
                davies_bouldin = tuple(
                    davies_bouldin_sums(PointMatrix(hidden, mean), columns[: len(hidden)], form)
                    for hidden, columns in zip(
                        state.hidden, state.assignment.unbind(1), strict=True
                    )
                )
        if config.mixture_weight:
            mixture = state.logits.logsumexp(2).sum(0)
        if config.observed_edge_weight and state.learnable:
            counted = state.observed if scope is None else scope.counted
            prior = self.prior if scope is None else scope.prior[counted]
            squares = torch.stack(
                [(weight[counted] - prior).square().sum() for weight in state.weights]
            )
        return LossSums(learned, observed, davies_bouldin, mixture, squares)

    def terms(
        self, sums: LossSums, num_replicas: int, num_clusters: int
    ) -> dict[str, torch.Tensor]:
        """Weighted terms (R,) of the sums over the whole graph."""
        config, terms = self.config, {}
        if sums.learned is not None:
            learned = torch.cat([npsi(_by_replica(copy, num_clusters)) for copy in sums.learned])
            terms["npsi"] = config.npsi_weight * learned
        if sums.observed is not None:
            observed = npsi(_by_replica(sums.observed, num_clusters))
            terms["npsi_observed"] = config.npsi_weight * observed
        if sums.davies_bouldin is not None:
            index = torch.stack([davies_bouldin(each) for each in sums.davies_bouldin])
            terms["davies_bouldin"] = config.davies_bouldin_weight * index
        if sums.mixture is not None:
            terms["mixture"] = -config.mixture_weight * (sums.mixture / self._num_nodes)
        if sums.squares is not None:
            penalty = torch.stack(
                [
                    edge_penalty(squares, self._num_edges, config.observed_edge_form)
                    for squares in sums.squares
                ]
            )
            terms["observed_edges"] = config.observed_edge_weight * penalty.expand(num_replicas)
        return terms


def _by_replica(sums: PartitionSums, num_clusters: int) -> PartitionSums:
    """Volumes and internal weights (R K,) as (R, K)."""
    volume, internal = sums.volume.view(-1, num_clusters), sums.internal_weight
    return PartitionSums(sums.total_weight, volume, internal.view(-1, num_clusters))
