"""Section ``links``: the task link_prediction."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key, only_where, only_without

_HELD_OUT = only_where(
    "links.test_share",
    "a share of held-out edges above 0",
    lambda config: config.links.validation_share > 0 or config.links.test_share > 0,
)


@dataclass(frozen=True)
class LinksConfig(Section):
    """``links``: edges that ``task: link_prediction`` holds out of the graph before noise."""

    validation_share: float = key(
        0.05,
        "Share of the edges held out for validation, together with as many non-edges.",
        low=0.0,
        high=0.9,
    )
    test_share: float = key(
        0.1,
        "Share of the edges held out for test, together with as many non-edges.",
        low=0.0,
        high=0.9,
    )
    keep_connected: bool = key(
        False,
        "true: no held-out edge leaves a node without edges or a component in pieces; an edge that "
        "would is passed over, and the next one of the random order is held out. false: all edges "
        "are as likely.",
        _HELD_OUT,
    )
    seed: int | None = key(None, "Seed of the held-out pairs. null: the seed of the run.", low=0)
    validation: str = key(
        "score",
        "Use of the validation pairs. score: they are scored after training, like the test pairs; "
        "they do not choose anything, not even the epoch at which training stops.",
        choices=("score",),
    )
    score: str = key(
        "learned",
        "Score of a pair, used for `metrics` and by predict-links. learned: log-odds of an edge, "
        "learned from the training edges. dot: dot product of the embeddings, as in the paper; "
        "baselines always use it.",
        choices=("learned", "dot"),
    )
    rising: bool = key(
        False,
        "For score: learned. true: the score may not decrease with any of its terms (similarity, "
        "degrees, common neighbours); use it to find new edges of a complete graph. false: the "
        "score may decrease; use it if edges are missing at random, as held-out edges are, because "
        "a missing edge lowers the degree of its ends.",
        only_without("links.score", "dot"),
    )
