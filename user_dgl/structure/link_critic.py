"""Link critic: distinguishes edges from random pairs by features, degrees, common neighbours."""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from user_dgl.config import CriticConfig
from user_dgl.graph import Graph, pair_keys
from user_dgl.graph.pairs import random_pairs
from user_dgl.runtime.streams import Stream, stream_rng
from user_dgl.structure.additive_logit import MOST_ROWS, AdditiveLogit
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
    """Training pairs of the link critic: all observed edges, then random pairs that are not edges.

    Attributes
    ----------
    pairs : int64 (2, M)
    is_edge : bool (M,)
    fold : int (M,)
        A random fold of each pair. It is used if the pair is not in the graph of the terms.
    null_share : float
        Number of random pairs, divided by the number of all pairs of nodes that are not edges.
    """

    pairs: np.ndarray
    is_edge: np.ndarray
    fold: np.ndarray
    null_share: float

    @classmethod
    def draw(
        cls,
        graph: Graph,
        folds: int,
        seed: int,
        held_out: np.ndarray | None = None,
        most_nulls: int | None = None,
    ) -> "Examples | None":
        """Make examples from all edges of a graph and random pairs; None if there are too few.

        Parameters
        ----------
        graph : Graph
            Observed graph.
        folds : int
            Number of folds.
        seed : int
        held_out : int64 (H,), optional
            Keys of pairs that are not drawn as random pairs.
        most_nulls : int, optional
            Number of random pairs that are drawn at most.
        """
        num_edges, num_nodes = graph.num_edges, graph.num_nodes
        if num_edges < folds or num_nodes < 3:
            return None
        rng = stream_rng(seed, Stream.LINK_CRITIC)
        count = max(NULL_PAIRS_PER_EDGE * num_edges, LEAST_NULL_PAIRS)
        if most_nulls is not None:
            count = min(count, most_nulls)
        nulls = random_pairs(num_nodes, count, rng, held_out)
        nulls = nulls[:, graph.positions(pair_keys(num_nodes, *nulls)) < 0]
        if nulls.shape[1] < folds:
            return None
        edges = np.stack([graph.src.numpy(), graph.dst.numpy()]).astype(np.int64)
        pairs = np.concatenate([edges, nulls], axis=1)
        is_edge = np.arange(pairs.shape[1]) < num_edges
        null_share = nulls.shape[1] / (num_nodes * (num_nodes - 1) // 2 - num_edges)
        return cls(pairs, is_edge, rng.integers(0, folds, len(is_edge)), null_share)

    def logit(
        self, terms: PairTerms, rising: bool, most_rows: int = MOST_ROWS
    ) -> tuple[AdditiveLogit, np.ndarray]:
        """Fit log-odds of an edge on the terms of the examples.

        The log-odds are those among all pairs of nodes: the intercept is corrected for the examples
        containing all edges but only a share of the other pairs.

        Parameters
        ----------
        terms : PairTerms
        rising, most_rows
            See `AdditiveLogit.fit`.

        Returns
        -------
        AdditiveLogit, float (M, J)
            The log-odds, and the terms of the examples.
        """
        found = terms(self.pairs, terms.fold_of(self.pairs, self.fold))
        logit = AdditiveLogit.fit(found, self.is_edge, rising, most_rows)
        return replace(logit, intercept=logit.intercept + math.log(self.null_share)), found


def score_edges_by_links(
    graph: Graph,
    feat: sp.csr_matrix,
    config: CriticConfig,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
) -> EdgeScores:
    """Compute a weight of each observed edge from features, degrees and common neighbours.

    Like `user_dgl.structure.critic.score_edges`, but with more terms, and without reweighting the
    graph first.

    Parameters
    ----------
    graph : Graph
    feat : scipy CSR (N, F)
    config : CriticConfig
    seed : int
    engine : str
    held_out : int64 (H,), optional
        Keys of pairs that are not drawn as random pairs.

    Returns
    -------
    EdgeScores
        Weights are 1 and the share is None if there are too few edges, nodes or features.
    """
    examples = Examples.draw(graph, config.folds, seed, held_out)
    if examples is None or not feat.nnz:
        return EdgeScores(np.ones(graph.num_edges, dtype=np.float32), None)
    terms = PairTerms(graph, graph.edge_weight, feat, config, seed, engine)
    logit, found = examples.logit(terms, rising=False)
    score = logit(found)
    edges, nulls = score[examples.is_edge], score[~examples.is_edge]
    share = noise_share(edges, nulls)
    return EdgeScores(edge_weight(edges, nulls, share) ** config.power, share, config.power)
