r"""How likely an edge is between any two nodes, learned from the observed edges alone.

Not in the paper, whose score is the dot product of two embeddings. Observed edges are told from
random pairs by the terms of `user_dgl.pair_terms`, each edge on a graph without its fold of the
edges, so that what is learned holds for pairs that the graph lacks. No label enters, and no pair
that was held out. Observed edges that score like random pairs get a small weight in A' (the prior
``link_critic``); `LinkScore` then asks both graphs, A and A'.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.additive_logit import AdditiveLogit
from user_dgl.config import CriticConfig
from user_dgl.critic import (
    LEAST_NULL_PAIRS,
    NULL_PAIRS_PER_EDGE,
    Criticism,
    edge_weight,
    noise_share,
)
from user_dgl.errors import InputError
from user_dgl.features.nearest import nearest
from user_dgl.graph import Graph, pair_keys
from user_dgl.graph.pairs import random_pairs
from user_dgl.pair_terms import PairTerms
from user_dgl.runtime.machine import available_memory_mb

# Pairs that are scored at a time.
_BLOCK_PAIRS = 2**20
# New links of a node are sought among so many times as many of its nearest nodes, and no fewer.
_POOL_PER_LINK, _LEAST_POOL = 10, 100
# What each of them takes while pairs are made of them, scored and sorted.
_POOL_BYTES = 120


@dataclass(frozen=True, eq=False)
class Examples:
    """Observed edges, then random pairs that are none.

    Attributes
    ----------
    pairs : int64 (2, M)
    is_edge : bool (M,)
    fold : int (M,)
        A fold for each, of use where the graph does not have the pair.
    null_share : float
        Random pairs for each pair of nodes that is no edge.
    """

    pairs: np.ndarray
    is_edge: np.ndarray
    fold: np.ndarray
    null_share: float

    @classmethod
    def draw(
        cls, graph: Graph, folds: int, seed: int, held_out: np.ndarray | None = None
    ) -> "Examples | None":
        """All edges of a graph beside random pairs; None if there are too few.

        Parameters
        ----------
        graph : Graph
            Observed graph.
        folds : int
        seed : int
        held_out : int64 (H,), optional
            Keys of pairs that are no examples.
        """
        num_edges, num_nodes = graph.num_edges, graph.num_nodes
        if num_edges < folds or num_nodes < 3:
            return None
        rng = np.random.default_rng([seed, 9])
        count = max(NULL_PAIRS_PER_EDGE * num_edges, LEAST_NULL_PAIRS)
        nulls = random_pairs(num_nodes, count, rng, held_out)
        nulls = nulls[:, graph.positions(pair_keys(num_nodes, *nulls)) < 0]
        if nulls.shape[1] < folds:
            return None
        edges = np.stack([graph.src.numpy(), graph.dst.numpy()]).astype(np.int64)
        pairs = np.concatenate([edges, nulls], axis=1)
        is_edge = np.arange(pairs.shape[1]) < num_edges
        null_share = nulls.shape[1] / (num_nodes * (num_nodes - 1) // 2 - num_edges)
        return cls(pairs, is_edge, rng.integers(0, folds, pairs.shape[1]), null_share)

    def logit(self, terms: PairTerms, rising: bool) -> tuple[AdditiveLogit, np.ndarray]:
        """What tells edges from all other pairs by some terms, and the terms of the examples.

        The log-odds are those among all pairs of nodes, of which the examples hold all edges but
        only a share of the others.
        """
        found = terms(self.pairs, terms.fold_of(self.pairs, self.fold))
        logit = AdditiveLogit.fit(found, self.is_edge, rising)
        return replace(logit, intercept=logit.intercept + math.log(self.null_share)), found


def link_criticism(
    graph: Graph,
    feat: sp.csr_matrix,
    config: CriticConfig,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
) -> Criticism:
    """Weight each observed edge by how likely features, degrees and common neighbours make it.

    As `user_dgl.critic.criticise`, with more to judge by, and on the graph as it is.

    Parameters
    ----------
    graph : Graph
    feat : scipy CSR (N, F)
    config : CriticConfig
        With a power.
    seed : int
    engine : str
    held_out : int64 (H,), optional
        Keys of pairs that nothing is learned from.

    Returns
    -------
    Criticism
        Weight 1 and no share where there is too little to judge by.
    """
    ones = torch.ones(graph.num_edges)
    examples = Examples.draw(graph, config.folds, seed, held_out)
    if examples is None or not feat.nnz:
        return Criticism(ones.numpy(), None)
    terms = PairTerms(graph, ones, feat, config, seed, engine)
    logit, found = examples.logit(terms, rising=False)
    score = logit(found)
    edges, nulls = score[examples.is_edge], score[~examples.is_edge]
    share = noise_share(edges, nulls)
    return Criticism(edge_weight(edges, nulls, share) ** config.power, share, config.power)


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
