r"""The probability of each observed edge to be real, and of further pairs to be edges.

Not in the paper. Two judges, by the terms of `user_dgl.cleaning.terms`, distinguish edges from
random pairs: an additive logistic regression for each of them, whose functions may only rise. The
sum of their scores is compared between edges and random pairs. The comparison gives the share of
edges that look random (Storey, 2002) and the probability of each edge not to be one of these: one
minus its local false discovery rate (Efron, 2001).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit

from user_dgl.cleaning.terms import FeatureTerms, GraphTerms
from user_dgl.config import CriticConfig
from user_dgl.graph import Graph
from user_dgl.runtime.streams import Stream, stream_rng
from user_dgl.structure.additive_logit import AdditiveLogit
from user_dgl.structure.critic import FOLDS_OF_LARGE, score_edges
from user_dgl.structure.false_discovery import EdgeScores, edge_weight, noise_share
from user_dgl.structure.link_critic import Examples
from user_dgl.structure.pair_terms import PairTerms

# Share of edges that look random from which a graph counts as noisy. A few percent do in every
# graph: of the data sets in the table of `tools/reproduce.py default`, only two dense ones (Wiki,
# UAI2010) have more without added noise.
NOISY = 0.08
# Components from which the surroundings of a node are predicted. They have to tell more than those
# that are smoothed, which the graph completes.
# Large graphs have fewer, for memory.
_FEATURE_COMPONENTS, _LARGE, _FEATURE_COMPONENTS_LARGE = 512, 20_000, 256
# Examples that a judge is fitted to. More take minutes and change the few parameters by little.
_FITTED_ROWS = 40_000
# Edges that the curve of the local false discovery rate is fitted to, at most.
_MOST_COMPARED = 300_000
# Random pairs that edges are compared with, at most. They tell the distribution well enough.
_MOST_NULLS, _MOST_NULLS_LARGE = 500_000, 200_000
# Share of noise by the features alone from which they tell nothing about the edges. It is below 1
# because the judge of few edges finds a little in random features too. It is not far below 1
# because features that half of the nodes have still help: 0.84 on a block model.
_USELESS_SHARE = 0.9
# Rows of norm 1 that differ by no more are equal up to rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Judge:
    """Judgement of the edges by one kind of terms.

    Attributes
    ----------
    terms : PairTerms
    logit : AdditiveLogit
        Log-odds of an edge among all pairs of nodes.
    found : float32 (E, J)
        Terms of the observed edges.
    score : float (M,)
        Log-odds of the examples, observed edges first.
    support : float32 (E,)
        Probability in [0.01, 1] of each edge not to be random, by these terms alone.
    noise_share : float
        Share of the edges that look random by these terms alone.
    """

    terms: PairTerms
    logit: AdditiveLogit
    found: np.ndarray
    score: np.ndarray
    support: np.ndarray
    noise_share: float

    @classmethod
    def of(cls, terms: PairTerms, examples: Examples) -> "Judge":
        """Fit a judge to examples."""
        logit, found = examples.logit(terms, rising=True, most_rows=_FITTED_ROWS)
        score = logit(found)
        support, share = _compared(score, examples.is_edge)
        # A view: on a large graph a copy would double the largest array there is.
        return cls(terms, logit, found[: examples.is_edge.sum()], score, support, share)

    def probabilities(self) -> Callable[[np.ndarray], np.ndarray]:
        """Make a function from pairs (2, M) that are no edges to their probabilities (M,).

        The terms are those of the weights that the judge was fitted on. With weights to another
        power, its log-odds would be wrong. The smoothing is done here, once for all calls.
        """
        terms = self.terms.without(-1)
        return lambda pairs: expit(self.logit(terms(pairs)))


@dataclass(frozen=True, eq=False)
class EdgePosterior:
    """What is known about the edges of a graph.

    Attributes
    ----------
    probability : float32 (E,)
        Probability of each observed edge not to be random, in [0.01, 1].
    noise_share : float
        Estimated share of the edges that look like random pairs, in [0, 1].
    graph_judge : Judge
    feature_judge : Judge or None
        None without features, and if the features tell nothing about the edges.
    note : str or None
        Why the features were not used, for the user.
    """

    probability: np.ndarray
    noise_share: float
    graph_judge: Judge
    feature_judge: Judge | None
    note: str | None = None

    @property
    def judges(self) -> list[Judge]:
        """The judges there are."""
        return [self.graph_judge, *([self.feature_judge] if self.feature_judge else [])]


def feature_components(num_nodes: int) -> int:
    """Number of components from which the surroundings of a node are predicted."""
    return _FEATURE_COMPONENTS if num_nodes < _LARGE else _FEATURE_COMPONENTS_LARGE


def edge_posterior(
    graph: Graph,
    feat: sp.csr_matrix | None,
    seed: int,
    engine: str,
    first: EdgeScores | None = None,
    held_out: np.ndarray | None = None,
    needs_features: bool = False,
) -> EdgePosterior | None:
    """Judge the observed edges.

    The edges are judged by the graph alone, as without features, if the features are alike at all
    nodes, or if at least 90 % of the edges look random by the features alone. Such features would
    make all edges doubtful, because both judges read them.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F) or None
        Prepared features. None: the edges are judged by the graph alone.
    seed : int
    engine : str
        ``csr`` or ``dgl``.
    first : EdgeScores, optional
        Result of the critic on this graph. None: the critic is run.
    held_out : int64 (H,), optional
        Keys of pairs that are not drawn as random pairs.
    needs_features : bool
        Return None where the edges would be judged by the graph alone.

    Returns
    -------
    EdgePosterior or None
        None if there are fewer edges than folds, or too few nodes for random pairs.
    """
    config, most_nulls = CriticConfig(), _MOST_NULLS
    if graph.num_nodes >= _LARGE:
        config, most_nulls = replace(config, folds=FOLDS_OF_LARGE), _MOST_NULLS_LARGE
    examples = Examples.draw(graph, config.folds, seed, held_out, most_nulls=most_nulls)
    if examples is None:
        return None

    def alone(note: str | None = None) -> EdgePosterior | None:
        """Judge by the graph without features."""
        if needs_features:
            return None
        ones = torch.ones(graph.num_edges)
        judge = Judge.of(GraphTerms(graph, ones, None, config, seed, engine), examples)
        return EdgePosterior(judge.support, judge.noise_share, judge, None, note)

    if feat is None:
        return alone()
    if _all_alike(feat):
        return alone(
            "the prepared features do not differ between the nodes: edges are judged by the graph "
            "alone"
        )
    if first is None:
        first = score_edges(graph, feat, config, seed, engine, held_out)
    weight = torch.from_numpy(first.weight)
    detailed = replace(config, num_components=feature_components(graph.num_nodes))
    by_features = Judge.of(FeatureTerms(graph, weight, feat, detailed, seed, engine), examples)
    if by_features.noise_share >= _USELESS_SHARE:
        return alone(
            f"by the features, {100 * by_features.noise_share:.0f} % of the edges look like random "
            "pairs, so that the features tell nothing about the edges: edges are judged by the "
            "graph alone"
        )
    by_graph = Judge.of(GraphTerms(graph, weight, feat, config, seed, engine), examples)
    both = by_graph.score + by_features.score
    probability, share = _compared(both, examples.is_edge)
    return EdgePosterior(probability, share, by_graph, by_features)


def _all_alike(feat: sp.csr_matrix) -> bool:
    """Whether all rows of prepared features (N, F) are equal up to rounding."""
    if not feat.nnz:
        return True
    width = (feat.max(axis=0) - feat.min(axis=0)).toarray()
    return bool(width.max() <= _ROUNDING)


def _compared(score: np.ndarray, is_edge: np.ndarray) -> tuple[np.ndarray, float]:
    """Probability (E,) of each edge not to be random, and the share of random edges."""
    edges, nulls = score[is_edge], score[~is_edge]
    share = noise_share(edges, nulls, ties_below=True)
    fitted: np.ndarray | None = None
    if len(edges) > _MOST_COMPARED:
        rng = stream_rng(0, Stream.CURVE_SAMPLE)
        fitted = rng.choice(len(edges), _MOST_COMPARED, replace=False)
    return edge_weight(edges, nulls, share, fitted), share
