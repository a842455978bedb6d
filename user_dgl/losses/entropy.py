r"""Structural entropy of a weighted graph and an assignment.

The network partition structural information (NPSI) depends on the graph only through sums over
pairs: the total weight :math:`2m = \sum_{uv} A_{uv}` (both directions), the volumes
:math:`v_k = (1^T A Y)_k` and the internal weights :math:`e_k = (Y^T A Y)_{kk}`. `PartitionSums`
holds these sums, and `npsi` is a pure function of them. The sums of several parts of a graph, or of
several processes, are added up before `npsi`. A mean of their entropies would be wrong.
"""

from dataclasses import dataclass

import torch

from user_dgl.graph import Graph
from user_dgl.graph.ops import internal_weight, weighted_degree


@dataclass(frozen=True, eq=False)
class PartitionSums:
    """Sums from which `npsi` is computed. The sums of parts of a graph can be added with ``+``.

    Attributes
    ----------
    total_weight : Tensor ()
        2m, the weight of all pairs; both directions of a pair count.
    volume : Tensor (K,)
        Sum of the weighted degrees in each cluster.
    internal_weight : Tensor (K,)
        Weight of the pairs inside each cluster; both directions of a pair count.
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
    """Compute the sums of a weighted graph and a soft or hard assignment.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    assignment : Tensor (N, K)
        Y; each row adds up to 1.
    engine : str
    degree : Tensor (N,), optional
        Weighted degrees, if they are already known. Default: computed.

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
    r"""Network partition structural information (Eq. 2 of the paper), in bits.

    .. math:: \mathrm{NPSI} = \sum_k \frac{e_k}{2m} \log_2 \frac{v_k}{2m}

    The matrix form below Eq. 2 of the paper has :math:`2\,\mathrm{sum}(A)` in the denominators. As
    ``sum(A)`` counts both directions, every ratio would be half of that in Eq. 2. The authors' code
    divides by ``sum(A)``, which agrees with Eq. 2. This function does the same.

    The value is in :math:`[-\log_2 K, 0]`. It is 0 for one cluster and for a graph whose total
    weight is 0. It is :math:`-\log_2 K` if the clusters are K disconnected parts of equal volume.
    For a hard partition, ``-npsi`` is the one-dimensional structural entropy minus the
    two-dimensional one.

    Volumes and internal weights of shape (..., K) give values of shape (...).

    >>> ones = torch.ones(2)
    >>> npsi(PartitionSums(torch.tensor(2.0), ones, ones)).item()
    -1.0
    """
    tiny = torch.finfo(sums.volume.dtype).tiny
    # If the total weight is 0, all sums are 0. With a divisor of 1, the value is 0 and the
    # gradients are finite.
    total = sums.total_weight.where(sums.total_weight > 0, torch.ones_like(sums.total_weight))
    # An empty cluster has e_k = v_k = 0; the clamp keeps 0 * log 0 at 0 and its gradient finite.
    bits = torch.log2((sums.volume / total).clamp_min(tiny))
    return (sums.internal_weight / total * bits).sum(-1)


def one_dimensional_entropy(degree: torch.Tensor) -> torch.Tensor:
    r"""One-dimensional structural entropy (Li and Pan, 2016), in bits.

    .. math:: -\sum_i \frac{d_i}{2m} \log_2 \frac{d_i}{2m}

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
    r"""Two-dimensional structural entropy of a hard partition (Li and Pan, 2016), in bits.

    .. math::
        -\sum_k \frac{g_k}{2m} \log_2 \frac{v_k}{2m}
        - \sum_k \sum_{i \in k} \frac{d_i}{2m} \log_2 \frac{d_i}{v_k}

    where :math:`g_k = v_k - e_k` is the weight of the pairs between cluster k and other clusters.

    Parameters
    ----------
    graph : Graph
    weight : Tensor (E,)
    clusters : int64 Tensor (N,)
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
