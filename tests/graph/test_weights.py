"""Weights of edges: how they are merged and scaled, and that every part of a run uses them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import random_graph, with_random_weights
from sklearn.metrics import adjusted_rand_score

from user_dgl.cleaning.priors import prior_of
from user_dgl.clustering.graph_clustering import graph_clustering
from user_dgl.clustering.smoothed_view import smoothed_view
from user_dgl.config import CriticConfig, SmoothConfig, load_config
from user_dgl.data import AttributedGraph
from user_dgl.data.attributed_graph import largest_component
from user_dgl.data.reading.matrices import graph_from_matrix
from user_dgl.errors import InputError
from user_dgl.evaluation.floors import smooth_kmeans
from user_dgl.evaluation.structure_metrics import partition_scores
from user_dgl.graph import Graph
from user_dgl.perturb.random_flip import random_flip
from user_dgl.structure.critic import score_edges
from user_dgl.training.trainer import Trainer


def test_merged_entries_have_the_mean_weight_and_all_weights_the_mean_1():
    graph, cleaning = Graph.from_edges(4, [0, 1, 2, 3, 3], [1, 0, 1, 3, 0], [2, 4, 1, 9, 5])
    assert (cleaning.self_loops, cleaning.repeated) == (1, 1)
    # The pairs (0, 1), (0, 3), (1, 2) have 3, 5 and 1.
    torch.testing.assert_close(graph.weight, torch.tensor([3.0, 5.0, 1.0]) / 3)


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_the_unit_of_the_weights_does_not_matter(unit):
    weight = np.array([1.0, 2.0, 5.0])
    graph, _ = Graph.from_edges(4, [0, 1, 2], [1, 2, 3], weight * unit)
    expected, _ = Graph.from_edges(4, [0, 1, 2], [1, 2, 3], weight)
    torch.testing.assert_close(graph.weight, expected.weight)


@pytest.mark.parametrize("weight", [[1, 1, 1], [7.5, 7.5, 7.5]])
def test_equal_weights_are_no_weights(weight):
    assert Graph.from_edges(4, [0, 1, 2], [1, 2, 3], weight)[0].weight is None


@pytest.mark.parametrize("bad", [0, -1, np.nan, np.inf])
def test_weights_that_are_refused(bad):
    with pytest.raises(InputError, match="expected a positive number"):
        Graph.from_edges(3, [0, 1], [1, 2], [1, bad])
    with pytest.raises(InputError, match="2 entries, but weights of shape"):
        Graph.from_edges(3, [0, 1], [1, 2], [1])


def test_a_matrix_keeps_its_weights():
    graph = with_random_weights(random_graph())
    read, notes = graph_from_matrix(graph.to_scipy(), "matrix")
    torch.testing.assert_close(read.weight, graph.weight / graph.weight.mean())
    assert notes == []


def test_a_component_and_a_noisy_graph_keep_the_weights():
    graph = with_random_weights(random_graph(40, 60))
    part = largest_component(AttributedGraph(graph, None))
    kept = part.graph.to_scipy()
    nodes = [int(name) for name in part.node_ids]
    ratio = kept.toarray() / np.where(
        kept.toarray() > 0, graph.to_scipy().toarray()[nodes][:, nodes], 1
    )
    assert np.allclose(ratio[ratio > 0], ratio.max(), rtol=1e-5)
    noisy = random_flip(graph, 0.5, seed=0)
    weight, added = noisy.graph.weight, noisy.added
    old = graph.weight[torch.from_numpy(graph.positions(noisy.graph.keys[~added.numpy()]))]
    assert torch.equal(weight[~added], old)
    assert added.any()
    assert torch.isin(weight[added], graph.weight).all()


def test_noise_without_weights_does_not_change():
    graph = random_graph(40, 60)
    weighted = random_flip(with_random_weights(graph), 0.5, seed=0)
    plain = random_flip(graph, 0.5, seed=0)
    assert plain.graph.weight is None
    assert np.array_equal(plain.graph.keys, weighted.graph.keys)


def test_scores_of_clusters_equal_a_dense_computation():
    graph = with_random_weights(random_graph(30, 80))
    clusters = np.arange(30) % 3
    dense = graph.to_scipy().toarray().astype(np.float64)
    one_hot = np.eye(3)[clusters]
    between, total = one_hot.T @ dense @ one_hot, dense.sum()
    volume, inside = between.sum(1), np.diag(between)
    scores = partition_scores(graph, clusters)
    assert scores["modularity"] == pytest.approx((inside / total - (volume / total) ** 2).sum())
    assert scores["npsi"] == pytest.approx((inside / total * np.log2(volume / total)).sum())
    cut = (volume - inside) / np.minimum(volume, total - volume)
    assert scores["conductance"] == pytest.approx(cut.mean())


def test_the_first_weights_are_those_of_the_data_times_those_of_the_prior():
    graph = with_random_weights(random_graph(30, 80))
    feat = _words(np.arange(30) % 3)
    config = load_config(None, ["structure.prior=feature_cosine"]).structure
    plain = prior_of(config, replace(graph, weight=None), feat, 0, "csr").weight
    torch.testing.assert_close(prior_of(config, graph, feat, 0, "csr").weight, plain * graph.weight)
    uniform = load_config(None, ["structure.prior=uniform"]).structure
    assert torch.equal(prior_of(uniform, graph, feat, 0, "csr").weight, graph.weight)


def test_the_critic_smooths_over_the_weights():
    graph, feat = _graph_whose_weights_carry_the_clusters()
    config = CriticConfig()
    by_weight = score_edges(graph, feat, config, 0, "csr").weight
    by_edges = score_edges(replace(graph, weight=None), feat, config, 0, "csr").weight
    assert not np.allclose(by_weight, by_edges)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_view_is_smoothed_over_the_weights(power):
    """Also where the power takes the critic's estimate away, the weights of the data stay."""
    graph, feat = _graph_whose_weights_carry_the_clusters()
    config = SmoothConfig(hops=4, self_share=0.2, weight_power=power)
    view = smoothed_view(graph, graph.weight, feat, config, 2, 0, "csr")
    weight = view.smoothing_weight(graph, graph.weight, torch.ones(graph.num_edges) > 0)
    torch.testing.assert_close(weight, graph.weight)


def test_clusters_that_only_the_weights_show_are_found():
    graph, _ = _graph_whose_weights_carry_the_clusters()
    truth = np.arange(graph.num_nodes) % 2
    found = graph_clustering(graph, 2, seed=0).clusters
    assert adjusted_rand_score(truth, found) > 0.95
    plain = graph_clustering(replace(graph, weight=None), 2, seed=0).clusters
    assert adjusted_rand_score(truth, plain) < 0.1


def test_the_floors_smooth_over_the_weights():
    graph, feat = _graph_whose_weights_carry_the_clusters()
    truth = np.arange(graph.num_nodes) % 2
    by_weight = smooth_kmeans(feat, graph, 2, 0)
    plain = smooth_kmeans(feat, replace(graph, weight=None), 2, 0)
    assert adjusted_rand_score(truth, by_weight) > adjusted_rand_score(truth, plain)


@pytest.mark.parametrize("engine", ["csr", "dgl"])
def test_training_uses_the_weights(engine):
    """NPSI(A, Y), the tie of A' and smoothing, against the same run on a graph without weights."""
    graph, feat = _graph_whose_weights_carry_the_clusters()
    config = load_config(
        None,
        ["model.num_clusters=2", "model.hidden_feats=[8]", "train.epochs=3",
         "loss.npsi_observed=true", f"structure.engine={engine}"],
    )  # fmt: skip
    trainer = Trainer(graph, feat, config)
    result = trainer.fit()
    assert torch.equal(trainer.loss.problem.edge_weight, graph.weight)
    plain = Trainer(replace(graph, weight=None), feat, config).fit()
    assert result.loss["npsi_observed"] != plain.loss["npsi_observed"]


def _graph_whose_weights_carry_the_clusters(num_nodes=200, degree=20):
    """Uniformly random edges; those within the two clusters have three times the weight."""
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, num_nodes, (2, num_nodes * degree // 2))
    weight = np.where(u % 2 == v % 2, 3.0, 1.0)
    graph, _ = Graph.from_edges(num_nodes, u, v, weight)
    return graph, _words(np.arange(num_nodes) % 2)


def _words(clusters):
    """Features (N, 40) that say little about the clusters."""
    rng = np.random.default_rng(1)
    share = np.where(np.arange(40)[None] % 2 == clusters[:, None] % 2, 0.25, 0.2)
    return sp.csr_matrix((rng.random(share.shape) < share).astype(np.float32))


@pytest.mark.parametrize("num_nodes", [7, 2**20, 2**31])  # the last one is sorted another way
@pytest.mark.parametrize("repeats", [False, True])
def test_weights_follow_their_edges(num_nodes, repeats):
    rng = np.random.default_rng(0)
    pairs = np.array([(0, 6), (5, 6), (1, 2), (0, 1), (3, 4), (2, 6), (2, 5)])
    if repeats:
        pairs = np.concatenate([pairs, pairs[:3, ::-1], pairs[:2]])
    weight = rng.uniform(1, 5, len(pairs))
    step = (num_nodes - 1) // 6
    graph, _ = Graph.from_edges(num_nodes, *(pairs.T * step), weight=weight)
    given: dict[tuple[int, int], list[float]] = {}
    for (u, v), value in zip(np.sort(pairs, axis=1).tolist(), weight, strict=True):
        given.setdefault((u * step, v * step), []).append(value)
    ends = list(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))
    assert ends == sorted(given)
    expected = [np.mean(given[pair]) for pair in ends]
    assert graph.data_weight.numpy() == pytest.approx(expected, rel=1e-6)
