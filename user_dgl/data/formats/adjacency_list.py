"""Read adjacency lists: rows of a node and its neighbours (networkx.write_adjlist)."""

import csv
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from user_dgl.data.attributed_graph import AttributedGraph, one_line
from user_dgl.data.formats.networkx_graph import from_networkx, parsed
from user_dgl.data.reading.files import read_bytes
from user_dgl.data.reading.lines import quoted_brackets
from user_dgl.data.reading.separators import SEPARATORS, split
from user_dgl.errors import InputError

if TYPE_CHECKING:
    import networkx as nx

_QUOTED = re.compile(r'(?:^|(?<=[\t;, ]))"[^"]*"(?=[\t;, ]|$)')
# The graph of networkx needs this multiple of the file's size.
_COPIES = 30


def load_adjacency_list(
    path: Path, missing: str = "refuse", separator: str = "auto"
) -> AttributedGraph:
    """Load the graph of an adjacency list, gzipped or not.

    Lines that start with ``#`` or ``%`` are comments. A tuple such as ``(0, 1)`` is one id, and so
    is what stands in quotation marks.

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
        The file is unreadable or not UTF-8, has attributes in braces or an empty cell, or some of
        its rows have commas and others only blanks.
    """
    data = read_bytes(path, _COPIES)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text: save it as UTF-8") from None
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and line[0] not in "#%"]
    if not lines:
        raise InputError(f"{path}: no nodes: expected at least one node")
    if any("{" in line for line in lines):
        raise InputError(
            f"{path}: an adjacency list with attributes: save it with networkx.write_edgelist"
        )
    lines = quoted_brackets("\n".join(lines).encode())[0].decode().split("\n")
    rows = _cells(lines, SEPARATORS.get(separator) or _separator(lines, path), path)

    def graph_of_rows(nx: ModuleType) -> "nx.MultiGraph":
        graph = nx.MultiGraph()
        for node, *neighbours in rows:
            graph.add_node(node)
            graph.add_edges_from((node, other) for other in neighbours)
        return graph

    return from_networkx(parsed(graph_of_rows, path, "adjacency list"), path, missing)


def _separator(lines: list[str], path: Path) -> str:
    """Which mark separates the cells."""
    bare = [_QUOTED.sub("", line) for line in lines]  # a mark in an id separates nothing
    mark = next((mark for mark in "\t;," if any(mark in line for line in bare)), " ")
    if mark == ",":
        # The last nodes of a list often stand alone in their rows, perhaps with a blank in the id.
        ids = {cell.strip() for line in lines if "," in line for cell in line.split(",")}
        alone = [line.strip() for line in bare if "," not in line]
        if any(" " in line and line not in ids for line in alone):
            raise InputError(
                f"{path}: commas in some rows and blanks in others: set data.separator=comma or "
                "data.separator=blank"
            )
    return mark


def _cells(lines: list[str], separator: str, path: Path) -> list[list[str]]:
    """Split lines; a separator at the end of a line is none.

    Raises
    ------
    InputError
        A cell is empty, too long, or has a quotation mark that is left open.
    """
    rows = []
    for line in lines:
        try:
            row = split(line, separator)
        except csv.Error as error:
            raise InputError(f"{path}: {one_line(error)}: is it an adjacency list?") from None
        if row and row[-1].endswith("\n") and line.count('"') % 2:
            raise InputError(f"{path}: a quotation mark is left open: {line[:40]!r}")
        row = [cell.strip() for cell in row]
        while len(row) > 1 and not row[-1]:
            row.pop()
        if not all(row):
            raise InputError(f"{path}: an empty cell in place of an id: fill it or remove it")
        rows.append(row)
    return rows
