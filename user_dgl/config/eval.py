"""Section ``eval``: computations after training."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key


@dataclass(frozen=True)
class EvalConfig(Section):
    """``eval``: computations after training."""

    floors: bool = key(
        False,
        "Also run features_kmeans and smooth_kmeans, two methods without training. They run on the "
        "features as loaded and, if the section features does more than scale rows, also on the "
        "prepared features.",
    )
