"""Agreement of clusterings: scikit-learn's NMI."""

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from user_dgl.clustering.agreement import pairwise_nmi


def test_values_of_scikit_learn():
    rng = np.random.default_rng(0)
    base = rng.integers(0, 6, 400)
    clusterings = [
        base,
        np.where(rng.random(400) < 0.3, rng.integers(0, 6, 400), base),
        2 * (base // 2) + 3,  # some numbers are not used
        rng.integers(0, 9, 400),
        np.zeros(400, dtype=np.int64),
        np.full(400, 2),
    ]
    found = pairwise_nmi(clusterings)
    for i, one in enumerate(clusterings):
        assert found[i, i] == 0
        for j, other in enumerate(clusterings[:i]):
            expected = normalized_mutual_info_score(one, other)
            assert found[i, j] == found[j, i] == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_one_clustering():
    assert pairwise_nmi([np.array([0, 1])]).tolist() == [[0.0]]
