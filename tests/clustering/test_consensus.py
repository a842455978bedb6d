"""Joining replicas: the clusters, the matched mean of Y, the embedding."""

import numpy as np
import pytest

from user_dgl.clustering.consensus import consensus_of, mean_probs
from user_dgl.evaluation.label_metrics import clustering_metrics

KINDS = ("labels", "hidden")


def _replicas(num_replicas=12, wrong=0.4, num_nodes=120, num_clusters=3, seed=0):
    """Replicas that each number the clusters their own way and get a share of the nodes wrong."""
    rng = np.random.default_rng(seed)
    truth = np.arange(num_nodes) % num_clusters
    probs, embeddings = [], []
    for _ in range(num_replicas):
        other = rng.integers(0, num_clusters, num_nodes)
        said = np.where(rng.random(num_nodes) < wrong, other, truth)
        said = rng.permutation(num_clusters)[said]
        logits = 3 * np.eye(num_clusters)[said] + rng.normal(size=(num_nodes, num_clusters))
        probs.append(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))
        turned = np.linalg.qr(rng.normal(size=(5, 5)))[0][:num_clusters]
        embeddings.append((logits @ turned).astype(np.float32))
    return truth, np.stack(probs, 1).astype(np.float32), embeddings


@pytest.mark.parametrize("kind", KINDS)
def test_consensus_is_better_than_every_replica(kind):
    truth, probs, embeddings = _replicas()
    single = [clustering_metrics(truth, probs[:, r].argmax(1))["acc"] for r in range(12)]
    joined = consensus_of(kind, probs, embeddings, seed=0)
    assert max(single) < 85
    assert clustering_metrics(truth, joined.clusters)["acc"] > 95
    assert clustering_metrics(truth, joined.probs.argmax(1))["acc"] > 95


def test_each_kind_reads_its_own_part():
    truth, probs, embeddings = _replicas()
    shuffled = np.random.default_rng(1).permutation(len(truth))
    for kind, args in (
        ("labels", (probs, [e[shuffled] for e in embeddings])),
        ("hidden", (probs[shuffled], embeddings)),
    ):
        joined = consensus_of(kind, *args, seed=0)
        assert clustering_metrics(truth, joined.clusters)["acc"] > 95


def test_no_replica_outweighs_another_by_its_scale():
    truth, probs, embeddings = _replicas()
    rng = np.random.default_rng(0)
    loud = [1e4 * rng.normal(size=embeddings[0].shape).astype(np.float32), *embeddings]
    probs = np.concatenate([probs, probs[:, :1]], 1)
    joined = consensus_of("hidden", probs, loud, seed=0)
    assert clustering_metrics(truth, joined.clusters)["acc"] > 95


def test_mean_probs_puts_columns_in_the_order_of_the_clusters():
    rng = np.random.default_rng(0)
    clusters = np.arange(30) % 4
    logits = 4 * np.eye(4)[clusters] + rng.normal(size=(30, 4))
    ordered = (np.exp(logits) / np.exp(logits).sum(1, keepdims=True)).astype(np.float32)
    orders = [rng.permutation(4) for _ in range(5)]
    assert len({tuple(order) for order in orders}) > 2
    probs = np.stack([ordered[:, order] for order in orders], 1)
    np.testing.assert_allclose(mean_probs(probs, clusters), ordered, rtol=1e-5)


def test_matching_is_one_to_one():
    """Two columns fit cluster 0 best, yet each cluster gets one."""
    clusters = np.array([0, 0, 0, 0, 0, 1])
    y = np.array([[0.6, 0.4]] * 5 + [[0.5, 0.5]], dtype=np.float32)
    found = mean_probs(y[:, None], clusters)
    np.testing.assert_allclose(found, y)
    np.testing.assert_allclose(mean_probs(y[:, None, ::-1], clusters), y)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_mean_add_up_to_one_and_the_width_is_bounded(kind):
    _, probs, embeddings = _replicas()
    wide = [np.tile(embedding, (1, 30)) + index for index, embedding in enumerate(embeddings)]
    joined = consensus_of(kind, probs, wide, seed=0)
    np.testing.assert_allclose(joined.probs.sum(1), 1, rtol=1e-5)
    assert joined.embedding.shape == (120, 12)  # 4 K
    assert joined.embedding.dtype == np.float32
    assert joined.clusters.dtype == np.int64


@pytest.mark.parametrize("kind", KINDS)
def test_embedding_keeps_the_points_that_were_clustered(kind):
    """Inner products of the leading directions against LAPACK's."""
    _, probs, embeddings = _replicas(num_replicas=3)
    points = np.concatenate([np.sqrt(probs[:, r]) for r in range(3)], 1)
    if kind == "hidden":
        units = [e / np.linalg.norm(e, axis=1, keepdims=True) for e in embeddings]
        points = np.concatenate(units, 1)
    left, values, _ = np.linalg.svd(points, full_matrices=False)
    kept = left[:, :12] * values[:12]
    found = consensus_of(kind, probs, embeddings, seed=0).embedding
    np.testing.assert_allclose(found @ found.T, kept @ kept.T, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_that_say_nothing_give_one_cluster(kind):
    probs = np.full((10, 2, 3), 1 / 3, dtype=np.float32)
    joined = consensus_of(kind, probs, [np.zeros((10, 4), dtype=np.float32)] * 2, seed=0)
    assert np.unique(joined.clusters).size == 1
    np.testing.assert_allclose(joined.probs, 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_consensus(kind):
    _, probs, embeddings = _replicas(wrong=0.9)
    first, again = (consensus_of(kind, probs, embeddings, seed=3) for _ in range(2))
    assert np.array_equal(first.clusters, again.clusters)
    assert np.array_equal(first.embedding, again.embedding)
