"""Nearest nodes by the cosine of their features: exact for thousands, by an index for millions."""

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from user_dgl.errors import InputError
from user_dgl.features.cosine import row_dots
from user_dgl.features.svd import truncated_svd

# Exact search compares all pairs of nodes, block by block.
MAX_EXACT = 50_000
# scikit-learn sizes its blocks of distances by this; each needs several temporaries of that size.
_WORKING_MB = 64

# The index holds so many columns at most; wider features are reduced for it.
INDEX_COLUMNS = 256
# ExchangePlan of the index a node's square root, and those that a search looks into.
_LISTS_PER_ROOT, _LISTS_SEARCHED = 1, 32
# Columns that share a code of four bits.
_COLUMNS_PER_CODE = 2
# Rows and rounds of the k-means that places the lists, and the least rows for the codes: few serve.
_TRAINING_ROWS_PER_LIST, _TRAINING_ROUNDS, _TRAINING_ROWS = 39, 8, 20_000
# Nodes found by their codes and compared exactly, more of them where the index holds components.
COMPARED, COMPARED_REDUCED = 64, 128
# Nodes kept of these, neighbours whose neighbours are tried, and how often.
_KEPT, _TRIED, _ROUNDS = 16, 10, 2
_BLOCK = 20_000


def nearest(feat: sp.csr_matrix | np.ndarray, num_neighbors: int) -> np.ndarray:
    """The rows most alike to each row by cosine, itself left out, (N, num_neighbors); -1: none.

    Exact up to `MAX_EXACT` rows, else `approximate_nearest`.

    Parameters
    ----------
    feat : scipy CSR or ndarray (N, F)
        No row without values.
    num_neighbors : int
        Less than N.
    """
    if feat.shape[0] > MAX_EXACT:
        return approximate_nearest(sp.csr_matrix(feat), num_neighbors)
    # scikit-learn leaves each point itself out when asked without a query.
    search = NearestNeighbors(n_neighbors=num_neighbors, metric="cosine", algorithm="brute")
    with config_context(working_memory=_WORKING_MB):
        return search.fit(normalize(feat)).kneighbors(return_distance=False)


def approximate_nearest(feat: sp.csr_matrix, num_neighbors: int) -> np.ndarray:
    """As `nearest`, by an inverted-file index of faiss (Johnson et al., 2019) in three steps.

    A search finds 64 rows by codes of four bits for every two columns (product quantisation, Andre
    et al., 2017); these are compared by their true cosine; and then, twice, the neighbours of the
    best ones, as nearest-neighbour descent does (Dong et al., 2011). Features of more than 256
    columns are searched by 256 components, and 128 rows are compared: of sparse words, components
    alone find less than half of the true neighbours.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    num_neighbors : int

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
    """Rows near each row (N, M) by their codes, itself among them; M > least, -1 is none."""
    try:
        import faiss
    except ImportError:
        raise InputError(
            f"the search for the nearest of more than {MAX_EXACT} nodes needs faiss: pip install "
            "'user_dgl[ann]' (in structure.candidates, k_hop and uniform do without)"
        ) from None
    reduced = rows.shape[1] > INDEX_COLUMNS
    points = normalize(truncated_svd(rows, INDEX_COLUMNS, 0)) if reduced else rows.toarray()
    if points.shape[1] % _COLUMNS_PER_CODE:
        # Codes share columns evenly; a further one of zeros changes no product.
        missing = _COLUMNS_PER_CODE - points.shape[1] % _COLUMNS_PER_CODE
        points = np.pad(points, ((0, 0), (0, missing)))
    points = np.ascontiguousarray(points, dtype=np.float32)
    num_rows, width = points.shape
    num_lists = max(1, int(_LISTS_PER_ROOT * num_rows**0.5))
    index = faiss.index_factory(
        width,
        f"IVF{num_lists},PQ{width // _COLUMNS_PER_CODE}x4fs",
        faiss.METRIC_INNER_PRODUCT,
    )
    index.cp.max_points_per_centroid = _TRAINING_ROWS_PER_LIST
    index.cp.min_points_per_centroid = 1
    index.cp.niter = _TRAINING_ROUNDS
    count = min(num_rows, max(_TRAINING_ROWS_PER_LIST * num_lists, _TRAINING_ROWS))
    index.train(points[np.random.default_rng(0).choice(num_rows, count, replace=False)])
    index.add(points)
    index.nprobe = _LISTS_SEARCHED
    wanted = min(max(COMPARED_REDUCED if reduced else COMPARED, least + 1), num_rows)
    found = np.empty((num_rows, wanted), dtype=np.int32)
    for start in range(0, num_rows, _BLOCK):
        block = slice(start, start + _BLOCK)
        found[block] = index.search(points[block], wanted)[1]
    return found


def _best(rows: sp.csr_matrix, found: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` of the rows found (N, M) with the highest cosine; -1 is none, in and out."""
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
    """``best`` (N, M) again, after comparing what its first ones lead to in two steps."""
    num_rows, tried = len(best), best[:, :_TRIED]
    ends = _ends(tried)
    # As many back as ahead: of rows that are all alike, each may be the neighbour of thousands.
    back = np.argsort(ends[1], kind="stable")
    back = back[_place(ends[1][back]) < _TRIED]
    u = np.concatenate([ends[0], ends[1][back]])
    v = np.concatenate([ends[1], ends[0][back]])
    shape = num_rows, num_rows
    steps = sp.csr_matrix((np.ones(len(u), np.float32), (u, v)), shape=shape)
    own, other = _ends(best)
    known = sp.csr_matrix((np.ones(len(own), np.float32), (own, other)), shape=shape)
    better = np.full((num_rows, count), -1, dtype=np.int64)
    for start in range(0, num_rows, _BLOCK):
        block = steps[start : start + _BLOCK]
        reached = (block @ steps + block + known[start : start + _BLOCK]).tocoo()
        own, other = reached.row + start, reached.col
        own, other = own[own != other], other[own != other]
        order = np.lexsort((-row_dots(rows, own, other), own))
        own, other = own[order], other[order]
        place = _place(own)
        chosen = place < count
        better[own[chosen], place[chosen]] = other[chosen]
    return better


def _ends(best: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row's number with each of the rows found for it."""
    known = best >= 0
    return np.repeat(np.arange(len(best)), known.sum(axis=1)), best[known]


def _place(ascending: np.ndarray) -> np.ndarray:
    """Place of each entry among those equal to it.

    >>> _place(np.array([4, 4, 7, 8, 8])).tolist()
    [0, 1, 0, 0, 1]
    """
    first = np.flatnonzero(np.diff(ascending, prepend=-1))
    return np.arange(len(ascending)) - np.repeat(first, np.diff(np.append(first, len(ascending))))
