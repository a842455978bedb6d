"""The smoothed view: projection, choice by bits, training from it."""

import copy
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import with_random_weights
from paths import CONFIGS
from sklearn.preprocessing import normalize

from user_dgl.clustering import smoothed_view as smoothed_view_module
from user_dgl.clustering.agreement import pairwise_nmi
from user_dgl.clustering.canonical import canonical_axes
from user_dgl.clustering.code_bits import CodeBits
from user_dgl.clustering.kmeans import kmeans
from user_dgl.clustering.num_clusters import num_clusters_curve
from user_dgl.clustering.smoothed_view import (
    HOPS,
    SELF_SHARES,
    WEIGHT_POWERS,
    _refined,
    graph_view,
    smoothed_embedding,
    smoothed_view,
)
from user_dgl.clustering.smoothing import Smoothing, constant_of, with_constant
from user_dgl.clustering.view_choice import ViewCandidate, choose, score_of
from user_dgl.config import ModelConfig, SmoothConfig, SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.features.rows import ALL
from user_dgl.features.svd import truncated_svd
from user_dgl.graph import Graph
from user_dgl.graph.propagation import Propagation, smooth
from user_dgl.pipeline.train import train
from user_dgl.training.hooks import Hooks
from user_dgl.training.trainer import Trainer

AXES = ("leading", "canonical")
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
    config = SmoothConfig(hops=4, self_share=0.2, axes="leading", num_components=100)
    view = smoothed_view(data.graph, weight, data.feat, config, 3, 0, "csr")
    assert view.points.shape == (300, 12)
    assert len(view.candidates) == 1
    propagation = Propagation.of(data.graph, weight, "csr")
    found = normalize(smooth(propagation, view.points, 4, 0.2).numpy())
    reduced = torch.from_numpy(truncated_svd(normalize(data.feat), 100, 0))
    wide = normalize(smooth(propagation, reduced, 4, 0.2).numpy())
    expected = normalize(wide @ np.linalg.svd(wide)[2][:12].T)
    # The axes have no sign, but the cosines of the rows do.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-3)


def test_canonical_axes_are_applied_before_the_projection(data):
    weight = torch.ones(data.graph.num_edges)
    config = SmoothConfig(hops=4, self_share=0.2, axes="canonical", num_components=100)
    view = smoothed_view(data.graph, weight, data.feat, config, 3, 0, "csr")
    propagation = Propagation.of(data.graph, weight, "csr")
    found = normalize(smooth(propagation, view.points, 4, 0.2).numpy())
    reduced = torch.from_numpy(truncated_svd(normalize(data.feat), 100, 0))
    smoothing = Smoothing(data.graph, weight, "csr", ALL)
    axes = canonical_axes(reduced, smoothing.neighbours(reduced), data.graph.num_edges, ALL)
    wide = normalize(smooth(propagation, reduced @ axes, 4, 0.2).numpy())
    expected = normalize(wide @ np.linalg.svd(wide)[2][:12].T)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-3)
    # New nodes are mapped by the same matrix.
    mapped = normalize(view.projection(data.feat).numpy())
    assert (mapped * normalize(view.points.numpy())).sum(1).min() > 0.99


def test_leading_axes_stand_in_where_neighbours_agree_in_nothing():
    """Every edge joins opposite features, so that no direction is shared."""
    side = np.repeat([0, 1], 50)
    graph, _ = Graph.from_edges(100, np.arange(50), np.arange(50, 100))
    feat = sp.csr_matrix((2.0 * side[:, None] - 1).astype(np.float32))
    config = SmoothConfig(hops=1, self_share=0.5, axes="canonical")
    view = smoothed_view(graph, torch.ones(50), feat, config, 2, 0, "csr")
    assert [each.axes for each in view.candidates] == ["leading"]


def test_all_views_are_smoothed_by_the_formula(data):
    """Views of one power share their steps, and must not share more."""
    graph = with_random_weights(data.graph)
    weight = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(0)) + 0.1
    x = torch.randn(300, 5, generator=torch.Generator().manual_seed(1))
    views = [
        (hops, share, power) for power in (0.0, 1.5) for hops in (2, 5) for share in (0.1, 0.6)
    ]
    views.append((2, 1.0, 1.5))
    smoothing = Smoothing(graph, weight, "csr", ALL)
    found = {view: points.clone() for view, points in smoothing.views(x, views)}
    assert set(found) == set(views)
    for (hops, share, power), points in found.items():
        powered = graph.weight * (weight / graph.weight) ** power
        expected = smooth(Propagation.of(graph, powered, "csr"), x, hops, share)
        torch.testing.assert_close(points, expected, rtol=1e-4, atol=1e-5)


def test_score_is_the_bits_over_the_root_of_the_entropy():
    def score(bits, *clusters):
        return score_of(bits, np.array(clusters), 4, ALL)

    assert score(90.0, 0, 0, 1, 2) == pytest.approx(90 / math.sqrt(1.5))
    assert score(90.0, 1, 1, 1, 3) > score(90.0, 1, 1, 3, 3)
    assert score(-90.0, 0, 0, 1, 2) == -90
    assert math.isfinite(score(90.0, 0, 0, 0, 0))


def test_bits_of_a_view_are_those_of_its_clusters_on_edges_and_features():
    data = _blocks(average_degree=12.0, words_per_node=30, topic_share=0.6)
    view = _view(data, hops=4, self_share=0.2, axes="leading")
    (candidate,) = view.candidates
    # The clusters are so clear that k-means finds them on the view in any form.
    propagation = Propagation.of(data.graph, torch.ones(data.graph.num_edges), "csr")
    reduced = torch.from_numpy(truncated_svd(normalize(data.feat), 100, 0))
    clusters = kmeans(normalize(smooth(propagation, reduced, 4, 0.2).numpy()), 3, 1)
    np.testing.assert_array_equal(pairwise_nmi([clusters, view.kmeans])[0, 1], 1)
    code = CodeBits(data.graph.to_scipy().astype(np.float64), data.feat, reduced)
    edges, words = code.edges(clusters, 3), code.features(clusters, 3)
    assert candidate.edge_bits == pytest.approx(edges)
    assert candidate.feature_bits == pytest.approx(words)
    assert candidate.score == pytest.approx(score_of(edges + words, clusters, 3, ALL))
    assert min(edges, words) > 100


def test_words_move_nodes_whose_edges_say_nothing():
    """With words as clear as edges, nodes without a typical neighbour go where their words are.

    In each of four steps half of the nodes that would gain enough moves, so a sixteenth of the
    nodes in a wrong cluster is left, and not fewer: more steps lead away from the view.
    """
    data = _blocks(average_degree=3.0, words_per_node=40, topic_share=0.7)
    code = CodeBits(data.graph.to_scipy().astype(np.float64), data.feat, torch.zeros(300, 1))
    rng = np.random.default_rng(0)
    start = np.where(rng.random(300) < 0.3, rng.integers(0, 3, 300), data.labels)
    clusters, bits = _refined(code, start, 3, 0)
    wrong = [(_refined(code, start, 3, seed)[0] != data.labels).sum() for seed in range(5)]
    assert 1 / 32 < np.mean(wrong) / (start != data.labels).sum() < 1 / 8
    assert bits == pytest.approx((code.edges(clusters, 3), code.features(clusters, 3)))


def test_nodes_that_gain_little_stay():
    """A node moves if a word says so clearly, and stays if it says so only a little."""
    labels = np.repeat([0, 1], 200)
    rng = np.random.default_rng(0)
    words = np.zeros((400, 13))
    words[:, :6] = (labels[:, None] == 0) & (rng.random((400, 6)) < 0.95)
    words[:, 6:12] = (labels[:, None] == 1) & (rng.random((400, 6)) < 0.95)
    words[:, 12] = rng.random(400) < np.where(labels == 0, 0.3, 0.5)  # says little
    start = labels.copy()
    start[:20] = 1
    words[:10], words[10:20] = 0, 0
    words[:10, 0] = 1  # clearly of cluster 0
    start[390:] = 0
    words[390:] = 0
    words[390:, 12] = 1  # a little more often in cluster 1
    code = CodeBits(
        sp.csr_matrix((400, 400)), sp.csr_matrix(words.astype(np.float32)), torch.zeros(400, 1)
    )
    clusters, _ = _refined(code, start, 2, 0)
    assert (clusters[:10] == 0).mean() > 0.7
    assert (clusters[390:] == 0).all()


def test_real_values_count_when_nodes_move():
    """Where the edges say nothing, nodes move to the clusters that their values say."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 100)
    values = (rng.normal(size=(300, 6)) + 3 * np.eye(3, 6)[labels]).astype(np.float32)
    graph, _ = Graph.from_edges(300, *rng.integers(0, 300, (2, 1200)))
    adjacency, feat = graph.to_scipy().astype(np.float64), sp.csr_matrix(values)
    start = np.where(rng.random(300) < 0.3, rng.integers(0, 3, 300), labels)
    code = CodeBits(adjacency, feat, torch.from_numpy(values))
    clusters, bits = _refined(code, start, 3, 0)
    assert (clusters != labels).mean() < (start != labels).mean() / 2
    assert bits == pytest.approx((code.edges(clusters, 3), code.features(clusters, 3)))
    assert sum(bits) > code.edges(start, 3) + code.features(start, 3)


def _view(data, **settings):
    weight = torch.ones(data.graph.num_edges)
    return smoothed_view(data.graph, weight, data.feat, SmoothConfig(**settings), 3, 0, "csr")


def test_own_share_is_small_where_neighbours_say_more_and_large_where_features_do():
    short_texts = _blocks(average_degree=16.0, mixing=0.0, words_per_node=5, topic_share=0.3)
    long_texts = _blocks(average_degree=4.0, mixing=0.9, words_per_node=100, topic_share=0.8)
    assert _view(short_texts).self_share < _view(long_texts).self_share


def test_features_alone_are_taken_where_edges_join_unlike_nodes():
    """Every edge joins two clusters: a mean over neighbours mixes what the features tell apart."""
    data = _blocks(average_degree=8.0, mixing=1.0, words_per_node=40, topic_share=0.5)
    view = _view(data)
    assert view.self_share >= 0.5
    assert clustering_metrics(data.labels, view.clusters)["nmi"] > 80


def test_candidates_are_the_values_that_the_settings_leave_open(data):
    weight = torch.linspace(0.1, 1, data.graph.num_edges)

    def candidates(**settings):
        config = SmoothConfig(**settings)
        view = smoothed_view(data.graph, weight, data.feat, config, 3, 0, "csr")
        assert sum(each.chosen for each in view.candidates) == 1
        return view.candidates

    every = candidates()
    by_axes = {kind: [each for each in every if each.axes == kind] for kind in AXES}
    assert len(by_axes["canonical"]) == len(HOPS) * len(SELF_SHARES) * len(WEIGHT_POWERS) + 1
    assert len(by_axes["leading"]) == len(HOPS) * len(SELF_SHARES) + 1
    assert {each.weight_power for each in by_axes["leading"]} == {1.0}
    assert len(candidates(axes="leading")) == len(by_axes["canonical"])
    assert len({each.name for each in every}) == len(every)
    fixed = candidates(hops=3, self_share=0.2, weight_power=0.5)
    assert [each.axes for each in fixed] == list(AXES)
    assert len(candidates(hops=3, self_share=0.2, weight_power=0.5, axes="canonical")) == 1
    assert {each.weight_power for each in candidates(weight_power=2.0)} == {2.0}
    assert [each.axes for each in candidates(self_share=1.0)] == ["leading"]
    assert len(candidates(self_share=1.0, axes="canonical")) == 1
    # All powers of weights that are 1 are the same.
    assert len(_view(data).candidates) == 2 * len(by_axes["leading"])


def test_choice_among_near_equal_scores_is_the_one_most_like_the_others():
    same = np.repeat([0, 1, 2], 4)
    alike = np.where(np.arange(12) == 0, 1, same)
    other = np.tile([0, 1, 2], 4)

    def chosen(*scores):
        views = [ViewCandidate(4, 0.2, 1.0, "leading", 0.0, 0.0, score) for score in scores]
        place, found = choose(views, [other, same, alike])
        assert [each.chosen for each in found] == [i == place for i in range(3)]
        assert found[0].agreement < found[1].agreement
        return place

    assert chosen(100.0, 99.6, 90.0) == 1
    assert chosen(100.0, 99.4, 99.4) == 0
    # Nothing was found, so that all scores are negative.
    assert chosen(-100.0, -50.0, -90.0) == 1


@pytest.mark.parametrize(("moved", "kept"), [(1, True), (150, False)])
def test_more_starts_replace_the_chosen_clusters_unless_they_save_much_less(
    monkeypatch, moved, kept
):
    """The last k-means has more starts; here it finds the chosen clusters with some nodes moved."""
    data = _blocks(average_degree=6.0, words_per_node=30, topic_share=0.5)
    found = []

    def few_starts_then_worse(points, num_clusters, seed, starts=None, held=ALL):
        if starts is not None:
            return kmeans(points, num_clusters, seed, starts, held=held)
        clusters = kmeans(points, num_clusters, seed, held=held)
        clusters[:moved] = (clusters[:moved] + 1) % num_clusters
        found.append(clusters)
        return clusters

    monkeypatch.setattr(smoothed_view_module, "kmeans", few_starts_then_worse)
    view = _view(data)
    (last,) = found
    assert np.array_equal(view.kmeans, last) == kept
    if not kept:
        chosen = next(each for each in view.candidates if each.chosen)
        code = CodeBits(data.graph.to_scipy().astype(np.float64), data.feat, torch.zeros(300, 1))
        assert code.edges(view.kmeans, 3) == pytest.approx(chosen.edge_bits)


def test_moving_nodes_saves_more_bits():
    data = _blocks(average_degree=6.0, words_per_node=10, topic_share=0.3)
    view = _view(data)
    code = CodeBits(data.graph.to_scipy(), data.feat, view.points)

    def bits(clusters):
        return code.edges(clusters, 3) + code.features(clusters, 3)

    assert bits(view.clusters) > bits(view.kmeans)
    assert sum(view.refined_bits.values()) == pytest.approx(bits(view.clusters))


def test_edges_that_have_nothing_in_common_with_the_features_are_reported():
    structured = _blocks(average_degree=8.0, words_per_node=40, topic_share=0.5)
    assert _view(structured).warnings == []
    rng = np.random.default_rng(0)
    graph, _ = Graph.from_edges(300, *rng.integers(0, 300, (2, 1200)))
    weight = torch.ones(graph.num_edges)
    view = smoothed_view(graph, weight, structured.feat, SmoothConfig(), 3, 0, "csr")
    assert "nothing in common" in view.warnings[0]


def test_edges_decide_where_the_features_say_nothing():
    """The degree as a feature is a common stand-in, and a constant one says nothing at all."""
    data = block_model(SyntheticConfig(num_nodes=400, num_blocks=4, average_degree=12.0))
    weight = torch.ones(data.graph.num_edges)
    degree = data.graph.degree.numpy()
    for feat in (np.eye(degree.max() + 1)[degree], np.ones((400, 3))):
        feat = sp.csr_matrix(feat)
        view = smoothed_view(data.graph, weight, feat, SmoothConfig(), 4, 0, "csr")
        assert view.reads_edges
        assert any("edges alone" in warning for warning in view.warnings)
        assert clustering_metrics(data.labels, view.clusters)["nmi"] > 90
        kept = SmoothConfig(source="features")
        assert not smoothed_view(data.graph, weight, feat, kept, 4, 0, "csr").reads_edges


def test_no_edges():
    data = _blocks(average_degree=8.0, words_per_node=40, topic_share=0.5)
    graph, _ = Graph.from_edges(300, [], [])
    view = smoothed_view(graph, torch.ones(0), data.feat, SmoothConfig(), 3, 0, "csr")
    assert view.warnings == []
    assert clustering_metrics(data.labels, view.clusters)["nmi"] > 80
    assert len(graph_view(graph, 3, 0).clusters) == 300


def test_no_edges_and_features_that_say_nothing():
    """The edges cannot save more bits where there are none."""
    graph, _ = Graph.from_edges(100, [], [])
    values = sp.csr_matrix(np.random.default_rng(0).normal(size=(100, 64)).astype(np.float32))
    view = smoothed_view(graph, torch.ones(0), values, SmoothConfig(), 2, 0, "csr")
    assert len(np.unique(view.clusters)) == 2
    assert not view.reads_edges
    assert not any("come from the edges alone" in warning for warning in view.warnings)


def test_features_without_words_in_common_are_reported(data):
    """Each node has words of its own, so that no clustering says anything about them."""
    feat = sp.kron(sp.eye(300), np.ones((1, 3)), format="csr")
    weight = torch.ones(data.graph.num_edges)
    view = smoothed_view(data.graph, weight, feat, SmoothConfig(), 3, 0, "csr")
    assert any("features save no bits" in warning for warning in view.warnings)


def test_few_edges(data):
    graph, _ = Graph.from_edges(300, [0, 1], [1, 2])
    view = smoothed_view(graph, torch.ones(2), data.feat, SmoothConfig(), 3, 0, "csr")
    assert len(np.unique(view.clusters)) == 3


def test_graph_view_of_a_graph_without_features():
    data = _blocks(average_degree=16.0)
    view = graph_view(data.graph, 3, 0)
    assert clustering_metrics(data.labels, view.clusters)["nmi"] > 90
    assert view.warnings == []
    assert view.report()["name"] == view.name
    # A new node with the neighbours of another one gets a point near to it.
    rows = normalize(view.projection(data.graph.to_scipy()).numpy())
    assert (np.sum(rows * normalize(view.points.numpy()), 1) > 0.8).mean() > 0.9


def test_constant_and_empty_columns_do_no_harm(data):
    feat = sp.csr_matrix(np.c_[np.ones((300, 3)), np.zeros((300, 3))])
    weight = torch.ones(data.graph.num_edges)
    view = smoothed_view(data.graph, weight, feat, SmoothConfig(), 3, 0, "csr")
    assert all(np.isfinite(each.score) for each in view.candidates)
    assert torch.isfinite(view.points).all()


def test_centroids_are_those_of_the_clusters(data):
    weight = torch.ones(data.graph.num_edges)
    view = smoothed_view(data.graph, weight, data.feat, SmoothConfig(), 3, 0, "csr")
    propagation = Propagation.of(data.graph, weight, "csr")
    embedding = normalize(smooth(propagation, view.points, view.hops, view.self_share).numpy())
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
    assert set(fit.assignments) == {"head", "kmeans", "code"}
    assert clustering_metrics(data.labels, fit.clusters)["nmi"] > 80
    trainer = Trainer(data.graph, data.feat, config)
    moved = np.abs(fit.weight - trainer.prior.weight.numpy()).max()
    assert (moved > 0.01) == ("train.structure_lr=0" not in overrides)


@pytest.mark.parametrize("rule", ["head", "kmeans", "code"])
def test_labels_rule(data, rule):
    overrides = [*SMOOTH, "loss.mixture_weight=0.1", f"model.labels={rule}"]
    fit = Trainer(data.graph, data.feat, load_config(None, overrides)).fit()
    assert fit.labels_from == rule
    assert np.array_equal(fit.clusters, fit.assignments[rule])


def test_power_of_the_weights_changes_the_smoothing_and_not_the_learned_graph(data):
    overrides = [
        *SMOOTH,
        "train.structure_lr=0",
        "model.smooth.hops=4",
        "model.smooth.self_share=0.2",
    ]

    def fit(power):
        config = load_config(None, [*overrides, f"model.smooth.weight_power={power}"])
        return Trainer(data.graph, data.feat, config).fit()

    plain, weighted = fit(0), fit(1)
    assert np.array_equal(plain.weight, weighted.weight)
    assert plain.weight.std() > 0
    assert not np.allclose(plain.embedding, weighted.embedding)


def test_resumed_equals_uninterrupted(data):
    config = load_config(None, [*SMOOTH, "train.checkpoint_every=4"])
    saved = []

    def keep(state):
        saved.append(copy.deepcopy(state))

    whole = Trainer(data.graph, data.feat, config, Hooks(save=keep)).fit()
    assert [state["progress"]["epoch"] for state in saved] == [0, 4, 8, 10]
    again = Trainer(data.graph, data.feat, config).fit(saved[1])
    assert np.array_equal(again.probs, whole.probs)
    assert np.array_equal(again.embedding, whole.embedding)


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


def test_graph_without_structure_is_reported_if_it_is_large_enough_to_tell():
    rng = np.random.default_rng(0)
    large, _ = Graph.from_edges(400, *rng.integers(0, 400, (2, 2000)))
    small, _ = Graph.from_edges(40, *rng.integers(0, 40, (2, 100)))
    (warning,) = graph_view(large, 3, 0).warnings
    assert "no clusters with more edges inside" in warning
    assert graph_view(small, 3, 0).warnings == []


def test_power_of_the_view_leaves_candidate_pairs_alone(data):
    view = _view(data, weight_power=0.0)
    weight, observed = torch.tensor([0.3, 0.1, 0.5]), torch.tensor([True, False, True])
    pairs, _ = Graph.from_edges(4, [0, 1, 2], [1, 2, 3])
    found = view.smoothing_weight(pairs, weight, observed)
    np.testing.assert_allclose(found, [1.0, 0.1, 1.0])


def test_single_columns_of_features():
    """One column has one axis."""
    data = _blocks(average_degree=8.0, mixing=0.1)
    for column in (2.0 * (data.labels > 0) - 1, np.ones(300)):
        feat = sp.csr_matrix(column[:, None].astype(np.float32))
        weight = torch.ones(data.graph.num_edges)
        view = smoothed_view(data.graph, weight, feat, SmoothConfig(), 3, 0, "csr")
        assert len(view.clusters) == 300


def test_axes_of_the_embedding_for_the_number_of_clusters(data):
    weight = torch.ones(data.graph.num_edges)

    def embedding(axes):
        config = SmoothConfig(axes=axes)
        return smoothed_embedding(data.graph, weight, data.feat, config, 3, 0, "csr")

    np.testing.assert_array_equal(embedding(None), embedding("leading"))
    assert np.abs(embedding("canonical") - embedding("leading")).max() > 0.1


# Real values, measured from their mean ------------------------------------------------------------


def _real_values(shares, seed, num_columns=64):
    """Block model with clusters of some shares of the nodes, and columns less their mean."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(shares), 1000, p=shares)
    means = 0.5 * rng.normal(size=(len(shares), num_columns))
    values = means[labels] + rng.normal(size=(1000, num_columns))
    groups = [np.flatnonzero(labels == k) for k in range(len(shares))]
    inside = [rng.choice(group, (3 * len(group), 2)) for group in groups]
    edges = np.concatenate([*inside, rng.integers(1000, size=(1000, 2))])
    graph, _ = Graph.from_edges(1000, *edges.T)
    return graph, sp.csr_matrix((values - values.mean(0)).astype(np.float32)), labels


@pytest.mark.parametrize("seed", range(3))
def test_a_large_cluster_at_the_mean_is_found(seed):
    """Without a constant column, NMI is between 58 and 62."""
    graph, feat, labels = _real_values([0.85, 0.07, 0.05, 0.03], seed)
    view = smoothed_view(graph, torch.ones(graph.num_edges), feat, SmoothConfig(), 4, 0, "csr")
    assert clustering_metrics(labels, view.clusters)["nmi"] > 90


@pytest.mark.parametrize("num_clusters", [3, 6])
def test_number_of_clusters_around_the_mean(num_clusters):
    """Without a constant column it is one too small: K clusters span K - 1 dimensions."""
    graph, feat, _ = _real_values(np.full(num_clusters, 1 / num_clusters), 0)
    weight = torch.ones(graph.num_edges)
    curve = num_clusters_curve(graph, weight, feat, ModelConfig(), 0, "csr")
    assert max(curve, key=curve.get) == num_clusters


def test_constant_is_a_share_of_the_norm_where_the_mean_is_short():
    rows = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    rows = torch.nn.functional.normalize(rows - rows.mean(0))
    every = torch.ones(500, dtype=torch.bool)
    assert constant_of(rows, every, ALL) == pytest.approx(0.2)
    assert constant_of(3 * rows, every, ALL) == pytest.approx(0.6)
    assert constant_of(rows + 0.1, every, ALL) == 0  # the mean is 0.28, the norm 1.04
    assert constant_of(rows + 0.05, every, ALL) > 0  # the mean is 0.14
    # Nodes without features do not count.
    half = torch.arange(500) < 100
    assert constant_of((rows + 0.1) * half[:, None], half, ALL) == 0
    assert with_constant(rows, every, 0.0) is rows
    found = with_constant(rows, half, 0.2)
    torch.testing.assert_close(found[:, 0], 0.2 * half)
    assert torch.equal(found[:, 1:], rows)


def test_words_have_no_constant():
    """These words have a mean of norm 0.1."""
    words = sp.csr_matrix(np.eye(100, dtype=np.float32)[np.arange(300) % 100])
    graph, _ = Graph.from_edges(300, np.arange(200), np.arange(100, 300))
    view = smoothed_view(graph, torch.ones(200), words, SmoothConfig(), 3, 0, "csr")
    assert view.projection.offset is None
    negative = words - 0.01 * sp.csr_matrix(words[:, ::-1])
    view = smoothed_view(graph, torch.ones(200), negative, SmoothConfig(), 3, 0, "csr")
    assert view.projection.offset is not None


def test_the_constant_has_no_bits():
    """Bits are those of the components, as without a constant."""
    graph, feat, _ = _real_values([0.5, 0.5], 0)
    # The column of the constant differs between nodes with and without features.
    feat = sp.csr_matrix(sp.diags((np.arange(1000) > 100).astype(np.float32)) @ feat)
    view = smoothed_view(graph, torch.ones(graph.num_edges), feat, SmoothConfig(), 2, 0, "csr")
    assert view.projection.offset is not None
    reduced = torch.from_numpy(truncated_svd(normalize(feat), 64, 0))
    code = CodeBits(graph.to_scipy().astype(np.float64), feat, reduced)
    assert view.refined_bits["features"] == pytest.approx(code.features(view.clusters, 2), rel=1e-4)


@pytest.mark.parametrize("axes", AXES)
def test_new_nodes_with_real_values_get_the_points_of_the_fitted_ones(axes):
    graph, feat, _ = _real_values([0.85, 0.15], 0)
    feat = sp.csr_matrix(feat.multiply(np.arange(1000)[:, None] != 5)).astype(np.float32)
    feat.eliminate_zeros()
    config = SmoothConfig(hops=4, self_share=0.2, axes=axes)
    view = smoothed_view(graph, torch.ones(graph.num_edges), feat, config, 2, 0, "csr")
    assert view.projection.offset is not None
    torch.testing.assert_close(view.projection(feat), view.points, rtol=1e-4, atol=1e-5)
    assert view.points[5].norm() == 0
