"""A digest of what a cell reads from files, so that a change of a reader alone makes no row stale.

The readers change often, mostly for files unlike those of the tables. So a row counts as made by
the code after reading, and by the graph, features and labels that were read. ``inputs.csv`` has
their digest for each data set, and that of the code that read them. After a change of this code the
files are read again, once. A run of a table reads its files in any case, as they may have changed.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import pandas as pd

from reproduction.code_digest import reader_digest
from reproduction.files import locked, write_text
from user_dgl.config import Config, NoiseConfig
from user_dgl.config.schema import to_plain
from user_dgl.errors import InputError

Key = TypeVar("Key")
Read = Literal["nothing", "unread", "all"]
FILE = "inputs.csv"
_COLUMNS = ["files", "settings", "reader", "content"]


def content_digests(
    configs: Mapping[Key, Config], results: Path, read: Read = "nothing"
) -> dict[Key, str | None]:
    """For each config, the digest of what it reads from files, or None where this is not known.

    It is not known for synthetic graphs, which are made from the settings, and for files that the
    current code has not read yet.

    Parameters
    ----------
    configs : mapping
    results : Path
        Folder with ``inputs.csv``.
    read : str
        The files to read now, whose digests are kept: ``nothing``, ``unread`` for those that the
        current code has not read yet, or ``all``, which finds files that have changed. Files that
        are missing here are left out.
    """
    asked = {
        key: (_settings(config), reader_digest(config))
        for key, config in configs.items()
        if _reads_files(config)
    }
    waiting = {asked[key]: configs[key] for key in asked} if read != "nothing" else {}
    if read == "unread":
        known = _known(results)
        waiting = {key: config for key, config in waiting.items() if key not in known}
    _record(waiting, results)
    known = _known(results)
    return {key: known.get(asked[key]) if key in asked else None for key in configs}


def _record(waiting: dict[tuple[str, str], Config], results: Path) -> None:
    """Read files by the current code, and keep a digest of each set."""
    rows = []
    for (settings, reader), config in waiting.items():
        try:
            content = _content(config)
        except InputError:
            continue
        rows.append([_files(config), settings, reader, content])
    if not rows:
        return
    with locked(results):
        kept = {row[1]: row for row in [*_read(results).to_numpy().tolist(), *rows]}
        table = pd.DataFrame(sorted(kept.values()), columns=_COLUMNS)
        write_text(results / FILE, table.to_csv(index=False, lineterminator="\n"))


def _reads_files(config: Config) -> bool:
    data = config.data
    # Labels of the LFR benchmark are first written as rows of a table.
    return data.kind != "synthetic" and ".json.gz" not in (data.labels or "")


def _known(results: Path) -> dict[tuple[str, str], str]:
    return {(row[1], row[2]): row[3] for row in _read(results).to_numpy().tolist()}


def _read(results: Path) -> pd.DataFrame:
    file = results / FILE
    return pd.read_csv(file, dtype=str) if file.exists() else pd.DataFrame(columns=_COLUMNS)


def _settings(config: Config) -> str:
    """A digest of the settings that the readers obey."""
    data = replace(config.data, root=None, noise=NoiseConfig(), weight_power=None)
    return _sha(json.dumps([to_plain(data), config.features.categorical], sort_keys=True))


def _files(config: Config) -> str:
    """Names of the files, for people who read the table."""
    data = config.data
    names = (data.path, data.name, data.edges, data.features, data.labels)
    return " ".join(name for name in names if name) or data.kind


def _content(config: Config) -> str:
    """A digest of graph, features and labels."""
    # Imported here because it imports torch, which takes seconds that most calls do not need.
    from user_dgl.data import load_data

    data = load_data(config.data, config.features.categorical)
    graph, feat = data.graph, data.feat
    digest = hashlib.sha256(json.dumps([graph.num_nodes, graph.unit]).encode())
    arrays = [graph.keys, None if graph.weight is None else graph.weight.numpy(), data.labels]
    if feat is not None:
        arrays += [np.array(feat.shape), feat.indptr, feat.indices, feat.data]
    for array in arrays:
        digest.update(b"none" if array is None else array.dtype.str.encode() + array.tobytes())
    return digest.hexdigest()[:12]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
