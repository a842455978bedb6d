"""Reading of settings from a YAML file and the command line; names of configs and data files."""

import importlib.resources
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from user_dgl.config.config import Config
from user_dgl.config.paths import user_path
from user_dgl.config.schema import build, place, to_plain
from user_dgl.config.strict_yaml import dump_yaml, parse_yaml
from user_dgl.errors import InputError


def load_config(path: str | os.PathLike | Config | None, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file and apply overrides.

    A file may contain ``extends: other.yaml``, a path relative to the file. Keys that the file does
    not set are then taken from the other file.

    Parameters
    ----------
    path : path, Config or None
        YAML file, or settings that the overrides are applied to. None: the defaults.
    overrides : sequence of str
        Each is ``section.key=value``, with the value in YAML.

    Raises
    ------
    InputError
        The file cannot be read or is not YAML, a key is unknown, or a value has the wrong type or
        is out of range.
    """
    plain: dict[str, Any] = {}
    where: dict[tuple[str, ...], str] = {}
    if isinstance(path, Config):
        plain = to_plain(path)
    elif path is not None:
        try:
            plain = _read_file(Path(path), where, ())
        except TypeError:
            raise InputError(f"config: expected a path or a Config, got {path!r}") from None
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
            if not isinstance(node, dict):  # the override must not hide a bad value of the file
                at = place(where, keys[:depth])
                raise InputError(f"{at}{'.'.join(keys[:depth])}={node!r} holds no keys: {source}")
        node[keys[-1]] = parse_yaml(value, source, None)
        where = {known: at for known, at in where.items() if known[: len(keys)] != keys}
        where[keys] = source
    return build(Config, plain, where)


def _read_file(
    path: Path, where: dict[tuple[str, ...], str], extended_by: tuple[Path, ...]
) -> dict[str, Any]:
    """Read the settings of a file, merged with those of the file that it extends.

    Parameters
    ----------
    path : Path
    where : dict
        The place of each key is added to it, for messages.
    extended_by : tuple of Path
        Files that extend this one, directly or indirectly.

    Raises
    ------
    InputError
        A file cannot be read or is not YAML, or files extend each other in a circle.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 text (byte {error.start})") from None
    own_where: dict[tuple[str, ...], str] = {}
    plain = parse_yaml(text, str(path), own_where)
    if "extends" in plain:
        name, at = plain.pop("extends"), place(own_where, ("extends",))
        own_where.pop(("extends",), None)
        if not isinstance(name, str) or not name or "\0" in name:
            raise InputError(f"{at}extends: expected the path of a YAML file, got {name!r}")
        other = path.parent / user_path(name, f"{at}extends")
        chain = (*extended_by, path.resolve())
        if other.resolve() in chain:
            raise InputError(f"{at}extends: {other} extends this file: remove one of the two")
        if not other.is_file():
            raise InputError(f"{at}extends: {other}: not found; the path is relative to this file")
        plain = _over(_read_file(other, where, chain), plain)
    where.update(own_where)
    return plain


def _over(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Merge two trees of settings; a value of ``own`` takes precedence."""
    merged = dict(base)
    for name, value in own.items():
        below = merged.get(name)
        if isinstance(below, dict) and value is None:
            continue  # a section without keys
        if isinstance(below, dict) and isinstance(value, dict):
            value = _over(below, value)
        merged[name] = value
    return merged


def to_yaml(config: Config) -> str:
    """Write all settings as YAML, from which `load_config` reads the same settings.

    >>> load_config(None, ["train.lr=1e-3"]).train.lr
    0.001
    >>> "lr: 0.001" in to_yaml(load_config(None, ["train.lr=1e-3"]))
    True
    """
    return dump_yaml(to_plain(config))


def config_name(path: str | os.PathLike) -> str:
    """Name of a config for the default run directory: its path below the folder ``configs``.

    >>> config_name("configs/paper/cora.yaml"), config_name("mine.yaml")
    ('paper/cora', 'mine')
    """
    whole = Path(os.path.normpath(path))
    if not os.fspath(path) or not whole.name or whole.name == "..":
        raise InputError(f"{os.fspath(path)!r} names no config: expected a YAML file")
    parts = whole.with_suffix("").parts
    if "configs" in parts[:-1]:
        last = len(parts) - 1 - parts[::-1].index("configs")
        parts = parts[last + 1 :]
    else:
        parts = parts[-1:]
    return "/".join(parts)


def data_name(path: str | os.PathLike) -> str:
    """Name of a file of edges for the default run directory, without folder and suffix.

    >>> data_name("data/com-dblp.v2.csv.gz"), data_name("graph")
    ('com-dblp.v2', 'graph')
    """
    path = Path(path)
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return path.stem


def default_config() -> Path:
    """Path of ``configs/default.yaml``: inside an installed package, next to it in a clone."""
    package = Path(str(importlib.resources.files("user_dgl")))
    installed = package / "configs" / "default.yaml"
    return installed if installed.exists() else package.parent / "configs" / "default.yaml"
