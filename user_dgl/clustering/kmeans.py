"""k-means and silhouette. The results do not depend on the number of cores."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

from user_dgl.runtime.streams import Stream, stream_rng

MINI_BATCH_ABOVE = 100_000
_SILHOUETTE_SAMPLE = 3000


def kmeans(
    points: np.ndarray,
    num_clusters: int,
    seed: int,
    num_starts: int = 20,
    max_steps: int | None = None,
    seeding_sample: int | None = None,
) -> np.ndarray:
    """Cluster points by k-means++ with several starts.

    The result is that of the start with the smallest sum of squared distances. More than 100,000
    points are clustered by mini-batch k-means. If there are fewer distinct points than clusters,
    there are fewer clusters.

    Parameters
    ----------
    points : ndarray (N, d)
    num_clusters : int
    seed : int
    num_starts : int
    max_steps : int, optional
        Most steps of each start, if not scikit-learn's own. Mini-batch k-means takes these as
        passes over all points.
    seeding_sample : int, optional
        Number of points among which k-means++ draws the first centroids, if not all. With many
        clusters, k-means++ takes longer than all steps after it.

    Returns
    -------
    int64 ndarray (N,)
        Clusters in 0..num_clusters-1. The same seed gives the same result, bit for bit.
    """
    num_clusters = min(num_clusters, len(points))
    settings: dict[str, Any] = {
        "n_clusters": num_clusters,
        "n_init": num_starts,
        "random_state": seed,
    }
    if max_steps is not None:
        settings["max_iter"] = max_steps
    if seeding_sample is not None and num_clusters <= seeding_sample < len(points):
        settings["init"] = partial(_seeds_of_sample, seeding_sample)
    if len(points) > MINI_BATCH_ABOVE:
        batch = max(4096, num_clusters)
        model = MiniBatchKMeans(batch_size=batch, init_size=3 * batch, **settings)
    else:
        model = KMeans(**settings)
    # Only one thread is used. Several threads add up their partial centroids in the order in which
    # they finish, so the rounding would depend on the number of threads and, with more than two, on
    # chance. For so few points, one thread is also several times faster on a busy machine.
    with threadpool_limits(limits=1, user_api="openmp"), warnings.catch_warnings():
        # The warning "Number of distinct clusters found smaller than n_clusters" is ignored. The
        # docstring describes this case.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit_predict(points).astype(np.int64)


def _seeds_of_sample(
    size: int, points: np.ndarray, num_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """First centroids (K, d): k-means++ on randomly drawn points."""
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
