"""Settings as frozen dataclasses with checks of types, ranges and choices.

A section of the settings is a dataclass that derives from `Section`. Its fields are made by `key`,
or by `section` if the field is itself a section. `build` makes a section from plain values, such as
those of a YAML file, and its errors name the place of a wrong value. The same checks run when
Python code constructs a section.
"""

import dataclasses
import difflib
import math
import numbers
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard, TypeVar

import yaml

from user_dgl.errors import InputError

SectionType = TypeVar("SectionType", bound="Section")

# Largest learning rate. Beyond it a step may not be a number of float32.
LARGEST_RATE = 1e30


@dataclass(frozen=True)
class OnlyWith:
    """A condition under which a key has an effect; see `only_with` and `only_where`.

    Attributes
    ----------
    cause : str
        Path of the key that the condition depends on, such as ``data.kind``.
    holds : callable
        Function of the whole settings. Returns whether the condition holds.
    text : str
        The condition in words, for `reference`.
    """

    cause: str
    holds: Callable[[Any], bool]
    text: str


def only_with(cause: str, *values: Any) -> OnlyWith:
    """Condition that another key has one of the given values."""
    shown = " or ".join(show(value) for value in values)
    return OnlyWith(cause, lambda config: get(config, cause) in values, f"{cause}: {shown}")


def only_without(cause: str, *values: Any) -> OnlyWith:
    """Condition that another key has none of the given values."""
    shown = " or ".join(show(value) for value in values)
    return OnlyWith(
        cause, lambda config: get(config, cause) not in values, f"{cause} other than {shown}"
    )


def only_where(cause: str, text: str, holds: Callable[[Any], bool]) -> OnlyWith:
    """Condition that a function of the whole settings is true."""
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
    """Define a key of a section, as a field of its dataclass.

    Parameters
    ----------
    default
        Default value. A dict is converted to `Names`.
    doc : str
        Meaning of the key.
    only : OnlyWith
        Conditions that must all hold for the key to have an effect. If one does not hold, a warning
        names the key.
    choices : iterable of str, optional
        Allowed values. If it is a registry, later entries of the registry are allowed too.
    low, high : float, optional
        Smallest and largest allowed value.
    above : float, optional
        Values must be greater than this.
    """
    metadata = {
        "doc": doc, "only": only, "choices": choices, "low": low, "high": high, "above": above,
    }  # fmt: skip
    if isinstance(default, dict):
        default = Names(default)
    return field(default=default, metadata=metadata)


def section(cls: type, doc: str, *only: OnlyWith) -> Any:
    """Define a section inside a section, as a field of its dataclass."""
    return field(default_factory=cls, metadata={"doc": doc, "only": only})


class Names(dict):
    """An immutable dict of names and values, so that settings are hashable."""

    def __hash__(self) -> int:  # type: ignore[override]  # dict declares __hash__ as None
        return hash(frozenset(self.items()))

    def __setitem__(self, name: Any, value: Any) -> None:
        raise TypeError("settings are frozen")

    def __reduce__(self) -> tuple[type["Names"], tuple[dict[str, Any]]]:
        return Names, (dict(self),)


def get(config: Any, path: str) -> Any:
    """The value of a key given by its path, such as ``train.lr``."""
    for name in path.split("."):
        config = getattr(config, name)
    return config


def show(value: Any) -> str:
    """Write a value as in YAML."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def inert_settings(config: "Section") -> list[str]:
    """One line for each setting that differs from its default but has no effect in this run."""
    default = type(config)()
    lines: list[str] = []
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


def _is_section(hint: Any) -> TypeGuard[type["Section"]]:
    """Whether a type hint is that of a section."""
    return dataclasses.is_dataclass(hint)


def _keys(cls: type["Section"], prefix: str = "") -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Yield the path and the field of each key and section."""
    hints = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        yield prefix + item.name, item
        if _is_section(hints[item.name]):
            yield from _keys(hints[item.name], f"{prefix}{item.name}.")


@dataclass(frozen=True)
class Section:
    """Base class of sections. Checks type and range of every field when a section is made."""

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if _is_section(hints[item.name]):
                if not isinstance(value, hints[item.name]):
                    expected = hints[item.name].__name__
                    raise InputError(f"{item.name}: expected a {expected}, got {value!r}")
                continue
            object.__setattr__(
                self, item.name, _checked(value, hints[item.name], item.metadata, item.name)
            )


def to_plain(config: Any) -> dict[str, Any]:
    """Convert settings to plain dicts, lists and scalars, in the order of the dataclasses."""
    plain = {}
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if dataclasses.is_dataclass(value):
            value = to_plain(value)
        elif isinstance(value, Names):
            value = dict(value)
        plain[item.name] = list(value) if isinstance(value, tuple) else value
    return plain


def reference(cls: type[Section], prefix: str = "") -> str:
    """Write Markdown tables of the keys of a section and of its inner sections.

    A row has the key's name, default, allowed values and meaning.
    """
    hints, rows, below = typing.get_type_hints(cls), [], []
    for item in dataclasses.fields(cls):
        hint, name = hints[item.name], prefix + item.name
        if _is_section(hint):
            title = f"## `{name}`: {item.metadata['doc']}"
            conditions = "; and with ".join(each.text for each in item.metadata["only"])
            if conditions:
                title += f" (used only with {conditions})"
            below.append(f"{title}\n\n{reference(hint, name + '.')}")
            continue
        default = yaml.safe_dump(to_plain(cls())[item.name], default_flow_style=True)
        default = default.removesuffix("\n").removesuffix("\n...")
        meaning = " ".join(item.metadata["doc"].split())
        conditions = "; and with ".join(each.text for each in item.metadata["only"])
        if conditions:
            meaning += f" Used only with {conditions}."
        # A renderer of Markdown would read <name> as an HTML tag.
        meaning = meaning.replace("|", "\\|").replace("<", "\\<")
        rows.append(f"| `{name}` | `{default}` | {_values(hint, item.metadata)} | {meaning} |")
    table = ["| key | default | values | meaning |", "|---|---|---|---|", *rows]
    return "\n\n".join(["\n".join(table)] * bool(rows) + below)


_KINDS = {bool: "true, false", int: "whole number", float: "number", str: "text"}


def _values(hint: Any, metadata: Mapping[str, Any]) -> str:
    """Describe the allowed values of a key in words."""
    args = typing.get_args(hint)
    null = type(None) in args
    if metadata["choices"]:
        return ", ".join(f"`{choice}`" for choice in metadata["choices"]) + ", null" * null
    of_several = args and typing.get_origin(hint) not in (tuple, dict)
    kinds = [_kind(part) for part in (args if of_several else (hint,)) if part is not type(None)]
    bounds = (("low", "at least"), ("above", "above"), ("high", "at most"))
    kinds += [f"{word} {metadata[name]}" for name, word in bounds if metadata[name] is not None]
    return ", ".join(kinds) + ", null" * null


def _kind(hint: Any) -> str:
    """Describe a type in words."""
    args = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        kinds = typing.get_args(args[0]) or args[:1]
        return f"list of {' or '.join(_KINDS[kind] + 's' for kind in reversed(kinds))}"
    if typing.get_origin(hint) is dict:
        return f"name: {_KINDS[args[1]]}"
    return _KINDS[hint] if hint in _KINDS else ", ".join(f"`{word}`" for word in args)


def place(where: Mapping[tuple[str, ...], str], full: tuple[str, ...]) -> str:
    """Find the place of a key path for a message, as ``file:line: `` or ``override: ``.

    If the path itself has no place, that of a key below it is used, else that of the section that
    contains it, else the empty string.
    """
    if full in where:
        return f"{where[full]}: "
    # Only the full path of an override has a place: for trian.lr=1 the unknown key is trian.
    below = next((at for known, at in where.items() if known[: len(full)] == full), None)
    above = (
        where[full[:length]] for length in range(len(full) - 1, 0, -1) if full[:length] in where
    )
    found = below or next(above, None)
    return f"{found}: " if found else ""


def build(
    cls: type[SectionType], plain: dict[str, Any], where: Mapping[tuple[str, ...], str]
) -> SectionType:
    """Make a section and its inner sections from plain values.

    Parameters
    ----------
    cls : type
        Subclass of `Section`.
    plain : dict
        Nested dict of values.
    where : dict
        Maps the path of a key to the place where it was set (``file:line`` or an override), for
        messages.

    Raises
    ------
    InputError
        A key is unknown (the message suggests another), or a value has the wrong type or is out of
        range.
    """
    return _build(cls, plain, (), where, cls)


def _build(
    cls: type[SectionType],
    plain: dict[str, Any],
    path: tuple[str, ...],
    where: Mapping[tuple[str, ...], str],
    root: type[Section],
) -> SectionType:
    """Make the section at ``path``; ``root`` is the class of the whole settings."""
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in plain.items():
        full = (*path, key)
        at = place(where, full)
        name = ".".join(full)
        if key not in hints:
            raise InputError(f"{at}unknown key {name!r}{_suggestion(full, root)}")
        if _is_section(hints[key]):
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
    except InputError as error:  # from a check that involves several keys
        message = ".".join([*path, str(error)])
        # The message starts with the path of a key.
        at = place(where, tuple(re.split(r"[^\w.]", message, maxsplit=1)[0].split(".")))
        raise InputError(f"{at}{message}") from None


def _suggestion(full: tuple[str, ...], root: type[Section]) -> str:
    """End of the message on an unknown key: a similar key, or the keys of the section."""
    parents_and_leaves = {k: k.rpartition(".")[::2] for k in _all_names(root)}
    if ".".join(full) in parents_and_leaves:  # the name of the key contains dots
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
    if not close and not section:  # for example noise_rate in place of data.noise.rate
        close = difflib.get_close_matches(full[-1], parents_and_leaves, n=1, cutoff=0.7)
    if close:
        return f": did you mean {' or '.join(close[:3])}?"
    return f": known here are {', '.join(siblings)}" if siblings else ""


def _all_names(cls: type[Section], prefix: str = "") -> Iterator[str]:
    """Yield the path of each key and section."""
    for key, hint in typing.get_type_hints(cls).items():
        yield prefix + key
        if _is_section(hint):
            yield from _all_names(hint, f"{prefix}{key}.")


def _checked(value: Any, hint: Any, metadata: Mapping[str, Any], name: str) -> Any:
    """Convert a value to the type of a key and check its range and choices.

    Parameters
    ----------
    value
    hint
        Type hint of the key: a type, possibly in a union with None and with ``Literal`` words such
        as ``Literal["auto"]``.
    metadata : mapping
        Metadata of the key's field, see `key`.
    name : str
        Name of the key for messages.

    Raises
    ------
    InputError
        The value is not allowed. The message says what was expected.
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
    for bound, wrong, relation in (
        (metadata.get("low"), lambda v, b: v < b, "at least"),
        (metadata.get("high"), lambda v, b: v > b, "at most"),
        (metadata.get("above"), lambda v, b: v <= b, "above"),
    ):
        if bound is not None and wrong(value, bound):
            raise InputError(f"{name}: expected {relation} {bound}, got {value}")
    return value


def _typed(
    value: Any, hint: Any, name: str, optional: bool = False, words: tuple[str, ...] = ()
) -> Any:
    """Convert a value to a type; ``optional`` and ``words`` are named in messages only."""
    null = "".join(f", {word}" for word in words) + (" or null" if optional else "")
    # NumPy's numbers are instances of Real too.
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if isinstance(value, str) and value in ("None", "none") and optional and hint is not str:
        raise InputError(f"{name}: {value} is text in YAML: write null")
    if hint == int | str:
        hint = int if isinstance(value, int) else str
    if hint is bool:
        if isinstance(value, bool):
            return value
        raise InputError(f"{name}: expected true or false{null}, got {value!r}")
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
        if value is None:
            raise InputError(f"{name}: expected text, got null")
        if is_number or isinstance(value, bool):
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
    raise AssertionError(f"{name}: type {hint} is not supported")


def _float(value: Any, name: str) -> float:
    """Convert a number to float, with an `InputError` if it is too large."""
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name}: expected a number below 1e308, got a longer one") from None
