"""The head of centroids against its formula."""

import numpy as np
import pytest
import torch

from user_dgl.model.heads import CentroidHead


@pytest.mark.parametrize("temperature", [0.1, 2.0])
def test_logits_are_cosines_over_the_temperature(temperature):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.nn.functional.normalize(torch.randn(9, 4, generator=generator), dim=1)
    # Of very different lengths, which training gives them too.
    centroids = torch.randn(3, 4, generator=generator) * torch.tensor([[0.01], [1.0], [100.0]])
    head = CentroidHead(centroids, temperature)
    lengths = np.linalg.norm(hidden, axis=1)[:, None] * np.linalg.norm(centroids, axis=1)
    expected = hidden.numpy() @ centroids.numpy().T / lengths / temperature
    np.testing.assert_allclose(head(hidden).detach(), expected, rtol=1e-5, atol=1e-6)


def test_a_low_temperature_makes_memberships_hard():
    points = torch.nn.functional.normalize(torch.tensor([[1.0, 0.3], [0.2, 1.0]]), dim=1)
    hard, soft = (
        torch.softmax(CentroidHead(torch.eye(2), temperature)(points), 1).amax(1)
        for temperature in (0.01, 10.0)
    )
    assert (hard > 0.999).all()
    assert (soft < 0.6).all()


def test_the_centroid_of_an_empty_cluster_stays_where_it_is():
    """It has no direction: the gradient of its norm would be without bounds."""
    head = CentroidHead(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), 0.5)
    logits = head(torch.nn.functional.normalize(torch.tensor([[1.0, 0.3], [0.2, 1.0]]), dim=1))
    assert (logits[:, 1] == 0).all()
    torch.softmax(logits, 1)[:, 1].sum().backward()
    assert (head.centroids.grad[1] == 0).all()
    assert (head.centroids.grad[0] != 0).any()
    assert "used" not in head.state_dict()
