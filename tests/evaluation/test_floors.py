import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import GRAPHS, cliques, dense, empty_graph
from sklearn.preprocessing import normalize

import user_dgl.evaluation.floors as module
from user_dgl.evaluation.floors import features_kmeans, floors, link_floors, smooth_kmeans
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.evaluation.ranking_metrics import link_metrics
from user_dgl.graph import Graph
from user_dgl.graph.pairs import LabelledPairs


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def words(blob, shared=0.0, num_words=40, seed=0):
    """Sparse binary features: six words a node, of the own blob's or, by chance, of any."""
    rng = np.random.default_rng(seed)
    num_blobs = blob.max() + 1
    own = rng.integers(0, num_words // num_blobs, (len(blob), 6)) * num_blobs + blob[:, None]
    any_word = rng.integers(0, num_words, (len(blob), 6))
    columns = np.where(rng.random((len(blob), 6)) < shared, any_word, own)
    rows = np.repeat(np.arange(len(blob)), 6)
    feat = sp.csr_matrix((np.ones(6 * len(blob)), (rows, columns.ravel())), dtype=np.float32)
    feat.data[:] = 1
    return feat


@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("container", [sp.csr_matrix, np.asarray])
@pytest.mark.parametrize("block", [2, 64])
@pytest.mark.parametrize("large", [1, 20_000], ids=["by torch", "by scipy"])
def test_smoothing_equals_dense_formula(monkeypatch, name, container, block, large):
    monkeypatch.setattr(module, "_BLOCK_COLUMNS", block)
    monkeypatch.setattr(module, "_LARGE", large)
    graph = GRAPHS[name]
    feat = np.random.default_rng(0).normal(size=(graph.num_nodes, 5)).astype(np.float32)
    ones = torch.ones(graph.num_edges, dtype=torch.float64)
    looped = dense(graph, ones).numpy() + np.eye(graph.num_nodes)
    degree = looped.sum(1)
    operator = looped / np.sqrt(np.outer(degree, degree))
    powers = sum(np.linalg.matrix_power(operator, k) @ feat for k in range(1, 9))
    expected = 0.05 * feat + 0.95 / 8 * powers
    smoothed = module._smooth(container(feat), graph)
    assert smoothed.dtype == np.float32
    np.testing.assert_allclose(smoothed, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", list(GRAPHS))
def test_cosines_of_pairs_equal_dense_formulas(monkeypatch, name):
    monkeypatch.setattr(module, "_BLOCK_COLUMNS", 2)
    graph = GRAPHS[name]
    feat = np.abs(np.random.default_rng(0).normal(size=(graph.num_nodes, 5))).astype(np.float32)
    feat[1] = 0
    x = normalize(feat)
    looped = dense(graph, torch.ones(graph.num_edges)).numpy() + np.eye(graph.num_nodes)
    operator = looped / np.sqrt(np.outer(looped.sum(1), looped.sum(1)))
    smoothed = normalize(x + operator @ x + operator @ operator @ x)
    pairs = np.array([[0, 1, 0, 2, 1], [1, 2, 3, 3, 3]])
    held_out = LabelledPairs(pairs, np.array([True, False, True, False, True]))
    cosine = module._smoothed_cosine(sp.csr_matrix(x), graph, pairs)
    np.testing.assert_allclose(cosine, (smoothed @ smoothed.T)[tuple(pairs)], atol=1e-6)
    assert link_floors(sp.csr_matrix(feat), graph, held_out) == {
        "features_cosine": link_metrics((x @ x.T)[tuple(pairs)], held_out.is_edge),
        "smoothed_cosine": link_metrics(cosine, held_out.is_edge),
    }


def test_edges_help_only_the_floor_that_sees_them():
    """Words hardly tell the blocks apart; the edges, inside blocks, do."""
    graph, block = cliques(num_cliques=3, size=40)
    block = block.numpy()
    feat = words(block, shared=0.85)
    scores = floors(feat, graph, 3, seed=0, labels=block)
    assert list(scores) == ["features_kmeans", "smooth_kmeans"]
    assert scores["smooth_kmeans"]["nmi"] > 95
    assert scores["features_kmeans"]["nmi"] < 50
    assert scores["features_kmeans"] == clustering_metrics(block, features_kmeans(feat, 3, 0))


def test_points_equal_dense_formula(monkeypatch):
    """What k-means gets, step by step with LAPACK; compared by inner products, free of signs."""
    graph = GRAPHS["random"]
    rng = np.random.default_rng(0)
    dense_feat = rng.random((20, 12)) * (rng.random((20, 12)) < 0.5) * rng.integers(1, 30, (20, 1))
    looped = dense(graph, torch.ones(graph.num_edges, dtype=torch.float64)).numpy() + np.eye(20)
    operator = looped / np.sqrt(np.outer(looped.sum(1), looped.sum(1)))

    def unit_rows(points):
        norm = np.linalg.norm(points, axis=1, keepdims=True)
        return points / np.where(norm > 0, norm, 1)

    def reduced(points):
        left, values, _ = np.linalg.svd(points, full_matrices=False)
        return unit_rows(left[:, :8] * values[:8])

    unit = unit_rows(dense_feat)
    powers = sum(np.linalg.matrix_power(operator, k) @ unit for k in range(1, 9))
    expected = [reduced(unit), reduced(unit_rows(0.05 * unit + 0.95 / 8 * powers))]

    clustered = []
    monkeypatch.setattr(module, "kmeans", lambda points, *_: clustered.append(points))
    feat = sp.csr_matrix(dense_feat.astype(np.float32))
    features_kmeans(feat, 2, seed=0)
    smooth_kmeans(feat, graph, 2, seed=0)
    for points, oracle in zip(clustered, expected, strict=True):
        np.testing.assert_allclose(points @ points.T, oracle @ oracle.T, atol=1e-4)


def test_features_floor_ignores_lengths_of_rows():
    block = np.arange(60) % 3
    feat = words(block)
    scaled = sp.diags(np.linspace(1, 100, 60)).dot(feat).tocsr().astype(np.float32)
    assert clustering_metrics(block, features_kmeans(feat, 3, 0))["acc"] == 100
    assert clustering_metrics(block, features_kmeans(scaled, 3, 0))["acc"] == 100


def test_inputs_are_left_alone():
    graph, block = cliques(num_cliques=3, size=10)
    feat = 3 * words(block.numpy())
    before = feat.copy()
    floors(feat, graph, 3, seed=0, labels=block)
    assert (feat != before).nnz == 0


def test_large_features_are_projected_first(monkeypatch):
    """With a limit that allows 8 columns, smoothing sees 4K = 12, the least that is needed."""
    graph, block = cliques(num_cliques=3, size=30)
    feat = words(block.numpy(), shared=0.5)
    seen = []
    smooth = module._smooth

    def record(feat, graph):
        seen.append(feat.shape)
        return smooth(feat, graph)

    monkeypatch.setattr(module, "_smooth", record)
    exact = smooth_kmeans(feat, graph, 3, seed=0)
    monkeypatch.setattr(module, "DENSE_BYTES_LIMIT", 4 * 90 * 8)
    projected = smooth_kmeans(feat, graph, 3, seed=0)
    monkeypatch.setattr(module, "DENSE_BYTES_LIMIT", 4 * 90 * 20)
    smooth_kmeans(feat, graph, 3, seed=0)
    assert seen == [(90, 40), (90, 12), (90, 20)]
    assert clustering_metrics(block, exact)["acc"] == 100
    assert clustering_metrics(exact, projected)["acc"] == 100


def test_without_edges_smoothing_changes_nothing():
    """S is the identity, so Z = X."""
    feat = words(np.arange(50) % 2)
    smoothed = smooth_kmeans(feat, empty_graph(50), 2, seed=0)
    assert clustering_metrics(features_kmeans(feat, 2, 0), smoothed)["acc"] == 100


def test_zero_rows_and_more_clusters_than_nodes():
    feat = sp.csr_matrix(np.diag([1.0, 1.0, 0.0, 0.0]).astype(np.float32))
    graph, _ = Graph.from_edges(4, [0], [1])
    scores = floors(feat, graph, 10, seed=0, labels=[0, 1, 2, 2])
    assert scores["features_kmeans"]["nmi"] == pytest.approx(100, abs=1e-3)
    assert np.isfinite(list(scores["smooth_kmeans"].values())).all()


def test_no_labels():
    feat = words(np.arange(20) % 2)
    scores = floors(feat, empty_graph(20), 2, seed=0, labels=None)
    assert scores["smooth_kmeans"] == dict.fromkeys(("nmi", "acc", "ari", "f1", "ami"))


def test_same_seed_same_clusters():
    graph, block = cliques(num_cliques=4, size=20)
    feat = words(block.numpy(), shared=0.9)
    for first, second in zip(
        (features_kmeans(feat, 4, 1), smooth_kmeans(feat, graph, 4, 1)),
        (features_kmeans(feat, 4, 1), smooth_kmeans(feat, graph, 4, 1)),
        strict=True,
    ):
        np.testing.assert_array_equal(first, second)
