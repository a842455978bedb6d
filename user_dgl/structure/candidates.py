"""Candidate pairs that A' may use beside the observed edges.

Each source of `SOURCES` returns arrays (u, v) of directed draws; `merge_candidates` puts them
together with the observed graph, each pair once. All draws come from the generator given, so that a
run can be repeated.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.config import CandidatesConfig
from user_dgl.errors import InputError
from user_dgl.features.nearest import nearest
from user_dgl.graph import Graph, pair_keys

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Draw:
    """What a source draws from.

    Attributes
    ----------
    count : int
        Pairs to draw for each node.
    config : CandidatesConfig
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F) or None
        Prepared features; None for a source that is drawn anew and asks for none.
    rng : Generator
    clusters : int64 (N,) or None
        Present clusters; None before training.
    """

    count: int
    config: CandidatesConfig
    graph: Graph
    feat: sp.csr_matrix | None
    rng: np.random.Generator
    clusters: np.ndarray | None


@dataclass(frozen=True)
class Source:
    """One source of candidates.

    Attributes
    ----------
    draw : callable
        Draw -> (u, v).
    stays : bool
        Its pairs are found once, before training, and are never drawn anew.
    needs_clusters : bool
        It draws nothing before there are clusters.
    """

    draw: Callable[[Draw], Pairs]
    stays: bool = False
    needs_clusters: bool = False


def feature_knn(feat: sp.csr_matrix, num_neighbors: int) -> Pairs:
    """Nearest nodes by cosine of the features, see `nearest`; nodes without features get none.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    num_neighbors : int

    Raises
    ------
    InputError
        So many nodes that faiss is needed, and it is not installed.
    """
    nodes = np.flatnonzero(np.diff(feat.indptr))
    num_neighbors = min(num_neighbors, len(nodes) - 1)
    if num_neighbors < 1:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    found = nearest(feat[nodes], num_neighbors)
    known = found >= 0
    return np.repeat(nodes, known.sum(axis=1)), nodes[found[known]]


def k_hop(graph: Graph, num_walks: int, hops: int, rng: np.random.Generator) -> Pairs:
    """Ends of ``num_walks`` random walks from each node, of lengths 2..``hops`` drawn uniformly."""
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    start = np.repeat(np.flatnonzero(np.diff(indptr)), num_walks)
    if not len(start):
        return start, start
    length = rng.integers(2, hops + 1, len(start))
    at = start.copy()
    for step in range(hops):
        degree = indptr[at + 1] - indptr[at]
        chosen = indices[indptr[at] + (rng.random(len(at)) * degree).astype(np.int64)]
        at = np.where(step < length, chosen, at)
    return start, at


def uniform(num_nodes: int, num_draws: int, rng: np.random.Generator) -> Pairs:
    """``num_draws`` uniformly drawn nodes for each node."""
    return (
        np.repeat(np.arange(num_nodes), num_draws),
        rng.integers(0, num_nodes, num_nodes * num_draws),
    )


def same_cluster(clusters: np.ndarray, num_draws: int, rng: np.random.Generator) -> Pairs:
    """``num_draws`` nodes drawn uniformly from each node's own cluster."""
    order = np.argsort(clusters, kind="stable")
    sizes = np.bincount(clusters)
    first = np.cumsum(sizes) - sizes
    nodes = np.repeat(np.arange(len(clusters)), num_draws)
    own = clusters[nodes]
    return nodes, order[first[own] + (rng.random(len(nodes)) * sizes[own]).astype(np.int64)]


# Every source by its name: that of its key in `CandidatesConfig`, or in ``sources`` there.
SOURCES: dict[str, Source] = {
    "feature_knn": Source(lambda draw: feature_knn(_features(draw), draw.count), stays=True),
    "k_hop": Source(lambda draw: k_hop(draw.graph, draw.count, draw.config.hops, draw.rng)),
    "uniform": Source(lambda draw: uniform(draw.graph.num_nodes, draw.count, draw.rng)),
    "same_cluster": Source(
        lambda draw: same_cluster(_clusters(draw), draw.count, draw.rng), needs_clusters=True
    ),
}


def _features(draw: Draw) -> sp.csr_matrix:
    assert draw.feat is not None
    return draw.feat


def _clusters(draw: Draw) -> np.ndarray:
    assert draw.clusters is not None
    return draw.clusters


def draw_candidates(
    config: CandidatesConfig,
    graph: Graph,
    rng: np.random.Generator,
    clusters: np.ndarray | None = None,
    feat: sp.csr_matrix | None = None,
) -> list[Pairs]:
    """Pairs of all sources that are drawn anew and that the config asks for.

    Parameters
    ----------
    config : CandidatesConfig
    graph : Graph
        Observed graph.
    rng : Generator
    clusters : int64 (N,), optional
        Present clusters; sources that need them draw nothing without.
    feat : scipy CSR (N, F), optional
    """
    return _drawn(config, graph, rng, clusters, feat, stays=False)


def static_candidates(
    config: CandidatesConfig, graph: Graph, feat: sp.csr_matrix, rng: np.random.Generator
) -> list[Pairs]:
    """Pairs of all sources that are found once, before training."""
    return _drawn(config, graph, rng, None, feat, stays=True)


def _drawn(
    config: CandidatesConfig,
    graph: Graph,
    rng: np.random.Generator,
    clusters: np.ndarray | None,
    feat: sp.csr_matrix | None,
    stays: bool,
) -> list[Pairs]:
    unknown = [name for name in config.sources if name not in SOURCES]
    if unknown:
        raise InputError(
            f"structure.candidates.sources.{unknown[0]}: no such source; known are "
            f"{', '.join(SOURCES)}"
        )
    return [
        source.draw(Draw(config.count(name), config, graph, feat, rng, clusters))
        for name, source in SOURCES.items()
        if config.count(name)
        and source.stays == stays
        and (clusters is not None or not source.needs_clusters)
    ]


def merge_candidates(
    graph: Graph, candidates: list[Pairs], held_out: np.ndarray | None = None
) -> tuple[Graph, torch.Tensor]:
    """Observed graph with candidate pairs, each pair once.

    Parameters
    ----------
    graph : Graph
        Observed edges; all are kept.
    candidates : list of (u, v)
        Loops, repeats and observed pairs among them are dropped.
    held_out : int64 (H,), optional
        Keys of pairs that are dropped too.

    Returns
    -------
    Graph with P pairs, bool Tensor (P,)
        The second says which pairs are observed. Without candidates the graph is the one given.
    """
    if not candidates:
        return graph, torch.ones(graph.num_edges, dtype=torch.bool)
    num_nodes = graph.num_nodes
    keys = [graph.keys]
    for u, v in candidates:
        proper = u != v
        drawn = pair_keys(num_nodes, u[proper], v[proper])
        keys.append(drawn if held_out is None else drawn[~np.isin(drawn, held_out)])
    merged = Graph.from_keys(num_nodes, np.concatenate(keys))
    return merged, torch.from_numpy(graph.positions(merged.keys) >= 0)
