"""tools/adaptive_attack.py: the weights that an attack knows."""

import numpy as np
import pytest
from adaptive_attack import Trust, attacked

from user_dgl.cleaning.clean import FEATURES, clean
from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model
from user_dgl.features.preparation import prepare_features
from user_dgl.perturb import Victim
from user_dgl.perturb.random_flip import random_flip

RATE = 0.1


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=200, num_blocks=3, mixing=0.05))


def test_weights_of_edges_are_those_of_the_cleaning(data):
    graph = random_flip(data.graph, 0.3, 0).graph
    weights = Trust(prepare_features(data.feat, FEATURES), 2.0, 0)(graph, graph.keys)
    expected = clean(graph, data.feat, power=2.0, candidates=0).weight
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_other_pairs_weigh_more_inside_a_block(data):
    keys = np.setdiff1d(
        np.unique(np.random.default_rng(0).integers(0, 200**2, 3000)), data.graph.keys
    )
    u, v = np.divmod(keys, 200)
    keys, same = keys[u < v], (data.labels[u] == data.labels[v])[u < v]
    weights = Trust(prepare_features(data.feat, FEATURES), 1.0, 0)(data.graph, keys)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert np.median(weights[same]) > 2 * np.median(weights[~same])


def test_an_attack_that_knows_the_weights_adds_edges_that_weigh_more(data):
    victim = Victim(data.feat, data.labels)
    kept = []
    for power in (0.0, 1.0):
        graph = attacked(data.graph, victim, RATE, 0, power)
        keys = np.setxor1d(graph.keys, data.graph.keys)
        assert len(keys) == round(RATE * data.graph.num_edges)
        added = data.graph.positions(graph.keys) < 0
        kept.append(clean(graph, data.feat, power=1.0, candidates=0).weight[added].mean())
    assert 1 - kept[1] < 0.5 * (1 - kept[0])
