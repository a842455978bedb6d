"""Weighting and scaling of features, against dense formulas."""

import numpy as np
import pytest
import scipy.sparse as sp

from user_dgl.config import FeaturesConfig
from user_dgl.errors import InputError
from user_dgl.features.preparation import FeaturePreparation, prepare_features


@pytest.fixture
def feat():
    """Random counts with an empty column (3), a full one (0) and a zero row (4)."""
    rng = np.random.default_rng(0)
    dense = rng.integers(1, 6, (9, 7)) * (rng.random((9, 7)) < 0.5)
    dense[:, 0] = 2
    dense[:, 3] = 0
    dense[4] = 0
    return sp.csr_matrix(dense.astype(np.float32))


def dense_tf_idf(dense):
    result = np.zeros_like(dense)
    for column in range(dense.shape[1]):
        count = (dense[:, column] != 0).sum()
        if count:
            result[:, column] = dense[:, column] * np.log(len(dense) / count)
    return result


def dense_max_abs(dense):
    largest = np.abs(dense).max(axis=0)
    return dense / np.where(largest > 0, largest, 1)


def dense_row_norm(dense, order):
    norm = np.linalg.norm(dense, ord=order, axis=1, keepdims=True)
    return dense / np.where(norm > 0, norm, 1)


def test_nothing_is_the_default(feat):
    prepared = prepare_features(feat, FeaturesConfig())
    np.testing.assert_array_equal(prepared.toarray(), feat.toarray())
    assert prepared is not feat


@pytest.mark.parametrize(
    ("settings", "oracle"),
    [
        ({"weighting": "tf_idf"}, dense_tf_idf),
        ({"max_abs_scale": True}, dense_max_abs),
        ({"row_norm": "l1"}, lambda dense: dense_row_norm(dense, 1)),
        ({"row_norm": "l2"}, lambda dense: dense_row_norm(dense, 2)),
        (
            {"weighting": "tf_idf", "max_abs_scale": True, "row_norm": "l2"},
            lambda dense: dense_row_norm(dense_max_abs(dense_tf_idf(dense)), 2),
        ),
    ],
    ids=["tf_idf", "max_abs", "l1", "l2", "all, in order"],
)
def test_equals_dense_formula(feat, settings, oracle):
    signed = feat.copy()
    signed.data[::3] *= -1
    before = signed.toarray().astype(np.float64)
    prepared = prepare_features(signed, FeaturesConfig(**settings))
    np.testing.assert_allclose(prepared.toarray(), oracle(before), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(signed.toarray(), before, err_msg="the input was changed")
    assert sp.issparse(prepared)
    assert prepared.format == "csr"
    assert prepared.dtype == np.float32
    assert prepared.has_sorted_indices


def test_stored_zeros_and_repeats_do_not_count_as_documents():
    # Column 0: rows 0 (given as 1 + 1) and 1 (a stored zero), so one document of three.
    entries = ([1.0, 1.0, 0.0], ([0, 0, 1], [0, 0, 0]))
    config = FeaturesConfig(weighting="tf_idf")
    prepared = prepare_features(sp.coo_matrix(entries, shape=(3, 2)), config)
    assert prepared[0, 0] == pytest.approx(2 * np.log(3))
    assert prepared.nnz == 1


def test_column_in_every_row_vanishes_and_is_not_stored(feat):
    full = sp.csr_matrix(np.ones((4, 1)))
    assert prepare_features(full, FeaturesConfig(weighting="tf_idf")).nnz == 0


@pytest.mark.parametrize("shape", [(3, 4), (3, 0), (0, 3)])
def test_all_zero_features(shape):
    config = FeaturesConfig(weighting="tf_idf", max_abs_scale=True, row_norm="l2")
    prepared = prepare_features(sp.csr_matrix(shape), config)
    assert prepared.shape == shape
    assert prepared.nnz == 0


def test_never_dense():
    """A dense copy would take 400 GB."""
    num_rows, num_columns = 200_000, 500_000
    rows = np.arange(num_rows)
    columns = rows * 7919 % num_columns
    feat = sp.csr_matrix((np.ones(num_rows), (rows, columns)), shape=(num_rows, num_columns))
    config = FeaturesConfig(weighting="tf_idf", max_abs_scale=True, row_norm="l1")
    prepared = prepare_features(feat, config)
    assert prepared.nnz == num_rows


@pytest.mark.parametrize(
    ("values", "takes_log", "takes_idf"),
    [
        ([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]], True, True),
        ([[3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 7.0, 0.0], [1.0, 0.0, 0.0, 0.0]], True, True),
        ([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.7, 0.0, 0.0, 0.0]], True, True),
        ([[0.3, 0.5, 0.0, 0.0], [0.0, 0.0, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0]], True, False),
        ([[-0.3, 0.5, 0.0, 0.0], [0.0, 0.0, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0]], False, False),
        ([[3.0, 1.0, 2.0, 4.0], [2.0, 5.0, 7.0, 1.0], [1.0, 6.0, 2.0, 3.0]], True, False),
    ],
    ids=["binary", "counts", "scaled binary", "weights", "signed", "dense counts"],
)
def test_auto_weighting_looks_at_the_values(values, takes_log, takes_idf):
    expected = np.array(values)
    if takes_log:
        expected = np.log1p(expected)
    if takes_idf:
        expected = dense_tf_idf(expected)
    prepared = prepare_features(sp.csr_matrix(values), FeaturesConfig(weighting="auto"))
    np.testing.assert_allclose(prepared.toarray(), expected, rtol=1e-5)


def test_log_weighting_refuses_negative_values():
    with pytest.raises(InputError, match="negative"):
        prepare_features(sp.csr_matrix([[-1.0, 2.0]]), FeaturesConfig(weighting="log"))


@pytest.mark.parametrize("weighting", ["none", "tf_idf", "log", "auto"])
def test_other_rows_are_prepared_as_those_of_the_fit(feat, weighting):
    config = FeaturesConfig(weighting=weighting, max_abs_scale=True, row_norm="l2")
    preparation = FeaturePreparation(config)
    fitted = preparation.fit_transform(feat)
    np.testing.assert_array_equal(fitted.toarray(), prepare_features(feat, config).toarray())
    # Alone: neither the number of rows nor their columns' sums count.
    for row in range(feat.shape[0]):
        one = preparation.transform(feat[row]).toarray()
        np.testing.assert_array_equal(one, fitted[row].toarray())
    # A word that no row of the fit has says nothing with tf-idf.
    unknown = np.zeros((1, 7))
    unknown[0, 3] = 5
    assert preparation.transform(sp.csr_matrix(unknown)).nnz == (weighting in ("none", "log"))


def test_logarithms_need_other_rows_without_negative_values(feat):
    preparation = FeaturePreparation(FeaturesConfig(weighting="auto"))
    preparation.fit_transform(feat)
    with pytest.raises(InputError, match="negative features: the features of the fit had none"):
        preparation.transform(-feat)
    preparation.fit_transform(-feat)  # takes none
    np.testing.assert_array_equal(preparation.transform(-feat).toarray(), -feat.toarray())
