"""Section ``model``: encoder, head and number of clusters."""

from dataclasses import dataclass
from typing import Literal

from user_dgl.config.schema import Section, key, only_where, only_with, section
from user_dgl.errors import InputError


@dataclass(frozen=True)
class EncoderTraits:
    """What settings, refusals and the memory estimate need to know of an encoder.

    Attributes
    ----------
    encoder : str or type
        ``"module:Class"``, so that torch is not imported here, or the class itself.
    has_own_loss : bool
        The model has a loss of its own (the paper's L_S), weighed by ``loss.supporting_weight``.
    draws_pairs : bool
        That loss draws pairs of nodes.
    in_parts : bool
        It asks its propagation for the rows of other parts, so that it can be trained in parts
        and by several processes.
    learns : bool
        It has weights of its own. One without is a fixed function of A' and the features; it goes
        with head centroid and has one replica.
    output_blocks : int
        Blocks (N, last width) that the last layer computes.
    passes : int
        Passes over the graph in a step.
    """

    encoder: str | type
    has_own_loss: bool = False
    draws_pairs: bool = False
    in_parts: bool = False
    learns: bool = True
    output_blocks: int = 1
    passes: int = 1


# Every encoder by its name in the settings.
ENCODERS: dict[str, EncoderTraits] = {
    "gcn": EncoderTraits("user_dgl.encoders.gcn:GCN", in_parts=True),
    "gae": EncoderTraits("user_dgl.encoders.gae:GAE", in_parts=True),
    "vgae": EncoderTraits(
        "user_dgl.encoders.vgae:VGAE", has_own_loss=True, draws_pairs=True, output_blocks=2
    ),
    "arga": EncoderTraits("user_dgl.encoders.arga:ARGA", has_own_loss=True, draws_pairs=True),
    "dgi": EncoderTraits("user_dgl.encoders.dgi:DGI", has_own_loss=True, passes=2),
    "sage": EncoderTraits("user_dgl.encoders.sage:SAGE", has_own_loss=True, draws_pairs=True),
    "smooth": EncoderTraits("user_dgl.encoders.smooth:Smooth", learns=False),
}


@dataclass(frozen=True)
class SmoothConfig(Section):
    """``model.smooth``: the encoder of that name."""

    hops: int = key(16, "steps over the graph", low=1)
    self_share: float | None = key(
        None,
        "share of a node's own features; null: the one of 0.05, 0.1, 0.2, 0.3, 0.5 and 0.75 with "
        "which edges that were left out are told best from random pairs",
        low=0.0,
        high=1.0,
    )
    num_components: int = key(512, "components of the features that are smoothed", low=1)


@dataclass(frozen=True)
class AutoClustersConfig(Section):
    """``model.auto_clusters``: the numbers that ``num_clusters: auto`` chooses from."""

    low: int = key(2, "least number of clusters", low=2)
    high: int = key(20, "largest number of clusters", low=2, high=63)

    def __post_init__(self):
        super().__post_init__()
        if self.low > self.high:
            raise InputError(f"low: expected at most high={self.high}, got {self.low}")


@dataclass(frozen=True)
class ModelConfig(Section):
    """``model``: the encoder that USER supports, and the assignment head."""

    kind: str = key(
        "user",
        "what is trained: user, or a rival to compare with, see section baseline; gae_cg and "
        "arga_cg are Cross-Graph on two of those",
        choices=(
            "user",
            "deepwalk",
            "gae",
            "vgae",
            "arga",
            "age",
            "dgi",
            "gic",
            "gca",
            "gae_cg",
            "arga_cg",
        ),
    )
    encoder: str = key(
        "gcn",
        "gcn: the authors' code (ReLU and BatchNorm in every layer); gae: the paper's text (last "
        "layer linear, no BatchNorm); vgae, arga, dgi, sage: models with a loss of their own, see "
        "loss.supporting_weight; smooth: features smoothed over A', with head: centroid",
        choices=ENCODERS,
    )
    num_clusters: int | Literal["auto"] | None = key(
        None, "clusters to find (required); auto: as many as the data suggest", low=2
    )
    auto_clusters: AutoClustersConfig = section(
        AutoClustersConfig,
        "the numbers that num_clusters: auto chooses from",
        only_with("model.num_clusters", "auto"),
    )
    hidden_feats: tuple[int, ...] = key(
        (256,),
        "width of each encoder layer",
        only_where(
            "model.encoder", "an encoder with layers", lambda config: config.model.traits.learns
        ),
    )
    head: str = key(
        "graph_conv",
        "graph_conv: Y = softmax(S H W + b), the authors' code; linear: Y = softmax(H W + b); "
        "centroid: Y = softmax(cos(H, C) / temperature), C starting from k-means",
        choices=("graph_conv", "linear", "centroid"),
    )
    labels: str = key(
        "head",
        "the clusters of a run: head: arg max of Y; kmeans: k-means on what encoder: smooth gives, "
        "where training started; auto: head, unless it uses fewer clusters or its silhouette there "
        "is more than 2 % lower than that of kmeans. result.json has the scores of both",
        choices=("head", "kmeans", "auto"),
    )
    temperature: float = key(
        0.1, "softness of head: centroid", only_with("model.head", "centroid"), above=0.0
    )
    smooth: SmoothConfig = section(
        SmoothConfig,
        "the encoder of that name",
        only_where(
            "model.encoder",
            "model.encoder: smooth or model.num_clusters: auto",
            lambda config: not config.model.traits.learns or config.model.num_clusters == "auto",
        ),
    )
    dropout: float = key(0.5, "dropout between the encoder's layers and before the head", low=0.0)
    logit_dropout: float = key(0.5, "dropout on the logits of Y, as in the authors' code", low=0.0)
    observed_mix: float = key(
        0.5,
        "m: the encoder reads the normalised m A_norm + (1 - m) A'_norm; 0.5 in the authors' code, "
        "0 in the paper's text",
        low=0.0,
        high=1.0,
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.hidden_feats or min(self.hidden_feats) < 1:
            raise InputError(f"hidden_feats: expected widths of 1 or more, got {self.hidden_feats}")
        for name in ("dropout", "logit_dropout"):
            if getattr(self, name) >= 1:
                raise InputError(f"{name}: expected below 1, got {getattr(self, name)}")

    @property
    def traits(self) -> EncoderTraits:
        """What is known of the encoder."""
        return ENCODERS[self.encoder]

    @property
    def known_clusters(self) -> int:
        """The number of clusters, once it is set or chosen; training starts after that."""
        assert isinstance(self.num_clusters, int)
        return self.num_clusters

    @property
    def most_clusters(self) -> int | None:
        """How many clusters there may be: ``num_clusters``, or the most that auto may choose."""
        return self.auto_clusters.high if self.num_clusters == "auto" else self.num_clusters
