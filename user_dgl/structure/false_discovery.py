"""Share of edges that look like random pairs, and weights from local false discovery rates."""

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression

from user_dgl.features.rows import ALL, Rows

# Smallest weight of an edge. Training could not change a weight of 0.
_LEAST_WEIGHT = 0.01
# Smallest estimated chance that a score is that of an edge.
_LEAST_CHANCE = 1e-100
# Number of random pairs that edges are compared with: for each edge, and at least.
NULL_PAIRS_PER_EDGE = 2
LEAST_NULL_PAIRS = 1000


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """Result of an edge critic for a graph.

    Attributes
    ----------
    weight : float32 (E,)
        Weight of each edge in (0, 1], higher if features and graph support the edge.
    noise_share : float or None
        Estimated share of the edges that look like random pairs, in [0, 1]. None if not estimated.
    power : float
        Exponent that the weights were raised to.
    by_judges : bool
        Whether the weights are those of the two judges of `user_dgl.cleaning`, not of the critic.
    """

    weight: np.ndarray
    noise_share: float | None
    power: float = 1.0
    by_judges: bool = False


def noise_share(
    edge_score: np.ndarray, null_score: np.ndarray, ties_below: bool = False, held: Rows = ALL
) -> float:
    r"""Estimate the share of edges that look like random pairs (Storey, 2002).

    The estimate is twice the share of edges whose score is below the median score of random pairs,
    and at most 1. Half of all random pairs have scores below it, and almost no real edge has if
    real edges score high.

    Parameters
    ----------
    edge_score, null_score : float ndarray (E,), (R,)
    ties_below : bool
        Whether scores that equal the median count as below it, among the edges and among the random
        pairs. Scores that are constant below their lowest knot need this: many of them are equal.
    held : Rows
        Of several processes, each has the edges of its local graph, and all random pairs.
    """
    median = np.median(null_score)
    number = held.count_pairs(np.ones(len(edge_score), dtype=bool))
    if ties_below:
        below = held.count_pairs(edge_score <= median) / number
        return float(min(below / np.mean(null_score <= median), 1.0))
    return float(min(held.count_pairs(edge_score < median) / number / 0.5, 1.0))


def edge_weight(
    edge_score: np.ndarray,
    null_score: np.ndarray,
    share: float,
    fitted: np.ndarray | None = None,
    held: Rows = ALL,
) -> np.ndarray:
    r"""Compute one minus the local false discovery rate, :math:`1 - \pi_0 p_0(c_e) / p(c_e)`.

    An isotonic regression estimates the probability that a score belongs to an edge and not to a
    random pair. The ratio of the densities follows from its odds. A higher score therefore never
    has a lower weight.

    Parameters
    ----------
    edge_score : float ndarray (E,)
        :math:`c_e`.
    null_score : float ndarray (R,)
        Scores of random pairs.
    share : float
        :math:`\pi_0`, see `noise_share`.
    fitted : int64 (F,), optional
        Edges that the isotonic regression is fitted to; default: all.
    held : Rows
        As for `noise_share`.

    Returns
    -------
    float32 (E,) in [0.01, 1]
    """
    some = held.pick_pairs(edge_score, fitted)
    score = np.concatenate([some, null_score])
    is_edge = np.concatenate([np.ones(len(some)), np.zeros(len(null_score))])
    curve = held.first(lambda: IsotonicRegression(out_of_bounds="clip").fit(score, is_edge))
    chance = curve.predict(edge_score) if len(edge_score) else edge_score
    # Among edges that are not fitted, some may have a score that only random pairs have.
    chance = np.maximum(chance, _LEAST_CHANCE)
    null_over_edge = (1 - chance) / chance * (len(some) / len(null_score))
    return np.clip(1 - share * null_over_edge, _LEAST_WEIGHT, 1.0).astype(np.float32)
