r"""Structural entropy of a weighted graph and an assignment.

Everything here depends on the graph only through sums over pairs: the total weight
:math:`2m = \sum_{uv} A_{uv}` (both directions), the volumes :math:`v_k = (1^T A Y)_k` and the
internal weights :math:`e_k = (Y^T A Y)_{kk}`. `PartitionSums` holds them, and `npsi` is a pure
function of that. So a full batch, a part of a graph or one process of several contribute sums,
which add up; averaging their entropies would be wrong.
"""

from dataclasses import dataclass

import torch

from user_dgl.graph import Graph
from user_dgl.graph.ops import internal_weight, weighted_degree


@dataclass(frozen=True, eq=False)
class PartitionSums:
    """Sums that NPSI is a function of.

    Attributes
    ----------
    total_weight : Tensor ()
        2m: the weight of every pair counted in both directions.
    volume : Tensor (K,)
        Sum of the weighted degrees in each cluster.
    internal_weight : Tensor (K,)
        Weight inside each cluster, both directions.
    """

    total_weight: torch.Tensor
    volume: torch.Tensor
    internal_weight: torch.Tensor

    def __add__(self, other: "PartitionSums") -> "PartitionSums":
        return PartitionSums(
            self.total_weight + other.total_weight,
            self.volume + other.volume,
            self.internal_weight + other.internal_weight,
        )


def partition_sums(
    graph: Graph,
    weight: torch.Tensor,
    assignment: torch.Tensor,
    engine: str,
    degree: torch.Tensor | None = None,
) -> PartitionSums:
    """Sums of a weighted graph and a soft or hard assignment.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    assignment : Tensor (N, K)
        Rows that add up to 1.
    engine : str
    degree : Tensor (N,), optional
        Weighted degrees, where they are known already.

    Returns
    -------
    PartitionSums
    """
    if degree is None:
        degree = weighted_degree(graph, weight, engine)
    return PartitionSums(
        degree.sum(), degree @ assignment, internal_weight(graph, weight, assignment, engine)
    )


def npsi(sums: PartitionSums) -> torch.Tensor:
    r"""Network partition structural information in bits, 0 for a graph without weight.

    .. math:: \mathrm{NPSI} = \sum_k \frac{e_k}{2m} \log_2 \frac{v_k}{2m}

    The matrix form below Eq. 2 of the paper prints :math:`2\,\mathrm{sum}(A)` in the denominators;
    with ``sum(A)`` counting both directions that would halve every ratio. The authors' code divides
    by ``sum(A)``, which makes the ratios those of Eq. 2 and is followed here.

    Lies in :math:`[-\log_2 K, 0]`: 0 for one cluster, :math:`-\log_2 K` for K disjoint parts of
    equal volume that are the clusters. For a hard partition ``-npsi`` equals the one-dimensional
    less the two-dimensional structural entropy.

    Volumes and internal weights of shape (..., K) give as many values as there are rows of K.

    >>> ones = torch.ones(2)
    >>> npsi(PartitionSums(torch.tensor(2.0), ones, ones)).item()
    -1.0
    """
    tiny = torch.finfo(sums.volume.dtype).tiny
    # Without weight every sum is 0: any divisor but 0 gives 0 and finite gradients.
    total = sums.total_weight.where(sums.total_weight > 0, torch.ones_like(sums.total_weight))
    # An empty cluster has e_k = v_k = 0; the clamp keeps 0 * log 0 at 0 and its gradient finite.
    bits = torch.log2((sums.volume / total).clamp_min(tiny))
    return (sums.internal_weight / total * bits).sum(-1)


def one_dimensional_entropy(degree: torch.Tensor) -> torch.Tensor:
    r"""Entropy of a step to a node, :math:`-\sum_i \frac{d_i}{2m} \log_2 \frac{d_i}{2m}`, in bits.

    Parameters
    ----------
    degree : Tensor (N,)
        Weighted degrees; nodes of degree 0 contribute nothing.
    """
    share = degree[degree > 0] / degree.sum()
    return -(share * torch.log2(share)).sum()


def two_dimensional_entropy(
    graph: Graph, weight: torch.Tensor, clusters: torch.Tensor, engine: str
) -> torch.Tensor:
    r"""Two-dimensional structural entropy of a hard partition, in bits.

    .. math::
        -\sum_k \frac{g_k}{2m} \log_2 \frac{v_k}{2m}
        - \sum_k \sum_{i \in k} \frac{d_i}{2m} \log_2 \frac{d_i}{v_k}

    with :math:`g_k = v_k - e_k` the weight that leaves cluster k (Li and Pan, 2016).

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    clusters : Tensor (N,) of int
    engine : str
    """
    degree = weighted_degree(graph, weight, engine)
    assignment = torch.nn.functional.one_hot(clusters).to(weight.dtype)
    sums = partition_sums(graph, weight, assignment, engine)
    total = sums.total_weight
    used = sums.volume > 0
    cut = (sums.volume - sums.internal_weight)[used]
    between = -(cut / total * torch.log2(sums.volume[used] / total)).sum()
    present = degree > 0
    share_in_cluster = degree[present] / sums.volume[clusters[present]]
    within = -(degree[present] / total * torch.log2(share_in_cluster)).sum()
    return between + within
