"""One graph in every format that ``--edges`` takes: the same nodes, edges, features and labels."""

import gzip
import io
import json
import re
import struct
import zipfile
import zlib
from dataclasses import replace
from itertools import product

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch

from user_dgl._dgl import dgl
from user_dgl.cli import main
from user_dgl.config import load_config
from user_dgl.data import load_edge_list
from user_dgl.data.formats.matrix_market import read_matrix_market
from user_dgl.data.formats.npz import write_npz
from user_dgl.data.reading import files as data_files
from user_dgl.data.reading.files import ending, read_bytes
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
    ids = data.node_ids or tuple(str(i) for i in range(data.num_nodes))
    ends = zip(data.graph.src.tolist(), data.graph.dst.tolist(), strict=True)
    return {frozenset((ids[u], ids[v])) for u, v in ends}


def notes(data):
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


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_graph(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FORMATS[name])
    data = load_edge_list(path, write(tmp_path / "f.npy", FEATURES))
    one = 1 if ".mtx" in name else 0
    assert (data.num_nodes, data.graph.num_edges) == (N, len(EDGES))
    assert pairs(data) == {frozenset((str(u + one), str(v + one))) for u, v in EDGES}
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES)
    assert data.labels is None
    assert all(note.startswith(path.name) for note in data.notes)


def write(path, content):
    if path.suffix == ".npy":
        np.save(path, content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---------------------------------------------------------------------------------------------
# Files that carry features and labels themselves


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


@pytest.mark.parametrize("name", CARRYING)
def test_features_and_labels_of_the_file_itself(name, tmp_path):
    path = tmp_path / f"graph.{name}".replace(" ", "-")
    path = path.with_suffix("." + name.rpartition(".")[2].rpartition(" ")[2])
    CARRYING[name](path)
    data = load_edge_list(path)
    assert data.node_ids is None
    assert pairs(data) == {frozenset((str(u), str(v))) for u, v in EDGES}
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES)
    assert data.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("name", ["mat", "graphml", "npz"])
def test_files_beside_it_take_the_place_of_what_a_file_carries(name, tmp_path):
    path = tmp_path / f"graph.{name}"
    CARRYING[name](path)
    rows = "".join(f"{i},{i + 0.5}\n" for i in reversed(range(N)))
    labels = write(tmp_path / "l", "1,b\n0,a\n")
    given = load_edge_list(path, write(tmp_path / "f.csv", rows), labels)
    assert given.feat.toarray().ravel().tolist() == [i + 0.5 for i in range(N)]
    assert given.labels.tolist() == [0, 1] + [-1] * (N - 2)
    assert "its features are replaced by those of f.csv" in notes(given)
    assert "its labels are replaced by those of l" in notes(given)
    with pytest.raises(InputError, match=r"f\.npy"):
        load_edge_list(path, write(tmp_path / "f.npy", FEATURES[:-1]))


def test_text_ids_of_graphml(tmp_path):
    path = write(tmp_path / "g.graphml", graphml(ids=lambda i: f"n{i}"))
    data = load_edge_list(path)
    assert data.node_ids == tuple(sorted(f"n{i}" for i in range(N)))
    assert pairs(data) == {frozenset((f"n{u}", f"n{v}")) for u, v in EDGES}
    by_id = dict(zip(data.node_ids, data.feat.toarray().tolist(), strict=True))
    assert by_id["n10"] == FEATURES[10].tolist()
    # The rows of another file have an order that GraphML has not.
    with pytest.raises(InputError, match="features without ids, but node ids are text"):
        load_edge_list(path, write(tmp_path / "f.npy", FEATURES))


def test_graphml_order_of_features_parallel_edges_and_weights(tmp_path):
    graph = nx.MultiGraph()
    for node in "abc":
        graph.add_node(node, **{f"feat_{k}": k + ord(node) for k in (10, 9, 1)}, feat_x="2.5")
    graph.add_edges_from([("a", "b"), ("b", "a"), ("c", "c")])
    graph.add_edge("b", "c", weight=0.0)
    graph.add_edge("a", "c", weight=2.5)
    data = load_edge_list(
        write(tmp_path / "g.graphml", saved(lambda f: nx.write_graphml(graph, f)))
    )
    assert pairs(data) == {frozenset("ab"), frozenset("ac")}
    assert data.feat.toarray()[0].tolist() == [98, 106, 107, 2.5]
    for said in (
        "1 self-loop entries dropped, 1 repeated or reversed entries merged",
        "1 edges of weight 0 dropped", "1 weights other than 1 ignored", "4 features feat_*",
    ):  # fmt: skip
        assert said in notes(data)


def xml(body, head="", keys=""):
    return (
        f'<?xml version="1.0"?>{head}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}'
        f'<graph edgedefault="undirected">\n{body}\n</graph></graphml>'
    )


NODES = '<node id="a"/>\n<node id="b"/>\n'
ODD = '<node id="a"><data key="k">x</data></node>'
EDGE = '<edge source="a" target="b"/>'
KEY = '<key id="k" for="node" attr.name="{}" attr.type="{}"><default>{}</default></key>'


def test_graphml_defaults_and_names(tmp_path):
    keys = KEY.format("feat_0", "double", "1.5") + '<key id="l" for="node" attr.name="label"/>'
    body = (
        '<node id="a"><data key="k">2</data><data key="l">Ann</data></node>'
        '<node id="b"><data key="l">Bob</data></node><node id="c"><data key="l">Cyd</data></node>'
    )
    data = load_edge_list(write(tmp_path / "g.graphml", xml(body + EDGE, keys=keys)))
    assert data.feat.toarray().ravel().tolist() == [2, 1.5, 1.5]
    assert data.labels is None
    assert "label is different for every node" in notes(data)


LAUGHS = "<!DOCTYPE g [" + '<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
) + "]>"  # fmt: skip
OUTSIDE = '<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (xml(f'<node id="&i;"/>{EDGE}', LAUGHS), r"g\.graphml:1: entity 'a': entities are not"),
        (xml(f'<node id="&a;"/>{EDGE}', OUTSIDE), r":1: entity 'a': entities are not supported"),
        (xml('<!DOCTYPE g [<!ENTITY % p "x"> %p;]>'), ":2: not XML"),
        (xml(NODES + '<edge source="a" target="c"/>'), r":4: edge to node 'c', but no node"),
        (xml(NODES + '<node id="a"/>' + EDGE), r":4: node 'a' given twice"),
        (xml(NODES + '<node id="a "/>' + EDGE), r"ids differ only by blanks"),
        (xml(NODES + '<node/>' + EDGE), r":4: node without id: add it"),
        (xml(NODES + '<edge source="a"/>'), r":4: edge without target"),
        (xml(NODES + "<hyperedge/>"), r":4: a hyperedge"),
        (xml(NODES + "<data>"), r":5: not XML: mismatched tag"),
        (xml(""), "no nodes"),
        ("", r":1: not XML: no element found"),
        ("0,1\n1,2\n", r":1: not XML: syntax error"),
        ("<a><b/></a>", "holds 0 graphs: expected one"),
        (xml(NODES + EDGE + "</graph><graph>"), "holds 2 graphs: expected one"),
        (xml(NODES + EDGE).encode("utf-16")[:-3], "not XML"),
        (xml(NODES + EDGE).replace("?>", ' encoding="nonsense"?>', 1), "not XML.* encoding"),
        (
            xml(ODD, keys=KEY.format("feat_0", "double", 1)),
            "not a usable GraphML file .*could not convert",
        ),
        (
            xml(ODD, keys=KEY.format("feat_0", "string", 1)),
            "node 'a': feat_0='x' is not a number",
        ),
        (xml('<node id="a"><data key="z">1</data></node>'), "no key z"),
        (
            xml(
                '<node id="a"><data key="k">1</data></node><node id="b"/>',
                keys=KEY.format("feat_0", "double", "NaN"),
            ),
            r"NaN, empty or infinite features in 1 rows .*: 1: .*data\.missing_features",
        ),
        (
            xml(NODES + '<edge source="a" target="b"><data key="k">-1</data></edge>',
                keys=KEY.format("weight", "double", 1).replace("node", "edge")),
            "edge 'a' to 'b': weight -1.0: expected 0 or more",
        ),
    ],
)  # fmt: skip
def test_graphml_refused(content, message, tmp_path):
    refused(write(tmp_path / "g.graphml", content), message)


def refused(path, message, *files):
    with pytest.raises(InputError, match=message) as caught:
        load_edge_list(path, *files)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(f"/{path.name}:") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows"),
        (b"0 1\n1 2\n", ":1: expected `%%MatrixMarket matrix` and coordinate or array"),
        (MTX + b"pattern general\n", "no rows"),
        (MTX + b"pattern general\n3 3 2\n", "only a header"),
        (MTX + b"pattern\n3 3 1\n1 2\n", ":1: expected `%%MatrixMarket matrix`"),
        (MTX + b"complex general\n2 2 1\n1 2 1 0\n", ":1: expected .* real, double, integer"),
        (MTX + b"pattern general\n3 3\n1 2\n", ":2: '3 3': expected numbers of rows, columns and"),
        (MTX + b"pattern general\n3 -3 1\n1 2\n", ":2: '3 -3 1': expected numbers"),
        (MTX + b"pattern general\n3 3 2\n1 2\n% c\n4 1\n", r":5: row 4: expected 1\.\.3"),
        (MTX + b"pattern general\n3 3 2\n1 2\n3 0\n", r":4: column 0: expected 1\.\.3"),
        (MTX + b"real general\n3 3 2\n1 2 1\n3 1 x\n", ":4: column 3: 'x' is not a number"),
        (MTX + b"real general\n3 3 2\n1 2 1\n3 1 3x\n", ":4: column 3: '3x' is not a number"),
        (MTX + b"real general\n3 3 2\n1 2 1\n3 1.5 1\n", ":4: column 2: '1.5' is not a whole"),
        (MTX + b"real general\n3 3 2\n1 2 1\n3 1\n", ":4: 2 columns, expected 3"),
        (MTX + b"real general\n3 3 1\n1 2\n", ":3: 2 columns, expected 3"),
        (MTX + b"pattern general\n3 3 2\n1 2\n", "1 entries, expected 2: is it cut off"),
        (MTX + b"pattern general\n3 3 1\n1 2\n1 3\n", "2 entries, expected 1"),
        (MTX + b"pattern general\n2000000000000 2000000000000 1\n1 2\n", "needs .* GB"),
        (ARRAY + b"real general\n2 2\n1\n0\n0\n", "3 entries, expected 4"),
        (ARRAY + b"real general\n9000000 9000000\n1\n", "1 entries, expected 81000000000000"),
        (ARRAY + b"real symmetric\n2 3\n1\n0\n0\n", r":2: symmetric of shape \(2, 3\)"),
        (ARRAY + b"real general\n3 3\n1\n0x\n0\n", ":4: column 1: '0x' is not a number"),
        (ARRAY + b"real general\n2 2\n1 0\n0 1\n", ":3: 2 columns, expected 1"),
        (MTX + b"pattern general\n3 2 1\n1 2\n", r"square adjacency .*\(3, 2\)"),
        (MTX + b"real general\n2 2 1\n1 2 nan\n", "negative, NaN or infinite weights in 1 rows"),
        (MTX + b"real skew-symmetric\n2 2 1\n2 1 3\n", "negative, NaN or infinite weights"),
        (gzip.compress(MTX + b"pattern general\n" + SIZE + LOWER)[:-9], "damaged gzip"),
    ],
)
def test_matrix_market_refused(content, message, tmp_path):
    refused(write(tmp_path / "g.mtx", content), message)


@pytest.mark.parametrize(
    ("symmetry", "form", "field"),
    [
        *product(("general", "symmetric", "skew-symmetric"), (sp.coo_matrix, np.asarray),
                 ("real", "integer")),
        ("general", sp.coo_matrix, "pattern"),
        ("symmetric", sp.coo_matrix, "pattern"),
    ],
)  # fmt: skip
def test_matrix_market_is_read_as_it_was_written(symmetry, form, field, tmp_path):
    values = np.random.default_rng(0).integers(-4, 5, (5, 5 if symmetry != "general" else 3))
    if symmetry != "general":
        values = values + values.T if symmetry == "symmetric" else values - values.T
    if field == "pattern":
        values = (values != 0).astype(int)
    matrix = form(values / 8 if field == "real" else values)
    file = tmp_path / "m.mtx"
    scipy.io.mmwrite(file, matrix, field=field, symmetry=symmetry)
    found = read_matrix_market(file)
    assert found.shape == values.shape
    np.testing.assert_array_equal(found.toarray(), values / 8 if field == "real" else values)


def test_matrix_market_ids_start_at_one(tmp_path):
    path = write(tmp_path / "g.mtx", FORMATS["lower.mtx"])
    data = load_edge_list(path, None, write(tmp_path / "l.csv", "1,a\n13,b\n"))
    assert data.node_ids == tuple(str(i) for i in range(1, N + 1))
    assert data.labels.tolist() == [0] + [-1] * 11 + [1]
    assert f"ids are 1..{N}" in notes(data)
    refused(path, "node 3 has no row in", write(tmp_path / "f", "0,5\n1,6\n2,7\n"))


def mat(**variables):
    return saved(scipy.io.savemat, {"W": SYMMETRIC, **variables})


def bomb():
    """A version 5 file whose one element would unpack to 4 GB."""
    header = b"MATLAB 5.0".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
    packer = zlib.compressobj(9)
    block = packer.compress(bytes(10**7)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(10**7)) + packer.flush(zlib.Z_FULL_FLUSH)
    data = block + again * 400
    return header + struct.pack("<II", 15, len(data)) + data


def with_wrong_size():
    """A file whose sizes lead SciPy's parser out of it: some releases end the process."""
    whole = saved(scipy.io.savemat, {"W": SYMMETRIC})
    return whole[:173] + b"\xff" * 4 + whole[177:]


OUT_OF_BOUNDS = sp.csc_matrix((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
OUT_OF_BOUNDS.indices[1] = 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a MATLAB file up to version 7"),
        (b"0,1\n1,2\n" * 40, "not a MATLAB file up to version 7"),
        (saved(scipy.io.savemat, {"B": SYMMETRIC}), "holds B: expected a variable called w, "),
        (saved(scipy.io.savemat, {"W": FEATURES}), "no square matrix called w, network"),
        (saved(scipy.io.savemat, {"X": FEATURES}), "no square matrix called w, network"),
        (saved(scipy.io.savemat, {"W": OUT_OF_BOUNDS}), "not a MATLAB file .*indices"),
        (mat(fea=FEATURES[:-1]), "fea has 12 rows for 13 nodes: they must agree"),
        (mat(fea=FEATURES.T), "fea has 3 rows for 13 nodes: transpose it"),
        (mat(gnd=LABELS[:-1]), "gnd has 12 labels for 13 nodes"),
        (mat(fea=np.where(FEATURES > 4, np.nan, FEATURES)), r"fea: NaN.*data\.missing_features"),
        (mat(fea=np.full((N, 1), "word")), "fea: features of .* type <U"),
        (mat(fea={"a": 1}), "fea: features of shape"),
        (mat(W=-SYMMETRIC), "negative, NaN or infinite weights"),
        (b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n", r"version 7\.3 .*with -v7"),
        (b"\x89HDF\r\n\x1a\n", r"version 7\.3"),
        (saved(scipy.io.savemat, {"W": SYMMETRIC}, do_compression=True)[:-9], "not a MATLAB file"),
        (with_wrong_size(), "crashed the process that read it|not a MATLAB file"),
        (saved(scipy.io.savemat, {"B": SYMMETRIC}).replace(b"B", b"\n", 2), r"holds .*: expected"),
    ],
)
def test_mat_refused(content, message, tmp_path):
    refused(write(tmp_path / "g.mat", content), message)


def test_several_labels_a_node_are_not_used(tmp_path):
    data = load_edge_list(write(tmp_path / "g.mat", mat(group=np.ones((N, 3)))))
    assert data.labels is None
    assert "group is not used: 13 nodes have several labels" in notes(data)


def test_published_mat(data_folder):
    data = load_edge_list(data_folder("blogcatalog3") / "blogcatalog.mat")
    assert (data.num_nodes, data.graph.num_edges) == (10312, 333983)
    assert data.labels is None


def test_dgl_files_refused(tmp_path):
    path = tmp_path / "g.bin"
    carrying_dgl(path)
    whole = path.read_bytes()
    refused(write(path, whole[:-100]), "not a file of dgl.save_graphs, or damaged")
    # A length that crashes the process which reads it.
    at = whole.index(b"feat") - 8
    refused(
        write(path, whole[:at] + b"\xff" * 8 + whole[at + 8 :]), "crashed the process that read it"
    )
    graph = dgl.graph(([0, 1], [1, 2]))
    dgl.save_graphs(str(path), [graph, graph])
    refused(path, "holds 2 graphs, expected one")
    graph.ndata["feat"] = torch.tensor([[1.0], [float("nan")], [2.0]])
    dgl.save_graphs(str(path), [graph])
    filled = load_edge_list(path, missing="mean")
    assert filled.feat.toarray().ravel().tolist() == [1, 1.5, 2]
    assert "g.bin: 1 missing or infinite features set to the mean" in notes(filled)
    refused(tmp_path / "none.bin", "No such file")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(EDGES, dtype=float), "expected an adjacency .* or whole numbers"),
        (np.zeros((0, 2), dtype=int), "expected an adjacency"),
        (np.zeros((3, 4)), r"square adjacency matrix of numbers, got shape \(3, 4\)"),
        (np.zeros(3), "square adjacency"),
        (np.array([["a", "b"]] * 3), "expected an adjacency"),
        (np.array([[0, -1.0, 0], [0, 0, 0], [0, 0, 0]]), "negative, NaN or infinite"),
        (np.array(EDGES, dtype=object), "not a plain npy array"),
    ],
)
def test_arrays_refused(array, message, tmp_path):
    refused(write(tmp_path / "e.npy", array), message)


def test_ids_of_an_array_of_edges(tmp_path):
    large = 2**63 - 1
    data = load_edge_list(write(tmp_path / "e.npy", np.array([[large, 5], [5, 7], [7, large]])))
    assert data.node_ids == ("5", "7", str(large))
    data = load_edge_list(write(tmp_path / "e.npy", np.array([[2**64 - 1, 5]] * 3, np.uint64)))
    assert data.node_ids == ("5", str(2**64 - 1))


# ---------------------------------------------------------------------------------------------
# Files of features and labels


@pytest.mark.parametrize(
    "save",
    [
        lambda p: np.savez(p, features=FEATURES),
        lambda p: np.savez(p, X=FEATURES[::-1], ids=np.arange(N)[::-1]),
        lambda p: np.savez_compressed(p, x=FEATURES, node_id=np.arange(N).astype(str)),
        lambda p: sp.save_npz(p, sp.coo_matrix(FEATURES)),
    ],
)
def test_npz_features(save, tmp_path):
    save(tmp_path / "f.npz")
    data = load_edge_list(write(tmp_path / "e.csv", FORMATS["e.csv"]), tmp_path / "f.npz")
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES)
    assert data.node_ids is None


def test_npz_features_from_one(tmp_path):
    np.savez(tmp_path / "f.npz", x=FEATURES, ids=np.arange(1, N + 1))
    rows = "".join(f"{u + 1} {v + 1}\n" for u, v in EDGES)
    data = load_edge_list(write(tmp_path / "e", rows), tmp_path / "f.npz")
    assert data.node_ids == tuple(str(i) for i in range(1, N + 1))
    np.testing.assert_array_equal(data.feat.toarray(), FEATURES)
    refused(write(tmp_path / "zero", text(" ")), "node 0 has no row in", tmp_path / "f.npz")


def test_features_and_labels_of_other_formats(tmp_path):
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    scipy.io.savemat(tmp_path / "f.mat", {"fea": FEATURES, "gnd": LABELS})
    scipy.io.mmwrite(tmp_path / "f.mtx", sp.coo_matrix(FEATURES), precision=9)
    np.savez(tmp_path / "l.npz", y=LABELS[::-1], ids=np.arange(N)[::-1])
    for features, labels in (("f.mat", "f.mat"), ("f.mtx", "l.npz")):
        data = load_edge_list(edges, tmp_path / features, tmp_path / labels)
        np.testing.assert_allclose(data.feat.toarray(), FEATURES, rtol=1e-6)
        assert data.labels.tolist() == LABELS.tolist()
    np.savez(tmp_path / "l.npz", y=LABELS[:5], ids=np.arange(9, 14))
    with pytest.raises(InputError, match=r"l\.npz: node 13 is not in the graph: check the id"):
        load_edge_list(edges, tmp_path / "f.mtx", tmp_path / "l.npz")
    scipy.io.savemat(tmp_path / "l.mat", {"group": np.ones((N, 2))})
    with pytest.raises(InputError, match="group: 13 nodes have several labels: expected one"):
        load_edge_list(edges, None, tmp_path / "l.mat")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": FEATURES, "b": FEATURES}, "holds a, b: expected one array"),
        ({"ids": np.arange(N)}, "holds ids: expected one array"),
        ({"x": FEATURES, "ids": np.arange(N - 1)}, r"ids of shape \(12,\) .* for 13 rows"),
        ({"x": FEATURES, "ids": np.arange(N) / 2}, "ids of shape .* type float64"),
        ({"x": FEATURES, "ids": np.arange(N) // 2}, "node 0 given twice, again in row 1"),
        ({"x": FEATURES, "ids": np.array([""] * N)}, "row 0: an id is missing"),
        ({"x": np.where(FEATURES > 4, np.inf, FEATURES)}, r"NaN, .*data\.missing_features"),
        ({"x": FEATURES.astype(str)}, "features of shape .* type <U"),
        ({"x": FEATURES.astype(object)}, "features of shape .* type object"),
    ],
)
def test_npz_features_refused(arrays, message, tmp_path):
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(InputError, match=message):
        load_edge_list(write(tmp_path / "e.csv", FORMATS["e.csv"]), tmp_path / "f.npz")


class Touch:
    def __reduce__(self):
        return (open, ("pwned", "w"))


@pytest.mark.parametrize("name", ["e.npz", "f.npz", "l.npz", "e.npy", "f.npy", "l.npy"])
def test_pickled_objects_are_not_loaded(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile = np.array([Touch()] * N, dtype=object)
    if name.endswith("y"):
        np.save(tmp_path / name, hostile, allow_pickle=True)
    else:
        member = "adj_matrix" if name[0] == "e" else "x"
        np.savez(tmp_path / name, **{member: hostile})
    chosen = {
        "edges": write(tmp_path / "e.csv", FORMATS["e.csv"]),
        {"e": "edges", "f": "features", "l": "labels"}[name[0]]: tmp_path / name,
    }
    with pytest.raises(InputError, match=re.escape(name)):
        load_edge_list(**chosen)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_missing_features(how, tmp_path):
    rows = "1,2,3\n,nan,3\n5,inf,0\n0,4,0\n"
    edges, features = write(tmp_path / "e", "0 1\n2 3\n"), write(tmp_path / "f.csv", rows)
    data = load_edge_list(edges, features, missing=how)
    first, second = (2, 3) if how == "mean" else (0, 0)
    assert data.feat.toarray().tolist() == [
        [1, 2, 3],
        [first, second, 3],
        [5, second, 0],
        [0, 4, 0],
    ]
    assert "f.csv: 3 missing or infinite features set to" in notes(data)
    # A row cut short is a fault of the file, not a missing feature.
    with pytest.raises(InputError, match=r"f\.csv:2: 2 columns, expected 3"):
        load_edge_list(edges, write(tmp_path / "f.csv", "1,2,3\n2,3\n5,6,7\n8,9,0\n"), missing=how)


# ---------------------------------------------------------------------------------------------
# Sizes


def test_what_does_not_fit_the_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "available_memory_mb", lambda: 20.0)
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    zeros = gzip.compress(b"0," * 10_000_000)
    assert len(zeros) < 100_000
    refused(write(tmp_path / "bomb.csv", zeros), r"needs .* GB of memory, but 0\.02 GB are")
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(30_000_000))
    for chosen in ((tmp_path / "bomb.npz",), (edges, tmp_path / "bomb.npz")):
        with pytest.raises(InputError, match=r"bomb\.npz: needs 0\.03 GB"):
            load_edge_list(*chosen)
    wide = {"fea": np.zeros((13, 300_000)), "W": SYMMETRIC}
    scipy.io.savemat(tmp_path / "bomb.mat", wide, do_compression=True)
    assert (tmp_path / "bomb.mat").stat().st_size < 100_000
    refused(tmp_path / "bomb.mat", "needs .* GB")
    sp.save_npz(tmp_path / "tall.npz", sp.coo_matrix(([1.0], ([0], [1])), (10**7, 10**7)))
    refused(tmp_path / "tall.npz", r"needs 0\.32 GB")
    with pytest.raises(InputError, match=r"tall\.npz: needs"):
        load_edge_list(edges, tmp_path / "tall.npz")


def test_a_bomb_is_found_without_unpacking_it_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "available_memory_mb", lambda: 200.0)
    path = write(tmp_path / "bomb.mat", bomb())
    refused(path, "needs .* GB")


def test_endings_and_bytes(tmp_path):
    names = {"a.CSV": ".csv", "a.mtx.gz": ".mtx", "a.b.MAT.GZ": ".mat", "edges": "", "x.gz": ""}
    assert {name: ending(name) for name in names} == names
    content = b"0,1\n" * 1000
    path = write(tmp_path / "two-members", gzip.compress(content) + gzip.compress(content))
    assert read_bytes(path) == content * 2
    refused(write(tmp_path / "e.csv", FORMATS["lower.mtx"]), r"a MatrixMarket file: name it \.mtx")
    refused(write(tmp_path / "e.csv", graphml()), r"an XML file: name it \.graphml")
    refused(
        write(tmp_path / "e.csv", FORMATS["plain.mat"]), r"holds NUL bytes.*\.npz, \.npy, \.mat"
    )


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (("a", "b") * 6, "node_ids: some are given twice"),
        (("a", "a ", *"bcdefghijk"), "id 'a' given twice, apart from blanks"),
        (("a", " ", *"bcdefghijk"), "node 1: an id is missing"),
        ((*"abcdefghijk", "\ud800"), "node_ids: text that is not valid Unicode"),
    ],
)
def test_ids_of_an_npz_refused(ids, message, tmp_path):
    data = load_edge_list(write(tmp_path / "e.csv", FORMATS["e.csv"]))
    with open(tmp_path / "g.npz", "wb") as file:
        write_npz(file, replace(data, node_ids=ids))
    refused(tmp_path / "g.npz", message)


@pytest.mark.parametrize("order", "<>")
def test_text_of_arrays_that_is_no_unicode(order, tmp_path):
    """NumPy makes strings of such numbers that Python itself cannot handle."""
    numbers = np.full(N, 0x110000, dtype=f"{order}u4")
    text = numbers.view(f"{order}U1")
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    np.save(tmp_path / "l.npy", text)
    with pytest.raises(InputError, match=r"l\.npy: text that is not valid Unicode"):
        load_edge_list(edges, None, tmp_path / "l.npy")
    np.savez(tmp_path / "f.npz", x=FEATURES, ids=text)
    with pytest.raises(InputError, match=r"f\.npz: text that is not valid Unicode"):
        load_edge_list(edges, tmp_path / "f.npz")


# ---------------------------------------------------------------------------------------------
# The command


def train(tmp_path, *arguments):
    return main(["train", *map(str, arguments), "train.epochs=3", f"output_dir={tmp_path / 'run'}"])


@pytest.mark.parametrize("name", ["mat", "graphml", "npz", "bin"])
def test_training_on_a_file_needs_no_more_than_it(name, tmp_path, capsys):
    path = tmp_path / f"graph.{name}"
    CARRYING[name](path)
    assert train(tmp_path, "--edges", path, "--clusters", 2) == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["num_labelled_nodes"] == N
    assert result["num_features"] == 3
    assert result["metrics"]["nmi"] > 80
    assert "graph." in capsys.readouterr().out


def test_training_writes_a_config_that_repeats_it(tmp_path, monkeypatch, capsys):
    """From a relative path, with a data folder set that it does not lie in."""
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "data" / "my graph.csv", FORMATS["e.csv"])
    write(tmp_path / "data" / "f.npy", FEATURES)
    write(tmp_path / "data" / "l.txt", "".join(f"{x}\n" for x in LABELS))
    monkeypatch.setenv("USER_DGL_DATA", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path)
    arguments = ["--edges", "data/my graph.csv", "--features", "data/f.npy"]
    arguments += ["--labels", "data/l.txt", "--clusters", "2"]
    assert main(["train", *arguments, "train.epochs=3", "eval.floors=true"]) == 0
    run = tmp_path / "outputs" / "my graph" / "seed0"
    config = load_config(run / "config.yaml")
    assert config.train.epochs == 3
    assert config.model.encoder == "smooth"  # as in configs/default.yaml
    monkeypatch.chdir("/")
    again = tmp_path / "again"
    assert main(["train", str(run / "config.yaml"), f"output_dir={again}"]) == 0
    for file in ("clusters.csv", "embedding.npy", "learned_graph.npz"):
        assert (run / file).read_bytes() == (again / file).read_bytes()
    assert json.loads((again / "result.json").read_text())["floors"]


def test_a_config_and_settings_go_with_the_files(tmp_path):
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    config = write(tmp_path / "own.yaml", "seed: 3\ntrain: {log_every: 7}\n")
    mixed = [config, "--edges", edges, "seed=4", "--clusters=2", "model.hidden_feats=[4]"]
    assert train(tmp_path, *mixed) == 0
    found = load_config(tmp_path / "run" / "config.yaml")
    assert (found.seed, found.train.log_every, found.model.hidden_feats) == (4, 7, (4,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--edges", "none.csv", "--clusters", "2"), r"/none\.csv: not found: check the path"),
        (("--edges", "e.csv"), "num_clusters is not set"),
        (("--edges", "e.csv", "--clusters", "14"), "14 clusters asked for, 12 nodes"),
        (("--edges", "e.csv", "--clusters", "two"), "--clusters two: expected a whole number of"),
        (
            ("--edges", "e.csv", "--clusters", "3, seed: 5"),
            "--clusters 3, seed: 5: expected",
        ),
        (("--edges", "e.csv", "--clusters", "0"), "--clusters 0: expected a whole number of 2"),
        (("--edges", "", "--clusters", "2"), "--edges: names no file"),
        (("--features", "e.csv", "--clusters", "2"), "--features goes with --edges FILE"),
        (("--edges", "e.csv", "--clusters", "2", "train.epoch=3"), "did you mean train.epochs"),
        (("--edges", "e.csv", "--clusters", "2", "--features", "x.npy"), r"/x\.npy: not found"),
        (
            ("--edges", "e.csv", "--clusters", "2", "data.columns=[a]"),
            "columns: expected two names",
        ),
        ((), r"train needs a CONFIG, or --edges FILE"),
    ],
)
def test_unusable_arguments(arguments, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "e.csv", FORMATS["e.csv"])
    assert main(["train", *arguments]) == 2
    error = capfd.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv"]


def test_nodes_of_which_nothing_is_known_are_counted(tmp_path, capsys):
    labels = write(tmp_path / "l.csv", "".join(f"{i % 2}\n" for i in range(N + 1)))
    edges = write(tmp_path / "e.csv", FORMATS["e.csv"])
    assert train(tmp_path, "--edges", edges, "--labels", labels, "--clusters", 2) == 0
    assert "Warning: 2 nodes have neither edges nor features" in capsys.readouterr().out
    assert len((tmp_path / "run" / "clusters.csv").read_text().splitlines()) == 1 + N + 1


LARGEST = 2**63 - 1
TINY = "".join(f"{i} {j}\n" for i in range(4) for j in range(i))
BOTH = {"edges": TINY, "features.npy": np.eye(4)}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"edges.csv": gzip.compress(text(","))[:-9]}, "damaged gzip"),
        ({"edges.csv": "0,1,1\n1,2,-inf\n"}, r"edges\.csv:2: weight -inf in column 3"),
        ({"edges.csv": "\ufeffa;b\r\nb;\r\n"}, r"edges\.csv:2: an id is missing"),
        ({"edges.csv": b"a,b\nb,\xe9\n"}, r"edges\.csv:2: not UTF-8"),
        ({"edges.mat": saved(scipy.io.savemat, {"M": SYMMETRIC})}, "expected a variable called w"),
        ({"edges.mat": b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n"}, "with -v7"),
        ({"edges.graphml": xml(f'<node id="&i;"/>{EDGE}', LAUGHS)}, "entities are not supported"),
        ({"edges.mtx": MTX + b"pattern general\n3 3 2\n1 2\n4 1\n"}, r"edges\.mtx:4: row 4"),
        ({"edges.npz": b"PK\x03\x04 cut off"}, "not an npz file"),
        ({"edges": TINY, "features.npy": np.full((4, 2), np.inf)}, "4 rows .*: 0, 1, 2, 3:"),
        ({"edges": TINY, "features.csv": "id,x\n0,1\n2,3\n2,4\n"}, r"csv:4: node 2 given twice"),
        ({**BOTH, "labels.csv": "0,a\n1,b\n7,a\n"}, r"labels\.csv:3: node 7 is not in the graph"),
        ({**BOTH, "labels.npy": LABELS}, "labels.npy: 13 labels for 4 nodes"),
    ],
)  # fmt: skip
def test_unusable_files(files, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "--clusters", "2"]
    for name, content in files.items():
        write(tmp_path / name, content)
        arguments += [f"--{name.partition('.')[0]}", name]
    assert main(arguments) == 2
    error = capfd.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize(
    ("edges", "features", "ids"),
    [
        (f"0 {LARGEST}\n0 3\n{LARGEST} 3\n", None, ["0", "3", str(LARGEST)]),
        ("\ufeffu\tv\tw\r\n1\t2\t1\r\n2\t3\t0.5\r\n2\t1\t2\r\n", "1\n2\n3\n", ["1", "2", "3"]),
        ("# c\n  a \t b\n\nb\tc\n", "c,1,0\na,0,1\nd,2,0\nb,0,3\n", ["a", "b", "c", "d"]),
    ],
)
def test_odd_files_that_can_be_used(edges, features, ids, tmp_path):
    arguments = ["--clusters", 2, "--edges", write(tmp_path / "e", edges)]
    if features:
        arguments += ["--features", write(tmp_path / "f", features)]
    assert train(tmp_path, *arguments) == 0
    lines = (tmp_path / "run" / "clusters.csv").read_text().splitlines()
    assert lines[0] == "node,cluster"
    assert [line.split(",")[0] for line in lines[1:]] == ids
    assert np.isfinite(np.load(tmp_path / "run" / "embedding.npy")).all()


def test_unknown_options_are_refused(capsys):
    for arguments in (["train", "x.yaml", "--edge-file", "a"], ["evaluate", "run", "seed=1"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert "unrecognized arguments" in capsys.readouterr().err
