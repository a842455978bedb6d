"""File formats of a graph by the ending of the file."""

import re
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
    start : pattern, optional
        Matches the first bytes of such a file, if they tell the format whatever its ending is.
    """

    load: str | Callable[..., Any]
    by_id: bool = False
    start: re.Pattern[bytes] | None = None


def _starts(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.DOTALL | re.IGNORECASE)


_XML = rb"\s*(<\?xml[^>]*>)?\s*(<!--(?:(?!-->).)*-->\s*)*"
_GML_LINE = rb"(#|(creator|version|comment|vendor)\b)[^\n]*\n"

# Every format by the ending in lower case, before a ``.gz``. Two kinds of files are not here,
# because `data.edge_list` reads them itself: arrays (.npy), and text, which has any other ending.
FORMATS: dict[str, Format] = {
    ".npz": Format("user_dgl.data.formats.npz:load_npz"),
    ".mtx": Format("user_dgl.data.formats.matrix_market:load_matrix_market"),
    ".mat": Format("user_dgl.data.formats.mat:load_mat"),
    ".graphml": Format(
        "user_dgl.data.formats.graphml:load_graphml", True, _starts(_XML + rb"<graphml\b")
    ),
    ".gexf": Format("user_dgl.data.formats.gexf:load_gexf", True, _starts(_XML + rb"<gexf\b")),
    ".gml": Format(
        "user_dgl.data.formats.gml:load_gml",
        True,
        _starts(rb"(\s*" + _GML_LINE + rb")*\s*graph\s*\["),
    ),
    # Found by its content only, because other files are called .net too.
    "*vertices": Format(
        "user_dgl.data.formats.pajek:load_pajek",
        True,
        _starts(rb"(\s*%[^\n]*\n)*\s*\*(vertices|network)\b"),
    ),
    ".json": Format(
        "user_dgl.data.formats.node_link:load_node_link",
        True,
        _starts(rb"\s*\{.*?\"(nodes|links)\"\s*:\s*\["),
    ),
    ".adjlist": Format("user_dgl.data.formats.adjacency_list:load_adjacency_list", True),
    ".xml": Format("user_dgl.data.formats.graphml:load_graphml", by_id=True),
    ".bin": Format("user_dgl.data.formats.dgl_file:load_dgl_file"),
    ".dgl": Format("user_dgl.data.formats.dgl_file:load_dgl_file"),
}


def recognise(head: bytes) -> Format | None:
    """Return the format of a file by its first bytes, or None if they tell none."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    for file_format in FORMATS.values():
        if file_format.start is not None and file_format.start.match(head):
            return file_format
    return None
