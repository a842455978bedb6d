"""Read GML files, as Gephi, Cytoscape, igraph, yEd and networkx write them."""

import re
from pathlib import Path

from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.data.formats.networkx_graph import from_networkx, names_of, parsed
from user_dgl.data.reading.files import read_bytes
from user_dgl.errors import InputError

# The graph of networkx needs this multiple of the file's size.
_COPIES = 30
_GRAPH = re.compile(r"\bgraph\s*\[", re.IGNORECASE)


def load_gml(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load graph, features and labels of a GML file, gzipped or not.

    The ids of the nodes are their attribute ``label`` if it is different for every node, else
    ``name`` if that is, else ``id``. See `user_dgl.data.formats.networkx_graph.from_networkx` for
    other attributes.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Raises
    ------
    InputError
        The file is unreadable or not GML, or `from_networkx` refuses the graph.
    """
    data = read_bytes(path, _COPIES)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text: save it as UTF-8") from None
    if not re.search(r"\bmultigraph\b", text):
        # Without it, networkx refuses an edge that stands twice.
        text = _GRAPH.sub("graph [ multigraph 1", text, count=1)
    graph = parsed(lambda nx: nx.parse_gml(text.splitlines(), label=None), path, "GML")
    named = names_of(graph, ("label", "name"))
    if named is None:
        return from_networkx(graph, path, missing)
    attribute, names = named
    for values in graph.nodes.values():
        values.pop(attribute)
    read = from_networkx(graph, path, missing, names)
    return read.with_notes(f"the attribute {attribute} holds the ids of the nodes")
