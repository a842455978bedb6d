"""Section ``model``: encoder, head and number of clusters."""

from dataclasses import dataclass
from typing import Literal

from user_dgl.config.schema import Section, key, only_where, only_with, section
from user_dgl.errors import InputError


@dataclass(frozen=True)
class EncoderTraits:
    """Properties of an encoder that the settings, their checks and the memory estimate need.

    Attributes
    ----------
    encoder : str or type
        The class, or its name ``"module:Class"``, so that torch is not imported here.
    has_own_loss : bool
        Whether the encoder has its own loss (the paper's L_S), with weight
        ``loss.supporting_weight``.
    draws_pairs : bool
        Whether that loss draws pairs of nodes.
    in_parts : bool
        Whether the encoder calls `Propagator.extend` after each layer, so that it can be trained
        in parts and by several processes.
    learns : bool
        Whether the encoder has weights. An encoder without weights is a fixed function of A' and
        the features, made from the smoothed view; its class derives from `Smooth`. It needs
        ``model.head: centroid`` and has one replica.
    output_blocks : int
        Number of tensors (N, last width) that the last layer computes.
    passes : int
        Number of passes over the graph in a training step.
    """

    encoder: str | type
    has_own_loss: bool = False
    draws_pairs: bool = False
    in_parts: bool = False
    learns: bool = True
    output_blocks: int = 1
    passes: int = 1


# Maps the names of the encoders in the settings to their properties.
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


_SMOOTHS = only_where(
    "model.smooth.source",
    "model.smooth.source other than graph or model.num_clusters: auto",
    lambda config: config.model.smooth.source != "graph" or config.model.num_clusters == "auto",
)


@dataclass(frozen=True)
class SmoothConfig(Section):
    """``model.smooth``: settings of the encoder ``smooth``."""

    source: str = key(
        "auto",
        "What the embeddings are made from. features: smoothed features. graph: the eigenvectors "
        "of the graph, without features; the other keys of this section then have an effect on "
        "num_clusters: auto only. auto: "
        "graph if the data have no features, or if these say nothing and the edges do.",
        choices=("auto", "features", "graph"),
    )
    hops: int | None = key(
        None,
        "Number of smoothing steps. null: 4 or 16. For each key of this section that is null, the "
        "value is chosen by the bits that the clusters save on edges and features.",
        _SMOOTHS,
        low=1,
    )
    self_share: float | None = key(
        None,
        "Share of a node's own features in its smoothed features. null: 0.05, 0.2, 0.5 or 1, which "
        "is the features alone.",
        _SMOOTHS,
        low=0.0,
        high=1.0,
    )
    weight_power: float | None = key(
        None,
        "Power of the first weights of A' in the smoothing. null: 0, which is the observed graph "
        "as it is, or 1; always 1 if A' is trained and for link prediction.",
        _SMOOTHS,
        low=0.0,
    )
    axes: str | None = key(
        None,
        "Axes on which the features are smoothed. leading: those in which nodes differ most. "
        "canonical: those in which neighbours in A' agree most, or the leading ones where there "
        "are fewer than 16 edges (32 for real values of mean 0) or neighbours agree in nothing. "
        "They are made from the edges, so with them the program cannot say that features and "
        "edges have nothing in common. null: both are compared; leading for the features alone "
        "(self_share: 1), for the number of clusters, if A' is trained and for link prediction.",
        _SMOOTHS,
        choices=("leading", "canonical"),
    )
    num_components: int = key(
        256,
        "Number of leading components of the features that are smoothed. Their rows are scaled to "
        "norm 1, so that a single one would be the same for all nodes.",
        _SMOOTHS,
        low=2,
    )


@dataclass(frozen=True)
class AutoClustersConfig(Section):
    """``model.auto_clusters``: range from which ``num_clusters: auto`` chooses."""

    low: int = key(2, "Smallest number of clusters.", low=2)
    high: int = key(20, "Largest number of clusters.", low=2, high=63)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise InputError(f"low: expected at most high={self.high}, got {self.low}")


@dataclass(frozen=True)
class ModelConfig(Section):
    """``model``: encoder, assignment head and number of clusters."""

    kind: str = key(
        "user",
        "Method that is trained: user, or a baseline, see section baseline. gae_cg and arga_cg are "
        "Cross-Graph applied to gae and arga.",
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
        "Encoder of USER. gcn: the authors' code (ReLU and BatchNorm in every layer). gae: the "
        "paper's text (last layer linear, no BatchNorm). vgae, arga, dgi, sage: encoders with "
        "their own loss, see loss.supporting_weight. smooth: features smoothed over A'; needs "
        "head: centroid.",
        choices=ENCODERS,
    )
    num_clusters: int | Literal["auto"] | None = key(
        None,
        "Number of clusters. Training needs a value. auto: the number is estimated from the data, "
        "without labels.",
        low=2,
    )
    auto_clusters: AutoClustersConfig = section(
        AutoClustersConfig,
        "range from which num_clusters: auto chooses",
        only_with("model.num_clusters", "auto"),
    )
    hidden_feats: tuple[int, ...] = key(
        (256,),
        "Width of each encoder layer.",
        only_where(
            "model.encoder", "an encoder that has layers", lambda config: config.model.traits.learns
        ),
    )
    head: str = key(
        "graph_conv",
        "Assignment head. graph_conv: Y = softmax(S H W + b), the authors' code. linear: Y = "
        "softmax(H W + b). centroid: Y = softmax(cos(H, C) / temperature); C starts from k-means.",
        choices=("graph_conv", "linear", "centroid"),
    )
    labels: str = key(
        "head",
        "Clusters that are the result of a run. head: arg max of Y. The others need encoder: "
        "smooth. kmeans: k-means of the embeddings before training. code: these clusters after "
        "nodes were moved to save more bits of edges and features. result.json contains the "
        "scores of all.",
        choices=("head", "kmeans", "code"),
    )
    temperature: float = key(
        0.1,
        "Temperature of head: centroid. Higher values give softer memberships.",
        only_with("model.head", "centroid"),
        above=0.0,
    )
    smooth: SmoothConfig = section(
        SmoothConfig,
        "the encoder smooth",
        only_where(
            "model.encoder",
            "model.encoder: smooth or model.num_clusters: auto",
            lambda config: not config.model.traits.learns or config.model.num_clusters == "auto",
        ),
    )
    dropout: float = key(
        0.5, "Dropout rate between the encoder's layers and before the head.", low=0.0
    )
    logit_dropout: float = key(
        0.5, "Dropout rate on the logits of Y, as in the authors' code.", low=0.0
    )
    observed_mix: float = key(
        0.5,
        "Share m of the observed graph. The encoder uses the normalised m A_norm + (1 - m) "
        "A'_norm. The authors' code has 0.5, the paper's text 0.",
        low=0.0,
        high=1.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden_feats or min(self.hidden_feats) < 1:
            raise InputError(f"hidden_feats: expected widths of 1 or more, got {self.hidden_feats}")
        for name in ("dropout", "logit_dropout"):
            if getattr(self, name) >= 1:
                raise InputError(f"{name}: expected below 1, got {getattr(self, name)}")

    @property
    def traits(self) -> EncoderTraits:
        """Properties of the encoder."""
        return ENCODERS[self.encoder]

    @property
    def by_edges(self) -> bool:
        """Whether the settings ask for clusters by the edges alone."""
        return not self.traits.learns and self.smooth.source == "graph"

    @property
    def known_clusters(self) -> int:
        """The number of clusters. It is an int once it is set or chosen, before training starts."""
        assert isinstance(self.num_clusters, int)
        return self.num_clusters

    @property
    def most_clusters(self) -> int | None:
        """Largest possible number of clusters: ``num_clusters``, or the largest of its range."""
        return self.auto_clusters.high if self.num_clusters == "auto" else self.num_clusters
