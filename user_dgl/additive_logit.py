"""Log-odds as a sum of piecewise linear functions: a logistic regression without straight lines."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# A random sample of so many rows serves where there are more: there are few numbers to learn.
_MOST_ROWS = 200_000
# Knots are these quantiles of either class, so that both have some where their values lie.
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class AdditiveLogit:
    r"""A generalised additive model (Hastie and Tibshirani, 1990) of a yes or no.

    .. math::
        \log \frac{P(\mathrm{yes} \mid x)}{P(\mathrm{no} \mid x)} = b + \sum_j f_j(x_j)

    Each :math:`f_j` is linear between its knots and constant beyond them.

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
    def fit(cls, terms: np.ndarray, is_yes: np.ndarray) -> "AdditiveLogit":
        """Fit by scikit-learn's logistic regression on the hat functions of all knots.

        Of more than 200,000 rows a sample is drawn.

        Parameters
        ----------
        terms : (M, J)
        is_yes : bool (M,)
            Both classes occur.
        """
        if len(terms) > _MOST_ROWS:
            sample = np.random.default_rng(0).choice(len(terms), _MOST_ROWS, replace=False)
            terms, is_yes = terms[sample], is_yes[sample]
        classes = terms[is_yes], terms[~is_yes]
        knots = tuple(
            np.unique(np.concatenate([np.quantile(x[:, j], _QUANTILES) for x in classes]))
            for j in range(terms.shape[1])
        )
        basis = np.concatenate(
            [_hats(column, at) for column, at in zip(terms.T, knots, strict=True)], axis=1
        )
        # Scaled, so that the penalty means the same for rare and for frequent values.
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        scaler, regression = (step for _, step in model.fit(basis, is_yes).steps)
        weight = regression.coef_[0] / scaler.scale_
        intercept = float(regression.intercept_[0] - scaler.mean_ @ weight)
        ends = np.cumsum([len(at) for at in knots])[:-1]
        return cls(intercept, knots, tuple(np.split(weight, ends)))

    def __call__(self, terms: np.ndarray) -> np.ndarray:
        """Log-odds (M,) of terms (M, J)."""
        functions = zip(terms.T, self.knots, self.values, strict=True)
        return self.intercept + sum(np.interp(x, at, values) for x, at, values in functions)


def _hats(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Hat functions of knots (k,) at x (M,), (M, k): 1 at their own knot, 0 at all others.

    >>> _hats(np.array([0.0, 0.5, 3.0]), np.array([0.0, 2.0])).tolist()
    [[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]]
    """
    return np.stack([np.interp(x, knots, one) for one in np.eye(len(knots))], axis=1)
