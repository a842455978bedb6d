"""Graph InfoClust (Mavromatis and Karypis, 2021)."""

from dataclasses import replace

import torch
from torch.nn.functional import normalize, softmax

from user_dgl.baselines.dgi import DGI
from user_dgl.losses.discriminators import contrast

# As in the authors' code: share of the graph's summary in the loss, sharpness of memberships, steps
# of the soft k-means before the one that gradients flow through.
_GRAPH_SHARE, _SHARPNESS, _STEPS = 0.5, 100.0, 10


class GIC(DGI):
    """`DGI` that also tells nodes from corrupted ones by a summary of their cluster.

    There are as many clusters as are to be found in the end, as in the authors' clustering.
    """

    defaults = replace(DGI.defaults, epochs=2000, patience=50)

    def __init__(self, problem):
        super().__init__(problem)
        # Where the soft k-means starts from, in every epoch.
        first = torch.rand(problem.num_clusters, self.encoder.out_feats)
        self.register_buffer("first_centroids", first)

    @staticmethod
    def bytes_beside(num_nodes, settings):
        # Six blocks of embeddings: summaries, and products with those.
        return 6 * 4.0 * num_nodes * settings.hidden_feats[-1]

    def updates(self, epoch):
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

    def cluster_summaries(self, hidden):
        """Summary (N, d) of the clusters of each node, by its memberships in them."""
        # Rows of length 1 by scaling what they are multiplied with, which is thinner than they are.
        scale = 1 / torch.linalg.vector_norm(hidden, dim=1).clamp_min(1e-12)
        centroids = self.first_centroids
        with torch.no_grad():
            for _ in range(_STEPS):
                centroids, _ = _soft_step(hidden, scale, centroids)
        centroids, membership = _soft_step(hidden, scale, centroids)
        return torch.sigmoid(membership.t() @ centroids)


def _soft_step(hidden, scale, centroids):
    """A step of soft k-means by cosines: centroids (K, d), and memberships (K, N) before it."""
    cosines = normalize(centroids, dim=1) @ hidden.t() * scale
    membership = softmax(_SHARPNESS * cosines, 0)
    # A cluster that lost all its nodes has no mean.
    count = membership.sum(1, keepdim=True).clamp_min(1e-12)
    return (membership * scale) @ hidden / count, membership
