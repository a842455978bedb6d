"""Ids: the search for unusual spellings, and positions among distinct ids."""

import re

import numpy as np
import pytest

from user_dgl.data.reading import ids
from user_dgl.data.reading.ids import index_ids, may_respell


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 17])
def test_leading_zeros_are_found_in_blocks_of_any_size(block, monkeypatch):
    monkeypatch.setattr(ids, "_BLOCK", block)
    rng = np.random.default_rng(block)
    for _ in range(300):
        body = rng.choice(list(b"0017.,\n x"), size=rng.integers(0, 12)).astype(np.uint8).tobytes()
        assert may_respell(body) == bool(re.search(rb"(?<![0-9.])0[0-9]", body)), body


@pytest.mark.parametrize("values", [[5, 3, 4, 3], [0, 1, 2], [9, -2, 9], [10**15, 3, 10**15]])
def test_positions_among_distinct_ids(values):
    values = np.array(values)
    codes, names = index_ids(values)
    assert names.tolist() == sorted(set(values.tolist()))
    assert names[codes].tolist() == values.tolist()
