"""Section ``distributed``: training by several processes."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key


@dataclass(frozen=True)
class DistributedConfig(Section):
    """``distributed``: training by several processes, which ``user-dgl launch`` starts."""

    backend: str = key(
        "auto",
        "Communication backend. auto: nccl if each process has its own GPU, else gloo.",
        choices=("auto", "gloo", "nccl"),
    )
    timeout_s: float = key(
        1800.0,
        "Number of seconds that a process waits for the others, also while they load data.",
        above=0.0,
        high=31_536_000.0,  # a year; torch cannot count much longer times
    )
    partition: str | None = key(
        None,
        "Folder written by `user-dgl partition`; each process reads its part of the graph from it. "
        "null: the first process loads the data and sends each process its part.",
    )
