"""Make graphs and features from stored arrays, and check the arrays; shared by all loaders."""

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from user_dgl.data.attributed_graph import FILL, GET_AGAIN, check_finite, one_line, some
from user_dgl.data.reading.files import check_room
from user_dgl.errors import InputError
from user_dgl.graph import Graph

# Number of values of a dense array that are processed at a time.
_BLOCK_VALUES = 2**22
# Memory that a row or a column of a sparse matrix needs even if it is empty.
_BYTES_PER_LINE = 16


def csr_from_parts(
    data: Any, indices: Any, indptr: Any, shape: Any, source: Path | str
) -> sp.csr_matrix:
    """Make a CSR matrix from its stored parts, with a full check of its indices.

    Parameters
    ----------
    data, indices, indptr, shape
        The parts, which come from a file and may be of any type.
    source : path or text
        Name for messages.

    Raises
    ------
    InputError
        The parts are not a valid CSR matrix of numbers.
    """
    try:
        data, indices, indptr = map(np.asarray, (data, indices, indptr))
        rows, columns = (int(n) for n in np.asarray(shape).tolist())
        if data.dtype.kind not in "biuf" or {indices.dtype.kind, indptr.dtype.kind} - set("iu"):
            raise ValueError(f"entries of type {data.dtype}, indices of type {indices.dtype}")
        parts = (_supported(data), _supported(indices), _supported(indptr))
        matrix = sp.csr_matrix(parts, shape=(rows, columns))
        check_indices(matrix)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"{source}: not a valid CSR matrix ({one_line(error)}): create it again"
        ) from None
    return matrix


def _supported(matrix: np.ndarray | sp.spmatrix) -> np.ndarray | sp.spmatrix:
    """Convert numbers, if necessary, to a type that SciPy's sparse matrices support."""
    dtype = np.dtype(np.float32 if matrix.dtype == np.float16 else matrix.dtype)
    return matrix.astype(dtype.newbyteorder("="), copy=False)


def check_shape(shape: tuple[int, ...], source: Path | str) -> None:
    """Check that the memory suffices for a sparse matrix of this shape, even without entries.

    Raises
    ------
    InputError
        More memory is needed than is available.
    """
    check_room(_BYTES_PER_LINE * sum(shape), source)


def check_indices(matrix: sp.spmatrix) -> None:
    """Raise ValueError if the indices of a sparse matrix point outside it.

    SciPy does not check the indices of CSR, CSC and BSR matrices when it reads or constructs them,
    and its C++ code then uses them. It checks the indices of other formats itself.
    """
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
        # SciPy looks at the order of the starts only if the last of them is above 0.
        if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
            raise ValueError("index pointer values must form a non-decreasing sequence")


def as_features(
    matrix: np.ndarray | sp.spmatrix,
    source: Path | str,
    missing: str = "refuse",
    notes: list[str] | None = None,
) -> sp.csr_matrix:
    """Convert sparse or dense features to CSR.

    Parameters
    ----------
    matrix : scipy sparse or ndarray (N, F)
    source : path or text
        Name for messages.
    missing : str
        Treatment of NaN and infinite values, as in ``data.missing_features``: ``refuse`` raises an
        error, ``zero`` sets them to 0, ``mean`` sets them to the mean of the other values in their
        column.
    notes : list of str, optional
        A line is appended if values were filled. Loaders that obey ``data.missing_features`` must
        give this list, because only then the error message advises to change that setting.

    Returns
    -------
    scipy CSR (N, F) float32
        Sorted, without repeated entries or stored zeros.

    Raises
    ------
    InputError
        The matrix is not two-dimensional or not numeric, or ``missing`` is ``refuse`` and some
        values are NaN or infinite.
    """
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"{source}: features of shape {matrix.shape} and type {matrix.dtype}: expected a row "
            "of real numbers for each node"
        )
    check_shape(matrix.shape, source)
    with np.errstate(over="ignore"):  # values too large for float32 become infinite
        if isinstance(matrix, np.ndarray):
            feat = _from_dense(matrix)
        else:
            # A copy, because the lines below change it in place.
            feat = sp.csr_matrix(_supported(matrix), dtype=np.float32, copy=True)
    _refuse_too_large(matrix, feat, source)
    feat.sum_duplicates()
    if missing == "refuse":
        check_finite(feat, source, FILL if notes is not None else GET_AGAIN)
    else:
        _fill(feat, missing, notes)
    feat.eliminate_zeros()
    return feat


def _refuse_too_large(
    matrix: np.ndarray | sp.spmatrix, feat: sp.csr_matrix, source: Path | str
) -> None:
    """Refuse finite values that are infinite in float32. They are not missing."""
    if np.isinf(feat.data).any():
        values = matrix if isinstance(matrix, np.ndarray) else _supported(matrix).data
        largest = np.abs(values[np.isfinite(values)]).max(initial=0)
        if largest > np.finfo(np.float32).max:
            raise InputError(
                f"{source}: features up to {largest:.1e}, where float32 ends at 3.4e38: divide the "
                "features, or take their logarithms"
            )


def _fill(feat: sp.csr_matrix, missing: str, notes: list[str] | None) -> None:
    """Replace NaN and infinite values of ``feat`` in place."""
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
    """Convert an array to CSR block by block, so that a mapped file is never wholly in memory."""
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
    """Release the pages of a mapped file, which else count as memory of this process."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def weighed(
    ends: np.ndarray, weight: np.ndarray, source: Path | str
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Check the weights of edges, and drop the edges of weight 0.

    Parameters
    ----------
    ends : int array (2, M)
    weight : array (M,)
    source : path or text
        Name for messages.

    Returns
    -------
    ends, weight, list of str
        The edges that are left, and a note on those that are not.

    Raises
    ------
    InputError
        The weights are not one number for each edge, or negative, NaN or infinite.
    """
    if weight.shape != ends.shape[1:] or weight.dtype.kind not in "biuf":
        raise InputError(
            f"{source}: weights of shape {weight.shape} and type {weight.dtype}: expected a "
            f"number for each of the {ends.shape[1]} edges"
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise InputError(
            f"{source}: negative, NaN or infinite weights of {len(bad)} edges, the first is "
            f"edge {bad[0]} (counted from 0): remove these edges"
        )
    there = weight != 0
    zeros = len(there) - int(there.sum())
    notes = [f"{zeros} edges of weight 0 are no edges"] if zeros else []
    return ends[:, there], weight[there], notes


def graph_from_pairs(
    num_nodes: int, u: ArrayLike, v: ArrayLike, weight: np.ndarray | None = None
) -> tuple[Graph, list[str]]:
    """Make a graph from undirected edges, each of which is listed once.

    Parameters and errors as for `Graph.from_edges`.

    Returns
    -------
    Graph, list of str
        The notes count what was dropped or merged.
    """
    graph, cleaning = Graph.from_edges(num_nodes, u, v, weight)
    return graph, [str(cleaning)] if str(cleaning) else []


def graph_from_entries(
    num_nodes: int, u: ArrayLike, v: ArrayLike, weight: np.ndarray | None = None
) -> tuple[Graph, list[str]]:
    """Make a graph from directed entries.

    This function is for formats that store both directions of an edge. So an entry and its
    reverse do not count as a repetition.

    Parameters
    ----------
    num_nodes : int
    u, v : array-like of int (M,)
        Ends of the entries.
    weight : float array (M,), optional
        Positive weights of the entries.

    Returns
    -------
    Graph, list of str
        The notes count the entries that were dropped, merged or made symmetric.

    Raises
    ------
    InputError
        An end is outside 0..num_nodes-1.
    """
    graph, cleaning = Graph.from_edges(num_nodes, u, v, weight)
    u, v = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
    proper = u != v
    # np.unique hashes integers. Sorting is many times faster if most of them are distinct.
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


def graph_from_matrix(
    matrix: np.ndarray | sp.spmatrix, source: Path | str
) -> tuple[Graph, list[str]]:
    """Make a graph from the non-zero entries of an adjacency matrix, which are its weights.

    Parameters
    ----------
    matrix : scipy sparse or ndarray (N, N)
    source : path or text
        Name for messages.

    Returns
    -------
    Graph, list of str
        The notes count the entries that were dropped, merged or made symmetric.

    Raises
    ------
    InputError
        The matrix is not square or not numeric, or has negative, NaN or infinite entries.
    """
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] > 0
    if not square or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"{source}: expected a square adjacency matrix of numbers, got shape {matrix.shape} "
            f"and type {matrix.dtype}"
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
    graph, notes = graph_from_entries(
        matrix.shape[0], entries.row[stored], entries.col[stored], entries.data[stored]
    )
    zeros = len(stored) - int(stored.sum())
    if zeros:
        notes.append(f"{zeros} stored zeros are not edges")
    return graph, notes
