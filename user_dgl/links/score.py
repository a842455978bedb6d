r"""How likely an edge is between any two nodes, learned from the observed edges alone.

Not in the paper, whose score is the dot product of two embeddings. Observed edges are told from
random pairs by the terms of `structure.pair_terms`, each edge on a graph without its fold of the
edges, so that what is learned holds for pairs that the graph lacks. No label enters, and no pair
that was held out. Observed edges that score like random pairs get a small weight in A' (the prior
``link_critic``); `LinkScore` then asks both graphs, A and A'.
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
# New links of a node are sought among so many times as many of its nearest nodes, and no fewer.
_POOL_PER_LINK, _LEAST_POOL = 10, 100
# What each of them takes while pairs are made of them, scored and sorted.
_POOL_BYTES = 120


@dataclass(frozen=True, eq=False)
class RunTerms:
    """Terms of pairs on the two graphs of a run, of the same pairs.

    Attributes
    ----------
    observed : PairTerms
        On A: weight 1 on the observed edges, 0 on the other pairs of A'.
    learned : PairTerms
        On A'; a clustering is a term here only.
    """

    observed: PairTerms
    learned: PairTerms


@dataclass(frozen=True, eq=False)
class LinkScore:
    """Log-odds of an edge: the mean of what terms on A and terms on A' say.

    A scores each edge without itself. The weights of A' and its clusters have seen all edges, those
    that are scored too, so that part is a little too sure of edges that the graph has.

    Attributes
    ----------
    observed, learned : AdditiveLogit
    """

    observed: AdditiveLogit
    learned: AdditiveLogit

    @classmethod
    def fit(cls, terms: RunTerms, examples: Examples, rising: bool) -> "LinkScore":
        """Learn from observed edges and random pairs; ``rising`` as in `LinksConfig`."""
        return cls(
            examples.logit(terms.observed, rising)[0], examples.logit(terms.learned, rising)[0]
        )

    def __call__(self, terms: RunTerms, pairs: np.ndarray) -> np.ndarray:
        """Log-odds (M,) of pairs (2, M), each on graphs without its fold if they have it."""
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
    """The likeliest edges that a graph lacks, some for each node.

    A node's are sought not among all but among the 100 nodes nearest to it (ten times ``count`` if
    that is more), which `user_dgl.features.nearest` finds approximately where there are many nodes.

    Parameters
    ----------
    score : callable
        Scores (M,) of pairs (2, M).
    points : (N, d)
        Features smoothed over A', unit rows; a node of zeros gets no links.
    graph : Graph
        Whose edges are not new.
    count : int
        Links a node; fewer where those nearest are its neighbours already.

    Returns
    -------
    int64 (M,), int64 (M,), float64 (M,)
        Node, other end and score, by node, the likeliest first.

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
    # Either end has found the other.
    node, other = np.concatenate([pairs, pairs[::-1]], axis=1)
    order = np.lexsort((other, -values, node))
    node, other, values = node[order], other[order], values[order]
    first = np.searchsorted(node, node)
    chosen = np.arange(len(node)) - first < count
    return node[chosen], other[chosen], values[chosen]
