"""The attributed block model: exact counts, and shares within chance of what was asked for."""

import time

import numpy as np
import pytest

from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model
from user_dgl.errors import InputError


def inner_share(data):
    """Share of the edges within a block."""
    return (data.labels[data.graph.src.numpy()] == data.labels[data.graph.dst.numpy()]).mean()


def test_counts():
    config = SyntheticConfig(num_nodes=1003, num_blocks=4, average_degree=7.3)
    data = block_model(config)
    assert data.num_nodes == 1003
    assert data.graph.num_edges == round(1003 * 7.3 / 2)
    assert sorted(np.bincount(data.labels)) == [250, 251, 251, 251]
    assert data.feat.shape == (1003, 200)
    assert data.feat.dtype == np.float32
    assert set(data.feat.data) == {1.0}
    assert data.feat.getnnz(axis=1).max() <= config.words_per_node
    assert data.feat.has_canonical_format


def test_blocks_are_scattered_over_the_ids():
    labels = block_model(SyntheticConfig(num_nodes=1000, num_blocks=5)).labels
    changes = (np.diff(labels) != 0).mean()
    assert abs(changes - 0.8) < 0.06


@pytest.mark.parametrize("mixing", [0.0, 0.2, 0.7, 1.0])
def test_mixing(mixing):
    data = block_model(
        SyntheticConfig(num_nodes=5000, num_blocks=5, average_degree=20, mixing=mixing)
    )
    expected = 1 - mixing + mixing / 5
    deviation = np.sqrt(expected * (1 - expected) / data.graph.num_edges)
    assert abs(inner_share(data) - expected) <= 5 * deviation + 0.005  # few pairs are drawn twice


def test_degrees_are_even():
    # Binomial: a pair favoured by its position, or a block by its size, would widen the spread.
    degree = block_model(SyntheticConfig(num_nodes=5000, average_degree=20)).graph.degree.numpy()
    assert abs(degree.var() / degree.mean() - 1) < 0.1


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_words(share):
    config = SyntheticConfig(
        num_nodes=4000, num_blocks=4, num_features=4000, words_per_node=10, topic_share=share
    )
    data = block_model(config)
    entries = data.feat.tocoo()
    own = (entries.col * 4 // 4000 == data.labels[entries.row]).mean()
    assert abs(own - (share + (1 - share) / 4)) < 0.015
    # All columns of a block serve its nodes.
    assert len(np.unique(entries.col)) > 3900


def test_seed_alone_decides():
    one, same, other = (block_model(SyntheticConfig(num_nodes=300, seed=s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.graph.keys, same.graph.keys)
    np.testing.assert_array_equal(one.labels, same.labels)
    assert (one.feat != same.feat).nnz == 0
    assert not np.array_equal(one.graph.keys, other.graph.keys)
    assert not np.array_equal(one.labels, other.labels)


def test_dense_and_tiny_graphs():
    complete = block_model(
        SyntheticConfig(num_nodes=12, num_blocks=3, average_degree=11, mixing=1.0)
    )
    assert complete.graph.num_edges == 66
    cliques = block_model(SyntheticConfig(num_nodes=12, num_blocks=3, average_degree=3, mixing=0.0))
    assert cliques.graph.num_edges == 18
    assert inner_share(cliques) == 1
    pair = block_model(SyntheticConfig(num_nodes=2, num_blocks=1, average_degree=1))
    assert pair.graph.num_edges == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"num_nodes": 4, "num_blocks": 5},
            "num_nodes=4: expected at least one for each of the 5 blocks",
        ),
        ({"num_features": 4, "num_blocks": 5}, "num_features=4"),
        ({"num_nodes": 10, "num_blocks": 1, "average_degree": 10}, "50 distinct edges do not fit"),
        ({"num_nodes": 10, "num_blocks": 5, "average_degree": 2, "mixing": 0.0}, "do not fit"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(InputError, match=message):
        block_model(SyntheticConfig(**settings))


def test_large_graph_in_seconds():
    start = time.perf_counter()
    data = block_model(
        SyntheticConfig(num_nodes=200_000, num_blocks=50, average_degree=20, num_features=2000)
    )
    assert data.graph.num_edges == 2_000_000
    assert time.perf_counter() - start < 30  # about 3 s on one core
