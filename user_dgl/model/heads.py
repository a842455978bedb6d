"""Heads: modules that map embeddings to the logits of the memberships."""

import torch
from torch import nn


class CentroidHead(nn.Module):
    r"""Logits :math:`\cos(h_i, c_k) / \tau` of embeddings h whose rows have norm 1.

    Parameters
    ----------
    centroids : Tensor (K, d)
        First value of the centroids C, which are trained. A centroid of 0, that of an empty
        cluster, has no direction that a gradient could turn, and stays 0.
    temperature : float
        :math:`\tau`.
    """

    def __init__(self, centroids: torch.Tensor, temperature: float):
        super().__init__()
        self.centroids, self.temperature = nn.Parameter(centroids.clone()), temperature
        self.used: torch.Tensor
        used = (centroids != 0).any(1, keepdim=True)
        self.register_buffer("used", used.to(centroids), persistent=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Compute the logits (N, K) of embeddings (N, d)."""
        directions = nn.functional.normalize(self.centroids, dim=1) * self.used
        return hidden @ directions.t() / self.temperature
