"""Section ``links``: the task link_prediction."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key, only_without


@dataclass(frozen=True)
class LinksConfig(Section):
    """``links``: what ``task: link_prediction`` holds out of the graph before noise."""

    validation_share: float = key(
        0.05, "edges held out for validation, with as many non-edges", low=0.0, high=0.9
    )
    test_share: float = key(
        0.1, "edges held out for test, with as many non-edges", low=0.0, high=0.9
    )
    seed: int | None = key(None, "seed of the draws; null: the run's seed", low=0)
    validation: str = key(
        "score",
        "what the validation pairs serve for; score: they are scored after training, as the test "
        "pairs are, and choose nothing, the stopping epoch neither",
        choices=("score",),
    )
    score: str = key(
        "learned",
        "what `metrics` and predict-links are of: learned: log-odds of an edge, learned from the "
        "training edges; dot: dot product of the embeddings, the paper's, and always that of a "
        "baseline",
        choices=("learned", "dot"),
    )
    rising: bool = key(
        False,
        "score: learned: nothing that a pair has more of may speak against an edge; false is right "
        "where edges are missing at random, as those held out are, whose ends therefore have fewer "
        "edges; true where new edges are sought in a graph that is complete",
        only_without("links.score", "dot"),
    )
