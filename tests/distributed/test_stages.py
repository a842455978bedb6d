"""Critic, number of clusters and view of several ranks against those of one process, in float64."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import with_random_weights
from paths import CONFIGS
from thread_ranks import together

from user_dgl.clustering import kmeans, smoothed_view
from user_dgl.clustering.view_choice import ViewCandidate
from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.distributed.assembly import WholeData, prepare_rank, split_among_ranks
from user_dgl.distributed.ranks import Ranks
from user_dgl.distributed.rows import ShardRows
from user_dgl.features import svd
from user_dgl.features.cosine import row_dots
from user_dgl.features.preparation import prepare_features
from user_dgl.features.rows import ALL
from user_dgl.graph import Graph
from user_dgl.perturb import Perturbed
from user_dgl.pipeline.inputs import Inputs, read_inputs
from user_dgl.structure import critic
from user_dgl.training.stages import weigh_and_view

NUM_NODES = 240
SETTINGS = (
    "model.num_clusters=4",
    "model.encoder=smooth",
    "model.head=centroid",
    "model.observed_mix=0",
    "structure.prior=critic",
    "structure.critic.num_components=20",
    "model.smooth.num_components=30",
    "train.structure_lr=0",
    "train.precision=float64",
)


@pytest.fixture(scope="module")
def data():
    """A block model with words, and isolated nodes."""
    settings = SyntheticConfig(num_nodes=NUM_NODES, num_blocks=4, average_degree=6)
    data = block_model(settings)
    src, dst = data.graph.src.numpy(), data.graph.dst.numpy()
    kept = (src > 5) & (dst > 5)
    graph, _ = Graph.from_edges(NUM_NODES, src[kept], dst[kept])
    config = load_config(None, ["features.weighting=auto", "features.row_norm=l2"])
    return graph, prepare_features(data.feat, config.features)


@pytest.fixture
def large(monkeypatch):
    """The ways that large graphs take, on a small one."""
    monkeypatch.setattr(svd, "_TALL", 100)
    monkeypatch.setattr(kmeans, "SAMPLED_FROM", 100)
    monkeypatch.setattr(kmeans, "_LEAST_SAMPLE", 80)
    monkeypatch.setattr(kmeans, "_SAMPLE_PER_CLUSTER", 20)
    monkeypatch.setattr(kmeans, "_LEAST_SEEDING", 40)
    monkeypatch.setattr(kmeans, "_SEEDING_PER_CLUSTER", 8)
    monkeypatch.setattr(kmeans, "_MOST_STEPPED", 150)
    monkeypatch.setattr(kmeans, "_BLOCK", 50)
    monkeypatch.setattr(critic, "_LARGE", 100)
    monkeypatch.setattr(critic, "_MOST_FITTED", 400)


def _of_ranks(graph, feat, config, size, function):
    noisy = Perturbed(graph, torch.zeros(graph.num_edges, dtype=torch.bool), 0, 0)
    inputs = Inputs(config, config, None, noisy, feat, feat, feat.shape[1], [])
    parts = split_among_ranks(WholeData(inputs, []), size)
    return together(size, lambda ranks: function(parts[ranks.rank], ranks))


def _nodes(data):
    return data.shard.part.nodes[: data.shard.part.num_owned].numpy()


def _same_stages(graph, feat, size, *more, most_different=0):
    """Compare the stages of so many ranks with those of one; results of the first.

    Of the views that were not chosen, ``most_different`` may have other clusters.
    """
    config, log = load_config(None, [*SETTINGS, *more]), []
    one = weigh_and_view(graph, feat, config, log.append)
    lines = [[] for _ in range(size)]
    found = _of_ranks(
        graph, feat, config, size,
        lambda part, ranks: prepare_rank(part, config, ranks, lines[ranks.rank].append),
    )  # fmt: skip
    assert all(each == log for each in lines)
    for data, prepared in found:
        nodes, view = _nodes(data), data.view
        assert prepared.config == one.config
        if one.num_clusters_curve is not None:
            assert prepared.num_clusters_curve == pytest.approx(one.num_clusters_curve, rel=1e-9)
        weight = one.prior.weight[data.edges]
        torch.testing.assert_close(prepared.prior.weight, weight, rtol=1e-6, atol=0)
        torch.testing.assert_close(data.first_weight, weight, rtol=1e-6, atol=0)
        torch.testing.assert_close(view.points, one.view.points[nodes], rtol=0, atol=1e-9)
        torch.testing.assert_close(view.centroids, one.view.centroids, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(view.kmeans, one.view.kmeans[nodes])
        np.testing.assert_array_equal(view.clusters, one.view.clusters[nodes])
        assert view.name == one.view.name
        assert [each.name for each in view.candidates] == [
            each.name for each in one.view.candidates
        ]
        different = 0
        for found_of, of_one in zip(view.candidates, one.view.candidates, strict=True):
            if isinstance(of_one, ViewCandidate):
                bits = of_one.edge_bits, of_one.feature_bits
                same = pytest.approx(bits, rel=1e-9, abs=1e-9)
                if (found_of.edge_bits, found_of.feature_bits) != same:
                    different += 1
                    assert not of_one.chosen
        assert different <= most_different
        assert view.warnings == one.view.warnings
        assert view.refined_bits == pytest.approx(one.view.refined_bits, rel=1e-9)
    return one


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_words(data, size):
    one = _same_stages(*data, size)
    assert len(one.view.candidates) == 20
    assert len(np.unique(one.prior.weight)) > 10


def test_clusters_for_which_the_view_was_chosen(data, monkeypatch):
    """They are kept where those of more starts save far fewer bits: here always."""
    monkeypatch.setattr(smoothed_view, "_MUCH_LOWER", -1.0)
    _same_stages(*data, 3)


@pytest.mark.parametrize("size", [2, 3])
def test_nodes_that_the_canonical_axes_do_not_see(size):
    """Isolated nodes with words of their own: their rounding must not differ between processes."""
    rng = np.random.default_rng(0)
    block = np.repeat([0, 1], 90)
    ends = rng.integers(0, 180, (2, 2000))
    inside = (block[ends[0]] == block[ends[1]]) & (ends[0] != ends[1])
    graph, _ = Graph.from_edges(240, *ends[:, inside])
    words = np.zeros((240, 13), dtype=np.float32)
    words[:180, :10] = rng.random((180, 10)) < np.where(
        np.arange(10) // 5 == block[:, None], 0.6, 0.1
    )
    words[180:, 10:] = rng.random((60, 3)) < 0.5
    # One view: k-means of equally distant rows is decided by rounding, and so would be the choice.
    view = ("hops=4", "self_share=0.2", "weight_power=1", "axes=canonical")
    settings = [*SETTINGS, "model.num_clusters=3", *(f"model.smooth.{each}" for each in view)]
    config = load_config(None, settings)
    one = weigh_and_view(graph, sp.csr_matrix(words), config, lambda line: None).view.points
    assert not one[180:].any()
    found = _of_ranks(
        graph, sp.csr_matrix(words), config, size,
        lambda part, ranks: prepare_rank(part, config, ranks, lambda line: None),
    )  # fmt: skip
    for part, _ in found:
        torch.testing.assert_close(part.view.points, one[_nodes(part)], rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", [2, 3])
def test_as_for_large_graphs(data, size, large):
    _same_stages(*data, size)
    _same_stages(*data, size, "structure.critic.num_components=400")


def test_more_columns_than_nodes(data):
    graph, feat = data
    wide = sp.hstack([feat, feat[::-1], feat @ sp.random(feat.shape[1], 60, 0.1, rng=0)]).tocsr()
    _same_stages(graph, wide, 3, "structure.engine=dgl")


@pytest.mark.parametrize("large_ways", [False, True])
def test_real_values_and_weighted_edges(data, large_ways, request):
    if large_ways:
        request.getfixturevalue("large")
    graph, feat = data
    mixed = feat @ np.random.default_rng(0).normal(size=(feat.shape[1], 25)).astype(np.float32)
    _same_stages(with_random_weights(graph), sp.csr_matrix(mixed), 3)


@pytest.mark.parametrize("axes", [None, "canonical"])
def test_real_values_around_their_mean(data, axes):
    """All processes give them the same constant; a node without features has none."""
    graph, feat = data
    values = svd.truncated_svd(feat, 8, 0).astype(np.float64)
    values -= values.mean(0)
    values[7] = 0
    centred = sp.csr_matrix(values.astype(np.float32))
    one = _same_stages(graph, centred, 3, *([f"model.smooth.axes={axes}"] if axes else []))
    assert one.view.projection.offset is not None
    one = _same_stages(graph, centred, 2, "model.num_clusters=auto")
    assert one.config.model.num_clusters == 4


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_citeseer(size, data_root):
    settings = (f"data.root={data_root}", "data.kind=planetoid", "data.name=citeseer")
    inputs = read_inputs(load_config(CONFIGS / "default.yaml", list(settings)), lambda line: None)
    full = ("model.num_clusters=6", "structure.critic.num_components=256")
    # A start of k-means can end elsewhere if its points differ in the 13th digit.
    _same_stages(inputs.noisy.graph, inputs.feat, size, *full, most_different=1)


def test_number_of_clusters_and_other_priors(data):
    one = _same_stages(*data, 3, "model.num_clusters=auto", "structure.prior=feature_cosine")
    assert one.config.model.num_clusters == 4
    _same_stages(*data, 2, "structure.learnable=false")


@pytest.mark.parametrize("axes", [None, "canonical"])
def test_axes_where_the_weights_or_links_are_trained(data, axes):
    for more in (["train.structure_lr=0.02"], ["task=link_prediction"]):
        config = load_config(
            None, [*SETTINGS, *more, *([f"model.smooth.axes={axes}"] if axes else [])]
        )
        view = weigh_and_view(*data, config, lambda line: None).view
        assert {each.axes for each in view.candidates} == {axes or "leading"}


def test_features_that_say_nothing(data):
    graph, feat = data
    noise = feat[np.random.default_rng(0).permutation(NUM_NODES)]
    one = _same_stages(graph, noise, 3)
    assert one.view.warnings
    one = _same_stages(with_random_weights(graph), noise, 2)
    assert one.view.reads_edges


@pytest.mark.parametrize("size", [1, 2, 4])
def test_rows_and_pairs_of_ranks(data, size):
    graph, feat = data
    config = load_config(None, list(SETTINGS))
    rng = np.random.default_rng(0)
    x, values = rng.normal(size=(NUM_NODES, 3)), rng.normal(size=graph.num_edges)
    pairs, some = rng.integers(0, NUM_NODES, (2, 50)), rng.permutation(graph.num_edges)[:9]
    nodes, dense = rng.integers(0, NUM_NODES, 7), feat.toarray()

    def check(part, ranks):
        held, own = ShardRows(part, ranks), _nodes(part)
        every = part.shard.part.nodes.numpy()
        np.testing.assert_array_equal(held.own(x), x[own])
        np.testing.assert_array_equal(held.all(x[own]), x)
        np.testing.assert_array_equal(held.extend(x[own]), x[every])
        np.testing.assert_array_equal(held.extend(feat[own]).toarray(), dense[every])
        np.testing.assert_array_equal(held.pick(x[own], nodes), x[nodes])
        np.testing.assert_array_equal(held.by_first(x[own], np.cumsum), np.cumsum(x)[own])
        for rows in (feat, dense):
            expected = row_dots(rows, *pairs)
            np.testing.assert_allclose(held.pair_dots(rows[own], pairs), expected, rtol=1e-6)
        local = held.pairs(values)
        np.testing.assert_array_equal(held.pick_pairs(local, some), values[some])
        np.testing.assert_array_equal(held.pick_pairs(local, None), values)
        assert held.count_pairs(local > 0) == (values > 0).sum()
        assert held.mean_of_pairs(local) == pytest.approx(values.mean())
        assert held.share_out(range(7), lambda number: number**2) == [n**2 for n in range(7)]
        whole = held.whole(held.graph)
        assert (whole is not None) == ranks.first
        if ranks.first:
            np.testing.assert_array_equal(whole.keys, graph.keys)

    _of_ranks(graph, feat, config, size, check)
    assert ALL.share_out(range(3), lambda number: number**2) == [0, 1, 4]
    assert smoothed_view.ALL is ALL


def test_a_single_process_gets_its_own_rows():
    alone = Ranks.__new__(Ranks)
    alone.rank, alone.size, alone.bytes_sent = 0, 1, 0
    out, rows = torch.zeros(3), torch.arange(3.0)
    alone.exchange_rows(out, rows, [3], [3], "rows")
    assert torch.equal(out, rows)
    assert alone.bytes_sent == 0
