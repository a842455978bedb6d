"""Section ``distributed``: training by several processes."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key


@dataclass(frozen=True)
class DistributedConfig(Section):
    """``distributed``: several processes, as ``user-dgl launch`` starts them."""

    backend: str = key(
        "auto",
        "what the processes talk by; auto: nccl where each has a GPU of its own, else gloo",
        choices=("auto", "gloo", "nccl"),
    )
    timeout_s: float = key(
        1800.0, "seconds that a process waits for the others, loading included", above=0.0
    )
    partition: str | None = key(
        None,
        "folder that `user-dgl partition` wrote, of which each process reads its part; null: the "
        "first process loads the data and hands the parts out",
    )
