"""Read GEXF files of Gephi and networkx."""

import io
import re
from pathlib import Path

from user_dgl.data.attributed_graph import AttributedGraph
from user_dgl.data.formats.networkx_graph import XmlChecker, from_networkx, parsed
from user_dgl.data.reading.files import read_bytes

# The graph of networkx needs this multiple of the file's size.
_COPIES = 20
# networkx refuses graphs with edges of several kinds. Directions do not matter here.
_KIND = re.compile(
    rb"""(<(?:\w+:)?edge\b[^<>]*?)\stype\s*=\s*["'](?:directed|undirected|mutual)["']"""
)


def load_gexf(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load graph, features and labels of a GEXF file, gzipped or not.

    The ids of the nodes are their attribute ``id``. A file that declares an entity is refused. See
    `user_dgl.data.formats.networkx_graph.from_networkx` for other attributes.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Raises
    ------
    InputError
        The file is unreadable or not GEXF (with the line), or `from_networkx` refuses the graph.
    """
    data = read_bytes(path, _COPIES)
    XmlChecker(path).check(data)
    plain = _KIND.sub(rb"\1", data.replace(b'"http://gexf.net/', b'"http://www.gexf.net/'))
    graph = parsed(lambda nx: nx.read_gexf(io.BytesIO(plain)), path, "GEXF")
    return from_networkx(graph, path, missing)
