"""Nearest neighbours by the cosine of node features.

The search is exact for up to 50,000 nodes and uses an approximate index for more.
"""

from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from user_dgl.errors import InputError
from user_dgl.features.cosine import row_dots
from user_dgl.features.svd import truncated_svd
from user_dgl.runtime.progress import steps
from user_dgl.runtime.streams import Stream, stream_rng

if TYPE_CHECKING:
    import faiss

# The search is exact for up to this many rows. It compares all pairs of rows, block by block.
MAX_EXACT = 50_000
# Size of scikit-learn's blocks of distances in MB. Each block needs several temporaries of the same
# size.
_WORKING_MB = 64

# The index has at most this many columns. Features with more columns are reduced to components.
INDEX_COLUMNS = 256
# The index has this number of lists times the square root of the number of rows. A search looks
# into so many lists.
_LISTS_PER_ROOT, _LISTS_SEARCHED = 1, 32
# Number of columns that one code of four bits represents.
_COLUMNS_PER_CODE = 2
# The k-means that places the lists: rows for each list and number of rounds. The last number is
# the minimum of rows for the training of the whole index. Small numbers suffice.
_TRAINING_ROWS_PER_LIST, _TRAINING_ROUNDS, _TRAINING_ROWS = 39, 8, 20_000
# Number of rows that are found by their codes and then compared exactly. The second number is used
# if the index has components instead of the features.
COMPARED, COMPARED_REDUCED = 64, 128
# Best rows kept for each row, how many of them have their own neighbours compared, and how often.
_KEPT, _TRIED, _ROUNDS = 16, 10, 2
_BLOCK = 20_000


def nearest(feat: sp.csr_matrix | np.ndarray, num_neighbors: int) -> np.ndarray:
    """Find the rows with the highest cosine to each row, other than the row itself.

    The search is exact up to `MAX_EXACT` rows. Beyond, it is `approximate_nearest`.

    Parameters
    ----------
    feat : scipy CSR or ndarray (N, F)
        Each row needs at least one non-zero value.
    num_neighbors : int
        Less than N.

    Returns
    -------
    int64 ndarray (N, num_neighbors)
        Row numbers; -1 where the approximate search found too few rows.

    Raises
    ------
    InputError
        There are more than `MAX_EXACT` rows and faiss is not installed.
    """
    if feat.shape[0] > MAX_EXACT:
        return approximate_nearest(sp.csr_matrix(feat), num_neighbors)
    # Without an argument, kneighbors leaves each point out of its own neighbours.
    search = NearestNeighbors(n_neighbors=num_neighbors, metric="cosine", algorithm="brute")
    with config_context(working_memory=_WORKING_MB):
        return search.fit(normalize(feat)).kneighbors(return_distance=False)


def nearest_of(points: np.ndarray, rows: np.ndarray, num_neighbors: int) -> np.ndarray:
    """Exact `nearest` of some rows only, whatever the number of rows.

    Parameters
    ----------
    points : ndarray (N, d)
    rows : int ndarray (M,)
    num_neighbors : int
        Less than N.

    Returns
    -------
    int64 ndarray (M, num_neighbors)
    """
    search = NearestNeighbors(n_neighbors=num_neighbors + 1, metric="cosine", algorithm="brute")
    with config_context(working_memory=_WORKING_MB):
        near = search.fit(points).kneighbors(points[rows], return_distance=False)
    own = near == rows[:, None]
    # Of many equal rows, a row itself may not be among the nearest.
    own[~own.any(axis=1), -1] = True
    return near[~own].reshape(len(rows), num_neighbors)


def approximate_nearest(feat: sp.csr_matrix, num_neighbors: int) -> np.ndarray:
    """Approximate `nearest` with an inverted-file index of faiss (Johnson et al., 2019).

    The search has three steps:

    1. For each row the index finds 64 rows by codes of four bits for every two columns (product
       quantisation, Andre et al., 2017).
    2. These rows are compared by their exact cosine.
    3. The neighbours of the best rows are compared as well, as in nearest-neighbour descent (Dong
       et al., 2011). This step is done twice.

    Features with more than 256 columns are reduced to 256 components for the index, and then 128
    rows are compared, because the components of sparse word counts alone find less than half of the
    true neighbours.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    num_neighbors : int

    Returns
    -------
    int64 ndarray (N, num_neighbors)
        Row numbers; -1 where fewer rows were found.

    Raises
    ------
    InputError
        faiss is not installed.
    """
    rows = normalize(feat).astype(np.float32)
    kept = max(num_neighbors, _KEPT)
    best = _best(rows, _found(rows, kept), kept)
    for _ in range(_ROUNDS):
        best = _neighbours_of_neighbours(rows, best, kept)
    return best[:, :num_neighbors]


def _found(rows: sp.csr_matrix, least: int) -> np.ndarray:
    """Find the rows nearest to each row by their codes (step 1 of `approximate_nearest`).

    Returns
    -------
    int32 ndarray (N, M)
        Row numbers, M > ``least``; -1 where fewer were found. The row itself may be among them.
    """
    try:
        import faiss
    except ImportError:
        raise InputError(
            f"the nearest-neighbour search on more than {MAX_EXACT} nodes needs faiss: pip install "
            "'user_dgl[ann]' (k_hop and uniform in structure.candidates do not need it)"
        ) from None
    reduced = rows.shape[1] > INDEX_COLUMNS
    points = normalize(truncated_svd(rows, INDEX_COLUMNS, 0)) if reduced else rows.toarray()
    if points.shape[1] % _COLUMNS_PER_CODE:
        # Each code represents the same number of columns. Added columns of zeros change no dot
        # product.
        missing = _COLUMNS_PER_CODE - points.shape[1] % _COLUMNS_PER_CODE
        points = np.pad(points, ((0, 0), (0, missing)))
    points = np.ascontiguousarray(points, dtype=np.float32)
    num_rows, width = points.shape
    num_lists = max(1, int(_LISTS_PER_ROOT * num_rows**0.5))
    # index_factory returns an object of the class that the description names; faiss declares only
    # the base class.
    index = cast(
        "faiss.IndexIVFPQFastScan",
        faiss.index_factory(
            width,
            f"IVF{num_lists},PQ{width // _COLUMNS_PER_CODE}x4fs",
            faiss.METRIC_INNER_PRODUCT,
        ),
    )
    index.cp.max_points_per_centroid = _TRAINING_ROWS_PER_LIST
    index.cp.min_points_per_centroid = 1
    index.cp.niter = _TRAINING_ROUNDS
    count = min(num_rows, max(_TRAINING_ROWS_PER_LIST * num_lists, _TRAINING_ROWS))
    index.train(
        points[stream_rng(0, Stream.NEIGHBOUR_INDEX).choice(num_rows, count, replace=False)]
    )
    index.add(points)
    index.nprobe = _LISTS_SEARCHED
    wanted = min(max(COMPARED_REDUCED if reduced else COMPARED, least + 1), num_rows)
    found = np.empty((num_rows, wanted), dtype=np.int32)
    for start in steps(range(0, num_rows, _BLOCK)):
        block = slice(start, start + _BLOCK)
        found[block] = index.search(points[block], wanted)[1]
    return found


def _best(rows: sp.csr_matrix, found: np.ndarray, count: int) -> np.ndarray:
    """Choose the ``count`` rows with the highest cosine from the rows found (N, M).

    In ``found`` and in the result (N, count), -1 means no row.
    """
    best = np.empty((len(found), count), dtype=np.int64)
    for start in range(0, len(found), _BLOCK):
        block = found[start : start + _BLOCK]
        own = np.arange(start, start + len(block))
        cosine = row_dots(rows, np.repeat(own, block.shape[1]), block.clip(0).ravel())
        cosine = cosine.reshape(block.shape)
        cosine[(block < 0) | (block == own[:, None])] = -np.inf
        order = np.argsort(-cosine, axis=1, kind="stable")[:, :count]
        chosen = np.take_along_axis(block, order, axis=1)
        chosen[np.isneginf(np.take_along_axis(cosine, order, axis=1))] = -1
        best[own, : chosen.shape[1]] = chosen
        best[own, chosen.shape[1] :] = -1
    return best


def _neighbours_of_neighbours(rows: sp.csr_matrix, best: np.ndarray, count: int) -> np.ndarray:
    """Improve ``best`` (N, M) with rows that its first columns lead to in one or two steps.

    Returns the best ``count`` rows (N, count); -1 means no row.
    """
    num_rows, tried = len(best), best[:, :_TRIED]
    ends = _ends(tried)
    # Steps also go backwards, from a neighbour to the row that it was found for, but at most _TRIED
    # for each row: if all rows are similar, a row may be the neighbour of thousands.
    back = np.argsort(ends[1], kind="stable")
    back = back[_place(ends[1][back]) < _TRIED]
    u = np.concatenate([ends[0], ends[1][back]])
    v = np.concatenate([ends[1], ends[0][back]])
    shape = num_rows, num_rows
    hops = sp.csr_matrix((np.ones(len(u), np.float32), (u, v)), shape=shape)
    own, other = _ends(best)
    known = sp.csr_matrix((np.ones(len(own), np.float32), (own, other)), shape=shape)
    better = np.full((num_rows, count), -1, dtype=np.int64)
    for start in steps(range(0, num_rows, _BLOCK)):
        block = hops[start : start + _BLOCK]
        reached = (block @ hops + block + known[start : start + _BLOCK]).tocoo()
        own, other = reached.row + start, reached.col
        own, other = own[own != other], other[own != other]
        order = np.lexsort((-row_dots(rows, own, other), own))
        own, other = own[order], other[order]
        place = _place(own)
        chosen = place < count
        better[own[chosen], place[chosen]] = other[chosen]
    return better


def _ends(best: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays: each row number, repeated, and each of the rows found for it."""
    known = best >= 0
    return np.repeat(np.arange(len(best)), known.sum(axis=1)), best[known]


def _place(ascending: np.ndarray) -> np.ndarray:
    """Position of each entry among the entries that are equal to it, from 0.

    >>> _place(np.array([4, 4, 7, 8, 8])).tolist()
    [0, 1, 0, 0, 1]
    """
    first = np.flatnonzero(np.diff(ascending, prepend=-1))
    return np.arange(len(ascending)) - np.repeat(first, np.diff(np.append(first, len(ascending))))
