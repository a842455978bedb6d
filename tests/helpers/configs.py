"""Helpers for tests of settings."""

import dataclasses
import typing

import pytest

from user_dgl.config import (
    Config,
    load_config,
    to_yaml,
)


def leaves(cls=Config, prefix=""):
    """Yield the section class, field and type of every key that is not a section."""
    hints = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        hint = hints[item.name]
        if dataclasses.is_dataclass(hint):
            yield from leaves(hint, f"{prefix}{item.name}.")
        else:
            yield pytest.param(cls, item, hint, id=prefix + item.name)


LEAVES = list(leaves())


def value_of(config, name):
    """Return the value of a dotted key, such as ``train.lr``."""
    for key in name.split("."):
        config = getattr(config, key)
    return config


def round_trip(config, tmp_path):
    """Check that settings written as YAML are read back the same; return the YAML."""
    text = to_yaml(config)
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    again = load_config(path)
    assert again == config
    assert to_yaml(again) == text
    assert repr(again) == repr(config)  # types too: 1 == 1.0 == True
    return text
