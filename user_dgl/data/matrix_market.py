"""MatrixMarket files, ``.mtx`` and ``.mtx.gz``: an adjacency, or a matrix of features."""

import io
import re
from pathlib import Path

import scipy.io

from user_dgl.data.base import AttributedGraph, one_line
from user_dgl.data.files import read_bytes
from user_dgl.data.matrices import check_shape, graph_from_matrix
from user_dgl.errors import InputError


def load_matrix_market(path: Path, missing: str = "refuse") -> AttributedGraph:
    """The graph of an adjacency in a MatrixMarket file.

    Parameters
    ----------
    path : Path
    missing : str
        As all loaders of one's own files take it; there are no features here.

    Returns
    -------
    AttributedGraph
        Without features and labels; ids are 1..N, as the file counts them.

    Raises
    ------
    InputError
        As `read_matrix_market`, and for a matrix that is no adjacency.
    """
    graph, notes = graph_from_matrix(read_matrix_market(path), path)
    ids = tuple(map(str, range(1, graph.num_nodes + 1)))
    return AttributedGraph(graph, None, None, ids, (*notes, f"ids are 1..{len(ids)}, as in it"))


def read_matrix_market(path: Path):
    """The matrix of a MatrixMarket file, gzipped or not.

    Returns
    -------
    scipy COO or ndarray

    Raises
    ------
    InputError
        File unreadable or malformed, with its line; more entries claimed than it holds.
    """
    data = read_bytes(path)
    try:
        *shape, entries, _, _, _ = scipy.io.mminfo(io.BytesIO(data))
        if entries > len(data):  # each takes a line
            raise InputError(f"{path}: claims {entries} entries and is shorter: is it cut off?")
        check_shape(shape, path)
        return scipy.io.mmread(io.BytesIO(data))
    except InputError:
        raise
    except Exception as error:  # ValueError, OverflowError; what else depends on SciPy's release
        at = re.match(r"Line (\d+): (.*)", one_line(error))
        where, problem = (f"{path}:{at[1]}", at[2]) if at else (f"{path}", one_line(error))
        raise InputError(f"{where}: not a MatrixMarket file: {problem}: fix it") from None
