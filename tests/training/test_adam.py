"""Adam of this package against the one of torch."""

import subprocess
import sys

import torch

from user_dgl.training.adam import Adam


def groups():
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(size, generator=generator) for size in ((7, 3), (5,)))
    unused = torch.randn(2, generator=generator)
    return [
        {"params": [torch.nn.Parameter(first), torch.nn.Parameter(unused)], "weight_decay": 0.1},
        {"params": [torch.nn.Parameter(second)], "lr": 0.5},
    ]


def train(optimizer, epochs, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for group in optimizer.param_groups:
            parameter = group["params"][0]
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
        optimizer.zero_grad()


def values(optimizer):
    return [each.detach() for group in optimizer.param_groups for each in group["params"]]


def same_bits(ours, theirs):
    return all(torch.equal(a, b) for a, b in zip(values(ours), values(theirs), strict=True))


def test_equals_torch_bit_for_bit():
    ours, theirs = Adam(groups(), lr=0.01), torch.optim.Adam(groups(), lr=0.01)
    start = [each.clone() for each in values(ours)]
    for optimizer in (ours, theirs):
        train(optimizer, 30, seed=1)
    assert same_bits(ours, theirs)
    changed = [not torch.equal(a, b) for a, b in zip(values(ours), start, strict=True)]
    assert changed == [True, False, True]  # the second has no gradient


def test_states_are_exchangeable():
    ours, theirs = Adam(groups(), lr=0.01), torch.optim.Adam(groups(), lr=0.01)
    for optimizer in (ours, theirs):
        train(optimizer, 3, seed=1)
    state_of_ours, state_of_theirs = ours.state_dict(), theirs.state_dict()
    ours.load_state_dict(state_of_theirs)
    theirs.load_state_dict(state_of_ours)
    for optimizer in (ours, theirs):
        train(optimizer, 3, seed=2)
    assert same_bits(ours, theirs)


def test_compiler_is_not_imported(tmp_path):
    """A run imports neither the compiler of torch nor libraries that it does not need."""
    edges = tmp_path / "edges.csv"
    edges.write_text("".join(f"{i},{j}\n" for i in range(12) for j in range(i) if i % 2 == j % 2))
    program = (
        "import sys; from user_dgl.cli import main; code = main(sys.argv[1:]); "
        "print([name for name in ('torch._dynamo', 'networkx', 'matplotlib', 'dgl') "
        "if name in sys.modules]); sys.exit(code)"
    )
    command = ["train", "--edges", str(edges), "--clusters", "2", f"output_dir={tmp_path / 'run'}"]
    done = subprocess.run(
        [sys.executable, "-c", program, *command, "--quiet"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
