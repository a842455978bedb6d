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

# Smallest share of a column's variance that is assumed within clusters. It limits the bits of a
# column that is constant in every cluster, whose code length has no lower bound.
_LEAST_WITHIN = 1e-6


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
    squares : Tensor (..., K, d)
        :math:`\\sum_i Y_{ik} x_i^2`, column by column.
    """

    sizes: torch.Tensor
    sums: torch.Tensor
    squares: torch.Tensor

    def __add__(self, other: "GaussianSums") -> "GaussianSums":
        return GaussianSums(
            self.sizes + other.sizes, self.sums + other.sums, self.squares + other.squares
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
    shape = (*assignment.shape[1:], points.shape[1])
    by_column = assignment.flatten(1).t()  # (K, N) or (R K, N)
    return GaussianSums(
        assignment.sum(0),
        (by_column @ points).view(shape),
        (by_column @ points.square()).view(shape),
    )


def gaussian_bits(sums: GaussianSums) -> torch.Tensor:
    r"""Bits that the clusters save in the code of real-valued columns.

    .. math::
        B_G = \frac N2 \sum_j \log_2 \frac{s_j^2}{s_{j,\mathrm{within}}^2}, \qquad
        s_{j,\mathrm{within}}^2 = \frac1N \sum_{ik} Y_{ik} (x_{ij} - c_{kj})^2

    Each column is coded by the mean of the cluster and a variance within clusters that all clusters
    share, instead of by the mean and the variance :math:`s_j^2` of all nodes. Without the entropy
    of the clusters, this is the gain in the classification likelihood of a Gaussian mixture with
    one common diagonal covariance (Celeux and Govaert, 1992 and 1995). It is not in the paper. The
    columns are taken as independent, so the caller should whiten them. The precision to which the
    values are coded does not matter, because it is the same in both codes.

    The value is not negative. It is 0 for one cluster. A constant column saves nothing. At most
    all but 1e-6 of the variance of a column is between clusters, else the bits would be infinite.

    Parameters
    ----------
    sums : GaussianSums

    Returns
    -------
    Tensor (...)

    >>> sums = GaussianSums(torch.tensor([2.0, 2.0]), *torch.tensor([[[2.0], [-2.0]], [[2.5]] * 2]))
    >>> round(gaussian_bits(sums).item(), 3)  # variances 1.25 and 0.25
    4.644
    """
    size = sums.sizes.unsqueeze(-1)  # (..., K, 1)
    number = size.sum(-2)  # (..., 1)
    one = torch.ones_like(size)
    square_of_means = sums.sums.square() / size.where(size > 0, one)  # n_k c_k^2
    square = sums.squares.sum(-2)  # (..., d)
    within = square - square_of_means.sum(-2)
    spread = square - sums.sums.sum(-2).square() / number.where(number > 0, one[..., 0, :])
    # A variance that is smaller than the rounding error of its sums is 0.
    varies = spread > torch.finfo(spread.dtype).eps * square
    spread = spread.where(varies, torch.ones_like(spread))
    share = (within / spread).clamp(_LEAST_WITHIN, 1.0).where(varies, torch.ones_like(spread))
    return -number[..., 0] / 2 * torch.log2(share).sum(-1)
