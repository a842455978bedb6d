"""What a baseline is: how it is updated, what it embeds, how clusters are read from that."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

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


@dataclass(frozen=True, eq=False)
class Problem:
    """What a baseline is given; no labels.

    Attributes
    ----------
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F)
    features : FeatureMatrix
        The same, to multiply with.
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
        """S of the observed graph, every edge at weight 1."""
        return self.propagation_of(torch.ones(self.graph.num_edges))

    def propagation_of(self, weight: torch.Tensor) -> Propagation:
        """S of the graph with weights (E,)."""
        weight = weight.to(self.features.device, self.features.dtype)
        return Propagation.of(self.graph, weight, self.engine)


class Baseline(nn.Module):
    """A method to compare with.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    defaults : BaselineConfig
        Settings of the method's paper; None where the method has no such setting.
    encoder_name : str
        Of `user_dgl.encoders.ENCODERS`: the one that it trains or that takes as much memory.
    cpu_only : bool
    """

    defaults: ClassVar[BaselineConfig]
    encoder_name: ClassVar[str] = "gae"
    cpu_only: ClassVar[bool] = False

    def __init__(self, problem: Problem):
        super().__init__()
        self.problem = problem

    @staticmethod
    def bytes_beside(num_nodes: int, settings: BaselineConfig) -> float:
        """What an update holds at its peak beside what the encoder does."""
        return 0.0

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        """The updates of an epoch: one of the `optimizers`, and terms whose sum it is to lower.

        Each is made before the next one is asked for.
        """
        raise NotImplementedError

    def embed(self) -> torch.Tensor:
        """Embeddings (N, d) by the present weights."""
        raise NotImplementedError

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """By name, the first one being that whose learning rate is reported."""
        return {"model": self.adam(self.parameters())}

    def adam(self, parameters) -> torch.optim.Optimizer:
        """Adam by the settings."""
        settings = self.problem.settings
        return torch.optim.Adam(
            parameters, lr=settings.lr, weight_decay=settings.weight_decay or 0.0
        )

    def finish_epoch(self, epoch: int) -> None:
        """After the updates of an epoch."""

    def read_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Embeddings (N, d) and clusters (N,): k-means on what the last weights embed."""
        embedding = self.embed().cpu().numpy()
        return embedding, kmeans(embedding, self.problem.num_clusters, self.problem.seed)
