"""Davies-Bouldin index of a soft assignment (Eq. 4 of the paper), computed from sums over nodes."""

from dataclasses import dataclass, field

import torch

from user_dgl.features.matrix import FeatureMatrix, PointMatrix

# Lower bound of squared distances. Smaller values are rounding errors, and the gradient of the
# square root is infinite at 0.
_LEAST_SQUARE = 1e-12
# A cluster whose memberships sum to no more than this is empty.
_LEAST_COUNT = 1e-7


@dataclass(frozen=True, eq=False)
class DaviesBouldinSums:
    r"""Sums over nodes from which both forms of the Davies-Bouldin index are computed.

    The column means :math:`\mu` are subtracted from the features. This does not change distances,
    and the digits of float32 are then used for the differences between nodes.

    Attributes
    ----------
    count : Tensor (K,)
        :math:`n_k = \sum_i Y_{ik}`.
    first : Tensor (K, F)
        :math:`\sum_i Y_{ik} (x_i - \mu)`.
    second : Tensor (K,)
        Form ``textbook``: :math:`\sum_i Y_{ik} |x_i - \mu|^2`. Form ``soft_features``:
        :math:`\sum_i Y_{ik}^2 |x_i|^2`, without :math:`\mu`, because this form changes when the
        features are shifted.
    cross : Tensor (K, F) or None
        Only for ``soft_features``: :math:`\sum_i Y_{ik}^2 x_i`.
    mean : Tensor (F,) or None
        Only for ``soft_features``: :math:`\mu` of all nodes, the same in every part of a graph.
    """

    count: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor
    cross: torch.Tensor | None = None
    mean: torch.Tensor | None = field(default=None, metadata={"common": True})

    def split(self, num_clusters: int) -> "list[DaviesBouldinSums]":
        """Split the sums of several assignments, whose columns were side by side.

        Returns one `DaviesBouldinSums` for each assignment of ``num_clusters`` columns.
        """
        count, first, second = (
            part.split(num_clusters) for part in (self.count, self.first, self.second)
        )
        cross = [None] * len(count) if self.cross is None else self.cross.split(num_clusters)
        return [
            DaviesBouldinSums(*parts, self.mean)
            for parts in zip(count, first, second, cross, strict=True)
        ]


def davies_bouldin_sums(
    features: FeatureMatrix | PointMatrix, assignment: torch.Tensor, form: str
) -> DaviesBouldinSums:
    """Compute the sums of features X (N, F) and an assignment Y (N, K).

    ``form`` is ``textbook`` or ``soft_features``; see `davies_bouldin`.
    """
    count = assignment.sum(0)
    if form == "textbook":
        first = features.centred_t_matmul(assignment).t()  # (F, K) -> (K, F)
        return DaviesBouldinSums(count, first, features.centred_squared_norm @ assignment)
    square, mean = assignment.square(), features.column_mean
    # Both products with X are computed in one pass over X.
    first, cross = features.centred_t_matmul(torch.cat([assignment, square], 1)).t().chunk(2)
    cross = cross + torch.outer(square.sum(0), mean)
    return DaviesBouldinSums(count, first, features.squared_norm @ square, cross, mean)


def davies_bouldin(sums: DaviesBouldinSums) -> torch.Tensor:
    r"""Davies-Bouldin index of a soft assignment, with the root-mean-square spread (Eq. 4).

    .. math::
        \mathrm{DBI} = \frac1K \sum_k \max_{m \ne k} \frac{S_k + S_m}{|c_k - c_m|}, \qquad
        c_k = \frac{\sum_i Y_{ik} x_i}{n_k}, \quad n_k = \sum_i Y_{ik}

    The form is that of the sums (see `davies_bouldin_sums`). For a hard Y both forms are equal to
    the index of the paper.

    * ``textbook`` uses the memberships as weights:
      :math:`S_k^2 = \frac{1}{n_k} \sum_i Y_{ik} |x_i - c_k|^2`.
    * ``soft_features``, the form of the authors' code, multiplies the features by the membership
      first: :math:`S_k^2 = \frac{1}{n_k} \sum_i Y_{ik} |c_k|^2 - 2 Y_{ik}^2 \langle c_k, x_i
      \rangle + Y_{ik}^2 |x_i|^2`.

    The index of torchmetrics is different: it uses mean distances. Empty clusters are left out. The
    index is 0 if fewer than two clusters are left. If centroids coincide, it is large but finite.

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
    centroid = sums.first[used] / count[:, None]  # (K, F), minus the mean of all nodes
    if sums.cross is None:
        square = second / count - centroid.square().sum(1)
    else:
        assert sums.mean is not None  # as for every sums with cross
        shifted = centroid + sums.mean
        cross = (shifted * sums.cross[used]).sum(1)
        square = shifted.square().sum(1) - 2 * cross / count + second / count
    spread = square.clamp_min(_LEAST_SQUARE).sqrt()  # (K,)
    # The mode computes differences, not |c|^2 + |c'|^2 - 2 <c, c'>. If Y is almost uniform, the
    # centroids almost coincide, and float32 would lose all digits of that sum.
    distance = torch.cdist(
        centroid, centroid, compute_mode="donot_use_mm_for_euclid_dist"
    ).clamp_min(_LEAST_SQUARE**0.5)  # (K, K)
    ratio = (spread[:, None] + spread) / distance
    same = torch.eye(len(count), dtype=torch.bool, device=count.device)
    return ratio.masked_fill(same, 0.0).amax(1).mean()
