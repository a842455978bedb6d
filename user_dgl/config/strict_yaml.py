"""Strict reading and writing of YAML.

Plain PyYAML reads ``1e-3`` as text, ``yes`` as true and ``010`` as eight, and it keeps the last of
two equal keys. This module reads numbers and booleans as YAML 1.2 defines them, so ``1e-3`` is a
number and ``yes`` is text. Repeated keys, aliases and tags are errors that name the line.
"""

import re
from typing import Any

import yaml

from user_dgl.errors import InputError


class _Loader(yaml.SafeLoader):
    """SafeLoader that reads scalars by the core schema of YAML 1.2."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first
    )


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes text which `_Loader` would read as another type."""


_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
_Dumper.add_representer(
    float,
    lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:float", repr(value)),
)
# Outside double quotes, PyYAML writes these line breaks unchanged and reads them as spaces.
_Dumper.add_representer(
    str,
    lambda dumper, value: dumper.represent_scalar(
        "tag:yaml.org,2002:str",
        value,
        style='"' if re.search("[\x85\u2028\u2029]", value) else None,
    ),
)


def parse_yaml(text: str, source: str, where: dict[tuple[str, ...], str] | None) -> Any:
    """Read a YAML text as plain Python values.

    Parameters
    ----------
    text : str
    source : str
        Name of the text for messages.
    where : dict or None
        ``file:line`` of each key path is added to it, and the text must be a mapping. None: the
        text may be any value, and messages do not contain lines.

    Raises
    ------
    InputError
        The text is not YAML, or uses YAML that is not allowed here.
    """
    lines = where is not None
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if where is None:
            return None if node is None else _to_plain(loader, node, (), source, {})
        if node is None or node.tag == "tag:yaml.org,2002:null":
            return {}
        if not isinstance(node, yaml.MappingNode):
            at = f"{source}:{node.start_mark.line + 1}"
            raise InputError(f"{at}: expected `key: value` lines")
        return _to_plain(loader, node, (), source, where)
    except yaml.reader.ReaderError as error:
        at = f"{source}:{text.count(chr(10), 0, error.position) + 1}" if lines else source
        raise InputError(f"{at}: not YAML: character #x{error.character:04x}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"{source}:{mark.line + 1}" if mark and lines else source
        said = [getattr(error, "context", None), getattr(error, "problem", None)]
        problem = ", ".join(part for part in said if part) or str(error).splitlines()[0]
        raise InputError(f"{at}: not YAML: {problem}") from None
    except RecursionError:
        raise InputError(f"{source}: not a usable YAML value: nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()


def _to_plain(
    loader: _Loader,
    node: yaml.Node,
    path: tuple[str, ...],
    source: str,
    where: dict[tuple[str, ...], str],
    seen: set[int] | None = None,
) -> Any:
    """Convert a node to plain Python values and add the place of each key to ``where``."""
    seen = set() if seen is None else seen
    at = f"{source}:{node.start_mark.line + 1}"
    if id(node) in seen:
        raise InputError(f"{at}: YAML aliases are not allowed here: write the value out")
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        plain = node.style is None
        if node.tag != loader.resolve(yaml.ScalarNode, node.value, (plain, not plain)):
            raise InputError(f"{at}: YAML tags are not allowed here ({node.tag})")
        try:
            return loader.construct_object(node)
        except ValueError:  # Python refuses numbers with thousands of digits
            raise InputError(f"{at}: not a usable number: {node.value[:20]}...") from None
    if node.tag != loader.resolve(type(node), node.value, True):
        raise InputError(f"{at}: YAML tags are not allowed here ({node.tag})")
    if isinstance(node, yaml.SequenceNode):
        return [_to_plain(loader, item, path, source, where, seen) for item in node.value]
    result = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise InputError(f"{at}: expected a plain key")
        key = str(key_node.value)
        line = f"{source}:{key_node.start_mark.line + 1}"
        if key in result:
            raise InputError(f"{line}: {key!r} is given twice: keep one")
        where[(*path, key)] = line
        result[key] = _to_plain(loader, value_node, (*path, key), source, where, seen)
    return result


def dump_yaml(plain: Any) -> str:
    """Write YAML from which `parse_yaml` reads the same values."""
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
