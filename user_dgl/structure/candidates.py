"""Candidate pairs that A' may use in addition to the observed edges.

Each source of `SOURCES` returns arrays (u, v) of drawn pairs, which may contain a pair in both
directions. `merge_candidates` joins them with the observed graph, so that each pair occurs once.
All draws use the given random generator, so that a run can be repeated.
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
    """Input of a source.

    Attributes
    ----------
    count : int
        Number of pairs to draw for each node.
    config : CandidatesConfig
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F) or None
        Prepared features. May be None for sources that do not use them.
    rng : Generator
    clusters : int64 (N,) or None
        Current clusters; None before training.
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
        Function of a `Draw` that returns the arrays (u, v).
    stays : bool
        Whether its pairs are found once, before training, and not drawn again in a refresh.
    needs_clusters : bool
        Whether it needs clusters. Without clusters the source is not used.
    """

    draw: Callable[[Draw], Pairs]
    stays: bool = False
    needs_clusters: bool = False

    def __post_init__(self) -> None:
        if self.stays and self.needs_clusters:
            raise ValueError("a source that stays is drawn before there are clusters")


def feature_knn(feat: sp.csr_matrix | np.ndarray, num_neighbors: int) -> Pairs:
    """Pair each node with its nearest nodes by the cosine of the features, see `nearest`.

    Nodes without features get no pairs.

    Parameters
    ----------
    feat : scipy CSR or ndarray (N, F)
        Dense features as an ndarray: products of full sparse matrices take many times longer.
    num_neighbors : int

    Raises
    ------
    InputError
        The number of nodes is so large that faiss is needed, and faiss is not installed.
    """
    filled = feat.any(axis=1) if isinstance(feat, np.ndarray) else np.diff(feat.indptr)
    nodes = np.flatnonzero(filled)
    num_neighbors = min(num_neighbors, len(nodes) - 1)
    if num_neighbors < 1:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    found = nearest(feat[nodes], num_neighbors)
    known = found >= 0
    return np.repeat(nodes, known.sum(axis=1)), nodes[found[known]]


def k_hop(graph: Graph, num_walks: int, hops: int, rng: np.random.Generator) -> Pairs:
    """Pair each node with the ends of ``num_walks`` random walks.

    The length of each walk is drawn uniformly from 2 to ``hops``. Weights of edges do not count.
    Nodes without edges get no pairs.
    """
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
    """Pair each node with ``num_draws`` nodes drawn uniformly from all nodes."""
    return (
        np.repeat(np.arange(num_nodes), num_draws),
        rng.integers(0, num_nodes, num_nodes * num_draws),
    )


def same_cluster(clusters: np.ndarray, num_draws: int, rng: np.random.Generator) -> Pairs:
    """Pair each node with ``num_draws`` nodes drawn uniformly from its own cluster (N,)."""
    order = np.argsort(clusters, kind="stable")
    sizes = np.bincount(clusters)
    first = np.cumsum(sizes) - sizes
    nodes = np.repeat(np.arange(len(clusters)), num_draws)
    own = clusters[nodes]
    return nodes, order[first[own] + (rng.random(len(nodes)) * sizes[own]).astype(np.int64)]


# Maps names to sources. A name is a key of `CandidatesConfig` or of its dict ``sources``.
SOURCES: dict[str, Source] = {
    "feature_knn": Source(lambda draw: feature_knn(_features(draw), draw.count), stays=True),
    "k_hop": Source(lambda draw: k_hop(draw.graph, draw.count, draw.config.hops, draw.rng)),
    "uniform": Source(lambda draw: uniform(draw.graph.num_nodes, draw.count, draw.rng)),
    "same_cluster": Source(
        lambda draw: same_cluster(_clusters(draw), draw.count, draw.rng), needs_clusters=True
    ),
}


def _features(draw: Draw) -> sp.csr_matrix:
    """Features of a draw that must have them."""
    assert draw.feat is not None
    return draw.feat


def _clusters(draw: Draw) -> np.ndarray:
    """Clusters of a draw that must have them."""
    assert draw.clusters is not None
    return draw.clusters


def draw_candidates(
    config: CandidatesConfig,
    graph: Graph,
    rng: np.random.Generator,
    clusters: np.ndarray | None = None,
    feat: sp.csr_matrix | None = None,
) -> list[Pairs]:
    """Draw the pairs of all configured sources that are drawn again in each refresh.

    Parameters
    ----------
    config : CandidatesConfig
    graph : Graph
        Observed graph.
    rng : Generator
    clusters : int64 (N,), optional
        Current clusters. Without them, sources that need clusters are skipped.
    feat : scipy CSR (N, F), optional
    """
    return _drawn(config, graph, rng, clusters, feat, stays=False)


def static_candidates(
    config: CandidatesConfig, graph: Graph, feat: sp.csr_matrix, rng: np.random.Generator
) -> list[Pairs]:
    """Find the pairs of all configured sources that are used once, before training."""
    return _drawn(config, graph, rng, None, feat, stays=True)


def _drawn(
    config: CandidatesConfig,
    graph: Graph,
    rng: np.random.Generator,
    clusters: np.ndarray | None,
    feat: sp.csr_matrix | None,
    stays: bool,
) -> list[Pairs]:
    """Pairs of all configured sources whose `Source.stays` is ``stays``."""
    unknown = [name for name in config.sources if name not in SOURCES]
    if unknown:
        others = [name for name in SOURCES if not hasattr(config, name)]
        raise InputError(
            f"structure.candidates.sources.{unknown[0]}: there is no such source without a key of "
            f"its own in structure.candidates; there are: {', '.join(others) or 'none'}"
        )
    waiting = [
        name
        for name, source in SOURCES.items()
        if config.count(name) and source.needs_clusters and not config.refresh_every
    ]
    if waiting:
        raise InputError(
            f"structure.candidates: the source {waiting[0]} needs clusters, which exist only after "
            "some epochs: set structure.candidates.refresh_every above 0"
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
    """Join the observed graph and candidate pairs, so that each pair occurs once.

    Parameters
    ----------
    graph : Graph
        Observed edges. All of them are kept.
    candidates : list of (u, v)
        Self-loops, repeated pairs and observed pairs are dropped.
    held_out : int64 (H,), optional
        Keys of further pairs to drop.

    Returns
    -------
    Graph with P pairs, bool Tensor (P,)
        The joined graph, and whether each of its pairs is observed. Without candidates, the first
        is ``graph`` itself.
    """
    if not candidates:
        return graph, torch.ones(graph.num_edges, dtype=torch.bool)
    num_nodes = graph.num_nodes
    keys = [graph.keys]
    for u, v in candidates:
        proper = u != v
        drawn = pair_keys(num_nodes, u[proper], v[proper])
        keys.append(drawn if held_out is None else drawn[~np.isin(drawn, held_out)])
    merged = Graph.from_keys(num_nodes, np.concatenate(keys)).weighted_like(graph)
    return merged, torch.from_numpy(graph.positions(merged.keys) >= 0)
