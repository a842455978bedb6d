"""What training in parts and training by several processes cannot do."""

from typing import TYPE_CHECKING, Any

from user_dgl.config.schema import get, show
from user_dgl.errors import InputError

if TYPE_CHECKING:
    from user_dgl.config.config import Config


def check_partition(config: "Config") -> None:
    """Refuse what a part of the graph cannot do alone.

    Raises
    ------
    InputError
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
    """Refuse what several processes cannot do together.

    Raises
    ------
    InputError
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
    """Refuse settings that need the whole graph in one place, and those of ``more``.

    Each is the path of a key, whether its value does not fit, and a value that fits.
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
                f"{otherwise}"
            )
