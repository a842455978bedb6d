"""Log-odds as a sum of piecewise linear functions: a logistic regression without straight lines."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

# A random sample of so many rows serves where there are more: there are few numbers to learn.
_MOST_ROWS = 200_000
# Knots are these quantiles of either class, so that both have some where their values lie.
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class AdditiveLogit:
    r"""A generalised additive model (Hastie and Tibshirani, 1990) of a yes or no.

    .. math::
        \log \frac{P(\mathrm{yes} \mid x)}{P(\mathrm{no} \mid x)} = b + \sum_j f_j(x_j)

    Each :math:`f_j` is linear between its knots, and constant beyond them.

    Attributes
    ----------
    intercept : float
        b.
    knots : tuple of float64 (k_j,)
        Ascending.
    values : tuple of float64 (k_j,)
        :math:`f_j` at its knots.
    """

    intercept: float
    knots: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]

    @classmethod
    def fit(cls, terms: np.ndarray, is_yes: np.ndarray, rising: bool = False) -> "AdditiveLogit":
        r"""Maximum likelihood with a ridge penalty.

        The slopes between knots are the unknowns, each in units of the standard deviation of what
        it multiplies, so that the penalty (1/2 of the sum of their squares) means the same for rare
        and for frequent values. Of more than 200,000 rows a sample is drawn.

        Parameters
        ----------
        terms : (M, J)
        is_yes : bool (M,)
            Both classes occur.
        rising : bool
            No function may fall: more of a term never speaks against yes.
        """
        if len(terms) > _MOST_ROWS:
            sample = np.random.default_rng(0).choice(len(terms), _MOST_ROWS, replace=False)
            terms, is_yes = terms[sample], is_yes[sample]
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

        def loss(unknowns):
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
        return cls(float(found[0]), knots, values)

    def __call__(self, terms: np.ndarray) -> np.ndarray:
        """Log-odds (M,) of terms (M, J)."""
        functions = zip(terms.T, self.knots, self.values, strict=True)
        return self.intercept + sum(np.interp(x, at, values) for x, at, values in functions)


def _rises(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """How far x (M,) is from each knot (k,) to the next, from 0 to 1, (M, k - 1).

    >>> _rises(np.array([-1.0, 0.5, 3.0]), np.array([0.0, 2.0, 4.0])).tolist()
    [[0.0, 0.0], [0.25, 0.0], [1.0, 0.5]]
    """
    return np.clip((x[:, None] - knots[:-1]) / np.diff(knots), 0, 1)
