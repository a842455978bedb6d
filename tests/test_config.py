"""Settings: every surprise of YAML is caught, with one line that says where and what."""

import dataclasses
import math
import os
import random
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest

from user_dgl.config import (
    CandidatesConfig,
    Config,
    DataConfig,
    FeaturesConfig,
    LossConfig,
    ModelConfig,
    NoiseConfig,
    StructureConfig,
    SyntheticConfig,
    TrainConfig,
    config_name,
    default_config,
    load_config,
    to_yaml,
)
from user_dgl.config.schema import to_plain
from user_dgl.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = sorted((ROOT / "configs").rglob("*.yaml"))


def _leaves(cls=Config, prefix=""):
    """(dotted name, section class, field, type) of every key that is not a section."""
    hints = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        hint = hints[item.name]
        if dataclasses.is_dataclass(hint):
            yield from _leaves(hint, f"{prefix}{item.name}.")
        else:
            yield pytest.param(cls, item, hint, id=prefix + item.name)


LEAVES = list(_leaves())


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "some.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def refused(write):
    """The message that a file and overrides are refused with, less the folder it lies in."""

    def refused(text, *overrides):
        path = None if text is None else write(text)
        with pytest.raises(InputError) as caught:
            load_config(path, overrides)
        message = str(caught.value)
        assert len(message.splitlines()) == 1
        assert message.isprintable()
        return message.replace(f"{path.parent}{os.sep}", "") if path else message

    return refused


def _value(config, name):
    for key in name.split("."):
        config = getattr(config, key)
    return config


# --------------------------------------------------------------------------------- numbers, text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-3", 1e-3),
        ("1E-3", 1e-3),
        ("1e+2", 100.0),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("2.", 2.0),
        ("+0.25", 0.25),
        ("3", 3.0),
        ("5e-324", 5e-324),
    ],
)
def test_every_way_to_write_a_number(write, text, expected):
    # Plain PyYAML reads most of these as text.
    value = load_config(write(f"train:\n  lr: {text}\n")).train.lr
    assert value == expected
    assert type(value) is float
    assert load_config(None, [f"train.lr={text}"]).train.lr == expected


@pytest.mark.parametrize(
    "text", ["010", "-010", "0x10", "0o10", "1_000", "1:30", "1.5", ".nan", ".inf", "-.inf", "yes"]
)
def test_what_is_no_whole_number(refused, text):
    # Plain PyYAML reads 010 as 8, 0x10 as 16, 1_000 as 1000 and 1:30 as 90.
    assert refused(f"seed: {text}\n").startswith("some.yaml:1: seed: expected a whole number, got ")


@pytest.mark.parametrize("text", ["010.5", "1:30", "1_0.5", "1e", "e3", "yes", "'0.1'", "true", ""])
def test_what_is_no_number(refused, text):
    message = refused(f"train:\n  lr: {text}\n")
    assert message.startswith("some.yaml:2: train.lr: expected a number, got ")


@pytest.mark.parametrize("text", [".nan", ".NaN", ".inf", "-.inf", "+.INF", "1e400"])
def test_numbers_are_finite(refused, text):
    message = refused(f"# a\nloss:\n  npsi_weight: {text}\n")
    assert message.startswith("some.yaml:3: loss.npsi_weight: expected a finite number")


@pytest.mark.parametrize("key", ["seed", "train.lr"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_numbers_too_long_for_a_float(refused, key, digits):
    # float() raises OverflowError at the first, int() ValueError at the second.
    section, _, leaf = key.rpartition(".")
    text = "9" * digits
    message = refused(f"{section}:\n  {leaf}: {text}\n" if section else f"{leaf}: {text}\n")
    assert message.startswith(f"some.yaml:{2 if section else 1}: ")
    assert "number" in message


def test_whole_floats_are_whole_numbers(write):
    seed = load_config(write("seed: 2e3\n")).seed
    assert seed == 2000
    assert type(seed) is int
    exact = load_config(write(f"data: {{synthetic: {{seed: {2**53 + 1}}}}}\n"))
    assert exact.data.synthetic.seed == 2**53 + 1


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "y", "'true'", "1", "0", "null", "[]"])
def test_what_is_no_boolean(refused, text):
    message = refused(f"overwrite: {text}\n")
    assert message.startswith("some.yaml:1: overwrite: expected true or false, got ")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("TRUE", True)])
def test_booleans(write, text, value):
    assert load_config(write(f"overwrite: {text}\n")).overwrite is value


def test_a_boolean_is_no_number(refused):
    assert "seed: expected a whole number, got True" in refused("seed: true\n")
    assert "train.lr: expected a number, got False" in refused("train: {lr: false}\n")


@pytest.mark.parametrize("key", ["train.structure_lr", "data.noise.seed", "data.name"])
def test_none_is_not_null(refused, key):
    message = refused("seed: 1\n", f"{key}=None")
    assert message == f"{key}=None: {key}: None is text in YAML: write null"
    *sections, leaf = key.split(".")
    lines = [f"{'  ' * depth}{name}:" for depth, name in enumerate(sections)]
    lines.append(f"{'  ' * len(sections)}{leaf}: None")
    message = refused("\n".join(lines))
    assert message == f"some.yaml:{len(lines)}: {key}: None is text in YAML: write null"


@pytest.mark.parametrize("text", ["null", "~", "Null", "NULL", ""])
def test_null(write, text):
    assert load_config(write(f"data:\n  name: {text}\n")).data.name is None
    assert load_config(write("data:\n  name: cora\n"), [f"data.name={text}"]).data.name is None


@pytest.mark.parametrize("text", ["null", ""])
def test_null_where_there_must_be_a_value(refused, text):
    assert "data.kind: expected text, got None" in refused(f"data:\n  kind: {text}\n")
    assert "train.epochs: expected a whole number, got None" in refused(
        f"train:\n  epochs: {text}\n"
    )


@pytest.mark.parametrize("text", ["yes", "no", "1:30", "010", "2020-01-01", "1e", "0x10", "1_000"])
def test_text_that_plain_yaml_reads_as_something_else(write, text):
    assert load_config(write(f"data: {{name: {text}}}\n")).data.name == text


@pytest.mark.parametrize("text", ["10", "1e-3", "true", ".nan", "[a]", "{a: b}"])
def test_what_is_no_text(refused, text):
    assert "data.name: expected text or null, got " in refused(f"data: {{name: {text}}}\n")


# ------------------------------------------------------------------------------------------ YAML


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed: 1\n# two\nseed: 2\n", 3),
        ("train:\n  lr: 1\n  epochs: 5\n  'lr': 1\n", 4),
        ("train: {epochs: 1}\nseed: 2\ntrain: {lr: 1}\n", 3),
    ],
)
def test_repeated_keys(refused, text, line):
    message = refused(text)
    assert message.startswith(f"some.yaml:{line}: ")
    assert "is given twice" in message


BILLION_LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "data:\n  name: &n cora\n  path: *n\n",
        "data: &d\n  name: cora\nmodel: *d\n",
        "data: &d\n  noise: *d\n",
        "a: &a [*a]\n",
        BILLION_LAUGHS,
        "train: &t {epochs: 1}\nmodel: {<<: *t}\n",
    ],
    ids=["scalar", "mapping", "recursive", "recursive-list", "billion-laughs", "merge"],
)
def test_aliases(refused, text):
    message = refused(text)
    assert message.startswith("some.yaml:")
    assert "aliases are not allowed" in message


def test_merge_key_without_alias(refused):
    assert "some.yaml:1: unknown key '<<'" in refused("<<: {seed: 1}\n")


@pytest.mark.parametrize(
    "text",
    [
        "seed: !!python/object/apply:os.system [exit 1]\n",
        "seed: !!python/name:os.system\n",
        "seed: !!python/object:pathlib.Path {}\n",
        "model: {hidden_feats: !!python/tuple [3]}\n",
        "seed: !mine 3\n",
        # The standard tags bring back what the plain reading avoids: octal, sexagesimal, yes. Some
        # make PyYAML raise KeyError, IndexError or AttributeError.
        "seed: !!int 010\n",
        "seed: !!int 1:30\n",
        "seed: !!int ''\n",
        "overwrite: !!bool yes\n",
        "overwrite: !!bool maybe\n",
        "data: {name: !!timestamp x}\n",
        "data: {name: !!binary aGk=}\n",
        "data: {name: !!str 3}\n",
        "data: !!set {kind, name}\n",
        "model: {hidden_feats: !!omap [{a: 1}]}\n",
    ],
)
def test_tags(refused, text):
    message = refused(text)
    assert message.startswith("some.yaml:1: YAML tags are not allowed here")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed:\t3\n", 1),
        ("data:\n\tkind: npz\n", 2),
        ("data:\n  kind: npz\n\tname: x\n", 3),
        ("seed: 1\ntrain: {epochs: 5\n", 3),
        ("seed: 1\ndata: {name: 'a}\n", 3),
        ("seed: 1\n  lr: 2\n", 2),
        ("train:\n  epochs: 5\n lr: 2\n", 3),
        ("seed: 1\ndata: {name: a: b}\n", 2),
        ("seed: *none\n", 1),
        ("seed: 1\n---\nseed: 2\n", 2),
        ("seed: 1\n...\nseed: 2\n", 3),
        ("seed: 1\n# \x00\n", 2),
        ("a: 1\nb: \x07\n", 2),
        ("%YAML 3.0\n---\nseed: 1\n", 1),
    ],
)
def test_not_yaml(refused, text, line):
    assert refused(text).startswith(f"some.yaml:{line}: not YAML: ")


@pytest.mark.parametrize(
    ("text", "line"), [("- seed\n", 1), ("hello\n", 1), ("\n[1]\n", 2), ("# x\n\n3\n", 3)]
)
def test_not_a_mapping(refused, text, line):
    assert refused(text) == f"some.yaml:{line}: expected `key: value` lines"


@pytest.mark.parametrize("text", ["? [a, b]\n: 1\n", "{a: 1}: 2\n"])
def test_keys_that_are_no_words(refused, text):
    assert refused(text) == "some.yaml:1: expected a plain key"


@pytest.mark.parametrize("key", ["1", "true", "null", "'a b'", '"a\\nb"'])
def test_odd_keys_are_unknown(refused, key):
    assert "some.yaml:1: unknown key " in refused(f"{key}: 1\n")


@pytest.mark.parametrize("text", ["[" * 20_000, "{a: " * 5000, "a:\n" + "- " * 20_000 + "x\n"])
def test_deep_nesting(refused, text):
    assert refused(text) == "some.yaml: not a usable YAML value: nested too deeply"


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "{}\n", "null\n"])
def test_empty_file(write, text):
    assert load_config(write(text)) == Config()


def test_byte_order_mark_and_line_ends(write):
    config = load_config(write(b"\xef\xbb\xbfseed: 3\r\ntrain:\r\n  epochs: 7\r\n"))
    assert (config.seed, config.train.epochs) == (3, 7)


def test_byte_order_mark_does_not_move_the_line(refused):
    assert refused(b"\xef\xbb\xbf# x\r\nsead: 3\r\n").startswith("some.yaml:2: unknown key 'sead'")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"seed: 1\n# caf\xe9\n", 2),
        ("seed: 1\n".encode("utf-16"), 1),
        (b"data:\n\n  name: \xed\xa0\x80\n", 3),
    ],
    ids=["latin-1", "utf-16", "surrogate"],
)
def test_not_utf8(refused, data, line):
    assert refused(data).startswith(f"some.yaml:{line}: not UTF-8 text")


def test_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path, tmp_path / "none.yaml", tmp_path / "none.yaml" / "x.yaml"):
        with pytest.raises(InputError) as caught:
            load_config(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: ")
        assert len(message.splitlines()) == 1
    with pytest.raises(InputError, match="Is a directory"):
        load_config(str(tmp_path))


# ---------------------------------------------------------------------------------- unknown keys


@pytest.mark.parametrize(
    ("text", "line", "key", "suggestion"),
    [
        ("seed: 1\nlr: 0.1\n", 2, "lr", "train.lr or baseline.lr"),
        ("restarts: 3\n", 1, "restarts", "train.restarts"),
        ("sead: 1\n", 1, "sead", "seed"),
        ("\ntrian:\n  lr: 1\n", 2, "trian", "train"),
        ("modle: {hidden_feats: 3}\n", 1, "modle", "model"),
        ("train:\n  epohcs: 1\n", 2, "train.epohcs", "train.epochs"),
        ("data:\n  noise:\n    rat: 1\n", 3, "data.noise.rat", "data.noise.rate"),
        ("train: {dropout: 0.1}\n", 1, "train.dropout", "model.dropout"),
        ("model: {k_hop: 1}\n", 1, "model.k_hop", "structure.candidates.k_hop"),
        (
            "train: {hiden_feats: 1}\n",
            1,
            "train.hiden_feats",
            "model.hidden_feats or baseline.hidden_feats",
        ),
        ("noise_rate: 1\n", 1, "noise_rate", "data.noise.rate"),
        ("Seed: 1\n", 1, "Seed", "seed"),
    ],
)
def test_unknown_key_with_suggestion(refused, text, line, key, suggestion):
    message = refused(text)
    assert message == f"some.yaml:{line}: unknown key {key!r}: did you mean {suggestion}?"


def test_dotted_key_in_a_file(refused):
    message = refused("seed: 1\ndata.noise.rate: 0.1\n")
    assert message == (
        "some.yaml:2: unknown key 'data.noise.rate': in YAML write data: {noise: {rate: ...}}"
    )
    assert refused("data: {noise.rate: 0.1}\n").endswith("write data: {noise: {rate: ...}}")


def test_unknown_key_that_could_be_several(refused):
    message = refused("kind: user\n")
    assert "did you mean " in message
    assert "model.kind" in message
    assert "data.kind" in message


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("qqq: 1\n", [f.name for f in dataclasses.fields(Config)]),
        ("data: {noise: {qqq: 1}}\n", [f.name for f in dataclasses.fields(NoiseConfig)]),
    ],
)
def test_unknown_key_unlike_any(refused, text, known):
    message = refused(text)
    assert message.endswith(f"qqq': known here are {', '.join(known)}")


def test_unknown_key_in_an_override(refused):
    message = refused(None, "train.epochz=1")
    assert message == "train.epochz=1: unknown key 'train.epochz': did you mean train.epochs?"
    message = refused(None, "trian.lr=1")
    assert message == "trian.lr=1: unknown key 'trian': did you mean train?"


# ------------------------------------------------------------------------------------- overrides


def test_precedence(write):
    path = write("seed: 5\ntrain:\n  lr: 0.5\n  epochs: 9\n")
    assert load_config(path).train.lr == 0.5
    config = load_config(path, ["train.lr=0.25", "seed=6", "seed=7"])
    assert (config.seed, config.train.lr) == (7, 0.25)
    assert config.train.epochs == 9
    assert config.train.restarts == TrainConfig().restarts


def test_nested_override_keeps_its_neighbours(write):
    path = write("data:\n  name: a\n  noise:\n    kind: random_flip\n    rate: 0.1\n")
    noise = load_config(path, ["data.noise.rate=0.5"]).data.noise
    assert (noise.kind, noise.rate) == ("random_flip", 0.5)
    # A section that neither the file nor an earlier override mentions.
    assert load_config(path, ["structure.candidates.k_hop=3"]).structure.candidates.k_hop == 3
    assert load_config(write("data:\n"), ["data.noise.rate=0.5"]).data.noise.rate == 0.5


def test_whole_section_as_an_override(write):
    path = write("data:\n  name: a\n  noise:\n    rate: 0.1\n    seed: 4\n")
    noise = load_config(path, ["data.noise={kind: random_flip, rate: .5}"]).data.noise
    assert noise == NoiseConfig(kind="random_flip", rate=0.5)
    assert load_config(path, ["data.noise=null"]).data.noise == NoiseConfig()
    assert load_config(path, ["data=null"]).data == DataConfig()


@pytest.mark.parametrize(
    ("override", "name", "value"),
    [
        ("data.path=a=b", "data.path", "a=b"),
        ("data.path==", "data.path", "="),
        ("data.path=a b", "data.path", "a b"),
        ("data.path='a: b'", "data.path", "a: b"),
        ("data.path='None'", "data.path", None),
        ("data.path=''", "data.path", ""),
        ("data.path=/x/é.npz", "data.path", "/x/é.npz"),
        ("model.hidden_feats=[64, 32]", "model.hidden_feats", (64, 32)),
        ("model.hidden_feats=[64,32]", "model.hidden_feats", (64, 32)),
        ("model.hidden_feats=64", "model.hidden_feats", (64,)),
        ("train.structure_lr=null", "train.structure_lr", None),
        ("train.structure_lr=", "train.structure_lr", None),
        ("overwrite=true", "overwrite", True),
        ("train.lr=1e-3", "train.lr", 1e-3),
    ],
)
def test_values_of_overrides(override, name, value):
    if value is None and "None" in override:  # quoted or not, it is hardly the name of a file
        with pytest.raises(InputError, match="write null"):
            load_config(None, [override])
    else:
        assert _value(load_config(None, [override]), name) == value


def test_null_override_undoes_the_file(write):
    path = write("train: {structure_lr: 0.5}\n")
    assert load_config(path, ["train.structure_lr=null"]).train.structure_lr is None


@pytest.mark.parametrize(
    "override", ["seed", "", "=", "=3", ".seed=3", "seed.=3", "train..lr=3", "train: {lr: 1}"]
)
def test_bad_form_of_an_override(refused, override):
    assert refused(None, override) == f"{override!r}: expected section.key=value"


@pytest.mark.parametrize(
    "override", ["seed=[1", "seed=*x", "data.name=a: b: c", "seed=\x07", "seed='", "seed={a: 1"]
)
def test_override_that_is_not_yaml(refused, override):
    shown = override if override.isprintable() else repr(override)
    assert refused(None, override).startswith(f"{shown}: not YAML: ")


@pytest.mark.parametrize(
    "override", ["seed=yes", "train.epochs=0", "data.kind=npy", "train=3", "data.noise=[]"]
)
def test_override_names_itself(refused, override):
    key = override.partition("=")[0]
    assert refused("seed: 1\n", override).startswith(f"{override}: {key}")


def test_place_is_the_overrides_once_it_replaced_the_files(refused):
    text = "data:\n  kind: npz\n  noise: {rate: 1}\n"
    for override in ("data={kind: x}", "data={noise: {kind: x}}"):
        assert refused(text, override).startswith(f"{override}: data.")
    assert refused(text, "data={kind: npz}", "data.kind=x").startswith("data.kind=x: data.kind: ")


def test_line_break_in_an_override(refused):
    assert refused(None, "seed=\n x").startswith(r"'seed=\n x': seed: ")


@pytest.mark.parametrize(
    ("text", "override", "start"),
    [
        ("data: 5\n", "data.kind=npz", "some.yaml:1: data=5 holds no keys"),
        ("\nseed: 5\n", "seed.x=1", "some.yaml:2: seed=5 holds no keys"),
        ("data:\n  noise: x\n", "data.noise.rate=1", "some.yaml:2: data.noise='x' holds no keys"),
    ],
)
def test_override_below_a_value_does_not_hide_it(refused, text, override, start):
    assert refused(text, override).startswith(start)


def test_section_needs_keys(refused):
    for value in ("5", "[]", "abc", "true"):
        message = refused(f"seed: 1\ntrain: {value}\n")
        assert message.startswith("some.yaml:2: train is a section: expected keys in it, got ")


# ------------------------------------------------------------------------ ranges, choices, checks

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
    assert _value(load_config(None, [f"{key}={value}"]), key) in (float(value.strip("[]")), (1,))


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


# ------------------------------------------------------------------------------------ from Python


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


# ------------------------------------------------------------------------------------- round trip

ODD_TEXT = [
    *(
        "yes",
        "no",
        "on",
        "True",
        "false",
        "null",
        "Null",
        "~",
        "none",
        "nan",
        "",
        " ",
        "  a",
        "a  ",
    ),
    *("1e-3", "1e5", "010", "0x10", "0o7", "1_000", "1:30", "12", "-3", "+1", ".5", "1.", "-.5"),
    *(".inf", "-.inf", ".nan", "=", "<<", "2020-01-01", "2020-01-01 00:00:00", "---", "...", "- a"),
    *("a: b", "a:b", "a #b", "#a", "[1]", "{a: b}", "%x", "@x", "`x`", "&a", "*a", "!x", "|", ">"),
    *("? a", "?a", "'", '"', "'a", "it's", '"q"', "a\\b", "a\nb", "\n", "a\n\n b\n", "\t", "a\tb"),
    *(
        "é",
        "中文/路径",
        "😀",
        "\u2028",
        "a\u2029b",
        "a\x85b",
        "\ufeffa",
        "\x07",
        "\x1b[0m",
        "\udcff",
        "\xa0",
    ),
    *("x" * 300, "some words " * 40, "a " * 60 + "\n" + "b " * 60, "user: {x}", "C:\\data\\x"),
]


def _round_trip(config, tmp_path):
    text = to_yaml(config)
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    again = load_config(path)
    assert again == config
    assert to_yaml(again) == text
    assert repr(again) == repr(config)  # types too: 1 == 1.0 == True
    return text


def test_round_trip_of_the_defaults(tmp_path):
    text = _round_trip(Config(), tmp_path)
    assert list(to_plain(Config())) == [f.name for f in dataclasses.fields(Config)]
    assert text.startswith("seed: 0\n")
    for param in LEAVES:
        assert f"{param.values[1].name}:" in text


@pytest.mark.parametrize("text", ODD_TEXT, ids=ascii)
def test_round_trip_of_text(tmp_path, text):
    data = DataConfig(name=text, path=text, noise=NoiseConfig(kind="file", file=text))
    _round_trip(Config(output_dir=text, data=data), tmp_path)


def test_round_trip_of_numbers(tmp_path):
    draw = random.Random(0)
    numbers = [1e-05, 0.1 + 0.2, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]
    numbers += [1e16, 1e22, 123456789.0, 3.0, 1e-7, 100000000000000000000.0]
    numbers += [draw.random() * 10 ** draw.randint(-300, 300) for _ in range(40)]
    for number in numbers:
        config = Config(
            train=TrainConfig(lr=number, structure_lr=number, weight_decay=number),
            data=DataConfig(noise=NoiseConfig(rate=number)),
        )
        _round_trip(config, tmp_path)


def test_round_trip_of_everything_else(tmp_path):
    config = Config(
        seed=2**31 - 1,
        overwrite=True,
        device="cuda",
        data=DataConfig(synthetic=SyntheticConfig(seed=2**70), noise=NoiseConfig(seed=0)),
        features=FeaturesConfig(weighting="tf_idf", row_norm="l2"),
        structure=StructureConfig(
            learnable=False, candidates=CandidatesConfig(same_cluster=3, refresh_every=2)
        ),
        model=ModelConfig(num_clusters=7, hidden_feats=(512, 256, 64), dropout=0),
        loss=LossConfig(npsi_observed=False),
    )
    text = _round_trip(config, tmp_path)
    assert "&" not in text
    assert "!!" not in text
    _round_trip(Config(model=ModelConfig(hidden_feats=(1,))), tmp_path)


def test_to_plain_is_plain():
    def check(value):
        if isinstance(value, dict):
            assert all(type(key) is str for key in value)
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                check(item)
        else:
            assert value is None or type(value) in (bool, int, float, str)

    check(to_plain(Config(model=ModelConfig(hidden_feats=(2, 3), num_clusters=np.int64(3)))))


# ------------------------------------------------------------------------------------------- rest


def test_link_critic_has_a_power_and_link_prediction_one_process():
    settings = ["structure.prior=link_critic", "structure.critic.power=null"]
    with pytest.raises(InputError, match=r"power=null needs structure\.prior=critic"):
        load_config(None, settings)
    config = load_config(None, ["task=link_prediction", "model.observed_mix=0"])
    with pytest.raises(InputError, match="distributed run needs task=clustering"):
        config.check_distributed()


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["data.noise.rate=0.5"], "data.noise.rate"),
        (["data.noise.kind=file", "data.noise.file=x", "data.noise.rate=1"], "data.noise.rate"),
        (["data.noise.file=x.npz"], "data.noise.file"),
        (["data.noise.attack.steps=5"], "data.noise.attack has no effect with data.noise.kind"),
        (
            ["data.noise.kind=metattack", "data.noise.attack={form: exact, block_nodes: 9}"],
            "data.noise.attack.block_nodes=9 has no effect with data.noise.attack.form=exact",
        ),
        (["structure.learnable=false", "structure.candidates.feature_knn=5"], "candidates"),
        (["structure.learnable=false", "structure.candidates.k_hop=5"], "candidates"),
        (["structure.learnable=false", "structure.prior=feature_cosine"], "prior"),
        (
            ["structure.learnable=false", "loss.observed_edge_weight=1"],
            "loss.observed_edge_weight",
        ),
        (["structure.candidates.refresh_every=5"], "refresh_every"),
        (["links.test_share=0.2"], "links has no effect with task=clustering"),
        (["structure.critic.folds=5"], "structure.critic has no effect with structure.prior"),
        (["loss.reconstruction_form=cross_entropy"], "loss.reconstruction_form"),
        (
            ["structure.candidates.refresh_every=5", "structure.candidates.feature_knn=5"],
            "refresh_every",
        ),
    ],
)
def test_inert_settings(overrides, said):
    lines = load_config(None, overrides).inert_settings()
    assert any(said in line for line in lines)
    assert all(len(line.splitlines()) == 1 for line in lines)


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["data.noise.kind=random_flip", "data.noise.rate=0.5"],
        ["data.noise.kind=file", "data.noise.file=x.npz"],
        ["structure.candidates.feature_knn=5", "structure.prior=feature_cosine"],
        ["structure.candidates.refresh_every=5", "structure.candidates.k_hop=1"],
        ["structure.candidates.refresh_every=5", "structure.candidates.uniform=1"],
        ["structure.candidates.refresh_every=5", "structure.candidates.same_cluster=1"],
        ["structure.learnable=false"],
        ["loss.observed_edge_weight=1"],
        ["structure.prior=link_critic", "structure.critic.folds=5"],
        # The learned link score has the critic's settings, whatever the prior.
        ["task=link_prediction", "links.test_share=0.2", "structure.critic.folds=5"],
        ["task=link_prediction", "structure.learnable=false", "structure.critic.hops=1"],
    ],
)
def test_settings_that_have_an_effect(overrides):
    assert load_config(None, overrides).inert_settings() == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("configs/paper/cora.yaml", "paper/cora"),
        ("configs/cora.yaml", "cora"),
        (Path("/a/b/configs/x/y.yml"), "x/y"),
        ("/configs/old/configs/a.yaml", "a"),
        ("mine.yaml", "mine"),
        ("some/folder/mine.yaml", "mine"),
        ("configs.yaml", "configs"),
        ("my.run.yaml", "my.run"),
        # A name that climbs would put the run directory outside `outputs`.
        ("configs/../mine.yaml", "mine"),
        ("configs/paper/../cora.yaml", "cora"),
        ("../mine.yaml", "mine"),
        ("./configs/./cora.yaml", "cora"),
    ],
)
def test_config_name(path, name):
    assert config_name(path) == name


def test_no_torch():
    # `user-dgl --help` and `user-dgl config` must answer at once.
    code = (
        "import sys, user_dgl.config as c; c.load_config(None, ['seed=1']); "
        "assert 'torch' not in sys.modules and 'dgl' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_configs_are_shipped():
    assert SHIPPED


def test_default_config_is_found():
    assert default_config().samefile(ROOT / "configs" / "default.yaml")
    assert load_config(default_config(), ["model.num_clusters=3"]).model.encoder == "smooth"


def test_installed_packages_hold_all_modules_and_configs(tmp_path):
    pytest.importorskip("setuptools")
    build = "from setuptools import setup; setup()"
    command = [sys.executable, "-c", build, "-q", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60, capture_output=True)
    built = tmp_path / "user_dgl"
    for root, folder, kind in ((ROOT, "configs", "yaml"), (ROOT / "user_dgl", "", "py")):
        names = sorted(str(file.relative_to(root)) for file in (root / folder).rglob(f"*.{kind}"))
        assert names == sorted(
            str(file.relative_to(built)) for file in (built / folder).rglob(f"*.{kind}")
        )


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: config_name(path))
def test_shipped_config(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")  # its measured result and how it was measured, or what it is for
    config = load_config(path)
    _round_trip(config, tmp_path)
    assert config.inert_settings() == []
    assert config.output_dir is None
    assert config.overwrite is False
