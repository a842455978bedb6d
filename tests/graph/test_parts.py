"""Parts of a graph: each pair once, products of the whole, METIS."""

import numpy as np
import pytest
import torch
from graphs import random_graph

from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model
from user_dgl.graph import Graph
from user_dgl.graph.ops import weighted_degree
from user_dgl.graph.part_propagation import Moments
from user_dgl.graph.parts import grouped, metis_assignment, parts_of
from user_dgl.graph.propagation import Propagation


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=400, num_blocks=4, average_degree=5))


def _uneven(num_nodes, num_parts):
    """Parts of any sizes, one without nodes."""
    rng = np.random.default_rng(0)
    return rng.choice(num_parts - 1, num_nodes, p=rng.dirichlet(np.ones(num_parts - 1)))


@pytest.mark.parametrize("graph", [random_graph(60, 90), Graph.from_edges(9, [], [])[0]])
def test_parts_hold_each_pair_once_and_touch_all_of_their_nodes(graph):
    assignment = _uneven(graph.num_nodes, 5)
    parts = parts_of(graph, assignment, 5)
    nodes = torch.cat([part.nodes[: part.num_owned] for part in parts])
    assert sorted(nodes.tolist()) == list(range(graph.num_nodes))
    owned = torch.cat([part.pairs[part.owned] for part in parts])
    assert sorted(owned.tolist()) == list(range(graph.num_edges))
    for part in parts:
        (number,) = set(assignment[part.nodes[: part.num_owned].numpy()].tolist())
        ends = assignment[torch.stack([graph.src, graph.dst]).numpy()]
        touched = (ends == number).any(0)
        assert sorted(part.pairs.tolist()) == np.flatnonzero(touched).tolist()
        smaller = assignment[graph.src[part.pairs].numpy()] == number
        assert part.owned.tolist() == smaller.tolist()
        local = part.graph()
        ends = torch.stack([part.nodes[local.src.long()], part.nodes[local.dst.long()]])
        whole = torch.stack([graph.src[part.pairs], graph.dst[part.pairs]])
        assert (ends.sort(0).values == whole).all()
        halo = set(part.halo.tolist())
        assert halo == set(whole.ravel().tolist()) - set(part.nodes[: part.num_owned].tolist())


def test_products_with_parts_of_s_give_those_of_the_whole():
    graph = random_graph(60, 90)
    weight = torch.rand(graph.num_edges, dtype=torch.float64)
    x = torch.randn(60, 3, dtype=torch.float64)
    degree, expected = (
        weighted_degree(graph, weight, "csr"),
        Propagation.of(graph, weight, "csr")(x),
    )
    for part in parts_of(graph, _uneven(60, 4), 4):
        local = part.graph()
        outside = degree[part.nodes] - weighted_degree(local, weight[part.pairs], "csr")
        product = Propagation.of(local, weight[part.pairs], "csr", outside)
        own = part.nodes[: part.num_owned]
        rows = product(x[part.nodes])[: part.num_owned]
        torch.testing.assert_close(rows, expected[own])


def test_metis_parts_are_of_equal_size_and_cut_little(data, capfd):
    parts = metis_assignment(data.graph, 8, seed=0)
    src, dst = data.graph.src.numpy(), data.graph.dst.numpy()
    assert np.bincount(parts).max() <= 1.1 * data.num_nodes / 8
    cut = (parts[src] != parts[dst]).mean()
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(parts)
    assert cut < 0.7 * (shuffled[src] != shuffled[dst]).mean()
    assert capfd.readouterr() == ("", "")


def test_metis_sees_a_sample_of_a_large_graph(data, monkeypatch):
    monkeypatch.setattr("user_dgl.graph.parts.METIS_EDGES_PER_NODE", 1)
    assert data.graph.num_edges > 2 * data.num_nodes
    from user_dgl._dgl import dgl

    seen, cut = [], dgl.metis_partition_assignment

    def metis(graph, num_parts):
        seen.append(graph.num_edges() // 2)
        return cut(graph, num_parts)

    monkeypatch.setattr(dgl, "metis_partition_assignment", metis)
    parts = metis_assignment(data.graph, 4, seed=0)
    assert sorted(set(parts.tolist())) == [0, 1, 2, 3]
    assert seen[0] == pytest.approx(data.num_nodes, rel=0.2)


def test_batches_are_whole_parts():
    parts = np.arange(70) % 7
    batches = grouped(parts, 7, 3, seed=0)
    assert np.bincount(batches).tolist() == [30, 30, 10]
    assert len({(p, b) for p, b in zip(parts.tolist(), batches.tolist(), strict=True)}) == 7


def test_moments_of_parts_are_those_of_the_whole():
    x = torch.randn(50, 3, dtype=torch.float64) + 1e6
    none = Moments(0, torch.zeros(3).double(), torch.zeros(3).double())
    sets = [none, Moments.of(x[:7]), Moments.of(x[7:8]), Moments.of(x[8:])]
    for joined in (none + sets[1] + sets[2] + sets[3], Moments.joined(sets)):
        _assert_moments_of(joined, x)
    assert Moments.joined([none]) == none


def _assert_moments_of(joined, x):
    torch.testing.assert_close(joined.mean, x.mean(0))
    torch.testing.assert_close(joined.deviation / joined.count, x.var(0, correction=0))
