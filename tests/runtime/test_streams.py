"""One stream of random numbers for each purpose, and no other generator in the package."""

import ast
from itertools import product
from pathlib import Path

import torch

import user_dgl
from user_dgl.runtime.streams import Stream, seed_torch, stream_rng, torch_generator

PACKAGE = Path(user_dgl.__file__).parent
SEEDED = ("default_rng", "SeedSequence", "manual_seed", "RandomState")


def test_numbers_are_unique_and_none_is_an_alias():
    assert len({int(stream) for stream in Stream}) == len(Stream.__members__)
    assert min(Stream) > 0


def test_no_two_draws_share_a_stream():
    """Not even where a seed or a further number is 0, which NumPy would take for padding."""
    more = [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]
    seeds = (0, 1, 2**31 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**64)
    seen = {
        (stream, seed, rest): stream_rng(seed, stream, *rest).integers(2**63)
        for stream, seed, rest in product(Stream, seeds, more)
    }
    assert len(set(seen.values())) == len(seen)


def test_torch_follows_the_same_streams():
    first = torch_generator(3, Stream.NETWORK).initial_seed()
    assert first == torch_generator(3, Stream.NETWORK).initial_seed()
    others = [
        torch_generator(3, Stream.NETWORK, 0).initial_seed(),
        torch_generator(4, Stream.NETWORK).initial_seed(),
        torch_generator(3, Stream.FINAL_LOSS).initial_seed(),
    ]
    assert len({first, *others}) == 4
    with torch.random.fork_rng(devices=[]):
        seed_torch(3, Stream.NETWORK)
        assert torch.initial_seed() == first


def test_every_stream_is_used_and_nothing_else_seeds_a_generator():
    used, wrong = set(), []
    for path in PACKAGE.rglob("*.py"):
        if path.name == "streams.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in SEEDED:
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Stream":
                used.add(node.attr)
    assert not wrong
    assert used == set(Stream.__members__)
