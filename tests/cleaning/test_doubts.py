"""The table of doubtful edges."""

import numpy as np
import pandas as pd
import pytest
from graphs import empty_graph

from user_dgl.cleaning.clean import clean
from user_dgl.cleaning.doubts import doubtful_edges
from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model
from user_dgl.perturb.random_flip import random_flip


@pytest.fixture(scope="module")
def doubted():
    data = block_model(SyntheticConfig(num_nodes=300, num_blocks=3))
    noisy = random_flip(data.graph, 0.2, 0)
    names = pd.Series([f"n{i}" for i in range(300)], dtype=object)
    return data, doubtful_edges(clean(noisy.graph, data.feat), names, 20)


def test_doubtful_edges_join_blocks(doubted):
    data, table = doubted
    assert len(table) == 20
    assert table["probability"].is_monotonic_increasing
    ends = [table[end].str.removeprefix("n").astype(int).to_numpy() for end in ("source", "target")]
    assert (data.labels[ends[0]] != data.labels[ends[1]]).mean() > 0.8


def test_reasons_are_terms_with_a_negative_number(doubted):
    for reasons in doubted[1]["against"]:
        values = [float(reason.rpartition(" ")[2]) for reason in reasons.split("; ")]
        assert 1 <= len(values) <= 3
        assert values == sorted(values)
        assert max(values) <= -0.1


def test_nothing_judged_is_an_empty_table():
    names = pd.Series(np.arange(5), dtype=object)
    table = doubtful_edges(clean(empty_graph(), None), names, 20)
    assert table.columns.tolist() == ["source", "target", "probability", "weight", "against"]
    assert not len(table)
