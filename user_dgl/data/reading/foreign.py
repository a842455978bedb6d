"""Files that are no table: recognised by how they start, and refused by name with a remedy."""

import re
from dataclasses import dataclass
from pathlib import Path

from user_dgl.data.reading.files import ending
from user_dgl.errors import InputError

# How much of a file is looked at.
HEAD = 4096


@dataclass(frozen=True)
class Foreign:
    """A kind of file that is recognised and not read.

    Attributes
    ----------
    start : pattern
        Matches the first bytes of such a file.
    what : str
        What the file is.
    remedy : str
        What to do; ``{}`` is the name of the file.
    """

    start: re.Pattern[bytes]
    what: str
    remedy: str


def _kinds(*rows: tuple[bytes, str, str]) -> tuple[Foreign, ...]:
    flags = re.DOTALL | re.IGNORECASE
    return tuple(Foreign(re.compile(start, flags), what, remedy) for start, what, remedy in rows)


# Never a table, whatever it is given for.
_FILES = _kinds(
    (rb"\s*version https://git-lfs", "a Git LFS pointer and not the file", "run `git lfs pull`"),
    (
        rb"\s*(<!--.*?-->\s*)?<(!doctype\s+html|html|head|body)\b",
        "a web page (HTML)",
        "download the file itself, often behind a link `raw` or `download`",
    ),
    (rb"PK\x03\x04", "a zip archive or an Excel workbook", "unpack it, or save the sheet as CSV"),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook", "save the sheet as CSV"),
    (rb"(PAR1|ARROW1)", "a Parquet or Arrow file", "save it as CSV with pandas"),
    (rb"\x89HDF", "an HDF5 file", "save its tables as CSV or .npy"),
    (rb"SQLite format 3", "an SQLite data base", "save the table as CSV"),
    (rb"%PDF-", "a PDF", "ask for the data as a text file"),
    (rb"BZh[1-9]1AY&SY", "a bzip2 archive", "unpack it with `bunzip2 {}`"),
    (rb"\xfd7zXZ\x00", "an xz archive", "unpack it with `unxz {}`"),
    (rb"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it with `unzstd {}`"),
)
_NAMED = rb"\s*((//|#)[^\n]*\n\s*|/\*(?:(?!\*/).)*\*/\s*)*"
# Graphs in formats without a reader here.
_GRAPHS = _kinds(
    (
        _NAMED + rb"(strict\s+)?(di)?graph\b[^\[\n{]*\{",
        "a DOT file (Graphviz)",
        "convert it: python -c \"import networkx as nx; nx.write_graphml(nx.nx_pydot.read_dot('{}')"
        ", 'graph.graphml')\"",
    ),
    (
        rb"(c\b[^\n]*\n|\s)*p\s+\w+\s+[0-9]+\s+[0-9]+",
        "a DIMACS file",
        'convert it: awk \'$1=="e" || $1=="a" {print $2, $3}\' {} > edges.txt',
    ),
    (
        rb"\s*dl\b[\s,]+(n\s*=|nr\s*=|format\b)",
        "a UCINET DL file",
        "convert it, if its format is edgelist1: sed '1,/data:/d' {} > edges.txt",
    ),
    (
        rb"\s*nodedef\s*>",
        "a GDF file (GUESS, Gephi)",
        "convert it: sed '1,/^edgedef/d' {} > edges.csv",
    ),
    (
        rb"\s*\*(node|tie)\s+(data|properties)",
        "a VNA file (NetDraw)",
        "convert it: sed '1,/^\\*tie data/Id' {} > edges.csv",
    ),
    (rb"\s*LEDA\.GRAPH", "a LEDA file", "save it as an edge list"),
    (rb"\s*\(tlp\s", "a Tulip file", "export it as GML or CSV"),
    (rb"\s*(>>graph6<<|>>sparse6<<)", "a graph6 file", "save it with networkx.write_edgelist"),
    (
        rb"\s*(#[^\n]*\n\s*)*@(prefix|base)\s+\S*\s*<|\s*(prefix|base)\s+\S*:?\s*<",
        "RDF in Turtle",
        "convert it to N-Triples: rapper -i turtle -o ntriples {} > graph.nt",
    ),
    (rb"\s*@(relation|attribute)\s", "an ARFF file (Weka)", "save it as CSV"),
    (
        rb"\s*@(nodes|arcs|edges)\b",
        "an LGF file (LEMON)",
        "convert it: sed '1,/^@\\(arcs\\|edges\\)/d' {} > edges.txt",
    ),
    (
        rb"\s*\w*\(?\{\s*\(|\s*\w*\(?\[\s*[(\[]|\s*(tensor|array)\(",
        "pairs as Python or JSON prints them",
        'convert it: python -c "import ast; '
        "[print(u, v) for u, v in ast.literal_eval(open('{}').read())]\" > edges.txt",
    ),
    (
        rb"\s*(\[[^\[\](){}\n]*\]|\([^\[\](){}\n]*\))[ \t]*,?[ \t]*(\n|$)",
        "a pair in brackets in each line",
        "convert it: tr '[](),' '     ' < {} > edges.txt",
    ),
    (
        rb"\s*\w+\([^(),\n]+,[^()\n]+\)[ \t]*[.;]?[ \t]*(\n|$)",
        "facts as Prolog has them",
        "convert it: sed 's/^[^(]*(//; s/).*//' {} > edges.csv",
    ),
    (
        rb"(---[ \t]*\n)?\s*(\w+:[ \t]*\n\s*)?-[ \t]+([\[{]|[^\s:]+:[ \t])",
        "YAML",
        "write a row with two ids for each edge",
    ),
    (
        rb"\s*\{[^\n]*\}[ \t]*\n\s*\{",
        "JSON with a record in each line",
        "convert it: python -c \"import pandas as pd; pd.read_json('{}', lines=True)"
        ".to_csv('edges.csv', index=False)\"",
    ),
    (
        rb"\s*\[\s*\{",
        "a JSON list of records",
        "convert it: python -c \"import pandas as pd; pd.read_json('{}')"
        ".to_csv('edges.csv', index=False)\"",
    ),
    (
        rb"\s*\{\s*([\"'\w(]|\})",
        "JSON or a Python dictionary",
        "write a row with two ids for each edge",
    ),
)


def refuse_files(path: Path, head: bytes) -> None:
    """Refuse what is no table, such as a web page.

    Parameters
    ----------
    path : Path
        Name for messages.
    head : bytes
        First bytes of the unpacked file, see `HEAD`.

    Raises
    ------
    InputError
        The file is of such a kind. The message says what it is, and what to do.
    """
    _refuse(path, head, _FILES)


def refuse_graphs(path: Path, head: bytes) -> None:
    """Refuse graphs in formats that have no reader here; see `refuse_files`."""
    _refuse(path, head, _GRAPHS)


def _refuse(path: Path, head: bytes, kinds: tuple[Foreign, ...]) -> None:
    head = head.removeprefix(b"\xef\xbb\xbf")
    for kind in kinds:
        if kind.start.match(head):
            remedy = kind.remedy.replace("{}", path.name)
            raise InputError(f"{path}: {kind.what}: {remedy}")


def refuse_other_bytes(path: Path, data: bytes) -> None:
    """Refuse what is no UTF-8 text, or text of a format that needs its own ending."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path}: UTF-16 text: save it as UTF-8")
    if b"\0" in data:
        raise InputError(
            f"{path}: holds NUL bytes: expected text (UTF-8); a binary file needs the ending of "
            "its format: .npz, .npy, .mat, .bin"
        )
    if data.startswith(b"%%MatrixMarket") and ending(path) != ".mtx":
        raise InputError(f"{path}: a MatrixMarket file: name it .mtx or .mtx.gz")
    if data.lstrip()[:5] in (b"<?xml", b"<grap"):
        raise InputError(f"{path}: an XML file: name it .graphml if it is GraphML")
