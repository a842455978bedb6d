r"""Communities at a given number: Louvain with the resolution searched, then exact merging.

Not in the paper. Louvain (Blondel et al., 2008, from scikit-network) finds the number of
communities itself. Its resolution (Reichardt and Bornholdt, 2006) is bisected until there are at
least K. The rest is merged in the way that loses fewest bits of the edges' code.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import xlogy
from sknetwork.clustering import Louvain

from user_dgl.clustering.block_model import block_sums, indicator
from user_dgl.runtime.streams import Stream, stream_rng

# Resolutions that are searched, and how many are tried. Louvain at the upper one has more
# communities than anybody asks for, except in a graph that is nearly a star or nearly empty.
_RESOLUTIONS = (0.01, 200.0)
_TRIES = 12
# Around a resolution that is known: its factor, and how many are tried.
_NEAR = 1.5
_TRIES_NEAR = 6
# Least gain of modularity by which Louvain goes on.
_TOLERANCE = 1e-4
# A component with fewer nodes than this share of the mean size of a cluster is no cluster.
_SMALL_COMPONENT = 0.02
# Up to this number of clusters every pair is tried, and one pair merged at a time.
_ALL_PAIRS = 120
# Above it: partners tried for each cluster, by edges and by profile, and the share merged at once.
_PARTNERS = 8
_MERGED_AT_ONCE = 0.1
# Most clusters between which a dense matrix is made.
_MOST_DENSE = 2000


def louvain(adjacency: sp.csr_matrix, resolution: float, seed: int) -> np.ndarray:
    """Louvain's communities, numbered from 0, int64 (N,); nodes are visited in random order.

    Parameters
    ----------
    adjacency : scipy CSR (N, N)
        Symmetric.
    resolution : float
        1 is modularity; a larger one finds more communities.
    seed : int
        0 to 2^32 - 1.
    """
    model = Louvain(
        resolution=resolution,
        tol_optimization=_TOLERANCE,
        tol_aggregation=_TOLERANCE,
        shuffle_nodes=True,
        return_probs=False,
        return_aggregate=False,
        random_state=seed,
    )
    return model.fit_predict(adjacency).astype(np.int64)


def communities(
    adjacency: sp.csr_matrix,
    num_clusters: int,
    seed: int,
    start: int = 0,
    near: float | None = None,
) -> tuple[np.ndarray, float]:
    """Find K communities.

    Components that are much smaller than a cluster, such as single nodes, would be communities of
    their own. They are put into the largest cluster, unless less than K nodes or no component
    remained.

    Parameters
    ----------
    adjacency : scipy CSR (N, N)
        Symmetric, without self-loops.
    num_clusters : int
        K.
    seed : int
    start : int
        Tells several searches with the same seed apart.
    near : float, optional
        A resolution that an earlier search ended with. The search begins around it and is shorter.

    Returns
    -------
    int64 (N,), float
        Clusters, exactly K of them if there are as many nodes outside of the small components, and
        the resolution that they were merged from.
    """
    large = _large_components(adjacency, num_clusters)
    part = adjacency if large.all() else adjacency[large][:, large]
    found, resolution = _at_least(part, num_clusters, seed, start, near)
    found = merge_clusters(part, found, num_clusters)
    clusters = np.full(len(large), np.bincount(found).argmax(), dtype=np.int64)
    clusters[large] = found
    return clusters, resolution


def _large_components(adjacency: sp.csr_matrix, num_clusters: int) -> np.ndarray:
    """Which nodes are in components that are large enough to be clustered, bool (N,)."""
    _, component = connected_components(adjacency, directed=False)
    size = np.bincount(component)[component]
    large = size >= max(3, _SMALL_COMPONENT * len(size) / num_clusters)
    return large if large.sum() >= num_clusters else np.ones(len(size), dtype=bool)


def _at_least(
    adjacency: sp.csr_matrix, num_clusters: int, seed: int, start: int, near: float | None
) -> tuple[np.ndarray, float]:
    """The fewest communities found that are at least K, and their resolution.

    With fewer nodes than K, each node is a community.
    """
    number = int(stream_rng(seed, Stream.COMMUNITIES, start).integers(2**31))
    # Above a resolution of 2m over the least weight, no two nodes gain by being together. Of edges
    # of very different weight, the lightest ones part first, so that this is not looked for.
    highest = float(adjacency.sum()) + 1
    ranges = [(*_RESOLUTIONS, _TRIES), (_RESOLUTIONS[1], highest, _TRIES)]
    if near is not None:
        ranges.insert(0, (near / _NEAR, near * _NEAR, _TRIES_NEAR))
    # No resolution joins two components.
    fewest = max(num_clusters, connected_components(adjacency, directed=False)[0])
    best: tuple[int, np.ndarray, float] | None = None
    for low, high, tries in ranges:
        for _ in range(tries):
            resolution = float(np.sqrt(low * high))
            found = louvain(adjacency, resolution, number)
            count = int(found.max()) + 1
            if count >= num_clusters and (best is None or count < best[0]):
                best = (count, found, resolution)
            if count == fewest:
                break
            low, high = (low, resolution) if count > num_clusters else (resolution, high)
        if best is not None:
            return best[1], best[2]
    return np.arange(adjacency.shape[0]), highest


def merge_clusters(adjacency: sp.csr_matrix, clusters: np.ndarray, num_clusters: int) -> np.ndarray:
    r"""Merge clusters until K are left, each time the pair that loses fewest bits B_E.

    The loss is exact. Up to 120 clusters, every pair is tried and the best one merged. Above, the
    pairs that are tried are those with most edges between them, with the most similar edges to
    other clusters, or with the most similar volumes. Up to a tenth of the clusters is then merged
    at once, the cheapest pairs first. Above 2,000 clusters (or K, if that is more), those of the
    smallest volumes are first put together without looking at their edges, because the loss is a
    matrix of clusters by clusters.

    Parameters
    ----------
    adjacency : scipy CSR (N, N)
        Symmetric.
    clusters : int64 (N,)
        Any numbers.
    num_clusters : int
        K.

    Returns
    -------
    int64 (N,)
        Clusters in 0 to K - 1; fewer if there were fewer.
    """
    clusters = np.unique(clusters, return_inverse=True)[1].astype(np.int64)
    most = max(_MOST_DENSE, num_clusters)
    if clusters.max(initial=0) >= most:
        clusters = _join_small(adjacency, clusters, most)
    sums = block_sums(adjacency, clusters, int(clusters.max(initial=-1)) + 1)
    merged = np.arange(len(sums))
    while len(sums) > num_clusters:
        into = _merge_once(sums, num_clusters)
        select = indicator(into, int(into.max()) + 1)
        sums = np.asarray(select.T @ (select.T @ sums).T)
        merged = into[merged]
    return merged[clusters]


def _join_small(adjacency: sp.csr_matrix, clusters: np.ndarray, most: int) -> np.ndarray:
    """Keep the clusters of large volume, and join the others to ``most`` clusters in all."""
    degree = np.asarray(adjacency.sum(1)).ravel()
    order = np.argsort(-np.bincount(clusters, weights=degree), kind="stable")
    large = most // 2
    into = np.empty(len(order), dtype=np.int64)
    into[order[:large]] = np.arange(large)
    small = len(order) - large
    into[order[large:]] = large + np.arange(small) * (most - large) // small
    return into[clusters]


def _merge_once(sums: np.ndarray, num_clusters: int) -> np.ndarray:
    """Where each cluster goes when the cheapest pairs are merged, int64 (C,)."""
    count = len(sums)
    if count <= _ALL_PAIRS:
        first, second = np.triu_indices(count, 1)
        at_once = 1
    else:
        first, second = _likely_pairs(sums)
        at_once = max(1, min(int(_MERGED_AT_ONCE * count), count - num_clusters))
    order = np.argsort(_losses(sums, first, second), kind="stable")
    into = np.arange(count)
    used = np.zeros(count, dtype=bool)
    merged = 0
    # A loop over pairs of clusters, not over nodes, which ends early but where many pairs overlap.
    for keep, drop in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if not used[keep] and not used[drop]:
            used[keep] = used[drop] = True
            into[drop] = keep
            merged += 1
            if merged == at_once:
                break
    return np.unique(into, return_inverse=True)[1]


def _likely_pairs(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each cluster, partners with many edges to it, of similar profile, of similar volume."""
    count = len(sums)
    volumes = np.maximum(sums.sum(1), 1e-9)
    joined = sums / np.sqrt(np.outer(volumes, volumes))
    roots = np.sqrt(sums / volumes[:, None])
    alike = roots @ roots.T  # Bhattacharyya coefficient of the rows
    partners = []
    for score in (joined, alike):
        np.fill_diagonal(score, -1)
        partners.append(np.argpartition(-score, _PARTNERS, axis=1)[:, :_PARTNERS])
    # Where nothing tells clusters apart, such as components, all have the same partners. Then those
    # of the next larger volume are others, and the cheapest.
    by_volume = np.argsort(volumes, kind="stable")
    first = np.append(np.repeat(np.arange(count), 2 * _PARTNERS), by_volume[:-1])
    second = np.append(np.concatenate(partners, axis=1).ravel(), by_volume[1:])
    keys = np.unique(np.minimum(first, second) * count + np.maximum(first, second))
    return np.divmod(keys, count)


def _losses(sums: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    r"""Nats of B_E that are lost when two clusters become one, for each pair (P,).

    With :math:`f(x) = x \log x`, twice B_E is :math:`\sum_{kl} f(M_{kl}) - 2 \sum_k f(v_k)` plus a
    constant; only the rows and columns of the two clusters change.
    """
    volumes = sums.sum(1)
    of_entry, of_volume = xlogy(sums, sums), xlogy(volumes, volumes)
    of_row = of_entry.sum(1)
    loss = np.empty(len(first))
    height = max(1, 4_000_000 // len(sums))
    for start in range(0, len(first), height):
        block = slice(start, start + height)
        i, j = first[block], second[block]
        rows = np.arange(len(i))
        joined = sums[i] + sums[j]
        own = joined[rows, i] + joined[rows, j]
        of_joined = xlogy(joined, joined)
        of_joined[rows, i] = of_joined[rows, j] = 0
        after = 2 * of_joined.sum(1) + xlogy(own, own)
        before = 2 * (of_row[i] + of_row[j]) - of_entry[i, i] - of_entry[j, j] - 2 * of_entry[i, j]
        both = volumes[i] + volumes[j]
        loss[block] = before - after - 2 * (of_volume[i] + of_volume[j] - xlogy(both, both))
    return loss / 2


def fill_clusters(clusters: np.ndarray, num_clusters: int) -> np.ndarray:
    """Split the largest clusters until there are K of them, or every node is one.

    Single nodes are taken out of the clusters that are largest at that moment. A search seldom ends
    with too few clusters, so which of its nodes a cluster gives does not matter much.

    Parameters
    ----------
    clusters : int64 (N,)
        Any numbers.
    num_clusters : int
        K.

    Returns
    -------
    int64 (N,)
        Numbered from 0, without empty clusters.

    >>> fill_clusters(np.array([4, 4, 4, 7]), 3).tolist()
    [0, 0, 2, 1]
    """
    clusters = np.unique(clusters, return_inverse=True)[1].astype(np.int64)
    count = int(clusters.max(initial=-1)) + 1
    missing = min(num_clusters, len(clusters)) - count
    if missing <= 0:
        return clusters
    order = np.argsort(clusters, kind="stable")
    ends = np.cumsum(np.bincount(clusters))
    # How many nodes are left of its cluster when all nodes behind this one are taken, minus 1.
    place = np.arange(len(clusters)) - np.repeat(np.append(0, ends[:-1]), np.bincount(clusters))
    taken = order[np.argsort(-place, kind="stable")[:missing]]
    clusters[taken] = count + np.arange(missing)
    return clusters
