"""The graph that a config names: `load_data` picks the loader of its kind."""

import os
from dataclasses import replace
from pathlib import Path

from user_dgl.config import DataConfig
from user_dgl.config.data import DATA_KINDS
from user_dgl.config.paths import user_path
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
from user_dgl.runtime.registry import load_object

DATA_VARIABLE = "USER_DGL_DATA"


def data_root(config: DataConfig) -> Path:
    """Folder that relative data paths start from: ``data.root``, else $USER_DGL_DATA, else here."""
    if config.root:
        return user_path(config.root, "data.root")
    return user_path(os.environ.get(DATA_VARIABLE) or ".", DATA_VARIABLE)


def named_files(config: DataConfig) -> list[Path]:
    """Files and folders that the settings name, that of the noise among them."""
    names = {key: getattr(config, key) for key in ("path", "edges", "features", "labels")}
    names["noise.file"] = config.noise.file
    root = data_root(config)
    return [root / user_path(name, f"data.{key}") for key, name in names.items() if name]


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
    given = user_path(name, key)
    path = root / given
    if not path.exists() and given.is_absolute():
        raise InputError(f"{path}: not found: check the path ({key})")
    if not path.exists():
        raise InputError(
            f"{path}: not found ({key}={name}): give an absolute path, or name the folder it is in "
            f"with data.root or the environment variable {DATA_VARIABLE}"
        )
    return path


def load_data(config: DataConfig, categorical: str = "refuse") -> AttributedGraph:
    """The clean graph that a config names; noise is added by `user_dgl.perturb`.

    Parameters
    ----------
    config : DataConfig
    categorical : str
        ``features.categorical``: treatment of columns of text among the features.

    Returns
    -------
    AttributedGraph

    Raises
    ------
    InputError
        A key missing for this kind, files missing, malformed or not fitting each other.
    """
    kind = DATA_KINDS[config.kind]
    if kind.needs is not None and getattr(config, kind.needs) is None:
        raise InputError(f"data.kind={config.kind} needs data.{kind.needs}")
    more = (categorical,) if kind.categories else ()
    data = load_object(kind.load)(config, data_root(config), *more)
    if data.graph.weight is not None:
        data = _with_weights(data, config.weights != "ignore")
    return largest_component(data) if config.largest_component else data


def _with_weights(data: AttributedGraph, used: bool) -> AttributedGraph:
    """The data with a note on the weights of the edges, which are removed if they are not used."""
    graph = data.graph
    assert graph.weight is not None
    low, high = (float(end) * graph.unit for end in (graph.weight.min(), graph.weight.max()))
    note = f"edges have weights of {low:g} to {high:g}"
    if used:
        note += ", which are used (data.weights=ignore counts each edge as 1)"
    else:
        note += ", which are ignored (data.weights=ignore)"
        graph = replace(graph, weight=None)
    return replace(data, graph=graph, notes=(*data.notes, note))


# One function for each kind of data: from the settings to the arguments of its loader.


def planetoid(config: DataConfig, root: Path) -> AttributedGraph:
    """Kind ``planetoid``, by default in the folder of that name."""
    folder = find_file(root, config.path or "planetoid", "data.path")
    return load_planetoid(folder, _set(config.name))


def wiki(config: DataConfig, root: Path) -> AttributedGraph:
    """Kind ``wiki``, by default in the folder of that name."""
    return load_wiki(find_file(root, config.path or "wiki", "data.path"))


def npz(config: DataConfig, root: Path) -> AttributedGraph:
    """Kind ``npz``."""
    return load_npz(find_file(root, _set(config.path), "data.path"), config.missing_features)


def musae(config: DataConfig, root: Path) -> AttributedGraph:
    """Kind ``musae``."""
    return load_musae(find_file(root, _set(config.path), "data.path"))


def ogb(config: DataConfig, root: Path) -> AttributedGraph:
    """Kind ``ogb``."""
    return load_ogb(find_file(root, _set(config.path), "data.path"))


def edge_list(config: DataConfig, root: Path, categorical: str = "refuse") -> AttributedGraph:
    """Kind ``edge_list``: one's own files."""

    def found(name: str | None, key: str) -> Path | None:
        return None if name is None else find_file(root, name, f"data.{key}")

    return load_edge_list(
        find_file(root, _set(config.edges), "data.edges"),
        found(config.features, "features"),
        found(config.labels, "labels"),
        missing=config.missing_features,
        header=config.header,
        columns=config.columns,
        separator=config.separator,
        comment=config.comment,
        layout=config.layout,
        weights=config.weights,
        categorical=categorical,
    )


def dgl(config: DataConfig, root: Path) -> AttributedGraph:
    """Kind ``dgl``."""
    # DGL takes seconds to import, and most runs do without it.
    from user_dgl.data.sets.dgl_datasets import load_dgl_dataset

    folder = None if config.path is None else find_file(root, config.path, "data.path")
    return load_dgl_dataset(_set(config.name), folder, config.missing_features, config.trusted)


def synthetic(config: DataConfig, root: Path) -> AttributedGraph:
    """Kind ``synthetic``."""
    return block_model(config.synthetic)


def _set(value: str | None) -> str:
    """The value of a key that `DataKind.needs` names."""
    assert value is not None
    return value
