"""Link critic: observed edges told from random pairs by features, degrees and common neighbours."""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.config import CriticConfig
from user_dgl.graph import Graph, pair_keys
from user_dgl.graph.pairs import random_pairs
from user_dgl.structure.additive_logit import AdditiveLogit
from user_dgl.structure.false_discovery import (
    LEAST_NULL_PAIRS,
    NULL_PAIRS_PER_EDGE,
    EdgeScores,
    edge_weight,
    noise_share,
)
from user_dgl.structure.pair_terms import PairTerms


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


def score_edges_by_links(
    graph: Graph,
    feat: sp.csr_matrix,
    config: CriticConfig,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
) -> EdgeScores:
    """Weight each observed edge by how likely features, degrees and common neighbours make it.

    As `user_dgl.structure.critic.score_edges`, with more to judge by, and on the graph as it is.

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
    EdgeScores
        Weight 1 and no share where there is too little to judge by.
    """
    ones = torch.ones(graph.num_edges)
    examples = Examples.draw(graph, config.folds, seed, held_out)
    if examples is None or not feat.nnz:
        return EdgeScores(ones.numpy(), None)
    terms = PairTerms(graph, ones, feat, config, seed, engine)
    logit, found = examples.logit(terms, rising=False)
    score = logit(found)
    edges, nulls = score[examples.is_edge], score[~examples.is_edge]
    share = noise_share(edges, nulls)
    return EdgeScores(edge_weight(edges, nulls, share) ** config.power, share, config.power)
