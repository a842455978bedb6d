"""Columns of very different scale: which are scaled, by what, and what is said."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm, rankdata, trim_mean

from user_dgl.config import FeaturesConfig
from user_dgl.errors import InputError
from user_dgl.features import robust
from user_dgl.features.preparation import FeaturePreparation, prepare_features
from user_dgl.features.robust import NormalScores, robust_columns

AUTO = FeaturesConfig(weighting="auto")
# What `auto` does, without the rule for columns of different scale.
LOG = FeaturesConfig(weighting="log")
NONE = FeaturesConfig()


def _real(seed=0, columns=4, rows=200):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def _csr(dense):
    return sp.csr_matrix(np.asarray(dense, dtype=np.float32))


def _scaled(dense):
    """The formula, densely."""
    low, median, high = np.percentile(dense, (25, 50, 75), axis=0)
    return (dense - median) / ((high - low) / 1.349)


def test_a_column_in_thousands_is_scaled_and_named():
    dense = np.column_stack([_real(), 1000 * _real(1, 1)])
    preparation = FeaturePreparation(AUTO)
    prepared = preparation.fit_transform(_csr(dense))
    np.testing.assert_allclose(prepared.toarray(), _scaled(dense), atol=1e-4)
    assert "most of all column 4 (columns are counted from 0)" in preparation.warnings[0]
    # Rows of other nodes are scaled by the same numbers, and the input is left alone.
    new = preparation.transform(_csr(dense[:5])).toarray()
    np.testing.assert_allclose(new, prepared.toarray()[:5], atol=1e-6)


def test_a_column_in_thousandths_is_scaled_too():
    dense = np.column_stack([_real(), 1e-3 * _real(1, 1)])
    found, said = robust_columns(_csr(dense), "auto")
    assert len(found.places) == 5
    assert "most of all column 4" in said[0]


def test_outliers_do_not_decide_the_scale():
    dense = np.column_stack([_real(), 1000 * _real(1, 1)])
    with_outliers = dense.copy()
    with_outliers[::50, 0] *= 1e6
    spread = [robust_columns(_csr(x), "auto")[0].spread[0] for x in (dense, with_outliers)]
    assert spread[1] == pytest.approx(spread[0], rel=0.1)


@pytest.mark.parametrize(
    ("dense", "config"),
    [
        (np.abs(_real()) + 1, LOG),
        (_real(columns=4) > 0.3, None),
        (np.random.default_rng(0).poisson(5, (200, 4)) * [1, 1, 1, 1], LOG),
        # Dense whole numbers and sparse counts with a frequent word: counts.
        (np.random.default_rng(0).poisson(5, (200, 4)) * [1, 1, 1, 1000], LOG),
        # TF-IDF with frequent words, whose weights are small.
        (sp.random(200, 50, 0.1, random_state=0).toarray() + 0.001 * (np.arange(50) < 3), LOG),
    ],
    ids=["positive", "flags", "counts", "counts of two sizes", "tf-idf"],
)
def test_what_is_left_alone(dense, config):
    found, _ = robust_columns(_csr(dense), "auto")
    assert found is None
    if config is not None:
        expected = prepare_features(_csr(dense), config).toarray()
        np.testing.assert_array_equal(prepare_features(_csr(dense), AUTO).toarray(), expected)


def _centred(dense):
    """The formula: the mean without the 5 % smallest and the 5 % largest values of a column."""
    rows = len(dense) // 20
    return dense - np.sort(dense, axis=0)[rows:-rows].mean(0)


def test_an_outlier_does_not_move_the_centre():
    dense = _real() + 1
    dense[0] *= 1e5
    prepared = prepare_features(_csr(dense), AUTO).toarray()
    assert np.abs(np.median(prepared, axis=0)).max() < 0.2


def test_nodes_without_features_stay_so():
    """Less a common mean, all of them would be the same far point."""
    dense = _real() + 1
    dense[:30] = 0
    preparation = FeaturePreparation(AUTO)
    prepared = preparation.fit_transform(_csr(dense)).toarray()
    assert not prepared[:30].any()
    np.testing.assert_allclose(prepared[30:], _centred(dense[30:]), atol=0.05)
    new = preparation.transform(_csr(np.zeros((2, 4))))
    assert not new.nnz


@pytest.mark.parametrize("scale", [(1, 1, 1, 1), (1, 2, 3, 4)])
def test_real_values_of_similar_scale_are_centred(scale):
    """Embeddings have a large mean in common, by which all rows look alike."""
    dense = (_real() + np.array([0, 5, -50, 1])) * scale
    dense[:80, 1] = 0
    preparation = FeaturePreparation(AUTO)
    prepared = preparation.fit_transform(_csr(dense))
    assert preparation.warnings == []
    np.testing.assert_allclose(prepared.toarray(), _centred(dense), atol=2e-5)
    new = preparation.transform(_csr(dense[:5] + 1)).toarray()
    np.testing.assert_allclose(new, prepared.toarray()[:5] + 1, atol=2e-5)
    by_row = FeaturesConfig(weighting="auto", row_norm="l2")
    lengths = np.linalg.norm(prepare_features(_csr(dense), by_row).toarray(), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)


def test_only_dense_columns_of_dense_features_are_centred():
    flags = np.arange(200)[:, None] % 5 == np.arange(2)
    prepared = prepare_features(_csr(np.hstack([_real() + 1, flags])), AUTO).toarray()
    np.testing.assert_allclose(prepared[:, :4], _centred(_real() + 1), atol=1e-5)
    np.testing.assert_array_equal(prepared[:, 4:], flags)
    sparse = np.hstack([_real(columns=1) + 1, np.zeros((200, 4))])
    np.testing.assert_array_equal(
        prepare_features(_csr(sparse), AUTO).toarray(), _csr(sparse).toarray()
    )


@pytest.mark.parametrize("factor", [2.0**125, 2.0**-100])
def test_columns_that_are_centred_keep_their_scale_beside_the_others(factor):
    flags = np.arange(200)[:, None] % 5 == np.arange(2)
    dense = np.hstack([_real() + 1, flags])
    preparation = FeaturePreparation(FeaturesConfig(weighting="auto", row_norm="l2"))
    usual = prepare_features(_csr(dense), preparation._config).toarray()
    found = preparation.fit_transform(_csr(dense * factor)).toarray()
    np.testing.assert_allclose(found, usual, atol=1e-5)
    new = preparation.transform(_csr(dense[:7] * factor)).toarray()
    np.testing.assert_allclose(new, found[:7], atol=1e-6)


def test_a_column_that_is_constant_up_to_rounding_is_centred_to_zero(monkeypatch):
    monkeypatch.setattr(robust, "_BLOCK", 50)  # the rows are read in several blocks
    dense = np.column_stack([_real() - 2, 7 * (1 + 1e-7 * _real(2, 1))])
    prepared = prepare_features(_csr(dense), AUTO).toarray()
    assert not prepared[:, 4].any()
    np.testing.assert_allclose(prepared[:, :4], _centred(dense[:, :4]), atol=1e-5)


def test_whole_numbers_of_very_different_scale_are_named():
    ages = np.random.default_rng(0).integers(20, 70, (200, 2))
    preparation = FeaturePreparation(AUTO)
    preparation.fit_transform(_csr(ages * [1, 1000]))
    (said,) = preparation.warnings
    assert "column 1" in said
    assert "features.weighting=robust" in said


def test_words_keep_their_weights_beside_a_column_in_thousands():
    words = (np.random.default_rng(0).random((200, 50)) < 0.1).astype(float)
    size = 5000 + 1000.5 * _real(1, 1)
    both = prepare_features(_csr(np.hstack([words, size])), AUTO).toarray()
    np.testing.assert_allclose(both[:, :50], prepare_features(_csr(words), AUTO).toarray())
    np.testing.assert_allclose(both[:, 50:], _scaled(size), atol=1e-3)


def test_asked_for():
    dense = np.column_stack([_real(), _real(1, 1) > 0, np.full(200, 3.0)])
    prepared = prepare_features(_csr(dense), FeaturesConfig(weighting="robust")).toarray()
    np.testing.assert_allclose(prepared[:, :4], _scaled(dense[:, :4]), atol=1e-4)
    assert len(np.unique(prepared[:, 4])) == 2  # flags are weighted as without the others
    assert prepared[:, 4].min() == 0
    assert not prepared[:, 5].any()  # a constant says nothing


def test_rounding_is_not_blown_up():
    """A column that is constant up to rounding becomes 0, and not noise of spread 1."""
    noise = 7 * (1 + 1e-7 * _real(2, 1))
    dense = np.column_stack([_real(), 1000 * _real(1, 1), noise])
    assert not prepare_features(_csr(dense), AUTO).toarray()[:, 5].any()


def test_quartiles_that_are_equal():
    """More than half of the values of a column are equal: its standard deviation serves."""
    half = np.where(np.arange(200) < 40, _real(3, 1).ravel() * 1000, 3.5)
    dense = np.column_stack([_real(), half])
    found, _ = robust_columns(_csr(dense), "auto")
    assert found.spread[4] == pytest.approx(half.std(), rel=1e-4)


# Very large and very small values ----------------------------------------------------------------


@pytest.mark.parametrize("factor", [2.0**66, 2.0**-83])
@pytest.mark.parametrize("row_norm", ["none", "l1", "l2"])
def test_extreme_values_are_scaled_not_collapsed(factor, row_norm):
    config = FeaturesConfig(row_norm=row_norm)
    dense = _real()
    preparation = FeaturePreparation(config)
    prepared = preparation.fit_transform(_csr(dense * factor)).toarray()
    usual = prepare_features(_csr(dense), config).toarray()
    if row_norm == "none":
        usual *= prepared[0, 0] / usual[0, 0]
        assert 0.1 < np.abs(prepared).max() <= 1
    np.testing.assert_allclose(prepared, usual, rtol=1e-5)
    new = preparation.transform(_csr(dense[3:4] * factor)).toarray()
    np.testing.assert_allclose(new, prepared[3:4], rtol=1e-6)


def test_rows_of_every_size():
    dense = _real()
    sizes = 2.0 ** np.random.default_rng(1).integers(-80, 80, (200, 1))
    config = FeaturesConfig(row_norm="l2")
    prepared = prepare_features(_csr(dense * sizes), config).toarray()
    np.testing.assert_allclose(prepared, prepare_features(_csr(dense), config).toarray(), rtol=1e-5)


def test_words_of_any_size_are_words():
    words = (np.random.default_rng(0).random((200, 50)) < 0.1).astype(float)
    config = FeaturesConfig(weighting="auto", row_norm="l2")
    usual = prepare_features(_csr(words), config).toarray()
    for factor in (1e20, 1e-25):
        prepared = prepare_features(_csr(words * factor), config).toarray()
        np.testing.assert_allclose(prepared, usual, rtol=1e-5)


def test_negative_new_rows_beside_scaled_columns():
    """Only the columns that take logarithms may not be negative."""
    dense = np.column_stack([_real() * (1, 1, 1, 1000), np.arange(200) % 3 == 0])
    preparation = FeaturePreparation(AUTO)
    preparation.fit_transform(_csr(dense))
    preparation.transform(_csr(-np.abs(dense[:3]) * (1, 1, 1, 1, 0)))
    with pytest.raises(InputError, match="negative features"):
        preparation.transform(_csr(dense[:3] * 0 - (0, 0, 0, 0, 1)))


def _log_normal(seed=0, columns=4, rows=200):
    return np.exp(2 * np.random.default_rng(seed).normal(size=(rows, columns)))


def test_columns_with_long_tails_take_normal_scores():
    dense = _log_normal() - 1
    preparation = FeaturePreparation(AUTO)
    prepared = preparation.fit_transform(_csr(dense)).toarray()
    expected = norm.ppf((rankdata(dense, axis=0) - 0.5) / len(dense))
    np.testing.assert_allclose(prepared, expected, atol=1e-6)
    assert "features with outliers" in preparation.warnings[0]
    assert "4 columns are scaled" in preparation.warnings[0]
    assert "4 of them by ranks" in preparation.warnings[0]
    # Other rows: between values seen the score is interpolated, beyond them it is that of the end.
    new = np.vstack([dense[:3], dense.max(axis=0) * 100, dense.min(axis=0) - 1])
    scores = preparation.transform(_csr(new)).toarray()
    np.testing.assert_allclose(scores[:3], prepared[:3], atol=1e-6)
    np.testing.assert_allclose(scores[3:], np.stack([prepared.max(0), prepared.min(0)]), atol=1e-6)


def test_scores_do_not_depend_on_the_scale_of_a_column():
    dense = np.log(_log_normal())
    stretched = np.sinh(4 * dense) * 10.0 ** np.arange(4)
    prepared = prepare_features(_csr(stretched), AUTO).toarray()
    expected = norm.ppf((rankdata(dense, axis=0) - 0.5) / len(dense))
    np.testing.assert_allclose(prepared, expected, atol=1e-5)


def test_equal_values_take_the_score_of_their_mean_rank():
    values = np.array([0.0, 0, 0, 0, 0, 0, 1, 2, 3, 100])
    scores = NormalScores.of(values)(np.array([0, 1, 100.0]))
    np.testing.assert_allclose(scores, norm.ppf([0.3, 0.65, 0.95]))


@pytest.mark.parametrize("columns", [8, 80])
@pytest.mark.parametrize("factor", [1, 1e10], ids=["small", "large"])
def test_many_rows_without_features_are_no_outliers(columns, factor):
    dense = factor * _real(columns=columns, rows=1000)
    empty = np.arange(1000) % 5 < 2
    dense[empty] = 0
    preparation = FeaturePreparation(FeaturesConfig(weighting="auto", row_norm="l2"))
    prepared = preparation.fit_transform(_csr(dense))
    assert preparation.warnings == []
    assert prepared[empty].nnz == 0
    tails = factor * (_log_normal(columns=columns, rows=1000) - 1)
    tails[empty] = 0
    prepared = preparation.fit_transform(_csr(tails))
    assert "features with outliers" in preparation.warnings[0]
    assert prepared[empty].nnz == preparation.transform(_csr(tails[:2])).nnz == 0


def test_a_frequent_value_among_many_keeps_its_mean_rank():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(4_000), rng.standard_t(2, 6_000)])
    (score,) = NormalScores.of(values)(np.zeros(1))
    rank = (values < 0).sum() + 2_000
    assert score == pytest.approx(norm.ppf(rank / 10_000), abs=1e-3)


def test_flags_beside_a_column_are_no_outliers():
    rng = np.random.default_rng(0)
    flags = np.where(rng.random((500, 2)) < 0.15, 1.0, -1.0)
    found, said = robust_columns(_csr(np.column_stack([rng.normal(size=500), flags])), "auto")
    assert (found, said) == (None, [])


def test_an_extreme_value_does_not_overflow():
    dense = 1e-10 * _real(rows=500)
    dense[3, 0] = 1e30
    preparation = FeaturePreparation(AUTO)
    with np.errstate(over="raise"):
        prepared = preparation.fit_transform(_csr(dense)).toarray()
        new = preparation.transform(_csr(np.full((1, 4), 1e30))).toarray()
    assert np.abs(prepared[:, 0]).max() < 4
    assert np.isfinite(new).all()
    largest = np.array([[-3.4e38, 1], [3.4e38, 2], [-3.4e38, 3], [3.4e38, 4], [3.4e38, 5]])
    with np.errstate(over="raise"):
        assert np.isfinite(prepare_features(_csr(largest), AUTO).toarray()).all()


def test_at_most_a_thousand_values_are_kept_for_a_column():
    values = np.random.default_rng(0).standard_cauchy(5_000)
    scores = NormalScores.of(values)
    assert len(scores.values) == 1_000
    expected = norm.ppf((rankdata(values) - 0.5) / len(values))
    inner = np.abs(expected) < 2
    np.testing.assert_allclose(scores(values)[inner], expected[inner], atol=0.02)


@pytest.mark.parametrize(
    ("dense", "scaled"),
    [
        (np.random.default_rng(0).standard_t(1.5, (2000, 6)), True),
        (np.random.default_rng(0).laplace(size=(2000, 6)), False),
        (_real(columns=6, rows=2000), False),
        # Two groups far from each other are no tail.
        (_real(columns=6, rows=2000) + 20 * (np.arange(2000) < 800)[:, None], False),
        # A single value that is far away hides everything else, too.
        (_real(columns=6, rows=2000) + 1e5 * (np.arange(12000) == 7).reshape(2000, 6), True),
        # Whole numbers are counts, whose logarithm is taken.
        (np.rint(_log_normal(columns=6)) + 1, False),
    ],
    ids=["student", "laplace", "normal", "two groups", "an outlier", "counts"],
)
def test_what_has_long_tails(dense, scaled):
    found, said = robust_columns(_csr(dense), "auto")
    assert (found is not None and bool(found.long_tails)) == scaled
    assert bool(said) == scaled


def test_only_columns_with_long_tails_take_scores():
    dense = np.column_stack([_real(rows=500), _log_normal(columns=1, rows=500)])
    dense[0, 4] = 1e6
    prepared = prepare_features(_csr(dense), AUTO).toarray()
    np.testing.assert_allclose(prepared[:, :4], _scaled(dense)[:, :4], atol=1e-4)
    assert np.abs(prepared[:, 4]).max() < 4


# Shares of a whole -------------------------------------------------------------------------------


def _shares(rows=300, columns=40):
    return np.random.default_rng(0).dirichlet(np.full(columns, 0.05), rows) + 1e-6


def test_shares_take_square_roots():
    """Their Euclidean distance is that of Hellinger, in which no large share decides all."""
    shares = _shares()
    shares /= shares.sum(1, keepdims=True)
    preparation = FeaturePreparation(FeaturesConfig(weighting="auto", row_norm="none"))
    found = preparation.fit_transform(sp.csr_matrix(shares)).toarray()
    roots = np.sqrt(shares)
    expected = roots - trim_mean(roots, 0.05, axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert preparation.warnings == []
    again = preparation.transform(sp.csr_matrix(shares[:9])).toarray()
    np.testing.assert_allclose(again, found[:9], atol=1e-6)
    # Percent are shares too, and rows of nodes without features stay empty and do not count.
    shares[7] = 0
    with_empty = preparation.fit_transform(sp.csr_matrix(100 * shares)).toarray()
    assert not with_empty[7].any()
    kept = np.arange(300) != 7
    expected = 10 * (roots - trim_mean(roots[kept], 0.05, axis=0))
    np.testing.assert_allclose(with_empty[kept], expected[kept], atol=1e-5)


def test_what_are_no_shares():
    shares = _shares()
    for other in (
        shares * np.linspace(1, 2, 300)[:, None],  # sums differ
        shares - 0.01,  # some are below 0
        np.random.default_rng(0).multinomial(500, np.full(5, 0.2), 300),  # counts
        np.where(shares > 0.02, shares, 0) / np.where(shares > 0.02, shares, 0).sum(1)[:, None],
    ):
        columns, _ = robust_columns(sp.csr_matrix(other), "auto")
        assert columns is None or not columns.takes_roots
    columns, _ = robust_columns(sp.csr_matrix(shares / shares.sum(1)[:, None]), "robust")
    assert not columns.takes_roots


def test_shares_may_be_rounded():
    shares = _shares(columns=30)
    rounded = np.round(shares / shares.sum(1, keepdims=True), 3) + 1e-4
    columns, _ = robust_columns(sp.csr_matrix(rounded), "auto")
    assert columns.takes_roots


@pytest.mark.parametrize("large", ["time", "pressure", "constant", "alone", "same", "one row"])
def test_a_large_column_does_not_make_shares(large):
    """The sums of rows differ little beside their mean, but as much as the large column."""
    rng = np.random.default_rng(0)
    others = rng.normal(5, 1, (300, 5))
    first = {
        "time": 1.7e9 + 8.6e5 * rng.random(300),
        "pressure": 101_325 + 50 * rng.random(300),
        "constant": np.full(300, 1e6),
    }.get(large, 1000 + rng.random(300))
    table = np.column_stack([first, others])
    if large == "alone":
        table = table[:, :1]
    elif large == "same":
        table = np.full((300, 4), 0.25)
    elif large == "one row":
        table = np.array([[0.2, 0.3, 0.5]])
    columns, warnings = robust_columns(sp.csr_matrix(table), "auto")
    assert columns is None or not columns.takes_roots
    if large in ("time", "pressure"):
        assert "very different scale" in warnings[0]


def test_shares_at_the_centre_become_no_direction():
    """Most rows are those of texts without words, which have the same share of every topic."""
    shares = _shares(columns=100)
    shares /= shares.sum(1, keepdims=True)
    shares[:290] = 0.01
    found = prepare_features(sp.csr_matrix(shares), FeaturesConfig(weighting="auto"))
    assert found[:290].nnz == 0
    assert found[290:].nnz
