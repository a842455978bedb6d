"""A digest of the code that computes a cell, so that cells older than the code can be told.

The code of a cell is what its entry function reaches in the package and in this folder: the
definitions at the top of a module (functions, classes, constants) that it names, those that these
name, and so on, found in the syntax trees without running anything. Of a registry only the entries
that the cell's settings name are followed. Comments, docstrings, layout and the texts of errors do
not count. Where it is known what the cell reads from files (`reproduction.input_digest`), this
counts in place of the code that reads it.

Of the settings count the methods of their sections, and the defaults of the keys that the code
reads: a new key, whose default changes nothing, leaves all cells as they are whose code does not
read it.
"""

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from user_dgl.config import Config, NoiseConfig, load_config
from user_dgl.config.schema import to_plain

Symbol = tuple[str, str]

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = {"user_dgl": _ROOT, "reproduction": _ROOT / "tools"}
_SETTINGS = "user_dgl.config"

# The functions that compute a cell, by `Cell.by`.
_ENTRIES = {
    "user-dgl": (("user_dgl.pipeline.train", "train"),),
    "floors": (("reproduction.inputs", "write_floors"),),
    "rival": (
        ("reproduction.inputs", "write_graph"),
        ("reproduction.rivals", "main"),
        ("user_dgl.evaluation.label_metrics", "clustering_metrics"),
    ),
    "pyagc": (
        ("reproduction.inputs", "write_graph"),
        ("reproduction.pyagc_models", "main"),
        ("user_dgl.evaluation.label_metrics", "clustering_metrics"),
    ),
    "defence": (("reproduction.defence", "clean"), ("reproduction.defence", "train")),
    "deeprobust": (
        ("reproduction.defence", "write_inputs"),
        ("reproduction.deeprobust_models", "main"),
    ),
    # The attack of a cell, which is made once for all methods.
    "perturb": (
        ("user_dgl.pipeline.inputs", "load_noisy_data"),
        ("user_dgl.perturb.stored", "write_graph"),
    ),
}
# Functions that compute a cell too, with these settings.
_FURTHER: dict[Symbol, Callable[[Config], bool]] = {
    ("reproduction.inputs", "write_labels"): lambda config: (
        ".json.gz" in (config.data.labels or "")
    ),
}
# Registries, and the keys that a cell takes from them.
_REGISTRIES: dict[Symbol, Callable[[str, str, Config], set[str]]] = {
    ("user_dgl.config.data", "DATA_KINDS"): lambda by, method, config: {config.data.kind},
    ("user_dgl.config.data", "NOISE_KINDS"): lambda by, method, config: {
        config.data.noise.kind,
        # The cell reads the attacked graph from a file.
        *(["file"] if config.data.noise.kind == "metattack" and by == "user-dgl" else []),
    },
    ("user_dgl.config.model", "ENCODERS"): lambda by, method, config: (
        {config.model.encoder} if by in ("user-dgl", "defence", "deeprobust") else set()
    ),
    ("user_dgl.baselines.registry", "BASELINES"): lambda by, method, config: {config.model.kind},
    ("user_dgl.data.formats.registry", "FORMATS"): lambda by, method, config: {
        "".join(Path(config.data.edges or "").suffixes[:1])
    },
    ("reproduction.rivals", "RIVALS"): lambda by, method, config: {method},
    ("reproduction.pyagc_models", "MODELS"): lambda by, method, config: {method},
    ("reproduction.deeprobust_models", "MODELS"): lambda by, method, config: {method},
}
# Modules that are reached but not run, except with these settings.
_ONLY_WITH: dict[str, Callable[[Config], bool]] = {
    "user_dgl.baselines.trainer": lambda config: config.model.kind != "user",
    "user_dgl.links": lambda config: config.task == "link_prediction",
    "user_dgl.training.partition_trainer": lambda config: config.train.mode == "partition",
}
# What reads the files of a cell.
_READER: Symbol = ("user_dgl.data.load", "load_data")
_NAMED = re.compile(r"(user_dgl(?:\.\w+)+):(\w+)")


def code_digest(by: str, method: str, config: Config, content: str | None = None) -> str:
    """The digest of the code of a cell.

    Parameters
    ----------
    by, method : str
        As in `Cell`.
    config : Config
        Of the cell; for a baseline as `resolve_baseline` returns it.
    content : str, optional
        Digest of what the cell reads from files. Without it, the code that reads them counts.
    """
    return _digest(_ENTRIES[by], *_rules(by, method, config), content)


def reader_digest(config: Config) -> str:
    """The digest of the code that reads the data of these settings."""
    # Nothing else than the data counts.
    config = replace(Config(), data=replace(config.data, noise=NoiseConfig()))
    return _digest((_READER,), *_rules("user-dgl", "", config), None)


def symbols(by: str, method: str, config: Config) -> set[Symbol]:
    """The definitions that a cell's digest is made of, as (module, name)."""
    return set(_reached(_ENTRIES[by], *_rules(by, method, config)))


def _rules(
    by: str, method: str, config: Config
) -> tuple[tuple, tuple[str, ...], tuple[Symbol, ...]]:
    """The keys that a cell takes from each registry, modules not run, and further functions run."""
    picked = tuple(
        (name, frozenset(pick(by, method, config))) for name, pick in _REGISTRIES.items()
    )
    left_out = tuple(name for name, holds in _ONLY_WITH.items() if not holds(config))
    return picked, left_out, tuple(symbol for symbol, holds in _FURTHER.items() if holds(config))


@cache
def _digest(
    entries: tuple[Symbol, ...],
    picked: tuple,
    left_out: tuple[str, ...],
    further: tuple[Symbol, ...],
    content: str | None,
) -> str:
    reached = _reached(entries, picked, left_out, further, () if content is None else (_READER,))
    read = {name for definition in reached.values() for name in definition.attributes}
    code = [[*symbol, definition.digest] for symbol, definition in sorted(reached.items())]
    defaults = [[path, value] for path, value in _defaults() if path.split(".")[-1] in read]
    return _sha(json.dumps([code, defaults, *([content] if content else [])]))[:12]


def _reached(
    entries: tuple[Symbol, ...],
    picked: tuple,
    left_out: tuple[str, ...],
    further: tuple[Symbol, ...],
    ends: tuple[Symbol, ...] = (),
) -> "dict[Symbol, _Definition]":
    """Follow the names from the entries of a cell up to ``ends``, and return each definition."""
    rules: dict[Symbol, frozenset[str]] = dict(picked)
    found: dict[Symbol, _Definition] = {}
    waiting = [*entries, *further]
    while waiting:
        symbol = waiting.pop()
        module, name = symbol
        not_run = any(f"{module}.".startswith(f"{each}.") for each in left_out)
        if symbol in found or symbol in ends or not_run:
            continue
        found[symbol] = _definition(module, name, rules.get(symbol))
        waiting += found[symbol].named
        waiting.append((module, ""))  # what runs when the module is imported
    return {symbol: definition for symbol, definition in found.items() if definition.digest}


@dataclass(frozen=True)
class _Definition:
    """What a name at the top of a module stands for.

    Attributes
    ----------
    digest : str
        Of its statements; empty if there are none.
    attributes : frozenset of str
        Names that stand behind a dot in them.
    named : tuple of Symbol
        What they name.
    """

    digest: str
    attributes: frozenset[str]
    named: tuple[Symbol, ...]


@cache
def _definition(module: str, name: str, keys: frozenset[str] | None) -> _Definition:
    """Read a definition; of a registry, ``keys`` are those that count."""
    read = _read(module)
    # A package hands on what its modules define.
    named = set(read.imports.get(name, ()))
    if name == "*":
        named |= {(module, each) for each in (*read.definitions, *read.imports)}
    statements = read.definitions.get(name, [])
    if keys is not None:
        statements = [_only(each, keys) for each in statements]
    elif module.startswith(_SETTINGS):
        # The values of settings have a digest of their own; their sections have methods.
        statements = [] if name else _methods(module)
        named |= {(each, "") for each in _settings_modules()}
    attributes = set()
    for statement in statements:
        named |= set(_named(statement, read))
        nodes = ast.walk(statement)
        attributes |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    digest = _sha(json.dumps([_plain(each) for each in statements])) if statements else ""
    return _Definition(digest, frozenset(attributes), tuple(sorted(named)))


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class _Module:
    """The top of a module.

    Attributes
    ----------
    name : str
    definitions : dict
        Statements that define a name, by name; those that define none under the empty name.
    imports : dict
        What a name stands for that is imported anywhere in the module. The name ``*`` of a symbol
        stands for all that its module has.
    """

    name: str
    definitions: dict[str, list[ast.stmt]]
    imports: dict[str, set[Symbol]]


@cache
def _read(module: str) -> _Module:
    file = _file(module)
    assert file is not None, module
    tree = ast.parse(file.read_text(encoding="utf-8"))
    read = _Module(module, {}, {})
    for name, symbol in _imports(tree):
        read.imports.setdefault(name, set()).add(symbol)
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom) or _never_counts(statement):
            continue
        for name in _defined(statement) or [""]:
            read.definitions.setdefault(name, []).append(statement)
    return read


def _imports(tree: ast.AST) -> Iterator[tuple[str, Symbol]]:
    """Yield each name that is imported from one of the packages, and what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and _file(node.module):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                origin = _lazy().get(alias.name) if node.module == "user_dgl" else None
                if _file(whole):
                    yield alias.asname or alias.name, (whole, "*")
                else:
                    yield alias.asname or alias.name, (origin or node.module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _file(alias.name):
                    yield alias.asname or alias.name.split(".")[0], (alias.name, "*")


@cache
def _lazy() -> dict[str, str]:
    """Names that the package imports on first access, and the module of each."""
    for statement in ast.parse((_ROOT / "user_dgl/__init__.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "_LAZY":
            return ast.literal_eval(statement.value)
    return {}


def _named(statement: ast.stmt, module: _Module) -> Iterator[Symbol]:
    """Yield the definitions that a statement names."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield from module.imports.get(node.id, ())
            if node.id in module.definitions:
                yield module.name, node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = _NAMED.fullmatch(node.value)
            if named:
                yield named[1], named[2]


def _defined(statement: ast.stmt) -> list[str]:
    """Return the names that a statement defines at the top of a module."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    below = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
    return [name for child in below for name in _defined(child)]


def _never_counts(statement: ast.stmt) -> bool:
    """Whether a statement is a text, or the start of a script."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.If) and ast.unparse(statement.test).startswith("__name__")


def _only(statement: ast.stmt, keys: frozenset[str]) -> ast.stmt:
    """The definition of a registry with these keys alone."""
    assert isinstance(statement, ast.Assign | ast.AnnAssign)
    table = statement.value
    assert isinstance(table, ast.Dict)
    kept = [
        (key, value)
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and key.value in keys
    ]
    return ast.Expr(ast.Dict([key for key, _ in kept], [value for _, value in kept]))


def _methods(module: str) -> list[ast.stmt]:
    """Methods of the sections of the settings; their checks change no result."""
    return [
        method
        for statements in _read(module).definitions.values()
        for statement in statements
        if isinstance(statement, ast.ClassDef)
        for method in statement.body
        if isinstance(method, ast.FunctionDef) and method.name != "__post_init__"
    ]


@cache
def _settings_modules() -> list[str]:
    folder = _ROOT / _SETTINGS.replace(".", "/")
    names = [file.stem for file in sorted(folder.glob("*.py")) if file.stem != "__init__"]
    # These read, check and describe settings. What comes out has a digest of its own.
    return [f"{_SETTINGS}.{name}" for name in names if name not in ("schema", "strict_yaml")]


@cache
def _defaults() -> list[tuple[str, object]]:
    """Path and default of each key of the settings."""

    def leaves(plain: dict, prefix: str) -> Iterator[tuple[str, object]]:
        for name, value in plain.items():
            yield from (
                leaves(value, f"{prefix}{name}.")
                if isinstance(value, dict) and value
                else [(prefix + name, value)]
            )

    return sorted(leaves(to_plain(load_config(None)), ""), key=lambda item: item[0])


@cache
def _file(module: str) -> Path | None:
    """The file of a module of the packages, or None."""
    top = module.split(".")[0]
    if top not in _PACKAGES:
        return None
    path = _PACKAGES[top] / module.replace(".", "/")
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _plain(node: object) -> object:
    """A syntax tree as lists, without places, docstrings and fields that are not set.

    `ast.dump` is not used, because it differs between versions of Python.
    """
    if isinstance(node, list):
        return [_plain(each) for each in node if not _is_docstring(each)]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        # The text of an error does nothing either.
        call = node.exc
        counted = [each for each in call.args if not isinstance(each, ast.JoinedStr | ast.Constant)]
        return ["Raise", *_plain([call.func, *counted, *call.keywords, node.cause])]
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    return [type(node).__name__, *([name, _plain(value)] for name, value in fields)]


def _is_docstring(node: object) -> bool:
    """Whether a statement is a text, which does nothing wherever it stands."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
