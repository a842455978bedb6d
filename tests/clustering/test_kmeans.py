"""k-means: the best start, repeatable, content with few points."""

import warnings

import numpy as np
import pytest

import user_dgl.clustering.kmeans as module
from user_dgl.clustering.kmeans import kmeans
from user_dgl.evaluation.label_metrics import clustering_metrics


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def blobs(num_points=90, num_blobs=3, spread=0.1, seed=0):
    rng = np.random.default_rng(seed)
    blob = np.arange(num_points) % num_blobs
    points = 5 * np.eye(num_blobs)[blob] + spread * rng.normal(size=(num_points, num_blobs))
    return points.astype(np.float32), blob


def sum_of_squares(points, clusters):
    parts = [points[clusters == k] for k in np.unique(clusters)]
    return sum(((part - part.mean(0)) ** 2).sum() for part in parts)


@pytest.fixture
def small_samples(monkeypatch):
    """Starts on samples of 100 points and more, from 200 points on."""
    monkeypatch.setattr(module, "SAMPLED_FROM", 200)
    monkeypatch.setattr(module, "_LEAST_SAMPLE", 100)
    monkeypatch.setattr(module, "_SAMPLE_PER_CLUSTER", 30)
    monkeypatch.setattr(module, "_LEAST_SEEDING", 60)
    monkeypatch.setattr(module, "_SEEDING_PER_CLUSTER", 10)


def test_starts_on_a_sample(small_samples):
    """As good as starts on all points, where clusters overlap and starts differ."""
    points, _ = blobs(3000, 12, spread=1.0)
    single = [sum_of_squares(points, kmeans(points, 12, seed, num_starts=1)) for seed in range(8)]
    sampled = [sum_of_squares(points, kmeans(points, 12, seed)) for seed in range(3)]
    whole = module.KMeans(12, n_init=20, random_state=0).fit(points).inertia_
    assert max(sampled) <= 1.005 * whole
    assert max(single) > 1.01 * whole, "every start finds the same: the test shows nothing"
    np.testing.assert_array_equal(kmeans(points, 12, seed=4), kmeans(points, 12, seed=4))


def test_a_sample_only_where_it_is_small(small_samples, monkeypatch):
    points, blob = blobs(num_points=600)
    sizes = []

    class Recorded(module.KMeans):
        def fit(self, points, y=None, sample_weight=None):
            sizes.append(len(points))
            return super().fit(points)

    step = module._lloyd_step

    def recorded(points, *others):
        sizes.append(len(points))
        return step(points, *others)

    monkeypatch.setattr(module, "KMeans", Recorded)
    monkeypatch.setattr(module, "_lloyd_step", recorded)
    assert clustering_metrics(blob, kmeans(points, 3, seed=0))["acc"] == 100
    assert sizes[:20] == [100] * 20
    assert len(sizes[20:]) in (3, 6, 9)
    assert set(sizes[20:]) == {600}
    sizes.clear()
    monkeypatch.setattr(module, "_MOST_STEPPED", 400)
    assert clustering_metrics(blob, kmeans(points, 3, seed=0))["acc"] == 100
    assert sizes[20:23] == [400, 400, 600]
    for settings in ({"max_steps": 5}, {"seeding_sample": 30}):
        sizes.clear()
        kmeans(points, 3, seed=0, **settings)
        assert set(sizes) <= {600}
    sizes.clear()
    kmeans(points[:199], 3, seed=0)
    kmeans(points, 11, seed=0)  # the sample would have 330 of 600 points
    monkeypatch.setattr(module, "_MOST_SAMPLED_CLUSTERS", 2)
    kmeans(points, 3, seed=0)
    assert 100 not in sizes


def test_equal_points_in_a_sample(small_samples):
    points = np.eye(4, dtype=np.float32)[np.arange(400) % 3]
    clusters = kmeans(points, 5, seed=0)
    assert clustering_metrics(np.arange(400) % 3, clusters)["acc"] == 100


def test_small_sets_are_clustered_as_scikit_learn_does():
    points = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    expected = module.KMeans(6, n_init=20, random_state=3).fit_predict(points)
    np.testing.assert_array_equal(kmeans(points, 6, seed=3), expected)


def test_kmeans_finds_blobs():
    points, blob = blobs()
    clusters = kmeans(points, 3, seed=0)
    assert clusters.dtype == np.int64
    assert clusters.shape == (90,)
    assert clustering_metrics(blob, clusters)["acc"] == 100


def test_kmeans_keeps_the_best_start():
    points = np.random.default_rng(0).normal(size=(150, 2)).astype(np.float32)
    single = [sum_of_squares(points, kmeans(points, 12, seed, num_starts=1)) for seed in range(10)]
    best = sum_of_squares(points, kmeans(points, 12, seed=0))
    assert best <= min(single) * 1.001
    assert max(single) > 1.01 * best, "every start finds the same: the test shows nothing"


@pytest.mark.parametrize("limit", [10**6, 50], ids=["full", "mini-batch"])
def test_kmeans_is_deterministic(monkeypatch, limit):
    monkeypatch.setattr(module, "MINI_BATCH_ABOVE", limit)
    points = np.random.default_rng(0).normal(size=(600, 8)).astype(np.float32)
    np.testing.assert_array_equal(kmeans(points, 9, seed=4), kmeans(points, 9, seed=4))


@pytest.mark.parametrize("limit", [10**6, 1], ids=["full", "mini-batch"])
@pytest.mark.parametrize(
    "points",
    [np.ones((6, 2)), np.zeros((2, 3)), np.eye(4)[[0, 0, 1, 1, 2, 2, 2]]],
    ids=["all equal", "fewer points", "fewer distinct points"],
)
def test_kmeans_of_too_few_distinct_points(monkeypatch, limit, points):
    monkeypatch.setattr(module, "MINI_BATCH_ABOVE", limit)
    clusters = kmeans(points.astype(np.float32), 5, seed=0)
    assert len(clusters) == len(points)
    assert clusters.min() >= 0
    assert clusters.max() < 5
    _, distinct = np.unique(points, axis=0, return_inverse=True)
    # Mini-batch k-means may split equal points; neither may join distinct ones here.
    if limit > 1:
        assert clustering_metrics(distinct.ravel(), clusters)["acc"] == 100


@pytest.mark.parametrize("far", [0, 50])
def test_rounding_is_no_difference_between_points(far):
    rng = np.random.default_rng(0)
    points = np.eye(2, dtype=np.float32)[np.arange(200) % 2] + np.float32(far)
    points += (1e-6 * rng.normal(size=points.shape)).astype(np.float32)
    clusters = kmeans(points, 6, seed=0)
    assert sorted(np.bincount(clusters, minlength=6)) == [0, 0, 0, 0, 100, 100]


@pytest.mark.parametrize("size", [15_000, 25_000], ids=["all points", "a sample"])
def test_rounding_of_many_points_is_no_difference(size):
    """Their centroids differ by more than they do, as k-means adds them up in float32."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 8))[rng.integers(2, size=size)]
    points = (values + 3e-7 * rng.normal(size=values.shape)).astype(np.float32)
    assert len(np.unique(kmeans(points, 4, seed=0))) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_far_point_makes_others_no_more_equal(dtype):
    points = np.concatenate([np.repeat(np.eye(3), 100, 0), [[2e5, 0, 0]]]).astype(dtype)
    assert sorted(np.bincount(kmeans(points, 4, seed=0), minlength=4)) == [1, 100, 100, 100]


@pytest.mark.parametrize("far", [1e6, 1e9])
def test_clusters_far_from_0_are_not_one(far):
    points = far + np.random.default_rng(0).normal(size=(500, 2))
    assert len(np.unique(kmeans(points, 4, seed=0))) == 4


@pytest.mark.parametrize("values", [[[-1, -1], [0, 0], [1, 1]], [[1, 1]]], ids=["at 0", "one"])
def test_rounding_at_0_and_of_one_point_is_no_difference(values):
    points = np.repeat(np.array(values, dtype=np.float64), 100, 0)
    points += 1e-8 * np.random.default_rng(0).normal(size=points.shape)
    clusters = kmeans(points.astype(np.float32), 5, seed=0)
    assert sorted(np.unique(clusters, return_counts=True)[1]) == [100] * len(values)


def test_mini_batch_beyond_the_limit(monkeypatch):
    points, blob = blobs(num_points=3000)
    used = []

    class Recorded(module.MiniBatchKMeans):
        def fit_predict(self, points):
            used.append(len(points))
            return super().fit_predict(points)

    monkeypatch.setattr(module, "MiniBatchKMeans", Recorded)
    kmeans(points, 3, seed=0, num_starts=2)
    assert used == []
    monkeypatch.setattr(module, "MINI_BATCH_ABOVE", 2999)
    assert clustering_metrics(blob, kmeans(points, 3, seed=0, num_starts=2))["acc"] == 100
    assert used == [3000]


@pytest.mark.parametrize("limit", [10**6, 50], ids=["full", "mini-batch"])
def test_first_centroids_of_a_sample_find_blobs(monkeypatch, limit):
    monkeypatch.setattr(module, "MINI_BATCH_ABOVE", limit)
    points, blob = blobs(num_points=300)
    clusters = kmeans(points, 3, seed=0, num_starts=3, max_steps=5, seeding_sample=30)
    assert clustering_metrics(blob, clusters)["acc"] == 100
    again = kmeans(points, 3, seed=0, num_starts=3, max_steps=5, seeding_sample=30)
    np.testing.assert_array_equal(clusters, again)


def test_more_first_points_than_mini_batches_have(monkeypatch):
    """`MiniBatchKMeans` gives 3 x 4096 points to the choice of first centroids."""
    monkeypatch.setattr(module, "MINI_BATCH_ABOVE", 13_000)
    points, blob = blobs(num_points=13_500)
    clusters = kmeans(points, 3, seed=0, num_starts=1, max_steps=2, seeding_sample=12_500)
    assert clustering_metrics(blob, clusters)["acc"] == 100


@pytest.mark.parametrize("apart", [0, 1000])
def test_last_steps_are_those_of_scikit_learn(apart, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 70)
    points, _ = blobs(num_points=300, num_blobs=4, spread=1.0)
    points += apart
    first = points[:4]
    model = module.KMeans(4, init=first, n_init=1, max_iter=3, tol=0).fit(points)
    centers = first
    for _ in range(3):
        centers = module._lloyd_step(points, centers, module.ALL)
    inertia, clusters = module._nearest(points, centers, module.ALL)
    np.testing.assert_array_equal(clusters, model.labels_)
    assert inertia == pytest.approx(model.inertia_, rel=1e-4)
    # A centroid that is nobody's nearest stays where it is.
    far = np.concatenate([first, [[2e3] * 4]]).astype(np.float32)
    np.testing.assert_array_equal(module._lloyd_step(points, far, module.ALL)[4], far[4])
    assert module._nearest(points, far, module.ALL)[1].max() == 3


def test_of_starts_that_found_the_same_the_first_is_kept():
    sums = [1.00005, 3.0, 1.0, 1.0002, 2.0]
    found = [(value, np.full(1, place)) for place, value in enumerate(sums)]
    kept = module._different(found)
    assert [centers[0] for _, centers in kept] == [0, 3, 4, 1]
