"""Section ``features``: preparation of the node features."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key


@dataclass(frozen=True)
class FeaturesConfig(Section):
    """``features``: applied in this order; all of it keeps sparse features sparse."""

    weighting: str = key(
        "none",
        "tf_idf: multiply column j by log(nodes / nodes with a non-zero in j); log: log(1 + x); "
        "auto: both for sparse 0/1 features and counts, log for other non-negative ones, else none",
        choices=("none", "tf_idf", "log", "auto"),
    )
    max_abs_scale: bool = key(
        False,
        "divide each column by its largest absolute value: min-max scaling for non-negative columns"
        " that hold a zero, without making them dense",
    )
    row_norm: str = key("none", "scale each row to norm 1", choices=("none", "l1", "l2"))

    def changes_columns(self) -> bool:
        """Whether more than the length of rows changes."""
        return self.weighting != "none" or self.max_abs_scale
