"""Graphs in ``.npz`` files; object arrays go through the restricted unpickler.

Three layouts are read: CSR parts under ``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``
with ``attr_*`` and ``labels`` (gnn-benchmark, Pro-GNN; `write_npz` adds ``node_ids``); whole
matrices under ``adj_matrix`` with ``node_attr`` and ``node_label`` (GraphData); and
``scipy.sparse.save_npz``, an adjacency alone.
"""

import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import AttributedGraph, check_text, index_labels, one_line
from user_dgl.data.reading.files import check_room, file_size
from user_dgl.data.reading.matrices import (
    as_features,
    check_indices,
    check_shape,
    csr_from_parts,
    graph_from_matrix,
)
from user_dgl.data.reading.unpickle import restricted_load
from user_dgl.errors import InputError
from user_dgl.graph import Graph

_PARTS = ("data", "indices", "indptr", "shape")


def load_npz(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Graph, features and labels of an npz file, whichever layout it has.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Returns
    -------
    AttributedGraph
        Undirected, every edge of weight 1; features and labels are None where the file has none.

    Raises
    ------
    InputError
        File missing or damaged, unknown layout, a pickle that names anything but arrays and CSR
        matrices, features or labels that do not fit the adjacency.
    """
    names = member_names(path)
    node_ids = None
    if "adj_data" in names:
        adjacency = _from_parts(path, names, "adj_")
        features = _from_parts(path, names, "attr_") if "attr_data" in names else None
        labels = read_member(path, "labels") if "labels" in names else None
        node_ids = read_member(path, "node_ids") if "node_ids" in names else None
    elif "adj_matrix" in names:
        adjacency, features, labels = (
            read_member(path, name) if name in names else None
            for name in ("adj_matrix", "node_attr", "node_label")
        )
    elif "format" in names:
        adjacency, features, labels = load_sparse(path), None, None
    else:
        raise InputError(
            f"{path}: holds {', '.join(sorted(names)) or 'nothing'}: expected adj_data, "
            "adj_indices, adj_indptr, adj_shape; or adj_matrix; or a scipy.sparse.save_npz file"
        )
    for value in (adjacency, features, labels, node_ids):
        if isinstance(value, (dict, list)):
            raise InputError(f"{path}: holds a {type(value).__name__}, expected arrays or matrices")
    graph, notes = graph_from_matrix(adjacency, path)
    if labels is not None:
        if labels.shape != (graph.num_nodes,):
            raise InputError(
                f"{path}: labels of shape {labels.shape}: expected one for each of the "
                f"{graph.num_nodes} nodes"
            )
        labels = index_labels(labels, path)
    feat = None if features is None else as_features(features, path, missing, notes)
    if feat is not None and feat.shape[0] != graph.num_nodes:
        raise InputError(
            f"{path}: {feat.shape[0]} feature rows for {graph.num_nodes} nodes: they must agree"
        )
    if node_ids is not None:
        if np.shape(node_ids) != (graph.num_nodes,):
            raise InputError(
                f"{path}: node_ids: expected one for each of the {graph.num_nodes} nodes"
            )
        node_ids = np.asarray(node_ids).astype(str)
        check_text(node_ids, f"{path}: node_ids")
        node_ids = tuple(node_ids.tolist())
        if len(set(node_ids)) < len(node_ids):
            raise InputError(f"{path}: node_ids: some are given twice: make them distinct")
    return AttributedGraph(graph, feat, labels, node_ids, tuple(notes))


def write_npz(file: BinaryIO, data: AttributedGraph) -> None:
    """A graph in the first layout of this module, uncompressed: it reloads at the disk's speed."""
    arrays = _parts(data.graph.to_scipy(), "adj_")
    if data.feat is not None:
        arrays |= _parts(data.feat, "attr_")
    if data.labels is not None:
        arrays["labels"] = data.labels
    if data.node_ids is not None:
        arrays["node_ids"] = np.array(data.node_ids)
    np.savez(file, **arrays)


def _parts(matrix: sp.csr_matrix, prefix: str) -> dict[str, np.ndarray]:
    values = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape))
    return {prefix + part: value for part, value in zip(_PARTS, values, strict=True)}


def load_adjacency(path: Path) -> tuple[Graph, list[str]]:
    """The graph of an adjacency written by ``scipy.sparse.save_npz``, made symmetric.

    Returns
    -------
    Graph, list of str
        Notes say what was cleaned, one line each.

    Raises
    ------
    InputError
        As `load_npz`.
    """
    return graph_from_matrix(load_sparse(path), path)


def load_sparse(path: Path) -> sp.csr_matrix:
    """A sparse matrix written by ``scipy.sparse.save_npz``, its indices checked.

    Raises
    ------
    InputError
        File missing or damaged, or no such matrix.
    """
    names = member_names(path)
    if "format" not in names:
        raise InputError(
            f"{path}: holds {', '.join(sorted(names)) or 'nothing'}: expected a matrix saved with "
            "scipy.sparse.save_npz"
        )
    try:
        matrix = sp.load_npz(path)  # never unpickles
        check_indices(matrix)
        check_shape(matrix.shape, path)
        return sp.csr_matrix(matrix)
    except InputError:
        raise
    except Exception as error:  # the parsers below raise many kinds on damaged bytes
        raise InputError(
            f"{path}: not a valid sparse matrix ({one_line(error)}): make it anew"
        ) from None


def member_names(path: Path) -> set[str]:
    """Names of the arrays in an npz file, all of which fit the memory.

    Raises
    ------
    InputError
        File unreadable or no npz file, or more than fits the memory.
    """
    file_size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            # What is read of a member ends there, so a false size gains nothing.
            check_room(sum(member.file_size for member in archive.infolist()), path)
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: check the path") from None
    except Exception as error:
        raise InputError(f"{path}: not an npz file ({one_line(error)}): make it anew") from None


def _from_parts(path: Path, names: set[str], prefix: str) -> sp.csr_matrix:
    missing = [prefix + part for part in _PARTS if prefix + part not in names]
    if missing:
        raise InputError(f"{path}: lacks {', '.join(missing)}: expected all parts of a CSR matrix")
    return csr_from_parts(*(read_member(path, prefix + part) for part in _PARTS), path)


def read_member(path: Path, name: str):
    """Array of a member, or the object that a pickled one holds.

    Raises
    ------
    InputError
        Member damaged, or a pickle of anything but arrays, CSR matrices and lists.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            with archive.open(f"{name}.npy") as file:
                version = np.lib.format.read_magic(file)
                if version == (1, 0):
                    dtype = np.lib.format.read_array_header_1_0(file)[2]
                elif version == (2, 0):
                    dtype = np.lib.format.read_array_header_2_0(file)[2]
                else:
                    raise ValueError(f"npy version {version}")
                if dtype.hasobject:
                    return restricted_load(file, f"{path}: {name}")
            with archive.open(f"{name}.npy") as file:
                return np.lib.format.read_array(file, allow_pickle=False)
    except InputError:  # a ValueError too
        raise
    except Exception as error:
        raise InputError(
            f"{path}: {name}: damaged ({one_line(error)}): get or make it anew"
        ) from None
