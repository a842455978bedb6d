"""Arrays of scores and labels as all metrics take them."""

import numpy as np
import torch

from user_dgl.errors import InputError


def as_array(values) -> np.ndarray:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def check_equal_length(**arrays):
    (name, first), (other, second) = arrays.items()
    if len(first) != len(second):
        raise InputError(f"{name} have {len(first)} rows, {other} have {len(second)}")
