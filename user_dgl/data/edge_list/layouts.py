"""The layouts that a text of edges may have, and the options by which a user picks one.

Before a row becomes an edge, the reader decides which of these layouts the file has. If two of them
fit, it refuses the file, names both, and says which option picks which.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from user_dgl.data.edge_list.names import find_ends
from user_dgl.data.reading.lines import count_line_ends
from user_dgl.data.reading.text import TextFile
from user_dgl.errors import InputError

# Each layout by its name in ``data.layout``.
LAYOUTS = {
    "pairs": "an edge in each row: two columns hold its ends, others its weight or anything else",
    "matrix": "a square table of numbers: an adjacency matrix, with or without names of the nodes",
    "adjacency_list": "a node in each row, followed by its neighbours",
}
# What networkx.write_adjlist and networkx.write_multiline_adjlist write above the rows.
_NETWORKX = re.compile(rb"#[^\n]*\n#[ \t]*GMT ")
# A triple whose object is a text.
_LITERAL = re.compile(rb"(?m)^\s*<[^>\n]*>\s+<[^>\n]*>\s+\"[^\n]*\.[ \t]*$")
_NODE_AND_COLON = re.compile(r"[^\s:]+:(\s+\S.*)?")
# KONECT's mark of a network between two kinds of nodes, each of which is counted from 1.
_TWO_KINDS = re.compile(rb"%[ \t]*bip\b")
# What igraph writes as LGL: a line `# node` above the rows of its neighbours, again and again.
_FIRST_OF_LGL = re.compile(rb"# \S+[ \t]*\r?\n[^#\n]")
_NAMED_ABOVE = re.compile(rb"(?m)^# (\S+)[ \t]*\r?$")
_HEAD = 4096
_METIS_CONVERSION = "awk '!/^%/ {{if (n++) for (i=1; i<=NF; i++) print n-1, $i}}' {} > edges.txt"


@dataclass(frozen=True)
class TextOptions:
    """How to read a text of edges; the keys of the section ``data`` of the same names.

    Attributes
    ----------
    header : bool or ``auto``
    columns : sequence of str or int
        Names or numbers (from 1) of the columns with the ends; empty if they are to be found.
    separator : str
    comment : bool or ``auto``
    layout : str
    weights : str or int
        ``auto``, ``ignore``, or the name or number (from 1) of the column with the weights.
    """

    header: bool | str = "auto"
    columns: Sequence[str | int] = field(default=())
    separator: str = "auto"
    comment: bool | str = "auto"
    layout: str = "auto"
    weights: str | int = "auto"

    @property
    def weight_column(self) -> str | int | None:
        """The column with the weights, if the user names it."""
        return None if self.weights in ("auto", "ignore") else self.weights

    @property
    def given(self) -> list[str]:
        """Names of the keys that are not at their default."""
        default = TextOptions()
        return [
            f"data.{name.replace('weight_column', 'weights')}"
            for name in ("header", "columns", "separator", "comment", "layout", "weight_column")
            if getattr(self, name) != getattr(default, name)
        ]


def names_ends(cells: Sequence[str]) -> bool:
    """Whether cells are names of columns, two of which hold the ends of edges."""
    found = find_ends(cells)
    return found.known >= 2 and (found.columns is not None or bool(found.rivals))


def is_adjacency_list(text: TextFile) -> bool:
    """Whether networkx wrote the file as an adjacency list, which its comments say."""
    return bool(_NETWORKX.match(text.original))


def refuse_other_layouts(text: TextFile) -> None:
    """Refuse METIS, TGF, SIF and adjacency lists, which are rows of numbers or ids too.

    Raises
    ------
    InputError
        The file has such a layout. The message says how to read or convert it.
    """
    name = text.path.name
    if _is_metis(text):
        raise InputError(
            f"{text.path}: a METIS file, or edges (data.layout=pairs): line k + 1 lists the "
            f"neighbours of node k; convert it: {_METIS_CONVERSION.format(name)}"
        )
    if _is_tgf(text):
        raise InputError(
            f"{text.path}: a TGF file: nodes, a line with #, edges; convert it: "
            f"sed '1,/^#/d' {name} > edges.txt"
        )
    if _TWO_KINDS.match(text.original) and all(
        cell.strip().isdecimal() for row in text.sample for cell in row[:2]
    ):
        raise InputError(
            f"{text.path}: nodes of two kinds, each counted from 1 (% bip), or of one kind "
            "(data.layout=pairs): put a letter before each id: "
            f'awk \'!/^%/ {{$1="a"$1; $2="b"$2; print}}\' {name} > edges.txt'
        )
    if _is_lgl(text):
        raise InputError(
            f"{text.path}: an LGL file of igraph, or edges (data.layout=pairs): lines with # name "
            "the node whose neighbours follow; convert it: "
            f"awk '/^#/ {{u=$2; next}} {{print u, $1, $2}}' {name} > edges.txt"
        )
    if _LITERAL.search(text.body[:_HEAD]) or (
        text.sample[0][0].startswith("<") and _LITERAL.search(text.body)
    ):
        raise InputError(
            f"{text.path}: N-Triples, of which some have a text in place of a node; keep the "
            f"others: grep -v '\"' {name} > edges.txt"
        )
    firsts = {row[0].strip() for row in text.sample}
    if len(firsts) > 1 and all(map(_NODE_AND_COLON.fullmatch, firsts)):
        raise InputError(
            f"{text.path}: a node, a colon and its neighbours in each row: remove the colons "
            f"(tr -d : < {name} > lists.txt) and set data.layout=adjacency_list"
        )
    widths = {len(row) for row in text.sample}
    if len(widths) < 2 or text.short_header:
        return
    if text.path.name.lower().removesuffix(".gz").endswith(".sif"):
        raise InputError(
            f"{text.path}: a SIF file with several nodes in a row; convert it: "
            f"awk '{{for (i=3; i<=NF; i++) print $1, $i}}' {name} > edges.txt"
        )
    if _is_ragged(text):
        raise InputError(
            f"{text.path}: rows of {min(widths)} to {max(widths)} cells: set "
            "data.layout=adjacency_list if each row is a node and its neighbours; edges need as "
            "many cells in each row"
        )


def _is_lgl(text: TextFile) -> bool:
    """Whether comments stand between the rows that may be the nodes whose neighbours follow."""
    second = text.original.find(b"\n#") + 1
    if not (
        _FIRST_OF_LGL.match(text.original) and second and _NAMED_ABOVE.match(text.original, second)
    ):
        return False
    named = {word.decode(errors="replace") for word in _NAMED_ABOVE.findall(text.original)}
    ids = {cell.strip() for row in text.sample for cell in row}
    return bool(named & ids) or all(map(str.isdecimal, named))


def _is_ragged(text: TextFile) -> bool:
    """Whether the rows may be nodes with neighbours: each starts with another node."""
    firsts = [row[0].strip() for row in text.sample]
    others = {cell.strip() for row in text.sample for cell in row[1:]}
    widths = {len(row) for row in text.sample}
    common = bool(others & set(firsts))
    varied = max(widths) > 2 and (len(widths) > 2 or min(widths) == 1)
    return len(set(firsts)) == len(firsts) > 2 and varied and common


def _is_metis(text: TextFile) -> bool:
    """Whether the first line counts the lines below it and the entries in them."""
    if text.separator not in (" ", "\t"):
        return False
    first = text.sample[0]
    if not 2 <= len(first) <= 4 or not all(cell.isdigit() for cell in first[:3]):
        return False
    nodes, edges = int(first[0]), int(first[1])
    most = 2 * nodes + 9
    if not edges or not nodes // 2 <= count_line_ends(text.body, most) <= most:
        return False  # most files end here
    lines = text.body.strip(b"\n").count(b"\n")  # isolated nodes have blank lines
    with_edges = text.body.lstrip().partition(b"\n")[2]
    if not lines <= nodes <= 2 * lines + 1 or re.search(rb"[^0-9\s]", with_edges):
        return False
    entries = len(with_edges.split())
    if len(first) == 2:
        return entries == 2 * edges
    # Weights of nodes or edges stand between the neighbours.
    return lines == nodes and entries >= 2 * edges


def _is_tgf(text: TextFile) -> bool:
    """Whether a line with only # stands between nodes and the edges among them."""
    nodes, mark, edges = text.original.partition(b"\n#\n")
    if not mark or b"\n#\n" in edges:
        return False
    named = {line.split(maxsplit=1)[0] for line in nodes.split(b"\n") if line.strip()}
    pairs = [line.split()[:2] for line in edges.split(b"\n")[:1000] if line.strip()]
    some = nodes.split(b"\n", 1)[0].split()
    if not all(len(pair) == 2 and set(pair) <= named for pair in pairs):
        return False
    lines = sum(bool(line.strip()) for line in nodes.split(b"\n"))
    return lines == len(named) and (len(some) < 2 or some[1] not in named)
