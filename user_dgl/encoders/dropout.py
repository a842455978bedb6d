"""Dropout whose random numbers depend only on seed, epoch, layer, node and column.

The same entries are therefore dropped when the whole graph is trained at once, in parts or by
several processes, on a CPU or a GPU, and after a resume. There is no state of a random generator to
save.
"""

import math

import torch
from torch import nn

# Number of values drawn at a time on a CPU. Their bits fit in the cache.
_BLOCK = 2**16
_MASK = 2**32 - 1
# A permutation of 32-bit numbers in which each bit of the input changes each bit of the output with
# probability 1/2, with the smallest bias known for two multiplications (C. Wellons,
# hash-prospector, 2018). Each step is a right shift and a factor.
_STEPS: tuple[tuple[int, int | None], ...] = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, None))


class Dropout(nn.Module):
    r"""``torch.nn.Dropout`` for tensors whose rows belong to nodes.

    Entry j in the row of node i is dropped with probability ``rate``, decided by a hash of (seed,
    epoch, layer, i, j). Entries that are kept are divided by ``1 - rate``. `draw_by` sets the seed,
    the epoch and the nodes.

    Parameters
    ----------
    rate : float
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate
        self.key = (0, 0)
        self.nodes: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply dropout to x (n, d). In evaluation mode the result is x itself."""
        if not self.training or self.rate == 0:
            return x
        return x * self._scale(x)

    def _scale(self, x: torch.Tensor) -> torch.Tensor:
        """Factor of each entry of x: 0 or 1 / (1 - rate)."""
        num_rows, width = x.shape
        if self.nodes is None:
            nodes = torch.arange(num_rows, device=x.device)
        else:
            nodes = self.nodes[:num_rows]
        # The second word of the key enters between two rounds of the hash. With a single round, the
        # masks of two keys could be permutations of each other.
        first, second = self.key
        rows = _mixed(_as_int32(nodes ^ (nodes >> 32) * 0x9E3779B1) ^ _signed(first))
        rows = _mixed(rows.add_(_signed(second)))
        columns = _mixed(torch.arange(width, dtype=torch.int32, device=x.device))
        # The hash has 2^32 possible values. Entries whose hash is greater than this are dropped.
        limit = -(2**31) + math.ceil((1 - self.rate) * 2**32) - 1
        scale = torch.empty_like(x)
        size = max(1, _BLOCK // width) if x.device.type == "cpu" else max(num_rows, 1)
        for start in range(0, num_rows, size):
            bits = _mixed(rows[start : start + size, None] ^ columns)
            scale[start : start + size] = bits <= limit
        return scale.div_(1 - self.rate)


def draw_by(model: nn.Module, seed: int, epoch: int, nodes: torch.Tensor | None = None) -> None:
    """Set the inputs of the random numbers of all `Dropout` layers of a model.

    Parameters
    ----------
    model : Module
    seed, epoch : int
    nodes : int64 Tensor (n,), optional
        Id of the node of each row. A layer with fewer rows uses the first ids. Default: 0, 1, ...
    """
    layers = [module for module in model.modules() if isinstance(module, Dropout)]
    for number, layer in enumerate(layers):
        words = []
        for start in (0x243F6A88, 0x85A308D3):  # digits of pi
            word = start
            for part in (seed & _MASK, seed >> 32, epoch, number):
                word = _mixed_int(word ^ part) + 0x9E3779B9 & _MASK
            words.append(word)
        first, second = words
        layer.key, layer.nodes = (first, second), nodes


def _mixed(bits: torch.Tensor) -> torch.Tensor:
    """Hash each int32, in place."""
    for shift, factor in _STEPS:
        # A right shift of int32 fills the upper bits with the sign, so they are cleared.
        bits ^= (bits >> shift).bitwise_and_(2 ** (32 - shift) - 1)
        if factor is not None:
            bits *= _signed(factor)
    return bits


def _mixed_int(bits: int) -> int:
    """Hash one number in 0..2^32 - 1, like `_mixed`."""
    for shift, factor in _STEPS:
        bits ^= bits >> shift
        if factor is not None:
            bits = bits * factor & _MASK
    return bits


def _signed(bits: int) -> int:
    """The int32 with the same bits as a number in 0..2^32 - 1."""
    return bits - 2**32 if bits >= 2**31 else bits


def _as_int32(numbers: torch.Tensor) -> torch.Tensor:
    """The lower 32 bits of int64 numbers, as int32."""
    low = numbers & _MASK
    return torch.where(low >= 2**31, low - 2**32, low).to(torch.int32)
