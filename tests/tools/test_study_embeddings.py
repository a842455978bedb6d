"""tools/study_embeddings.py: its features, and its page."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from study_embeddings import KINDS, RESULTS, TABLES, report, scores, table

from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model

NODES = SyntheticConfig(
    num_nodes=300, num_blocks=3, average_degree=8, num_features=200, words_per_node=30,
    topic_share=0.7,
)  # fmt: skip


@pytest.fixture
def data():
    return block_model(NODES)


def test_the_page_is_that_of_the_file():
    page = Path(RESULTS / "embeddings.md").read_text(encoding="utf-8")
    assert page == report(pd.read_csv(RESULTS / "embeddings.csv"))


COLUMNS = {"mean of word vectors": 100, "standardised words": NODES.num_features}
OF_THEIR_OWN = "shares of topics", "amounts"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OF_THEIR_OWN])
def test_values_are_dense_and_keep_what_words_say(kind, data):
    values = KINDS[kind](data.feat)
    assert values.shape == (300, COLUMNS.get(kind, 128))
    assert (values != 0).mean() > 0.99
    assert values.min() < 0
    centred = values - values.mean(0)
    centres = np.stack([centred[data.labels == k].mean(0) for k in range(3)])
    found = ((centred[:, None] - centres) ** 2).sum(2).argmin(1)
    assert (found == data.labels).mean() > 0.9


def test_shares_of_topics_have_sum_1_and_few_large_ones(data):
    values = KINDS["shares of topics"](data.feat)
    assert values.shape == (300, 40)
    assert values.min() > 0
    np.testing.assert_allclose(values.sum(axis=1), 1, rtol=1e-5)
    assert np.median(values) < 0.5 * values.mean()


def test_amounts_have_units_and_long_tails(data):
    values = KINDS["amounts"](data.feat)
    assert values.shape == (300, 60)
    spread = values.std(axis=0)
    assert spread.max() > 100 * spread.min()
    tails = values.max(axis=0) - np.median(values, axis=0)
    assert (tails / np.subtract(*np.percentile(values, (75, 25), axis=0)))[::2].mean() > 5


@pytest.mark.parametrize("kind", TABLES)
def test_tables_have_blocks_and_few_columns(kind):
    columns, shares = TABLES[kind]
    data = table(columns, shares, 0)
    assert data.feat.shape[1] <= 16
    sizes = np.bincount(data.labels) / 2_000
    np.testing.assert_allclose(sizes, shares, atol=0.03)
    within = (data.labels[data.graph.src] == data.labels[data.graph.dst]).mean()
    assert 0.6 < within < 0.98
    other = table(columns, shares, 1)
    assert (other.labels != data.labels).any()


def test_embeddings_have_a_large_mean_in_common(data):
    values = KINDS["embedding"](data.feat)
    cosines = values @ values.T
    assert cosines.min() > 0.8


def test_scores_of_the_default_and_the_four_floors(data):
    found = scores(data, 50, 0)
    assert len(found) == 5
    assert found["default"] > 50
    assert "prepared_smooth_kmeans" in found
    rows = [{"set": "blocks", "features": "words", "rate": 50, "seed": 0, **found}]
    (line,) = (line for line in report(pd.DataFrame(rows)).splitlines() if "blocks" in line)
    best = max((name for name in found if name != "default"), key=found.__getitem__)
    assert f"| {best} | {found[best]:.1f}" in line
