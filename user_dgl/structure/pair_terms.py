"""Terms of pairs on a weighted graph, from which the probability of an edge is learned.

A pair must not influence its own terms: smoothing over an edge makes its ends similar, and the edge
adds to their degrees. The terms are therefore those of a graph without the pair. They are computed
for many pairs at a time. Time and memory are linear in the numbers of nodes, edges and pairs.
"""

from collections.abc import Callable
from copy import copy

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize

from user_dgl.config import CriticConfig
from user_dgl.features.cosine import row_dots
from user_dgl.features.svd import leading_components, truncated_svd
from user_dgl.graph import Graph, pair_keys
from user_dgl.graph.ops import weighted_degree
from user_dgl.graph.propagation import Propagation, smooth_each
from user_dgl.runtime.streams import Stream, stream_rng
from user_dgl.structure.critic import COARSE_COMPONENTS

# Common neighbours are searched among at most this many neighbours of a node, which limits the cost
# of hubs.
_MOST_NEIGHBOURS = 64
_NAMES = (
    "features",
    "features of direct neighbours",
    "features of the surroundings",
    "topics of the surroundings",
    "degrees of both ends",
    "smaller degree of the ends",
    "common neighbours",
)


class PairTerms:
    r"""Terms of pairs of nodes on a graph with weights W. Likely edges have larger terms.

    The terms of a pair are:

    * cosines of the features X, of the features smoothed by one step (S X), of the features
      smoothed by `smooth` over ``config.hops`` steps, and of the leading 32 components of these;
    * sum and minimum of log(1 + weighted degree) of the two ends;
    * :math:`\sqrt{\sum_w W_{uw} W_{vw} / d_w}`, in which a common neighbour w counts more if its
      degree is small: the root of a weighted resource allocation index (Zhou et al., 2009);
    * if there is a clustering, the probability that both ends are in the same cluster,
      :math:`\langle Y_u, Y_v \rangle`.

    Parameters
    ----------
    graph : Graph
        Graph with P pairs.
    weight : float32 Tensor (P,)
    feat : scipy CSR (N, F) or None
        None: the features of a node are its neighbours, in the graph without the pairs.
    config : CriticConfig
    seed : int
    engine : str
    memberships : callable, optional
        Function of weights (P,) that returns Y (N, K).
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
        rng = stream_rng(seed, Stream.PAIR_FOLDS)
        self._fold = rng.permutation(graph.num_edges) % config.folds

    def on(
        self,
        weight: torch.Tensor,
        memberships: Callable[[torch.Tensor], np.ndarray] | None = None,
    ) -> "PairTerms":
        """Copy of these terms with other weights (P,) and memberships."""
        other = copy(self)
        other.weight, other.memberships = weight, memberships
        return other

    def fold_of(self, pairs: np.ndarray, otherwise: np.ndarray | int = -1) -> np.ndarray:
        """Fold (M,) of each pair; ``otherwise`` if the graph does not have the pair.

        The folds are drawn once, so that the terms of a pair do not depend on the other pairs that
        are asked for in the same call.
        """
        place = self.graph.positions(pair_keys(self.graph.num_nodes, *pairs))
        return np.where(place >= 0, np.append(self._fold, -1)[place], otherwise)

    def __call__(self, pairs: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """Compute the terms (M, J) of pairs, in float32.

        Parameters
        ----------
        pairs : int (2, M)
        fold : int (M,)
            The terms of a pair are those of the graph without the pairs of this fold. If the pair
            is in the graph, this must be its own fold. -1: terms of the whole graph.
        """
        terms = np.empty((len(fold), len(self.names)), dtype=np.float32)
        for each in np.unique(fold):
            here = fold == each
            terms[here] = self.without(each)(pairs[:, here])
        return terms

    def without(self, fold: int) -> Callable[[np.ndarray], np.ndarray]:
        """Make a function from pairs (2, M) to their terms (M, J) on the graph without a fold.

        The smoothed features are computed here, once for all calls of the function.
        """
        return self._views(self.weight.masked_fill(torch.from_numpy(self._fold == fold), 0))

    @property
    def names(self) -> tuple[str, ...]:
        """What each of the J terms compares, in words."""
        return _NAMES if self.memberships is None else (*_NAMES, "chance of one cluster")

    def smoothed(self) -> np.ndarray:
        """Smoothed features (N, d) on the whole graph, with rows scaled to norm 1."""
        _, reduced = self._features or self._reduced(self._adjacency(self.weight))
        propagation = Propagation.of(self.graph, self.weight, self.engine)
        return self._smooth(propagation, reduced, self._surroundings[1:2])[0]

    def _views(self, weight: torch.Tensor) -> Callable[[np.ndarray], np.ndarray]:
        """Make a function from pairs (2, M) to their terms (M, J) on a graph with weights."""
        rows, reduced = self._features or self._reduced(self._adjacency(weight))
        propagation = Propagation.of(self.graph, weight, self.engine)
        one_step, smoothed, *wider = self._smooth(propagation, reduced, self._surroundings)
        coarse = normalize(leading_components(smoothed, COARSE_COMPONENTS), copy=False)
        cosines = [rows, one_step, smoothed, coarse]
        further = self._further(weight, wider, coarse)
        degree = np.log1p(weighted_degree(self.graph, weight, self.engine).numpy())
        shares = self._shares(weight)
        memberships = None if self.memberships is None else self.memberships(weight)

        def terms(pairs: np.ndarray) -> np.ndarray:
            u, v = pairs
            columns = [row_dots(view, u, v) for view in cosines]
            columns += [degree[u] + degree[v], np.minimum(degree[u], degree[v])]
            columns.append(np.sqrt(row_dots(shares, u, v)))
            if memberships is not None:
                columns.append(row_dots(memberships, u, v))
            columns += [term(pairs) for term in further]
            return np.stack(columns, axis=1)

        return terms

    @property
    def _surroundings(self) -> list[tuple[int, float]]:
        """Hops and own share of each smoothing; a subclass may add wider ones."""
        return [(1, 0.0), (self.config.hops, self.config.self_share)]

    def _further(
        self, weight: torch.Tensor, wider: list[np.ndarray], coarse: np.ndarray
    ) -> list[Callable[[np.ndarray], np.ndarray]]:
        """Functions from pairs (2, M) to one more term (M,) each, which a subclass may add."""
        return []

    def _reduced(self, feat: sp.csr_matrix) -> tuple[sp.csr_matrix, torch.Tensor]:
        """Features with rows scaled to norm 1, and their leading components (N, d)."""
        rows = normalize(feat)
        return rows, torch.from_numpy(truncated_svd(rows, self.config.num_components, self.seed))

    def _smooth(
        self,
        propagation: Propagation,
        reduced: torch.Tensor,
        surroundings: list[tuple[int, float]],
    ) -> list[np.ndarray]:
        """Smoothed features (N, d) of each kind, with rows scaled to norm 1."""
        found = dict(smooth_each(propagation, reduced, surroundings))
        return [normalize(found[i].numpy(), copy=False) for i in range(len(surroundings))]

    def _adjacency(self, weight: torch.Tensor) -> sp.csr_matrix:
        """W (N, N) without the pairs of weight 0."""
        adjacency = self.graph.to_scipy(weight)
        adjacency.eliminate_zeros()
        return adjacency

    def _shares(self, weight: torch.Tensor) -> sp.csr_matrix:
        """The largest entries of each row of W D^-1/2 (N, N)."""
        adjacency = self._adjacency(weight)
        # A column with an entry has a positive degree. The values of other columns are not used.
        degree = np.maximum(adjacency.sum(axis=0).A1, np.finfo(np.float32).tiny)
        adjacency.data /= np.sqrt(degree)[adjacency.indices]
        return _largest(adjacency, _MOST_NEIGHBOURS)


def _largest(matrix: sp.csr_matrix, count: int) -> sp.csr_matrix:
    """Keep the ``count`` largest entries of each row; of equal ones, those of earlier columns."""
    length = np.diff(matrix.indptr)
    if not len(length) or length.max() <= count:
        return matrix
    row = np.repeat(np.arange(len(length)), length)
    order = np.lexsort((matrix.indices, -matrix.data, row))
    place = np.arange(len(row)) - np.repeat(matrix.indptr[:-1], length)
    kept = np.sort(order[place < count])
    return sp.csr_matrix((matrix.data[kept], (row[kept], matrix.indices[kept])), shape=matrix.shape)
