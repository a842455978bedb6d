"""Section ``baseline``: settings of a method that USER is compared with."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key
from user_dgl.errors import InputError


@dataclass(frozen=True)
class BaselineConfig(Section):
    """``baseline``: settings of a `ModelConfig.kind` other than user; null: its paper's."""

    epochs: int | None = key(None, "epochs, or most of them where patience is set", low=1)
    lr: float | None = key(None, "Adam's learning rate", above=0.0)
    weight_decay: float | None = key(None, "Adam's L2 penalty", low=0.0)
    hidden_feats: tuple[int, ...] | None = key(None, "width of each encoder layer")
    row_norm: str | None = key(
        None, "scale each row of the features to norm 1", choices=("none", "l1", "l2")
    )
    samples_per_node: int | None = key(
        None, "gae, vgae, arga, gae_cg, arga_cg: pairs drawn for the non-edges, over nodes", low=1
    )
    patience: int | None = key(
        None, "dgi, gic: epochs without a lower loss after which training ends", low=1
    )
    window: int | None = key(
        None, "deepwalk: steps on a walk that make two nodes near each other", low=1, high=39
    )
    hops: int | None = key(
        None, "age: steps of the smoothing; null: 8, its paper's for Cora", low=1
    )
    positive_share: float | None = key(
        None,
        "age: share of the most alike pairs that are positive first; null: 0.011, as for Cora",
        above=0.0,
        high=1.0,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_feats is not None and (not self.hidden_feats or min(self.hidden_feats) < 1):
            raise InputError(f"hidden_feats: expected widths of 1 or more, got {self.hidden_feats}")
