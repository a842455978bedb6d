"""File formats of a graph by the ending of the file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Format:
    """One file format.

    Attributes
    ----------
    load : str or callable
        ``"module:function"``, which is imported when a file of the format is read, or the
        function: gets the path and ``data.missing_features``, and returns an `AttributedGraph`.
    by_id : bool
        Every node has an id, so the rows of other files are matched to the nodes by id, as for a
        text of edges. Otherwise nodes are the rows of a matrix.
    """

    load: str | Callable[..., Any]
    by_id: bool = False


# Every format by the ending in lower case, before a ``.gz``. Two kinds of files are not here,
# because `data.edge_list` reads them itself: arrays (.npy), and text, which has any other ending.
FORMATS: dict[str, Format] = {
    ".npz": Format("user_dgl.data.formats.npz:load_npz"),
    ".mtx": Format("user_dgl.data.formats.matrix_market:load_matrix_market"),
    ".mat": Format("user_dgl.data.formats.mat:load_mat"),
    ".graphml": Format("user_dgl.data.formats.graphml:load_graphml", by_id=True),
    ".xml": Format("user_dgl.data.formats.graphml:load_graphml", by_id=True),
    ".bin": Format("user_dgl.data.formats.dgl_file:load_dgl_file"),
    ".dgl": Format("user_dgl.data.formats.dgl_file:load_dgl_file"),
}
