"""The terms that USER minimises, each a function of tensors, and their weighted sum by name."""

from dataclasses import dataclass

import torch

from user_dgl.config import LossConfig
from user_dgl.entropy import npsi, partition_sums
from user_dgl.feature_matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.ops import edge_dot, weighted_degree

# Below this a squared distance is rounding; the square root's gradient would be infinite at 0.
_LEAST_SQUARE = 1e-12


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
        ``soft_features`` only: :math:`\mu`.
    """

    count: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor
    cross: torch.Tensor | None = None
    mean: torch.Tensor | None = None


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
    used = sums.count > torch.finfo(sums.count.dtype).eps
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
    difference = weight - prior
    if form == "frobenius":
        # vector_norm has the subgradient 0 at 0, where sqrt(sum of squares) would give NaN.
        return 2**0.5 * torch.linalg.vector_norm(difference)
    return difference.square().sum() / max(len(weight), 1)


def reconstruction_loss(
    graph: Graph,
    hidden: torch.Tensor,
    num_samples: int,
    generator: torch.Generator | None,
    engine: str,
) -> torch.Tensor:
    r"""Unbiased estimate of :math:`\| \sigma(H H^T) - A \|_F^2` (Eq. 8 of the paper).

    The diagonal and the edges are exact; the non-edges are estimated from pairs drawn uniformly
    from all :math:`T = N (N - 1) / 2` pairs with replacement, each worth T / num_samples, edges
    among them being worth 0. Linear in edges, nodes and samples.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    hidden : Tensor (N, d)
    num_samples : int
    generator : torch.Generator or None
    engine : str

    Returns
    -------
    Tensor ()
    """
    num_nodes, device = graph.num_nodes, hidden.device
    diagonal = torch.sigmoid(hidden.square().sum(1)).square().sum()
    edges = (torch.sigmoid(edge_dot(graph, hidden, engine)) - 1).square().sum()
    if num_nodes < 2:
        return diagonal
    u = torch.randint(num_nodes, (num_samples,), generator=generator)
    # Any node but u, uniformly, so that each unordered pair is equally likely.
    v = torch.randint(num_nodes - 1, (num_samples,), generator=generator)
    v = v + (v >= u)
    low, high = torch.minimum(u, v), torch.maximum(u, v)
    is_edge = torch.from_numpy(graph.positions((low * num_nodes + high).numpy()) >= 0).to(device)
    score = torch.sigmoid((hidden[low.to(device)] * hidden[high.to(device)]).sum(1))
    sampled = score.square().masked_fill(is_edge, 0.0).mean()
    return diagonal + 2 * edges + num_nodes * (num_nodes - 1) * sampled


class USERLoss:
    r"""The loss of USER as named, weighted terms.

    .. math::
        \mathcal L = \gamma\,[\mathrm{NPSI}(A', Y) + \mathrm{NPSI}(A, Y)]
        + \beta\,\mathrm{DBI}(X, Y) + \alpha\,\mathcal L_{obs}(A')
        + \alpha'\,\| \sigma(H H^T) - A \|_F^2

    The paper (Eq. 5 and 9) has NPSI(A', Y), DBI and the reconstruction; the authors' code has both
    NPSI terms, DBI and the tie to the observed edges. `LossConfig` says which terms a run uses.

    Parameters
    ----------
    config : LossConfig
    graph : Graph
        Observed graph A, weight 1 on every edge.
    features : FeatureMatrix
    engine : str
    prior : Tensor (E,) or float
        First weights of the observed edges.
    """

    def __init__(
        self,
        config: LossConfig,
        graph: Graph,
        features: FeatureMatrix,
        engine: str,
        prior: torch.Tensor | float = 1.0,
    ):
        self.config, self.graph, self.features, self.engine = config, graph, features, engine
        self.prior = prior
        self._ones = torch.ones(graph.num_edges, device=graph.src.device, dtype=features.dtype)
        self._degree = weighted_degree(graph, self._ones, engine)

    def __call__(self, state, generator: torch.Generator | None = None) -> dict[str, torch.Tensor]:
        """Weighted terms of a `user_dgl.model.State`; their sum is the loss.

        Parameters
        ----------
        state : State
        generator : torch.Generator, optional
            For the sampled non-edges of the reconstruction.

        Returns
        -------
        dict of str to Tensor ()
        """
        config, engine, terms = self.config, self.engine, {}
        if config.npsi_weight:
            learned = partition_sums(state.graph, state.weight, state.assignment, engine)
            terms["npsi"] = config.npsi_weight * npsi(learned)
            if config.npsi_observed:
                observed = partition_sums(
                    self.graph, self._ones, state.assignment, engine, degree=self._degree
                )
                terms["npsi_observed"] = config.npsi_weight * npsi(observed)
        if config.davies_bouldin_weight:
            sums = davies_bouldin_sums(self.features, state.assignment, config.davies_bouldin_form)
            terms["davies_bouldin"] = config.davies_bouldin_weight * davies_bouldin(sums)
        if config.observed_edge_weight and state.learnable:
            penalty = observed_edge_penalty(
                state.weight[state.observed], self.prior, config.observed_edge_form
            )
            terms["observed_edges"] = config.observed_edge_weight * penalty
        if config.reconstruction_weight:
            samples = config.reconstruction_samples * self.graph.num_nodes
            penalty = reconstruction_loss(self.graph, state.hidden, samples, generator, engine)
            terms["reconstruction"] = config.reconstruction_weight * penalty
        return terms
