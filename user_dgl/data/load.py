"""The graph that a config names: `load_data` picks the loader of its kind."""

import os
from pathlib import Path

from user_dgl.config import DataConfig
from user_dgl.data.attributed_graph import (
    AttributedGraph,
    largest_component,
)
from user_dgl.data.edge_list.edges import load_edge_list
from user_dgl.data.formats.npz import load_npz
from user_dgl.data.sets.musae import load_musae
from user_dgl.data.sets.ogb import load_ogb
from user_dgl.data.sets.planetoid import load_planetoid
from user_dgl.data.sets.synthetic import block_model
from user_dgl.data.sets.wiki import load_wiki
from user_dgl.errors import InputError

DATA_VARIABLE = "USER_DGL_DATA"
# Loaders of one file or folder that has to be named.
_BY_PATH = {"musae": load_musae, "ogb": load_ogb}


def data_root(config: DataConfig) -> Path:
    """Folder that relative data paths start from: ``data.root``, else $USER_DGL_DATA, else here."""
    return Path(config.root or os.environ.get(DATA_VARIABLE) or ".").expanduser()


def find_file(root: Path, name: str, key: str) -> Path:
    """A file or folder that a config names.

    Parameters
    ----------
    root : Path
        What a relative name starts from.
    name : str
    key : str
        The key that names it, for messages.

    Raises
    ------
    InputError
        Nothing is there.
    """
    path = root / Path(name).expanduser()
    if not path.exists() and Path(name).is_absolute():
        raise InputError(f"{path}: not found: check the path ({key})")
    if not path.exists():
        raise InputError(
            f"{path}: not found ({key}={name}): give an absolute path, or name the folder it is in "
            f"with data.root or the environment variable {DATA_VARIABLE}"
        )
    return path


def load_data(config: DataConfig) -> AttributedGraph:
    """The clean graph that a config names; noise is added by `user_dgl.perturb`.

    Parameters
    ----------
    config : DataConfig

    Returns
    -------
    AttributedGraph

    Raises
    ------
    InputError
        A key missing for this kind, files missing, malformed or not fitting each other.
    """
    data = _load(config)
    return largest_component(data) if config.largest_component else data


def _load(config: DataConfig) -> AttributedGraph:
    root, kind = data_root(config), config.kind
    needed = {
        "planetoid": "name",
        "dgl": "name",
        "npz": "path",
        "musae": "path",
        "ogb": "path",
        "edge_list": "edges",
    }.get(kind)
    if needed and getattr(config, needed) is None:
        raise InputError(f"data.kind={kind} needs data.{needed}")
    if kind == "synthetic":
        return block_model(config.synthetic)
    if kind == "planetoid":
        return load_planetoid(find_file(root, config.path or "planetoid", "data.path"), config.name)
    if kind == "wiki":
        return load_wiki(find_file(root, config.path or "wiki", "data.path"))
    if kind in _BY_PATH:
        return _BY_PATH[kind](find_file(root, config.path, "data.path"))
    if kind == "npz":
        return load_npz(find_file(root, config.path, "data.path"), config.missing_features)
    if kind == "edge_list":
        files = {
            key: find_file(root, getattr(config, key), f"data.{key}")
            for key in ("edges", "features", "labels")
            if getattr(config, key) is not None
        }
        return load_edge_list(
            **files,
            missing=config.missing_features,
            header=config.header,
            columns=config.columns,
        )
    # DGL takes seconds to import, and most runs do without it.
    from user_dgl.data.sets.dgl_datasets import load_dgl_dataset

    folder = None if config.path is None else find_file(root, config.path, "data.path")
    return load_dgl_dataset(config.name, folder, config.missing_features, config.trusted)
