"""Deep Graph Infomax (Velickovic et al., 2019)."""

from collections.abc import Iterator

import torch

from user_dgl.baselines.base import Baseline, Problem, Terms, required
from user_dgl.config import BaselineConfig
from user_dgl.encoders import dgi as encoder


class DGI(Baseline):
    """One graph convolution, trained to tell the graph from a copy with shuffled features."""

    defaults = BaselineConfig(
        epochs=10_000, lr=0.001, weight_decay=0.0, hidden_feats=(512,), row_norm="l1", patience=20
    )
    encoder_name = "dgi"

    def __init__(self, problem: Problem):
        super().__init__(problem)
        hidden_feats = required(problem.settings.hidden_feats)
        self.encoder = encoder.DGI(problem.features.shape[1], hidden_feats)

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        hidden, corrupted = self.with_corrupted()
        yield "model", {"mutual_information": self.encoder.summary.loss(hidden, corrupted)}

    def embed(self) -> torch.Tensor:
        return self.encoder(self.problem.propagation, self.problem.features)

    def with_corrupted(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return embeddings (N, d) of the graph, and of the graph with the rows of X shuffled."""
        problem, encoder = self.problem, self.encoder
        product = encoder.project(problem.features)
        order = torch.randperm(problem.graph.num_nodes).to(product.device)
        hidden = encoder.convolve(problem.propagation, product)
        return hidden, encoder.convolve(problem.propagation, product.index_select(0, order))
