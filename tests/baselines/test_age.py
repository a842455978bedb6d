"""AGE beside a dense oracle, and the pairs that it alone chooses again and again."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from dense_baselines import (
    Adam,
    adjacency_of,
    assert_terms,
    assert_weights,
    draws_of,
    normalised,
    tiny_graph,
    tiny_trainer,
    train_epochs,
    weights_of,
)
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score, davies_bouldin_score
from torch.nn.functional import binary_cross_entropy_with_logits

from user_dgl.baselines import age
from user_dgl.errors import InputError

SMALL = ("baseline.hidden_feats=[6]", "baseline.hops=3", "baseline.positive_share=0.3")


def embedded(points, weights):
    """Z: a linear map, each row scaled to 0..1, then to length 1."""
    weight, bias = weights
    rows = points @ weight.t() + bias
    low, high = rows.min(1, keepdim=True)[0], rows.max(1, keepdim=True)[0]
    rows = (rows - low) / (high - low)
    return rows / rows.norm(dim=1, keepdim=True)


def test_the_filter_is_that_of_the_paper():
    r"""(I - 2/3 L)^t X with L = I - S: k is 1 / lambda_max, and lambda_max about 3/2."""
    trainer = tiny_trainer("age", *SMALL)
    identity = torch.eye(12, dtype=torch.float64)
    laplacian = identity - normalised(adjacency_of(trainer.graph))
    smooth = torch.linalg.matrix_power(identity - 2 / 3 * laplacian, 3)
    feat = torch.from_numpy(trainer.feat.toarray())
    torch.testing.assert_close(trainer.method.points, smooth @ feat)


@pytest.mark.parametrize("batch", [10_000, 16])
def test_loss_and_steps_are_those_of_the_paper(batch, monkeypatch):
    monkeypatch.setattr(age, "_BATCH", batch)
    trainer = tiny_trainer("age", *SMALL)
    method = trainer.method
    weights = weights_of(method)
    points, positive, negative = method.points, method._positive, method._negative
    count = round(0.3 * 12**2)
    assert len(positive) == count
    assert len(negative) == 10 * count  # for ten epochs
    adam = Adam(weights.values(), 0.02)
    label = torch.tensor([1.0, 0.0], dtype=torch.float64)
    expected = []
    for epoch in range(3):
        draws_of(trainer, epoch)
        order, losses = torch.randperm(count), []
        others = negative[epoch * count : (epoch + 1) * count]
        for start in range(0, count, batch):
            part = slice(start, start + batch)
            pairs = torch.cat([positive[order[part]], others[part]])
            hidden = embedded(points, weights.values())
            alike = (hidden @ hidden.t())[tuple(pairs.t())]
            # As in the authors' code, the similarity is the logit of the cross-entropy.
            labels = label.repeat_interleave(len(pairs) // 2)
            losses.append(adam.step(binary_cross_entropy_with_logits(alike, labels)))
        expected.append({"similarity": np.mean(losses)})
    assert_terms(train_epochs(trainer, 3), expected)
    assert_weights(method, weights)
    torch.testing.assert_close(method.embed(), embedded(points, weights.values()))


@pytest.fixture
def choices(monkeypatch):
    """The number of pairs that negatives are drawn from, of each choice."""
    seen, randint = [], torch.randint

    def note(high, size):
        seen.append(high)
        return randint(high, size)

    monkeypatch.setattr(age.torch, "randint", note)
    return seen


def test_pairs_are_the_most_and_the_least_alike_and_the_thresholds_move(choices):
    graph = tiny_graph(40, 120)
    feat = sp.csr_matrix(np.random.default_rng(0).random((40, 8)))
    settings = ("baseline.positive_share=0.1", "baseline.epochs=40", "baseline.lr=0.05")
    trainer = tiny_trainer("age", *settings, graph=graph, feat=feat)
    method, pairs = trainer.method, 40**2
    unit = method.points / method.points.norm(dim=1, keepdim=True)
    for choice in range(5):
        hidden = unit if choice == 0 else method.embed().detach()
        alike, done = hidden @ hidden.t(), choice / 4
        # From 10 % of the pairs to 0.1 %, and from 90 % to 50 %, in equal steps.
        num_positive = round((0.1 + done * (0.001 - 0.1)) * pairs)
        num_negative = round((0.9 + done * (0.5 - 0.9)) * pairs)
        ascending = alike.flatten().sort()[0]
        positive = alike[tuple(method._positive.t())].sort()[0]
        torch.testing.assert_close(positive, ascending[-num_positive:])
        assert len(method._positive.unique(dim=0)) == num_positive
        negative = alike[tuple(method._negative.t())]
        assert negative.max() <= ascending[num_negative - 1] + 1e-12
        # Pairs as alike as the last negative one may be among them as well.
        assert num_negative <= choices[choice] <= num_negative + 1
        assert len(method._negative) == 10 * num_positive
        if choice < 4:
            train_epochs(trainer, 10)
    assert len(choices) == 5


def test_the_choice_with_the_lowest_davies_bouldin_index_is_the_result(monkeypatch):
    graph = tiny_graph(40, 120)
    feat = sp.csr_matrix(np.random.default_rng(0).random((40, 8)))
    settings = ("baseline.positive_share=0.1", "baseline.epochs=60", "baseline.lr=0.05")
    trainer = tiny_trainer("age", *settings, graph=graph, feat=feat)
    method, seen = trainer.method, []
    spectral = method._spectral

    def note(points):
        clusters, geometry = spectral(points)
        seen.append((davies_bouldin_score(points @ points.T, clusters), points, clusters))
        return clusters, geometry

    monkeypatch.setattr(method, "_spectral", note)
    train_epochs(trainer, 60)
    index = [each[0] for each in seen]
    assert len(index) == 6
    best = int(np.argmin(index))
    assert 0 < best < 5, "neither the first nor the last choice, so that the index decides"
    embedding, clusters = method.read_out()
    np.testing.assert_allclose(embedding, seen[best][1])
    np.testing.assert_array_equal(clusters, seen[best][2])


def test_clusters_of_fewer_dimensions_than_clusters():
    """Vectors of eigenvalues that are rounding do not count."""
    rng = np.random.default_rng(0)
    blobs = np.repeat(np.arange(8), 20)
    # All points lie in a plane, whatever the width of the embedding.
    angle = blobs * 0.19 + 0.002 * rng.normal(size=160)
    plane = np.stack([np.cos(angle), np.sin(angle)], 1)
    graph, feat = tiny_graph(160, 400), sp.csr_matrix(rng.random((160, 8)))
    method = tiny_trainer("age", "model.num_clusters=8", graph=graph, feat=feat).method
    wide = plane @ np.linalg.qr(rng.random((12, 2)))[0].T
    clusters, _ = method._spectral(wide)
    assert adjusted_rand_score(blobs, clusters) == 1


def test_one_column_is_refused():
    with pytest.raises(InputError, match="give 2 or more"):
        tiny_trainer("age", "baseline.hidden_feats=[1]")


def test_clusters_are_those_of_the_dense_similarities():
    graph = tiny_graph(40, 120)
    feat = sp.csr_matrix(np.random.default_rng(0).random((40, 8)))
    method = tiny_trainer("age", graph=graph, feat=feat).method
    hidden = method.embed().detach().numpy()
    clusters, geometry = method._spectral(hidden)
    alike = hidden @ hidden.T
    np.testing.assert_allclose(pdist(geometry), pdist(alike), rtol=1e-6)
    scale = 1 / np.sqrt(alike.sum(1))
    _, vectors = np.linalg.eigh(scale[:, None] * alike * scale)
    top = vectors[:, -3:] * scale[:, None]
    # Points of one cluster are nearer to its mean than to the others'.
    means = np.stack([top[clusters == k].mean(0) for k in range(3)])
    distance = ((top[:, None] - means) ** 2).sum(2)
    np.testing.assert_array_equal(distance.argmin(1), clusters)
