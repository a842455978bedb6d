"""Files of a run of task link_prediction: the held-out pairs and the learned score."""

import numpy as np
import scipy.sparse as sp

from user_dgl.graph.pairs import LabelledPairs
from user_dgl.links.score import LinkScore
from user_dgl.links.split import LinkSplit
from user_dgl.output.run_directory import RunDirectory
from user_dgl.structure.additive_logit import AdditiveLogit


def write_links(run: RunDirectory, split: LinkSplit) -> None:
    """``links.npz``: the pairs that were held out."""
    arrays = {}
    for name, part in split.held_out.items():
        arrays |= {name: part.pairs, f"{name}_is_edge": part.is_edge}
    run.write_file(run.links_file, lambda file: np.savez_compressed(file, **arrays))


def read_links(run: RunDirectory) -> dict[str, LabelledPairs] | None:
    """The pairs held out for ``validation`` and ``test``; None in a run without."""
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
    """``link_model.npz``: what scores a pair, beside A'.

    Parameters
    ----------
    score : LinkScore
    feat : scipy CSR (N, F) or None
        Prepared features; None: the edges serve.
    probs : float32 (N, K) or None
        Y, if the score reads it.
    """
    arrays = {}
    for name, logit in (("observed", score.observed), ("learned", score.learned)):
        arrays[f"{name}_intercept"] = np.float64(logit.intercept)
        arrays[f"{name}_lengths"] = np.array([len(at) for at in logit.knots])
        arrays[f"{name}_knots"] = np.concatenate(logit.knots)
        arrays[f"{name}_values"] = np.concatenate(logit.values)
    if feat is not None:
        parts = ("data", "indices", "indptr", "shape")
        arrays |= {f"features_{part}": getattr(feat, part) for part in parts}
    if probs is not None:
        arrays["probs"] = probs
    run.write_file(run.link_model_file, lambda file: np.savez_compressed(file, **arrays))


def read_link_arrays(
    run: RunDirectory,
) -> tuple[LinkScore, sp.csr_matrix | None, np.ndarray | None]:
    """What `write_link_model` wrote."""
    with run.read_npz(run.link_model_file) as arrays:
        logits = []
        for name in ("observed", "learned"):
            ends = np.cumsum(arrays[f"{name}_lengths"])[:-1]
            parts = (np.split(arrays[f"{name}_{part}"], ends) for part in ("knots", "values"))
            logits.append(AdditiveLogit(float(arrays[f"{name}_intercept"]), *parts))
        feat = None
        if "features_data" in arrays:
            parts = (arrays[f"features_{part}"] for part in ("data", "indices", "indptr"))
            feat = sp.csr_matrix(tuple(parts), shape=arrays["features_shape"])
        return LinkScore(*logits), feat, arrays.get("probs")
