"""Interface of a baseline: how it is updated, what it embeds, how its clusters are read out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from user_dgl.clustering.kmeans import kmeans
from user_dgl.config import BaselineConfig
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.graph.propagation import Propagation

Terms = dict[str, torch.Tensor]
T = TypeVar("T")


def required(setting: T | None) -> T:
    """Return a setting of `BaselineConfig` that `resolve_baseline` has filled in."""
    assert setting is not None, "resolve_baseline has not filled in this setting"
    return setting


@dataclass(frozen=True, eq=False)
class Problem:
    """The data and settings that a baseline works on. There are no labels among them.

    Attributes
    ----------
    graph : Graph
        The observed graph.
    feat : scipy CSR (N, F)
    features : FeatureMatrix
        The same features, in a form that multiplies fast.
    settings : BaselineConfig
    num_clusters, seed : int
    engine : str
    """

    graph: Graph
    feat: sp.csr_matrix
    features: FeatureMatrix
    settings: BaselineConfig
    num_clusters: int
    seed: int
    engine: str

    @cached_property
    def propagation(self) -> Propagation:
        """The propagation matrix S of the observed graph."""
        return self.propagation_of(self.graph.edge_weight)

    def propagation_of(self, weight: torch.Tensor) -> Propagation:
        """Return S of the graph with edge weights (E,)."""
        weight = weight.to(self.features.device, self.features.dtype)
        return Propagation.of(self.graph, weight, self.engine)


class Baseline(nn.Module):
    """A method that USER is compared with.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    defaults : BaselineConfig
        The settings of the method's paper. A setting that the method does not have is None.
    encoder_name : str
        Key of `user_dgl.config.model.ENCODERS`: the encoder that the method trains, or one that
        takes as much memory.
    cpu_only : bool
        Whether the method cannot run on a GPU.
    one_layer : bool
        Whether only the last of ``baseline.hidden_feats`` has an effect.
    reads_weights : bool
        Whether the weights of the edges have an effect.
    """

    defaults: ClassVar[BaselineConfig]
    encoder_name: ClassVar[str] = "gae"
    cpu_only: ClassVar[bool] = False
    one_layer: ClassVar[bool] = False
    reads_weights: ClassVar[bool] = True

    def __init__(self, problem: Problem):
        super().__init__()
        self.problem = problem

    @staticmethod
    def bytes_beside(num_nodes: int, settings: BaselineConfig) -> float:
        """Estimate the bytes that an update needs at its peak in addition to the encoder's."""
        return 0.0

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        """Yield the updates of an epoch as the name of an optimizer and its loss terms.

        The name is a key of `optimizers`; the update lowers the sum of the terms. The caller makes
        each update before it asks for the next one.
        """
        raise NotImplementedError

    def embed(self) -> torch.Tensor:
        """Return the embeddings (N, d) by the present weights."""
        raise NotImplementedError

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Return the optimizers by name; the learning rate of the first one is reported."""
        return {"model": self.adam(self.parameters())}

    def adam(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return an Adam optimizer with the learning rate and weight decay of the settings."""
        settings = self.problem.settings
        return torch.optim.Adam(
            parameters, lr=required(settings.lr), weight_decay=settings.weight_decay or 0.0
        )

    def finish_epoch(self, epoch: int) -> None:
        """Do the method's work at the end of an epoch, after its updates."""

    def read_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return embeddings (N, d) by the last weights and their k-means clusters (N,)."""
        embedding = self.embed().cpu().numpy()
        return embedding, kmeans(embedding, self.problem.num_clusters, self.problem.seed)
