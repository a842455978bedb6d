"""Load Cora, Citeseer or PubMed from ``ind.<name>.{allx,ally,tx,ty,graph,test.index}`` (Planetoid).

The files ``x`` and ``y`` are not read, because they repeat the first rows of ``allx`` and ``ally``.
"""

from itertools import chain
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import UNLABELLED, AttributedGraph, some
from user_dgl.data.reading.ids import repeated_row
from user_dgl.data.reading.matrices import as_features, graph_from_entries
from user_dgl.data.reading.text import read_columns
from user_dgl.data.reading.unpickle import load_pickle
from user_dgl.errors import InputError

_ID_LIMIT = 2**31


def load_planetoid(folder: Path, name: str) -> AttributedGraph:
    """Load a Planetoid data set.

    Row r of ``tx`` and ``ty`` belongs to the node id in line r of ``test.index``, whose lines are
    not sorted. Ids that are neither rows of ``allx`` nor in ``test.index`` (15 in Citeseer) are
    nodes without features and label.

    Parameters
    ----------
    folder : Path
    name : str
        ``cora``, ``citeseer`` or ``pubmed``.

    Returns
    -------
    AttributedGraph
        Nodes in the order of their ids. The label is the column of ``ally``.

    Raises
    ------
    InputError
        A file is missing or damaged, or does not fit the others.
    """
    folder = Path(folder)
    stem = folder / f"ind.{name}"
    if not Path(f"{stem}.graph").exists():
        found = sorted(p.name.split(".")[1] for p in folder.glob("ind.*.graph"))
        raise InputError(
            f"{stem}.graph: not found: data.name={name}, but the folder contains "
            f"{', '.join(found) or 'no file ind.<name>.graph'}"
        )
    allx, tx = (_matrix(f"{stem}.{part}") for part in ("allx", "tx"))
    ally, ty = (_one_hot(f"{stem}.{part}") for part in ("ally", "ty"))
    ids, counts, v = _neighbours(f"{stem}.graph")
    u = np.repeat(ids, counts)
    index_file, (test_ids,) = read_columns(Path(f"{stem}.test.index"), (np.int64,))

    num_train = allx.shape[0]
    if len(ally) != num_train or not len(test_ids) == tx.shape[0] == len(ty):
        raise InputError(
            f"{stem}.*: allx has {num_train} rows, ally {len(ally)}; tx has {tx.shape[0]} rows, "
            f"ty {len(ty)}, test.index {len(test_ids)}: they must agree"
        )
    if allx.shape[1] != tx.shape[1] or ally.shape[1] != ty.shape[1]:
        raise InputError(f"{stem}.*: allx and tx, or ally and ty, differ in the number of columns")
    overlap = np.flatnonzero(test_ids < num_train)
    row = int(overlap[0]) if len(overlap) else repeated_row(test_ids)
    if row is not None:
        raise index_file.error(
            row, f"id {test_ids[row]} is an id of allx (0..{num_train - 1}) or is given twice"
        )
    large = np.flatnonzero(test_ids >= _ID_LIMIT)
    if len(large):
        raise index_file.error(
            large[0],
            f"id {test_ids[large[0]]}: expected less than {_ID_LIMIT}: download the file again",
        )
    num_nodes = int(max(num_train, *(a.max() + 1 for a in (test_ids, ids, v) if len(a))))
    if min(ids.min(initial=0), v.min(initial=0)) < 0:
        raise InputError(f"{stem}.graph: negative node ids: download the file again")

    rows = np.concatenate([np.arange(num_train), test_ids])
    place = sp.csr_matrix(
        (np.ones(len(rows), dtype=np.float32), (rows, np.arange(len(rows)))),
        shape=(num_nodes, len(rows)),
    )
    feat = as_features(place @ sp.vstack([allx, tx], format="csr"), f"{stem}.allx, .tx")
    one_hot = np.zeros((num_nodes, ally.shape[1]), dtype=ally.dtype)
    one_hot[rows] = np.vstack([ally, ty])
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNLABELLED)

    graph, notes = graph_from_entries(num_nodes, u, v)
    missing = np.setdiff1d(np.arange(num_train, num_nodes), test_ids)
    if len(missing):
        notes.append(
            f"{len(missing)} ids are in no feature file: nodes without features and label "
            f"({some(missing, most=3)})"
        )
    return AttributedGraph(graph, feat, labels.astype(np.int64), notes=tuple(notes))


def _matrix(path: str) -> sp.csr_matrix:
    matrix = load_pickle(Path(path))
    if not sp.issparse(matrix):
        raise InputError(f"{path}: expected a CSR matrix, got {type(matrix).__name__}")
    return matrix


def _one_hot(path: str) -> np.ndarray:
    array = load_pickle(Path(path))
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(f"{path}: expected one-hot rows of numbers")
    if not array.shape[1]:
        raise InputError(
            f"{path}: no columns: expected one for each class: download the file again"
        )
    return array


def _neighbours(path: str) -> tuple[np.ndarray, list[int], np.ndarray]:
    """Return the ids, their numbers of neighbours, and all neighbours one after another."""
    neighbours = load_pickle(Path(path))
    wrong = InputError(
        f"{path}: expected a dict from node id to a list of ids: download the file again"
    )
    if not isinstance(neighbours, dict):
        raise wrong
    try:
        ids = np.array(list(neighbours), dtype=np.int64)
        counts = [len(neighbours[i]) for i in neighbours]
        flat = np.fromiter(chain.from_iterable(neighbours.values()), np.int64, sum(counts))
    except (TypeError, ValueError, OverflowError):
        raise wrong from None
    if ids.ndim != 1:
        raise wrong
    largest = max(ids.max(initial=0), flat.max(initial=0))
    if largest >= _ID_LIMIT:
        raise InputError(
            f"{path}: node id {largest}: expected less than {_ID_LIMIT}: download the file again"
        )
    return ids, counts, flat
