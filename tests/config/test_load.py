"""Unknown keys and overrides of a file of settings."""

import dataclasses

import pytest

from configs import value_of
from user_dgl.config import (
    Config,
    DataConfig,
    NoiseConfig,
    TrainConfig,
    load_config,
)
from user_dgl.errors import InputError


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
        assert value_of(load_config(None, [override]), name) == value


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


def test_the_override_is_named_where_the_file_has_its_section(refused):
    message = refused("loss:\n  npsi_weight: 1\n", "loss.terms.size=big")
    assert message.startswith("loss.terms.size=big: loss.terms.size: expected a number")
