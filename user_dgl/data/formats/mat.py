"""MATLAB files up to version 7: an adjacency with features and labels, by their usual names."""

import io
import struct
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

from user_dgl.data.attributed_graph import UNLABELLED, AttributedGraph, index_labels, one_line
from user_dgl.data.reading.files import check_room, read_bytes, unpacked_size
from user_dgl.data.reading.matrices import as_features, check_indices, graph_from_matrix
from user_dgl.data.reading.sandbox import read_in_sandbox
from user_dgl.errors import InputError

# In order of preference, in lower case.
ADJACENCY_NAMES = ("w", "network", "a", "adj", "adjacency", "net")
FEATURE_NAMES = ("fea", "x", "features", "attributes", "feat", "attr", "attrb")
LABEL_NAMES = ("gnd", "label", "labels", "y", "group", "class")
_COMPRESSED = 15  # type of an element, miCOMPRESSED
_FED = 2**16  # compressed bytes unpacked at a time


def load_mat(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Graph, features and labels of a MATLAB file.

    Parameters
    ----------
    path : Path
        Variables are found by name, whatever their case: `ADJACENCY_NAMES` (N, N), the first that
        is square; `FEATURE_NAMES` (N, F); `LABEL_NAMES`, one a node or one column a class.
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Returns
    -------
    AttributedGraph
        Features or labels are None where the file has none; nodes are the rows, from 0.

    Raises
    ------
    InputError
        As `read_mat`; no adjacency; features or labels that do not fit it.
    """
    variables = read_mat(path, ADJACENCY_NAMES + FEATURE_NAMES + LABEL_NAMES)
    square = [n for n, v in variables.items() if v.ndim == 2 and v.shape[0] == v.shape[1] > 1]
    adjacency = find(variables, ADJACENCY_NAMES, among=square)
    if adjacency is None:
        raise InputError(
            f"{path}: no square matrix called {', '.join(ADJACENCY_NAMES)}: rename the adjacency"
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
        if problem:
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
    """Variables of a MATLAB file whose names, in lower case, are wanted.

    Raises
    ------
    InputError
        File unreadable, damaged, of version 7.3, or with none of them.
    """
    named, variables = read_in_sandbox(_read, path, wanted)
    if not variables:
        raise InputError(
            f"{path}: holds {', '.join(named) or 'nothing'}: expected a variable called "
            f"{', '.join(wanted)}"
        )
    return variables


def _read(path: Path, wanted: tuple[str, ...]) -> tuple[list[str], dict]:
    """Names of all variables, and those that are wanted."""
    data = read_bytes(path)
    if b"\x89HDF\r\n" in data[:1024]:
        raise InputError(
            f"{path}: MATLAB's version 7.3 (HDF5): save it anew with -v7, in Python with "
            "scipy.io.savemat"
        )
    try:
        check_room(len(data) + _unpacked(data), path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged files, which errors or checks find
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
            f"{path}: not a MATLAB file up to version 7 ({one_line(error)}): save it anew"
        ) from None
    return named, {name: variables[name] for name in chosen}


def find(variables: dict, wanted: tuple[str, ...], among=None) -> str | None:
    """The variable whose name comes first among those wanted."""
    ranked = [
        (wanted.index(name.lower()), name)
        for name in (variables if among is None else among)
        if name.lower() in wanted
    ]
    return min(ranked)[1] if ranked else None


def one_label_a_node(values, path: Path) -> tuple[np.ndarray | None, str]:
    """Labels of a row, a column or one column a class, or None and why not.

    Raises
    ------
    InputError
        Labels that are no numbers or text.
    """
    if values.ndim == 2 and 1 not in values.shape:
        if values.dtype.kind not in "biuf":
            return None, f"type {values.dtype}"
        members = sp.csr_matrix(values)
        members.eliminate_zeros()
        given = np.diff(members.indptr)
        if (given > 1).any():
            return None, f"{int((given > 1).sum())} nodes have several labels"
        labels = np.full(len(given), UNLABELLED, dtype=np.int64)
        labels[given == 1] = np.unique(members.indices, return_inverse=True)[1]
        return labels, ""
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    values = values.ravel()
    if values.dtype == object:  # a cell array: each cell is an array
        values = np.array([v.item() if np.size(v) == 1 else v for v in values], dtype=object)
    return index_labels(values, path), ""


def _unpacked(data: bytes) -> int:
    """Bytes that the compressed elements of a version 5 file unpack to; 0 for other bytes."""
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
    """Reads what zlib data unpack to, of which no more than a block is held."""
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
