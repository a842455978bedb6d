"""Columns of two values each: when they are turned into 0 and 1, and how."""

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.config import FeaturesConfig
from user_dgl.features import indicators
from user_dgl.features.indicators import Indicators
from user_dgl.features.preparation import FeaturePreparation, prepare_features

AUTO = FeaturesConfig(weighting="auto")


def _words(rows=300, columns=80, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((rows, columns)) < rng.uniform(0.02, 0.4, columns)).astype(np.float32)


def _standardised(words):
    deviation = words.std(axis=0)
    return (words - words.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


def test_standardised_words_are_prepared_like_the_words():
    words = _words()
    preparation = FeaturePreparation(AUTO)
    prepared = preparation.fit_transform(sp.csr_matrix(_standardised(words)))
    expected = prepare_features(sp.csr_matrix(words), AUTO)
    np.testing.assert_array_equal(prepared.toarray(), expected.toarray())
    assert "two values at most" in preparation.warnings[0]
    # Rows of other nodes, also if they are rounded.
    new = preparation.transform(sp.csr_matrix(_standardised(words)[:7].round(2)))
    np.testing.assert_array_equal(new.toarray(), expected.toarray()[:7])


def test_frequent_and_constant_columns():
    words = _words()
    words[:, 0] = 1 - words[:, 0]  # this word is in most rows
    words[:, 1] = 0
    dense = sp.csr_matrix(_standardised(words))
    np.testing.assert_array_equal(Indicators.of(dense)(dense).toarray(), words)


def test_rows_without_features_stay_so(monkeypatch):
    monkeypatch.setattr(indicators, "_BLOCK", 7 * 80)
    words = _words()
    dense = _standardised(words)
    dense[20:50] = words[20:50] = 0
    dense = sp.csr_matrix(dense)
    np.testing.assert_array_equal(Indicators.of(dense)(dense).toarray(), words)


def test_votes_are_no_words():
    """Both values say as much; rows of -1 must not become rows without features."""
    party = np.arange(100) < 40
    votes = np.where(party[:, None], -1.0, 1.0) * np.ones(50)
    assert Indicators.of(sp.csr_matrix(votes)) is None
    assert Indicators.of(sp.csr_matrix(-votes)) is None
    assert Indicators.of(sp.csr_matrix(_standardised(_words(rows=5)))) is None
    # Columns that do not vary say nothing about how rare the higher value is.
    assert Indicators.of(sp.csr_matrix(np.hstack([votes, -np.ones((100, 50))]))) is None


def test_a_few_flags_are_a_table():
    """A row of lower values would become one without features."""
    rng = np.random.default_rng(0)
    answers = np.where(rng.random((300, 4)) < 0.2, 1.0, -1.0)
    preparation = FeaturePreparation(AUTO)
    assert preparation.fit_transform(sp.csr_matrix(answers)).getnnz(axis=1).min() == 4
    assert preparation.warnings == []


@pytest.mark.parametrize("place", [(5, 3), (1_700, 3)], ids=["first rows", "later"])
def test_a_third_value_leaves_all_as_they_are(place):
    dense = _standardised(_words(rows=2_000))
    dense[place] = 0.123
    assert Indicators.of(sp.csr_matrix(dense)) is None
    dense[place] = 0
    assert Indicators.of(sp.csr_matrix(dense)) is None


def test_words_themselves_are_not_touched():
    preparation = FeaturePreparation(AUTO)
    preparation.fit_transform(sp.csr_matrix(_words()))
    assert preparation.warnings == []
    assert preparation._indicators is None
    none = FeaturePreparation(FeaturesConfig(weighting="none"))
    dense = _standardised(_words())
    np.testing.assert_array_equal(none.fit_transform(sp.csr_matrix(dense)).toarray(), dense)


def test_no_rows_and_no_columns():
    assert Indicators.of(sp.csr_matrix((0, 4), dtype=np.float32)) is None
    assert Indicators.of(sp.csr_matrix((4, 0), dtype=np.float32)) is None
