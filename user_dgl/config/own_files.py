"""Settings of commands whose files are given as options, without a config."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from user_dgl.config.config import Config
from user_dgl.config.load import config_name, data_name, default_config, load_config
from user_dgl.config.paths import user_path
from user_dgl.errors import InputError

# Settings of the files that `user-dgl clean` takes as options, and those of the data that it does
# not read.
_FILES_OF_CLEAN = ("data.edges", "data.features")
_UNREAD_BY_CLEAN = ("kind", "labels", "name", "noise", "path", "root", "synthetic", "trusted")


class OwnFiles(NamedTuple):
    """The options ``--edges``, ``--features`` and ``--labels`` of a command."""

    edges: str | None = None
    features: str | None = None
    labels: str | None = None


def run_settings(
    words: Sequence[str], files: OwnFiles, clusters: str | None = None
) -> tuple[str | Path, list[str], str]:
    """Return config, overrides and name of a training whose files may be given as options.

    Parameters
    ----------
    words : sequence of str
        A CONFIG, which is optional with ``files.edges``, and overrides.
    files : OwnFiles
    clusters : str, optional
        The option ``--clusters``.

    Raises
    ------
    InputError
        Neither a config nor a file of edges is given, or an option is malformed.
    """
    given: list[str] = list(words)
    file = None if not given or (files.edges and "=" in given[0]) else given.pop(0)
    if file is None and files.edges is None:
        for key in ("features", "labels"):
            if getattr(files, key) is not None:
                raise InputError(f"--{key} goes with --edges FILE, or with a CONFIG")
        raise InputError("train needs a CONFIG, or --edges FILE: see user-dgl train --help")
    overrides = []
    if files.edges is not None:
        overrides.append("data.kind=edge_list")
    for key, path in files._asdict().items():
        if path == "":
            raise InputError(f"--{key}: names no file")
        if path is not None:
            # Relative to the working directory and not to data.root, and quoted as YAML.
            full = os.path.abspath(user_path(path, f"--{key}"))
            overrides.append(f"data.{key}={json.dumps(full, ensure_ascii=False)}")
    if clusters is not None:
        if not re.fullmatch("auto|[1-9][0-9]*", clusters):
            raise InputError(
                f"--clusters {clusters}: expected a whole number of 2 or more, or auto"
            )
        overrides.append(f"model.num_clusters={clusters}")
    if files.edges is not None:
        name = data_name(files.edges)
    elif file is not None:
        name = config_name(file)
    return default_config() if file is None else file, overrides + given, name


def clean_settings(words: Sequence[str], files: OwnFiles) -> Config:
    """Return the settings of ``user-dgl clean``, which reads the sections of the data only.

    Parameters
    ----------
    words : sequence of str
        Overrides ``data.key=value`` and ``features.categorical=value``.
    files : OwnFiles
        ``edges`` must be given.

    Raises
    ------
    InputError
        An override is none of these, or an option is malformed.
    """
    for word in words:
        name = word.partition("=")[0]
        if "=" not in word:
            raise InputError(f"clean: {word!r}: expected section.key=value; files are options")
        if name in _FILES_OF_CLEAN:
            raise InputError(f"clean: {name}: give the file as --{name.removeprefix('data.')}")
        if name != "features.categorical" and (
            not name.startswith("data.") or name.split(".")[1] in _UNREAD_BY_CLEAN
        ):
            raise InputError(
                f"clean: {name}: not read; the settings of clean are those of the reading of "
                "files, data.columns and others, and features.categorical"
            )
    _, settings, _ = run_settings(words, files)
    return load_config(None, settings)


def inspected_configs(words: Sequence[str], files: OwnFiles) -> list[tuple[str, Config]]:
    """Return the name and the settings of each data set that ``user-dgl inspect`` is asked about.

    Parameters
    ----------
    words : sequence of str
        Files of edges or YAML files, and overrides that hold for all of them.
    files : OwnFiles
        Their file of edges replaces that of a YAML file, as in a training.

    Raises
    ------
    InputError
        No file is named, or an option is given that belongs to one of several files.
    """
    named = [word for word in words if "=" not in word or Path(word).exists()]
    overrides = [word for word in words if word not in named]
    if files.edges is not None:
        if len(named) > 1 or not all(map(_is_config, named)):
            raise InputError(
                f"inspect: --edges {files.edges} beside {' '.join(named)}: it replaces the edges "
                "of one CONFIG; to inspect several files, name them without --edges"
            )
        config, settings, _ = run_settings([*named, *overrides], files)
        return [(files.edges, load_config(config, settings))]
    if not named:
        raise InputError("inspect: name a file of edges or a CONFIG")
    if len(named) > 1 and (files.features or files.labels):
        raise InputError("inspect: --features and --labels belong to one FILE, not to several")
    configs = []
    for name in named:
        if _is_config(name):
            config, settings, _ = run_settings([name, *overrides], files)
        else:
            config, settings, _ = run_settings(overrides, files._replace(edges=name))
        configs.append((name, load_config(config, settings)))
    return configs


def _is_config(name: str) -> bool:
    return Path(name).suffix.lower() in (".yaml", ".yml")
