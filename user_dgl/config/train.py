"""Section ``train``: the optimisation."""

from dataclasses import dataclass

from user_dgl.config.schema import LARGEST_RATE, Section, key, only_with, only_without, section


@dataclass(frozen=True)
class PartitionConfig(Section):
    """``train.partition``: parts of the graph for ``train.mode: partition``."""

    num_parts: int = key(16, "Number of parts that METIS divides the graph into.", low=1)
    parts_per_batch: int = key(
        1, "Number of parts in each update. Parts are combined at random before training.", low=1
    )
    settle_every: int = key(
        10,
        "Number of epochs between passes that bring the values which parts keep of other parts up "
        "to date. Such a pass also computes the exact loss, for comparison.",
        low=1,
    )


@dataclass(frozen=True)
class TrainConfig(Section):
    """``train``: the optimisation."""

    mode: str = key(
        "full",
        "Part of the graph in each update. full: the whole graph. partition: one batch of parts, "
        "for graphs whose training does not fit in memory.",
        choices=("full", "partition"),
    )
    partition: PartitionConfig = section(
        PartitionConfig,
        "parts of the graph for mode: partition",
        only_with("train.mode", "partition"),
    )
    precision: str = key(
        "float32",
        "Precision of floating-point numbers in training.",
        choices=("float32", "float64"),
    )
    epochs: int = key(400, "Number of epochs.", low=1)
    lr: float = key(0.01, "Learning rate of Adam.", above=0.0, high=LARGEST_RATE)
    structure_lr: float | None = key(
        None,
        "Learning rate of A'. null: the value of train.lr. 0: A' keeps its first weights.",
        only_with("structure.learnable", True),
        low=0.0,
        high=LARGEST_RATE,
    )
    weight_decay: float = key(
        5e-4, "L2 penalty of Adam on the network. It does not apply to A'.", low=0.0
    )
    plateau_factor: float = key(
        0.3,
        "Factor by which the learning rate is multiplied when the loss stops falling. 1: never. As "
        "in the authors' code, the threshold of torch is relative, so a negative loss that rises "
        "slowly still counts as improving.",
        above=0.0,
        high=1.0,
    )
    plateau_patience: int = key(
        10,
        "Number of epochs without improvement before the learning rate is multiplied.",
        only_without("train.plateau_factor", 1),
        low=0,
    )
    restarts: int = key(1, "Number of replicas of encoder and head, trained side by side.", low=1)
    consensus: str = key(
        "none",
        "How the result is made from the replicas. none: the replica with the lowest loss is the "
        "result. labels: k-means on sqrt(Y) of all replicas. hidden: k-means on the embeddings of "
        "all replicas, with rows scaled to norm 1.",
        choices=("none", "labels", "hidden"),
    )
    resume: bool = key(False, "Continue the run from the checkpoint in output_dir.")
    log_every: int = key(1, "Number of epochs between lines of the log.", low=1)
    checkpoint_every: int = key(100, "Number of epochs between checkpoints.", low=1)
