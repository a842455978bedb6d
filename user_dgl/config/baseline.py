"""Section ``baseline``: settings of the baseline methods that USER is compared with."""

from dataclasses import dataclass

from user_dgl.config.schema import LARGEST_RATE, Section, key, only_with, only_without
from user_dgl.errors import InputError


@dataclass(frozen=True)
class BaselineConfig(Section):
    """``baseline``: settings of the methods of `ModelConfig.kind` other than ``user``.

    The default null of a key means the value of the method's paper.
    """

    epochs: int | None = key(
        None, "Number of epochs; the maximum number if patience is set.", low=1
    )
    lr: float | None = key(None, "Learning rate of Adam.", above=0.0, high=LARGEST_RATE)
    weight_decay: float | None = key(None, "L2 penalty of Adam.", low=0.0)
    hidden_feats: tuple[int, ...] | None = key(None, "Width of each encoder layer.")
    features: str = key(
        "raw",
        "Features that the method sees. raw: as they are loaded, with the row norm of its paper. "
        "prepared: as the section features prepares them for USER.",
        only_without("model.kind", "deepwalk"),
        choices=("raw", "prepared"),
    )
    row_norm: str | None = key(
        None,
        "Norm by which each row of the features is divided.",
        only_with("baseline.features", "raw"),
        choices=("none", "l1", "l2"),
    )
    samples_per_node: int | None = key(
        None,
        "For gae, vgae, arga, gae_cg and arga_cg: number of pairs drawn for the non-edges, divided "
        "by the number of nodes.",
        low=1,
    )
    patience: int | None = key(
        None,
        "For dgi and gic: training stops after this many epochs without a lower loss.",
        low=1,
    )
    window: int | None = key(
        None,
        "For deepwalk: largest distance, in steps of a walk, at which two nodes form a pair.",
        low=1,
        high=39,
    )
    hops: int | None = key(
        None,
        "For age: number of smoothing steps. null: 8, the paper's value for Cora.",
        low=1,
    )
    positive_share: float | None = key(
        None,
        "For age: share of the node pairs, the most similar ones, that are positive at the start. "
        "null: 0.011, the paper's value for Cora.",
        above=0.0,
        high=1.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_feats is not None and (not self.hidden_feats or min(self.hidden_feats) < 1):
            raise InputError(f"hidden_feats: expected widths of 1 or more, got {self.hidden_feats}")
