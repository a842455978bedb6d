"""Settings of a run: frozen dataclasses, strict YAML, ``section.key=value`` overrides.

Every key is a dataclass field with a type, a default, a one-line meaning and, where it has one, a
range or a list of choices. Precedence: default < YAML file < override. Nothing here imports torch,
so that ``user-dgl config`` and ``--help`` answer at once.

This file is the list of keys; `user_dgl.settings` checks them and `user_dgl.strict_yaml` reads
them.
"""

import dataclasses
import importlib.resources
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from user_dgl.errors import InputError
from user_dgl.settings import Section, build, key, place, section, to_plain
from user_dgl.strict_yaml import dump_yaml, parse_yaml


@dataclass(frozen=True)
class AttackConfig(Section):
    """``data.noise.attack``: how kind metattack finds the pairs that it flips."""

    form: str = key(
        "auto",
        "exact: all pairs are compared before every single flip; large: several flips at a time, "
        "the best pairs of a part of the nodes drawn anew each time; auto: exact up to 5000 nodes",
        choices=("auto", "exact", "large"),
    )
    steps: int = key(100, "form large: times that flips are chosen, as many each time", low=1)
    block_nodes: int = key(
        2048, "form large: nodes drawn each time, 16 for each flip if that is more", low=2
    )
    surrogate_feats: int = key(16, "width of the surrogate, a linear GCN of two layers", low=1)
    surrogate_epochs: int = key(
        100, "epochs of its training, all of which the gradient is taken through", low=1
    )
    surrogate_lr: float = key(0.1, "its learning rate", above=0.0)
    surrogate_momentum: float = key(0.9, "its momentum", low=0.0, high=1.0)


@dataclass(frozen=True)
class NoiseConfig(Section):
    """``data.noise``: what is done to the graph before anything learns from it."""

    kind: str = key(
        "none",
        "none; random_flip: flips round(rate * edges) distinct node pairs drawn uniformly from all "
        "pairs; metattack: flips as many, those that harm a classifier most, which reads labels; "
        "file: the graph is replaced by the one in noise.file",
        choices=("none", "random_flip", "metattack", "file"),
    )
    rate: float = key(0.0, "flipped pairs as a share of the edges", low=0.0)
    seed: int | None = key(None, "seed of the flips; null: the run's seed", low=0)
    file: str | None = key(
        None, "scipy.sparse npz of the noisy adjacency, under data.root or an absolute path"
    )
    attack: AttackConfig = section(AttackConfig, "how kind metattack finds the pairs that it flips")

    @property
    def flips(self) -> bool:
        """Whether ``rate`` and ``seed`` say what changes."""
        return self.kind in ("random_flip", "metattack")


@dataclass(frozen=True)
class SyntheticConfig(Section):
    """``data.synthetic``: the attributed block model (kind synthetic)."""

    num_nodes: int = key(1000, "nodes", low=2)
    num_blocks: int = key(5, "blocks, of sizes that differ by one at most", low=1)
    average_degree: float = key(10.0, "expected number of neighbours", above=0.0)
    mixing: float = key(
        0.2, "share of the edges whose ends are drawn from all nodes", low=0.0, high=1.0
    )
    num_features: int = key(200, "feature columns (words)", low=1)
    words_per_node: int = key(15, "words drawn for each node", low=1)
    topic_share: float = key(
        0.4, "share of a node's words that come from its block's own words", low=0.0, high=1.0
    )
    seed: int = key(0, "seed of the graph, apart from the run's seed", low=0)


@dataclass(frozen=True)
class DataConfig(Section):
    """``data``: where the attributed graph comes from."""

    kind: str = key(
        "synthetic",
        "planetoid: ind.<name>.* files; wiki: graph.txt, group.txt, tfidf.txt; npz: one npz file; "
        "musae: *_edges.csv, *_target.csv, *.json; ogb: a folder of the Open Graph Benchmark; "
        "edge_list: one's own files, see edges; dgl: a set of dgl.data; synthetic",
        choices=("planetoid", "wiki", "npz", "musae", "ogb", "edge_list", "dgl", "synthetic"),
    )
    root: str | None = key(
        None, "folder that relative data paths start from; null: $USER_DGL_DATA, else this folder"
    )
    name: str | None = key(None, "planetoid: cora, citeseer, pubmed; dgl: a class of dgl.data")
    path: str | None = key(
        None, "planetoid, wiki, musae, ogb: folder; npz: file; dgl: folder for its raw files"
    )
    trusted: bool = key(
        False,
        "dgl: whether DGL may unpickle the files in path, which can run any code",
    )
    edges: str | None = key(
        None,
        "edge_list: file of edges: .npz, .npy, .mtx, .mat, .graphml, .bin (dgl.save_graphs), else "
        "CSV, TSV or blank-separated text",
    )
    header: bool | Literal["auto"] = key(
        "auto",
        "edge_list: whether the first row of a text of edges names its columns; auto: where it "
        "names the ends of edges as is usual, or holds text above numbers",
    )
    columns: tuple[str, ...] = key(
        (), "edge_list: names of the two columns with the ends of the edges, [A, B]; []: found out"
    )
    features: str | None = key(
        None, "edge_list: file of node features (text, npy, npz, mtx, mat) where edges has none"
    )
    labels: str | None = key(
        None,
        "edge_list: file of labels (text, npy, npz, mat), read for scores and by noise.kind: "
        "metattack only",
    )
    missing_features: str = key(
        "refuse",
        "what becomes of NaN, empty and infinite features: refuse; zero; mean: that of their "
        "column (edge_list, npz, dgl)",
        choices=("refuse", "zero", "mean"),
    )
    largest_component: bool = key(False, "keep only the largest connected component")
    noise: NoiseConfig = section(NoiseConfig, "noise on the graph")
    synthetic: SyntheticConfig = section(SyntheticConfig, "the attributed block model")

    def __post_init__(self):
        super().__post_init__()
        if len(self.columns) not in (0, 2):
            raise InputError(f"columns: expected two names, got {', '.join(self.columns)}")
        if self.columns and self.header is False:
            raise InputError("header: false, and data.columns names columns: drop one of them")


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


@dataclass(frozen=True)
class CandidatesConfig(Section):
    """``structure.candidates``: pairs that A' may use beside the observed edges.

    Counts are pairs drawn a node; pairs already there are merged.
    """

    feature_knn: int = key(0, "nearest nodes by cosine of the features", low=0)
    k_hop: int = key(0, "ends of random walks of length 2 to `hops`", low=0)
    hops: int = key(2, "longest walk for k_hop", low=2)
    uniform: int = key(0, "uniformly drawn nodes", low=0)
    same_cluster: int = key(
        0, "nodes drawn from the same cluster; needs refresh_every, as clusters come first", low=0
    )
    refresh_every: int = key(
        0,
        "every so many epochs the lighter half of the candidates gives way to newly drawn k_hop, "
        "uniform and same_cluster pairs; 0: never",
        low=0,
    )
    initial_weight: float = key(1.0, "weight in A' of a new candidate", above=0.0)


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
        choices=("uniform", "feature_cosine", "critic", "link_critic"),
    )
    prior_power: float = key(0.5, "power of the feature_cosine prior", above=0.0)
    shared: bool = key(True, "one A' for all replicas; false: one each (see train.restarts)")
    critic: CriticConfig = section(CriticConfig, "the scores behind prior: critic and link_critic")
    candidates: CandidatesConfig = section(CandidatesConfig, "pairs beside the observed edges")


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
        choices=("gcn", "gae", "vgae", "arga", "dgi", "sage", "smooth"),
    )
    num_clusters: int | Literal["auto"] | None = key(
        None, "clusters to find (required); auto: as many as the data suggest", low=2
    )
    auto_clusters: AutoClustersConfig = section(
        AutoClustersConfig, "the numbers that num_clusters: auto chooses from"
    )
    hidden_feats: tuple[int, ...] = key((256,), "width of each encoder layer")
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
    temperature: float = key(0.1, "softness of head: centroid", above=0.0)
    smooth: SmoothConfig = section(SmoothConfig, "the encoder of that name")
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
    def most_clusters(self) -> int | None:
        """How many clusters there may be: ``num_clusters``, or the most that auto may choose."""
        return self.auto_clusters.high if self.num_clusters == "auto" else self.num_clusters


# Encoders with a loss of their own, and those of them that draw pairs for it.
_WITH_LOSS, _DRAWING = ("vgae", "arga", "dgi", "sage"), ("vgae", "arga", "sage")


@dataclass(frozen=True)
class BaselineConfig(Section):
    """``baseline``: settings of a `ModelConfig.kind` other than user; null: its paper's."""

    epochs: int | None = key(None, "epochs, or most of them where patience is set", low=1)
    lr: float | None = key(None, "Adam's learning rate", above=0.0)
    weight_decay: float | None = key(None, "Adam's L2 penalty", low=0.0)
    hidden_feats: tuple[int, ...] | None = key(None, "width of each encoder layer")
    row_norm: str | None = key(
        None, "scale each row of the features to norm 1", choices=("none", "l1", "l2")
    )
    samples_per_node: int | None = key(
        None, "gae, vgae, arga, gae_cg, arga_cg: pairs drawn for the non-edges, over nodes", low=1
    )
    patience: int | None = key(
        None, "dgi, gic: epochs without a lower loss after which training ends", low=1
    )
    window: int | None = key(
        None, "deepwalk: steps on a walk that make two nodes near each other", low=1, high=39
    )
    hops: int | None = key(
        None, "age: steps of the smoothing; null: 8, its paper's for Cora", low=1
    )
    positive_share: float | None = key(
        None,
        "age: share of the most alike pairs that are positive first; null: 0.011, as for Cora",
        above=0.0,
        high=1.0,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_feats is not None and (not self.hidden_feats or min(self.hidden_feats) < 1):
            raise InputError(f"hidden_feats: expected widths of 1 or more, got {self.hidden_feats}")


@dataclass(frozen=True)
class LossConfig(Section):
    """``loss``: weights of the terms; a term of weight 0 is not computed."""

    npsi_weight: float = key(1.0, "weight of NPSI(A', Y)", low=0.0)
    npsi_observed: bool = key(
        True, "add NPSI(A, Y) at the same weight: the authors' code, not the paper's text"
    )
    davies_bouldin_weight: float = key(0.0, "the paper's beta, weight of DBI(X, Y)", low=0.0)
    davies_bouldin_form: str = key(
        "textbook",
        "textbook: the paper's formula, memberships as weights; soft_features: the authors' code, "
        "which multiplies features by the membership before it takes distances",
        choices=("textbook", "soft_features"),
    )
    davies_bouldin_space: str = key(
        "features",
        "points of the index: features: X, as in the paper; embedding: H",
        choices=("features", "embedding"),
    )
    mixture_weight: float = key(
        0.0,
        "weight of -mean_i log sum_k exp(cos(h_i, c_k) / temperature), for head: centroid: how "
        "well the centroids fit the embeddings",
        low=0.0,
    )
    observed_edge_weight: float = key(
        0.0, "the authors' alpha, weight of the tie between A' and the observed edges", low=0.0
    )
    observed_edge_form: str = key(
        "mean_square",
        "mean_square: mean over observed pairs of (A' - prior)^2; frobenius: ||A' o A - prior||_F, "
        "the authors' code (observed weights hardly move under it)",
        choices=("mean_square", "frobenius"),
    )
    reconstruction_weight: float = key(
        0.0, "the paper's alpha, weight of ||sigmoid(H H^T) - A||_F^2", low=0.0
    )
    reconstruction_form: str = key(
        "squared",
        "squared: that formula, the paper's; cross_entropy: the loss of the graph autoencoder by "
        "Kipf and Welling, in which edges count as much as non-edges",
        choices=("squared", "cross_entropy"),
    )
    reconstruction_samples: int = key(
        5, "pairs sampled a node for the non-edges of the reconstruction", low=1
    )
    supporting_weight: float = key(
        10.0,
        "the paper's alpha for model.encoder vgae (links and divergence from the prior), arga "
        "(links and discriminator), dgi (mutual information) and sage (neighbours): weight of the "
        "model's own loss",
        low=0.0,
    )

    @property
    def needs_embedding_mean(self) -> bool:
        """Whether the loss reads the mean of the embeddings of all nodes."""
        return bool(self.davies_bouldin_weight) and self.davies_bouldin_space == "embedding"


@dataclass(frozen=True)
class PartitionConfig(Section):
    """``train.partition``: what ``train.mode: partition`` trains at a time."""

    num_parts: int = key(16, "parts that METIS cuts the graph into", low=1)
    parts_per_batch: int = key(1, "parts, joined at random, that one update is made with", low=1)
    settle_every: int = key(
        10,
        "epochs between passes over all parts that bring what they keep of each other up to date "
        "and compare the loss with the exact one",
        low=1,
    )


@dataclass(frozen=True)
class TrainConfig(Section):
    """``train``: the optimisation."""

    mode: str = key(
        "full",
        "full: every step sees the whole graph; partition: one batch of parts at a time, for "
        "graphs whose training would not fit the memory",
        choices=("full", "partition"),
    )
    partition: PartitionConfig = section(PartitionConfig, "parts of mode: partition")
    precision: str = key(
        "float32", "floating-point numbers of the training", choices=("float32", "float64")
    )
    epochs: int = key(400, "epochs", low=1)
    lr: float = key(0.01, "Adam's learning rate", above=0.0)
    structure_lr: float | None = key(
        None, "learning rate of A'; null: lr; 0: A' stays as it starts", low=0.0
    )
    weight_decay: float = key(5e-4, "Adam's L2 penalty on the network, not on A'", low=0.0)
    plateau_factor: float = key(
        0.3,
        "factor on the learning rate when the loss stops falling; 1: never. By torch's relative "
        "threshold, as in the authors' code, under which a negative loss may rise slowly",
        above=0.0,
        high=1.0,
    )
    plateau_patience: int = key(10, "epochs without improvement before that", low=0)
    restarts: int = key(1, "replicas of encoder and head, trained side by side", low=1)
    consensus: str = key(
        "none",
        "what becomes of the replicas: none: the one with the lowest loss is the result; labels: "
        "k-means on sqrt(Y) of all; hidden: k-means on the embeddings of all, rows of length 1",
        choices=("none", "labels", "hidden"),
    )
    resume: bool = key(False, "go on from the checkpoint in output_dir")
    log_every: int = key(1, "epochs between log lines", low=1)
    checkpoint_every: int = key(100, "epochs between checkpoints", low=1)


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
    )


@dataclass(frozen=True)
class EvalConfig(Section):
    """``eval``: what is computed after training."""

    floors: bool = key(
        False,
        "also run the training-free features_kmeans and smooth_kmeans on the features as they are "
        "and, where the section features does more than scale rows, on those it prepares",
    )


@dataclass(frozen=True)
class DistributedConfig(Section):
    """``distributed``: several processes, as ``tools/launch.py`` starts them."""

    backend: str = key(
        "auto",
        "what the processes talk by; auto: nccl where each has a GPU of its own, else gloo",
        choices=("auto", "gloo", "nccl"),
    )
    timeout_s: float = key(
        1800.0, "seconds that a process waits for the others, loading included", above=0.0
    )
    partition: str | None = key(
        None,
        "folder that `user-dgl partition` wrote, of which each process reads its part; null: the "
        "first process loads the data and hands the parts out",
    )


@dataclass(frozen=True)
class Config(Section):
    """All settings of a run."""

    seed: int = key(0, "seed of everything random in training", low=0, high=2**31 - 1)
    task: str = key(
        "clustering",
        "what the run is for: clustering; link_prediction: edges are held out of the graph, and "
        "scores of node pairs are learned from the others",
        choices=("clustering", "link_prediction"),
    )
    output_dir: str | None = key(None, "run directory; null: outputs/<config>/seed<seed>")
    overwrite: bool = key(False, "replace the run in output_dir")
    device: str = key(
        "auto",
        "cuda: a GPU, one for each process, with engine csr; auto: that where torch sees one, "
        "else the CPU, which also serves engine dgl and train.mode=partition",
        choices=("auto", "cpu", "cuda"),
    )
    data: DataConfig = section(DataConfig, "the attributed graph")
    features: FeaturesConfig = section(FeaturesConfig, "preparation of the features")
    structure: StructureConfig = section(StructureConfig, "the learned graph A'")
    model: ModelConfig = section(ModelConfig, "encoder and head")
    loss: LossConfig = section(LossConfig, "loss terms")
    train: TrainConfig = section(TrainConfig, "optimisation")
    baseline: BaselineConfig = section(
        BaselineConfig, "a rival in place of USER; null: the setting of its paper"
    )
    distributed: DistributedConfig = section(DistributedConfig, "several processes")
    links: LinksConfig = section(LinksConfig, "the task link_prediction")
    eval: EvalConfig = section(EvalConfig, "after training")

    def __post_init__(self):
        super().__post_init__()
        if self.structure.prior == "link_critic" and self.structure.critic.power is None:
            raise InputError("structure.critic.power=null needs structure.prior=critic: set it")
        noise, candidates = self.data.noise, self.structure.candidates
        if noise.kind == "file" and noise.file is None:
            raise InputError("data.noise.kind=file needs data.noise.file=FILE.npz")
        if candidates.same_cluster and not candidates.refresh_every:
            raise InputError(
                "structure.candidates.same_cluster needs structure.candidates.refresh_every above "
                "0: clusters exist only after some epochs"
            )
        model, loss = self.model, self.loss
        if (model.encoder == "smooth") != (model.head == "centroid"):
            raise InputError(
                "model.encoder=smooth and model.head=centroid go together: set both or none, got "
                f"{model.encoder} and {model.head}"
            )
        if model.encoder == "smooth" and model.observed_mix:
            raise InputError("model.encoder=smooth smooths over A' alone: set model.observed_mix=0")
        if model.encoder == "smooth" and self.train.consensus != "none":
            raise InputError("train.consensus joins replicas, and model.encoder=smooth has one")
        if model.encoder == "smooth" and self.train.restarts > 1:
            raise InputError(
                "train.restarts: model.encoder=smooth has nothing to restart, as k-means takes the "
                "best of 20 starts: set it to 1"
            )
        if model.encoder != "smooth" and model.labels != "head":
            raise InputError(f"model.labels={model.labels} needs model.encoder=smooth")
        if model.head != "centroid" and loss.mixture_weight:
            raise InputError("loss.mixture_weight needs model.head=centroid")
        if self.train.mode == "partition":
            self._check_partition()
        if self.overwrite and self.train.resume:
            raise InputError("overwrite and train.resume exclude each other: set one of them")
        if self.device == "cuda" and self.structure.engine == "dgl":
            raise InputError("structure.engine=dgl runs on the CPU: use device=cpu or engine=csr")

    def _check_partition(self) -> None:
        """What a part cannot do alone."""
        model, loss = self.model, self.loss
        beyond = loss.davies_bouldin_weight and loss.davies_bouldin_space != "features"
        self._refuse(
            "train.mode=partition",
            "train.mode=full",
            ("model.encoder", model.encoder, model.encoder == "smooth", "gcn or gae"),
            ("loss.davies_bouldin_space", loss.davies_bouldin_space, beyond, "features"),
            ("device", self.device, self.device == "cuda", "cpu"),
        )

    @property
    def draws_for_supporting(self) -> bool:
        """Whether the encoder's own loss draws pairs of nodes."""
        return self.loss.supporting_weight > 0 and self.model.encoder in _DRAWING

    @property
    def fits_gpu(self) -> bool:
        """Whether a GPU can train by these settings."""
        return self.train.mode == "full" and self.structure.engine != "dgl"

    def check_distributed(self) -> None:
        """What several processes cannot do together.

        Raises
        ------
        InputError
        """
        mode, kind = self.train.mode, self.model.kind
        self._refuse(
            "a distributed run",
            "a single process",
            ("model.kind", kind, kind != "user", "user"),
            ("train.mode", mode, mode != "full", "full"),
            ("task", self.task, self.task != "clustering", "clustering"),
        )

    def _refuse(self, what: str, otherwise: str, *more: tuple) -> None:
        """Refuse settings that need all of the graph at hand, and those of ``more``."""
        model, train, loss = self.model, self.train, self.loss
        refresh = self.structure.candidates.refresh_every
        reconstruction = loss.reconstruction_weight
        unfit = (
            *more,
            ("model.encoder", model.encoder, model.encoder in _WITH_LOSS, "gcn or gae"),
            ("model.observed_mix", model.observed_mix, model.observed_mix != 0, "0"),
            ("train.restarts", train.restarts, train.restarts != 1, "1"),
            ("train.consensus", train.consensus, train.consensus != "none", "none"),
            ("loss.reconstruction_weight", reconstruction, reconstruction != 0, "0"),
            ("structure.candidates.refresh_every", refresh, refresh != 0, "0"),
        )
        for name, value, is_unfit, instead in unfit:
            if is_unfit:
                raise InputError(
                    f"{what} needs {name}={instead}, got {_shown(value)}: set it, or {otherwise}"
                )

    def inert_settings(self) -> list[str]:
        """Settings away from their default that have no effect in this run, one line each."""
        data, structure, loss = self.data, self.structure, self.loss
        candidates, attack = structure.candidates, data.noise.attack
        drawn = candidates.k_hop or candidates.uniform or candidates.same_cluster
        some_candidates = drawn or candidates.feature_knn
        dead = (
            (not data.noise.flips, "data.noise.kind", "data.noise.rate"),
            (not data.noise.flips, "data.noise.kind", "data.noise.seed"),
            (data.noise.kind != "metattack", "data.noise.kind", "data.noise.attack"),
            (data.noise.flips and data.noise.rate == 0, "data.noise.rate", "data.noise.kind"),
            (self.links.score == "dot", "links.score", "links.rising"),
            (data.noise.kind != "file", "data.noise.kind", "data.noise.file"),
            (attack.form == "exact", "data.noise.attack.form", "data.noise.attack.steps"),
            (attack.form == "exact", "data.noise.attack.form", "data.noise.attack.block_nodes"),
            (data.kind != "synthetic", "data.kind", "data.synthetic"),
            (data.kind not in ("planetoid", "dgl"), "data.kind", "data.name"),
            (data.kind in ("edge_list", "synthetic"), "data.kind", "data.path"),
            (data.kind != "dgl", "data.kind", "data.trusted"),
            (data.kind != "edge_list", "data.kind", "data.edges"),
            (data.kind != "edge_list", "data.kind", "data.header"),
            (data.kind != "edge_list", "data.kind", "data.columns"),
            (data.kind != "edge_list", "data.kind", "data.features"),
            (data.kind != "edge_list", "data.kind", "data.labels"),
            (data.kind not in ("edge_list", "npz", "dgl"), "data.kind", "data.missing_features"),
            (not structure.learnable, "structure.learnable", "structure.prior"),
            (not structure.learnable, "structure.learnable", "structure.candidates"),
            (not structure.learnable, "structure.learnable", "train.structure_lr"),
            (self.train.structure_lr == 0, "train.structure_lr", "loss.observed_edge_weight"),
            (
                self.train.structure_lr == 0,
                "train.structure_lr",
                "structure.candidates.refresh_every",
            ),
            (not structure.learnable, "structure.learnable", "loss.observed_edge_weight"),
            (not structure.learnable, "structure.learnable", "structure.shared"),
            (self.train.restarts == 1, "train.restarts", "structure.shared"),
            (self.train.structure_lr == 0, "train.structure_lr", "structure.shared"),
            (
                self.train.structure_lr == 0,
                "train.structure_lr",
                "structure.candidates.same_cluster",
            ),
            (
                not structure.learnable and self.task == "clustering",
                "structure.learnable",
                "structure.critic",
            ),
            (structure.prior != "feature_cosine", "structure.prior", "structure.prior_power"),
            (
                structure.prior not in ("critic", "link_critic") and self.task == "clustering",
                "structure.prior",
                "structure.critic",
            ),
            (self.task != "link_prediction", "task", "links"),
            (not candidates.k_hop, "structure.candidates.k_hop", "structure.candidates.hops"),
            (
                not some_candidates,
                "structure.candidates.feature_knn",
                "structure.candidates.initial_weight",
            ),
            (not drawn, "structure.candidates.k_hop", "structure.candidates.refresh_every"),
            (
                candidates.refresh_every >= self.train.epochs,
                "train.epochs",
                "structure.candidates.refresh_every",
            ),
            (self.train.plateau_factor == 1, "train.plateau_factor", "train.plateau_patience"),
            (self.train.mode != "partition", "train.mode", "train.partition"),
            (self.model.kind == "user", "model.kind", "baseline"),
            (not loss.npsi_weight, "loss.npsi_weight", "loss.npsi_observed"),
            (self.model.num_clusters != "auto", "model.num_clusters", "model.auto_clusters"),
            (
                self.model.encoder != "smooth" and self.model.num_clusters != "auto",
                "model.encoder",
                "model.smooth",
            ),
            (self.model.encoder == "smooth", "model.encoder", "model.hidden_feats"),
            (self.model.head != "centroid", "model.head", "model.temperature"),
            (
                not loss.davies_bouldin_weight,
                "loss.davies_bouldin_weight",
                "loss.davies_bouldin_space",
            ),
            (
                not loss.davies_bouldin_weight,
                "loss.davies_bouldin_weight",
                "loss.davies_bouldin_form",
            ),
            (
                not loss.observed_edge_weight,
                "loss.observed_edge_weight",
                "loss.observed_edge_form",
            ),
            (
                not loss.reconstruction_weight and self.model.encoder not in _DRAWING,
                "loss.reconstruction_weight",
                "loss.reconstruction_samples",
            ),
            (
                not loss.reconstruction_weight,
                "loss.reconstruction_weight",
                "loss.reconstruction_form",
            ),
            (self.model.encoder not in _WITH_LOSS, "model.encoder", "loss.supporting_weight"),
        )
        default = Config()
        lines = []
        for is_dead, cause, name in dead:
            value = _get(self, name)
            if is_dead and value != _get(default, name):
                shown = name if dataclasses.is_dataclass(value) else f"{name}={_shown(value)}"
                lines.append(f"{shown} has no effect with {cause}={_shown(_get(self, cause))}")
        return lines


def _get(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = getattr(config, name)
    return config


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def load_config(path: str | os.PathLike | Config | None, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file and apply overrides.

    Parameters
    ----------
    path : path, Config or None
        YAML file, or settings to start from; None starts from the defaults.
    overrides : sequence of str
        ``section.key=value``, the value in YAML.

    Raises
    ------
    InputError
        File unreadable, not YAML, unknown key, wrong type, value out of range.
    """
    plain: dict[str, Any] = {}
    where: dict[tuple[str, ...], str] = {}
    if isinstance(path, Config):
        plain = to_plain(path)
    elif path is not None:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except TypeError:
            raise InputError(f"config: expected a path or a Config, got {path!r}") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise InputError(f"{path}:{line}: not UTF-8 text (byte {error.start})") from None
        plain = parse_yaml(text, str(path), where)
    for override in overrides:
        name, equals, value = override.partition("=")
        keys = tuple(name.split("."))
        if not equals or not all(keys):
            raise InputError(f"{override!r}: expected section.key=value")
        source = override if override.isprintable() else repr(override)
        node = plain
        for depth, part in enumerate(keys[:-1], start=1):
            if node.get(part) is None:
                node[part] = {}
            node = node[part]
            if not isinstance(node, dict):  # a bad value below must not vanish under the override
                at = place(where, keys[:depth])
                raise InputError(f"{at}{'.'.join(keys[:depth])}={node!r} holds no keys: {source}")
        node[keys[-1]] = parse_yaml(value, source, None)
        where = {known: at for known, at in where.items() if known[: len(keys)] != keys}
        where[keys] = source
    return build(Config, plain, where)


def to_yaml(config: Config) -> str:
    """The resolved settings as YAML that `load_config` reads back to the same settings.

    >>> load_config(None, ["train.lr=1e-3"]).train.lr
    0.001
    >>> "lr: 0.001" in to_yaml(load_config(None, ["train.lr=1e-3"]))
    True
    """
    return dump_yaml(to_plain(config))


def config_name(path: str | os.PathLike) -> str:
    """Name of a config for the default run directory: its path below a folder ``configs``.

    >>> config_name("configs/paper/cora.yaml"), config_name("mine.yaml")
    ('paper/cora', 'mine')
    """
    parts = Path(os.path.normpath(path)).with_suffix("").parts
    if "configs" in parts[:-1]:
        last = len(parts) - 1 - parts[::-1].index("configs")
        parts = parts[last + 1 :]
    else:
        parts = parts[-1:]
    return "/".join(parts)


def data_name(path: str | os.PathLike) -> str:
    """Name of a file of edges for the default run directory: without folder and ending.

    >>> data_name("data/com-dblp.v2.csv.gz"), data_name("graph")
    ('com-dblp.v2', 'graph')
    """
    path = Path(path)
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return path.stem


def default_config() -> Path:
    """``configs/default.yaml``: in the package where that is installed, beside it in a clone."""
    package = Path(str(importlib.resources.files("user_dgl")))
    installed = package / "configs" / "default.yaml"
    return installed if installed.exists() else package.parent / "configs" / "default.yaml"
