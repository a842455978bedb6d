"""A trainer of a small model, and comparisons of what it gives."""

import numpy as np
import pytest
import torch

from user_dgl.config import SyntheticConfig, load_config
from user_dgl.data import block_model
from user_dgl.training.hooks import Hooks
from user_dgl.training.trainer import Trainer

SMALL = (
    "model.num_clusters=3",
    "model.hidden_feats=[16]",
    "train.epochs=12",
    "train.lr=0.05",
    "structure.candidates.feature_knn=2",
)


REFRESH = (
    "structure.candidates.refresh_every=3",
    "structure.candidates.k_hop=1",
    "structure.candidates.same_cluster=1",
)


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=90, num_blocks=3, average_degree=6.0))


def trainer_of(data, *overrides, **callbacks):
    return Trainer(
        data.graph, data.feat, load_config(None, [*SMALL, *overrides]), Hooks(**callbacks)
    )


def same_result(a, b):
    return (
        np.array_equal(a.clusters, b.clusters)
        and np.array_equal(a.embedding, b.embedding)
        and np.array_equal(a.weight, b.weight)
        and a.loss == b.loss
    )


def copied(state):
    """Copy a checkpoint so that it shares no tensor with the trainer."""
    if isinstance(state, dict):
        return {k: copied(v) for k, v in state.items()}
    if isinstance(state, list):
        return [copied(v) for v in state]
    return state.clone() if isinstance(state, torch.Tensor) else state
