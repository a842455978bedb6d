"""Graph InfoClust (Mavromatis and Karypis, 2021)."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.nn.functional import normalize, softmax

from user_dgl.baselines.base import Problem, Terms, required
from user_dgl.baselines.dgi import DGI
from user_dgl.config import BaselineConfig
from user_dgl.losses.discriminators import contrast

# Values of the authors' code: the weight of the graph's summary in the loss, the sharpness of the
# soft memberships, and the number of soft k-means steps before the one that gradients pass through.
_GRAPH_SHARE, _SHARPNESS, _STEPS = 0.5, 100.0, 10


class GIC(DGI):
    """`DGI` that also tells nodes from corrupted nodes by the summary of their cluster.

    The number of soft clusters equals the number of clusters to find, as in the authors' code.
    """

    defaults = replace(DGI.defaults, epochs=2000, patience=50)
    first_centroids: torch.Tensor

    def __init__(self, problem: Problem):
        super().__init__(problem)
        # The soft k-means of every epoch starts from these centroids.
        first = torch.rand(problem.num_clusters, self.encoder.out_feats)
        self.register_buffer("first_centroids", first)

    @staticmethod
    def bytes_beside(num_nodes: int, settings: BaselineConfig) -> float:
        # Six blocks of the size of the embeddings: the summaries, and the products with them.
        return 6 * 4.0 * num_nodes * required(settings.hidden_feats)[-1]

    def updates(self, epoch: int) -> Iterator[tuple[str, Terms]]:
        hidden, corrupted = self.with_corrupted()
        summary = self.cluster_summaries(hidden)
        of_clusters = contrast((hidden * summary).sum(1), (corrupted * summary).sum(1)) / 2
        yield (
            "model",
            {
                "mutual_information": _GRAPH_SHARE * self.encoder.summary.loss(hidden, corrupted),
                "cluster_information": (1 - _GRAPH_SHARE) * of_clusters,
            },
        )

    def cluster_summaries(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return for each node the summary (N, d) of its clusters, weighted by its memberships."""
        # This factor, on the thinner matrices that multiply the rows, gives the rows length 1.
        scale = 1 / torch.linalg.vector_norm(hidden, dim=1).clamp_min(1e-12)
        centroids = self.first_centroids
        with torch.no_grad():
            for _ in range(_STEPS):
                centroids, _ = _soft_step(hidden, scale, centroids)
        centroids, membership = _soft_step(hidden, scale, centroids)
        return torch.sigmoid(membership.t() @ centroids)


def _soft_step(
    hidden: torch.Tensor, scale: torch.Tensor, centroids: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make a soft k-means step by cosines.

    Returns the new centroids (K, d), and the memberships (K, N) in the clusters of the old ones.
    """
    cosines = normalize(centroids, dim=1) @ hidden.t() * scale
    membership = softmax(_SHARPNESS * cosines, 0)
    # A cluster may have lost all its nodes; its sum of memberships is then 0.
    count = membership.sum(1, keepdim=True).clamp_min(1e-12)
    return (membership * scale) @ hidden / count, membership
