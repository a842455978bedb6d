"""Read node-link JSON, as networkx and D3 write it."""

import json
from pathlib import Path
from typing import Any

from user_dgl.data.attributed_graph import AttributedGraph, one_line
from user_dgl.data.edge_list.names import is_weight
from user_dgl.data.formats.networkx_graph import from_networkx, parsed
from user_dgl.data.reading.files import read_bytes
from user_dgl.errors import InputError

# The objects of Python and the graph of networkx need this multiple of the file's size.
_COPIES = 40


def load_node_link(path: Path, missing: str = "refuse") -> AttributedGraph:
    """Load the graph of a node-link JSON, gzipped or not.

    It is an object with a list ``nodes`` of objects with an ``id``, and a list ``links`` or
    ``edges`` of objects with ``source`` and ``target``, which are ids. Nodes without any ``id`` are
    numbered from 0. See `user_dgl.data.formats.networkx_graph.from_networkx` for other attributes.

    Parameters
    ----------
    path : Path
    missing : str
        See `user_dgl.data.reading.matrices.as_features`.

    Raises
    ------
    InputError
        The file is unreadable, not JSON or not node-link, an id is no text or whole number or is
        given twice, or an edge names an unknown node.
    """
    data = read_bytes(path, _COPIES)
    try:
        content = json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({one_line(error)}): fix it") from None
    key = "links" if isinstance(content, dict) and "links" in content else "edges"
    nodes, links = (_objects(content, name, path) for name in ("nodes", key))
    numbered = not any("id" in node for node in nodes)
    ids = [_id(k if numbered else node.get("id"), path) for k, node in enumerate(nodes)]
    known = set(ids)
    if len(known) < len(ids):
        raise InputError(f"{path}: two nodes have the same id: rename one")
    for link in links:
        for end in ("source", "target"):
            if _id(link.get(end), path) not in known:
                raise InputError(
                    f"{path}: edge with {end} {link.get(end)!r}, but no node has this id"
                )
    plain = {
        "multigraph": True,
        "directed": bool(content.get("directed", False)),
        "nodes": [{**node, "id": name} for node, name in zip(nodes, ids, strict=True)],
        key: [
            {
                **{name: value for name, value in link.items() if is_weight(name)},
                **{end: _id(link[end], path) for end in ("source", "target")},
            }
            for link in links
        ],
    }
    graph = parsed(lambda nx: nx.node_link_graph(plain, edges=key), path, "node-link JSON")
    return from_networkx(graph, path, missing)


def _objects(content: Any, name: str, path: Path) -> list[dict[str, Any]]:
    found = content.get(name) if isinstance(content, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise InputError(
            f"{path}: JSON without lists of objects `nodes` and `links`: write a row with two ids "
            "for each edge"
        )
    return found


def _id(value: Any, path: Path) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise InputError(f"{path}: id {value!r}: expected text or a whole number")
    return str(value)
