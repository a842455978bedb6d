"""The most doubtful edges, and what speaks against each of them."""

import numpy as np
import pandas as pd

from user_dgl.cleaning.clean import CleanedGraph
from user_dgl.cleaning.posterior import EdgePosterior

MOST_DOUBTFUL = 20
_MOST_REASONS = 3
# Log-odds by which a term must be below that of a typical edge to be a reason.
_LEAST_DOUBT = 0.1


def doubtful_edges(
    cleaned: CleanedGraph, names: pd.Series, count: int = MOST_DOUBTFUL
) -> pd.DataFrame:
    """List the observed edges that are most likely not real.

    Parameters
    ----------
    cleaned : CleanedGraph
    names : Series of object (N,)
        Ids of the nodes.
    count : int
        Number of edges; all of them if there are fewer.

    Returns
    -------
    DataFrame
        Columns ``source``, ``target``, ``probability`` (not to be random), ``weight`` (in A') and
        ``against``: the terms that lower the log-odds of the edge most, compared with the median of
        all edges, and by how much. The least probable edge first; of equal ones, that of lower
        weight. Empty if nothing could be judged.
    """
    columns = ["source", "target", "probability", "weight", "against"]
    if cleaned.posterior is None:
        return pd.DataFrame(columns=columns)
    observed = np.flatnonzero(cleaned.observed)
    weight, probability = cleaned.weight[observed], cleaned.posterior.probability
    against, median = _against(cleaned.posterior)
    worst = np.lexsort((against, weight, probability))[:count]
    doubts = _doubts(cleaned.posterior, median, worst)
    ids = names.to_numpy()
    return pd.DataFrame(
        {
            "source": ids[cleaned.graph.src.numpy()[observed[worst]]],
            "target": ids[cleaned.graph.dst.numpy()[observed[worst]]],
            "probability": probability[worst],
            "weight": weight[worst],
            "against": [_reasons(row) for _, row in doubts.iterrows()],
        },
        columns=columns,
    )


def _against(posterior: EdgePosterior) -> tuple[np.ndarray, list[np.ndarray]]:
    """Log-odds of each edge (E,), less the medians (J,) of the terms, and these, of each judge.

    One term is computed at a time, because all terms of many edges take much memory.
    """
    total, medians = np.zeros(len(posterior.probability)), []
    for judge in posterior.judges:
        median = np.empty(judge.found.shape[1])
        for j, x in enumerate(judge.found.T):
            part = judge.logit.part(j, x)
            median[j] = np.median(part)
            total += part - median[j]
        medians.append(median)
    return total, medians


def _doubts(posterior: EdgePosterior, medians: list[np.ndarray], edges: np.ndarray) -> pd.DataFrame:
    """Log-odds of some edges by each term (M, J), less the median of all edges."""
    total: dict[str, np.ndarray] = {}
    for judge, median in zip(posterior.judges, medians, strict=True):
        parts = judge.logit.parts(judge.found[edges]) - median
        for name, part in zip(judge.terms.names, parts.T, strict=True):
            total[name] = total.get(name, 0) + part
    return pd.DataFrame(total)


def _reasons(row: pd.Series) -> str:
    """The largest doubts of an edge in words, the largest first."""
    largest = row[row < -_LEAST_DOUBT].nsmallest(_MOST_REASONS)
    return "; ".join(f"{name} {value:.1f}" for name, value in largest.items())
