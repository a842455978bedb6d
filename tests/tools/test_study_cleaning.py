"""tools/study_cleaning.py: its calibration error."""

import numpy as np
import pytest
from study_cleaning import calibration_error


def test_a_calibrated_chance_has_no_error():
    rng = np.random.default_rng(0)
    chance = rng.random(20_000)
    assert calibration_error(chance, rng.random(20_000) < chance) < 0.02


@pytest.mark.parametrize(("chance", "share", "error"), [(0.9, 0.5, 0.4), (1.0, 0.0, 1.0)])
def test_a_constant_chance_is_wrong_by_its_gap(chance, share, error):
    happened = np.arange(100) < 100 * share
    assert calibration_error(np.full(100, chance), happened) == pytest.approx(error)
