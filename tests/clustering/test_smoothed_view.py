"""The smoothed view: projection, choice of the own share, training from it."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from paths import CONFIGS
from sklearn.preprocessing import normalize

from user_dgl.clustering.smoothed_view import SELF_SHARES, held_out_scores, smoothed_view
from user_dgl.config import SmoothConfig, SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.features.svd import right_singular_vectors, truncated_svd
from user_dgl.graph import Graph
from user_dgl.graph.propagation import Propagation, smooth
from user_dgl.pipeline.train import train
from user_dgl.training.hooks import Hooks
from user_dgl.training.result import chosen_labels
from user_dgl.training.trainer import Trainer

SMOOTH = (
    "model.num_clusters=3",
    "model.encoder=smooth",
    "model.head=centroid",
    "model.dropout=0",
    "model.logit_dropout=0",
    "model.observed_mix=0",
    "loss.npsi_observed=false",
    "loss.davies_bouldin_space=embedding",
    "structure.prior=critic",
    "train.epochs=10",
    "train.lr=0.02",
)


def _blocks(**settings):
    return block_model(SyntheticConfig(num_nodes=300, num_blocks=3, **settings))


@pytest.fixture(scope="module")
def data():
    return _blocks(average_degree=8.0)


def test_smooth_equals_its_formula(data):
    weight = torch.rand(data.graph.num_edges, generator=torch.Generator().manual_seed(0))
    adjacency = data.graph.to_scipy(weight).toarray() + np.eye(300)
    scale = 1 / np.sqrt(adjacency.sum(1))
    matrix = scale[:, None] * adjacency * scale
    x = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    steps = [np.linalg.matrix_power(matrix, t) @ x for t in (1, 2, 3)]
    expected = 0.3 * x + 0.7 / 3 * sum(steps)
    propagation = Propagation.of(data.graph, weight, "csr")
    found = smooth(propagation, torch.from_numpy(x), 3, 0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_projecting_first_gives_the_projected_rows(data):
    """rownorm(rownorm(H) P) = rownorm(H P): what smoothing few columns rests on."""
    weight = torch.ones(data.graph.num_edges)
    config = SmoothConfig(hops=4, self_share=0.2, num_components=100)
    view = smoothed_view(data.graph, weight, data.feat, config, 3, 0, "csr")
    assert view.points.shape == (300, 12)
    assert view.scores == {}
    propagation = Propagation.of(data.graph, weight, "csr")
    found = normalize(smooth(propagation, view.points, 4, 0.2).numpy())
    reduced = torch.from_numpy(truncated_svd(normalize(data.feat), 100, 0))
    wide = normalize(smooth(propagation, reduced, 4, 0.2).numpy())
    expected = normalize(wide @ right_singular_vectors(wide, 12, 0))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def _chosen(data, graph=None):
    graph = data.graph if graph is None else graph
    weight = torch.ones(graph.num_edges)
    reduced = torch.from_numpy(truncated_svd(normalize(data.feat), 64, 0))
    scores = held_out_scores(graph, weight, reduced, 8, 12, 0, "csr")
    assert list(scores) == list(SELF_SHARES)
    assert all(0 <= score <= 100 for score in scores.values())
    return max(scores, key=scores.get)


def test_own_share_is_small_where_neighbours_say_more_and_large_where_features_do():
    short_texts = _blocks(average_degree=16.0, mixing=0.0, words_per_node=5, topic_share=0.3)
    long_texts = _blocks(average_degree=4.0, mixing=0.6, words_per_node=100, topic_share=0.8)
    assert _chosen(short_texts) < _chosen(long_texts)


def test_edges_left_out_are_left_out(data):
    """Features that say nothing foretell no edge of a graph without structure."""
    rng = np.random.default_rng(0)
    graph, _ = Graph.from_edges(300, *rng.integers(0, 300, (2, 1200)))
    reduced = torch.from_numpy(rng.normal(size=(300, 30)).astype(np.float32))
    scores = held_out_scores(graph, torch.ones(graph.num_edges), reduced, 4, 12, 0, "csr")
    # Smoothing over the edges that are scored would give far more.
    assert all(35 < score < 65 for score in scores.values())


def test_too_few_edges_to_hold_out(data):
    graph, _ = Graph.from_edges(300, [0, 1], [1, 2])
    view = smoothed_view(graph, torch.ones(2), data.feat, SmoothConfig(), 3, 0, "csr")
    assert view.scores == {}
    assert view.self_share in SELF_SHARES


def test_constant_and_empty_columns_do_no_harm(data):
    feat = sp.csr_matrix(np.c_[np.ones((300, 3)), np.zeros((300, 3))])
    weight = torch.ones(data.graph.num_edges)
    view = smoothed_view(data.graph, weight, feat, SmoothConfig(), 3, 0, "csr")
    assert np.isfinite(list(view.scores.values())).all()
    assert torch.isfinite(view.points).all()


def test_centroids_are_those_of_kmeans(data):
    weight = torch.ones(data.graph.num_edges)
    view = smoothed_view(data.graph, weight, data.feat, SmoothConfig(hops=4), 3, 0, "csr")
    propagation = Propagation.of(data.graph, weight, "csr")
    embedding = normalize(smooth(propagation, view.points, 4, view.self_share).numpy())
    for cluster in range(3):
        mean = embedding[view.clusters == cluster].mean(0)
        np.testing.assert_allclose(view.centroids[cluster], mean / np.linalg.norm(mean), atol=1e-5)


@pytest.mark.parametrize(
    "overrides",
    [
        ("loss.davies_bouldin_weight=0.5", "loss.mixture_weight=1", "train.structure_lr=0"),
        ("loss.davies_bouldin_weight=0.1", "train.structure_lr=0.02"),
        ("loss.mixture_weight=1", "loss.davies_bouldin_space=features"),
    ],
    ids=["fixed", "learned", "features"],
)
def test_training_from_the_view(data, overrides):
    rows = []
    config = load_config(None, [*SMOOTH, *overrides])
    fit = Trainer(data.graph, data.feat, config, Hooks(record=rows.append)).fit()
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert set(fit.assignments) == {"head", "kmeans"}
    assert clustering_metrics(data.labels, fit.clusters)["nmi"] > 80
    trainer = Trainer(data.graph, data.feat, config)
    moved = np.abs(fit.weight - trainer.prior.weight.numpy()).max()
    assert (moved > 0.01) == ("train.structure_lr=0" not in overrides)


def test_labels_rule(data):
    def fit(rule):
        overrides = [*SMOOTH, "loss.mixture_weight=0.1", f"model.labels={rule}"]
        return Trainer(data.graph, data.feat, load_config(None, overrides)).fit()

    head, kmeans, auto = fit("head"), fit("kmeans"), fit("auto")
    assert head.labels_from == "head"
    assert np.array_equal(head.clusters, head.assignments["head"])
    assert np.array_equal(kmeans.clusters, kmeans.assignments["kmeans"])
    assert np.array_equal(auto.clusters, auto.assignments[auto.labels_from])


@pytest.mark.parametrize(("looser", "expected"), [(0.0, "head"), (0.01, "head"), (0.03, "kmeans")])
def test_auto_labels_take_kmeans_where_the_head_is_looser(data, monkeypatch, looser, expected):
    given = iter([0.5 * (1 - looser), 0.5])  # of the head, then of k-means
    monkeypatch.setattr("user_dgl.training.result.silhouette", lambda *_: next(given))
    config = load_config(None, [*SMOOTH, "model.labels=auto"])
    assert Trainer(data.graph, data.feat, config).fit().labels_from == expected


def test_auto_labels_take_kmeans_where_the_head_gives_clusters_up():
    """However compact those left are: two far groups and a cluster split within one of them."""
    config = load_config(None, [*SMOOTH, "model.labels=auto"])
    points = np.repeat([[0.0, 1.0], [1.0, 0.0]], 150, axis=0)
    merged = np.repeat([0, 1], 150)
    split = np.where(np.arange(300) < 75, 2, merged)
    assert chosen_labels(config, {"head": merged, "kmeans": split}, points) == "kmeans"
    assert chosen_labels(config, {"head": merged, "kmeans": merged}, points) == "head"


def test_resumed_equals_uninterrupted(data):
    config = load_config(None, [*SMOOTH, "train.checkpoint_every=4"])
    saved = []

    def keep(state):
        saved.append(copy.deepcopy(state))

    whole = Trainer(data.graph, data.feat, config, Hooks(save=keep)).fit()
    assert [state["progress"]["epoch"] for state in saved] == [0, 4, 8, 10]
    again = Trainer(data.graph, data.feat, config).fit(saved[1])
    assert np.array_equal(again.clusters, whole.clusters)


def test_permuted_labels_change_no_output(data, tmp_path):
    """Labels reach nothing but the scores: with others in their place all files stay the same."""
    np.savetxt(tmp_path / "edges.csv", np.stack([data.graph.src, data.graph.dst], 1), "%d", ",")
    sp.save_npz(tmp_path / "features.npz", data.feat)
    outputs = []
    for name in ("given", "permuted"):
        labels = data.labels
        if name == "permuted":
            labels = np.random.default_rng(1).permutation(labels)
        np.save(tmp_path / "labels.npy", labels)
        files = {"edges": "edges.csv", "features": "features.npz", "labels": "labels.npy"}
        config = load_config(
            CONFIGS / "default.yaml",
            [
                "data.kind=edge_list",
                f"data.root={tmp_path}",
                *(f"data.{key}={file}" for key, file in files.items()),
                "model.num_clusters=3",
                "data.noise.kind=random_flip",
                "data.noise.rate=0.2",
            ],
        )
        result = train(config, tmp_path / name, lambda line: None)
        files = ("clusters.csv", "embedding.npy", "learned_graph.npz")
        outputs.append([(tmp_path / name / file).read_bytes() for file in files])
        outputs[-1].append({k: result[k] for k in ("loss", "scores", "view", "structure")})
        outputs[-1].append(result["metrics"]["nmi"])
    assert outputs[0][:-1] == outputs[1][:-1]
    assert outputs[0][-1] > 50 > outputs[1][-1]
