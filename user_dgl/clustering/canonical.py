r"""Canonical axes of features on a graph: the directions in which neighbours agree.

Not in the paper. The leading components of features are the directions in which nodes differ most,
whether or not that has to do with the graph. Clusters that edges and features share lie in the
directions in which neighbours are alike. They are found as in a canonical correlation analysis
(Hotelling, 1936) of the features of a node and those of its neighbours, with a ridge.
"""

import numpy as np
import torch
from scipy.linalg import eigh

from user_dgl.features.rows import Rows

# Edges for each component, at least. With fewer edges the axes are those in which the given edges
# agree by chance: on graphs of 200 nodes and 300 edges, most of them between unlike nodes, axes of
# all components cost 22 points of NMI.
_EDGES_PER_COMPONENT = 16
# The ridge is the mean square of the components, times this.
_RIDGE = 1.0
# Power of the agreement by which the axes are scaled. The powers 1/4, 1/2, 1 and 2, with ridges of
# 0.3 to 10, were compared on nine data sets with and without noise: 1/2 is as good as 1/4, and
# ridges of 1 to 2 are best by less than the noise.
_SCALE_POWER = 0.25
# Agreement up to this, and components whose squares have less than this share of the largest one's,
# are rounding.
_ROUNDING = 1e-5


def canonical_axes(
    points: torch.Tensor, neighbours: torch.Tensor, num_edges: int, held: Rows
) -> torch.Tensor | None:
    r"""Axes (d, c) on which neighbours agree, most agreement first.

    With Z (N, d') the first :math:`d' = \min(d, E / 16)` components, and M = T Z, where T (N, N) is
    symmetric and has no diagonal, the axes solve

    .. math:: \tfrac12 (Z^T M + M^T Z)\, v = \rho R v, \qquad
        R = Z^T Z + \frac{\operatorname{tr} Z^T Z}{r} I, \qquad v^T R v = 1

    with r the number of components that are not 0. Each axis is :math:`\rho^{1/4} v`; it is 0 in
    the components after d'. Axes with :math:`\rho \le 10^{-5}`, on which neighbours do
    not agree, are left out.

    Parameters
    ----------
    points : Tensor (n, d)
        Features of the own nodes, reduced to their leading components.
    neighbours : Tensor (n, d)
        Weighted sums of the features of the neighbours.
    num_edges : int
        E.
    held : Rows

    Returns
    -------
    Tensor (d, c) or None
        None if there are too few edges, or neighbours agree in no direction.
    """
    size = min(points.shape[1], num_edges // _EDGES_PER_COMPONENT)
    used = points[:, :size].t()
    products = torch.stack([used @ points[:, :size], used @ neighbours[:, :size]])
    gram, shared = held.sum(products.double().numpy())
    # One process decides, because others may round differently.
    axes = held.first(lambda: _agreeing(gram, (shared + shared.T) / 2))
    if axes is None:
        return None
    return torch.from_numpy(np.pad(axes, ((0, points.shape[1] - size), (0, 0)))).to(points.dtype)


def _agreeing(gram: np.ndarray, shared: np.ndarray) -> np.ndarray | None:
    """Scaled axes (d', c) of Z^T Z and of its symmetric counterpart with the neighbours."""
    squares = np.diag(gram)
    rank = np.count_nonzero(squares > _ROUNDING * squares.max(initial=0))
    if not rank:
        return None
    ridge = _RIDGE * squares.sum() / rank
    agreement, axes = eigh(shared, gram + ridge * np.eye(len(gram)))
    agree = agreement > _ROUNDING
    if not agree.any():
        return None
    return np.ascontiguousarray((axes[:, agree] * agreement[agree] ** _SCALE_POWER)[:, ::-1])
