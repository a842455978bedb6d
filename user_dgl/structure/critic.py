r"""Edge critic: finds observed edges that the features and the rest of the graph do not support.

Not in the paper, where A' starts without prior weights. Two kinds of scores measure how similar
the ends of a pair are: the cosine of their features, and cosines of features smoothed over a graph
without the pair itself. The pair must be left out, because smoothing over an edge makes its ends
similar, so that every edge, noise or not, would look likely. Random pairs are scored in the same
way; the few of them that are edges are not left out, which in a graph with a sixth of all pairs
makes the estimated share of noise 3 or 4 percent points too high. A logistic regression learns to
distinguish edges from random pairs by these scores. Comparing the results of edges and random pairs
gives the share of edges that look random (Storey, 2002) and a weight of each edge: one minus its
local false discovery rate (Efron, 2001), raised to a power that sets the influence of the critic.

The critic uses no label and no gradient of the training loss. Its cost is ``folds * hops`` products
with S.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from user_dgl.config import CriticConfig
from user_dgl.features.cosine import row_dots
from user_dgl.features.rows import ALL, Rows
from user_dgl.features.svd import truncated_svd
from user_dgl.graph import Graph
from user_dgl.graph.pairs import random_pairs
from user_dgl.graph.propagation import smooth
from user_dgl.runtime.progress import steps
from user_dgl.runtime.streams import Stream, stream_rng
from user_dgl.structure.false_discovery import (
    LEAST_NULL_PAIRS,
    NULL_PAIRS_PER_EDGE,
    EdgeScores,
    edge_weight,
    noise_share,
)

# Number of columns of the coarse view. Its cosines compare topics and not single words.
COARSE_COMPONENTS = 32
# From this number of nodes on, at most so many random pairs are scored. The logistic and the
# isotonic curve are fitted to them and to as many edges. There are at most so many folds, because
# the smoothing of each takes most of the time.
_LARGE, _MOST_FITTED, FOLDS_OF_LARGE = 20_000, 300_000, 5
# Digits of the cosines of components, which have rounding errors of float32.
_DIGITS = 6


def score_edges(
    graph: Graph,
    feat: sp.csr_matrix,
    config: CriticConfig,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
    held: Rows = ALL,
) -> EdgeScores:
    """Compute a weight of each observed edge from scores that do not depend on the edge itself.

    A first weight comes from the cosine of the features alone; it is 1 where most random pairs have
    the least cosine, as those of short texts without a common word. Then, for each fold of the
    edges, the features are smoothed over the graph with these weights and without the fold, and the
    edges of the fold are scored by the smoothed features. From 20,000 nodes on, 300,000 random
    pairs and edges are enough to learn from, and there are at most five folds: they change the
    order of the weights less than another seed does.

    Parameters
    ----------
    graph : Graph
        Observed graph, or a local graph of it (`user_dgl.features.rows`).
    feat : scipy CSR (n, F)
        float32, or float64 for scores in float64.
    config : CriticConfig
    seed : int
    engine : str
    held_out : int64 (H,), optional
        Keys of pairs that are not drawn as random pairs.
    held : Rows
        Of several processes, each scores the edges of its local graph.

    Returns
    -------
    EdgeScores
        Weights are 1 and the share is None if there are fewer edges than folds, fewer than three
        nodes, or only features that are 0.
    """
    num_nodes, num_edges = held.count(feat.shape[0]), held.num_edges(graph)
    if num_edges < config.folds or num_nodes < 3 or not held.count(feat.nnz):
        return EdgeScores(np.ones(graph.num_edges, dtype=np.float32), None)
    rng = stream_rng(seed, Stream.CRITIC)
    edges = np.stack([graph.src.numpy(), graph.dst.numpy()])
    num_nulls = max(NULL_PAIRS_PER_EDGE * num_edges, LEAST_NULL_PAIRS)
    fitted: np.ndarray | None = None
    large = num_nodes >= _LARGE
    if large:
        num_nulls = min(num_nulls, _MOST_FITTED)
    if large and num_edges > _MOST_FITTED:
        fitted = rng.choice(num_edges, _MOST_FITTED, replace=False)
    nulls = random_pairs(num_nodes, num_nulls, rng, held_out)
    rows = normalize(feat)
    components = truncated_svd(rows, config.num_components, seed, held, rows.dtype)
    reduced = torch.from_numpy(components)
    dense = large and reduced.shape[1] == rows.shape[1]
    if dense:
        # All components have the same dot products as the features, and they are dense.
        rows = reduced.numpy()
    edge_cosine, null_cosine = row_dots(held.extend(rows), *edges), held.pair_dots(rows, nulls)
    if dense:
        # Cosines of words are often equal. Rounding must not put them in an order.
        edge_cosine, null_cosine = edge_cosine.round(_DIGITS), null_cosine.round(_DIGITS)
    first = _judge(edge_cosine[:, None], null_cosine[:, None], fitted, held)
    edge_scores = np.empty((graph.num_edges, 3))
    null_scores = np.empty((nulls.shape[1], 3))
    edge_scores[:, 0], null_scores[:, 0] = edge_cosine, null_cosine
    folds = min(config.folds, FOLDS_OF_LARGE) if large else config.folds
    edge_fold = held.pairs(rng.permutation(num_edges) % folds)
    null_fold = rng.permutation(nulls.shape[1]) % folds
    for fold in steps(range(folds)):
        left_out, nulls_here = np.flatnonzero(edge_fold == fold), np.flatnonzero(null_fold == fold)
        views = _views(graph, first.weight, left_out, reduced, config, seed, engine, held)
        for column, view in enumerate(views, start=1):
            edge_scores[left_out, column] = row_dots(held.extend(view), *edges[:, left_out])
            null_scores[nulls_here, column] = held.pair_dots(view, nulls[:, nulls_here])
    critic_scores = _judge(edge_scores, null_scores, fitted, held)
    return replace(critic_scores, weight=critic_scores.weight**config.power, power=config.power)


def _views(
    graph: Graph,
    weight: np.ndarray,
    left_out: np.ndarray,
    reduced: torch.Tensor,
    config: CriticConfig,
    seed: int,
    engine: str,
    held: Rows,
) -> tuple[np.ndarray, np.ndarray]:
    """Features smoothed over the graph without some edges, in all and in few components.

    Rows of both are scaled to norm 1.
    """
    kept = weight.copy()
    kept[left_out] = 0
    if graph.weight is not None:
        kept *= graph.weight.numpy()
    propagation = held.propagation(graph, torch.from_numpy(kept).to(reduced.dtype), engine)
    fine = smooth(propagation, reduced, config.hops, config.self_share).numpy()
    fine = normalize(fine, copy=False)
    coarse = truncated_svd(fine, COARSE_COMPONENTS, seed, held, fine.dtype)
    coarse = normalize(coarse, copy=False)
    return fine, coarse


def _judge(
    edge_scores: np.ndarray, null_scores: np.ndarray, fitted: np.ndarray | None, held: Rows
) -> EdgeScores:
    """Compute weights and noise share from scores (E, S) of edges and (R, S) of random pairs.

    ``fitted`` are the edges that curves are fitted to, None for all.
    """
    some = held.pick_pairs(edge_scores, fitted)
    examples = np.concatenate([some, null_scores])
    is_edge = np.concatenate([np.ones(len(some)), np.zeros(len(null_scores))])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model = held.first(lambda: model.fit(examples, is_edge))
    score = model.decision_function(np.concatenate([edge_scores, null_scores]))
    edge_score, null_score = score[: len(edge_scores)], score[len(edge_scores) :]
    share = noise_share(edge_score, null_score, held=held)
    return EdgeScores(edge_weight(edge_score, null_score, share, fitted, held), share)
