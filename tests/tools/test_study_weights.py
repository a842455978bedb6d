"""tools/study_weights.py: its graphs, and its page."""

from pathlib import Path

import numpy as np
import pandas as pd
from study_weights import RESULTS, heavy_blocks, report, weighted_blocks


def test_the_page_is_that_of_the_file():
    page = Path(RESULTS / "weights.md").read_text(encoding="utf-8")
    assert page == report(pd.read_csv(RESULTS / "weights.csv"))


def test_only_the_weights_carry_the_blocks():
    data = weighted_blocks(0)
    ends = data.graph.src.numpy(), data.graph.dst.numpy()
    inside = data.labels[ends[0]] == data.labels[ends[1]]
    assert abs(inside.mean() - 0.25) < 0.02
    weight = data.graph.edge_weight.numpy()
    assert weight[inside].mean() > 2 * weight[~inside].mean()


def test_edges_and_weights_of_the_heavy_blocks_are_as_asked():
    for factor, mixing in ((1.0, 0.4), (7.0, 0.6)):
        data = heavy_blocks(factor, mixing)(0)
        ends = data.graph.src.numpy(), data.graph.dst.numpy()
        inside = data.labels[ends[0]] == data.labels[ends[1]]
        assert abs(inside.mean() - (1 - mixing)) < 0.02
        weight = np.log(data.graph.edge_weight.numpy())
        assert abs(weight[inside].mean() - weight[~inside].mean() - np.log(factor)) < 0.15
