"""How well link scores rank edges, and how well A' ranks the edges that noise added."""

import numpy as np
import torch
from torchmetrics.functional.classification import binary_auroc, binary_average_precision

from user_dgl.errors import InputError
from user_dgl.evaluation.arrays import as_array, check_equal_length


def link_metrics(scores, is_edge) -> dict[str, float | None]:
    """AUC and average precision of link scores, in percent.

    Parameters
    ----------
    scores : array or tensor (P,)
        One a pair, of any range, higher for a more likely edge. Equal scores count one half in AUC.
    is_edge : bool array or tensor (P,)

    Returns
    -------
    dict of auc, ap
        Both None unless there are edges and non-edges.

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
    # torchmetrics takes scores outside [0, 1] for logits, and its sigmoid makes large ones equal.
    # Both metrics depend on the order only, so ranks, with equal ones for equal scores, replace
    # the scores.
    distinct, rank = np.unique(scores, return_inverse=True)
    ranks, target = torch.from_numpy(rank / len(distinct)), torch.from_numpy(is_edge).long()
    return {
        "auc": 100.0 * float(binary_auroc(ranks, target)),
        "ap": 100.0 * float(binary_average_precision(ranks, target)),
    }


def weight_auc(weight, added) -> float | None:
    """How well ``1/A'`` ranks the added edges among the observed ones: AUC in percent.

    100: every added edge has a lower weight than every original one; 50: no better than chance.
    Equal weights count one half.

    Parameters
    ----------
    weight : array or tensor (E,)
        Weights of the observed pairs in A', 0 or more.
    added : bool array or tensor (E,)
        Whether noise added the pair.

    Returns
    -------
    float, or None
        None if no observed pair was added, or none is original.

    Raises
    ------
    InputError
        Lengths differ, or a weight is NaN.
    """
    return _noise_ranking(weight, added)["auc"]


def weight_ap(weight, added) -> float | None:
    """How well ``1/A'`` finds the added edges among the observed ones: AP in percent.

    AP is the average precision: precision averaged over the added edges, from the lightest on.

    100: every added edge has a lower weight than every original one. Chance is no fixed number
    here but the share of added edges among the observed ones.

    Parameters
    ----------
    weight : array or tensor (E,)
        Weights of the observed pairs in A', 0 or more.
    added : bool array or tensor (E,)
        Whether noise added the pair.

    Returns
    -------
    float, or None
        None if no observed pair was added, or none is original.

    Raises
    ------
    InputError
        Lengths differ, or a weight is NaN.
    """
    return _noise_ranking(weight, added)["ap"]


def _noise_ranking(weight, added) -> dict[str, float | None]:
    """AUC and average precision of ``1/A'`` as a score for added edges."""
    # 1/w and -w rank alike, and -w allows for weight 0 (and, as floats, for unsigned integers).
    return link_metrics(-as_array(weight).astype(np.float64), added)
