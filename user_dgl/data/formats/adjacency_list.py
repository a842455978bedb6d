"""Read adjacency lists: rows of a node and its neighbours (networkx.write_adjlist)."""

from pathlib import Path

from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.data.formats.networkx_graph import from_networkx, parsed
from user_dgl.data.reading.files import read_bytes
from user_dgl.data.reading.separators import SEPARATORS
from user_dgl.errors import InputError

# The graph of networkx needs this multiple of the file's size.
_COPIES = 30


def load_adjacency_list(
    path: Path, missing: str = "refuse", separator: str = "auto"
) -> AttributedGraph:
    """Load the graph of an adjacency list, gzipped or not.

    Lines that start with ``#`` or ``%`` are comments.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.
    separator : str
        A name in `user_dgl.data.reading.separators.SEPARATORS`. ``auto``: tabs, semicolons or
        commas if they occur, else blanks.

    Raises
    ------
    InputError
        The file is unreadable or not UTF-8, has attributes in braces or an empty cell.
    """
    data = read_bytes(path, _COPIES)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text: save it as UTF-8") from None
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and line[0] not in "#%"]
    if any("{" in line for line in lines):
        raise InputError(
            f"{path}: an adjacency list with attributes: save it with networkx.write_edgelist"
        )
    by = SEPARATORS.get(separator)
    if by is None:
        by = next((mark for mark in "\t;," if any(mark in line for line in lines)), " ")
    if by != " ":
        lines = [by.join(cell.strip() for cell in line.split(by)).rstrip(by) for line in lines]
    # A comment sign in an id would cut the line: nothing is a comment any more.
    graph = parsed(
        lambda nx: nx.parse_adjlist(
            lines, comments="\0", delimiter=None if by == " " else by, create_using=nx.MultiGraph
        ),
        path,
        "adjacency list",
    )
    if not all(str(node).strip() for node in graph):
        raise InputError(f"{path}: an empty cell in place of an id: fill it or remove it")
    return from_networkx(graph, path, missing)
