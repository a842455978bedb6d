r"""Clusters of a graph that has no node features.

Not in the paper. No single method is best on all graphs. Modularity at the right resolution wins
where clusters are dense, the spectrum wins where there is much noise, and the block model's EM
improves some of these results and overfits others. So a tenth of the edges is hidden, and what the
methods find in the other edges is judged by the hidden ones. Labels are never read.

The score of a clustering is the share of its entropy that edges pay for,

.. math::
    U = \frac{f \log_2 \frac fe + (1 - f) \log_2 \frac{1 - f}{1 - e}}{H(v)},
    \qquad e = \sum_k v_k^2, \quad H(v) = -\sum_k v_k \log_2 v_k,

where f is the share of edges inside clusters, v are the shares of the clusters in the volume, and e
is the value of f that is expected by chance. The numerator is the bits of each edge that a planted
partition saves. It is at most H(v), with equality for equal clusters that no edge joins. Bits that
are not divided by H(v) prefer clusters of equal size, whatever the edges say. U is 0 if f is less
than e: clusters that avoid edges within are not looked for here.

If the edges have weights, they are tried in several forms (`user_dgl.clustering.weight_forms`), and
each edge counts in f, v and e by its weight relative to all edges of its ends. By the weights
themselves, the heaviest edges, which may join a few nodes only, would decide alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.stats import binom, norm

from user_dgl.clustering.block_model import block_bits, block_sums, entropy_bits, refine
from user_dgl.clustering.communities import communities, fill_clusters
from user_dgl.clustering.spectral import spectral_clusters, spectral_embedding
from user_dgl.clustering.weight_forms import AS_THEY_ARE, forms, in_form, relative_weights
from user_dgl.graph import Graph
from user_dgl.runtime.progress import steps
from user_dgl.runtime.streams import Stream, stream_rng

# Share of the edges that is hidden, and the number of edges below which none is.
_HIDDEN = 0.1
_LEAST_EDGES = 10
# Below this z, hidden edges lie within clusters no more often than by chance.
_LEAST_Z = 3.0
_EM_STEPS = 20
# Starts of Louvain for the final clusters, of which the best is kept.
_STARTS, _STARTS_LARGE, _LARGE = 5, 2, 20_000
# The entropy of clusters is taken as at least this, in bits: else U of one cluster that has all but
# a few nodes is the ratio of two numbers near 0.
_LEAST_ENTROPY = 0.05


@dataclass(frozen=True)
class GraphCandidate:
    """A way to cluster the graph, judged by hidden edges.

    Attributes
    ----------
    name : str
        ``louvain``, ``louvain+em``, ``spectral`` or ``spectral+em``; in a weighted graph also the
        form of the weights, if they are not taken as they are.
    score : float
        U of the hidden edges, 0 to 1.
    standard_error : float
        Of the score, from the number of hidden edges.
    z : float
        How far the share of hidden edges within clusters is above chance, in standard deviations.
        For few edges it is smaller: that of the exact binomial probability. Chance is e
        or, if it is larger, that of a pair that has no edge among the others.
    bits : float
        Bits B_E of the clusters in the edges that are not hidden; of their relative weights, if
        they have weights.
    chosen : bool
    """

    name: str
    score: float
    standard_error: float
    z: float
    bits: float
    chosen: bool


@dataclass(frozen=True, eq=False)
class GraphClustering:
    """Clusters of a graph.

    Attributes
    ----------
    clusters : int64 (N,)
        0 to K - 1.
    embedding : float32 (N, d)
        Spectral embedding with d = min(K, 256) columns, fewer for few nodes, of the graph with
        the chosen form of weights. The rows have norm 1,
        those of nodes without edges are 0.
    candidates : list of GraphCandidate
        In a fixed order. Empty where no edges could be hidden.
    structure_found : bool
        Whether z of any candidate is 3 or more. False without candidates, because nothing shows it.
    """

    clusters: np.ndarray
    embedding: np.ndarray
    candidates: list[GraphCandidate]
    structure_found: bool


def graph_clustering(graph: Graph, num_clusters: int, seed: int) -> GraphClustering:
    """Cluster a graph into K clusters by its edges alone.

    1. A tenth of the edges is hidden. ``louvain`` (`communities`) and ``spectral``
       (`spectral_clusters`) cluster the graph of the other edges; ``louvain+em`` and
       ``spectral+em`` are these clusters after `refine`. A weighted graph is clustered so in each
       form of its weights.
    2. Each is scored by U of the hidden edges. EM is considered only if it gains more than one
       standard error of the difference. The highest score is chosen. If no candidate is above
       chance (z < 3), ``spectral`` is chosen, because it follows chance less far than the others,
       in the form of the weights with the highest z.
    3. The chosen one clusters the whole graph. Louvain has several starts; the one with the highest
       U of all edges is kept.

    A weighted graph takes three times as long as one without weights.

    A graph of less than 10 edges, or with no hidden edge between nodes that have other edges, is
    clustered by ``louvain`` without a choice. If there are not more nodes with edges than K, each
    of them is a cluster. Nodes without edges are put into the cluster that has most nodes of the
    lowest degree, which are most similar to them. The other clusters are never empty.

    Parameters
    ----------
    graph : Graph
    num_clusters : int
        K, 1 or more.
    seed : int
        The same seed gives the same result on the same machine.

    Returns
    -------
    GraphClustering

    Raises
    ------
    ValueError
        K is less than 1.
    """
    if num_clusters < 1:
        raise ValueError(f"num_clusters: expected 1 or more, got {num_clusters}")
    adjacency = graph.to_scipy().astype(np.float64)
    degree = np.diff(adjacency.indptr)
    kept = np.flatnonzero(degree)
    clusters = np.zeros(graph.num_nodes, dtype=np.int64)
    candidates: list[GraphCandidate] = []
    chosen = 1 < num_clusters < len(kept)

    def connected() -> sp.csr_matrix:
        """The graph without nodes that have no edges."""
        return adjacency if len(kept) == len(degree) else adjacency[kept][:, kept]

    if chosen:
        candidates, (method, form), resolution = _candidates(connected(), num_clusters, seed)
        adjacency = in_form(adjacency, form)
    embedding = spectral_embedding(adjacency, num_clusters, seed)
    if len(kept) <= num_clusters:
        clusters[kept] = np.arange(len(kept))
    elif chosen:
        points = embedding[kept]
        clusters[kept] = _final(method, connected(), points, num_clusters, seed, resolution)
    if 0 < len(kept) < len(degree):
        rim = kept[degree[kept] == degree[kept].min()]
        clusters[degree == 0] = np.bincount(clusters[rim]).argmax()
    found = any(candidate.z >= _LEAST_Z for candidate in candidates)
    return GraphClustering(clusters, embedding, candidates, found)


# A method and a form of the weights.
_Way = tuple[str, str]


@dataclass(frozen=True, eq=False)
class _Score:
    """U, z, and one term for each hidden edge, of which the errors are computed."""

    value: float
    z: float
    terms: np.ndarray
    bits: float

    def candidate(self, way: _Way, chosen: _Way) -> GraphCandidate:
        error = float(self.terms.std() / np.sqrt(len(self.terms)))
        name = ", ".join(filter(None, way))
        return GraphCandidate(name, self.value, error, self.z, self.bits, way == chosen)


def _candidates(
    adjacency: sp.csr_matrix, num_clusters: int, seed: int
) -> tuple[list[GraphCandidate], _Way, float | None]:
    """Score the candidates by hidden edges.

    The chosen one is returned too, with the resolution of Louvain if that was searched.
    """
    judges = _hide(relative_weights(adjacency), seed)
    if not len(judges[1]):
        return [], ("louvain", AS_THEY_ARE), None
    scores, resolutions = {}, {}
    for form, train in forms(_hide(adjacency, seed)[0]):
        by_louvain, resolutions[form] = communities(train, num_clusters, seed)
        points = spectral_embedding(train, num_clusters, seed)
        by_spectrum = spectral_clusters(points, num_clusters, seed)
        found = {"louvain": by_louvain, "spectral": by_spectrum}
        for number, (method, clusters) in enumerate(found.items()):
            rng = stream_rng(seed, Stream.BLOCK_MODEL, number)
            moved = refine(train, clusters, num_clusters, _EM_STEPS, rng)
            scores[method, form] = _score(*judges, clusters, num_clusters)
            scores[f"{method}+em", form] = _score(*judges, moved, num_clusters)
    chosen = _choice(scores)
    candidates = [score.candidate(way, chosen) for way, score in scores.items()]
    return candidates, chosen, resolutions[chosen[1]]


def _hide(adjacency: sp.csr_matrix, seed: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """The graph without the hidden edges, (n, n), the hidden edges int64 (H, 2), their weights.

    Nodes that have no other edge are dropped, and so are their hidden edges.
    """
    upper = sp.triu(adjacency, 1).tocoo()
    number = len(upper.data)
    if number < _LEAST_EDGES:
        return adjacency, np.empty((0, 2), dtype=np.int64), np.empty(0)
    hide = np.zeros(number, dtype=bool)
    order = stream_rng(seed, Stream.HIDDEN_EDGES).permutation(number)
    hide[order[: round(_HIDDEN * number)]] = True
    half = sp.csr_matrix(
        (upper.data[~hide], (upper.row[~hide], upper.col[~hide])), shape=adjacency.shape
    )
    train = (half + half.T).tocsr()
    kept = np.diff(train.indptr) > 0
    hidden = np.stack([upper.row[hide], upper.col[hide]], axis=1).astype(np.int64)
    inside = kept[hidden].all(1)
    return train[kept][:, kept], (np.cumsum(kept) - 1)[hidden[inside]], upper.data[hide][inside]


def _planted_bits(inside: float, chance: float) -> float:
    """Bits that a planted partition saves in each edge; 0 if the edges avoid the clusters."""
    if inside <= chance:
        return 0.0
    shares, expected = np.array([inside, 1 - inside]), np.array([chance, 1 - chance])
    some = shares > 0
    return float((shares[some] * np.log2(shares[some] / np.maximum(expected[some], 1e-12))).sum())


def _score(
    train: sp.csr_matrix,
    hidden: np.ndarray,
    weight: np.ndarray,
    clusters: np.ndarray,
    num_clusters: int,
) -> _Score:
    """Score clusters of the graph ``train`` by edges that are not in it, and their weights."""
    sums = block_sums(train, clusters, num_clusters)
    volumes = sums.sum(1) / sums.sum()
    chance = float((volumes**2).sum())
    entropy = max(entropy_bits(volumes), _LEAST_ENTROPY)
    together = clusters[hidden[:, 0]] == clusters[hidden[:, 1]]
    inside = float(np.average(together, weights=weight))
    # Edges of unequal weights say as much as fewer edges of equal weights (Kish, 1965).
    number = round(float(weight.sum() ** 2 / (weight**2).sum()))
    # The larger chance: in a graph with hubs, whose pairs have fewer edges than d_i d_j says, the
    # second one is too small.
    new = max(chance, _chance_of_new_edges(train, clusters))
    z = _above_chance(round(inside * number), number, min(new, 1.0))
    # The derivative of U by f: how much one more edge within a cluster changes U.
    f, e = np.clip(inside, 1e-3, 1 - 1e-3), np.clip(chance, 1e-12, 1 - 1e-12)
    slope = max(np.log2(f * (1 - e) / (e * (1 - f))), 0.0)
    return _Score(
        _planted_bits(inside, chance) / entropy,
        z,
        slope * together * (weight / weight.mean()) / entropy,
        block_bits(sums),
    )


def _chance_of_new_edges(train: sp.csr_matrix, clusters: np.ndarray) -> float:
    r"""Share of the pairs without an edge that lie within clusters, weighed by degrees.

    .. math:: \frac{\sum_{ij} [i \ne j] (1 - A_{ij}) [c_i = c_j] d_i d_j}
        {\sum_{ij} [i \ne j] (1 - A_{ij}) d_i d_j}

    A hidden edge is none of the others, so this is its chance to lie within a cluster. In a sparse
    graph it is e. In a dense one, clusters that lack edges within would seem to foretell hidden
    edges. If the edges have weights, d are weighted degrees.
    """
    degree = np.asarray(train.sum(1)).ravel()
    rows = np.repeat(np.arange(len(degree)), np.diff(train.indptr))
    of_edge = degree[rows] * degree[train.indices]
    within = clusters[rows] == clusters[train.indices]
    volumes = np.bincount(clusters, weights=degree)
    alone = (degree**2).sum()
    inside = (volumes**2).sum() - alone - of_edge[within].sum()
    every = degree.sum() ** 2 - alone - of_edge.sum()
    return float(np.clip(inside / max(every, 1.0), 0.0, 1.0))


def _above_chance(hits: int, number: int, chance: float) -> float:
    """Standard deviations by which ``hits`` of ``number`` are above a binomial mean."""
    z = (hits / number - chance) / np.sqrt(max(chance * (1 - chance), 1e-12) / number)
    if z > 0:
        # The normal approximation says too much of few edges. Of many, the exact probability is 0
        # in floating point, and its z is infinite.
        z = min(z, norm.isf(binom.sf(hits - 1, number, chance)))
    return float(z)


def _choice(scores: dict[_Way, _Score]) -> _Way:
    """The candidate that is chosen; see `graph_clustering`."""
    if all(score.z < _LEAST_Z for score in scores.values()):
        spectral = [way for way in scores if way[0] == "spectral"]
        return max(spectral, key=lambda way: scores[way].z)
    picks: list[_Way] = []
    for method, form in scores:
        if method.endswith("+em"):
            continue
        plain, moved = scores[method, form], scores[f"{method}+em", form]
        # The same edges judge both, so the error is that of the difference, edge by edge.
        difference = moved.terms - plain.terms
        error = difference.std() / np.sqrt(len(difference))
        gains = moved.value - plain.value > error
        picks.append((f"{method}+em" if gains else method, form))
    return max(picks, key=lambda pick: scores[pick].value)


def _final(
    method: str,
    adjacency: sp.csr_matrix,
    points: np.ndarray,
    num_clusters: int,
    seed: int,
    resolution: float | None,
) -> np.ndarray:
    """Cluster the whole graph, whose nodes all have edges, in the chosen way."""
    if method.startswith("louvain"):
        starts = _STARTS if adjacency.shape[0] <= _LARGE else _STARTS_LARGE
        # Start 0 was the search on the graph without the hidden edges.
        found = [
            communities(adjacency, num_clusters, seed, start, resolution)[0]
            for start in steps(range(1, starts + 1))
        ]
        clusters = max(found, key=_share_paid(adjacency, num_clusters))
    else:
        clusters = spectral_clusters(points, num_clusters, seed)
    clusters = fill_clusters(clusters, num_clusters)
    if method.endswith("+em"):
        rng = stream_rng(seed, Stream.BLOCK_MODEL)
        clusters = refine(adjacency, clusters, num_clusters, _EM_STEPS, rng)
    return clusters


def _share_paid(adjacency: sp.csr_matrix, num_clusters: int) -> Callable[[np.ndarray], float]:
    """The function that computes U of all edges of a clustering."""

    def share(clusters: np.ndarray) -> float:
        sums = block_sums(adjacency, clusters, num_clusters)
        volumes = sums.sum(1) / sums.sum()
        inside = float(np.trace(sums) / sums.sum())
        entropy = max(entropy_bits(volumes), _LEAST_ENTROPY)
        return _planted_bits(inside, float((volumes**2).sum())) / entropy

    return share
