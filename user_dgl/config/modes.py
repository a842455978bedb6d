"""Checks for training in parts and for training by several processes."""

from typing import Any

from user_dgl.config.model import ENCODERS
from user_dgl.config.schema import Section, get, show
from user_dgl.errors import InputError


def check_partition(config: Section) -> None:
    """Refuse settings that training in parts does not support.

    Raises
    ------
    InputError
        A setting is not supported.
    """
    space = get(config, "loss.davies_bouldin_space")
    beyond = get(config, "loss.davies_bouldin_weight") and space != "features"
    _refuse(
        config,
        "train.mode=partition",
        "train.mode=full",
        ("model.encoder", not get(config, "model.traits.learns"), _encoders_in_parts()),
        ("loss.davies_bouldin_space", beyond, "features"),
        ("device", get(config, "device") == "cuda", "cpu"),
    )


def check_distributed(config: Section) -> None:
    """Refuse settings that training by several processes does not support.

    Raises
    ------
    InputError
        A setting is not supported.
    """
    _refuse(
        config,
        "a distributed run",
        "a single process",
        ("model.kind", get(config, "model.kind") != "user", "user"),
        ("train.mode", get(config, "train.mode") != "full", "full"),
        ("task", get(config, "task") != "clustering", "clustering"),
    )


def _refuse(config: Section, what: str, otherwise: str, *more: tuple[str, Any, str]) -> None:
    """Refuse settings that need the whole graph in one process or one update.

    Parameters
    ----------
    config : Section
        All settings.
    what : str
        Name of the mode, for the message.
    otherwise : str
        The alternative to changing the setting, for the message.
    more : (str, Any, str)
        Further settings to check: path of the key, whether its value is refused, and a value that
        is accepted.

    Raises
    ------
    InputError
        A setting is refused.
    """
    traits = get(config, "model.traits")
    values = (
        ("model.observed_mix", 0),
        ("train.restarts", 1),
        ("train.consensus", "none"),
        ("loss.reconstruction_weight", 0),
        ("structure.candidates.refresh_every", 0),
    )
    unfit = (
        *more,
        ("model.encoder", not traits.in_parts and traits.learns, _encoders_in_parts()),
        *((name, get(config, name) != value, show(value)) for name, value in values),
    )
    for name, is_unfit, instead in unfit:
        if is_unfit:
            raise InputError(
                f"{what} needs {name}={instead}, got {show(get(config, name))}: set it, or "
                f"use {otherwise}"
            )


def _encoders_in_parts() -> str:
    """Names of the encoders that can be trained in parts."""
    return " or ".join(name for name, traits in ENCODERS.items() if traits.in_parts)
