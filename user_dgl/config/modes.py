"""Checks for training in parts and for training by several processes."""

from typing import TYPE_CHECKING, Any

from user_dgl.config.schema import get, show
from user_dgl.errors import InputError

if TYPE_CHECKING:
    from user_dgl.config.config import Config


def check_partition(config: "Config") -> None:
    """Refuse settings that training in parts does not support.

    Raises
    ------
    InputError
        A setting is not supported.
    """
    loss = config.loss
    beyond = loss.davies_bouldin_weight and loss.davies_bouldin_space != "features"
    _refuse(
        config,
        "train.mode=partition",
        "train.mode=full",
        ("model.encoder", not config.model.traits.learns, "gcn or gae"),
        ("loss.davies_bouldin_space", beyond, "features"),
        ("device", config.device == "cuda", "cpu"),
    )


def check_distributed(config: "Config") -> None:
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
        ("model.kind", config.model.kind != "user", "user"),
        ("train.mode", config.train.mode != "full", "full"),
        ("task", config.task != "clustering", "clustering"),
    )


def _refuse(config: "Config", what: str, otherwise: str, *more: tuple[str, Any, str]) -> None:
    """Refuse settings that need the whole graph in one process or one update.

    Parameters
    ----------
    config : Config
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
    model = config.model
    in_parts = model.traits.in_parts or not model.traits.learns
    unfit = (
        *more,
        ("model.encoder", not in_parts, "gcn or gae"),
        ("model.observed_mix", model.observed_mix != 0, "0"),
        ("train.restarts", config.train.restarts != 1, "1"),
        ("train.consensus", config.train.consensus != "none", "none"),
        ("loss.reconstruction_weight", config.loss.reconstruction_weight != 0, "0"),
        (
            "structure.candidates.refresh_every",
            config.structure.candidates.refresh_every != 0,
            "0",
        ),
    )
    for name, is_unfit, instead in unfit:
        if is_unfit:
            raise InputError(
                f"{what} needs {name}={instead}, got {show(get(config, name))}: set it, or "
                f"use {otherwise}"
            )
