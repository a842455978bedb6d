"""Graph autoencoder (Kipf and Welling, 2016)."""

from collections.abc import Iterator

import torch

from user_dgl.baselines.base import Baseline, Problem, Terms, required
from user_dgl.config import BaselineConfig
from user_dgl.encoders.registry import encoder_class
from user_dgl.graph.pairs import sample_pairs
from user_dgl.losses.reconstruction import LinkTargets, link_cross_entropy


class GAE(Baseline):
    """GCN encoder without bias, and a decoder that scores links by inner products."""

    defaults = BaselineConfig(
        epochs=200,
        lr=0.01,
        weight_decay=0.0,
        hidden_feats=(32, 16),
        row_norm="none",
        samples_per_node=20,
    )
    # The targets that Cross-Graph sets for the reconstruction. None: 1 for every edge.
    targets: LinkTargets | None = None

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.encoder = encoder_class(self.encoder_name)(
            problem.features.shape[1], required(problem.settings.hidden_feats), 0.0
        )

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        yield "model", {"reconstruction": self.reconstruction(self.embed())}

    def reconstruction(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of the links, see `link_cross_entropy`."""
        problem = self.problem
        num_samples = required(problem.settings.samples_per_node) * problem.graph.num_nodes
        pairs = sample_pairs(problem.graph, num_samples)
        return link_cross_entropy(problem.graph, hidden, pairs, problem.engine, self.targets)

    def embed(self) -> torch.Tensor:
        return self.encoder(self.problem.propagation, self.problem.features)
