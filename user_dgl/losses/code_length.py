r"""Bits that a clustering saves in the code of a graph and of its features.

A code that knows the clusters describes edges and features with fewer bits than one that does not.
The difference is counted in the same unit for edges (`edge_bits`), for words or other counts
(`feature_bits`) and for real-valued columns (`gaussian_bits`). So the parts can be added without a
weight between them.

Each part is a function of sums over pairs and nodes. The sums of several parts of a graph, or of
several processes, are added up first. Adding up their bits would be wrong. The bits are differences
of maximised log-likelihoods: the code of the parameters themselves is not counted, so a clustering
into more clusters never saves fewer bits than one that it refines. Only `predictive_feature_bits`
counts it.

The functions accept one assignment Y (N, K), or those of R replicas (N, R, K). Then every sum has
a leading dimension R, and so has the result.
"""

import math
from dataclasses import dataclass

import torch

from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.graph.ops import between_weight

# Smallest variance that is assumed in a direction, where each column has variance 1. It limits the
# bits of a column that is constant in every cluster, whose code length has no lower bound.
LEAST_WITHIN = 1e-6
# Roundings of a sum of squares, at most, by which it differs from what it is.
_ROUNDINGS = 16


@dataclass(frozen=True, eq=False)
class EdgeSums:
    """Sums from which `edge_bits` is computed. The sums of parts of a graph can be added.

    Attributes
    ----------
    between : Tensor (..., K, K)
        Weight of the pairs between two clusters, :math:`Y^T A Y`. Both directions of a pair count,
        so the sum of all entries is 2m, and the sums of the rows are the volumes.
    """

    between: torch.Tensor

    def __add__(self, other: "EdgeSums") -> "EdgeSums":
        return EdgeSums(self.between + other.between)


def edge_sums(
    graph: Graph, weight: torch.Tensor, assignment: torch.Tensor, engine: str
) -> EdgeSums:
    """Compute the sums of a weighted graph and a soft or hard assignment.

    Time is linear in the number of pairs times the number of columns of Y.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
        Not negative.
    assignment : Tensor (N, K) or (N, R, K)
        Y; each row adds up to 1.
    engine : str
    """
    return EdgeSums(between_weight(graph, weight, assignment, engine))


def edge_bits(sums: EdgeSums) -> torch.Tensor:
    r"""Bits that the clusters save in the code of the edges.

    .. math::
        B_E = W \sum_{kl} P_{kl} \log_2 \frac{P_{kl}}{v_k v_l}, \qquad
        P = \frac{Y^T A Y}{2m}, \quad v_k = \sum_l P_{kl}, \quad W = m

    W is the weight of all undirected edges. For a hard partition this is the gain in likelihood of
    the degree-corrected block model (Karrer and Newman, 2011) over the model with one cluster. It
    is not in the paper. Where no edge joins two clusters it equals ``-W`` times NPSI
    (`user_dgl.losses.entropy.npsi`), the paper's term; otherwise the edges between clusters count
    too. In contrast to NPSI, it is 0 for clusters that the edges do not depend on, and clusters
    that avoid each other also save bits.

    The value is not negative. It is 0 for one cluster and for a graph without edges. Empty clusters
    add nothing, and the gradients are finite.

    Parameters
    ----------
    sums : EdgeSums

    Returns
    -------
    Tensor (...)

    >>> edge_bits(EdgeSums(torch.tensor([[4.0, 0.0], [0.0, 4.0]]))).item()
    4.0
    """
    return _dependence(sums.between) / 2


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Sums from which `feature_bits` is computed. The sums of disjoint sets of nodes can be added.

    Attributes
    ----------
    occurrences : Tensor (..., K, F)
        :math:`Y^T X`, the number of occurrences of each column in each cluster.
    """

    occurrences: torch.Tensor

    def __add__(self, other: "FeatureSums") -> "FeatureSums":
        return FeatureSums(self.occurrences + other.occurrences)


def feature_sums(features: FeatureMatrix, assignment: torch.Tensor) -> FeatureSums:
    """Compute the sums of features X (N, F) and a soft or hard assignment.

    The caller decides which values are counted. For words in documents these are either 0 and 1
    (`FeatureMatrix.pattern`: each non-zero counts once) or the numbers of occurrences.

    Parameters
    ----------
    features : FeatureMatrix
        Not negative.
    assignment : Tensor (N, K) or (N, R, K)
        Y; each row adds up to 1.
    """
    products = features.t_matmul(assignment.flatten(1))  # (F, K) or (F, R K)
    return FeatureSums(products.t().reshape(*assignment.shape[1:], features.shape[1]))


def feature_bits(sums: FeatureSums) -> torch.Tensor:
    r"""Bits that the clusters save in the code of counts, such as words.

    .. math::
        B_X = n \sum_{kj} p_{kj} \log_2 \frac{p_{kj}}{p_{k\cdot}\, p_{\cdot j}}, \qquad
        p = \frac{Y^T X}{n}, \quad n = \sum_{ij} X_{ij}

    Each occurrence is coded on its own, by the shares of the columns in its cluster instead of
    those in all nodes. The score is n times the mutual information of clusters and columns, which
    is the score of the information bottleneck for words (Slonim and Tishby, 2000). It is not in the
    paper. Occurrences in one node are taken as independent. A column that occurs only once saves
    bits in any clustering.

    The value is not negative. It is 0 for one cluster and for features without a non-zero. Empty
    clusters and empty columns add nothing, and the gradients are finite.

    Parameters
    ----------
    sums : FeatureSums

    Returns
    -------
    Tensor (...)

    >>> feature_bits(FeatureSums(torch.tensor([[3.0, 0.0], [0.0, 3.0]]))).item()
    6.0
    """
    return _dependence(sums.occurrences)


def predictive_feature_bits(sums: FeatureSums) -> tuple[float, float]:
    r"""Bits of the counts under a code that also pays for its parameters, and its concentration.

    .. math::
        B_D = \max_a \sum_k \log_2 \frac{\Gamma(a)}{\Gamma(a + n_k)}
        \prod_j \frac{\Gamma(a g_j + n_{kj})}{\Gamma(a g_j)} - \sum_j n_j \log_2 g_j

    Here :math:`n_{kj}` is the number of occurrences of column j in cluster k, :math:`n_k` and
    :math:`n_j` are its sums, and :math:`g_j = n_j / n`. Each occurrence is coded with the shares of
    the columns among the occurrences before it in its cluster, mixed with the shares g as if a
    further occurrences had followed them. This is the Dirichlet-multinomial or Polya code. The
    shares of a cluster are thus learned while it is coded, and `feature_bits`, which takes them as
    known, is much larger if there are many columns for few nodes. It is not in the paper.

    The value can be negative: such a clustering says less about the columns than nothing does.

    Parameters
    ----------
    sums : FeatureSums
        Of a hard assignment, without replicas.

    Returns
    -------
    float, float
        The bits, and a, the best of F times the powers of 2 from 1/32 to 32.

    >>> sums = FeatureSums(torch.tensor([[30.0, 0.0], [0.0, 30.0]]))
    >>> predictive_feature_bits(sums)[0] < feature_bits(sums).item()
    True
    """
    counts = sums.occurrences.double()
    by_column = counts.sum(0)
    counts, by_column = counts[:, by_column > 0], by_column[by_column > 0]
    if not by_column.numel():
        return 0.0, 1.0
    share = by_column / by_column.sum()
    alone = float((by_column * share.log()).sum())
    cluster, column = counts.nonzero(as_tuple=True)
    seen, sizes = counts[cluster, column], counts.sum(1)

    def bits(a: float) -> float:
        prior = a * share[column]
        by_cluster = math.lgamma(a) - torch.lgamma(a + sizes)
        coded = by_cluster.sum() + (torch.lgamma(prior + seen) - torch.lgamma(prior)).sum()
        return (float(coded) - alone) / math.log(2)

    tried = [by_column.numel() * 2.0**power for power in range(-5, 6)]
    return max((bits(a), a) for a in tried)


def _dependence(table: torch.Tensor) -> torch.Tensor:
    """Sum of a table (..., K, L) times the mutual information of its rows and columns, in bits."""
    tiny = torch.finfo(table.dtype).tiny
    total = table.sum((-2, -1), keepdim=True)
    # If the total is 0, all entries are 0. With a divisor of 1, the value is 0 and the gradients
    # are finite.
    share = table / total.where(total > 0, torch.ones_like(total))

    def bits(x: torch.Tensor) -> torch.Tensor:
        # The clamp keeps 0 * log 0 at 0 and its gradient finite. In an empty cluster the clamped
        # logarithms of the entry and of its row cancel.
        return torch.log2(x.clamp_min(tiny))

    rows, columns = share.sum(-1, keepdim=True), share.sum(-2, keepdim=True)
    # The difference of logarithms cannot underflow, but the product of two shares can.
    saved = share * (bits(share) - bits(rows) - bits(columns))
    return total[..., 0, 0] * saved.sum((-2, -1))


@dataclass(frozen=True, eq=False)
class GaussianSums:
    """Sums from which `gaussian_bits` is computed. The sums of disjoint sets of nodes can be added.

    Attributes
    ----------
    sizes : Tensor (..., K)
        :math:`n_k = \\sum_i Y_{ik}`.
    sums : Tensor (..., K, d)
        :math:`\\sum_i Y_{ik} x_i`.
    products : Tensor (d, d)
        :math:`\\sum_i x_i x_i^T`, which no assignment has a part in.
    """

    sizes: torch.Tensor
    sums: torch.Tensor
    products: torch.Tensor

    def __add__(self, other: "GaussianSums") -> "GaussianSums":
        return GaussianSums(
            self.sizes + other.sizes, self.sums + other.sums, self.products + other.products
        )


def gaussian_sums(points: torch.Tensor, assignment: torch.Tensor) -> GaussianSums:
    """Compute the sums of real-valued points and a soft or hard assignment.

    Parameters
    ----------
    points : Tensor (N, d)
        Columns of mean 0 or near it, because sums of squares of points far from 0 lose the digits
        that differ between nodes.
    assignment : Tensor (N, K) or (N, R, K)
        Y; each row adds up to 1.
    """
    by_column = assignment.flatten(1).t()  # (K, N) or (R K, N)
    sums = (by_column @ points).view(*assignment.shape[1:], points.shape[1])
    return GaussianSums(assignment.sum(0), sums, points.t() @ points)


def gaussian_bits(sums: GaussianSums) -> torch.Tensor:
    r"""Bits that the clusters save in the code of real-valued columns.

    .. math::
        B_G = \frac N2 \log_2 \frac{\det T}{\det W}, \qquad
        T = \frac1N \sum_i (x_i - m)(x_i - m)^T, \qquad
        W = \frac1N \sum_{ik} Y_{ik} (x_i - c_k)(x_i - c_k)^T

    Each node is coded by the mean :math:`c_k` of its cluster and a covariance within clusters that
    all clusters share, instead of by the mean m and the covariance of all nodes. Without the
    entropy of the clusters, this is the gain in the classification likelihood of a Gaussian mixture
    with one common covariance (Friedman and Rubin, 1967; Celeux and Govaert, 1992 and 1995). It is
    not in the paper. A linear map of the columns changes it only by the limit below, so neither
    their scales nor their correlations matter: columns that say the same are not counted twice. It
    is a gain in the sample: with nearly as many columns as nodes, any clusters save bits. The
    precision to which the values are coded does not matter, because it is the same in both codes.

    The value is not negative. It is 0 for one cluster. A constant column, or one that is a linear
    function of others, saves nothing. Where each column has variance 1, T and W have no eigenvalue
    below 1e-6, else the bits of a column that the clusters determine would be infinite.

    Parameters
    ----------
    sums : GaussianSums

    Returns
    -------
    Tensor (...)

    >>> both = GaussianSums(
    ...     torch.tensor([2.0, 2.0]), torch.tensor([[2.0], [-2.0]]), torch.tensor([[5.0]])
    ... )
    >>> round(gaussian_bits(both).item(), 3)  # variances 1.25 and 0.25
    4.644
    """
    # Differences of sums, so that float32 would lose what they differ by.
    sizes, by_cluster, products = (x.double() for x in (sums.sizes, sums.sums, sums.products))
    number, size = sizes.sum(-1), sizes.unsqueeze(-1)  # (...), (..., K, 1)
    # Rows s_k / sqrt(n_k), whose products are n_k c_k c_k^T. An empty cluster has none.
    apart = by_cluster / size.where(size > 0, torch.ones_like(size)).sqrt()
    of_one = by_cluster.sum(-2) / number.clamp_min(1e-300).sqrt().unsqueeze(-1)
    of_all = products - of_one.unsqueeze(-1) * of_one.unsqueeze(-2)
    within = products - apart.mT @ apart
    # A variance that is smaller than the rounding error of its sums is 0.
    square, spread = products.diagonal(), of_all.diagonal(dim1=-2, dim2=-1)
    varies = spread > _ROUNDINGS * torch.finfo(sums.products.dtype).eps * square
    scale = spread.where(varies, torch.ones_like(spread)).rsqrt().where(varies, 0 * spread)
    scale = scale.unsqueeze(-1) * scale.unsqueeze(-2)
    alone, rest = (
        torch.linalg.eigvalsh(scale * each).clamp_min(LEAST_WITHIN) for each in (of_all, within)
    )
    bits = number / 2 * (torch.log2(alone) - torch.log2(rest)).sum(-1)
    return bits.to(sums.sums.dtype)
