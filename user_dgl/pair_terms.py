"""What speaks for an edge between two nodes: terms of pairs on a weighted graph.

A pair must not speak for itself: smoothing over an edge makes its ends alike, and the edge adds to
their degrees. So terms are those of a graph without the pair, taken for many pairs at a time.
Everything is linear in nodes, edges and pairs.
"""

from collections.abc import Callable
from copy import copy

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize

from user_dgl.config import CriticConfig
from user_dgl.critic import row_dots
from user_dgl.features import truncated_svd
from user_dgl.graph import Graph, pair_keys
from user_dgl.ops import weighted_degree
from user_dgl.propagation import Propagation, smooth

# Columns of the coarsest view: its cosines speak of topics, not of words.
_COARSE_COMPONENTS = 32
# Neighbours of a node among which those it shares are sought: hubs cost no more than that.
_MOST_NEIGHBOURS = 64


class PairTerms:
    r"""Terms of pairs of nodes on a graph of pairs with weights W, more for a likelier edge.

    Cosines of the features; of the features smoothed over one step, S X; of their `smooth` mean
    over ``config.hops`` steps; and of its leading 32 components. Sum and lesser of the logs of
    1 + weighted degree. Common neighbours, each by how few it has itself,
    :math:`\sqrt{\sum_w W_{uw} W_{vw} / d_w}`, the root of a weighted resource allocation index
    (Zhou et al., 2009). Where there is a clustering, the chance that both are of one cluster,
    :math:`\langle Y_u, Y_v \rangle`.

    Parameters
    ----------
    graph : Graph
        P pairs.
    weight : float32 Tensor (P,)
    feat : scipy CSR (N, F) or None
        None: the neighbours of a node are its features, those of the graph without the pairs.
    config : CriticConfig
    seed : int
    engine : str
    memberships : callable, optional
        Gives Y (N, K) for weights (P,).
    """

    def __init__(
        self,
        graph: Graph,
        weight: torch.Tensor,
        feat: sp.csr_matrix | None,
        config: CriticConfig,
        seed: int,
        engine: str,
        memberships: Callable[[torch.Tensor], np.ndarray] | None = None,
    ):
        self.graph, self.weight, self.config = graph, weight, config
        self.seed, self.engine, self.memberships = seed, engine, memberships
        self._features = None if feat is None else self._reduced(feat)
        rng = np.random.default_rng([seed, 8])
        self._fold = rng.permutation(graph.num_edges) % config.folds

    def on(
        self,
        weight: torch.Tensor,
        memberships: Callable[[torch.Tensor], np.ndarray] | None = None,
    ) -> "PairTerms":
        """The same with other weights (P,) and memberships."""
        other = copy(self)
        other.weight, other.memberships = weight, memberships
        return other

    def fold_of(self, pairs: np.ndarray, otherwise: np.ndarray | int = -1) -> np.ndarray:
        """Fold (M,) of the graph's pairs that each pair is in; ``otherwise`` where it is in none.

        Folds are drawn once, so that a pair has the same terms whatever it is asked for with.
        """
        place = self.graph.positions(pair_keys(self.graph.num_nodes, *pairs))
        return np.where(place >= 0, np.append(self._fold, -1)[place], otherwise)

    def __call__(self, pairs: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """Terms (M, J) of pairs.

        Parameters
        ----------
        pairs : int (2, M)
        fold : int (M,)
            The terms of a pair are those of the graph without the pairs of this fold, its own if it
            is in the graph; -1: of the whole graph.
        """
        terms = None
        for each in np.unique(fold):
            here = fold == each
            weight = self.weight.masked_fill(torch.from_numpy(self._fold == each), 0)
            found = self._terms(weight, pairs[:, here])
            if terms is None:
                terms = np.empty((len(fold), found.shape[1]))
            terms[here] = found
        return terms

    def smoothed(self) -> np.ndarray:
        """Smoothed features on the whole graph, unit rows (N, d)."""
        _, reduced = self._features or self._reduced(self._adjacency(self.weight))
        return self._smooth(Propagation.of(self.graph, self.weight, self.engine), reduced)

    def _terms(self, weight: torch.Tensor, pairs: np.ndarray) -> np.ndarray:
        u, v = pairs
        rows, reduced = self._features or self._reduced(self._adjacency(weight))
        propagation = Propagation.of(self.graph, weight, self.engine)
        smoothed = self._smooth(propagation, reduced)
        coarse = truncated_svd(smoothed, _COARSE_COMPONENTS, self.seed)
        degree = np.log1p(weighted_degree(self.graph, weight, self.engine).numpy())
        terms = [
            row_dots(rows, u, v),
            row_dots(normalize(propagation(reduced).numpy(), copy=False), u, v),
            row_dots(smoothed, u, v),
            row_dots(normalize(coarse, copy=False), u, v),
            degree[u] + degree[v],
            np.minimum(degree[u], degree[v]),
            np.sqrt(row_dots(self._shares(weight), u, v)),
        ]
        if self.memberships is not None:
            terms.append(row_dots(self.memberships(weight), u, v))
        return np.stack(terms, axis=1)

    def _reduced(self, feat: sp.csr_matrix) -> tuple[sp.csr_matrix, torch.Tensor]:
        """Features with unit rows, and their leading components."""
        rows = normalize(feat)
        return rows, torch.from_numpy(truncated_svd(rows, self.config.num_components, self.seed))

    def _smooth(self, propagation: Propagation, reduced: torch.Tensor) -> np.ndarray:
        config = self.config
        smoothed = smooth(propagation, reduced, config.hops, config.self_share)
        return normalize(smoothed.numpy(), copy=False)

    def _adjacency(self, weight: torch.Tensor) -> sp.csr_matrix:
        """W (N, N) without the pairs of weight 0."""
        adjacency = self.graph.to_scipy(weight)
        adjacency.eliminate_zeros()
        return adjacency

    def _shares(self, weight: torch.Tensor) -> sp.csr_matrix:
        """W D^-1/2 (N, N), of each row the largest entries."""
        adjacency = self._adjacency(weight)
        # Where there is an entry, its column has a degree; of others nothing is read.
        degree = np.maximum(adjacency.sum(axis=0).A1, np.finfo(np.float32).tiny)
        adjacency.data /= np.sqrt(degree)[adjacency.indices]
        return _largest(adjacency, _MOST_NEIGHBOURS)


def _largest(matrix: sp.csr_matrix, count: int) -> sp.csr_matrix:
    """The ``count`` largest entries of each row; of equal ones those in earlier columns."""
    length = np.diff(matrix.indptr)
    if not len(length) or length.max() <= count:
        return matrix
    row = np.repeat(np.arange(len(length)), length)
    order = np.lexsort((matrix.indices, -matrix.data, row))
    place = np.arange(len(row)) - np.repeat(matrix.indptr[:-1], length)
    kept = np.sort(order[place < count])
    return sp.csr_matrix((matrix.data[kept], (row[kept], matrix.indices[kept])), shape=matrix.shape)
