"""The terms that USER minimises, each a function of tensors, and their weighted sum by name."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import torch

from user_dgl.config import LossConfig
from user_dgl.entropy import PartitionSums, npsi, partition_sums
from user_dgl.features.matrix import FeatureMatrix, PointMatrix
from user_dgl.graph import Graph
from user_dgl.graph.ops import pair_dot, weighted_degree
from user_dgl.graph.pairs import SampledPairs, sample_pairs
from user_dgl.model import State, columns_of_each
from user_dgl.objectives import link_cross_entropy, link_scores

# Below this a squared distance is rounding; the square root's gradient would be infinite at 0.
_LEAST_SQUARE = 1e-12
# Below this the summed memberships of a cluster are those of nobody.
_LEAST_COUNT = 1e-7


@dataclass(frozen=True, eq=False)
class DaviesBouldinSums:
    r"""Sums over nodes that both Davies-Bouldin forms are functions of.

    Features enter less their column means :math:`\mu`: distances do not change, and float32 keeps
    its digits for what differs between nodes.

    Attributes
    ----------
    count : Tensor (K,)
        :math:`n_k = \sum_i Y_{ik}`.
    first : Tensor (K, F)
        :math:`\sum_i Y_{ik} (x_i - \mu)`.
    second : Tensor (K,)
        Textbook form: :math:`\sum_i Y_{ik} |x_i - \mu|^2`. ``soft_features``, which depends on
        where 0 is: :math:`\sum_i Y_{ik}^2 |x_i|^2`.
    cross : Tensor (K, F) or None
        ``soft_features`` only: :math:`\sum_i Y_{ik}^2 x_i`.
    mean : Tensor (F,) or None
        ``soft_features`` only: :math:`\mu` of all nodes, the same in every part.
    """

    count: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor
    cross: torch.Tensor | None = None
    mean: torch.Tensor | None = field(default=None, metadata={"common": True})

    def split(self, num_clusters: int) -> "list[DaviesBouldinSums]":
        """The sums of several assignments, whose columns were side by side, one by one."""
        count, first, second = (
            part.split(num_clusters) for part in (self.count, self.first, self.second)
        )
        cross = [None] * len(count) if self.cross is None else self.cross.split(num_clusters)
        return [
            DaviesBouldinSums(*parts, self.mean)
            for parts in zip(count, first, second, cross, strict=True)
        ]


def davies_bouldin_sums(
    features: FeatureMatrix, assignment: torch.Tensor, form: str
) -> DaviesBouldinSums:
    """Sums of features X (N, F) and an assignment Y (N, K); ``form`` as in `davies_bouldin`."""
    count = assignment.sum(0)
    if form == "textbook":
        first = features.centred_t_matmul(assignment).t()  # (F, K) -> (K, F)
        return DaviesBouldinSums(count, first, features.centred_squared_norm @ assignment)
    square, mean = assignment.square(), features.column_mean
    # One pass over X for both.
    first, cross = features.centred_t_matmul(torch.cat([assignment, square], 1)).t().chunk(2)
    cross = cross + torch.outer(square.sum(0), mean)
    return DaviesBouldinSums(count, first, features.squared_norm @ square, cross, mean)


def davies_bouldin(sums: DaviesBouldinSums) -> torch.Tensor:
    r"""Davies-Bouldin index of a soft assignment, with the root mean square spread (Eq. 4).

    .. math::
        \mathrm{DBI} = \frac1K \sum_k \max_{m \ne k} \frac{S_k + S_m}{|c_k - c_m|}, \qquad
        c_k = \frac{\sum_i Y_{ik} x_i}{n_k}, \quad n_k = \sum_i Y_{ik}

    Textbook form, the paper's for a hard Y, memberships as weights for a soft one:
    :math:`S_k^2 = \frac{1}{n_k} \sum_i Y_{ik} |x_i - c_k|^2`. Form ``soft_features``, the authors'
    code, multiplies the features by the membership first:
    :math:`S_k^2 = \frac{1}{n_k} \sum_i Y_{ik} |c_k|^2 - 2 Y_{ik}^2 \langle c_k, x_i \rangle
    + Y_{ik}^2 |x_i|^2`. Both are the same for a hard Y.

    Not torchmetrics' score, which uses mean distances. An empty cluster is left out; with fewer
    than two clusters the index is 0. Coinciding centroids give a large finite value.

    Parameters
    ----------
    sums : DaviesBouldinSums

    Returns
    -------
    Tensor ()
    """
    used = sums.count > _LEAST_COUNT
    if int(used.sum()) < 2:
        return sums.count.sum() * 0.0
    count, second = sums.count[used], sums.second[used]
    centroid = sums.first[used] / count[:, None]  # (K, F), less the mean of all nodes
    if sums.cross is None:
        square = second / count - centroid.square().sum(1)
    else:
        shifted = centroid + sums.mean
        cross = (shifted * sums.cross[used]).sum(1)
        square = shifted.square().sum(1) - 2 * cross / count + second / count
    spread = square.clamp_min(_LEAST_SQUARE).sqrt()  # (K,)
    # Not by |c|^2 + |c'|^2 - 2 <c, c'>: near a uniform Y the centroids nearly coincide, and in
    # float32 nothing would be left of the difference.
    distance = torch.cdist(
        centroid, centroid, compute_mode="donot_use_mm_for_euclid_dist"
    ).clamp_min(_LEAST_SQUARE**0.5)  # (K, K)
    ratio = (spread[:, None] + spread) / distance
    same = torch.eye(len(count), dtype=torch.bool, device=count.device)
    return ratio.masked_fill(same, 0.0).amax(1).mean()


def observed_edge_penalty(
    weight: torch.Tensor, prior: torch.Tensor | float, form: str
) -> torch.Tensor:
    r"""Tie between the learned weights of the observed edges and their first weights :math:`w^0`.

    ``frobenius``: :math:`\| A' \circ A - W^0 \|_F`, the authors' code, where :math:`W^0 = A`: not
    squared, both directions counted. Its gradient has norm :math:`\sqrt 2` however small the
    difference, against which the entropy's pull of order 1/E on a single edge does nothing, so the
    weights hardly move. ``mean_square`` (not in the paper):
    :math:`\frac1E \sum_e (w_e - w^0_e)^2`, which has the entropy's scale whatever the size of the
    graph.

    Parameters
    ----------
    weight : Tensor (E,)
        Learned weights of the observed pairs.
    prior : Tensor (E,) or float
    form : str

    Returns
    -------
    Tensor ()
        With gradient 0 where every weight is as it was.
    """
    return _edge_penalty((weight - prior).square().sum(), len(weight), form)


def _edge_penalty(squares: torch.Tensor, num_edges: int, form: str) -> torch.Tensor:
    """`observed_edge_penalty` of the sum of squared differences."""
    if form == "frobenius":
        # Clamped, as the gradient of the root is infinite at 0: below the clamp it is 0.
        return (2 * squares).clamp_min(torch.finfo(squares.dtype).tiny).sqrt() * (squares > 0)
    return squares / max(num_edges, 1)


def reconstruction_loss(
    graph: Graph,
    hidden: Sequence[torch.Tensor],
    num_samples: int,
    generator: torch.Generator | None,
    engine: str,
    form: str = "squared",
) -> torch.Tensor:
    r"""Unbiased estimate of how far :math:`\sigma(H H^T)` is from A.

    ``squared``: :math:`\| \sigma(H H^T) - A \|_F^2` (Eq. 8 of the paper). Alone it makes H vanish
    on a sparse graph, whose non-edges outweigh the edges. ``cross_entropy``: the loss of Kipf and
    Welling (2016), in which both count as much, see `user_dgl.objectives.link_cross_entropy`.

    The diagonal and the edges are exact; the non-edges are estimated from pairs drawn uniformly
    from all :math:`T = N (N - 1) / 2` pairs with replacement, those that are edges being left out;
    in ``squared`` each is worth T / num_samples. Linear in edges, nodes and samples.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    hidden : sequence of R Tensors (N, d)
        H of each replica; one draw of pairs serves all, so that their losses compare.
    num_samples : int
    generator : torch.Generator or None
    engine : str
    form : str

    Returns
    -------
    Tensor (R,)
    """
    pairs = sample_pairs(graph, num_samples, generator)
    loss = _squared_error if form == "squared" else link_cross_entropy
    return torch.stack([loss(graph, h, pairs, engine) for h in hidden])


def _squared_error(
    graph: Graph, hidden: torch.Tensor, pairs: SampledPairs, engine: str
) -> torch.Tensor:
    num_nodes, (edges, loops) = graph.num_nodes, link_scores(graph, hidden, engine)
    score = pair_dot(hidden, pairs.low, pairs.high, engine)
    sampled = torch.sigmoid(score).square().masked_fill(pairs.is_edge, 0.0)
    return (
        torch.sigmoid(loops).square().sum()
        + 2 * (torch.sigmoid(edges) - 1).square().sum()
        + num_nodes * (num_nodes - 1) * sampled.sum() / max(len(score), 1)
    )


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
        """Weighted terms of a `user_dgl.model.State`; their sum is the loss of each replica.

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
                    _edge_penalty(squares, self._num_edges, config.observed_edge_form)
                    for squares in sums.squares
                ]
            )
            terms["observed_edges"] = config.observed_edge_weight * penalty.expand(num_replicas)
        return terms


def _by_replica(sums: PartitionSums, num_clusters: int) -> PartitionSums:
    """Volumes and internal weights (R K,) as (R, K)."""
    volume, internal = sums.volume.view(-1, num_clusters), sums.internal_weight
    return PartitionSums(sums.total_weight, volume, internal.view(-1, num_clusters))
