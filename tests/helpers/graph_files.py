"""One small graph with features and labels, in every format that ``--edges`` takes."""

import gzip
import io

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch

from user_dgl._dgl import dgl
from user_dgl.data import load_edge_list
from user_dgl.errors import InputError

# Two cliques of six and a bridge; the node 12 has no edge.
EDGES = [(s + i, s + j) for s in (0, 6) for i in range(6) for j in range(i + 1, 6)] + [(5, 6)]
U, V = np.array(EDGES).T
N = 13
ADJACENCY = sp.csr_matrix((np.ones(len(U)), (U, V)), shape=(N, N))
SYMMETRIC = ADJACENCY + ADJACENCY.T
LABELS = np.array([0] * 6 + [1] * 6 + [0])
FEATURES = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
FEATURES[np.arange(N), LABELS] += 3


def pairs(data):
    """Edges as pairs of the ids in the user's file."""
    ids = data.node_ids or tuple(str(i) for i in range(data.num_nodes))
    ends = zip(data.graph.src.tolist(), data.graph.dst.tolist(), strict=True)
    return {frozenset((ids[u], ids[v])) for u, v in ends}


def notes(data):
    """All notes of a loaded graph, as one text."""
    return " | ".join(data.notes)


def text(separator, end="\n", head=""):
    rows = [f"{u}{separator}{v}" for u, v in EDGES]
    return (head + "\n".join(rows) + "\n").replace("\n", end).encode()


def saved(save, *arguments, **keywords):
    file = io.BytesIO()
    save(file, *arguments, **keywords)
    return file.getvalue()


def graphml(directed=False, features=FEATURES, labels=LABELS, ids=str, graph=None):
    graph = (nx.DiGraph() if directed else nx.Graph()) if graph is None else graph
    for node in reversed(range(N)):
        values = {}
        if features is not None:
            values = {f"feat_{k}": float(x) for k, x in enumerate(features[node])}
        if labels is not None:
            values["label"] = f"class {labels[node]}"
        graph.add_node(ids(node), **values)
    graph.add_edges_from((ids(u), ids(v)) for u, v in EDGES)
    return saved(lambda file: nx.write_graphml(graph, file))


MTX, ARRAY = b"%%MatrixMarket matrix coordinate ", b"%%MatrixMarket matrix array "
LOWER = "".join(f"{v + 1} {u + 1}\n" for u, v in EDGES).encode()
UPPER = "".join(f"{u + 1} {v + 1} 1\n" for u, v in EDGES).encode()
SIZE = f"{N} {N} {len(EDGES)}\n".encode()


FORMATS = {
    "e.csv": text(","),
    "e.tsv": text("\t"),
    "e.txt": text("  ", "\r\n", "\ufeff# from, to\nsource target\n"),
    "e.semicolon": text(";"),
    "e.csv.gz": gzip.compress(text(",")),
    "pairs.npy": saved(np.save, np.array(EDGES)),
    "pairs-of-rows.npy": saved(np.save, np.array(EDGES, dtype=np.uint8).T),
    "dense.npy": saved(np.save, SYMMETRIC.toarray()),
    "scipy.npz": saved(sp.save_npz, ADJACENCY),
    "lower.mtx": MTX + b"pattern symmetric\n% a comment\n" + SIZE + LOWER,
    "upper.mtx.gz": gzip.compress(MTX + b"integer general\n" + SIZE + UPPER),
    "dense.mtx": saved(scipy.io.mmwrite, SYMMETRIC.toarray()),
    "plain.mat": saved(scipy.io.savemat, {"W": SYMMETRIC}),
    "dense.mat": saved(scipy.io.savemat, {"network": SYMMETRIC.toarray()}, do_compression=True),
    "version4.mat": saved(scipy.io.savemat, {"A": SYMMETRIC}, format="4"),
    "plain.graphml": graphml(features=None, labels=None),
    "directed.graphml.gz": gzip.compress(graphml(True, None, None)),
}


def write(path, content):
    if path.suffix == ".npy":
        np.save(path, content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def carrying_npz(path):
    np.savez(
        path, adj_data=ADJACENCY.data, adj_indices=ADJACENCY.indices, adj_indptr=ADJACENCY.indptr,
        adj_shape=ADJACENCY.shape, labels=LABELS,
        **{f"attr_{k}": v for k, v in csr_parts(sp.csr_matrix(FEATURES)).items()},
    )  # fmt: skip


def csr_parts(matrix):
    return {p: getattr(matrix, p) for p in ("data", "indices", "indptr", "shape")}


def carrying_dgl(path):
    graph = dgl.graph((torch.from_numpy(U), torch.from_numpy(V)), num_nodes=N)
    graph.ndata["feat"] = torch.from_numpy(FEATURES)
    graph.ndata["label"] = torch.from_numpy(LABELS)
    graph = graph.formats("csc")  # DGL lists no edges of such a graph
    dgl.save_graphs(str(path), [graph])


CARRYING = {
    "mat": lambda path: scipy.io.savemat(
        path, {"network": SYMMETRIC, "X": sp.csc_matrix(FEATURES), "Label": LABELS[:, None] + 1}
    ),
    "compressed mat": lambda path: scipy.io.savemat(
        path, {"W": SYMMETRIC, "fea": FEATURES, "gnd": LABELS[None] + 1}, do_compression=True
    ),
    "one column a class.mat": lambda path: scipy.io.savemat(
        path, {"A": SYMMETRIC, "Attributes": FEATURES, "group": sp.csc_matrix(np.eye(2)[LABELS])}
    ),
    "words.mat": lambda path: scipy.io.savemat(
        path, {"A": SYMMETRIC, "features": FEATURES, "gnd": np.array(["a", "b"], object)[LABELS]}
    ),
    "graphml": lambda path: path.write_bytes(graphml()),
    "directed.graphml": lambda path: path.write_bytes(graphml(True)),
    "npz": carrying_npz,
    "bin": carrying_dgl,
}


def xml(body, head="", keys=""):
    return (
        f'<?xml version="1.0"?>{head}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}'
        f'<graph edgedefault="undirected">\n{body}\n</graph></graphml>'
    )


NODES = '<node id="a"/>\n<node id="b"/>\n'
EDGE = '<edge source="a" target="b"/>'


LAUGHS = "<!DOCTYPE g [" + '<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
) + "]>"  # fmt: skip


def refused(path, message, *files):
    with pytest.raises(InputError, match=message) as caught:
        load_edge_list(path, *files)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(f"/{path.name}:") == 1
