"""Read GraphML files. The node attributes ``feat_*`` are features, and ``label`` is the class."""

import io
import re
from pathlib import Path

from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.data.formats.networkx_graph import XmlChecker, from_networkx, names_of, parsed
from user_dgl.data.reading.files import read_bytes
from user_dgl.errors import InputError

# The graph of networkx needs this multiple of the file's size.
_COPIES = 10
# igraph numbers the nodes so, and keeps their names in an attribute.
_IGRAPH = re.compile(r"n[0-9]+")
# networkx refuses graphs with edges of both kinds. Directions do not matter here.
_DIRECTED = re.compile(rb"""(<(?:\w+:)?edge\b[^<>]*?)\sdirected\s*=\s*["'](?:true|false)["']""")


def load_graphml(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load graph, features and labels of a GraphML file, gzipped or not.

    Attributes and weights are read as `user_dgl.data.formats.networkx_graph.from_networkx` says.
    A file that declares an entity is refused, so that no entity is ever expanded. If the ids are
    n0, n1, ..., as igraph writes them, and the attribute ``name`` is different for every node, the
    names are the ids.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Returns
    -------
    AttributedGraph
        Undirected, with nodes in ascending order of their ids, as for a list of edges.

    Raises
    ------
    InputError
        The file is unreadable, is not GraphML (with the line) or contains several graphs; an id is
        given twice; an edge names an unknown node; a feature is not a number; a weight is
        negative.
    """
    data = read_bytes(path, _COPIES)
    XmlChecker(path).check(data)
    plain = _DIRECTED.sub(rb"\1", data)
    graph = parsed(
        lambda nx: nx.read_graphml(io.BytesIO(plain), force_multigraph=True), path, "GraphML"
    )
    if not len(graph):
        raise InputError(f"{path}: no nodes: expected node elements in the graph")
    named = names_of(graph, ("name",)) if all(map(_IGRAPH.fullmatch, graph)) else None
    read = from_networkx(graph, path, missing, named and named[1])
    return read.with_notes("the attribute name holds the ids of the nodes") if named else read
