"""Frozen dataclasses as settings: types, ranges and choices of each key, errors that say where.

A section is a dataclass that derives from `Section`; each of its fields is made by `key`, or by
`section` if it is a section itself. `build` makes one from plain values such as those of a YAML
file. Python callers get the same checks when they construct a section.
"""

import dataclasses
import difflib
import math
import numbers
import re
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from user_dgl.errors import InputError


@dataclass(frozen=True)
class OnlyWith:
    """A condition under which a key has an effect; see `only_with` and `only_where`.

    Attributes
    ----------
    cause : str
        Path of the key that decides, such as ``data.kind``.
    holds : callable
        Gets the whole settings.
    text : str
        The condition in words, for the reference of all keys.
    """

    cause: str
    holds: Callable[[Any], bool]
    text: str


def only_with(cause: str, *values: Any) -> OnlyWith:
    """The key has an effect only where another key has one of some values."""
    shown = " or ".join(show(value) for value in values)
    return OnlyWith(cause, lambda config: get(config, cause) in values, f"{cause}: {shown}")


def only_without(cause: str, *values: Any) -> OnlyWith:
    """The key has an effect only where another key has none of some values."""
    shown = " or ".join(show(value) for value in values)
    return OnlyWith(cause, lambda config: get(config, cause) not in values, f"{cause} not {shown}")


def only_where(cause: str, text: str, holds: Callable[[Any], bool]) -> OnlyWith:
    """The key has an effect only where a function of the whole settings is true."""
    return OnlyWith(cause, holds, text)


def key(
    default: Any,
    doc: str,
    *only: OnlyWith,
    choices: Iterable[str] | None = None,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
) -> Any:
    """A key of a section.

    Parameters
    ----------
    default
        A dict becomes `Names`.
    doc : str
        Its meaning.
    only : OnlyWith
        Conditions under which it has an effect; without all of them a warning names it.
    choices : iterable of str, optional
        Allowed values; a registry is read anew at each check.
    low, high : float, optional
        Bounds, which are allowed values themselves.
    above : float, optional
        Bound, which is not allowed itself.
    """
    metadata = {
        "doc": doc, "only": only, "choices": choices, "low": low, "high": high, "above": above,
    }  # fmt: skip
    if isinstance(default, dict):
        default = Names(default)
    return field(default=default, metadata=metadata)


def section(cls: type, doc: str, *only: OnlyWith) -> Any:
    """A section inside a section."""
    return field(default_factory=cls, metadata={"doc": doc, "only": only})


class Names(dict):
    """A dict of names and values that cannot change, so that settings have a hash."""

    def __hash__(self) -> int:  # type: ignore[override]  # a plain dict has none
        return hash(frozenset(self.items()))

    def __setitem__(self, name: Any, value: Any) -> None:
        raise TypeError("settings are frozen")

    def __reduce__(self) -> Any:
        return Names, (dict(self),)


def get(config: Any, path: str) -> Any:
    """The value of a key given by its path, such as ``train.lr``."""
    for name in path.split("."):
        config = getattr(config, name)
    return config


def show(value: Any) -> str:
    """A value as it stands in YAML."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def inert_settings(config: "Section") -> list[str]:
    """Settings away from their default that have no effect in this run, one line each."""
    default, lines = type(config)(), []
    for path, item in _keys(type(config)):
        value = get(config, path)
        if value == get(default, path):
            continue
        shown = path if dataclasses.is_dataclass(value) else f"{path}={show(value)}"
        lines += [
            f"{shown} has no effect with {only.cause}={show(get(config, only.cause))}"
            for only in item.metadata["only"]
            if not only.holds(config)
        ]
    return lines


def _keys(cls: type, prefix: str = "") -> Iterator[tuple[str, dataclasses.Field]]:
    """Paths and fields of all keys and sections."""
    hints = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        yield prefix + item.name, item
        if dataclasses.is_dataclass(hints[item.name]):
            yield from _keys(hints[item.name], f"{prefix}{item.name}.")


class Section:
    """Type and range checks of every field, so that Python callers get those of the YAML file."""

    def __post_init__(self):
        hints = typing.get_type_hints(type(self))
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if dataclasses.is_dataclass(hints[item.name]):
                if not isinstance(value, hints[item.name]):
                    expected = hints[item.name].__name__
                    raise InputError(f"{item.name}: expected a {expected}, got {value!r}")
                continue
            object.__setattr__(
                self, item.name, _checked(value, hints[item.name], item.metadata, item.name)
            )


def to_plain(config: Any) -> dict[str, Any]:
    """The settings as plain dicts, lists and scalars, in the order of the dataclasses."""
    plain = {}
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if dataclasses.is_dataclass(value):
            value = to_plain(value)
        elif isinstance(value, Names):
            value = dict(value)
        plain[item.name] = list(value) if isinstance(value, tuple) else value
    return plain


def reference(cls: type, prefix: str = "") -> str:
    """Every key of a section and of those in it, as Markdown: default, values, meaning."""
    hints, rows, below = typing.get_type_hints(cls), [], []
    for item in dataclasses.fields(cls):
        hint, name = hints[item.name], prefix + item.name
        if dataclasses.is_dataclass(hint):
            title = f"## `{name}`: {item.metadata['doc']}"
            below.append(f"{title}\n\n{reference(hint, name + '.')}")
            continue
        default = yaml.safe_dump(to_plain(cls())[item.name], default_flow_style=True)
        default = default.removesuffix("\n").removesuffix("\n...")
        # Renderers would take <name> for a tag.
        only = "".join(f"; only with {each.text}" for each in item.metadata["only"])
        meaning = " ".join(item.metadata["doc"].split()) + only
        meaning = meaning.replace("|", "\\|").replace("<", "\\<")
        rows.append(f"| `{name}` | `{default}` | {_values(hint, item.metadata)} | {meaning} |")
    table = ["| key | default | values | meaning |", "|---|---|---|---|", *rows]
    return "\n\n".join(["\n".join(table)] * bool(rows) + below)


_KINDS = {bool: "true, false", int: "whole number", float: "number", str: "text"}


def _values(hint, metadata) -> str:
    """What a key takes, in words."""
    args = typing.get_args(hint)
    null = type(None) in args
    if metadata["choices"]:
        return ", ".join(f"`{choice}`" for choice in metadata["choices"]) + ", null" * null
    of_several = args and typing.get_origin(hint) not in (tuple, dict)
    kinds = [_kind(part) for part in (args if of_several else (hint,)) if part is not type(None)]
    bounds = (("low", "at least"), ("above", "above"), ("high", "at most"))
    kinds += [f"{word} {metadata[name]}" for name, word in bounds if metadata[name] is not None]
    return ", ".join(kinds) + ", null" * null


def _kind(hint) -> str:
    args = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return f"list of {_KINDS[args[0]]}s"
    if typing.get_origin(hint) is dict:
        return f"name: {_KINDS[args[1]]}"
    return _KINDS[hint] if hint in _KINDS else ", ".join(f"`{word}`" for word in args)


def place(where, full):
    """``file:line: `` or ``override: `` of a key path: its own, what holds it or what it holds."""
    for length in range(len(full), 0, -1):
        if full[:length] in where:
            return f"{where[full[:length]]}: "
    # An override names only the leaf: of trian.lr=1 it is trian that is unknown.
    return next((f"{at}: " for known, at in where.items() if known[: len(full)] == full), "")


def build(cls: type, plain: dict[str, Any], where: dict[tuple[str, ...], str]):
    """A section, and those in it, of plain values.

    Parameters
    ----------
    cls : type
        Subclass of `Section`.
    plain : dict
    where : dict
        Key path -> where it was given (``file:line`` or an override), for messages.

    Raises
    ------
    InputError
        Unknown key (with a suggestion), wrong type, value out of range.
    """
    return _build(cls, plain, (), where, cls)


def _build(cls, plain, path, where, root):
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in plain.items():
        full = (*path, key)
        at = place(where, full)
        name = ".".join(full)
        if key not in hints:
            raise InputError(f"{at}unknown key {name!r}{_suggestion(full, root)}")
        if dataclasses.is_dataclass(hints[key]):
            if value is None:
                continue
            if not isinstance(value, dict):
                raise InputError(f"{at}{name} is a section: expected keys in it, got {value!r}")
            values[key] = _build(hints[key], value, full, where, root)
            continue
        metadata = next(f.metadata for f in dataclasses.fields(cls) if f.name == key)
        try:
            values[key] = _checked(value, hints[key], metadata, name)
        except InputError as error:
            raise InputError(f"{at}{error}") from None
    try:
        return cls(**values)
    except InputError as error:  # checks across fields
        message = ".".join([*path, str(error)])
        at = place(where, tuple(re.match(r"[\w.]*", message)[0].split(".")))
        raise InputError(f"{at}{message}") from None


def _suggestion(full: tuple[str, ...], root) -> str:
    parents_and_leaves = {k: k.rpartition(".")[::2] for k in _all_names(root)}
    if ".".join(full) in parents_and_leaves:  # a key with dots in it
        nested = "..."
        for part in reversed(".".join(full).split(".")):
            nested = f"{{{part}: {nested}}}"
        return f": in YAML write {nested[1:-1]}"
    section = ".".join(full[:-1])
    siblings = {leaf: k for k, (parent, leaf) in parents_and_leaves.items() if parent == section}
    close = [k for k, (_, leaf) in parents_and_leaves.items() if leaf == full[-1]]
    close += [siblings[leaf] for leaf in difflib.get_close_matches(full[-1], siblings, n=1)]
    if not close:
        leaves = {leaf for _, leaf in parents_and_leaves.values()}
        match = difflib.get_close_matches(full[-1], leaves, n=1, cutoff=0.7)
        close = [k for k, (_, leaf) in parents_and_leaves.items() if match == [leaf]]
    if not close and not section:  # noise_rate for data.noise.rate
        close = difflib.get_close_matches(full[-1], parents_and_leaves, n=1, cutoff=0.7)
    if close:
        return f": did you mean {' or '.join(close[:3])}?"
    return f": known here are {', '.join(siblings)}" if siblings else ""


def _all_names(cls, prefix=""):
    for key, hint in typing.get_type_hints(cls).items():
        yield prefix + key
        if dataclasses.is_dataclass(hint):
            yield from _all_names(hint, f"{prefix}{key}.")


def _checked(value, hint, metadata, name):
    """``value`` as the type of ``hint``; raises `InputError` with what was expected.

    A hint is a type, or a type or None, or either of them or certain words: ``Literal["auto"]``.
    """
    args = typing.get_args(hint)
    optional = type(None) in args
    if optional and value is None:
        return None
    if typing.get_origin(hint) is dict:
        if not isinstance(value, dict):
            raise InputError(f"{name}: expected names with a value each, got {value!r}")
        return Names(
            {
                str(each): _checked(number, args[1], metadata, f"{name}.{each}")
                for each, number in value.items()
            }
        )
    literal = next((a for a in args if typing.get_origin(a) is typing.Literal), None)
    words = typing.get_args(literal)
    if isinstance(value, str) and value in words:
        return value
    if optional or words:
        hint = next(a for a in args if a not in (literal, type(None)))
    value = _typed(value, hint, name, optional, words)
    choices = metadata.get("choices")
    if choices and value not in choices:
        close = difflib.get_close_matches(str(value), choices, n=1)
        hint_text = f" (did you mean {close[0]}?)" if close else ""
        raise InputError(f"{name}: expected one of {', '.join(choices)}, got {value!r}{hint_text}")
    for bound, wrong, words in (
        (metadata.get("low"), lambda v, b: v < b, "at least"),
        (metadata.get("high"), lambda v, b: v > b, "at most"),
        (metadata.get("above"), lambda v, b: v <= b, "above"),
    ):
        if bound is not None and wrong(value, bound):
            raise InputError(f"{name}: expected {words} {bound}, got {value}")
    return value


def _typed(value, hint, name, optional=False, words=()):
    null = "".join(f", {word}" for word in words) + (" or null" if optional else "")
    # Real, so that NumPy's numbers count too.
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if isinstance(value, str) and value in ("None", "none") and optional and hint is not str:
        raise InputError(f"{name}: {value} is text in YAML: write null")
    if hint is bool:
        if isinstance(value, bool):
            return value
        raise InputError(f"{name}: expected true or false, got {value!r}")
    if hint is int:
        if is_number and math.isfinite(_float(value, name)) and int(value) == value:
            return int(value)
        raise InputError(f"{name}: expected a whole number{null}, got {value!r}")
    if hint is float:
        if not is_number:
            raise InputError(f"{name}: expected a number{null}, got {value!r}")
        number = _float(value, name)
        if not math.isfinite(number):
            raise InputError(f"{name}: expected a finite number, got {value}")
        return number
    if hint is str:
        if optional and value == "None":
            raise InputError(f"{name}: None is text in YAML: write null")
        if is_number or isinstance(value, bool) or value is None:
            raise InputError(f"{name}: expected text{null}, got {value!r} (quote it?)")
        if not isinstance(value, str):
            raise InputError(f"{name}: expected text{null}, got {value!r}")
        if "\0" in value:
            raise InputError(f"{name}: holds a NUL character")
        return value
    if typing.get_origin(hint) is tuple:
        element = typing.get_args(hint)[0]
        items = value if isinstance(value, (list, tuple)) else [value]
        return tuple(_typed(item, element, name) for item in items)
    raise AssertionError(f"{name}: no reader for {hint}")


def _float(value, name):
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name}: expected a number below 1e308, got a longer one") from None
