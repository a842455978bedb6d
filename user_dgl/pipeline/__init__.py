"""From settings to a run directory: data, noise, training, scores."""

from user_dgl.pipeline.evaluate import evaluate
from user_dgl.pipeline.train import train

__all__ = [
    "evaluate",
    "train",
]
