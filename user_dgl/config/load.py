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

    The first line of a file may be ``extends: other.yaml``, relative to the file: then the keys of
    the other file count where this one has none.

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
            if not isinstance(node, dict):  # a bad value below must not vanish under the override
                at = place(where, keys[:depth])
                raise InputError(f"{at}{'.'.join(keys[:depth])}={node!r} holds no keys: {source}")
        node[keys[-1]] = parse_yaml(value, source, None)
        where = {known: at for known, at in where.items() if known[: len(keys)] != keys}
        where[keys] = source
    return build(Config, plain, where)


def _read_file(
    path: Path, where: dict[tuple[str, ...], str], extended_by: tuple[Path, ...]
) -> dict[str, Any]:
    """The plain settings of a file, over those of the file that its key ``extends`` names.

    Parameters
    ----------
    path : Path
    where : dict
        Gets the place of each key, for messages.
    extended_by : tuple of Path
        The files that led here.

    Raises
    ------
    InputError
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
        if not isinstance(name, str) or not name:
            raise InputError(f"{at}extends: expected the path of a YAML file, got {name!r}")
        other = path.parent / name
        chain = (*extended_by, path.resolve())
        if other.resolve() in chain:
            raise InputError(f"{at}extends: {other} extends this file: remove one of the two")
        if not other.is_file():
            raise InputError(f"{at}extends: {other}: not found; the path is relative to this file")
        plain = _over(_read_file(other, where, chain), plain)
    where.update(own_where)
    return plain


def _over(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """One tree of settings over another: sections are merged, other values replaced."""
    merged = dict(base)
    for name, value in own.items():
        below = merged.get(name)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[name] = _over(below, value) if both else value
    return merged


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
