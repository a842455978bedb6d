"""Heads: modules that map embeddings to the logits of the memberships."""

import torch
from torch import nn


class CentroidHead(nn.Module):
    r"""Logits :math:`\cos(h_i, c_k) / \tau` of embeddings h whose rows have norm 1.

    Parameters
    ----------
    centroids : Tensor (K, d)
        First value of the centroids C, which are trained.
    temperature : float
        :math:`\tau`.
    """

    def __init__(self, centroids: torch.Tensor, temperature: float):
        super().__init__()
        self.centroids, self.temperature = nn.Parameter(centroids.clone()), temperature

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Compute the logits (N, K) of embeddings (N, d)."""
        return hidden @ nn.functional.normalize(self.centroids, dim=1).t() / self.temperature
