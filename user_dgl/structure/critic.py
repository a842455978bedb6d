r"""Edge critic: which observed edges features and the rest of the graph do not support.

Not in the paper, whose A' starts from nothing. Two scores say how well a pair of nodes fits
together: the cosine of their features, and cosines of features smoothed over a graph from which the
pair itself was left out. Leaving it out matters: smoothing over an edge makes its ends alike, so
that every edge, noise or not, would look likely. Random pairs are scored in the same way. A
logistic regression tells edges from random pairs by these scores; comparing both gives the share of
edges that look random (Storey, 2002) and a weight for each, one minus its local false discovery
rate (Efron, 2001), to a power that says how far to trust it.

No label and no gradient of the training loss enters. Cost: ``folds * hops`` products with S, and
``hops`` more for each power that is compared.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from user_dgl.config import CriticConfig
from user_dgl.features.cosine import row_dots
from user_dgl.features.svd import truncated_svd
from user_dgl.graph import Graph
from user_dgl.graph.pairs import random_pairs
from user_dgl.graph.propagation import Propagation, smooth
from user_dgl.structure.false_discovery import (
    LEAST_NULL_PAIRS,
    NULL_PAIRS_PER_EDGE,
    EdgeScores,
    edge_weight,
    noise_share,
)

# Columns of the coarsest view: its cosines speak of topics, not of words.
COARSE_COMPONENTS = 32
# Powers that are compared where the settings leave the power open.
POWERS = (1.0, 0.5, 0.25)


def score_edges(
    graph: Graph,
    feat: sp.csr_matrix,
    config: CriticConfig,
    seed: int,
    engine: str,
    held_out: np.ndarray | None = None,
) -> EdgeScores:
    """Weight each observed edge by scores that were computed without it.

    First by the cosine of the features alone. Then, over the graph with these weights, features are
    smoothed once for each fold of the edges with that fold left out, and its edges are scored.

    Where ``config.power`` is None, the power is that of `POWERS` with which features smoothed
    over the weighted graph without the first fold tell its edges from random pairs best (area
    under the ROC curve): on a dense graph whose features say little the graph itself is the
    better judge, and weights near 1 win.

    Parameters
    ----------
    graph : Graph
    feat : scipy CSR (N, F)
    config : CriticConfig
    seed : int
    engine : str
    held_out : int64 (H,), optional
        Keys of pairs that are not among the random ones.

    Returns
    -------
    EdgeScores
        Weight 1 and no share where there is too little to judge by: fewer edges than folds, fewer
        than three nodes, or no feature that is not 0.
    """
    if graph.num_edges < config.folds or graph.num_nodes < 3 or not feat.nnz:
        return EdgeScores(np.ones(graph.num_edges, dtype=np.float32), None)
    rng = np.random.default_rng([seed, 1])
    edges = np.stack([graph.src.numpy(), graph.dst.numpy()])
    num_nulls = max(NULL_PAIRS_PER_EDGE * graph.num_edges, LEAST_NULL_PAIRS)
    nulls = random_pairs(graph.num_nodes, num_nulls, rng, held_out)
    rows = normalize(feat)
    edge_cosine, null_cosine = row_dots(rows, *edges), row_dots(rows, *nulls)
    first = _judge(edge_cosine[:, None], null_cosine[:, None])
    edge_scores = np.empty((graph.num_edges, 3))
    null_scores = np.empty((nulls.shape[1], 3))
    edge_scores[:, 0], null_scores[:, 0] = edge_cosine, null_cosine
    reduced = torch.from_numpy(truncated_svd(rows, config.num_components, seed))
    edge_fold = rng.permutation(graph.num_edges) % config.folds
    null_fold = rng.permutation(nulls.shape[1]) % config.folds
    for fold in range(config.folds):
        left_out, nulls_here = edge_fold == fold, null_fold == fold
        views = _views(graph, first.weight, left_out, reduced, config, seed, engine)
        for column, view in enumerate(views, start=1):
            edge_scores[left_out, column] = row_dots(view, *edges[:, left_out])
            null_scores[nulls_here, column] = row_dots(view, *nulls[:, nulls_here])
    criticism = _judge(edge_scores, null_scores)
    power, power_scores = config.power, {}
    if power is None:
        left_out = edge_fold == 0
        pairs = np.concatenate([edges[:, left_out], nulls], axis=1)
        is_edge = np.arange(pairs.shape[1]) < left_out.sum()
        for tried in POWERS:
            weight = criticism.weight**tried
            _, coarse = _views(graph, weight, left_out, reduced, config, seed, engine)
            # Every edge left out counts the same: counting by the weights would favour them.
            power_scores[tried] = 100 * float(roc_auc_score(is_edge, row_dots(coarse, *pairs)))
        power = max(power_scores, key=power_scores.get)
    return replace(
        criticism, weight=criticism.weight**power, power=power, power_scores=power_scores
    )


def _views(
    graph: Graph,
    weight: np.ndarray,
    left_out: np.ndarray,
    reduced: torch.Tensor,
    config: CriticConfig,
    seed: int,
    engine: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Features smoothed over the graph without some edges, in all and in few components."""
    kept = torch.from_numpy(np.where(left_out, np.float32(0), weight))
    propagation = Propagation.of(graph, kept, engine)
    fine = smooth(propagation, reduced, config.hops, config.self_share).numpy()
    fine = normalize(fine, copy=False)
    coarse = normalize(truncated_svd(fine, COARSE_COMPONENTS, seed), copy=False)
    return fine, coarse


def _judge(edge_scores: np.ndarray, null_scores: np.ndarray) -> EdgeScores:
    """Weights and share from scores (E, S) of edges and (R, S) of random pairs."""
    scores = np.concatenate([edge_scores, null_scores])
    is_edge = np.concatenate([np.ones(len(edge_scores)), np.zeros(len(null_scores))])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    score = model.fit(scores, is_edge).decision_function(scores)
    edge_score, null_score = score[: len(edge_scores)], score[len(edge_scores) :]
    share = noise_share(edge_score, null_score)
    return EdgeScores(edge_weight(edge_score, null_score, share), share)
