"""Tables of few columns: the column that keeps the position of rows of norm 1."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from user_dgl.config import FeaturesConfig
from user_dgl.features.columns import rows_differ
from user_dgl.features.lift import Lift
from user_dgl.features.preparation import FeaturePreparation, prepare_features

AUTO = FeaturesConfig(weighting="auto", row_norm="l2")
ROBUST = FeaturesConfig(weighting="robust", row_norm="l2")


def _csr(dense):
    return sp.csr_matrix(np.asarray(dense, dtype=np.float32))


def _on_a_line(rng, rows=600):
    """Five clusters on a line through the mean, on which there are only two directions."""
    clusters = rng.integers(0, 5, rows)
    return clusters, np.outer(clusters - 2.0, [3, 4]) + rng.normal(scale=0.5, size=(rows, 2))


def test_the_formula():
    dense = np.random.default_rng(0).normal(size=(300, 5)) - 0.3
    empty = np.arange(300) < 9
    lift = Lift.of(_csr(dense), empty)
    centred = dense - dense[9:].mean(axis=0)
    length = np.sqrt(np.square(centred[9:]).sum(axis=1).mean())
    np.testing.assert_allclose(lift.mean, dense[9:].mean(axis=0), rtol=1e-5)
    assert lift.length == pytest.approx(length, rel=1e-5)
    expected = np.column_stack([centred, np.full(300, length)])
    np.testing.assert_allclose(lift(_csr(dense), ~empty)[empty].toarray(), expected[empty], 1e-4)
    assert lift(_csr(dense), ~empty)[~empty].nnz == 0


def test_clusters_on_a_line_are_told_apart_by_directions():
    clusters, dense = _on_a_line(np.random.default_rng(0))
    prepared = prepare_features(_csr(dense), AUTO).toarray()
    np.testing.assert_allclose(np.linalg.norm(prepared, axis=1), 1, rtol=1e-5)
    found = KMeans(5, n_init=10, random_state=0).fit_predict(prepared)
    assert normalized_mutual_info_score(clusters, found) > 0.95
    plain = prepare_features(_csr(dense), FeaturesConfig(row_norm="l2")).toarray()
    found = KMeans(5, n_init=10, random_state=0).fit_predict(plain)
    assert normalized_mutual_info_score(clusters, found) < 0.8


def test_rows_of_other_nodes():
    _, dense = _on_a_line(np.random.default_rng(0))
    preparation = FeaturePreparation(AUTO)
    prepared = preparation.fit_transform(_csr(dense))
    new = preparation.transform(_csr(dense[:7]))
    np.testing.assert_allclose(new.toarray(), prepared.toarray()[:7], atol=1e-6)


@pytest.mark.parametrize("offset", [0, 20], ids=["centred", "logarithms"])
def test_rows_without_features_stay_so(offset):
    _, dense = _on_a_line(np.random.default_rng(0))
    dense += offset
    dense[::3] = 0
    preparation = FeaturePreparation(AUTO)
    prepared = preparation.fit_transform(_csr(dense))
    assert prepared[::3].nnz == 0
    assert prepared[1::3].getnnz(axis=1).min() == prepared[2::3].getnnz(axis=1).min() == 3
    assert preparation.transform(_csr(dense[:3]))[0].nnz == 0


def test_a_cluster_at_the_mean_is_not_without_features():
    column = np.repeat([-3.0, 1.0, 5.0], 100)[:, None]
    prepared = prepare_features(_csr(column), AUTO).toarray()
    np.testing.assert_allclose(prepared[100:200], [[0, 1]] * 100, atol=1e-6)
    assert (prepared[:100] @ prepared[200:].T < 0).all()


def test_rounding_of_constant_columns_is_no_position():
    rng = np.random.default_rng(0)
    dense = 0.7 + 1e-7 * rng.integers(0, 2, (400, 3))
    assert not rows_differ(prepare_features(_csr(dense), AUTO))


def test_very_large_values_keep_their_places():
    rng = np.random.default_rng(0)
    places = np.repeat([1.0, 2.0, 4.0, 8.0], 50)[:, None] * rng.uniform(0.98, 1.02, (200, 2))
    ordinary, large = (prepare_features(_csr(places * by), ROBUST).toarray() for by in (1, 1e15))
    np.testing.assert_allclose(large, ordinary, atol=1e-4)
    logs = prepare_features(_csr(places * 1e15), AUTO).toarray()
    assert len(np.unique(logs.round(1), axis=0)) >= 4


def test_zeros_of_ratings_keep_their_place():
    """Among the others, and not at their mean."""
    column = np.repeat([-2.0, 0.0, 1.0, 5.0], [50, 400, 150, 400])[:, None]
    angles = np.arctan2(*prepare_features(_csr(column), AUTO).toarray().T)
    assert (np.diff(angles[[0, 100, 500, 900]]) > 0.05).all()


def test_counts_keep_their_rows_of_zeros_as_values():
    counts = np.random.default_rng(0).poisson(3, (300, 4))
    counts[0] = 0
    assert prepare_features(_csr(counts), AUTO)[0].nnz == 5


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("dense", "config"),
    [
        (RNG.normal(size=(400, 40)), AUTO),  # many directions
        (np.outer(RNG.normal(size=400), np.ones(65)) + 0.1, AUTO),  # many columns
        (RNG.random((400, 5)) < 0.3, AUTO),  # words
        (np.full((400, 3), 0.7), AUTO),  # nothing differs
        (RNG.normal(size=(400, 5)), FeaturesConfig(row_norm="l2")),
        (RNG.normal(size=(400, 5)), FeaturesConfig(weighting="auto")),
    ],
    ids=["directions", "columns", "words", "constant", "no weighting", "no row norm"],
)
def test_what_is_not_lifted(dense, config):
    assert prepare_features(_csr(dense), config).shape == dense.shape


def test_many_columns_in_few_directions_are_lifted():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 64))
    assert prepare_features(_csr(dense), AUTO).shape == (400, 65)
