"""Section ``data``: source of the attributed graph, and noise that is added to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from user_dgl.config.schema import (
    LARGEST_RATE,
    OnlyWith,
    Section,
    key,
    only_where,
    only_without,
    section,
)
from user_dgl.errors import InputError


@dataclass(frozen=True)
class DataKind:
    """One kind of data.

    Attributes
    ----------
    load : str or callable
        Function, or its name ``"module:function"``. Its arguments are the section ``data`` and the
        folder that relative paths start from. It returns a `user_dgl.data.AttributedGraph`.
    needs : str or None
        Key of this section that must be set.
    reads : tuple of str
        Keys of this section that have an effect on this kind only; set where it does not read
        them, a warning names them.
    categories : bool
        Whether the function also takes ``features.categorical``, as its third argument.
    """

    load: str | Callable[..., Any]
    needs: str | None = None
    reads: tuple[str, ...] = ()
    categories: bool = False


# Maps the names of the kinds of data in the settings to the kinds.
DATA_KINDS: dict[str, DataKind] = {
    "planetoid": DataKind("user_dgl.data.load:planetoid", needs="name", reads=("name", "path")),
    "wiki": DataKind("user_dgl.data.load:wiki", reads=("path",)),
    "npz": DataKind("user_dgl.data.load:npz", needs="path", reads=("path", "missing_features")),
    "musae": DataKind("user_dgl.data.load:musae", needs="path", reads=("path",)),
    "ogb": DataKind("user_dgl.data.load:ogb", needs="path", reads=("path",)),
    "edge_list": DataKind(
        "user_dgl.data.load:edge_list",
        needs="edges",
        reads=(
            "edges",
            "header",
            "columns",
            "separator",
            "comment",
            "layout",
            "features",
            "labels",
            "missing_features",
        ),
        categories=True,
    ),
    "dgl": DataKind(
        "user_dgl.data.load:dgl",
        needs="name",
        reads=("name", "path", "trusted", "missing_features"),
    ),
    "synthetic": DataKind("user_dgl.data.load:synthetic", reads=("synthetic",)),
}


@dataclass(frozen=True)
class NoiseKind:
    """One kind of noise.

    Attributes
    ----------
    apply : str or callable
        Function, or its name ``"module:function"``. Its argument is a
        `user_dgl.perturb.NoiseRequest`. It returns a `user_dgl.perturb.Perturbed`.
    flips : bool
        Whether it flips pairs, so that ``rate`` and ``seed`` have an effect.
    reads_labels : bool
        Whether it reads the features and labels of the nodes.
    reads : tuple of str
        Further keys of the section ``data.noise`` that have an effect on this kind.
    """

    apply: str | Callable[..., Any]
    flips: bool = False
    reads_labels: bool = False
    reads: tuple[str, ...] = ()


# Maps the names of the kinds of noise in the settings to the kinds.
NOISE_KINDS: dict[str, NoiseKind] = {
    "none": NoiseKind("user_dgl.perturb.apply:no_noise"),
    "random_flip": NoiseKind("user_dgl.perturb.apply:flip_at_random", flips=True),
    "metattack": NoiseKind(
        "user_dgl.perturb.apply:attack", flips=True, reads_labels=True, reads=("attack",)
    ),
    "file": NoiseKind("user_dgl.perturb.apply:replace_by_stored", reads=("file",)),
}


def _read_by_kind(key: str) -> OnlyWith:
    """Condition that ``data.kind`` reads a key of the section ``data``."""
    kinds = " or ".join(name for name, kind in DATA_KINDS.items() if key in kind.reads)
    return only_where(
        "data.kind",
        f"data.kind: {kinds}",
        lambda config: key in DATA_KINDS[config.data.kind].reads,
    )


def _read_by_noise(key: str) -> OnlyWith:
    """Condition that ``data.noise.kind`` reads a key of the section ``data.noise``."""
    kinds = " or ".join(name for name, kind in NOISE_KINDS.items() if key in kind.reads)
    return only_where(
        "data.noise.kind",
        f"data.noise.kind: {kinds}",
        lambda config: key in NOISE_KINDS[config.data.noise.kind].reads,
    )


_FLIPS = only_where(
    "data.noise.kind",
    "a data.noise.kind that flips pairs",
    lambda config: config.data.noise.flips,
)


@dataclass(frozen=True)
class AttackConfig(Section):
    """``data.noise.attack``: how the noise ``metattack`` chooses the pairs that it flips."""

    form: str = key(
        "auto",
        "Form of the attack. exact: each flip is the best one of all pairs. large: each step draws "
        "a part of the nodes and flips several pairs, the best ones among the drawn nodes. auto: "
        "exact for graphs of up to 5000 nodes, else large.",
        choices=("auto", "exact", "large"),
    )
    steps: int = key(
        100,
        "For form large: number of steps. The flips are divided evenly among them.",
        only_without("data.noise.attack.form", "exact"),
        low=1,
    )
    block_nodes: int = key(
        2048,
        "For form large: number of nodes drawn in each step. It is raised to 16 for each flip of "
        "the step if that is more.",
        only_without("data.noise.attack.form", "exact"),
        low=2,
    )
    surrogate_feats: int = key(
        16, "Hidden width of the surrogate, a linear GCN with two layers.", low=1
    )
    surrogate_epochs: int = key(
        100,
        "Number of training epochs of the surrogate. The gradient goes through all of them.",
        low=1,
    )
    surrogate_lr: float = key(0.1, "Learning rate of the surrogate.", above=0.0, high=LARGEST_RATE)
    surrogate_momentum: float = key(0.9, "Momentum of the surrogate's training.", low=0.0, high=1.0)


@dataclass(frozen=True)
class NoiseConfig(Section):
    """``data.noise``: changes to the graph before training."""

    kind: str = key(
        "none",
        "Kind of noise. random_flip: flip round(rate * number of edges) distinct node pairs, drawn "
        "uniformly from all pairs. metattack: flip the same number of pairs, chosen to harm a node "
        "classifier most; this reads labels. file: replace the graph by the one in noise.file.",
        only_where(
            "data.noise.rate",
            "data.noise.rate above 0, for kinds that flip pairs",
            lambda config: not config.data.noise.flips or config.data.noise.rate > 0,
        ),
        choices=NOISE_KINDS,
    )
    rate: float = key(
        0.0, "Number of flipped pairs, divided by the number of edges.", _FLIPS, low=0.0
    )
    seed: int | None = key(None, "Seed of the flips. null: the seed of the run.", _FLIPS, low=0)
    file: str | None = key(
        None,
        "scipy.sparse npz file with the noisy adjacency. The path is absolute or relative to "
        "data.root.",
        _read_by_noise("file"),
    )
    attack: AttackConfig = section(
        AttackConfig,
        "how kind metattack chooses the pairs that it flips",
        _read_by_noise("attack"),
    )

    @property
    def flips(self) -> bool:
        """Whether the noise flips pairs, so that ``rate`` and ``seed`` have an effect."""
        return NOISE_KINDS[self.kind].flips


@dataclass(frozen=True)
class SyntheticConfig(Section):
    """``data.synthetic``: the attributed block model that kind ``synthetic`` draws from."""

    num_nodes: int = key(1000, "Number of nodes.", low=2)
    num_blocks: int = key(5, "Number of blocks. Their sizes differ by at most one.", low=1)
    average_degree: float = key(10.0, "Expected number of neighbours of a node.", above=0.0)
    mixing: float = key(
        0.2,
        "Expected share of the edges whose second end is drawn from all nodes. The second end of "
        "the other edges is drawn from the block of the first end.",
        low=0.0,
        high=1.0,
    )
    num_features: int = key(200, "Number of feature columns (words).", low=1)
    words_per_node: int = key(15, "Number of words drawn for each node.", low=1)
    topic_share: float = key(
        0.4,
        "Expected share of a node's words that are drawn from the own words of its block.",
        low=0.0,
        high=1.0,
    )
    seed: int = key(0, "Seed of the graph, independent of the seed of the run.", low=0)


@dataclass(frozen=True)
class DataConfig(Section):
    """``data``: source of the attributed graph."""

    kind: str = key(
        "synthetic",
        "Kind of data. planetoid: files ind.<name>.*. wiki: graph.txt, group.txt and tfidf.txt. "
        "npz: one npz file. musae: *_edges.csv, *_target.csv and *.json. ogb: a folder of the Open "
        "Graph Benchmark. edge_list: your own files, see data.edges. dgl: a data set of dgl.data. "
        "synthetic: a random graph, see data.synthetic.",
        choices=DATA_KINDS,
    )
    root: str | None = key(
        None,
        "Folder that relative paths of data start from. null: $USER_DGL_DATA if it is set, else "
        "the working directory.",
    )
    name: str | None = key(
        None,
        "For planetoid: cora, citeseer or pubmed. For dgl: name of a class of dgl.data.",
        _read_by_kind("name"),
    )
    path: str | None = key(
        None,
        "For planetoid, wiki, musae and ogb: folder of the files. For npz: the file. For dgl: "
        "folder for the raw files of the data set.",
        _read_by_kind("path"),
    )
    trusted: bool = key(
        False,
        "For dgl: whether DGL may unpickle the files in path. Unpickling can run any code.",
        _read_by_kind("trusted"),
    )
    edges: str | None = key(
        None,
        "For edge_list: file of edges. Its format is .npz, .npy, .mtx, .mat, .bin or .dgl "
        "(dgl.save_graphs), .graphml or .xml, .gexf, .gml, Pajek, .adjlist or node-link JSON; any "
        "other file is read as CSV, TSV or blank-separated text.",
        _read_by_kind("edges"),
    )
    weights: int | str = key(
        "auto",
        "Weights of the edges. auto: those that the data have. ignore: each edge counts as 1. Any "
        "other text: name or number (from 1) of the column with the weights, for a text of edges.",
    )
    weight_power: float | None = key(
        None,
        "Power to which the weights of the edges are raised before they are divided by their mean. "
        "null: 1; or, for USER in a graph with features in which a few edges have most of the "
        "weight, the largest of 0.5, 0.25 and 0 with which at least 30 % of the edges count.",
        only_without("data.weights", "ignore"),
        low=0,
        high=1,
    )
    header: bool | Literal["auto"] = key(
        "auto",
        "For edge_list: whether the first row of a text file of edges is a header. auto: it is a "
        "header if it contains usual names for the ends of edges, or text above numbers.",
        _read_by_kind("header"),
    )
    columns: tuple[int | str, ...] = key(
        (),
        "For edge_list: the two columns with the ends of the edges: names [A, B], or their numbers "
        "from 1. []: the columns are detected.",
        _read_by_kind("columns"),
    )
    separator: str = key(
        "auto",
        "For edge_list: separator of the cells of a text file of edges. auto: it is detected.",
        _read_by_kind("separator"),
        choices=("auto", "comma", "tab", "semicolon", "blank", "pipe"),
    )
    comment: bool | Literal["auto"] = key(
        "auto",
        "For edge_list: whether lines of a text file that start with # or % are comments. "
        "auto: they are, and a file is refused in which they may be edges too.",
        _read_by_kind("comment"),
    )
    layout: str = key(
        "auto",
        "For edge_list: layout of a text file of edges. pairs: an edge in each row. matrix: a "
        "square table of numbers. adjacency_list: a node and its neighbours in each row. auto: it "
        "is detected, and a file that fits several is refused.",
        _read_by_kind("layout"),
        choices=("auto", "pairs", "matrix", "adjacency_list"),
    )
    features: str | None = key(
        None,
        "For edge_list: file of node features (text, npy, npz, mtx or mat). It takes precedence "
        "over features in the file of edges.",
        _read_by_kind("features"),
    )
    labels: str | None = key(
        None,
        "For edge_list: file of labels (text, npy, npz or mat). Labels are read only by metrics "
        "and by noise.kind: metattack.",
        _read_by_kind("labels"),
    )
    missing_features: str = key(
        "refuse",
        "Treatment of NaN, empty and infinite features. refuse: stop with an error. zero: replace "
        "them by 0. mean: replace them by the mean of their column.",
        _read_by_kind("missing_features"),
        choices=("refuse", "zero", "mean"),
    )
    largest_component: bool = key(False, "Keep only the largest connected component of the graph.")
    noise: NoiseConfig = section(NoiseConfig, "noise that is added to the graph")
    synthetic: SyntheticConfig = section(
        SyntheticConfig, "the attributed block model", _read_by_kind("synthetic")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.columns) not in (0, 2):
            shown = ", ".join(map(str, self.columns))
            raise InputError(f"columns: expected two names or numbers, got {shown}")
        names = [c for c in self.columns if isinstance(c, str) and not c.isdigit()]
        if self.weights not in ("auto", "ignore") and self.kind != "edge_list":
            raise InputError(
                f"weights: expected auto or ignore, got {self.weights!r}: a column is read only "
                "from a text of edges (kind=edge_list)"
            )
        if self.header is False and names:
            raise InputError(
                "header: the names in data.columns need a header, and header is false: change one "
                "of the two"
            )
