"""The Davies-Bouldin index of a soft assignment (Eq. 4), and the sums that it is a function of."""

from dataclasses import dataclass, field

import torch

from user_dgl.features.matrix import FeatureMatrix

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
