"""MUSAE: counts of the published files, and malformed ones."""

import json

import numpy as np
import pytest

from user_dgl.data import load_musae
from user_dgl.errors import InputError


@pytest.mark.parametrize(
    ("name", "num_nodes", "num_edges", "shape", "nnz", "sizes"),
    [
        ("facebook", 22470, 170823, (22470, 4714), 314583, [6495, 6880, 5768, 3327]),
        ("twitch_DE", 9498, 153138, (9498, 3170), 193132, [3756, 5742]),
    ],
)
def test_published_counts(data_folder, name, num_nodes, num_edges, shape, nnz, sizes):
    data = load_musae(data_folder("musae") / name)
    assert (data.num_nodes, data.graph.num_edges) == (num_nodes, num_edges)
    assert (data.feat.shape, data.feat.nnz) == (shape, nnz)
    assert np.bincount(data.labels).tolist() == sizes


def test_without_features(data_folder):
    data = load_musae(data_folder("musae") / "lastfm_asia")
    assert data.feat is None
    assert (data.graph.num_edges, len(np.unique(data.labels))) == (27806, 18)


FILES = {
    "x_edges.csv": "from,to\n0,2\n1,2\n2,2\n",
    # Nodes are new_id, in any order.
    "x_target.csv": "id,mature,new_id\n900,True,2\n901,False,0\n902,True,1\n",
    "x.json": json.dumps({"2": [0, 3, 3], "0": [], "1": [1]}),
}


def _written(folder, **changes):
    for name, text in (FILES | {f"x{k}": v for k, v in changes.items()}).items():
        if text is not None:
            (folder / name).write_text(text)
    return folder


def test_nodes_are_those_of_the_target_file(tmp_path):
    data = load_musae(_written(tmp_path))
    assert data.labels.tolist() == [0, 1, 1]
    assert data.feat.toarray().tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 1]]
    assert (data.graph.src.tolist(), data.graph.dst.tolist()) == ([0, 1], [2, 2])
    assert data.notes == ("1 self-loop entries dropped",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_edges.csv": None}, r"0 files are named \*_edges.csv, expected one"),
        ({"_edges.csv": "a,b\n0,1\n0,3\n"}, "x_edges.csv: line 3: node 3, expected 0..2"),
        ({"_edges.csv": "a,b\n0,x\n"}, "line 2: b x: expected a whole number"),
        ({"_edges.csv": "a,b,c\n0,1,1\n"}, "3 columns, expected 2"),
        ({"_edges.csv": ""}, "x_edges.csv: not a CSV table"),
        ({"_target.csv": "id,mature\n0,True\n2,True\n3,False\n"}, "none for node 1"),
        ({"_target.csv": "id,colour\n0,True\n"}, "the columns are id, colour: expected page_type"),
        ({"_edges.csv": "id_1,id_2\n0,1,2\n1,2,0\n"}, "more cells than the header"),
        ({"_edges.csv": "0,1\n1,2\n"}, "line 1 is not a header"),
        ({"_edges.csv": "a,b\n0,1e300\n"}, "expected a whole number"),
        ({".json": '{"-1": [1]}'}, "node -1: expected 0..2"),
        ({".json": '{"1000000000000000000000": [1]}'}, "expected a JSON object"),
        ({".json": '{"0": [[1, 2], [3, 4]]}'}, "lists within lists"),
        ({".json": "[1, 2]"}, "expected a JSON object"),
        ({".json": '{"5": [1]}'}, "node 5: expected 0..2"),
        ({".json": '{"1": [-1]}'}, "feature ids: expected whole numbers"),
        ({".json": '{"1": ["a"]}'}, "feature ids: expected whole numbers"),
    ],
)
def test_faults_are_named(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        load_musae(_written(tmp_path, **changes))
