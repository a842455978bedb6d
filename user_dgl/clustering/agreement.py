"""How far many clusterings of the same nodes agree."""

import itertools
import math

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import mutual_info_score

from user_dgl.features.rows import ALL, Rows


def pairwise_nmi(clusterings: list[np.ndarray], held: Rows = ALL) -> np.ndarray:
    """NMI of each two clusterings, normalised by the arithmetic mean of their entropies.

    The values are those of scikit-learn's ``normalized_mutual_info_score``, but each clustering is
    counted once and not once for each other one. Time is linear in the nodes for each two.

    Parameters
    ----------
    clusterings : list of int64 (n,)
        Clusters from 0 on of the nodes that this process owns.
    held : Rows

    Returns
    -------
    float64 (M, M)
        In [0, 1], symmetric, 0 on the diagonal.

    >>> halves, parity = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> pairwise_nmi([halves, 1 - halves, parity]).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    used, counts = [], []
    for clusters in clusterings:
        highest, _ = held.stacked(np.array([clusters.max(initial=-1)]))
        number = int(highest.max()) + 1
        sizes = held.sum(np.bincount(clusters, minlength=number))
        used.append((np.cumsum(sizes > 0) - 1)[clusters])
        counts.append(sizes[sizes > 0].astype(np.float64))
    entropies = [_entropy(sizes) for sizes in counts]
    agreement = np.zeros((len(used), len(used)))
    for i, j in itertools.combinations(range(len(used)), 2):
        shape = len(counts[i]), len(counts[j])
        if shape == (1, 1):
            value = 1.0  # two single clusters are equal
        else:
            pairs = used[i] * shape[1] + used[j]
            table = held.sum(np.bincount(pairs, minlength=shape[0] * shape[1]))
            shared = mutual_info_score(None, None, contingency=sp.csr_matrix(table.reshape(shape)))
            value = shared / ((entropies[i] + entropies[j]) / 2) if shared else 0.0
        agreement[i, j] = agreement[j, i] = value
    return agreement


def _entropy(sizes: np.ndarray) -> float:
    """Entropy of clusters of these sizes, in nats."""
    total = sizes.sum()
    return float(-(sizes / total * (np.log(sizes) - math.log(total))).sum())
