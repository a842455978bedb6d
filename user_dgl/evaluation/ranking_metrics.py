"""Ranking metrics: AUC and average precision of link scores and of the learned weights A'."""

import numpy as np

from user_dgl.errors import InputError
from user_dgl.evaluation.arrays import Values, as_array, check_equal_length


def link_metrics(scores: Values, is_edge: Values) -> dict[str, float | None]:
    """AUC and average precision of link scores, in percent.

    Parameters
    ----------
    scores : array or tensor (P,)
        Score of each pair, of any range. A higher score means a more likely edge. An edge and a
        non-edge with equal scores count one half in AUC.
    is_edge : bool array or tensor (P,)

    Returns
    -------
    dict of auc, ap
        Both are None if there are no edges or no non-edges.

    Raises
    ------
    InputError
        Lengths differ, or a score is NaN.

    >>> link_metrics([30.0, 20.0, 20.0, 10.0], [True, True, False, False])["auc"]
    87.5
    """
    scores, is_edge = as_array(scores), as_array(is_edge).astype(bool)
    check_equal_length(scores=scores, is_edge=is_edge)
    if np.isnan(scores).any():
        raise InputError(f"link scores: {int(np.isnan(scores).sum())} of {len(scores)} are NaN")
    if is_edge.all() or not is_edge.any():
        return {"auc": None, "ap": None}
    # Imported here, because it takes a second and most runs have no noise and no links to rank.
    from sklearn.metrics import average_precision_score, roc_auc_score

    # Both metrics depend only on the order of the scores, so ranks replace the scores, which may be
    # infinite. Equal scores have equal ranks.
    ranks = np.unique(scores, return_inverse=True)[1]
    return {
        "auc": 100.0 * float(roc_auc_score(is_edge, ranks)),
        "ap": 100.0 * float(average_precision_score(is_edge, ranks)),
    }


def weight_auc(weight: Values, added: Values) -> float | None:
    """AUC, in percent, of ``1/A'`` as a score for the edges that noise added.

    100: every added edge has a lower weight than every original edge. 50: no better than chance. An
    added and an original edge with equal weights count one half.

    Parameters
    ----------
    weight : array or tensor (E,)
        Weights of the observed pairs in A', 0 or more.
    added : bool array or tensor (E,)
        Whether noise added the pair.

    Returns
    -------
    float, or None
        None if no observed pair was added, or if all of them were.

    Raises
    ------
    InputError
        Lengths differ, or a weight is NaN.
    """
    return _noise_ranking(weight, added)["auc"]


def weight_ap(weight: Values, added: Values) -> float | None:
    """Average precision, in percent, of ``1/A'`` as a score for the edges that noise added.

    The observed edges are sorted from the lowest weight. The average precision is the mean, over
    the added edges, of the share of added edges among all edges up to this one.

    100: every added edge has a lower weight than every original edge. The value for random weights
    is the share of added edges among the observed edges.

    Parameters
    ----------
    weight : array or tensor (E,)
        Weights of the observed pairs in A', 0 or more.
    added : bool array or tensor (E,)
        Whether noise added the pair.

    Returns
    -------
    float, or None
        None if no observed pair was added, or if all of them were.

    Raises
    ------
    InputError
        Lengths differ, or a weight is NaN.
    """
    return _noise_ranking(weight, added)["ap"]


def _noise_ranking(weight: Values, added: Values) -> dict[str, float | None]:
    """AUC and average precision of ``1/A'`` as a score for added edges."""
    # 1/w and -w give the same order, and -w is defined for weight 0. The conversion to float makes
    # it correct for unsigned integers too.
    return link_metrics(-as_array(weight).astype(np.float64), added)
