"""Dropout whose draws are a function of seed, epoch, layer and node, and of nothing else.

So a node is dropped the same way whether its graph is trained at once, part by part or by several
processes, on a CPU or a GPU, and after a resume; and no state of a generator has to be kept.
"""

import math

import torch
from torch import nn

# Values drawn at a time on a CPU: their bits stay in the cache.
_BLOCK = 2**16
_MASK = 2**32 - 1
# A permutation of 32 bits in which every bit of the input sways every bit of the output, with the
# least bias known for two multiplications (C. Wellons, hash-prospector, 2018).
_STEPS = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, None))


class Dropout(nn.Module):
    r"""``torch.nn.Dropout`` for rows that belong to nodes.

    Entry j of the row of node i is dropped if a hash of (seed, epoch, layer, i, j) is less than the
    rate, and divided by ``1 - rate`` else. `draw_by` says which seed, epoch and nodes.

    Parameters
    ----------
    rate : float
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate
        self.key, self.nodes = (0, 0), None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, d) -> (n, d); in evaluation x itself."""
        if not self.training or self.rate == 0:
            return x
        return x * self._scale(x)

    def _scale(self, x: torch.Tensor) -> torch.Tensor:
        """What each entry is multiplied with, 0 or 1 / (1 - rate)."""
        num_rows, width = x.shape
        if self.nodes is None:
            nodes = torch.arange(num_rows, device=x.device)
        else:
            nodes = self.nodes[:num_rows]
        # With a second word of the key between two rounds: with one round, masks of two keys could
        # be permutations of each other.
        first, second = self.key
        rows = _mixed(_as_int32(nodes ^ (nodes >> 32) * 0x9E3779B1) ^ _signed(first))
        rows = _mixed(rows.add_(_signed(second)))
        columns = _mixed(torch.arange(width, dtype=torch.int32, device=x.device))
        # Of 2^32 values that a hash may have, those from here on are dropped.
        limit = -(2**31) + math.ceil((1 - self.rate) * 2**32) - 1
        scale = torch.empty_like(x)
        size = max(1, _BLOCK // width) if x.device.type == "cpu" else max(num_rows, 1)
        for start in range(0, num_rows, size):
            bits = _mixed(rows[start : start + size, None] ^ columns)
            scale[start : start + size] = bits <= limit
        return scale.div_(1 - self.rate)


def draw_by(model: nn.Module, seed: int, epoch: int, nodes: torch.Tensor | None = None) -> None:
    """Set what the draws of a model's `Dropout` layers are a function of.

    Parameters
    ----------
    model : Module
    seed, epoch : int
    nodes : int64 Tensor (n,), optional
        Id of the node of each row, of the first rows where a layer sees fewer; default: 0, 1, ...
    """
    layers = [module for module in model.modules() if isinstance(module, Dropout)]
    for number, layer in enumerate(layers):
        words = []
        for start in (0x243F6A88, 0x85A308D3):  # of pi
            word = start
            for part in (seed & _MASK, seed >> 32, epoch, number):
                word = _mixed_int(word ^ part) + 0x9E3779B9 & _MASK
            words.append(word)
        layer.key, layer.nodes = tuple(words), nodes


def _mixed(bits: torch.Tensor) -> torch.Tensor:
    """Hash of each of 32 bits, in place."""
    for shift, factor in _STEPS:
        # int32 shifts its sign in; only the lower bits are meant.
        bits ^= (bits >> shift).bitwise_and_(2 ** (32 - shift) - 1)
        if factor is not None:
            bits *= _signed(factor)
    return bits


def _mixed_int(bits: int) -> int:
    """`_mixed` of one number of 0..2^32 - 1."""
    for shift, factor in _STEPS:
        bits ^= bits >> shift
        if factor is not None:
            bits = bits * factor & _MASK
    return bits


def _signed(bits: int) -> int:
    """The int32 of the same bits."""
    return bits - 2**32 if bits >= 2**31 else bits


def _as_int32(numbers: torch.Tensor) -> torch.Tensor:
    """The lower 32 bits of int64 numbers."""
    low = numbers & _MASK
    return torch.where(low >= 2**31, low - 2**32, low).to(torch.int32)
