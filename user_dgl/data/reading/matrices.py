"""Graphs and features from stored arrays, checked: what the loaders share."""

import mmap

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import FILL, GET_ANEW, check_finite, one_line, some
from user_dgl.data.reading.files import check_room
from user_dgl.errors import InputError
from user_dgl.graph import Graph

# Values of a dense array handled at a time.
_BLOCK_VALUES = 2**22
# Bytes that a row or a column takes whether or not it holds anything.
_BYTES_PER_LINE = 16


def csr_from_parts(data, indices, indptr, shape, source) -> sp.csr_matrix:
    """A CSR matrix of stored parts, after a full check of its indices.

    Raises
    ------
    InputError
        Parts that are no valid CSR matrix of numbers.
    """
    try:
        data, indices, indptr = map(np.asarray, (data, indices, indptr))
        rows, columns = (int(n) for n in np.asarray(shape).tolist())
        if data.dtype.kind not in "biuf" or {indices.dtype.kind, indptr.dtype.kind} - set("iu"):
            raise ValueError(f"entries of type {data.dtype}, indices of type {indices.dtype}")
        parts = (_supported(data), _supported(indices), _supported(indptr))
        matrix = sp.csr_matrix(parts, shape=(rows, columns))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"{source}: not a valid CSR matrix ({one_line(error)}): make it anew"
        ) from None
    return matrix


def _supported(matrix):
    """The same numbers in a type that SciPy's sparse matrices may have."""
    dtype = np.dtype(np.float32 if matrix.dtype == np.float16 else matrix.dtype)
    return matrix.astype(dtype.newbyteorder("="), copy=False)


def check_shape(shape: tuple[int, ...], source) -> None:
    """Refuse a shape that takes more memory than there is, however little of it is filled.

    Raises
    ------
    InputError
    """
    check_room(_BYTES_PER_LINE * sum(shape), source)


def check_indices(matrix) -> None:
    """Raise ValueError for a sparse matrix whose indices point outside it.

    SciPy's readers and constructors take those of CSR, CSC and BSR as they are, and its C++ code
    then follows them; it checks those of other formats itself.
    """
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)


def as_features(matrix, source, missing="refuse", notes=None) -> sp.csr_matrix:
    """Sparse or dense features as CSR.

    Parameters
    ----------
    matrix : scipy sparse or ndarray (N, F)
    source : path or text
        What messages name.
    missing : str
        What becomes of NaN and infinite values: ``refuse``, ``zero`` or ``mean`` (of the others in
        the column), as ``data.missing_features`` has it.
    notes : list of str, optional
        Gets a line on what was filled; given where that setting is heeded.

    Returns
    -------
    scipy CSR (N, F) float32
        Sorted, without repeated entries or stored zeros.

    Raises
    ------
    InputError
        Not two-dimensional, no numbers, NaN or infinite values.
    """
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"{source}: features of shape {matrix.shape} and type {matrix.dtype}: expected a row "
            "of real numbers for each node"
        )
    check_shape(matrix.shape, source)
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused
        if isinstance(matrix, np.ndarray):
            feat = _from_dense(matrix)
        else:
            feat = sp.csr_matrix(matrix, dtype=np.float32, copy=True)  # cleaned in place below
    feat.sum_duplicates()
    if missing == "refuse":
        check_finite(feat, source, FILL if notes is not None else GET_ANEW)
    else:
        _fill(feat, missing, notes)
    feat.eliminate_zeros()
    return feat


def _fill(feat: sp.csr_matrix, missing: str, notes: list[str] | None) -> None:
    """Replace NaN and infinite values in place."""
    bad = ~np.isfinite(feat.data)
    if not bad.any():
        return
    columns = feat.indices[bad]
    filled = np.zeros(len(columns), np.float32)
    if missing == "mean":
        width = feat.shape[1]
        known = np.bincount(feat.indices[~bad], feat.data[~bad], width)
        counts = feat.shape[0] - np.bincount(columns, minlength=width)
        filled = (known / np.maximum(counts, 1))[columns]
    feat.data[bad] = filled
    if notes is not None:
        by = "0" if missing == "zero" else "the mean of their column"
        notes.append(f"{len(columns)} missing or infinite features set to {by}")


def _from_dense(array: np.ndarray) -> sp.csr_matrix:
    """CSR of an array, perhaps one mapped from a file: a block of it is in memory at a time."""
    num_rows, num_columns = array.shape
    rows = max(1, _BLOCK_VALUES // max(num_columns, 1))
    starts = range(0, num_rows, rows)
    counts = []
    for start in starts:
        counts.append(np.count_nonzero(array[start : start + rows]))
        _forget_pages(array)
    place = np.cumsum([0, *counts])
    width = np.int32 if max(place[-1], num_columns) <= np.iinfo(np.int32).max else np.int64
    data, indices = np.empty(place[-1], np.float32), np.empty(place[-1], width)
    indptr = np.zeros(num_rows + 1, width)
    for i, start in enumerate(starts):
        block = sp.csr_matrix(array[start : start + rows], dtype=np.float32)
        entries = slice(place[i], place[i + 1])
        data[entries], indices[entries] = block.data, block.indices
        indptr[start + 1 : start + rows + 1] = block.indptr[1:] + place[i]
        _forget_pages(array)
    return sp.csr_matrix((data, indices, indptr), shape=array.shape)


def _forget_pages(array: np.ndarray) -> None:
    """Let go of what was read of a mapped file, or it counts as memory of this process."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def graph_from_entries(num_nodes: int, u, v) -> tuple[Graph, list[str]]:
    """Graph of directed entries, and notes that count what was cleaned.

    Parameters
    ----------
    num_nodes : int
    u, v : array-like of int (M,)
        In formats that store both directions of an edge, so an entry and its reverse are no repeat.

    Raises
    ------
    InputError
        An end outside 0..num_nodes-1.
    """
    graph, cleaning = Graph.from_edges(num_nodes, u, v)
    u, v = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
    proper = u != v
    # Sorted, as np.unique hashes integers, which is many times slower where most are distinct.
    keys = np.sort(u[proper] * num_nodes + v[proper])
    directed = int((keys[1:] != keys[:-1]).sum()) + bool(len(keys))
    repeated = int(proper.sum()) - directed
    notes = []
    if cleaning.self_loops:
        notes.append(f"{cleaning.self_loops} self-loop entries dropped")
    if repeated:
        notes.append(f"{repeated} repeated entries merged")
    if directed != 2 * graph.num_edges:
        notes.append(
            f"directed: made symmetric, {directed} entries give {graph.num_edges} undirected edges"
        )
    return graph, notes


def graph_from_matrix(matrix, source) -> tuple[Graph, list[str]]:
    """Graph of the non-zero entries of an adjacency, and notes that count what was cleaned.

    Parameters
    ----------
    matrix : scipy sparse or ndarray (N, N)
    source : path or text
        What messages name.

    Raises
    ------
    InputError
        Not square, no numbers, negative or non-finite entries.
    """
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] > 0
    if not square or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"{source}: expected a square adjacency of numbers, got shape {matrix.shape} and type "
            f"{matrix.dtype}"
        )
    check_shape(matrix.shape, source)
    entries = sp.coo_matrix(_supported(matrix))
    bad = ~np.isfinite(entries.data) | (entries.data < 0)
    if bad.any():
        rows = np.unique(entries.row[bad])
        raise InputError(
            f"{source}: negative, NaN or infinite weights in {len(rows)} rows (counted from 0): "
            f"{some(rows)}: remove these entries"
        )
    stored = entries.data != 0
    graph, notes = graph_from_entries(matrix.shape[0], entries.row[stored], entries.col[stored])
    zeros, weights = len(stored) - int(stored.sum()), int((entries.data[stored] != 1).sum())
    if zeros:
        notes.append(f"{zeros} stored zeros are no edges")
    if weights:
        notes.append(f"{weights} weights other than 1 ignored: every edge counts 1")
    return graph, notes
