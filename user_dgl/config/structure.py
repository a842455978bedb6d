"""Section ``structure``: the learned sparse graph A'."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key, only_where, only_with, only_without, section
from user_dgl.errors import InputError

# Sources with a key of their own.
_SOURCE_KEYS = ("feature_knn", "k_hop", "uniform", "same_cluster")


@dataclass(frozen=True)
class CandidatesConfig(Section):
    """``structure.candidates``: pairs that A' may use beside the observed edges.

    Counts are pairs drawn a node; pairs already there are merged.
    """

    feature_knn: int = key(0, "nearest nodes by cosine of the features", low=0)
    k_hop: int = key(0, "ends of random walks of length 2 to `hops`", low=0)
    hops: int = key(
        2, "longest walk for k_hop", only_without("structure.candidates.k_hop", 0), low=2
    )
    uniform: int = key(0, "uniformly drawn nodes", low=0)
    same_cluster: int = key(
        0,
        "nodes drawn from the same cluster; needs refresh_every, as clusters come first",
        only_without("train.structure_lr", 0),
        low=0,
    )
    refresh_every: int = key(
        0,
        "every so many epochs the lighter half of the candidates gives way to newly drawn k_hop, "
        "uniform and same_cluster pairs; 0: never",
        only_without("train.structure_lr", 0),
        only_where(
            "structure.candidates.k_hop",
            "sources that draw at random",
            lambda config: config.structure.candidates.draws,
        ),
        only_where(
            "train.epochs",
            "train.epochs above it",
            lambda config: config.structure.candidates.refresh_every < config.train.epochs,
        ),
        low=0,
    )
    initial_weight: float = key(
        1.0,
        "weight in A' of a new candidate",
        only_where(
            "structure.candidates.feature_knn",
            "some source of candidates",
            lambda config: config.structure.candidates.pairs_per_node > 0,
        ),
        above=0.0,
    )

    sources: dict[str, int] = key(
        {},
        "pairs drawn a node by sources that have no key here: the name under which "
        "structure.candidates.SOURCES knows the source, and the number",
        low=0,
    )

    @property
    def draws(self) -> bool:
        """Whether any source is asked for that draws pairs at random."""
        return bool(self.k_hop or self.uniform or self.same_cluster or any(self.sources.values()))

    @property
    def pairs_per_node(self) -> int:
        """Pairs that all sources together draw for a node."""
        named = self.feature_knn + self.k_hop + self.uniform + self.same_cluster
        return named + sum(self.sources.values())

    def count(self, source: str) -> int:
        """Pairs that a source is to draw for each node."""
        return getattr(self, source) if source in _SOURCE_KEYS else self.sources.get(source, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        twice = [name for name in self.sources if name in _SOURCE_KEYS]
        if twice:
            raise InputError(f"sources.{twice[0]}: {twice[0]} is a key of its own: set that")


@dataclass(frozen=True)
class CriticConfig(Section):
    """``structure.critic``: the edge critic behind the priors critic and link_critic."""

    folds: int = key(10, "parts of the edges; each is scored on a graph without it", low=2)
    num_components: int = key(256, "components of the features that are smoothed", low=1)
    hops: int = key(2, "steps of the smoothing", low=1)
    self_share: float = key(
        0.3, "share of a node's own features in the smoothed ones", low=0.0, high=1.0
    )
    power: float | None = key(
        1.0,
        "what the weights are raised to; below 1 the critic is trusted less; null: that one of "
        "1, 0.5 and 0.25 which foretells edges left out of the graph best",
        above=0.0,
    )


@dataclass(frozen=True)
class StructureConfig(Section):
    """``structure``: the learned sparse graph A'."""

    learnable: bool = key(
        True, "false: A' is the observed graph at weight 1, without candidates or prior"
    )
    engine: str = key(
        "auto", "kernels: csr (torch sparse) or dgl; auto: csr", choices=("auto", "dgl", "csr")
    )
    prior: str = key(
        "uniform",
        "first weight of the observed pairs: uniform: 1; feature_cosine: cosine of the features "
        "over its mean, kept in [0.05, 4], to the power prior_power; critic: how far features and "
        "the rest of the graph support the edge; link_critic: also how far degrees and common "
        "neighbours do",
        only_with("structure.learnable", True),
        choices=("uniform", "feature_cosine", "critic", "link_critic"),
    )
    prior_power: float = key(
        0.5,
        "power of the feature_cosine prior",
        only_with("structure.prior", "feature_cosine"),
        above=0.0,
    )
    shared: bool = key(
        True,
        "one A' for all replicas; false: one each (see train.restarts)",
        only_with("structure.learnable", True),
        only_without("train.restarts", 1),
        only_without("train.structure_lr", 0),
    )
    critic: CriticConfig = section(
        CriticConfig,
        "the scores behind prior: critic and link_critic",
        only_where(
            "structure.learnable",
            "structure.learnable or task: link_prediction",
            lambda config: config.structure.learnable or config.task != "clustering",
        ),
        only_where(
            "structure.prior",
            "structure.prior critic or link_critic, or task: link_prediction",
            lambda config: (
                config.structure.prior in ("critic", "link_critic") or config.task != "clustering"
            ),
        ),
    )
    candidates: CandidatesConfig = section(
        CandidatesConfig, "pairs beside the observed edges", only_with("structure.learnable", True)
    )
