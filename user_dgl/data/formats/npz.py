"""Read and write graphs in ``.npz`` files. Arrays of objects are read by the restricted unpickler.

Four layouts can be read:

- the parts of CSR matrices: ``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``, and
  perhaps ``attr_*`` or a dense ``attr_matrix``, and ``labels`` (gnn-benchmark, Pro-GNN);
  `write_npz` adds ``node_ids``;
- whole matrices: ``adj_matrix``, and perhaps ``node_attr`` and ``node_label`` (GraphData);
- lists of edges: ``edges`` (M, 2), each edge once, or ``edge_index`` (2, M), each direction, and
  perhaps ``edge_weight`` (M,), ``num_nodes``, ``node_features`` and ``node_labels``, or ``x`` and
  ``y`` (the heterophilous graphs of Platonov et al., 2023; arrays of PyTorch Geometric);
- a file of ``scipy.sparse.save_npz``, which contains only an adjacency matrix.
"""

import re
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import AttributedGraph, check_text, index_labels, one_line
from user_dgl.data.reading.files import check_room, file_size
from user_dgl.data.reading.matrices import (
    as_features,
    check_indices,
    check_shape,
    csr_from_parts,
    graph_from_entries,
    graph_from_matrix,
    graph_from_pairs,
    weighed,
)
from user_dgl.data.reading.unpickle import restricted_load
from user_dgl.errors import InputError
from user_dgl.graph import Graph

_PARTS = ("data", "indices", "indptr", "shape")
# An array, or the object in a pickled array.
Member: TypeAlias = np.ndarray | sp.csr_matrix | dict | list
# Names of the features and labels beside a list of edges.
_FEATURES, _LABELS = ("node_features", "x", "features"), ("node_labels", "y", "labels")
# Arrays that hold neither edges nor features nor labels, as far as anybody knows.
_OTHERS = re.compile(r"(node|attr|class)_names|idx_to_\w+|idx_(train|val|test)|metadata|\w*masks?")


def load_npz(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load graph, features and labels of an npz file in any of the four layouts.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Returns
    -------
    AttributedGraph
        Undirected. Features or labels are None if the file has none.

    Raises
    ------
    InputError
        The file is missing or damaged, or has another layout; a pickle in it names other things
        than arrays and CSR matrices; features or labels do not fit the adjacency matrix.
    """
    names = member_names(path)
    read: set[str] = set()

    def member(*choices: str) -> np.ndarray | sp.spmatrix | None:
        """The first of these members that the file has."""
        name = next((name for name in choices if name in names), None)
        read.add(name or "")
        return None if name is None else _array_or_matrix(read_member(path, name), path)

    def parts(prefix: str) -> sp.csr_matrix:
        read.update(prefix + part for part in _PARTS)
        return _from_parts(path, names, prefix)

    features = labels = node_ids = None
    if "adj_data" in names:
        graph, notes = graph_from_matrix(parts("adj_"), path)
        features = parts("attr_") if "attr_data" in names else member("attr_matrix")
        labels, node_ids = member("labels"), member("node_ids")
    elif "adj_matrix" in names:
        graph, notes = graph_from_matrix(member("adj_matrix"), path)
        features, labels = member("node_attr"), member("node_label")
    elif "format" in names:
        graph, notes = graph_from_matrix(load_sparse(path), path)
        read.update(("format", "shape", "data", "indices", "indptr", "row", "col", "offsets"))
    elif names & {"edges", "edge_index"}:
        features, labels = member(*_FEATURES), member(*_LABELS)
        number = member("num_nodes")
        known = [each.shape[0] for each in (features, labels) if each is not None and each.ndim]
        num_nodes = known[0] if number is None and known else number
        graph, notes = _from_edges(
            path, member("edges", "edge_index"), "edges" in names, member("edge_weight"), num_nodes
        )
    else:
        raise InputError(
            f"{path}: holds {', '.join(sorted(names)) or 'nothing'}: expected adj_data, "
            "adj_indices, adj_indptr, adj_shape; or adj_matrix; or edges or edge_index; or a "
            "scipy.sparse.save_npz file"
        )
    unread = sorted(name for name in names - read if not _OTHERS.fullmatch(name))
    if unread:
        notes.append(
            f"arrays not read: {', '.join(unread)}; features are read from attr_* or attr_matrix "
            "beside adj_data, node_attr beside adj_matrix, and node_features or x beside edges"
        )
    if labels is not None:
        if labels.shape == (graph.num_nodes, 1):
            labels = labels[:, 0]
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
    ids = None
    if node_ids is not None:
        if np.shape(node_ids) != (graph.num_nodes,):
            raise InputError(
                f"{path}: node_ids: expected one for each of the {graph.num_nodes} nodes"
            )
        text = np.asarray(node_ids).astype(str)
        check_text(text, f"{path}: node_ids")
        ids = tuple(text.tolist())
        if len(set(ids)) < len(ids):
            raise InputError(f"{path}: node_ids: some are given twice: make them distinct")
    return AttributedGraph(graph, feat, labels, ids, tuple(notes))


def write_npz(file: BinaryIO, data: AttributedGraph) -> None:
    """Write a graph in the first layout of this module.

    The file is not compressed, so that it loads as fast as the disk allows.
    """
    arrays = _parts(data.graph.to_scipy(data.graph.data_weight), "adj_")
    if data.feat is not None:
        arrays |= _parts(data.feat, "attr_")
    if data.labels is not None:
        arrays["labels"] = data.labels
    if data.node_ids is not None:
        arrays["node_ids"] = np.array(data.node_ids)
    # NumPy's type stubs take the arrays for the parameter allow_pickle.
    np.savez(file, **arrays)  # type: ignore[arg-type]


def _parts(matrix: sp.csr_matrix, prefix: str) -> dict[str, np.ndarray]:
    values = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape))
    return {prefix + part: value for part, value in zip(_PARTS, values, strict=True)}


def load_adjacency(path: Path) -> tuple[Graph, list[str]]:
    """Load the graph of an adjacency matrix in a file of ``scipy.sparse.save_npz``.

    Returns
    -------
    Graph, list of str
        The graph is made symmetric. The notes say what was cleaned, one line each.

    Raises
    ------
    InputError
        `load_sparse` failed, or the matrix is not an adjacency matrix.
    """
    return graph_from_matrix(load_sparse(path), path)


def load_sparse(path: Path) -> sp.csr_matrix:
    """Load a sparse matrix from a file of ``scipy.sparse.save_npz``, and check its indices.

    Raises
    ------
    InputError
        The file is missing or damaged, or is not such a file.
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
    except Exception as error:  # SciPy, NumPy and zipfile raise many kinds on damaged bytes
        raise InputError(
            f"{path}: not a valid sparse matrix ({one_line(error)}): create it again"
        ) from None


def member_names(path: Path) -> set[str]:
    """Return the names of the arrays in an npz file, and check that they all fit in memory.

    Raises
    ------
    InputError
        The file is unreadable or not an npz file, or the available memory is too small.
    """
    file_size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            # A member cannot evade this check with a false size: reading it stops at that size.
            check_room(sum(member.file_size for member in archive.infolist()), path)
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: check the path") from None
    except Exception as error:
        raise InputError(f"{path}: not an npz file ({one_line(error)}): create it again") from None


def _from_parts(path: Path, names: set[str], prefix: str) -> sp.csr_matrix:
    missing = [prefix + part for part in _PARTS if prefix + part not in names]
    if missing:
        raise InputError(f"{path}: lacks {', '.join(missing)}: expected all parts of a CSR matrix")
    data, indices, indptr, shape = (read_member(path, prefix + part) for part in _PARTS)
    return csr_from_parts(data, indices, indptr, shape, path)


def _from_edges(
    path: Path,
    ends: np.ndarray | sp.spmatrix | None,
    once: bool,
    weight: np.ndarray | sp.spmatrix | None,
    num_nodes: Any,
) -> tuple[Graph, list[str]]:
    """Make a graph of a list of edges, and notes.

    ``once``: each edge is listed once, in a row; else each direction is, in a column. ``num_nodes``
    None: the number of nodes is that of the largest node in the list.
    """
    name, place, shape = ("edges", 1, "(M, 2)") if once else ("edge_index", 0, "(2, M)")
    if not isinstance(ends, np.ndarray) or ends.dtype.kind not in "iu":
        raise InputError(f"{path}: {name}: expected an array of whole numbers, shape {shape}")
    if ends.ndim != 2 or ends.shape[place] != 2:
        raise InputError(f"{path}: {name} of shape {ends.shape}: expected {shape}")
    ends = ends.T if once else ends
    if num_nodes is None:
        num_nodes = int(ends.max()) + 1 if ends.size else 0
    number = np.asarray(num_nodes)
    if number.dtype.kind not in "iu" or number.size != 1 or number.min() < 0:
        raise InputError(f"{path}: num_nodes: expected a whole number of 0 or more")
    num_nodes = int(number.item())
    check_shape((num_nodes, num_nodes), path)
    notes: list[str] = []
    if weight is not None:
        ends, weight, notes = weighed(ends, np.asarray(weight), f"{path}: edge_weight")
    make = graph_from_pairs if once else graph_from_entries
    try:
        graph, more = make(num_nodes, ends[0], ends[1], weight)
    except InputError as error:
        raise InputError(f"{path}: {name} and {num_nodes} nodes: {error}") from None
    return graph, [*notes, *more]


def _array_or_matrix(value: Member | None, path: Path) -> np.ndarray | sp.spmatrix | None:
    if isinstance(value, (dict, list)):
        raise InputError(f"{path}: holds a {type(value).__name__}, expected arrays or matrices")
    return value


def read_member(path: Path, name: str) -> Member:
    """Read the array of a member, or the object in it if it is pickled.

    Raises
    ------
    InputError
        The member is damaged, or is a pickle of other things than arrays, CSR matrices, dicts and
        lists.
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
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path}: {name}: damaged ({one_line(error)}): download or create it again"
        ) from None
