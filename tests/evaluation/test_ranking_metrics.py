"""Scores of links and of weights."""

import numpy as np
import pytest
import sklearn.metrics as oracle
import torch

from user_dgl.errors import InputError
from user_dgl.evaluation.ranking_metrics import link_metrics, weight_ap, weight_auc

pytestmark = pytest.mark.usefixtures("quiet")


def pairwise_auc(scores, is_edge):
    positive, negative = scores[is_edge], scores[~is_edge]
    above = (positive[:, None] > negative).mean()
    return 100 * (above + (positive[:, None] == negative).mean() / 2)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1000.0])
def test_link_metrics_equal_pair_counts(scale):
    """Whatever the range: scores beyond [0, 1] are no logits."""
    rng = np.random.default_rng(0)
    is_edge = rng.random(300) < 0.4
    scores = scale * np.round(rng.normal(size=300) + is_edge, 1)
    found = link_metrics(torch.tensor(scores), torch.tensor(is_edge))
    assert found["auc"] == pytest.approx(pairwise_auc(scores, is_edge), abs=1e-3)
    expected = 100 * oracle.average_precision_score(is_edge, scores)
    assert found["ap"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("scores", "auc", "ap"),
    [
        ([4, 3, 2, 1], 100, 100),
        ([1, 2, 3, 4], 0, 100 * (1 / 3 + 2 / 4) / 2),
        ([7, 7, 7, 7], 50, 50),
        ([np.inf, 2, 2, -np.inf], 87.5, 100 * (1 + 2 / 3) / 2),
    ],
)
def test_link_metrics_by_hand(scores, auc, ap):
    found = link_metrics(scores, [True, True, False, False])
    assert found == pytest.approx({"auc": auc, "ap": ap}, abs=1e-4)


@pytest.mark.parametrize("is_edge", [[True, True], [False, False]])
def test_link_metrics_need_both_kinds(is_edge):
    assert link_metrics([0.1, 0.2], is_edge) == {"auc": None, "ap": None}


def test_no_links():
    assert link_metrics([], []) == {"auc": None, "ap": None}


def test_nan_scores_are_refused():
    with pytest.raises(InputError, match="1 of 3 are NaN"):
        link_metrics([0.1, np.nan, 0.3], [True, False, True])


def test_weight_auc_ranks_low_weights_first():
    added = np.array([True, True, False, False])
    assert weight_auc(np.array([0.0, 0.1, 0.5, 2.0]), added) == 100
    assert weight_auc(np.array([0.5, 2.0, 0.0, 0.1]), added) == 0
    assert weight_auc(torch.ones(4, requires_grad=True), torch.tensor(added)) == 50
    # Of four comparisons two are won and one is tied.
    assert weight_auc(np.array([1.0, 3.0, 3.0, 2.0], dtype=np.float32), added) == 62.5


def test_weight_ap_by_hand():
    added = [True, False, True, False]
    assert weight_ap([0.0, 2.0, 0.1, 0.5], added) == 100
    # From the lightest edge on: added, original, added, original; precision 1 and 2/3 at the added.
    assert weight_ap([0.0, 0.1, 0.5, 2.0], added) == pytest.approx(100 * (1 + 2 / 3) / 2, abs=1e-4)
    # Equal weights tell nothing: the share of added edges.
    assert weight_ap(torch.ones(4, requires_grad=True), torch.tensor(added)) == 50


@pytest.mark.parametrize("added", [[False, False], [True, True]])
@pytest.mark.parametrize("score", [weight_auc, weight_ap])
def test_weight_scores_undefined(score, added):
    assert score(np.array([1.0, 2.0]), added) is None


def test_unsigned_weights():
    assert weight_auc(np.array([0, 3], dtype=np.uint8), [True, False]) == 100


def test_scores_of_many_pairs_are_in_double_precision():
    rng = np.random.default_rng(0)
    is_edge = rng.random(200_000) < 0.5
    scores = rng.normal(size=len(is_edge))
    found = link_metrics(scores, is_edge)
    order = np.argsort(np.argsort(scores)) + 1
    edges, others = int(is_edge.sum()), int((~is_edge).sum())
    by_ranks = (int(order[is_edge].sum()) - edges * (edges + 1) // 2) / (edges * others)
    assert found["auc"] == pytest.approx(100 * by_ranks, abs=1e-10)
