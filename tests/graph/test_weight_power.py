"""The power that evens out the weights of edges."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from user_dgl.graph import Graph
from user_dgl.graph.weight_power import effective_share, even_power, with_power


def _path(weight):
    ends = np.arange(len(weight) + 1)
    return Graph.from_edges(len(ends), ends[:-1], ends[1:], weight)[0]


def test_effective_share():
    assert effective_share(torch.tensor([3.0, 1.0])) == pytest.approx(16 / 20)
    assert effective_share(torch.tensor([1e300, 1e300], dtype=torch.float64)) == 1


def test_the_power_evens_out():
    rng = np.random.default_rng(0)
    for deviation, power in ((0.5, 1.0), (1.0, 1.0), (2.0, 0.5), (4.0, 0.25)):
        graph = _path(rng.lognormal(0, deviation, 5000))
        assert even_power(graph) == power
        raised = with_power(graph, power)
        assert effective_share(raised.edge_weight) >= 0.3
    assert even_power(_path(np.r_[np.ones(5000), 1e30])) == 0
    assert even_power(_path(np.ones(9))) == 1
    assert even_power(replace(_path(np.ones(0)), weight=torch.ones(0))) == 1


@pytest.mark.parametrize("power", [0.5, 0.25])
def test_the_unit_says_what_a_weight_is(power):
    weight = np.random.default_rng(0).lognormal(3, 2, 50)
    graph = _path(weight)
    raised = with_power(graph, power)
    expected = torch.from_numpy((weight / raised.unit) ** power).float()
    torch.testing.assert_close(raised.weight, expected)
    assert raised.weight.mean().item() == pytest.approx(1)


def test_a_power_of_0_or_1():
    graph = _path(np.array([1.0, 2.0, 4.0]))
    assert with_power(graph, 1.0) is graph
    assert with_power(graph, 0.0).weight is None
    assert with_power(_path(np.ones(3)), 0.5).weight is None
