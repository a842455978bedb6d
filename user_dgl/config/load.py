"""Settings from a YAML file and from the command line, and their names."""

import importlib.resources
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from user_dgl.config.config import Config
from user_dgl.config.schema import build, place, to_plain
from user_dgl.config.strict_yaml import dump_yaml, parse_yaml
from user_dgl.errors import InputError


def load_config(path: str | os.PathLike | Config | None, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file and apply overrides.

    Parameters
    ----------
    path : path, Config or None
        YAML file, or settings to start from; None starts from the defaults.
    overrides : sequence of str
        ``section.key=value``, the value in YAML.

    Raises
    ------
    InputError
        File unreadable, not YAML, unknown key, wrong type, value out of range.
    """
    plain: dict[str, Any] = {}
    where: dict[tuple[str, ...], str] = {}
    if isinstance(path, Config):
        plain = to_plain(path)
    elif path is not None:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except TypeError:
            raise InputError(f"config: expected a path or a Config, got {path!r}") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise InputError(f"{path}:{line}: not UTF-8 text (byte {error.start})") from None
        plain = parse_yaml(text, str(path), where)
    for override in overrides:
        name, equals, value = override.partition("=")
        keys = tuple(name.split("."))
        if not equals or not all(keys):
            raise InputError(f"{override!r}: expected section.key=value")
        source = override if override.isprintable() else repr(override)
        node = plain
        for depth, part in enumerate(keys[:-1], start=1):
            if node.get(part) is None:
                node[part] = {}
            node = node[part]
            if not isinstance(node, dict):  # a bad value below must not vanish under the override
                at = place(where, keys[:depth])
                raise InputError(f"{at}{'.'.join(keys[:depth])}={node!r} holds no keys: {source}")
        node[keys[-1]] = parse_yaml(value, source, None)
        where = {known: at for known, at in where.items() if known[: len(keys)] != keys}
        where[keys] = source
    return build(Config, plain, where)


def to_yaml(config: Config) -> str:
    """The resolved settings as YAML that `load_config` reads back to the same settings.

    >>> load_config(None, ["train.lr=1e-3"]).train.lr
    0.001
    >>> "lr: 0.001" in to_yaml(load_config(None, ["train.lr=1e-3"]))
    True
    """
    return dump_yaml(to_plain(config))


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


def data_name(path: str | os.PathLike) -> str:
    """Name of a file of edges for the default run directory: without folder and ending.

    >>> data_name("data/com-dblp.v2.csv.gz"), data_name("graph")
    ('com-dblp.v2', 'graph')
    """
    path = Path(path)
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return path.stem


def default_config() -> Path:
    """``configs/default.yaml``: in the package where that is installed, beside it in a clone."""
    package = Path(str(importlib.resources.files("user_dgl")))
    installed = package / "configs" / "default.yaml"
    return installed if installed.exists() else package.parent / "configs" / "default.yaml"
