"""Read MATLAB files up to version 7: an adjacency matrix, features and labels, found by name."""

import io
import struct
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from user_dgl.data.attributed_graph import UNLABELLED, AttributedGraph, index_labels, one_line
from user_dgl.data.reading.files import check_room, read_bytes, unpacked_size
from user_dgl.data.reading.matrices import (
    as_features,
    check_indices,
    check_shape,
    graph_from_matrix,
)
from user_dgl.data.reading.sandbox import read_in_sandbox
from user_dgl.errors import InputError

# Names of variables in lower case, in order of preference.
ADJACENCY_NAMES = ("w", "network", "a", "adj", "adjacency", "net")
FEATURE_NAMES = ("fea", "x", "features", "attributes", "feat", "attr", "attrb")
LABEL_NAMES = ("gnd", "label", "labels", "y", "group", "class")
_COMPRESSED = 15  # number of the element type miCOMPRESSED
_FED = 2**16  # number of compressed bytes that are unpacked at a time


def load_mat(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load graph, features and labels of a MATLAB file.

    Variables are found by name, in upper or lower case. The adjacency matrix (N, N) is the first
    square matrix of `ADJACENCY_NAMES`. The features (N, F) are the first of `FEATURE_NAMES`. The
    labels are the first of `LABEL_NAMES`, with one value per node or one column per class.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Returns
    -------
    AttributedGraph
        Node i is row i, counted from 0. Features or labels are None if the file has none.

    Raises
    ------
    InputError
        `read_mat` failed, there is no adjacency matrix, or features or labels do not fit it.
    """
    variables = read_mat(path, ADJACENCY_NAMES + FEATURE_NAMES + LABEL_NAMES)
    square = [n for n, v in variables.items() if v.ndim == 2 and v.shape[0] == v.shape[1] > 1]
    adjacency = find(variables, ADJACENCY_NAMES, among=square)
    if adjacency is None:
        raise InputError(
            f"{path}: no square matrix called {', '.join(ADJACENCY_NAMES)}: rename the "
            "adjacency matrix"
        )
    graph, notes = graph_from_matrix(variables[adjacency], path)
    used = {"the adjacency": adjacency}
    features, labels = find(variables, FEATURE_NAMES), find(variables, LABEL_NAMES)
    feat = values = None
    if features is not None:
        used["features"] = features
        feat = as_features(variables[features], f"{path}: {features}", missing, notes)
        if feat.shape[0] != graph.num_nodes:
            remedy = "transpose it" if feat.shape[1] == graph.num_nodes else "they must agree"
            raise InputError(
                f"{path}: {features} has {feat.shape[0]} rows for {graph.num_nodes} nodes: {remedy}"
            )
    if labels is not None:
        values, problem = one_label_a_node(variables[labels], path)
        if values is None:
            notes.append(f"{labels} is not used: {problem}")
        elif len(values) != graph.num_nodes:
            raise InputError(
                f"{path}: {labels} has {len(values)} labels for {graph.num_nodes} nodes: they must "
                "agree"
            )
        else:
            used["labels"] = labels
    notes.append("; ".join(f"{what}: {name}" for what, name in used.items()))
    return AttributedGraph(graph, feat, values, notes=tuple(notes))


def read_mat(path: Path, wanted: tuple[str, ...]) -> dict[str, np.ndarray | sp.csc_matrix]:
    """Read the variables of a MATLAB file whose names are in ``wanted``.

    Parameters
    ----------
    path : Path
    wanted : tuple of str
        Names in lower case. Names in the file may be in any case.

    Returns
    -------
    dict
        At least one variable, by its name in the file.

    Raises
    ------
    InputError
        The file is unreadable, damaged or of version 7.3, or has none of these variables.
    """
    named, variables = read_in_sandbox(_read, path, wanted)
    if not variables:
        raise InputError(
            f"{path}: holds {', '.join(named) or 'nothing'}: expected a variable called "
            f"{', '.join(wanted)}"
        )
    return variables


def _read(path: Path, wanted: tuple[str, ...]) -> tuple[list[str], dict]:
    """Return the names of all variables, and the wanted variables."""
    data = read_bytes(path)
    if b"\x89HDF\r\n" in data[:1024]:
        raise InputError(
            f"{path}: a file of MATLAB's version 7.3 (HDF5): save it again with -v7, or in Python "
            "with scipy.io.savemat"
        )
    try:
        check_room(len(data) + _unpacked(data), path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged files cause errors later, so no warnings
            named = [name for name, _, _ in scipy.io.whosmat(io.BytesIO(data))]
            chosen = [name for name in named if name.lower() in wanted]
            variables = scipy.io.loadmat(io.BytesIO(data), variable_names=chosen) if chosen else {}
        for name in chosen:
            if sp.issparse(variables[name]):
                check_indices(variables[name])
    except InputError:
        raise
    except Exception as error:  # SciPy's parser raises many kinds on damaged bytes
        raise InputError(
            f"{path}: not a MATLAB file up to version 7 ({one_line(error)}): save it again"
        ) from None
    return named, {name: variables[name] for name in chosen}


def find(
    variables: Mapping[str, Any], wanted: tuple[str, ...], among: Iterable[str] | None = None
) -> str | None:
    """Find the variable whose name comes first in ``wanted``.

    Parameters
    ----------
    variables : mapping
        Variables by name.
    wanted : tuple of str
        Names in lower case, in order of preference.
    among : iterable of str, optional
        Names that are considered. None means all variables.

    Returns
    -------
    str or None
        Its name in ``variables``, or None if no name is in ``wanted``.
    """
    ranked = [
        (wanted.index(name.lower()), name)
        for name in (variables if among is None else among)
        if name.lower() in wanted
    ]
    return min(ranked)[1] if ranked else None


def one_label_a_node(values: np.ndarray | sp.spmatrix, path: Path) -> tuple[np.ndarray | None, str]:
    """Convert a variable with labels to one label per node.

    Parameters
    ----------
    values : ndarray or scipy sparse
        A row or a column with one label per node, or a matrix with one column per class.
    path : Path
        Name for messages.

    Returns
    -------
    labels : int64 (N,) or None
        0..C-1, or `UNLABELLED`. None if the nodes do not have one label each.
    problem : str
        The reason for None, else empty.

    Raises
    ------
    InputError
        The labels are not numbers or text, or more memory is needed than is available.
    """
    # A matrix without entries may claim any number of rows.
    check_shape(values.shape, path)
    if values.ndim == 2 and 1 not in values.shape:
        if values.dtype.kind not in "biuf":
            return None, f"a matrix of type {values.dtype}"
        members = sp.csr_matrix(values)
        members.eliminate_zeros()
        given = np.diff(members.indptr)
        if (given > 1).any():
            return None, f"{int((given > 1).sum())} nodes have several labels"
        labels = np.full(len(given), UNLABELLED, dtype=np.int64)
        labels[given == 1] = np.unique(members.indices, return_inverse=True)[1]
        return labels, ""
    values = values if isinstance(values, np.ndarray) else values.toarray()
    values = values.ravel()
    if values.dtype == object:  # a cell array, in which each cell is an array
        values = np.array([v.item() if np.size(v) == 1 else v for v in values], dtype=object)
    return index_labels(values, path), ""


def _unpacked(data: bytes) -> int:
    """Return the unpacked size of the compressed elements of a version 5 file, else 0."""
    if data[126:128] not in (b"IM", b"MI"):
        return 0
    tag = struct.Struct("<II" if data[126:128] == b"IM" else ">II")
    at, size = 128, 0
    while at + tag.size <= len(data):
        kind, length = tag.unpack_from(data, at)
        at += tag.size
        if kind == _COMPRESSED:
            size += unpacked_size(_inflated(data[at : at + length]))
        at += length
    return size


def _inflated(data: bytes) -> Callable[[int], bytes]:
    """Return a function that reads unpacked zlib data and keeps at most a block in memory."""
    inflate, at = zlib.decompressobj(), 0

    def read(most: int) -> bytes:
        nonlocal at
        block = b""
        while not (block or inflate.eof):
            fed = inflate.unconsumed_tail
            if not fed:
                fed, at = data[at : at + _FED], at + _FED
            if not fed:
                break
            block = inflate.decompress(fed, most)
        return block

    return read
