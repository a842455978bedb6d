"""Ranges, choices and types of settings, from a file and from Python."""

import dataclasses
import math
import typing

import numpy as np
import pytest

from configs import LEAVES, value_of
from user_dgl.config import (
    Config,
    DataConfig,
    FeaturesConfig,
    ModelConfig,
    NoiseConfig,
    StructureConfig,
    TrainConfig,
    load_config,
)
from user_dgl.errors import InputError

OUT_OF_RANGE = [
    ("seed", "-1", "at least 0"),
    ("seed", str(2**31), "at most 2147483647"),
    ("data.noise.rate", "-0.1", "at least 0"),
    ("data.noise.seed", "-1", "at least 0"),
    ("data.synthetic.num_nodes", "1", "at least 2"),
    ("data.synthetic.mixing", "1.5", "at most 1"),
    ("data.synthetic.average_degree", "0", "above 0"),
    ("structure.prior_power", "0", "above 0"),
    ("structure.candidates.feature_knn", "-1", "at least 0"),
    ("structure.candidates.hops", "1", "at least 2"),
    ("structure.candidates.initial_weight", "0", "above 0"),
    ("model.num_clusters", "1", "at least 2"),
    ("model.hidden_feats", "[]", "1 or more"),
    ("model.hidden_feats", "[16, 0]", "1 or more"),
    ("model.dropout", "1", "below 1"),
    ("model.dropout", "-0.5", "at least 0"),
    ("model.logit_dropout", "1.0", "below 1"),
    ("model.observed_mix", "1.01", "at most 1"),
    ("loss.npsi_weight", "-1", "at least 0"),
    ("loss.davies_bouldin_weight", "-1e-9", "at least 0"),
    ("loss.reconstruction_samples", "0", "at least 1"),
    ("links.validation_share", "-0.1", "at least 0"),
    ("links.test_share", "0.95", "at most 0.9"),
    ("train.epochs", "0", "at least 1"),
    ("train.lr", "0", "above 0"),
    ("train.lr", "-1e-3", "above 0"),
    ("train.lr", "1e31", "at most 1e+30"),
    ("train.structure_lr", "1e31", "at most 1e+30"),
    ("baseline.lr", "1e31", "at most 1e+30"),
    ("data.noise.attack.surrogate_lr", "1e31", "at most 1e+30"),
    ("train.structure_lr", "-0.1", "at least 0"),
    ("train.plateau_factor", "0", "above 0"),
    ("train.plateau_factor", "1.1", "at most 1"),
    ("train.plateau_patience", "-1", "at least 0"),
    ("train.restarts", "0", "at least 1"),
    ("train.log_every", "0", "at least 1"),
    ("train.checkpoint_every", "0", "at least 1"),
]


@pytest.mark.parametrize(("key", "value", "words"), OUT_OF_RANGE)
def test_out_of_range(refused, key, value, words):
    message = refused(None, f"{key}={value}")
    assert message.startswith(f"{key}={value}: {key}: expected ")
    assert words in message
    *sections, leaf = key.split(".")
    text = "".join(f"{'  ' * depth}{name}:\n" for depth, name in enumerate(sections))
    text += f"{'  ' * len(sections)}{leaf}: {value}\n"
    assert refused(text).startswith(f"some.yaml:{len(sections) + 1}: {key}: expected ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", "0"),
        ("seed", str(2**31 - 1)),
        ("data.noise.rate", "0"),
        ("data.noise.rate", "2.5"),
        ("data.synthetic.mixing", "1"),
        ("model.dropout", "0"),
        ("model.dropout", "0.999"),
        ("model.num_clusters", "2"),
        ("train.epochs", "1"),
        ("train.plateau_factor", "1"),
        ("loss.npsi_weight", "0"),
        ("model.hidden_feats", "[1]"),
    ],
)
def test_ends_of_ranges(key, value):
    assert value_of(load_config(None, [f"{key}={value}"]), key) in (float(value.strip("[]")), (1,))


@pytest.mark.parametrize(
    ("key", "value", "guess"),
    [
        ("data.noise.kind", "random-flip", "random_flip"),
        ("data.kind", "Planetoid", "planetoid"),
        ("device", "gpu", "cpu"),
        ("structure.engine", "csr_", "csr"),
        ("features.row_norm", "L2", None),
        ("model.encoder", "gcnn", "gcn"),
        ("loss.observed_edge_form", "norm", None),
    ],
)
def test_choices(refused, key, value, guess):
    message = refused(None, f"{key}={value}")
    assert f"{key}: expected one of " in message
    assert message.endswith(f"got {value!r} (did you mean {guess}?)" if guess else repr(value))


@pytest.mark.parametrize(("cls", "item", "hint"), LEAVES)
def test_each_key(cls, item, hint):
    """Documented, with a default, bounds and choices that the class itself enforces."""
    meta, name = item.metadata, item.name
    assert meta["doc"].strip()
    assert "\n" not in meta["doc"]
    assert getattr(cls(), name) == item.default
    assert cls(**{name: item.default}) == cls()
    whole = int in (hint, *typing.get_args(hint)) and typing.get_origin(hint) is not tuple
    named = typing.get_origin(hint) is dict
    bad = [object(), {"a": object() if named else 1}, float("nan"), float("inf"), 10**400]
    if named:
        assert getattr(cls(**{name: {"toy": meta["low"]}}), name) == {"toy": meta["low"]}
        bad.append({"toy": meta["low"] - 1})
    elif meta["low"] is not None:
        assert getattr(cls(**{name: meta["low"]}), name) == meta["low"]
        bad.append(meta["low"] - 1 if whole else math.nextafter(meta["low"], -math.inf))
    if meta["high"] is not None:
        assert getattr(cls(**{name: meta["high"]}), name) == meta["high"]
        bad.append(meta["high"] + 1 if whole else math.nextafter(meta["high"], math.inf))
    if meta["above"] is not None:
        bad.append(meta["above"])
        assert getattr(cls(**{name: math.nextafter(meta["above"], 1)}), name) > meta["above"]
    if meta["choices"]:
        assert item.default in (*meta["choices"], None)
        for choice in meta["choices"]:
            needs = {"file": "f.npz"} if (cls, choice) == (NoiseConfig, "file") else {}
            assert getattr(cls(**{name: choice}, **needs), name) == choice
        bad += ["no such choice", next(iter(meta["choices"])) + " "]
    for part in typing.get_args(hint):
        literal = typing.get_origin(part) is typing.Literal
        for word in typing.get_args(part) if literal else ():
            assert getattr(cls(**{name: word}), name) == word
            bad.append(f"{word} ")
    if type(None) in typing.get_args(hint):
        assert getattr(cls(**{name: None}), name) is None
    else:
        bad.append(None)
    for value in bad:
        with pytest.raises(InputError, match=name):
            cls(**{name: value})


def test_every_section_is_documented():
    def sections(cls):
        for item in dataclasses.fields(cls):
            if dataclasses.is_dataclass(typing.get_type_hints(cls)[item.name]):
                assert item.metadata["doc"].strip()
                assert cls.__doc__.strip()
                yield from sections(typing.get_type_hints(cls)[item.name])
                yield item.name

    assert {"data", "noise", "train", "candidates"} <= set(sections(Config))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (
            "data:\n  noise:\n    kind: file\n",
            "some.yaml:3: data.noise.kind=file needs data.noise.file",
        ),
        (
            "structure:\n  candidates:\n    same_cluster: 2\n",
            "some.yaml:3: structure.candidates.same_cluster needs "
            "structure.candidates.refresh_every",
        ),
        (
            "device: cuda\nstructure:\n  engine: dgl\n",
            "some.yaml:3: structure.engine=dgl runs on the CPU",
        ),
        ("model:\n  dropout: 1.0\n", "some.yaml:2: model.dropout: expected below 1"),
        ("model:\n\n  hidden_feats: [4, 0]\n", "some.yaml:3: model.hidden_feats: expected widths"),
    ],
)
def test_checks_across_fields(refused, text, start):
    assert refused(text).startswith(start)


def test_checks_across_fields_see_the_overrides(refused, write):
    path = write("device: cuda\n")
    assert load_config(path, ["structure.engine=csr"]).device == "cuda"
    message = refused("device: cuda\n", "structure.engine=dgl")
    assert message.startswith("structure.engine=dgl: structure.engine=dgl runs on the CPU")
    path = write("data: {noise: {kind: file}}\n")
    assert load_config(path, ["data.noise.file=x.npz"]).data.noise.file == "x.npz"
    path = write("structure: {candidates: {same_cluster: 2}}\n")
    assert load_config(path, ["structure.candidates.refresh_every=5"])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Config(seed=-1), "^seed: expected at least 0, got -1$"),
        (lambda: Config(seed=True), "^seed: expected a whole number"),
        (lambda: Config(seed="1"), "^seed: expected a whole number"),
        (lambda: Config(task="cluster"), "^task: expected one of clustering.*did you mean"),
        (lambda: Config(data={"kind": "npz"}), "^data: expected a DataConfig"),
        (lambda: Config(train=None), "^train: expected a TrainConfig"),
        (lambda: Config(model=TrainConfig()), "^model: expected a ModelConfig"),
        (lambda: TrainConfig(lr=float("nan")), "^lr: expected a finite number"),
        (lambda: TrainConfig(lr="1e-3"), "^lr: expected a number"),
        (lambda: ModelConfig(hidden_feats=()), "^hidden_feats: "),
        (lambda: ModelConfig(hidden_feats=(8, 0)), "^hidden_feats: "),
        (lambda: ModelConfig(hidden_feats=(8, 1.5)), "^hidden_feats: expected a whole number"),
        (lambda: ModelConfig(hidden_feats=(8, True)), "^hidden_feats: expected a whole number"),
        (lambda: ModelConfig(dropout=1), "^dropout: expected below 1"),
        (lambda: FeaturesConfig(max_abs_scale=1), "^max_abs_scale: expected true or false, got 1"),
        (lambda: DataConfig(header="yes"), "^header: expected true or false, auto, got 'yes'"),
        (lambda: DataConfig(kind=None), "^kind: expected text, got null$"),
        (lambda: DataConfig(name=3), "^name: expected text or null, got 3"),
        (lambda: DataConfig(name="a\0b"), "^name: holds a NUL character$"),
        (lambda: NoiseConfig(seed="None"), "^seed: None is text in YAML: write null$"),
        (lambda: Config(data=DataConfig(noise=NoiseConfig(kind="file"))), "needs data.noise.file"),
        (lambda: dataclasses.replace(Config(), seed=-1), "^seed: "),
        (
            lambda: Config(device="cuda", structure=StructureConfig(engine="dgl")),
            "^structure.engine=dgl runs on the CPU",
        ),
    ],
)
def test_classes_check_like_the_file(make, match):
    with pytest.raises(InputError, match=match):
        make()


def test_values_become_plain_python():
    config = Config(
        seed=np.int64(3),
        train=TrainConfig(lr=1, weight_decay=np.float32(0.5)),
        model=ModelConfig(hidden_feats=[np.int32(8), 4.0], num_clusters=np.uint8(4)),
    )
    assert type(config.seed) is int
    assert (config.train.lr, type(config.train.lr)) == (1.0, float)
    assert type(config.train.weight_decay) is float
    assert config.model.hidden_feats == (8, 4)
    assert {type(width) for width in config.model.hidden_feats} == {int}
    assert type(config.model.num_clusters) is int


def test_input_error_is_a_value_error():
    with pytest.raises(ValueError, match="seed"):
        Config(seed=-1)


def test_frozen():
    config = Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.data.noise.rate = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        del config.train
    widths = [8, 4]
    model = ModelConfig(hidden_feats=widths)
    widths.append(2)
    assert model.hidden_feats == (8, 4)
    assert len({config, Config(), Config(seed=1)}) == 2
