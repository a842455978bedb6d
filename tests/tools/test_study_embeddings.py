"""tools/study_embeddings.py: its features, and its page."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from study_embeddings import KINDS, RESULTS, report, scores

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


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_dense_and_signed_and_keep_what_words_say(kind, data):
    values = KINDS[kind](data.feat)
    assert values.shape == (300, 100 if kind == "mean of word vectors" else 128)
    assert (values != 0).mean() > 0.99
    assert values.min() < 0
    centred = values - values.mean(0)
    centres = np.stack([centred[data.labels == k].mean(0) for k in range(3)])
    found = ((centred[:, None] - centres) ** 2).sum(2).argmin(1)
    assert (found == data.labels).mean() > 0.9


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
