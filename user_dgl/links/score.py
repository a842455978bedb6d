r"""A score of how likely an edge is between two nodes, learned from the observed edges alone.

The score is not in the paper, which takes the dot product of two embeddings. A logistic model
learns to tell observed edges from random pairs by the terms of `structure.pair_terms`. The terms of
an edge are computed on a graph without the edge's fold, so that the model also holds for pairs that
are not edges. Neither labels nor held-out pairs are read. Observed edges that score like random
pairs get a small weight in A' (the prior ``link_critic``); `LinkScore` then uses both graphs, A and
A'.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from user_dgl.errors import InputError
from user_dgl.features.nearest import nearest
from user_dgl.graph import Graph, pair_keys
from user_dgl.runtime.machine import available_memory_mb
from user_dgl.structure.additive_logit import AdditiveLogit
from user_dgl.structure.link_critic import Examples
from user_dgl.structure.pair_terms import PairTerms

# Pairs that are scored at a time.
_BLOCK_PAIRS = 2**20
# The new links of a node are sought among its nearest nodes. Their number is this multiple of the
# links that are asked for, or the lower bound that follows.
_POOL_PER_LINK, _LEAST_POOL = 10, 100
# Memory for each of the nearest nodes while pairs are made, scored and sorted.
_POOL_BYTES = 120


@dataclass(frozen=True, eq=False)
class RunTerms:
    """Terms of the same pairs on the two graphs of a run.

    Attributes
    ----------
    observed : PairTerms
        On A: weight 1 for the observed edges, 0 for the other pairs of A'.
    learned : PairTerms
        On A'. Only these terms may include a clustering.
    """

    observed: PairTerms
    learned: PairTerms


@dataclass(frozen=True, eq=False)
class LinkScore:
    """Log-odds of an edge: the mean of the log-odds by terms on A and by terms on A'.

    On A, each edge is scored without itself. The weights of A' and its clusters were learned from
    all edges, including the scored ones, so that this half is slightly overconfident about observed
    edges.

    Attributes
    ----------
    observed, learned : AdditiveLogit
    """

    observed: AdditiveLogit
    learned: AdditiveLogit

    @classmethod
    def fit(cls, terms: RunTerms, examples: Examples, rising: bool) -> "LinkScore":
        """Learn from observed edges and random pairs; ``rising`` is ``links.rising``."""
        return cls(
            examples.logit(terms.observed, rising)[0], examples.logit(terms.learned, rising)[0]
        )

    def __call__(self, terms: RunTerms, pairs: np.ndarray) -> np.ndarray:
        """Return log-odds (M,) of pairs (2, M), each on graphs without the pair's fold, if any."""
        fold = terms.observed.fold_of(pairs)
        log_odds = np.empty(len(fold))
        for each in np.unique(fold):
            here = np.flatnonzero(fold == each)
            on_observed, on_learned = terms.observed.without(each), terms.learned.without(each)
            for block in np.split(here, range(_BLOCK_PAIRS, len(here), _BLOCK_PAIRS)):
                part = pairs[:, block]
                both = self.observed(on_observed(part)) + self.learned(on_learned(part))
                log_odds[block] = both / 2
        return log_odds


def new_links(
    score: Callable[[np.ndarray], np.ndarray], points: np.ndarray, graph: Graph, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the most likely edges that a graph does not have, a number of them for each node.

    The candidates of a node are not all nodes but its 100 nearest ones (ten times ``count`` if that
    is more). `user_dgl.features.nearest` finds them approximately in a large graph.

    Parameters
    ----------
    score : callable
        Scores (M,) of pairs (2, M).
    points : (N, d)
        Features smoothed over A', unit rows. A node with a row of zeros gets no links.
    graph : Graph
        Its edges are not new.
    count : int
        Links for each node. A node gets fewer where its nearest nodes are its neighbours already.

    Returns
    -------
    int64 (M,), int64 (M,), float64 (M,)
        Node, other end and score, sorted by node and then by falling score.

    Raises
    ------
    InputError
        The pairs to compare do not fit into memory.
    """
    num_nodes = graph.num_nodes
    known = np.flatnonzero(points.any(axis=1))
    pool = min(max(_POOL_PER_LINK * count, _LEAST_POOL), len(known) - 1)
    if pool < 1:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    expected, available = len(known) * pool * _POOL_BYTES / 1e6, available_memory_mb()
    if expected > available:
        raise InputError(
            f"the {pool} nearest of {len(known)} nodes would take about {expected / 1000:.1f} GB "
            f"of memory and {available / 1000:.1f} are free: ask for fewer links a node"
        )
    found = nearest(points[known], pool)
    here = found >= 0
    ends = np.stack([np.repeat(known, here.sum(axis=1)), known[found[here]]])
    keys = np.unique(pair_keys(num_nodes, *ends))
    keys = keys[graph.positions(keys) < 0]
    pairs = np.stack(np.divmod(keys, num_nodes))
    values = np.tile(score(pairs), 2)
    # A pair counts for both of its ends, whichever of them has found the other.
    node, other = np.concatenate([pairs, pairs[::-1]], axis=1)
    order = np.lexsort((other, -values, node))
    node, other, values = node[order], other[order], values[order]
    first = np.searchsorted(node, node)
    chosen = np.arange(len(node)) - first < count
    return node[chosen], other[chosen], values[chosen]
