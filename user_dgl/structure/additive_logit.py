"""Logistic regression in which the log-odds are a sum of piecewise linear functions."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from user_dgl.runtime.streams import Stream, stream_rng

# Of more rows, a random sample of this size is used. It is large enough for the few parameters.
MOST_ROWS = 200_000
# Knots are these quantiles of each class, so that each class has knots in the range of its values.
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _sample(is_yes: np.ndarray, count: int) -> tuple[np.ndarray, float]:
    """Places (count,) of random rows, and what is to be added to the intercept of a fit to them.

    The rows are drawn from all, unless one class would have less than a quarter of them: on a large
    graph there are many times more edges than random pairs, and the few that a draw from all had
    would decide everything.
    """
    rng = stream_rng(0, Stream.LOGIT_SAMPLE)
    yes = int(is_yes.sum())
    no, least = len(is_yes) - yes, count // 4
    if min(yes, no) / len(is_yes) >= least / count:
        return rng.choice(len(is_yes), count, replace=False), 0.0
    smaller = min(least, yes, no)
    drawn_yes = smaller if yes < no else count - smaller
    drawn_no = count - drawn_yes
    parts = [
        rng.choice(np.flatnonzero(of_class), number, replace=False)
        for of_class, number in ((is_yes, drawn_yes), (~is_yes, drawn_no))
    ]
    # The odds in the sample are those in all rows, times the ratio of the shares that were kept.
    return np.sort(np.concatenate(parts)), math.log((drawn_no / no) / (drawn_yes / yes))


@dataclass(frozen=True, eq=False)
class AdditiveLogit:
    r"""Generalised additive model (Hastie and Tibshirani, 1990) of a binary variable.

    .. math::
        \log \frac{P(\mathrm{yes} \mid x)}{P(\mathrm{no} \mid x)} = b + \sum_j f_j(x_j)

    Each :math:`f_j` is linear between its knots and constant outside of them.

    Attributes
    ----------
    intercept : float
        b.
    knots : tuple of float64 (k_j,)
        Knots of each :math:`f_j` in ascending order.
    values : tuple of float64 (k_j,)
        Values of each :math:`f_j` at its knots.
    """

    intercept: float
    knots: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]

    @classmethod
    def fit(
        cls,
        terms: np.ndarray,
        is_yes: np.ndarray,
        rising: bool = False,
        most_rows: int = MOST_ROWS,
    ) -> "AdditiveLogit":
        r"""Fit the model by maximum likelihood with a ridge penalty.

        The parameters are the slopes between knots. The variable that a slope multiplies is divided
        by its standard deviation, so that the penalty (half the sum of the squared slopes) has the
        same strength for rare and for frequent values. Of more than ``most_rows`` rows a random
        sample of this size is used, in which each class has a quarter of the rows at least, if it
        has so many; the intercept is that of all rows.

        Parameters
        ----------
        terms : float ndarray (M, J)
        is_yes : bool ndarray (M,)
            Must contain both classes.
        rising : bool
            Whether every :math:`f_j` must be non-decreasing, so that a larger term never lowers the
            log-odds.
        most_rows : int
        """
        correction = 0.0
        if len(terms) > most_rows:
            sample, correction = _sample(is_yes, most_rows)
            terms, is_yes = terms[sample], is_yes[sample]
        terms = terms.astype(np.float64)
        classes = terms[is_yes], terms[~is_yes]
        knots = tuple(
            np.unique(np.concatenate([np.quantile(x[:, j], _QUANTILES) for x in classes]))
            for j in range(terms.shape[1])
        )
        rises = np.concatenate(
            [_rises(column, at) for column, at in zip(terms.T, knots, strict=True)], axis=1
        )
        scale = rises.std(axis=0)
        scale[scale == 0] = 1
        rises /= scale
        sign = np.where(is_yes, 1.0, -1.0)

        def loss(unknowns: np.ndarray) -> tuple[float, np.ndarray]:
            """Penalised negative log-likelihood and its gradient."""
            margin = sign * (unknowns[0] + rises @ unknowns[1:])
            slope = -sign * expit(-margin)
            value = np.logaddexp(0, -margin).sum() + unknowns[1:] @ unknowns[1:] / 2
            return value, np.append(slope.sum(), slope @ rises + unknowns[1:])

        size = rises.shape[1]
        bounds = [(None, None)] + [(0 if rising else None, None)] * size
        options = {"maxiter": 1000, "maxfun": 2000}
        found = minimize(loss, np.zeros(1 + size), jac=True, bounds=bounds, options=options).x
        steps = np.split(found[1:] / scale, np.cumsum([len(at) - 1 for at in knots])[:-1])
        values = tuple(np.append(0, np.cumsum(step)) for step in steps)
        return cls(float(found[0]) + correction, knots, values)

    def __call__(self, terms: np.ndarray) -> np.ndarray:
        """Compute the log-odds (M,) of terms (M, J)."""
        total = np.zeros(len(terms))
        for j, x in zip(range(len(self.knots)), terms.T, strict=True):
            total += self.part(j, x)
        return self.intercept + total

    def parts(self, terms: np.ndarray) -> np.ndarray:
        """Compute the values (M, J) of the functions, whose sum and the intercept are the log-odds.

        They say how much each term speaks for the event, compared with its lowest value.
        """
        columns = zip(range(len(self.knots)), terms.T, strict=True)
        return np.stack([self.part(j, x) for j, x in columns], axis=1)

    def part(self, j: int, x: np.ndarray) -> np.ndarray:
        """Compute the values (M,) of one of the functions at x (M,)."""
        return np.interp(x, self.knots[j], self.values[j])


def _rises(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Position of x (M,) between each knot (k,) and the next, clipped to [0, 1], (M, k - 1).

    >>> _rises(np.array([-1.0, 0.5, 3.0]), np.array([0.0, 2.0, 4.0])).tolist()
    [[0.0, 0.0], [0.25, 0.0], [1.0, 0.5]]
    """
    return np.clip((x[:, None] - knots[:-1]) / np.diff(knots), 0, 1)
