"""Log-odds as a sum of piecewise linear functions."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from user_dgl.structure.additive_logit import AdditiveLogit, _sample


def draw(log_odds, terms, seed=0):
    return np.random.default_rng(seed).random(len(terms)) < expit(log_odds(terms))


def bent(terms):
    """A ridge in the first term, nothing in the second."""
    return 2 - 8 * np.abs(terms[:, 0] - 0.5)


@pytest.fixture(scope="module")
def example():
    terms = np.random.default_rng(1).random((20_000, 2))
    return terms, draw(bent, terms)


def test_finds_what_no_straight_line_is(example):
    terms, is_yes = example
    fresh = np.random.default_rng(2).random((4000, 2))
    score = AdditiveLogit.fit(terms, is_yes)(fresh)
    assert np.corrcoef(score, bent(fresh))[0, 1] > 0.97
    truth = draw(bent, fresh, 3)
    assert roc_auc_score(truth, score) > roc_auc_score(truth, bent(fresh)) - 0.01
    line = LogisticRegression().fit(terms, is_yes).decision_function(fresh)
    assert abs(np.corrcoef(line, bent(fresh))[0, 1]) < 0.2


def test_rising_functions_do_not_fall(example):
    terms, is_yes = example
    logit = AdditiveLogit.fit(terms, is_yes, rising=True)
    assert all((np.diff(values) >= 0).all() for values in logit.values)
    line = np.random.default_rng(5).random((4000, 1))
    yes = draw(lambda x: 6 * x[:, 0] - 3, line)
    rising, free = (AdditiveLogit.fit(line, yes, rising=way)(line) for way in (True, False))
    np.testing.assert_allclose(rising, free, atol=0.3)
    assert np.ptp(AdditiveLogit.fit(-line, yes, rising=True)(-line)) < 0.05


def test_log_odds_are_calibrated(example):
    terms, is_yes = example
    chance = expit(AdditiveLogit.fit(terms, is_yes)(terms))
    for low in (0.1, 0.3, 0.5, 0.7):
        here = (chance >= low) & (chance < low + 0.2)
        assert is_yes[here].mean() == pytest.approx(chance[here].mean(), abs=0.05)


def test_two_valued_terms_are_those_of_logistic_regression_with_a_ridge():
    """Both minimise the negative log-likelihood plus half the sum of the squared slopes."""
    is_yes = np.arange(80) < 40
    terms = np.zeros((80, 2))
    terms[:32, 0] = terms[40:48, 0] = 1
    # In both classes 24 of 40. No quantile that is a knot lies between two values.
    terms[8:32, 1] = terms[46:70, 1] = 1
    found = AdditiveLogit.fit(terms, is_yes)(terms)
    ridge = LogisticRegression(C=1.0, tol=1e-8).fit(terms / terms.std(axis=0), is_yes)
    expected = ridge.decision_function(terms / terms.std(axis=0))
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_is_the_sum_of_its_functions(example):
    logit = AdditiveLogit.fit(*example)
    at = np.array([[logit.knots[0][1], logit.knots[1][3]], [-1e9, 1e9]])
    ends = logit.values[0][0] + logit.values[1][-1]
    expected = [logit.values[0][1] + logit.values[1][3], ends]
    np.testing.assert_allclose(logit(at), np.add(logit.intercept, expected))


def test_constant_and_two_valued_terms():
    rng = np.random.default_rng(0)
    terms = np.stack([np.zeros(400), rng.integers(0, 2, 400)], axis=1)
    is_yes = rng.random(400) < 0.2 + 0.6 * terms[:, 1]
    logit = AdditiveLogit.fit(terms, is_yes)
    assert len(logit.knots[0]) == 1
    assert np.isfinite(logit(terms)).all()
    low, high = logit(np.array([[0.0, 0.0], [0.0, 1.0]]))
    assert low < 0 < high


@pytest.mark.parametrize("rare", [True, False])
def test_a_sample_has_enough_of_each_class(rare):
    """One in 500 is of the rare class, and 1,000 rows are taken; the odds stay those of all."""
    rng = np.random.default_rng(0)
    terms = rng.normal(size=(200_000, 1))
    is_yes = rng.random(len(terms)) < expit(2 * terms[:, 0] - 7.5)
    terms, is_yes = (terms, is_yes) if rare else (-terms, ~is_yes)
    share = min(is_yes.mean(), 1 - is_yes.mean())
    assert share < 0.005
    logit = AdditiveLogit.fit(terms, is_yes, most_rows=1000)
    mean = expit(logit(terms)).mean()
    assert min(mean, 1 - mean) == pytest.approx(share, rel=0.25)
    assert roc_auc_score(is_yes, logit(terms)) > roc_auc_score(is_yes, terms[:, 0]) - 0.01
    drawn, _ = _sample(is_yes, 1000)
    assert len(np.unique(drawn)) == 1000
    assert min(is_yes[drawn].sum(), (~is_yes[drawn]).sum()) == 250


def test_a_class_of_few_rows_is_taken_whole():
    terms = np.arange(1000.0)[:, None]
    is_yes = np.arange(1000) < 5
    logit = AdditiveLogit.fit(terms, is_yes, most_rows=100)
    assert logit(np.array([[0.0]])) > logit(np.array([[900.0]])) + 3
