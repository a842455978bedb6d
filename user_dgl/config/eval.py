"""Section ``eval``: what is computed after training."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key


@dataclass(frozen=True)
class EvalConfig(Section):
    """``eval``: what is computed after training."""

    floors: bool = key(
        False,
        "also run the training-free features_kmeans and smooth_kmeans on the features as they are "
        "and, where the section features does more than scale rows, on those it prepares",
    )
