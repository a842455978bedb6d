"""Draws that are a function of seed, epoch, layer and node."""

import numpy as np
import pytest
import torch
from torch import nn

from user_dgl.encoders.dropout import Dropout, draw_by


def _kept(rate=0.3, seed=0, epoch=0, nodes=None, shape=(3000, 20), layer=0):
    layers = nn.ModuleList(Dropout(rate) for _ in range(layer + 1)).train()
    draw_by(layers, seed, epoch, nodes)
    return layers[layer](torch.ones(shape, dtype=torch.float64)) != 0


@pytest.mark.parametrize("rate", [0.5, 0.3, 0.01])
def test_share_and_scale(rate):
    x = torch.full((3000, 20), 2.0, dtype=torch.float64, requires_grad=True)
    layer = Dropout(rate).train()
    found = layer(x)
    kept = found != 0
    torch.testing.assert_close(found[kept], torch.full_like(found[kept], 2 / (1 - rate)))
    error = (rate * (1 - rate) / kept.numel()) ** 0.5
    assert abs(kept.double().mean() - (1 - rate)) < 4 * error
    (gradient,) = torch.autograd.grad(found.sum(), x)
    assert torch.equal(gradient, found.detach() / 2)
    layer.eval()
    assert layer(x) is x
    assert Dropout(0.0).train()(x) is x


@pytest.mark.parametrize(
    "other", [{"seed": 1}, {"seed": 2**40}, {"epoch": 1}, {"layer": 1}, {"nodes": 10_000}]
)
def test_draws_are_independent(other):
    """Of seeds, epochs, layers and nodes: correlations are those of chance."""
    if "nodes" in other:
        other = {"nodes": torch.arange(3000) + other["nodes"]}
    a, b = _kept().double(), _kept(**other).double()
    correlation = np.corrcoef(a.view(-1), b.view(-1))[0, 1]
    assert abs(correlation) < 4 / a.numel() ** 0.5


def test_masks_of_two_keys_are_no_permutations_of_each_other():
    """As they would be with one round, for nodes that the keys' difference maps to each other."""
    a, b = (nn.ModuleList([Dropout(0.3)]).train() for _ in range(2))
    a[0].key, b[0].key = (5, 77), (5 ^ 1024, 1234567)
    x, nodes = torch.ones(4096, 20, dtype=torch.float64), torch.arange(4096) ^ 1024
    kept = (a[0](x) != 0).double(), (b[0](x)[nodes] != 0).double()
    correlation = np.corrcoef(kept[0].view(-1), kept[1].view(-1))[0, 1]
    assert abs(correlation) < 4 / kept[0].numel() ** 0.5


def test_rows_and_columns_are_independent():
    kept = _kept(shape=(20_000, 16)).double().numpy()
    columns = np.corrcoef(kept.T) - np.eye(16)
    assert np.abs(columns).max() < 4.5 / 20_000**0.5
    for step in (1, 2, 64):
        rows = np.corrcoef(kept[step:].ravel(), kept[:-step].ravel())[0, 1]
        assert abs(rows) < 4 / kept.size**0.5
    shares = kept.mean(1)
    assert shares.std() == pytest.approx((0.3 * 0.7 / 16) ** 0.5, rel=0.05)


def test_a_node_is_drawn_alike_whoever_holds_it():
    whole = _kept()
    nodes = torch.randperm(3000)[:500]
    assert torch.equal(_kept(nodes=nodes, shape=(500, 20)), whole[nodes])
    # A layer may see fewer rows, the first of those at hand.
    assert torch.equal(_kept(nodes=nodes, shape=(200, 20)), whole[nodes[:200]])


def test_node_ids_beyond_32_bits():
    nodes = torch.arange(3000) + 2**33
    kept = _kept(nodes=nodes)
    assert not torch.equal(kept, _kept())
    assert abs(kept.double().mean() - 0.7) < 0.01
