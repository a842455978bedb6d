"""Section ``data``: where the attributed graph comes from, and what noise is put on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from user_dgl.config.schema import Section, key, only_where, only_with, only_without, section
from user_dgl.errors import InputError


@dataclass(frozen=True)
class DataKind:
    """One kind of data.

    Attributes
    ----------
    load : str or callable
        ``"module:function"`` or the function: gets the section and the folder that relative paths
        start from, and returns a `user_dgl.data.AttributedGraph`.
    needs : str or None
        The key of this section that has to be set.
    """

    load: str | Callable[..., Any]
    needs: str | None = None


# Every kind of data by its name in the settings.
DATA_KINDS: dict[str, DataKind] = {
    "planetoid": DataKind("user_dgl.data.load:planetoid", needs="name"),
    "wiki": DataKind("user_dgl.data.load:wiki"),
    "npz": DataKind("user_dgl.data.load:npz", needs="path"),
    "musae": DataKind("user_dgl.data.load:musae", needs="path"),
    "ogb": DataKind("user_dgl.data.load:ogb", needs="path"),
    "edge_list": DataKind("user_dgl.data.load:edge_list", needs="edges"),
    "dgl": DataKind("user_dgl.data.load:dgl", needs="name"),
    "synthetic": DataKind("user_dgl.data.load:synthetic"),
}


@dataclass(frozen=True)
class NoiseKind:
    """One kind of noise.

    Attributes
    ----------
    apply : str or callable
        ``"module:function"`` or the function: gets a `user_dgl.perturb.NoiseRequest` and returns a
        `user_dgl.perturb.Perturbed`.
    flips : bool
        It flips pairs, so that ``rate`` and ``seed`` have an effect.
    reads_labels : bool
        It gets features and labels of the nodes.
    """

    apply: str | Callable[..., Any]
    flips: bool = False
    reads_labels: bool = False


# Every kind of noise by its name in the settings.
NOISE_KINDS: dict[str, NoiseKind] = {
    "none": NoiseKind("user_dgl.perturb.apply:no_noise"),
    "random_flip": NoiseKind("user_dgl.perturb.apply:flip_at_random", flips=True),
    "metattack": NoiseKind("user_dgl.perturb.apply:attack", flips=True, reads_labels=True),
    "file": NoiseKind("user_dgl.perturb.apply:replace_by_stored"),
}

_FLIPS = only_where(
    "data.noise.kind",
    "a data.noise.kind that flips pairs",
    lambda config: config.data.noise.flips,
)


@dataclass(frozen=True)
class AttackConfig(Section):
    """``data.noise.attack``: how kind metattack finds the pairs that it flips."""

    form: str = key(
        "auto",
        "exact: all pairs are compared before every single flip; large: several flips at a time, "
        "the best pairs of a part of the nodes drawn anew each time; auto: exact up to 5000 nodes",
        choices=("auto", "exact", "large"),
    )
    steps: int = key(
        100,
        "form large: times that flips are chosen, as many each time",
        only_without("data.noise.attack.form", "exact"),
        low=1,
    )
    block_nodes: int = key(
        2048,
        "form large: nodes drawn each time, 16 for each flip if that is more",
        only_without("data.noise.attack.form", "exact"),
        low=2,
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
        only_where(
            "data.noise.rate",
            "data.noise.rate above 0, where it says how much is flipped",
            lambda config: not config.data.noise.flips or config.data.noise.rate > 0,
        ),
        choices=NOISE_KINDS,
    )
    rate: float = key(0.0, "flipped pairs as a share of the edges", _FLIPS, low=0.0)
    seed: int | None = key(None, "seed of the flips; null: the run's seed", _FLIPS, low=0)
    file: str | None = key(
        None,
        "scipy.sparse npz of the noisy adjacency, under data.root or an absolute path",
        only_with("data.noise.kind", "file"),
    )
    attack: AttackConfig = section(
        AttackConfig,
        "how kind metattack finds the pairs that it flips",
        only_with("data.noise.kind", "metattack"),
    )

    @property
    def flips(self) -> bool:
        """Whether ``rate`` and ``seed`` say what changes."""
        return NOISE_KINDS[self.kind].flips


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
        choices=DATA_KINDS,
    )
    root: str | None = key(
        None, "folder that relative data paths start from; null: $USER_DGL_DATA, else this folder"
    )
    name: str | None = key(
        None,
        "planetoid: cora, citeseer, pubmed; dgl: a class of dgl.data",
        only_with("data.kind", "planetoid", "dgl"),
    )
    path: str | None = key(
        None,
        "planetoid, wiki, musae, ogb: folder; npz: file; dgl: folder for its raw files",
        only_without("data.kind", "edge_list", "synthetic"),
    )
    trusted: bool = key(
        False,
        "dgl: whether DGL may unpickle the files in path, which can run any code",
        only_with("data.kind", "dgl"),
    )
    edges: str | None = key(
        None,
        "edge_list: file of edges: .npz, .npy, .mtx, .mat, .graphml, .bin (dgl.save_graphs), else "
        "CSV, TSV or blank-separated text",
        only_with("data.kind", "edge_list"),
    )
    header: bool | Literal["auto"] = key(
        "auto",
        "edge_list: whether the first row of a text of edges names its columns; auto: where it "
        "names the ends of edges as is usual, or holds text above numbers",
        only_with("data.kind", "edge_list"),
    )
    columns: tuple[str, ...] = key(
        (),
        "edge_list: names of the two columns with the ends of the edges, [A, B]; []: found out",
        only_with("data.kind", "edge_list"),
    )
    features: str | None = key(
        None,
        "edge_list: file of node features (text, npy, npz, mtx, mat) where edges has none",
        only_with("data.kind", "edge_list"),
    )
    labels: str | None = key(
        None,
        "edge_list: file of labels (text, npy, npz, mat), read for scores and by noise.kind: "
        "metattack only",
        only_with("data.kind", "edge_list"),
    )
    missing_features: str = key(
        "refuse",
        "what becomes of NaN, empty and infinite features: refuse; zero; mean: that of their "
        "column (edge_list, npz, dgl)",
        only_with("data.kind", "edge_list", "npz", "dgl"),
        choices=("refuse", "zero", "mean"),
    )
    largest_component: bool = key(False, "keep only the largest connected component")
    noise: NoiseConfig = section(NoiseConfig, "noise on the graph")
    synthetic: SyntheticConfig = section(
        SyntheticConfig, "the attributed block model", only_with("data.kind", "synthetic")
    )

    def __post_init__(self):
        super().__post_init__()
        if len(self.columns) not in (0, 2):
            raise InputError(f"columns: expected two names, got {', '.join(self.columns)}")
        if self.columns and self.header is False:
            raise InputError("header: false, and data.columns names columns: drop one of them")
