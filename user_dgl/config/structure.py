"""Section ``structure``: the learned sparse graph A'."""

from dataclasses import dataclass

from user_dgl.config.schema import Section, key, only_where, only_with, only_without, section
from user_dgl.errors import InputError

# Sources of candidates that have their own key in the settings.
_SOURCE_KEYS = ("feature_knn", "k_hop", "uniform", "same_cluster")


@dataclass(frozen=True)
class CandidatesConfig(Section):
    """``structure.candidates``: pairs that A' may use in addition to the observed edges.

    Each count is the number of pairs that a source draws for each node. A pair that occurs more
    than once, or that is an observed edge, is used once.
    """

    feature_knn: int = key(
        0, "Number of nearest nodes by the cosine of the features, for each node.", low=0
    )
    k_hop: int = key(
        0,
        "Number of random walks of length 2 to `hops` from each node. Each walk gives one "
        "candidate, the pair of its ends.",
        low=0,
    )
    hops: int = key(
        2,
        "Largest length of a walk of k_hop.",
        only_without("structure.candidates.k_hop", 0),
        low=2,
    )
    uniform: int = key(0, "Number of nodes drawn uniformly for each node.", low=0)
    same_cluster: int = key(
        0,
        "Number of nodes drawn from the cluster of each node. Needs refresh_every, because "
        "there are no clusters before training.",
        only_without("train.structure_lr", 0),
        low=0,
    )
    refresh_every: int = key(
        0,
        "Number of epochs between refreshes. A refresh removes the half of the candidates with the "
        "lower weights and adds newly drawn pairs of k_hop, uniform and same_cluster. 0: never.",
        only_without("train.structure_lr", 0),
        only_where(
            "structure.candidates.k_hop",
            "a source that draws at random",
            lambda config: config.structure.candidates.draws,
        ),
        only_where(
            "train.epochs",
            "train.epochs above refresh_every",
            lambda config: config.structure.candidates.refresh_every < config.train.epochs,
        ),
        low=0,
    )
    initial_weight: float = key(
        1.0,
        "Weight in A' of a new candidate.",
        only_where(
            "structure.candidates.feature_knn",
            "at least one source of candidates",
            lambda config: config.structure.candidates.pairs_per_node > 0,
        ),
        above=0.0,
    )

    sources: dict[str, int] = key(
        {},
        "Number of pairs that sources without a key of their own draw for each node. The names are "
        "those of user_dgl.structure.candidates.SOURCES.",
        low=0,
    )

    @property
    def draws(self) -> bool:
        """Whether a source that draws pairs at random is used."""
        return bool(self.k_hop or self.uniform or self.same_cluster or any(self.sources.values()))

    @property
    def pairs_per_node(self) -> int:
        """Number of pairs that all sources together draw for each node."""
        named = self.feature_knn + self.k_hop + self.uniform + self.same_cluster
        return named + sum(self.sources.values())

    def count(self, source: str) -> int:
        """Number of pairs that a source draws for each node."""
        return getattr(self, source) if source in _SOURCE_KEYS else self.sources.get(source, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        twice = [name for name in self.sources if name in _SOURCE_KEYS]
        if twice:
            raise InputError(f"sources.{twice[0]}: {twice[0]} is a key of its own: set that")


@dataclass(frozen=True)
class CriticConfig(Section):
    """``structure.critic``: the edge critic of the priors critic, posterior and link_critic."""

    folds: int = key(
        10,
        "Number of folds of the edges. Each fold is scored on the graph without its edges. From "
        "20,000 nodes on, the critic has at most 5; the link critic has all.",
        low=2,
    )
    num_components: int = key(
        256, "Number of leading components of the features that are smoothed.", low=1
    )
    hops: int = key(2, "Number of smoothing steps.", low=1)
    self_share: float = key(
        0.3, "Share of a node's own features in its smoothed features.", low=0.0, high=1.0
    )
    power: float = key(
        1.0, "Exponent of the weights. Below 1 the critic has less influence.", above=0.0
    )


@dataclass(frozen=True)
class StructureConfig(Section):
    """``structure``: the learned sparse graph A'."""

    learnable: bool = key(
        True,
        "Whether A' may differ from the observed graph. false: A' is the observed graph with its "
        "own weights (1 if it has none), without candidates or prior.",
    )
    engine: str = key(
        "auto",
        "Library for products with the graph. csr: sparse CSR tensors of torch. dgl: DGL. auto: "
        "csr if torch supports it, else dgl.",
        choices=("auto", "dgl", "csr"),
    )
    prior: str = key(
        "uniform",
        "First weight of the observed pairs in A'. uniform: 1. feature_cosine: cosine of the "
        "features divided by its mean, clipped to [0.05, 4], to the power prior_power. critic: "
        "support of the edge by the features and by the rest of the graph. posterior: the same, "
        "but where at least 8 % of the edges look random, and in a single process, the probability "
        "of two judges, as in user-dgl clean, which have settings of their own. "
        "link_critic: like critic, but also by degrees and common neighbours.",
        only_with("structure.learnable", True),
        choices=("uniform", "feature_cosine", "critic", "posterior", "link_critic"),
    )
    prior_power: float = key(
        0.5,
        "Exponent of the feature_cosine prior.",
        only_with("structure.prior", "feature_cosine"),
        above=0.0,
    )
    shared: bool = key(
        True,
        "Whether all replicas (see train.restarts) share one A'. false: each replica has its own.",
        only_with("structure.learnable", True),
        only_without("train.restarts", 1),
        only_without("train.structure_lr", 0),
    )
    critic: CriticConfig = section(
        CriticConfig,
        "the edge critic of prior: critic, posterior and link_critic",
        only_where(
            "structure.learnable",
            "structure.learnable: true or task: link_prediction",
            lambda config: config.structure.learnable or config.task != "clustering",
        ),
        only_where(
            "structure.prior",
            "structure.prior: critic, posterior or link_critic, or task: link_prediction",
            lambda config: (
                config.structure.prior in ("critic", "posterior", "link_critic")
                or config.task != "clustering"
            ),
        ),
    )
    candidates: CandidatesConfig = section(
        CandidatesConfig,
        "pairs of A' in addition to the observed edges",
        only_with("structure.learnable", True),
    )
