"""Streams of random numbers: one for each purpose, so that no draw depends on another.

scikit-learn's k-means, SVD and t-SNE take the seed of the run as it is. They have a generator of
another kind (MT19937), so that they share no draws with these streams. scikit-network's Louvain has
the same kind of generator; it gets a number drawn from a stream.
"""

import numbers
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from user_dgl.config.config import MOST_SEED
from user_dgl.errors import InputError


class Stream(IntEnum):
    """The purposes. The number of a purpose is never given to another one: results would change."""

    NETWORK = 1
    BASELINE_UPDATE = 2
    FINAL_LOSS = 3
    CANDIDATES = 4
    STATIC_CANDIDATES = 5
    CRITIC = 6
    LINK_CRITIC = 7
    PAIR_FOLDS = 8
    LOGIT_SAMPLE = 9
    METIS_EDGES = 11
    BATCHES = 12
    BATCH_ORDER = 13
    SILHOUETTE = 14
    NEIGHBOUR_INDEX = 15
    RANDOM_FLIP = 16
    METATTACK = 17
    SURROGATE = 18
    SYNTHETIC_GRAPH = 19
    LINK_SPLIT = 20
    REPORT_MAP = 21
    HIDDEN_EDGES = 22
    COMMUNITIES = 23
    SPECTRAL_BASIS = 24
    BLOCK_MODEL = 25
    CHANCE = 26
    KMEANS_SAMPLE = 31
    TRIED_NODES = 32
    CURVE_SAMPLE = 33


def seed_of(random_state: Any) -> int:
    """The seed that a ``random_state`` of scikit-learn's kind stands for.

    Parameters
    ----------
    random_state : int, RandomState, Generator or the module ``numpy.random``
        A whole number is the seed itself; of a generator a number is drawn.

    Raises
    ------
    InputError
        It is none of these, or a number outside 0 to 2^31 - 1.
    """
    if isinstance(random_state, numbers.Integral):
        if isinstance(random_state, bool) or not 0 <= int(random_state) <= MOST_SEED:
            raise InputError(
                f"random_state: expected a whole number from 0 to {MOST_SEED}, got {random_state!r}"
            )
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(MOST_SEED))
    try:
        return int(check_random_state(random_state).randint(MOST_SEED))
    except ValueError as error:
        raise InputError(f"random_state: {error}") from None


def stream_rng(seed: int, stream: Stream, *more: int) -> np.random.Generator:
    """The NumPy generator of a stream.

    Parameters
    ----------
    seed : int
        0 or more.
    stream : Stream
    more : int
        What else tells draws of this stream apart, such as the epoch; each from 0 to 2^32 - 1.

    >>> one, other = stream_rng(3, Stream.CRITIC), stream_rng(3, Stream.LINK_CRITIC)
    >>> bool(one.random() == other.random())
    False
    """
    return np.random.default_rng(_sequence(seed, stream, *more))


def torch_generator(seed: int, stream: Stream, *more: int) -> torch.Generator:
    """A torch generator on the CPU for a stream; parameters as for `stream_rng`."""
    return torch.Generator().manual_seed(_torch_seed(seed, stream, *more))


def seed_torch(seed: int, stream: Stream, *more: int) -> None:
    """Seed torch's default generator on the CPU for a stream; parameters as for `stream_rng`."""
    torch.default_generator.manual_seed(_torch_seed(seed, stream, *more))


def _torch_seed(seed: int, stream: Stream, *more: int) -> int:
    return int(_sequence(seed, stream, *more).generate_state(1)[0])


def _sequence(seed: int, stream: Stream, *more: int) -> np.random.SeedSequence:
    # NumPy pads the entropy with zeros, so that [5], [5, 0] and [5, 0, 0] are one stream. Here the
    # first word says how many numbers follow it, and the last word is never 0.
    return np.random.SeedSequence([16 * stream + len(more), *more, seed + 1])
