"""Share of edges that look like random pairs, and one minus the local false discovery rate."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.isotonic import IsotonicRegression

# The least weight of an edge: a weight of 0 could not be learned away from.
_LEAST_WEIGHT = 0.01
# Random pairs that edges are compared with.
NULL_PAIRS_PER_EDGE = 2
LEAST_NULL_PAIRS = 1000


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """What the critic says of a graph.

    Attributes
    ----------
    weight : float32 (E,)
        In (0, 1], higher for an edge that features and graph support.
    noise_share : float or None
        Estimated share of the edges that look like random pairs, in [0, 1]; None: not estimated.
    power : float
        What the weights were raised to.
    power_scores : dict of float to float
        Held-out score of each power that was compared; empty where none was.
    """

    weight: np.ndarray
    noise_share: float | None
    power: float = 1.0
    power_scores: dict[float, float] = field(default_factory=dict)


def noise_share(edge_score: np.ndarray, null_score: np.ndarray) -> float:
    r"""Storey's estimate: twice the share of edges that score below the median random pair.

    Half of all random pairs lie there and, if real edges score high, next to no real edge.
    """
    return float(min(np.mean(edge_score < np.median(null_score)) / 0.5, 1.0))


def edge_weight(edge_score: np.ndarray, null_score: np.ndarray, share: float) -> np.ndarray:
    r"""One minus the local false discovery rate, :math:`1 - \pi_0 p_0(c_e) / p(c_e)`.

    The ratio of densities comes from the odds that an isotonic regression gives a score to be an
    edge's rather than a random pair's; so a higher score never gets a lower weight.

    Parameters
    ----------
    edge_score : (E,)
    null_score : (R,)
    share : float
        :math:`\pi_0`.

    Returns
    -------
    float32 (E,) in [0.01, 1]
    """
    score = np.concatenate([edge_score, null_score])
    is_edge = np.concatenate([np.ones(len(edge_score)), np.zeros(len(null_score))])
    chance = IsotonicRegression(out_of_bounds="clip").fit(score, is_edge).predict(edge_score)
    null_over_edge = (1 - chance) / chance * (len(edge_score) / len(null_score))
    return np.clip(1 - share * null_over_edge, _LEAST_WEIGHT, 1.0).astype(np.float32)
