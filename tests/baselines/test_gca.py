"""GCA beside a dense oracle, and the views that it alone draws."""

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
from graphs import with_random_weights

from user_dgl.graph import Graph

WIDTHS = "baseline.hidden_feats=[6, 5]"
EDGE_RATES, COLUMN_RATES, MOST, TEMPERATURE = (0.2, 0.4), (0.3, 0.4), 0.7, 0.4


def drop_rates(centrality, mean_rate):
    """min((s_max - s) / (s_max - mean s) p, p_tau) with s = log of the centrality."""
    score = np.log(centrality)
    rate = (score.max() - score) / (score.max() - score.mean()) * mean_rate
    return np.minimum(rate, MOST)


def centralities(graph, feat):
    """Mean degree of the ends of an edge; sum of the degrees of the nodes that have a column."""
    degree = adjacency_of(graph).sum(1).numpy()
    of_edge = (degree[graph.src.numpy()] + degree[graph.dst.numpy()]) / 2
    return of_edge, (feat.toarray() != 0).T @ degree


def encoded(smooth, feat, weights):
    """Two layers PReLU(S H W + b)."""
    first, second, b1, b2, slope1, slope2 = weights
    for weight, bias, slope in ((first, b1, slope1), (second, b2, slope2)):
        out = smooth @ feat @ weight + bias
        feat = torch.where(out > 0, out, slope * out)
    return feat


def contrast(one, other):
    """The paper's Eq. 1, 2: a node's two views against all other nodes of both views."""
    cosine = torch.nn.functional.cosine_similarity
    total = 0.0
    for first, second in ((one, other), (other, one)):
        for i in range(len(first)):
            across = (cosine(first[i], second) / TEMPERATURE).exp()
            within = (cosine(first[i], first) / TEMPERATURE).exp()
            others = torch.arange(len(first)) != i
            total = total - torch.log(across[i] / (across.sum() + within[others].sum()))
    return total / (2 * len(one))


@pytest.mark.parametrize("weighted", [False, True])
def test_loss_and_steps_are_those_of_the_paper(weighted):
    graph = with_random_weights(tiny_graph()) if weighted else tiny_graph()
    trainer = tiny_trainer("gca", WIDTHS, "baseline.weight_decay=0.01", graph=graph)
    weights = weights_of(trainer.method)
    feat = torch.from_numpy(trainer.feat.toarray())
    of_edge, of_column = centralities(graph, trainer.feat)
    adam = Adam(weights.values(), 0.02, 0.01)

    def projected(edge_rate, column_rate):
        edges = torch.rand(graph.num_edges).numpy() >= drop_rates(of_edge, edge_rate)
        columns = torch.rand(feat.shape[1]).numpy() >= drop_rates(of_column, column_rate)
        kept = torch.from_numpy(edges) * graph.edge_weight
        *encoder, w1, b1, w2, b2 = weights.values()
        smooth = normalised(adjacency_of(graph, kept))
        hidden = encoded(smooth, feat * torch.from_numpy(columns), encoder)
        return torch.nn.functional.elu(hidden @ w1.t() + b1) @ w2.t() + b2

    expected = []
    for epoch in range(3):
        draws_of(trainer, epoch)
        views = [projected(*rates) for rates in zip(EDGE_RATES, COLUMN_RATES, strict=True)]
        expected.append({"contrast": adam.step(contrast(*views))})
    assert_terms(train_epochs(trainer, 3), expected)
    assert_weights(trainer.method, weights)
    # Embeddings come from the whole graph, before the projection.
    smooth = normalised(adjacency_of(graph, graph.edge_weight))
    hidden = encoded(smooth, feat, list(weights.values())[:6])
    torch.testing.assert_close(trainer.method.embed(), hidden)


def seen_in_views(trainer, monkeypatch, count=250):
    """How often the two views drop each edge (2, E) and each column (2, F)."""
    method, edges, columns = trainer.method, [], []
    propagation, project = method.problem.propagation_of, method.encoder.project

    def note_edges(weight):
        edges.append(weight == 0)
        return propagation(weight)

    def note_columns(features, keeps):
        columns.append(keeps == 0)
        return project(features, keeps)

    monkeypatch.setattr(type(method.problem), "propagation_of", lambda _, w: note_edges(w))
    monkeypatch.setattr(method.encoder, "project", note_columns)
    torch.manual_seed(0)
    with torch.no_grad():
        for epoch in range(count):
            list(method.updates(epoch))
    shape = (count, 2, -1)
    return [torch.stack(each).reshape(shape).double().mean(0) for each in (edges, columns)]


def test_a_view_drops_what_matters_less_more_often(monkeypatch):
    trainer = tiny_trainer("gca", WIDTHS)
    found = seen_in_views(trainer, monkeypatch)
    for of_items, rates, each in zip(
        centralities(trainer.graph, trainer.feat), (EDGE_RATES, COLUMN_RATES), found, strict=True
    ):
        for rate, dropped in zip(rates, each, strict=True):
            np.testing.assert_allclose(dropped, drop_rates(of_items, rate), atol=0.1)
            assert dropped[of_items.argmax()] == 0
            assert dropped[of_items.argmin()] > rate


def test_items_of_equal_centrality_drop_equally_often_and_useless_columns_most_often(monkeypatch):
    # A cycle: all edges are alike. Column 2 belongs to the node without edges alone.
    nodes = np.arange(5)
    graph = Graph.from_edges(6, nodes, (nodes + 1) % 5)[0]
    feat = sp.csr_matrix(np.repeat([[1.0, 1, 0], [0, 0, 1]], [5, 1], axis=0))
    edges, columns = seen_in_views(tiny_trainer("gca", WIDTHS, graph=graph, feat=feat), monkeypatch)
    for rate, dropped in zip(EDGE_RATES, edges, strict=True):
        np.testing.assert_allclose(dropped, rate, atol=0.1)
    for rate, dropped in zip(COLUMN_RATES, columns, strict=True):
        np.testing.assert_allclose(dropped, [rate, rate, MOST], atol=0.1)


def test_a_graph_without_edges_drops_columns_equally_often(monkeypatch):
    graph = Graph.from_edges(12, [], [])[0]
    edges, columns = seen_in_views(tiny_trainer("gca", WIDTHS, graph=graph), monkeypatch)
    assert edges.numel() == 0
    for rate, dropped in zip(COLUMN_RATES, columns, strict=True):
        np.testing.assert_allclose(dropped, rate, atol=0.1)
