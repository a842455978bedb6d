"""Deep Graph Infomax (Velickovic et al., 2019)."""

import torch

from user_dgl.baselines.base import Baseline
from user_dgl.config import BaselineConfig
from user_dgl.encoders import dgi as encoder


class DGI(Baseline):
    """One graph convolution that tells the graph from the same graph with features shuffled."""

    defaults = BaselineConfig(
        epochs=10_000, lr=0.001, weight_decay=0.0, hidden_feats=(512,), row_norm="l1", patience=20
    )
    encoder_name = "dgi"

    def __init__(self, problem):
        super().__init__(problem)
        self.encoder = encoder.DGI(problem.features.shape[1], problem.settings.hidden_feats)

    def updates(self, epoch):
        hidden, corrupted = self.with_corrupted()
        yield "model", {"mutual_information": self.encoder.summary.loss(hidden, corrupted)}

    def embed(self):
        return self.encoder(self.problem.propagation, self.problem.features)

    def with_corrupted(self):
        """Embeddings (N, d) of the graph, and of it with the rows of X in a drawn order."""
        problem = self.problem
        product = self.encoder.project(problem.features)
        order = torch.randperm(problem.graph.num_nodes).to(product.device)
        return tuple(
            self.encoder.convolve(problem.propagation, rows)
            for rows in (product, product.index_select(0, order))
        )
