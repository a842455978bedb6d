"""Settings of a run: frozen dataclasses, strict YAML, ``section.key=value`` overrides.

Every key is a dataclass field with a type, a default, a one-line meaning and, where it has one, a
range or a list of choices. Precedence: default < YAML file < override. Nothing here imports torch,
so that ``user-dgl config`` and ``--help`` answer at once.

Plain PyYAML reads ``1e-3`` as text, ``yes`` as true, ``010`` as eight and keeps the last of two
equal keys. Here numbers and booleans are those of YAML 1.2 (so ``1e-3`` is a number and ``yes`` is
text, which a boolean key then refuses), repeated keys, aliases and unknown keys are errors with
their line, and the text ``None`` is refused with a hint to write ``null``.
"""

import dataclasses
import difflib
import math
import numbers
import os
import re
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from user_dgl.errors import InputError


def _key(default, doc, *, choices=None, low=None, high=None, above=None):
    """A configuration key; ``low`` and ``high`` are inclusive bounds, ``above`` is exclusive."""
    metadata = {"doc": doc, "choices": choices, "low": low, "high": high, "above": above}
    return field(default=default, metadata=metadata)


def _section(cls, doc):
    return field(default_factory=cls, metadata={"doc": doc})


class _Section:
    """Type and range checks of every field, so that Python callers get those of the YAML file."""

    def __post_init__(self):
        hints = typing.get_type_hints(type(self))
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if dataclasses.is_dataclass(hints[item.name]):
                if not isinstance(value, hints[item.name]):
                    expected = hints[item.name].__name__
                    raise InputError(f"{item.name}: expected a {expected}, got {value!r}")
                continue
            object.__setattr__(
                self, item.name, _checked(value, hints[item.name], item.metadata, item.name)
            )


@dataclass(frozen=True)
class NoiseConfig(_Section):
    """``data.noise``: what is done to the graph before anything learns from it."""

    kind: str = _key(
        "none",
        "none; random_flip: flips round(rate * edges) distinct node pairs drawn uniformly from all "
        "pairs; file: the graph is replaced by the one in noise.file",
        choices=("none", "random_flip", "file"),
    )
    rate: float = _key(0.0, "flipped pairs as a share of the edges", low=0.0)
    seed: int | None = _key(None, "seed of the flips; null: the run's seed", low=0)
    file: str | None = _key(
        None, "scipy.sparse npz of the noisy adjacency, under data.root or an absolute path"
    )


@dataclass(frozen=True)
class SyntheticConfig(_Section):
    """``data.synthetic``: the attributed block model (kind synthetic)."""

    num_nodes: int = _key(1000, "nodes", low=2)
    num_blocks: int = _key(5, "blocks, of sizes that differ by one at most", low=1)
    average_degree: float = _key(10.0, "expected number of neighbours", above=0.0)
    mixing: float = _key(
        0.2, "share of the edges whose ends are drawn from all nodes", low=0.0, high=1.0
    )
    num_features: int = _key(200, "feature columns (words)", low=1)
    words_per_node: int = _key(15, "words drawn for each node", low=1)
    topic_share: float = _key(
        0.4, "share of a node's words that come from its block's own words", low=0.0, high=1.0
    )
    seed: int = _key(0, "seed of the graph, apart from the run's seed", low=0)


@dataclass(frozen=True)
class DataConfig(_Section):
    """``data``: where the attributed graph comes from."""

    kind: str = _key(
        "synthetic",
        "planetoid: ind.<name>.* files; wiki: graph.txt, group.txt, tfidf.txt; npz: one npz file; "
        "edge_list: CSV, TSV or blank-separated text; dgl: a set of dgl.data; synthetic",
        choices=("planetoid", "wiki", "npz", "edge_list", "dgl", "synthetic"),
    )
    root: str | None = _key(
        None, "folder that relative data paths start from; null: $USER_DGL_DATA, else this folder"
    )
    name: str | None = _key(None, "planetoid: cora, citeseer, pubmed; dgl: a class of dgl.data")
    path: str | None = _key(
        None, "planetoid, wiki: folder; npz: file; dgl: folder for its raw files"
    )
    edges: str | None = _key(None, "edge_list: file of edges")
    features: str | None = _key(None, "edge_list: file of node features (csv, tsv, txt, npy, npz)")
    labels: str | None = _key(None, "edge_list: file of labels, read for scores only")
    largest_component: bool = _key(False, "keep only the largest connected component")
    noise: NoiseConfig = _section(NoiseConfig, "noise on the graph")
    synthetic: SyntheticConfig = _section(SyntheticConfig, "the attributed block model")


@dataclass(frozen=True)
class FeaturesConfig(_Section):
    """``features``: applied in this order; all of it keeps sparse features sparse."""

    tf_idf: bool = _key(False, "multiply column j by log(nodes / nodes with a non-zero in j)")
    max_abs_scale: bool = _key(
        False,
        "divide each column by its largest absolute value: min-max scaling for non-negative columns"
        " that hold a zero, without making them dense",
    )
    row_norm: str = _key("none", "scale each row to norm 1", choices=("none", "l1", "l2"))


@dataclass(frozen=True)
class CandidatesConfig(_Section):
    """``structure.candidates``: pairs that A' may use beside the observed edges.

    Counts are pairs drawn a node; pairs already there are merged.
    """

    feature_knn: int = _key(0, "nearest nodes by cosine of the features", low=0)
    k_hop: int = _key(0, "ends of random walks of length 2 to `hops`", low=0)
    hops: int = _key(2, "longest walk for k_hop", low=2)
    uniform: int = _key(0, "uniformly drawn nodes", low=0)
    same_cluster: int = _key(
        0, "nodes drawn from the same cluster; needs refresh_every, as clusters come first", low=0
    )
    refresh_every: int = _key(
        0,
        "every so many epochs the lighter half of the candidates gives way to newly drawn k_hop, "
        "uniform and same_cluster pairs; 0: never",
        low=0,
    )
    initial_weight: float = _key(1.0, "weight in A' of a new candidate", above=0.0)


@dataclass(frozen=True)
class StructureConfig(_Section):
    """``structure``: the learned sparse graph A'."""

    learnable: bool = _key(
        True, "false: A' is the observed graph at weight 1, without candidates or prior"
    )
    engine: str = _key(
        "auto", "kernels: csr (torch sparse) or dgl; auto: csr", choices=("auto", "dgl", "csr")
    )
    prior: str = _key(
        "uniform",
        "first weight of the observed pairs: uniform: 1; feature_cosine: cosine of the features "
        "over its mean, kept in [0.05, 4], to the power prior_power",
        choices=("uniform", "feature_cosine"),
    )
    prior_power: float = _key(0.5, "power of the feature_cosine prior", above=0.0)
    candidates: CandidatesConfig = _section(CandidatesConfig, "pairs beside the observed edges")


@dataclass(frozen=True)
class ModelConfig(_Section):
    """``model``: the encoder that USER supports, and the assignment head."""

    kind: str = _key("user", "what is trained", choices=("user",))
    encoder: str = _key(
        "gcn",
        "gcn: the authors' code (ReLU and BatchNorm in every layer); gae: the paper's text (last "
        "layer linear, no BatchNorm)",
        choices=("gcn", "gae"),
    )
    num_clusters: int | None = _key(None, "clusters to find (required)", low=2)
    hidden_feats: tuple[int, ...] = _key((256,), "width of each encoder layer")
    head: str = _key(
        "graph_conv",
        "graph_conv: Y = softmax(S H W + b), the authors' code; linear: Y = softmax(H W + b)",
        choices=("graph_conv", "linear"),
    )
    dropout: float = _key(0.5, "dropout between the encoder's layers and before the head", low=0.0)
    logit_dropout: float = _key(0.5, "dropout on the logits of Y, as in the authors' code", low=0.0)
    observed_mix: float = _key(
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


@dataclass(frozen=True)
class LossConfig(_Section):
    """``loss``: weights of the terms; a term of weight 0 is not computed."""

    npsi_weight: float = _key(1.0, "weight of NPSI(A', Y)", low=0.0)
    npsi_observed: bool = _key(
        True, "add NPSI(A, Y) at the same weight: the authors' code, not the paper's text"
    )
    davies_bouldin_weight: float = _key(0.0, "the paper's beta, weight of DBI(X, Y)", low=0.0)
    davies_bouldin_form: str = _key(
        "textbook",
        "textbook: the paper's formula, memberships as weights; soft_features: the authors' code, "
        "which multiplies features by the membership before it takes distances",
        choices=("textbook", "soft_features"),
    )
    observed_edge_weight: float = _key(
        0.0, "the authors' alpha, weight of the tie between A' and the observed edges", low=0.0
    )
    observed_edge_form: str = _key(
        "mean_square",
        "mean_square: mean over observed pairs of (A' - 1)^2; frobenius: ||A' o A - A||_F, the "
        "authors' code (observed weights hardly move under it)",
        choices=("mean_square", "frobenius"),
    )
    reconstruction_weight: float = _key(
        0.0, "the paper's alpha, weight of ||sigmoid(H H^T) - A||_F^2", low=0.0
    )
    reconstruction_samples: int = _key(
        5, "pairs sampled a node for the non-edges of the reconstruction", low=1
    )


@dataclass(frozen=True)
class TrainConfig(_Section):
    """``train``: the optimisation."""

    mode: str = _key("full", "full: every step sees the whole graph", choices=("full",))
    epochs: int = _key(400, "epochs of one restart", low=1)
    lr: float = _key(0.01, "Adam's learning rate", above=0.0)
    structure_lr: float | None = _key(None, "learning rate of A'; null: lr", above=0.0)
    weight_decay: float = _key(5e-4, "Adam's L2 penalty on the network, not on A'", low=0.0)
    plateau_factor: float = _key(
        0.3,
        "factor on the learning rate when the loss stops falling; 1: never",
        above=0.0,
        high=1.0,
    )
    plateau_patience: int = _key(10, "epochs without improvement before that", low=0)
    restarts: int = _key(1, "trainings from new seeds; the lowest final loss wins", low=1)
    resume: bool = _key(False, "go on from the checkpoint in output_dir")
    log_every: int = _key(1, "epochs between log lines", low=1)
    checkpoint_every: int = _key(100, "epochs between checkpoints", low=1)


@dataclass(frozen=True)
class EvalConfig(_Section):
    """``eval``: what is computed after training."""

    floors: bool = _key(False, "also run the training-free features_kmeans and smooth_kmeans")


@dataclass(frozen=True)
class Config(_Section):
    """All settings of a run."""

    seed: int = _key(0, "seed of everything random in training", low=0, high=2**31 - 1)
    task: str = _key("clustering", "what the run is for", choices=("clustering",))
    output_dir: str | None = _key(None, "run directory; null: outputs/<config>/seed<seed>")
    overwrite: bool = _key(False, "replace the run in output_dir")
    device: str = _key(
        "auto",
        "auto: the CPU; cuda: one GPU, for which the csr engine serves",
        choices=("auto", "cpu", "cuda"),
    )
    data: DataConfig = _section(DataConfig, "the attributed graph")
    features: FeaturesConfig = _section(FeaturesConfig, "preparation of the features")
    structure: StructureConfig = _section(StructureConfig, "the learned graph A'")
    model: ModelConfig = _section(ModelConfig, "encoder and head")
    loss: LossConfig = _section(LossConfig, "loss terms")
    train: TrainConfig = _section(TrainConfig, "optimisation")
    eval: EvalConfig = _section(EvalConfig, "after training")

    def __post_init__(self):
        super().__post_init__()
        noise, candidates = self.data.noise, self.structure.candidates
        if noise.kind == "file" and noise.file is None:
            raise InputError("data.noise.kind=file needs data.noise.file=FILE.npz")
        if candidates.same_cluster and not candidates.refresh_every:
            raise InputError(
                "structure.candidates.same_cluster needs structure.candidates.refresh_every above "
                "0: clusters exist only after some epochs"
            )
        if self.device == "cuda" and self.structure.engine == "dgl":
            raise InputError("structure.engine=dgl runs on the CPU: use device=cpu or engine=csr")

    def inert_settings(self) -> list[str]:
        """Settings away from their default that have no effect in this run, one line each."""
        data, structure, loss = self.data, self.structure, self.loss
        candidates = structure.candidates
        drawn = candidates.k_hop or candidates.uniform or candidates.same_cluster
        some_candidates = drawn or candidates.feature_knn
        dead = (
            (data.noise.kind != "random_flip", "data.noise.kind", "data.noise.rate"),
            (data.noise.kind != "random_flip", "data.noise.kind", "data.noise.seed"),
            (data.noise.kind != "file", "data.noise.kind", "data.noise.file"),
            (data.kind != "synthetic", "data.kind", "data.synthetic"),
            (data.kind not in ("planetoid", "dgl"), "data.kind", "data.name"),
            (data.kind in ("edge_list", "synthetic"), "data.kind", "data.path"),
            (data.kind != "edge_list", "data.kind", "data.edges"),
            (data.kind != "edge_list", "data.kind", "data.features"),
            (data.kind != "edge_list", "data.kind", "data.labels"),
            (not structure.learnable, "structure.learnable", "structure.prior"),
            (not structure.learnable, "structure.learnable", "structure.candidates"),
            (not structure.learnable, "structure.learnable", "train.structure_lr"),
            (not structure.learnable, "structure.learnable", "loss.observed_edge_weight"),
            (structure.prior == "uniform", "structure.prior", "structure.prior_power"),
            (not candidates.k_hop, "structure.candidates.k_hop", "structure.candidates.hops"),
            (
                not some_candidates,
                "structure.candidates.feature_knn",
                "structure.candidates.initial_weight",
            ),
            (not drawn, "structure.candidates.k_hop", "structure.candidates.refresh_every"),
            (not loss.npsi_weight, "loss.npsi_weight", "loss.npsi_observed"),
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
                not loss.reconstruction_weight,
                "loss.reconstruction_weight",
                "loss.reconstruction_samples",
            ),
        )
        default = Config()
        lines = []
        for is_dead, cause, key in dead:
            value = _get(self, key)
            if is_dead and value != _get(default, key):
                shown = key if dataclasses.is_dataclass(value) else f"{key}={_shown(value)}"
                lines.append(f"{shown} has no effect with {cause}={_shown(_get(self, cause))}")
        return lines


def _get(config: Any, key: str) -> Any:
    for name in key.split("."):
        config = getattr(config, name)
    return config


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def load_config(path: str | os.PathLike | None, overrides: typing.Sequence[str] = ()) -> Config:
    """Read a YAML file and apply overrides.

    Parameters
    ----------
    path : path or None
        YAML file; None starts from the defaults.
    overrides : sequence of str
        ``section.key=value``, the value in YAML.

    Raises
    ------
    InputError
        File unreadable, not YAML, unknown key, wrong type, value out of range.
    """
    plain: dict[str, Any] = {}
    where: dict[tuple[str, ...], str] = {}
    if path is not None:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise InputError(f"{path}:{line}: not UTF-8 text (byte {error.start})") from None
        plain = _parse_yaml(text, str(path), where)
    for override in overrides:
        name, equals, value = override.partition("=")
        keys = tuple(name.split("."))
        if not equals or not all(keys):
            raise InputError(f"{override!r}: expected section.key=value")
        source = override if override.isprintable() else repr(override)
        node = plain
        for depth, key in enumerate(keys[:-1], start=1):
            if node.get(key) is None:
                node[key] = {}
            node = node[key]
            if not isinstance(node, dict):  # a bad value below must not vanish under the override
                at = _place(where, keys[:depth])
                raise InputError(f"{at}{'.'.join(keys[:depth])}={node!r} holds no keys: {source}")
        node[keys[-1]] = _parse_yaml(value, source, None)
        where = {known: at for known, at in where.items() if known[: len(keys)] != keys}
        where[keys] = source
    return _build(Config, plain, (), where)


def to_plain(config: Any) -> dict[str, Any]:
    """The settings as plain dicts, lists and scalars, in the order of the dataclasses."""
    plain = {}
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if dataclasses.is_dataclass(value):
            value = to_plain(value)
        plain[item.name] = list(value) if isinstance(value, tuple) else value
    return plain


def to_yaml(config: Config) -> str:
    """The resolved settings as YAML that `load_config` reads back to the same settings.

    >>> load_config(None, ["train.lr=1e-3"]).train.lr
    0.001
    >>> "lr: 0.001" in to_yaml(load_config(None, ["train.lr=1e-3"]))
    True
    """
    return yaml.dump(to_plain(config), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


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


# ---------------------------------------------------------------------------------------------
# YAML


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2's core schema."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first
    )


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes what `_Loader` would read as another type."""


_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
_Dumper.add_representer(
    float,
    lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:float", repr(value)),
)
# PyYAML writes these line breaks as they are outside double quotes and reads a space.
_Dumper.add_representer(
    str,
    lambda dumper, value: dumper.represent_scalar(
        "tag:yaml.org,2002:str",
        value,
        style='"' if re.search("[\x85\u2028\u2029]", value) else None,
    ),
)


def _parse_yaml(text: str, source: str, where: dict | None) -> Any:
    """Plain Python of a YAML text; ``where`` gets ``file:line`` of each key path."""
    lines = where is not None
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if not lines:
            return None if node is None else _to_plain(loader, node, (), source, {})
        if node is None or node.tag == "tag:yaml.org,2002:null":
            return {}
        if not isinstance(node, yaml.MappingNode):
            at = f"{source}:{node.start_mark.line + 1}"
            raise InputError(f"{at}: expected `key: value` lines")
        return _to_plain(loader, node, (), source, where)
    except yaml.reader.ReaderError as error:
        at = f"{source}:{text.count(chr(10), 0, error.position) + 1}" if lines else source
        raise InputError(f"{at}: not YAML: character #x{error.character:04x}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"{source}:{mark.line + 1}" if mark and lines else source
        said = [getattr(error, "context", None), getattr(error, "problem", None)]
        problem = ", ".join(part for part in said if part) or str(error).splitlines()[0]
        raise InputError(f"{at}: not YAML: {problem}") from None
    except RecursionError:
        raise InputError(f"{source}: not a usable YAML value: nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()


def _to_plain(loader, node, path, source, where, seen=None):
    seen = set() if seen is None else seen
    at = f"{source}:{node.start_mark.line + 1}"
    if id(node) in seen:
        raise InputError(f"{at}: YAML aliases are not allowed here: write the value out")
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        plain = node.style is None
        if node.tag != loader.resolve(yaml.ScalarNode, node.value, (plain, not plain)):
            raise InputError(f"{at}: YAML tags are not allowed here ({node.tag})")
        try:
            return loader.construct_object(node)
        except ValueError:  # Python reads no number of thousands of digits
            raise InputError(f"{at}: not a usable number: {node.value[:20]}...") from None
    if node.tag != loader.resolve(type(node), node.value, True):
        raise InputError(f"{at}: YAML tags are not allowed here ({node.tag})")
    if isinstance(node, yaml.SequenceNode):
        return [_to_plain(loader, item, path, source, where, seen) for item in node.value]
    result = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise InputError(f"{at}: expected a plain key")
        key = str(key_node.value)
        line = f"{source}:{key_node.start_mark.line + 1}"
        if key in result:
            raise InputError(f"{line}: {key!r} is given twice: keep one")
        where[(*path, key)] = line
        result[key] = _to_plain(loader, value_node, (*path, key), source, where, seen)
    return result


# ---------------------------------------------------------------------------------------------
# From plain values to dataclasses


def _place(where, full):
    """``file:line: `` or ``override: `` of a key path: its own, what holds it or what it holds."""
    for length in range(len(full), 0, -1):
        if full[:length] in where:
            return f"{where[full[:length]]}: "
    # An override names only the leaf: of trian.lr=1 it is trian that is unknown.
    return next((f"{at}: " for known, at in where.items() if known[: len(full)] == full), "")


def _build(cls, plain, path, where):
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in plain.items():
        full = (*path, key)
        at = _place(where, full)
        name = ".".join(full)
        if key not in hints:
            raise InputError(f"{at}unknown key {name!r}{_suggestion(full)}")
        if dataclasses.is_dataclass(hints[key]):
            if value is None:
                continue
            if not isinstance(value, dict):
                raise InputError(f"{at}{name} is a section: expected keys in it, got {value!r}")
            values[key] = _build(hints[key], value, full, where)
            continue
        metadata = next(f.metadata for f in dataclasses.fields(cls) if f.name == key)
        try:
            values[key] = _checked(value, hints[key], metadata, name)
        except InputError as error:
            raise InputError(f"{at}{error}") from None
    try:
        return cls(**values)
    except InputError as error:  # checks across fields
        message = ".".join([*path, str(error)])
        at = _place(where, tuple(re.match(r"[\w.]*", message)[0].split(".")))
        raise InputError(f"{at}{message}") from None


def _suggestion(full: tuple[str, ...]) -> str:
    parents_and_leaves = {k: k.rpartition(".")[::2] for k in _all_names(Config)}
    if ".".join(full) in parents_and_leaves:  # a key with dots in it
        nested = "..."
        for part in reversed(".".join(full).split(".")):
            nested = f"{{{part}: {nested}}}"
        return f": in YAML write {nested[1:-1]}"
    section = ".".join(full[:-1])
    siblings = {leaf: k for k, (parent, leaf) in parents_and_leaves.items() if parent == section}
    close = [k for k, (_, leaf) in parents_and_leaves.items() if leaf == full[-1]]
    close += [siblings[leaf] for leaf in difflib.get_close_matches(full[-1], siblings, n=1)]
    if not close:
        leaves = {leaf for _, leaf in parents_and_leaves.values()}
        match = difflib.get_close_matches(full[-1], leaves, n=1, cutoff=0.7)
        close = [k for k, (_, leaf) in parents_and_leaves.items() if match == [leaf]]
    if not close and not section:  # noise_rate for data.noise.rate
        close = difflib.get_close_matches(full[-1], parents_and_leaves, n=1, cutoff=0.7)
    if close:
        return f": did you mean {' or '.join(close[:3])}?"
    return f": known here are {', '.join(siblings)}" if siblings else ""


def _all_names(cls, prefix=""):
    for key, hint in typing.get_type_hints(cls).items():
        yield prefix + key
        if dataclasses.is_dataclass(hint):
            yield from _all_names(hint, f"{prefix}{key}.")


def _checked(value, hint, metadata, name):
    """``value`` as the type of ``hint``; raises `InputError` with what was expected."""
    optional = isinstance(hint, types.UnionType) and type(None) in typing.get_args(hint)
    if optional:
        if value is None:
            return None
        hint = next(a for a in typing.get_args(hint) if a is not type(None))
    value = _typed(value, hint, name, optional)
    choices = metadata.get("choices")
    if choices and value not in choices:
        close = difflib.get_close_matches(str(value), choices, n=1)
        hint_text = f" (did you mean {close[0]}?)" if close else ""
        raise InputError(f"{name}: expected one of {', '.join(choices)}, got {value!r}{hint_text}")
    for bound, wrong, words in (
        (metadata.get("low"), lambda v, b: v < b, "at least"),
        (metadata.get("high"), lambda v, b: v > b, "at most"),
        (metadata.get("above"), lambda v, b: v <= b, "above"),
    ):
        if bound is not None and wrong(value, bound):
            raise InputError(f"{name}: expected {words} {bound}, got {value}")
    return value


def _typed(value, hint, name, optional=False):
    null = " or null" if optional else ""
    # Real, so that NumPy's numbers count too.
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if isinstance(value, str) and value in ("None", "none") and optional and hint is not str:
        raise InputError(f"{name}: {value} is text in YAML: write null")
    if hint is bool:
        if isinstance(value, bool):
            return value
        raise InputError(f"{name}: expected true or false, got {value!r}")
    if hint is int:
        if is_number and math.isfinite(_float(value, name)) and int(value) == value:
            return int(value)
        raise InputError(f"{name}: expected a whole number{null}, got {value!r}")
    if hint is float:
        if not is_number:
            raise InputError(f"{name}: expected a number{null}, got {value!r}")
        number = _float(value, name)
        if not math.isfinite(number):
            raise InputError(f"{name}: expected a finite number, got {value}")
        return number
    if hint is str:
        if optional and value == "None":
            raise InputError(f"{name}: None is text in YAML: write null")
        if is_number or isinstance(value, bool) or value is None:
            raise InputError(f"{name}: expected text{null}, got {value!r} (quote it?)")
        if not isinstance(value, str):
            raise InputError(f"{name}: expected text{null}, got {value!r}")
        if "\0" in value:
            raise InputError(f"{name}: holds a NUL character")
        return value
    if typing.get_origin(hint) is tuple:
        element = typing.get_args(hint)[0]
        items = value if isinstance(value, (list, tuple)) else [value]
        return tuple(_typed(item, element, name) for item in items)
    raise AssertionError(f"{name}: no reader for {hint}")


def _float(value, name):
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name}: expected a number below 1e308, got a longer one") from None
