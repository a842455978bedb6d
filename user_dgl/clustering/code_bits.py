"""Bits that hard clusters save on the edges and on the features, by which candidates are compared.

Not in the paper, whose structural entropy is the part of the edges only. The bits of edges and
features have the same unit, so they are added without a weight.
"""

import math

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.clustering.block_model import block_bits, block_sums, cluster_sums, indicator
from user_dgl.features.rows import ALL, Rows
from user_dgl.losses.code_length import (
    FeatureSums,
    GaussianSums,
    gaussian_bits,
    predictive_feature_bits,
)

# A column that varies by less than this share of the largest column's size is constant.
_LEAST_SPREAD = 1e-5


class CodeBits:
    """Computes the bits of clusterings of one graph with features.

    Features without negative values, at least half of whose entries are zero, are words: each
    non-zero counts once, and the code is `predictive_feature_bits`. Other features are real values:
    the code is `gaussian_bits` of their leading components, less the bits of its means, which are
    :math:`\\frac12 \\log_2 N` for each mean beyond that of all nodes (Schwarz, 1978).

    Parameters
    ----------
    adjacency : scipy CSR (n, n + h)
        Both directions of each edge, with the weights of A, because the edges are what is coded.
        Rows of the nodes that this process owns; columns of these and of their neighbours.
    feat : scipy CSR (n, F)
    components : Tensor (n, d)
        Leading components of the features.
    held : Rows

    Attributes
    ----------
    words : float64 CSR (n, F') or None
        1 at each non-zero, without empty columns. None if the features are real values.
    """

    def __init__(
        self,
        adjacency: sp.csr_matrix,
        feat: sp.csr_matrix,
        components: torch.Tensor,
        held: Rows = ALL,
    ):
        self.adjacency, self.held = adjacency, held
        self.words = _words(feat, held)
        self._centred = _varying(components, held) if self.words is None else components[:, :0]

    def edges(self, clusters: np.ndarray, num_clusters: int) -> float:
        """Bits saved on the edges by clusters (n,) of the own nodes, see `edge_bits`."""
        return block_bits(block_sums(self.adjacency, clusters, num_clusters, self.held))

    def features(self, clusters: np.ndarray, num_clusters: int) -> tuple[float, float]:
        """Bits saved on the features, and the concentration of the code of words (else 1)."""
        if self.words is not None:
            occurrences = self.held.sum(cluster_sums(self.words, clusters, num_clusters))
            return predictive_feature_bits(FeatureSums(torch.from_numpy(occurrences)))
        y = indicator(clusters, num_clusters)
        num_nodes, num_columns = self.held.count(len(clusters)), self._centred.shape[1]
        points = self._centred.numpy()
        # The sums of `gaussian_sums`, by sparse products: Y (N, K) is never dense.
        by_cluster = (y.sum(0).A1, y.T @ points, y.T @ np.square(points))
        sums = GaussianSums(*(torch.from_numpy(self.held.sum(each)) for each in by_cluster))
        means = (int((sums.sizes > 0).sum()) - 1) * num_columns
        return gaussian_bits(sums).item() - means / 2 * math.log2(num_nodes), 1.0


def _words(feat: sp.csr_matrix, held: Rows) -> sp.csr_matrix | None:
    """The pattern of sparse features without negative values, without empty columns; else None."""
    number, places = held.count(feat.nnz), held.count(feat.shape[0]) * feat.shape[1]
    if 2 * number > places or held.count(int(feat.data.min(initial=0) < 0)):
        return None
    words = sp.csr_matrix(feat != 0, dtype=np.float64)
    return words[:, np.flatnonzero(held.sum(words.getnnz(axis=0)))]


def _varying(components: torch.Tensor, held: Rows) -> torch.Tensor:
    """Columns less their means, float64, without those that are constant."""
    values, number = components.double(), held.count(len(components))

    def mean(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(held.sum(x.sum(0).numpy())) / number

    centred = values - mean(values)
    spread, size = mean(centred.square()).sqrt(), mean(values.square()).sqrt()
    # What is left of a constant column is the rounding of float32.
    return centred[:, spread > _LEAST_SPREAD * size.max()]
