"""Open Graph Benchmark: a small made-up folder of the published layout, and malformed ones."""

import gzip

import pytest

from user_dgl.data import load_ogb
from user_dgl.errors import InputError

FILES = {
    "edge": "0,1\n1,0\n2,1\n3,3\n",
    "node-feat": "0.5,0\n1,2\n0,0\n-1,0.25\n",
    "node-label": "3\n0\n\n7\n",
    "num-node-list": "4\n",
    "num-edge-list": "4\n",
}


def _written(folder, **changes):
    raw = folder / "ogbn_made_up" / "raw"
    raw.mkdir(parents=True)
    for name, text in (FILES | {k.replace("_", "-"): v for k, v in changes.items()}).items():
        if text is not None:
            (raw / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return raw.parent


def test_graph_features_and_labels(tmp_path):
    data = load_ogb(_written(tmp_path))
    assert (data.graph.src.tolist(), data.graph.dst.tolist()) == ([0, 1], [1, 2])
    assert data.feat.toarray().tolist() == [[0.5, 0], [1, 2], [0, 0], [-1, 0.25]]
    assert data.labels.tolist() == [1, 0, -1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge": None}, "edge.csv.gz: not found: data.path must be the folder that contains raw/"),
        ({"edge": "0,1\n1,4\n"}, "line 2: node 4, expected 0..3"),
        ({"edge": "0,1\n-1,3\n"}, "line 2: node -1, expected 0..3"),
        ({"num_node_list": "-1\n"}, "-1 nodes: expected 1 or more"),
        ({"edge": "0,1,2\n"}, "3 columns, expected 2"),
        ({"edge": "0,a\n"}, "not a table of numbers"),
        ({"node_feat": "1,2\n"}, "node-feat.csv.gz: 1 rows for 4 nodes"),
        ({"node_label": "1,0\n" * 4}, "2 labels per node, expected one"),
        ({"num_node_list": "2\n2\n"}, "2 graphs: expected a data set of one graph"),
    ],
)
def test_faults_are_named(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        load_ogb(_written(tmp_path, **changes))


def test_damaged_archive(tmp_path):
    folder = _written(tmp_path)
    file = folder / "raw" / "node-feat.csv.gz"
    content = bytearray(gzip.compress(b"1.25,2.5\n" * 500))
    content[20:40] = bytes(255 - byte for byte in content[20:40])
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"node-feat\.csv\.gz: not a table of numbers"):
        load_ogb(folder)
