"""Files of a run of the task link_prediction: the held-out pairs and the learned score."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from user_dgl.graph.pairs import LabelledPairs
from user_dgl.links.score import LinkScore
from user_dgl.links.split import LinkSplit
from user_dgl.output.run_directory import RunDirectory
from user_dgl.structure.additive_logit import AdditiveLogit


def write_links(run: RunDirectory, split: LinkSplit) -> None:
    """Write the held-out pairs to ``links.npz``."""
    arrays: dict[str, Any] = {}
    for name, part in split.held_out.items():
        arrays |= {name: part.pairs, f"{name}_is_edge": part.is_edge}
    run.write_file(run.links_file, lambda file: np.savez_compressed(file, **arrays))


def read_links(run: RunDirectory) -> dict[str, LabelledPairs] | None:
    """Read the pairs held out for ``validation`` and ``test``; None if the run held out none."""
    if not (run.path / run.links_file).exists():
        return None
    with run.read_npz(run.links_file) as arrays:
        return {
            name: LabelledPairs(arrays[name], arrays[f"{name}_is_edge"])
            for name in ("validation", "test")
        }


def write_link_model(
    run: RunDirectory, score: LinkScore, feat: sp.csr_matrix | None, probs: np.ndarray | None
) -> None:
    """Write what scores a pair in addition to A' to ``link_model.npz``.

    Parameters
    ----------
    score : LinkScore
    feat : scipy CSR (N, F) or None
        The prepared features. None: the edges served as features.
    probs : float32 (N, K) or None
        Y, if the score reads it.
    """
    arrays: dict[str, Any] = {}
    for name, logit in (("observed", score.observed), ("learned", score.learned)):
        arrays[f"{name}_intercept"] = np.float64(logit.intercept)
        arrays[f"{name}_lengths"] = np.array([len(at) for at in logit.knots])
        arrays[f"{name}_knots"] = np.concatenate(logit.knots)
        arrays[f"{name}_values"] = np.concatenate(logit.values)
    if feat is not None:
        arrays["features_data"], arrays["features_indices"] = feat.data, feat.indices
        arrays["features_indptr"], arrays["features_shape"] = feat.indptr, feat.shape
    if probs is not None:
        arrays["probs"] = probs
    run.write_file(run.link_model_file, lambda file: np.savez_compressed(file, **arrays))


def read_link_arrays(
    run: RunDirectory,
) -> tuple[LinkScore, sp.csr_matrix | None, np.ndarray | None]:
    """Read what `write_link_model` wrote."""
    with run.read_npz(run.link_model_file) as arrays:
        observed, learned = (_read_logit(arrays, name) for name in ("observed", "learned"))
        feat = None
        if "features_data" in arrays:
            data, indices = arrays["features_data"], arrays["features_indices"]
            parts = (data, indices, arrays["features_indptr"])
            feat = sp.csr_matrix(parts, shape=arrays["features_shape"])
        return LinkScore(observed, learned), feat, arrays.get("probs")


def _read_logit(arrays: Any, name: str) -> AdditiveLogit:
    """Read one of the two functions of a `LinkScore` from an open npz file."""
    ends = np.cumsum(arrays[f"{name}_lengths"])[:-1]
    knots = tuple(np.split(arrays[f"{name}_knots"], ends))
    values = tuple(np.split(arrays[f"{name}_values"], ends))
    return AdditiveLogit(float(arrays[f"{name}_intercept"]), knots, values)
