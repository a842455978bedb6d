r"""Degree-corrected block model of a graph: sums, bits, evidence, and classification EM.

The model (Karrer and Newman, 2011): the number of edges between nodes i and j is a Poisson variable
with mean :math:`\lambda_{c_i c_j} d_i d_j / 2m`, where d are the degrees, m is the number of edges
and c are the clusters. A rate :math:`\lambda_{kl}` of 1 is chance. `block_sums` is what the
likelihood is computed from, `evidence` integrates the rates out, and `refine` moves nodes.

Not in the paper. Matrices are symmetric scipy CSR without self-loops, because most of the work is
on hard clusters, for which dense assignments (N, K) are not needed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import gammaln, xlogy

from user_dgl.features.rows import ALL, Rows
from user_dgl.losses.code_length import EdgeSums, edge_bits

# A function of clusters (n,) and their number K, whose result maps rows of own nodes to the log
# likelihood (rows, K) of their features in each cluster, less one that is the same in all.
FeatureScores = Callable[[np.ndarray, int], Callable[[slice], np.ndarray]]

# Shapes of the gamma prior that are tried. They reach from rates that share nothing (1/16) to rates
# that are almost equal (4096).
_SHAPES = 2.0 ** np.arange(-4, 13)
# The prior changes slowly from step to step, so it is fitted again only after this many steps.
_PRIOR_EVERY = 5
# The refinement ends when at most this share of the nodes would move.
_FEW = 1e-4
# Share of the median lead of the best cluster that a node must gain, see `refine`.
_LEAST_SHARE = 0.1
# Scores (rows, K) that are held in memory at once.
_BLOCK_ENTRIES = 4_000_000
# Entries of the adjacency that are summed at once, at least.
_SUMMED_ENTRIES = 2**17


def indicator(clusters: np.ndarray, num_clusters: int) -> sp.csr_matrix:
    """The hard assignment Y as scipy CSR (N, K) of float64, one entry 1 in each row."""
    num_nodes = len(clusters)
    return sp.csr_matrix(
        (np.ones(num_nodes), clusters, np.arange(num_nodes + 1)), shape=(num_nodes, num_clusters)
    )


def block_sums(
    adjacency: sp.csr_matrix, clusters: np.ndarray, num_clusters: int, held: Rows = ALL
) -> np.ndarray:
    r"""Weight between clusters, :math:`M = Y^T A Y`, both directions of each edge.

    Time and memory are linear in the number of edges, plus K x K.

    Parameters
    ----------
    adjacency : scipy CSR (n, n + h)
        Symmetric. The rows of the nodes that this process owns; the other columns are those of the
        halo (`user_dgl.features.rows`).
    clusters : int64 (n,)
        0 to K - 1.
    num_clusters : int
    held : Rows

    Returns
    -------
    float64 (K, K)
        Symmetric. The sums of the rows are the volumes of the clusters; the sum is 2m.

    >>> path = sp.csr_matrix([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> block_sums(path, np.array([0, 0, 1]), 2).tolist()
    [[2.0, 1.0], [1.0, 0.0]]
    """
    others = held.extend(clusters)
    return held.sum(cluster_sums(adjacency, clusters, num_clusters, others, num_clusters))


def cluster_sums(
    matrix: sp.csr_matrix,
    clusters: np.ndarray,
    num_clusters: int,
    columns: np.ndarray | None = None,
    num_columns: int | None = None,
) -> np.ndarray:
    r"""Sums of the rows of each cluster, :math:`Y^T X`, of a sparse matrix X.

    Time is linear in the number of entries. A product of sparse matrices takes five times as long.

    Parameters
    ----------
    matrix : scipy CSR (n, F)
    clusters : int64 (n,)
        0 to K - 1.
    num_clusters : int
        K.
    columns : int64 (F,), optional
        Number of the group of each column; the columns of a group are added up. Default: none are.
    num_columns : int, optional
        L, the number of groups; default: F.

    Returns
    -------
    float64 (K, L)

    >>> cluster_sums(sp.csr_matrix([[1.0, 0], [2, 0], [0, 4]]), np.array([1, 1, 0]), 2).tolist()
    [[0.0, 4.0], [3.0, 0.0]]
    """
    width = matrix.shape[1] if num_columns is None else num_columns
    # The sums are made block by block, whose temporary arrays stay in the processor's cache. A
    # block is not smaller than the sums.
    size = max(_SUMMED_ENTRIES, num_clusters * width)
    rows = max(1, size * len(clusters) // max(1, matrix.nnz))
    first = clusters.astype(np.int64) * width
    group = None if columns is None else columns.astype(np.int32)
    total = np.zeros(num_clusters * width)
    for start in range(0, len(clusters), rows):
        ends = matrix.indptr[start : start + rows + 1]
        block = slice(ends[0], ends[-1])
        place = np.repeat(first[start : start + rows], np.diff(ends))
        place += matrix.indices[block] if group is None else group[matrix.indices[block]]
        total += np.bincount(place, weights=matrix.data[block], minlength=num_clusters * width)
    return total.reshape(num_clusters, width)


def block_bits(sums: np.ndarray) -> float:
    """Bits B_E that clusters save in the code of the edges (`user_dgl.losses.code_length`).

    Parameters
    ----------
    sums : float64 (K, K)
        As from `block_sums`.
    """
    return float(edge_bits(EdgeSums(torch.from_numpy(sums))))


@dataclass(frozen=True)
class RatePrior:
    """Gamma prior of the rates around a planted partition.

    Attributes
    ----------
    shape_in, mean_in : float
        Shape and mean of the prior of the rates within a cluster.
    shape_out, mean_out : float
        Those of the rates between two clusters.
    """

    shape_in: float = 1.0
    mean_in: float = 1.0
    shape_out: float = 1.0
    mean_out: float = 1.0


def evidence(sums: np.ndarray) -> tuple[float, RatePrior]:
    r"""Bits that the block model saves when its rates are integrated out, and the best prior.

    .. math::
        \log_2 \prod_{k \le l}
        \frac{\int \mathrm{Poisson}(m_{kl}; \lambda e_{kl})\,
        \mathrm{Gamma}(\lambda; a, a / \omega)\, d\lambda}{\mathrm{Poisson}(m_{kl}; e_{kl})}

    :math:`m_{kl} = M_{kl}` and :math:`e_{kl} = v_k v_l / 2m` for :math:`k < l`, and half of them
    for :math:`k = l`, where both directions of an edge are in M; v are the volumes. Rates within
    clusters have one prior (shape a, mean :math:`\omega`) and rates between clusters another one:
    a planted partition from which each pair of clusters may differ. The means are the observed
    ones, and the shapes are those of the highest evidence (empirical Bayes) among powers of 2. In
    contrast to `block_bits`, the value falls again when there are too many clusters.

    Parameters
    ----------
    sums : float64 (K, K)
        As from `block_sums`.

    Returns
    -------
    float, RatePrior
        Without an edge, 0 and a prior with mean 1.
    """
    volumes = sums.sum(1)
    if not volumes.any():
        return 0.0, RatePrior()
    expected = np.outer(volumes, volumes) / volumes.sum()
    upper = np.triu_indices(len(sums), 1)
    inside = _best_gamma(np.diag(sums) / 2, np.diag(expected) / 2)
    outside = _best_gamma(sums[upper], expected[upper])
    bits = (inside[0] + outside[0]) / np.log(2)
    return float(bits), RatePrior(*inside[1:], *outside[1:])


def _best_gamma(counts: np.ndarray, expected: np.ndarray) -> tuple[float, float, float]:
    """Largest log evidence (nats) of counts over the shapes of the prior; its shape and mean."""
    possible = expected > 0
    counts, expected = counts[possible], expected[possible]
    if not len(counts):
        return 0.0, 1.0, 1.0
    # Half an edge, so that the mean of a prior is not 0 where there is no edge.
    mean = max(float(counts.sum()), 0.5) / float(expected.sum())
    # Most pairs of clusters have no edge. Those need no gamma function.
    some = counts > 0
    counts, none, expected = counts[some], expected[~some], expected[some]
    # Without these terms, the sum over the pairs is independent of the shape.
    fixed = float(expected.sum() + none.sum())
    best = (-np.inf, 1.0, mean)
    for shape in _SHAPES.tolist():
        rate = shape / mean
        with_edges = (
            shape * np.log(rate)
            - gammaln(shape)
            + gammaln(shape + counts)
            - (shape + counts) * np.log(rate + expected)
        )
        without = -shape * np.log1p(none / rate)
        value = float(with_edges.sum() + without.sum()) + fixed
        if value > best[0]:
            best = (value, shape, mean)
    return best


def log_rates(sums: np.ndarray, prior: RatePrior) -> np.ndarray:
    r"""Logarithm of the rates' posterior means, which shrink towards the planted partition.

    .. math:: \lambda_{kl} = \frac{m_{kl} + a}{e_{kl} + a / \omega}

    with the symbols of `evidence`, and the prior within or between clusters.

    Parameters
    ----------
    sums : float64 (K, K)
    prior : RatePrior

    Returns
    -------
    float64 (K, K)
        Natural logarithms, finite; those of an empty cluster are the prior's.
    """
    volumes = sums.sum(1)
    expected = np.outer(volumes, volumes) / (volumes.sum() or 1.0)
    rates = (sums + prior.shape_out) / (expected + prior.shape_out / prior.mean_out)
    inside = (np.diag(sums) / 2 + prior.shape_in) / (
        np.diag(expected) / 2 + prior.shape_in / prior.mean_in
    )
    np.fill_diagonal(rates, inside)
    return np.log(rates)


def word_scores(
    words: sp.csr_matrix,
    clusters: np.ndarray,
    num_clusters: int,
    concentration: float,
    held: Rows = ALL,
) -> np.ndarray:
    r"""Logarithms :math:`\log (p(j | k) / p(j))` of how typical a column is for a cluster.

    .. math::
        p(j | k) = \frac{n_{kj} + a g_j}{n_k + a}, \qquad p(j) = g_j = \frac{n_j}{n}

    :math:`n_{kj}` counts the occurrences of column j in cluster k; :math:`n_k, n_j, n` are its
    sums. The mean of a Dirichlet posterior with concentration a around the shares of all nodes.

    Parameters
    ----------
    words : scipy CSR (n, F)
        0 and 1. The rows that this process owns.
    clusters : int64 (n,)
    num_clusters : int
    concentration : float
        a, more than 0.
    held : Rows

    Returns
    -------
    float64 (F, K)
        Finite. 0 for an empty cluster.

    Raises
    ------
    ValueError
        ``concentration`` is not more than 0.
    """
    if concentration <= 0:
        raise ValueError(f"concentration: expected more than 0, got {concentration}")
    sums = held.sum(cluster_sums(words, clusters, num_clusters))
    counts = np.ascontiguousarray(sums.T)  # (F, K)
    in_column, in_cluster = counts.sum(1, keepdims=True), counts.sum(0)
    share = in_column / max(counts.sum(), 1.0)
    counts /= np.where(share > 0, share, 1.0)
    # n_kj is 0 in a column without occurrences, and no node reads its value.
    return np.log((counts + concentration) / (in_cluster + concentration))


def refine(
    adjacency: sp.csr_matrix,
    clusters: np.ndarray,
    num_clusters: int,
    steps: int,
    rng: np.random.Generator,
    feature_scores: FeatureScores | None = None,
    held: Rows = ALL,
    least_gain: float = 0.0,
) -> np.ndarray:
    r"""Move nodes to more likely clusters: classification EM (Celeux and Govaert, 1992).

    In each step, the rates are estimated from the clusters (`evidence`, `log_rates`). The best
    cluster of node i is then

    .. math::
        \arg\max_k \sum_j A_{ij} \log \lambda_{c_j k}
        - d_i \sum_l \lambda_{kl} \frac{v_l}{2m}
        + \log p(x_i | k)

    where the last term is there only with ``feature_scores``; of words it is
    :math:`\sum_j X_{ij} \log (p(j | k) / p(j))` (`word_scores`). Of the nodes that would gain
    enough, a random half moves, because neighbours that all move at once can change places for
    ever. It stops when at most one node in 10,000 would move.

    A node gains enough if its log likelihood grows by more than :math:`\min(g, m / 10)`, where g is
    ``least_gain`` and m is the median over the nodes of how far the best cluster is ahead of the
    second best at the start. Neighbours and words of a node are not independent, as the model takes
    them to be, so that small gains are often chance. Where the data say little about most nodes, m
    is small, and it is 0 where half of the nodes fit to their two best clusters alike.

    A node that fits to all clusters alike, as one without edges and words, keeps its own. A cluster
    with nodes keeps at least one: if all of them would leave in a step and none would come, then
    the one that gains least stays. An empty cluster may be filled. Nothing says that the likelihood
    is higher in the end; it nearly always is. Edges only between clusters are found too, if the
    first clusters show some of it.

    Time of a step is linear in the number of neighbouring clusters of all nodes times K. Memory is
    linear in the edges, the nodes and K x K.

    Parameters
    ----------
    adjacency : scipy CSR (n, n + h)
        Symmetric, without self-loops. Rows as for `block_sums`.
    clusters : int64 (n,)
        First clusters, 0 to K - 1. Not changed.
    num_clusters : int
    steps : int
        Most steps.
    rng : numpy.random.Generator
        Says which half moves.
    feature_scores : FeatureScores, optional
        Without it, the edges alone decide.
    held : Rows
    least_gain : float
        g, in nats. With 0, nodes that fit to two clusters almost equally well move too.

    Returns
    -------
    int64 (n,)

    Raises
    ------
    ValueError
        A first cluster is outside 0..K-1.
    """
    clusters = np.array(clusters, dtype=np.int64)
    if len(clusters) and not 0 <= clusters.min() <= clusters.max() < num_clusters:
        raise ValueError(f"clusters: expected numbers in 0..{num_clusters - 1}")
    degree = np.asarray(adjacency.sum(1)).ravel().astype(np.float64)
    prior, num_nodes = RatePrior(), held.count(len(clusters))
    for step in range(steps):
        sums = block_sums(adjacency, clusters, num_clusters, held)
        if step % _PRIOR_EVERY == 0:
            prior = evidence(sums)[1]
        of_features = feature_scores(clusters, num_clusters) if feature_scores else None
        neighbors = adjacency @ indicator(held.extend(clusters), num_clusters)  # (n, K), sparse
        lead = np.zeros(len(clusters)) if step == 0 and least_gain > 0 else None
        target, gain = _best_clusters(
            neighbors.tocsr(), degree, clusters, sums, log_rates(sums, prior), of_features, lead
        )
        if lead is not None:
            least_gain = min(least_gain, _LEAST_SHARE * float(np.median(held.all(lead))))
        sizes = held.sum(np.bincount(clusters, minlength=num_clusters))
        # The only node of a cluster stays, and must not keep the loop going.
        would = (gain > least_gain) & (sizes[clusters] > 1)
        if held.count(would.sum()) <= _FEW * num_nodes:
            break
        moves = would & (held.own(rng.random(num_nodes)) < 0.5)
        moves = _without_emptying(clusters, target, gain, moves, num_clusters, held)
        clusters = np.where(moves, target, clusters)
    return clusters


def _best_clusters(
    neighbors: sp.csr_matrix,
    degree: np.ndarray,
    clusters: np.ndarray,
    sums: np.ndarray,
    logs: np.ndarray,
    of_features: Callable[[slice], np.ndarray] | None,
    lead: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best cluster of each own node, int64 (n,), and the nats that it gains there, (n,).

    ``neighbors`` (n, K) has the weight of each node's edges to each cluster. ``lead`` (n,) is
    filled with the nats by which the best cluster is ahead of the second best.
    """
    num_clusters, num_nodes = len(sums), len(clusters)
    expected = np.exp(logs) @ sums.sum(1) / (sums.sum() or 1.0)  # for one unit of degree
    target, gain = np.empty(num_nodes, dtype=np.int64), np.empty(num_nodes)
    height = max(1, _BLOCK_ENTRIES // num_clusters)
    for start in range(0, num_nodes, height):
        block = slice(start, start + height)
        score = neighbors[block] @ logs
        score -= np.outer(degree[block], expected)
        if of_features is not None:
            score += of_features(block)
        rows = np.arange(len(score))
        best = score.argmax(1)
        difference = score[rows, best] - score[rows, clusters[block]]
        # Equal sums that were added in another order may differ in their last digits.
        difference[difference <= 1e-9 * np.abs(score[rows, best])] = 0
        target[block], gain[block] = best, difference
        if lead is not None and num_clusters > 1:
            first_two = np.partition(score, -2, axis=1)[:, -2:]
            lead[block] = first_two[:, 1] - first_two[:, 0]
    return target, gain


def _without_emptying(
    clusters: np.ndarray,
    target: np.ndarray,
    gain: np.ndarray,
    moves: np.ndarray,
    num_clusters: int,
    held: Rows = ALL,
) -> np.ndarray:
    """Withdraw moves, those of least gain first, until no cluster in use would become empty."""
    used = held.sum(np.bincount(clusters, minlength=num_clusters)) > 0
    moves = moves.copy()
    while True:
        after = np.where(moves, target, clusters)
        emptied = used & (held.sum(np.bincount(after, minlength=num_clusters)) == 0)
        if not emptied.any():
            return moves
        # Each pass lets at least one more node stay, so the loop ends. All processes look at the
        # nodes of all, which is seldom needed.
        everywhere, gains = held.all(clusters), held.all(gain)
        leaving = np.flatnonzero(held.all(moves) & emptied[everywhere])
        leaving = leaving[np.argsort(gains[leaving], kind="stable")]
        _, first = np.unique(everywhere[leaving], return_index=True)
        stays = np.zeros(len(everywhere), dtype=bool)
        stays[leaving[first]] = True
        moves &= ~held.own(stays)


def entropy_bits(shares: np.ndarray) -> float:
    """Entropy of shares that add up to 1, in bits."""
    return float(-xlogy(shares, shares).sum() / np.log(2))
