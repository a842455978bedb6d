"""k-means, the same for every number of cores."""

import warnings

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

MINI_BATCH_ABOVE = 100_000
_SILHOUETTE_SAMPLE = 3000


def kmeans(points: np.ndarray, num_clusters: int, seed: int, num_starts: int = 20) -> np.ndarray:
    """k-means++ with restarts, the one with the smallest sum of squared distances.

    Beyond 100,000 points, mini-batch k-means. Fewer distinct points than clusters give fewer
    clusters.

    Parameters
    ----------
    points : ndarray (N, d)
    num_clusters : int
    seed : int
    num_starts : int

    Returns
    -------
    int64 ndarray (N,)
        Clusters in 0..num_clusters-1; the same bit for bit for the same seed.
    """
    num_clusters = min(num_clusters, len(points))
    settings = {"n_clusters": num_clusters, "n_init": num_starts, "random_state": seed}
    if len(points) > MINI_BATCH_ABOVE:
        batch = max(4096, num_clusters)
        model = MiniBatchKMeans(batch_size=batch, init_size=3 * batch, **settings)
    else:
        model = KMeans(**settings)
    # Threads add their partial centroids up in the order in which they finish, so the result would
    # depend on their number and, beyond two, on chance. On points this few they also wait more than
    # they compute: on a busy machine one thread is several times faster.
    with threadpool_limits(limits=1, user_api="openmp"), warnings.catch_warnings():
        # "Number of distinct clusters found smaller than n_clusters": documented above.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit_predict(points).astype(np.int64)


def silhouette(points: np.ndarray, clusters: np.ndarray, seed: int) -> float:
    """Mean silhouette (Rousseeuw, 1987) of 3,000 points drawn by the seed; 0 for a single cluster.

    Parameters
    ----------
    points : ndarray (N, d)
    clusters : int ndarray (N,)
    seed : int
    """
    # A stream of its own: that of the seed alone may have ordered the nodes of a synthetic graph.
    rng = np.random.default_rng([seed, 8])
    drawn = rng.permutation(len(points))[:_SILHOUETTE_SAMPLE]
    points, clusters = points[drawn], clusters[drawn]
    if not 1 < len(np.unique(clusters)) < len(points):
        return 0.0
    with threadpool_limits(limits=1):
        return float(silhouette_score(points, clusters))
