"""Bits that hard clusters save on the edges and on the features, by which candidates are compared.

Not in the paper, whose structural entropy is the part of the edges only. The bits of edges and
features have the same unit, so they are added without a weight.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg import eigh

from user_dgl.clustering.block_model import (
    FeatureScores,
    block_bits,
    block_sums,
    cluster_sums,
    indicator,
    word_scores,
)
from user_dgl.features.rows import ALL, Rows
from user_dgl.losses.code_length import (
    FeatureSums,
    GaussianSums,
    gaussian_bits,
    predictive_feature_bits,
)

# A column that varies by less than this share of the largest column's size is constant.
_LEAST_SPREAD = 1e-5
# Values such as flags and ratings have no density: clusters that share a value would save bits
# without limit. So each component is coded as if its values were imprecise by this share of its
# variance, and by less with many components. A share of 0.3 limits the bits of a node on one
# component to 1.06; a flag that is equally often 0 and 1 has 1. With the same share for 128
# components of texts, the views that are chosen have 1 point less of NMI.
_IMPRECISE, _IMPRECISE_IN_ALL = 0.3, 3.0
# Nodes for each column of real values, at least, see `RealValues`.
_NODES_PER_COLUMN = 4
# Rows that are taken to float64 at once.
_BLOCK_ROWS = 2**16


class CodeBits:
    """Computes the bits of clusterings of one graph with features.

    Features without negative values, at least half of whose entries are zero, are words: each
    non-zero counts once, and the code is `predictive_feature_bits`. Other features are real values:
    the code is `gaussian_bits` of their leading components, taken to be imprecise (`RealValues`),
    less the bits of its means, which are
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
        self.words = _pattern(feat, held) if are_words(feat, held) else None
        self._values = RealValues(components.numpy(), held) if self.words is None else None

    def edges(self, clusters: np.ndarray, num_clusters: int) -> float:
        """Bits saved on the edges by clusters (n,) of the own nodes, see `edge_bits`."""
        return block_bits(block_sums(self.adjacency, clusters, num_clusters, self.held))

    def features(self, clusters: np.ndarray, num_clusters: int) -> float:
        """Bits saved on the features by clusters (n,) of the own nodes."""
        if self._values is not None:
            return self._values.bits(clusters, num_clusters)
        return predictive_feature_bits(self._occurrences(clusters, num_clusters))[0]

    def scores(self, clusters: np.ndarray, num_clusters: int) -> FeatureScores:
        """How well the features of a node fit to each cluster, for `refine` from these clusters."""
        if self._values is not None:
            return self._values.scores
        words = self.words
        assert words is not None
        concentration = predictive_feature_bits(self._occurrences(clusters, num_clusters))[1]

        def scores(clusters: np.ndarray, num_clusters: int) -> Callable[[slice], np.ndarray]:
            typical = word_scores(words, clusters, num_clusters, concentration, self.held)
            return lambda rows: words[rows] @ typical

        return scores

    def _occurrences(self, clusters: np.ndarray, num_clusters: int) -> FeatureSums:
        sums = cluster_sums(self.words, clusters, num_clusters)
        return FeatureSums(torch.from_numpy(self.held.sum(sums)))


class RealValues:
    """Points of the own nodes, coded by the mean of their cluster and a covariance in common.

    With as many columns as nodes, clusters drawn by chance would leave no variance in some
    direction, and save bits without limit. So at most a column for four nodes is used. For the same
    reason, the values are taken to be imprecise: the variance of each column is increased by 30 %,
    or by 300 % divided by the number of columns if that is less.

    Parameters
    ----------
    points : float ndarray (n, d)
        Leading components first. They are read block by block, so that there is no copy of them.
    held : Rows
    """

    def __init__(self, points: np.ndarray, held: Rows = ALL):
        self._held, self._number = held, held.count(len(points))
        self._points = points[:, : max(1, self._number // _NODES_PER_COLUMN)]
        width = self._points.shape[1]
        self._mean, self._columns = np.zeros(width), np.arange(width)
        square = held.sum(sum(np.square(rows).sum(0) for rows in self._blocks()))
        self._mean = held.sum(sum(rows.sum(0) for rows in self._blocks())) / self._number
        self._products = held.sum(sum(rows.T @ rows for rows in self._blocks()))
        # What is left of a constant column is the rounding of float32.
        least = np.square(_LEAST_SPREAD) * square.max(initial=0)
        self._columns = np.flatnonzero(np.diag(self._products) > least)
        self._mean = self._mean[self._columns]
        self._products = self._products[np.ix_(self._columns, self._columns)]
        share = min(_IMPRECISE, _IMPRECISE_IN_ALL / max(1, len(self._columns)))
        self._products[np.diag_indices_from(self._products)] *= 1 + share

    def bits(self, clusters: np.ndarray, num_clusters: int) -> float:
        """Bits that clusters (n,) save, less those of their means, see `CodeBits`."""
        sizes, sums = self._sums(clusters, num_clusters)
        both = GaussianSums(*(torch.from_numpy(each) for each in (sizes, sums, self._products)))
        means = (np.count_nonzero(sizes) - 1) * len(self._columns)
        # Processes may round eigenvalues differently, and all must choose the same.
        return self._held.first(
            lambda: gaussian_bits(both).item() - means / 2 * math.log2(self._number)
        )

    def scores(self, clusters: np.ndarray, num_clusters: int) -> Callable[[slice], np.ndarray]:
        r"""Log likelihood of the points in each cluster, less one that is the same in all.

        .. math:: x_i^T W^{-1} c_k - \tfrac12 c_k^T W^{-1} c_k

        with the symbols of `gaussian_bits`, for points less their mean, whose variance is increased
        (see above). 0 in an empty cluster.
        """
        sizes, sums = self._sums(clusters, num_clusters)
        if not len(self._columns):
            return lambda rows: np.zeros((len(clusters[rows]), num_clusters))
        scale = np.sqrt(self._number / np.diag(self._products))
        means = sums / np.maximum(sizes, 1)[:, None] * scale
        within = scale * (self._products / self._number) * scale[:, None]
        within -= means.T @ (means * (sizes / self._number)[:, None])
        variances, axes = eigh(within)
        inverse = (axes / variances) @ axes.T  # none is 0, because values are imprecise
        slope = inverse @ means.T  # (d, K)
        offset = -np.einsum("kd,dk->k", means, slope) / 2
        slope *= scale[:, None]

        def of(rows: slice) -> np.ndarray:
            return np.concatenate([block @ slope + offset for block in self._blocks(rows)])

        return of

    def _blocks(self, rows: slice = slice(None)) -> Iterator[np.ndarray]:
        """Points of some nodes less the mean, without constant columns, float64, block by block."""
        first, last, _ = rows.indices(len(self._points))
        every = len(self._columns) == self._points.shape[1]
        for start in range(first, max(last, first + 1), _BLOCK_ROWS):
            block = self._points[start : min(start + _BLOCK_ROWS, last)]
            yield (block if every else block[:, self._columns]).astype(np.float64) - self._mean

    def _sums(self, clusters: np.ndarray, num_clusters: int) -> tuple[np.ndarray, np.ndarray]:
        """Sizes (K,) of the clusters, and sums (K, d) of their points."""
        sizes = np.bincount(clusters, minlength=num_clusters).astype(np.float64)
        sums, start = np.zeros((num_clusters, len(self._columns))), 0
        for block in self._blocks():
            sums += indicator(clusters[start : start + len(block)], num_clusters).T @ block
            start += len(block)
        return self._held.sum(sizes), self._held.sum(sums)


def are_words(feat: sp.csr_matrix, held: Rows = ALL) -> bool:
    """Whether at least half of the entries of the features (n, F) are zero, and none is below 0."""
    number, places = held.count(feat.nnz), held.count(feat.shape[0]) * feat.shape[1]
    return 2 * number <= places and not held.count(int(feat.data.min(initial=0) < 0))


def _pattern(feat: sp.csr_matrix, held: Rows) -> sp.csr_matrix:
    """1 at each non-zero of the features, float64, without empty columns."""
    words = sp.csr_matrix(feat != 0, dtype=np.float64)
    return words[:, np.flatnonzero(held.sum(words.getnnz(axis=0)))]
