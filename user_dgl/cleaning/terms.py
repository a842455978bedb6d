r"""Terms by which pairs of nodes are judged: by the graph and the features, and by features alone.

Not in the paper. Both kinds are computed on a graph without the pair itself, fold by fold, as in
`user_dgl.structure.pair_terms`. They fail in different cases, and so they are kept apart:

- Random noise is spread over the graph. Terms that read the surroundings of both ends average it
  out, and find it best.
- An attack puts many edges at the same nodes. These edges change the surroundings, so that they
  support each other. What the features of a node let expect cannot be changed by edges of the node.
"""

from collections.abc import Callable

import numpy as np
import torch
from sklearn.preprocessing import normalize

from user_dgl.clustering.block_model import block_sums, evidence, log_rates
from user_dgl.clustering.kmeans import SAMPLED_FROM, kmeans
from user_dgl.features.cosine import row_dots
from user_dgl.features.svd import leading_components
from user_dgl.graph.propagation import Propagation, smooth
from user_dgl.structure.pair_terms import PairTerms

# Numbers of groups of the block models. No number of clusters is asked for, and one that is too
# large does little harm, because the rates of rare pairs of groups shrink to a common mean.
_GROUPS = (8, 32)
_GROUP_STEPS = 20
# The wide surroundings of a node: number of smoothing steps and share of its own features.
_FAR_HOPS, _FAR_SHARE = 8, 0.1
# The same for the surroundings that are predicted, the ridge penalty of the prediction, and the
# number of leading components in which topics are compared.
_EXPECTED_HOPS, _EXPECTED_SHARE, _RIDGE, _TOPICS = 4, 0.1, 1.0, 16

Term = Callable[[np.ndarray], np.ndarray]


class GraphTerms(PairTerms):
    r"""The terms of `PairTerms`, and those of wide surroundings and of groups of nodes.

    Further terms of a pair {u, v} are:

    * the cosine of features smoothed over 8 steps;
    * :math:`\log \lambda_{c_u c_v}` for 8 and for 32 groups c of nodes: how much more edges there
      are between the two groups than by chance, by a degree-corrected block model
      (`user_dgl.clustering.block_model`). The groups are the k-means clusters of the leading
      components of the smoothed features.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """What each of the J terms compares, in words."""
        groups = (f"edges between {number} groups of nodes" for number in _GROUPS)
        return (*super().names, "features of the wide surroundings", *groups)

    @property
    def _surroundings(self) -> list[tuple[int, float]]:
        return [*super()._surroundings, (_FAR_HOPS, _FAR_SHARE)]

    def _further(
        self, weight: torch.Tensor, wider: list[np.ndarray], coarse: np.ndarray
    ) -> list[Term]:
        (far,) = wider
        adjacency = self._adjacency(weight).astype(np.float64)
        terms: list[Term] = [lambda pairs: row_dots(far, *pairs)]
        # From this size on, k-means without a limit takes its steps on a sample, and few on all.
        steps = _GROUP_STEPS if len(coarse) < SAMPLED_FROM else None
        for number in _GROUPS:
            groups = kmeans(coarse, number, self.seed, num_starts=1, max_steps=steps)
            sums = block_sums(adjacency, groups, number)
            terms.append(_Rates(groups, log_rates(sums, evidence(sums)[1])))
        return terms


class _Rates:
    """The term of a block model: log rate (G, G) of the groups (N,) of the two ends."""

    def __init__(self, groups: np.ndarray, rates: np.ndarray):
        self._groups, self._rates = groups, rates

    def __call__(self, pairs: np.ndarray) -> np.ndarray:
        u, v = self._groups[pairs]
        return self._rates[u, v]


class FeatureTerms(PairTerms):
    r"""Terms of pairs that read the features of the two ends only.

    A ridge regression predicts the surroundings of a node from its own features,

    .. math:: B = \arg\min_B \|R B - H\|^2 + \|B\|^2, \qquad Z = R B,

    with R the leading components of the features and H these smoothed over 4 steps, rows scaled to
    norm 1. An edge has an influence on B, and through it on all nodes a little, but none on the
    features of its ends. The terms are the cosines of the features, of Z, and of the leading 16
    components of Z.

    Parameters
    ----------
    As for `PairTerms`; ``feat`` must be given.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """What each of the J terms compares, in words."""
        return ("features", "expected surroundings", "topics of the expected surroundings")

    def _views(self, weight: torch.Tensor) -> Term:
        rows, _ = self._features or self._reduced(self._adjacency(weight))
        expected = self._expected(weight)
        topics = normalize(leading_components(expected, _TOPICS), copy=False)
        views = (rows, expected, topics)
        return lambda pairs: np.stack([row_dots(view, *pairs) for view in views], axis=1)

    def expected(self) -> np.ndarray:
        """Predicted surroundings Z (N, d) of each node on the whole graph, rows of norm 1."""
        return self._expected(self.weight)

    def _expected(self, weight: torch.Tensor) -> np.ndarray:
        _, reduced = self._features or self._reduced(self._adjacency(weight))
        propagation = Propagation.of(self.graph, weight, self.engine)
        seen = smooth(propagation, reduced, _EXPECTED_HOPS, _EXPECTED_SHARE).numpy()
        own = reduced.numpy()
        gram = own.T @ own + np.float32(_RIDGE) * np.eye(own.shape[1], dtype=np.float32)
        solution = np.linalg.solve(gram, own.T @ normalize(seen, copy=False))
        return normalize(own @ solution, copy=False)
