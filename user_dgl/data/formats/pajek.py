"""Read Pajek files (.net)."""

import re
import shlex
from pathlib import Path

from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.data.formats.networkx_graph import from_networkx, parsed
from user_dgl.data.reading.cells import is_number
from user_dgl.data.reading.files import read_bytes
from user_dgl.errors import InputError

# The graph of networkx needs this multiple of the file's size.
_COPIES = 20
_SECTION = re.compile(r"\*(\w+)")
# What networkx reads. `*arcs :1 "friends"` is `*arcs` with the name of a relation.
_READ = ("network", "vertices", "arcs", "edges")
_LIKE_A_NUMBER = re.compile(r"[-+.,]?[0-9]")


def load_pajek(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load the graph of a Pajek file, gzipped or not.

    The ids of the nodes are their labels. Every vertex must have a line of its own, and a label
    that no other has.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Raises
    ------
    InputError
        The file is unreadable or not Pajek (with the line), has a section other than vertices,
        arcs and edges, or `from_networkx` refuses the graph.
    """
    data = read_bytes(path, _COPIES)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text: save it as UTF-8") from None
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("%")]
    sections = [(k, line.split()) for k, line in enumerate(lines) if line.startswith("*")]
    kinds = []
    for place, cells in sections:
        match = _SECTION.fullmatch(cells[0])
        kind = match[1].lower() if match else cells[0]
        if kind not in _READ:
            raise InputError(
                f"{path}: section {cells[0]}: expected *vertices, *arcs and *edges: write its "
                "edges as *edges, one in each line"
            )
        kinds.append(kind)
        if kind in ("arcs", "edges"):
            lines[place] = "*" + kind
    if kinds.count("vertices") != 1:
        raise InputError(f"{path}: {kinds.count('vertices')} sections *vertices: expected one")
    first = kinds.index("vertices")
    start, cells = sections[first]
    if len(cells) != 2 or not cells[1].isdigit():
        raise InputError(f"{path}: {' '.join(cells)!r}: expected *vertices and their number")
    stop = sections[first + 1][0] if first + 1 < len(sections) else len(lines)
    if stop - start - 1 != int(cells[1]):
        raise InputError(
            f"{path}: {cells[1]} vertices announced, {stop - start - 1} lines of vertices: give "
            'a line such as `1 "name"` for each'
        )
    # One section of edges is enough, because graphs are undirected here.
    kept = lines[: stop + 1] + [line for line in lines[stop + 1 :] if not line.startswith("*")]
    for line in kept[stop + 1 :]:
        _check_edge(line, path)
    graph = parsed(lambda nx: nx.parse_pajek(kept), path, "Pajek")
    if len(graph) != int(cells[1]):
        raise InputError(
            f"{path}: {cells[1]} vertices announced, {len(graph)} found: two have one label, or an "
            "edge names an unknown vertex"
        )
    for values in graph.nodes.values():
        values.clear()
    return from_networkx(graph, path, missing)


def _check_edge(line: str, path: Path) -> None:
    """Refuse a row that networkx leaves out, and a weight in whose place it takes 1."""
    try:
        cells = shlex.split(line)
    except ValueError:
        return  # the parser says so
    if len(cells) < 2:
        raise InputError(f"{path}: edge {line!r}: expected two vertices")
    weight = cells[2] if len(cells) > 2 else ""
    if _LIKE_A_NUMBER.match(weight) and not is_number(weight):
        raise InputError(
            f"{path}: edge {line!r}: weight {weight!r} is not a number: write it with a point"
        )
