"""k-means and silhouette. The results do not depend on the number of cores."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, MiniBatchKMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances, silhouette_score
from threadpoolctl import threadpool_limits

from user_dgl.features.rows import ALL, Rows
from user_dgl.runtime.streams import Stream, stream_rng

MINI_BATCH_ABOVE = 100_000
_SILHOUETTE_SAMPLE = 3000
# From this number of points on, the starts are made on a sample. Smaller sets do all on all points.
SAMPLED_FROM = 20_000
# Points of the sample, at least and for each cluster, and of those among which k-means++ draws.
_LEAST_SAMPLE, _SAMPLE_PER_CLUSTER = 10_000, 128
_LEAST_SEEDING, _SEEDING_PER_CLUSTER = 500, 16
# Most clusters for which a sample is smaller than the mini-batches of so many starts.
_MOST_SAMPLED_CLUSTERS = 200
# Steps after those on the sample, and the share of the starts that get them. Of more than so many
# points, all of these steps but the last are taken on so many, drawn at random.
_LAST_STEPS, _SHARE_LAST, _MOST_STEPPED = 3, 8, 100_000
# Most steps on the sample. Without clusters to find, hundreds would gain less than 0.1 %.
_STEPS_ON_SAMPLE = 30
# Starts whose sums of squares differ by less have found the same clusters.
_SAME = 1e-4
# Centroids that are nearer than this share of the larger of the two are one. Points in float32 that
# should be equal differ by less. Centroids as k-means has them, which are sums in float32, are
# compared more precisely only where they are nearer than the second share.
_ROUNDING, _SUSPICIOUS = 1e-5, 1e-3
# Points near 0 or far from it differ by so many times the precision of the largest number.
_DIGITS_LOST = 4
# Points whose distances to all centroids are computed at a time.
_BLOCK = 8192
# A sum of squares, and more.
Start = TypeVar("Start", bound=tuple)


def kmeans(
    points: np.ndarray,
    num_clusters: int,
    seed: int,
    num_starts: int = 20,
    max_steps: int | None = None,
    seeding_sample: int | None = None,
    held: Rows = ALL,
) -> np.ndarray:
    """Cluster points by k-means++ with several starts.

    The result is that of the start with the smallest sum of squared distances; where the starts are
    made on a sample, of those within 0.01 % of it the first. If there are fewer distinct points
    than clusters, there are fewer clusters.

    From 20,000 points on, the starts are made on a sample of 128 points for each cluster, and
    10,000 at least. The best ones, one in eight, go on for three steps on all points; of more than
    100,000 points, two of the steps are on so many of them. This needs up to 200 clusters and
    samples that are at most half of the points. Otherwise, more than 100,000 points are clustered
    by mini-batch k-means.

    Parameters
    ----------
    points : ndarray (n, d)
        The rows that this process has of all points (N, d).
    num_clusters : int
    seed : int
    num_starts : int
    max_steps : int, optional
        Most steps of each start, if not scikit-learn's own. Mini-batch k-means takes these as
        passes over all points. With a limit, all steps are on all points.
    seeding_sample : int, optional
        Number of points among which k-means++ draws the first centroids, if not all. With many
        clusters, k-means++ takes longer than all steps after it.
    held : Rows
        Without starts on a sample, the first process has all points.

    Returns
    -------
    int64 ndarray (n,)
        Clusters in 0..num_clusters-1. The same seed gives the same result, bit for bit.
    """
    number = held.count(len(points))
    num_clusters = min(num_clusters, number)
    sample = max(_SAMPLE_PER_CLUSTER * num_clusters, _LEAST_SAMPLE)
    if (
        max_steps is None
        and seeding_sample is None
        and num_clusters <= _MOST_SAMPLED_CLUSTERS
        and number >= max(SAMPLED_FROM, 2 * sample)
    ):
        with _one_thread_without_warnings():
            return _kmeans_by_sample(points, number, num_clusters, seed, num_starts, sample, held)
    settings: dict[str, Any] = {
        "n_clusters": num_clusters,
        "n_init": num_starts,
        "random_state": seed,
    }
    if max_steps is not None:
        settings["max_iter"] = max_steps
    if seeding_sample is not None and num_clusters <= seeding_sample < number:
        settings["init"] = partial(_seeds_of_sample, seeding_sample)
    if number > MINI_BATCH_ABOVE:
        batch = max(4096, num_clusters)
        model = MiniBatchKMeans(batch_size=batch, init_size=3 * batch, **settings)
    else:
        model = KMeans(**settings)

    def clustered(every: np.ndarray) -> np.ndarray:
        """Clusters of all points."""
        clusters = model.fit_predict(every)
        return _without_same(every, clusters, model.cluster_centers_, ALL)

    with _one_thread_without_warnings():
        return held.by_first(points, clustered).astype(np.int64)


@contextmanager
def _one_thread_without_warnings() -> Iterator[None]:
    """Use one thread, and ignore the warning about fewer distinct points than clusters."""
    # Several threads add up their partial centroids in the order in which they finish, so the
    # rounding would depend on the number of threads and, with more than two, on chance. For so few
    # points, one thread is also several times faster on a busy machine.
    with threadpool_limits(limits=1, user_api="openmp"), warnings.catch_warnings():
        # "Number of distinct clusters found smaller than n_clusters". The docstring of `kmeans`
        # describes this case.
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _kmeans_by_sample(
    points: np.ndarray,
    number: int,
    num_clusters: int,
    seed: int,
    num_starts: int,
    size: int,
    held: Rows,
) -> np.ndarray:
    """Clusters (n,) of the best start: all starts on a sample, the best of them on more points."""
    rng = stream_rng(seed, Stream.KMEANS_SAMPLE)
    sample = held.pick(points, rng.choice(number, size, replace=False))
    seeding = max(_SEEDING_PER_CLUSTER * num_clusters, _LEAST_SEEDING)
    draws = [
        (rng.choice(size, seeding, replace=False), int(rng.integers(2**31)))
        for _ in range(num_starts)
    ]

    def started(draw: tuple[np.ndarray, int]) -> tuple[float, np.ndarray]:
        """Sum of squares and centroids of a start."""
        # scikit-learn's k-means++ is several times faster in float64.
        drawn = sample[draw[0]].astype(np.float64)
        first = kmeans_plusplus(drawn, num_clusters, random_state=draw[1])[0]
        model = KMeans(
            num_clusters, init=first.astype(points.dtype), n_init=1, max_iter=_STEPS_ON_SAMPLE
        ).fit(sample)
        return model.inertia_, model.cluster_centers_

    found = held.share_out(draws, started)
    some = points
    if number > _MOST_STEPPED:
        drawn = np.zeros(number, dtype=bool)
        drawn[rng.choice(number, _MOST_STEPPED, replace=False)] = True
        some = points[held.own(drawn)]
    ended = []
    for _, centers in _different(found)[: -(-num_starts // _SHARE_LAST)]:
        for step in range(_LAST_STEPS):
            last = step == _LAST_STEPS - 1
            centers = _lloyd_step(points if last else some, centers, held)
        squares, clusters = _nearest(points, centers, held)
        ended.append((squares, centers, clusters))
    _, centers, clusters = _different(ended)[0]
    return _without_same(points, clusters, centers, held)


def _different(found: list[Start]) -> list[Start]:
    """Starts whose sums of squares, the first entries, differ, least first.

    Of starts that have found the same clusters, the first is kept: the others would do the same on
    all points, and which of them has the least sum depends on rounding.
    """
    kept: list[int] = []
    least = -np.inf
    for place in sorted(range(len(found)), key=lambda place: found[place][0]):
        if found[place][0] > least * (1 + _SAME):
            least = found[place][0]
            kept.append(place)
        else:
            kept[-1] = min(kept[-1], place)
    return [found[place] for place in kept]


def _lloyd_step(points: np.ndarray, centers: np.ndarray, held: Rows) -> np.ndarray:
    """Mean (K, d) of the points nearest to each centroid. An empty cluster keeps its centroid.

    The sums of each cluster are added over the processes.
    """
    sums, sizes = np.zeros(centers.shape), np.zeros(len(centers))
    middle = centers.mean(0)
    for block, nearest, _ in _assigned(points, centers - middle, middle):
        ones, ends = np.ones(len(block), dtype=block.dtype), np.arange(len(block) + 1)
        members = sp.csr_matrix((ones, nearest, ends), shape=(len(block), len(centers)))
        sums += members.T @ block
        sizes += np.bincount(nearest, minlength=len(centers))
    sums, sizes = held.sum(sums), held.sum(sizes)
    means = sums / np.maximum(sizes, 1)[:, None] + middle
    return np.where(sizes[:, None] > 0, means, centers).astype(points.dtype)


def _sums(
    points: np.ndarray, clusters: np.ndarray, num_clusters: int, held: Rows
) -> tuple[np.ndarray, np.ndarray]:
    """Sums (K, d) of the points of each cluster in float64, and sizes (K,), over all processes."""
    sums, sizes = np.zeros((num_clusters, points.shape[1])), np.zeros(num_clusters)
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK].astype(np.float64)
        own = clusters[start : start + _BLOCK]
        members = sp.csr_matrix(
            (np.ones(len(block)), own, np.arange(len(block) + 1)), shape=(len(block), num_clusters)
        )
        sums += members.T @ block
        sizes += np.bincount(own, minlength=num_clusters)
    return held.sum(sums), held.sum(sizes)


def _nearest(points: np.ndarray, centers: np.ndarray, held: Rows) -> tuple[float, np.ndarray]:
    """Sum of squared distances of all points to the nearest centroid, and its number (n,)."""
    middle = centers.mean(0)
    clusters, distances = [np.empty(0, dtype=np.int64)], 0.0
    for block, nearest, distance in _assigned(points, centers - middle, middle):
        clusters.append(nearest)
        least = np.take_along_axis(distance, nearest[:, None], 1)
        distances += float(np.square(block).sum(dtype=np.float64))
        distances += float(least.sum(dtype=np.float64))
    return float(held.sum(np.array([distances]))[0]), np.concatenate(clusters)


def _assigned(
    points: np.ndarray, centers: np.ndarray, middle: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Assign points less their middle to centroids, block by block.

    Distances of points far from 0 would lose the digits that differ between them.

    Yields
    ------
    ndarray (b, d), int64 (b,), ndarray (b, K)
        Points less the middle, the nearest centroid of each, and the squared distances to all
        centroids, less the squared norm of the point.
    """
    squares, doubled = np.einsum("ij,ij->i", centers, centers), -2 * centers.T
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK] - middle
        distance = block @ doubled
        distance += squares
        yield block, distance.argmin(1), distance


def _without_same(
    points: np.ndarray, clusters: np.ndarray, centers: np.ndarray, held: Rows
) -> np.ndarray:
    """Clusters (n,), where those whose centroids differ by rounding only have become one.

    Points that should be equal differ by rounding. Where there are fewer distinct points than
    clusters, k-means takes that for a difference.
    """
    rounding = _DIGITS_LOST * np.finfo(points.dtype).eps
    suspicious = _near(centers.astype(np.float64), _SUSPICIOUS, rounding)
    if np.count_nonzero(suspicious) == len(centers):
        return clusters
    exact, sizes = _sums(points, clusters, len(centers), held)
    exact /= np.maximum(sizes, 1)[:, None]
    exact[sizes == 0] = centers[sizes == 0]
    return (suspicious & _near(exact, _ROUNDING, rounding)).argmax(1)[clusters]


def _near(centers: np.ndarray, share: float, rounding: float) -> np.ndarray:
    """Whether centroids are nearer than a share of their size, or than rounding, bool (K, K).

    The size is the norm of the larger of two, or the largest distance of any from their mean if
    that is less, as it is for points far from 0. ``rounding`` is a share of the largest norm.
    """
    norm = np.linalg.norm(centers, axis=1)
    centered = centers - centers.mean(0)
    spread = np.linalg.norm(centered, axis=1).max()
    size = np.minimum(np.maximum(norm[:, None], norm), spread)
    return pairwise_distances(centered) <= np.maximum(share * size, rounding * norm.max())


def _seeds_of_sample(
    size: int, points: np.ndarray, num_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """First centroids (K, d): k-means++ on randomly drawn points."""
    # `MiniBatchKMeans` gives a part of the points, which may be smaller.
    size = min(size, len(points))
    drawn = points[random_state.choice(len(points), size, replace=False)]
    return kmeans_plusplus(drawn, num_clusters, random_state=random_state)[0]


def silhouette(points: np.ndarray, clusters: np.ndarray, seed: int) -> float:
    """Mean silhouette (Rousseeuw, 1987) of at most 3,000 randomly drawn points, in [-1, 1].

    The value is 0 if the drawn points are in a single cluster or each has its own cluster.

    Parameters
    ----------
    points : ndarray (N, d)
    clusters : int ndarray (N,)
    seed : int
        Seed of the draw.
    """
    drawn = stream_rng(seed, Stream.SILHOUETTE).permutation(len(points))[:_SILHOUETTE_SAMPLE]
    points, clusters = points[drawn], clusters[drawn]
    if not 1 < len(np.unique(clusters)) < len(points):
        return 0.0
    with threadpool_limits(limits=1):
        return float(silhouette_score(points, clusters))
