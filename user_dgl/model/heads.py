"""Heads: what maps embeddings to memberships."""

import torch
from torch import nn


class CentroidHead(nn.Module):
    r"""Logits :math:`\cos(h_i, c_k) / \tau` for embeddings h with unit rows.

    Parameters
    ----------
    centroids : Tensor (K, d)
        Where C starts.
    temperature : float
        :math:`\tau`.
    """

    def __init__(self, centroids: torch.Tensor, temperature: float):
        super().__init__()
        self.centroids, self.temperature = nn.Parameter(centroids.clone()), temperature

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """(N, d) -> (N, K)."""
        return hidden @ nn.functional.normalize(self.centroids, dim=1).t() / self.temperature
