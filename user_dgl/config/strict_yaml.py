"""YAML without its surprises.

Plain PyYAML reads ``1e-3`` as text, ``yes`` as true, ``010`` as eight and keeps the last of two
equal keys. Here numbers and booleans are those of YAML 1.2, so ``1e-3`` is a number and ``yes`` is
text, and repeated keys, aliases and tags are errors with their line.
"""

import re
from typing import Any

import yaml

from user_dgl.errors import InputError


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2's core schema."""


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
    """SafeDumper that quotes what `_Loader` would read as another type."""


_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
_Dumper.add_representer(
    float,
    lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:float", repr(value)),
)
# PyYAML writes these line breaks as they are outside double quotes and reads a space.
_Dumper.add_representer(
    str,
    lambda dumper, value: dumper.represent_scalar(
        "tag:yaml.org,2002:str",
        value,
        style='"' if re.search("[\x85\u2028\u2029]", value) else None,
    ),
)


def parse_yaml(text: str, source: str, where: dict | None) -> Any:
    """Plain Python of a YAML text; ``where`` gets ``file:line`` of each key path."""
    lines = where is not None
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if not lines:
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


def _to_plain(loader, node, path, source, where, seen=None):
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
        except ValueError:  # Python reads no number of thousands of digits
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
    """YAML that `parse_yaml` reads back to the same values."""
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
