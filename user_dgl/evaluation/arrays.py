"""Conversion and checks of the arrays that the metrics take."""

import numpy as np
import torch
from numpy.typing import ArrayLike

from user_dgl.errors import InputError

# Scores, labels, clusters or points, as a list, an array or a tensor on any device.
Values = ArrayLike | torch.Tensor


def as_array(values: Values) -> np.ndarray:
    """Convert to a NumPy array; a tensor is detached and moved to the CPU."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def check_equal_length(**arrays: np.ndarray) -> None:
    """Check that two arrays, given by their names, have the same number of rows.

    Raises
    ------
    InputError
        They differ.
    """
    (name, first), (other, second) = arrays.items()
    if len(first) != len(second):
        raise InputError(f"{name} have {len(first)} rows, {other} have {len(second)}")
