"""Section ``features``: preparation of the node features."""

from dataclasses import dataclass

from user_dgl.config.data import DATA_KINDS
from user_dgl.config.schema import Section, key, only_where

_TABLES = only_where(
    "data.kind",
    "data kinds that read columns of categories: edge_list",
    lambda config: DATA_KINDS[config.data.kind].categories,
)


@dataclass(frozen=True)
class FeaturesConfig(Section):
    """``features``: steps applied in this order. Sparse features stay sparse in all of them."""

    categorical: str = key(
        "refuse",
        "Treatment of columns of text in a file or table of features. refuse: stop with an error. "
        "one_hot: a column of 0 and 1 for each value.",
        _TABLES,
        choices=("refuse", "one_hot"),
    )
    weighting: str = key(
        "none",
        "Weighting of the values. tf_idf: column j is multiplied by log(number of nodes / number "
        "of nodes with a non-zero value in column j). log: x becomes log(1 + x). robust: dense "
        "columns with other values than 0 and 1 are reduced by their median and divided by their "
        "interquartile range, or take the normal scores of their ranks if they have long tails, "
        "and the others are weighted as by auto. auto: tf_idf and log for "
        "sparse 0/1 features and sparse counts, log for other non-negative features; the dense "
        "columns of mostly non-zero features with a negative value are reduced by their trimmed "
        "mean; robust for dense real-valued columns whose scales differ by more than the factor "
        "10, or that have outliers; square roots of shares of a whole, less their trimmed mean; "
        "standardised words become 0 and 1 again. With row_norm=l2, auto and robust give a dense "
        "table of few columns one more, so that rows keep their position.",
        choices=("none", "tf_idf", "log", "robust", "auto"),
    )
    max_abs_scale: bool = key(
        False,
        "Divide each column by its largest absolute value. For non-negative columns that contain a "
        "zero this is min-max scaling, and the features stay sparse.",
    )
    row_norm: str = key("none", "Norm by which each row is divided.", choices=("none", "l1", "l2"))

    def changes_columns(self) -> bool:
        """Whether these settings change more than the norm of the rows."""
        return self.weighting != "none" or self.max_abs_scale
