"""Section ``train``: the optimisation."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key, only_with, only_without, section


@dataclass(frozen=True)
class PartitionConfig(Section):
    """``train.partition``: what ``train.mode: partition`` trains at a time."""

    num_parts: int = key(16, "parts that METIS cuts the graph into", low=1)
    parts_per_batch: int = key(1, "parts, joined at random, that one update is made with", low=1)
    settle_every: int = key(
        10,
        "epochs between passes over all parts that bring what they keep of each other up to date "
        "and compare the loss with the exact one",
        low=1,
    )


@dataclass(frozen=True)
class TrainConfig(Section):
    """``train``: the optimisation."""

    mode: str = key(
        "full",
        "full: every step sees the whole graph; partition: one batch of parts at a time, for "
        "graphs whose training would not fit the memory",
        choices=("full", "partition"),
    )
    partition: PartitionConfig = section(
        PartitionConfig, "parts of mode: partition", only_with("train.mode", "partition")
    )
    precision: str = key(
        "float32", "floating-point numbers of the training", choices=("float32", "float64")
    )
    epochs: int = key(400, "epochs", low=1)
    lr: float = key(0.01, "Adam's learning rate", above=0.0)
    structure_lr: float | None = key(
        None,
        "learning rate of A'; null: lr; 0: A' stays as it starts",
        only_with("structure.learnable", True),
        low=0.0,
    )
    weight_decay: float = key(5e-4, "Adam's L2 penalty on the network, not on A'", low=0.0)
    plateau_factor: float = key(
        0.3,
        "factor on the learning rate when the loss stops falling; 1: never. By torch's relative "
        "threshold, as in the authors' code, under which a negative loss may rise slowly",
        above=0.0,
        high=1.0,
    )
    plateau_patience: int = key(
        10, "epochs without improvement before that", only_without("train.plateau_factor", 1), low=0
    )
    restarts: int = key(1, "replicas of encoder and head, trained side by side", low=1)
    consensus: str = key(
        "none",
        "what becomes of the replicas: none: the one with the lowest loss is the result; labels: "
        "k-means on sqrt(Y) of all; hidden: k-means on the embeddings of all, rows of length 1",
        choices=("none", "labels", "hidden"),
    )
    resume: bool = key(False, "go on from the checkpoint in output_dir")
    log_every: int = key(1, "epochs between log lines", low=1)
    checkpoint_every: int = key(100, "epochs between checkpoints", low=1)
