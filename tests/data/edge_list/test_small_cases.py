"""Edge lists with features and labels: the small faulty inputs."""

import numpy as np
import pytest
import scipy.sparse as sp
from edge_lists import by_id
from graph_files import notes, pairs

from user_dgl.data import UNLABELLED, load_edge_list
from user_dgl.errors import InputError


@pytest.fixture
def case(cases_root):
    def load(edges, features=None, labels=None):
        return load_edge_list(*(n and cases_root / n for n in (edges, features, labels)))

    return load


def test_s01_loops_and_repeats(case):
    data = case("s01_loops_dups.csv", "s01_features.csv", "s01_labels.txt")
    assert (data.num_nodes, data.graph.num_edges) == (24, 68)
    assert int(data.graph.degree.max()) == 9
    assert "header (src, dst)" in notes(data)
    assert "4 self-loop entries dropped, 43 repeated or reversed entries merged" in notes(data)
    assert data.node_ids is None
    assert np.bincount(data.labels).tolist() == [8, 8, 8]


def test_s02_text_ids(case, cases_root):
    files = ("s02_string_ids.tsv", "s02_features_by_id.tsv", "s02_labels_by_id.tsv")
    data = case(*files)
    assert (data.num_nodes, data.graph.num_edges) == (18, 51)
    assert {"007", "7", "east 09", "west-ñ3"} < set(data.node_ids)
    assert not any("\r" in i or i != i.strip() for i in data.node_ids)
    assert frozenset(("007", "7")) in pairs(data)
    # Joined by id, not by line: against the lines of the files, read another way.
    read = [(cases_root / f).read_text(encoding="utf-8").splitlines() for f in files]
    rows = [line.split("\t") for line in read[1]]
    for row in rows:
        node = data.node_ids.index(row[0])
        np.testing.assert_allclose(data.feat[node].toarray()[0], np.float32(row[1:]))
    labels = dict(line.split("\t") for line in read[2])
    assert [str(x) for x in data.labels] == [labels[i] for i in data.node_ids]
    edges = {frozenset(x.split("\t")) for x in read[0] if x and not x.startswith("#")}
    assert pairs(data) == edges


def test_s03_ids_from_one(case):
    data = case("s03_one_based.txt", "s03_features.csv", "s03_labels.txt")
    assert (data.num_nodes, data.graph.num_edges) == (21, 42)
    assert data.node_ids == tuple(str(i) for i in range(1, 22))
    assert "ids start at 1" in notes(data)
    assert int(data.graph.degree.min()) > 0
    assert by_id(data)["1"][0] == pytest.approx(2.385)
    assert np.bincount(data.labels).tolist() == [7, 7, 7]


def test_s04_nodes_without_edges(case):
    data = case("s04_isolated.csv", "s04_features.csv", "s04_labels.txt")
    assert (data.num_nodes, data.graph.num_edges) == (18, 34)
    assert np.flatnonzero(data.graph.degree.numpy() == 0).tolist() == [0, 16, 17]
    assert sp.csgraph.connected_components(data.graph.to_scipy())[0] == 5
    assert data.node_ids is None
    assert "ids count from 0" in notes(data)


def test_s05_nan_and_inf(case):
    with pytest.raises(InputError, match=r"s05_nan_inf_features\.csv: .* in 3 rows .*: 4, 11, 18:"):
        case("s05_edges.csv", "s05_nan_inf_features.csv")


def test_s06_a_feature_row_too_few(case):
    with pytest.raises(
        InputError, match=r"edges name 20 nodes \(largest id 19\), features have 19 rows"
    ):
        case("s06_edges.csv", "s06_features_short.csv")


def test_s07_labels_partly_missing(case):
    data = case("s07_edges.csv", "s07_features.csv", "s07_labels_partial.csv")
    assert data.num_nodes == 24
    missing = data.labels == UNLABELLED
    assert np.flatnonzero(missing).tolist() == [1, 2, 10, 19, 23]
    assert set(data.labels[~missing]) == {0, 1, 2}
    assert "19 of 24 nodes have a label" in notes(data)
    assert case("s07_edges.csv", "s07_features.csv").labels is None


def test_s08_weights(case):
    data = case("s08_weights_zero.csv", "s08_features.csv", "s08_labels.txt")
    assert (data.num_nodes, data.graph.num_edges) == (20, 62)
    assert "2 rows of weight 0 dropped" in notes(data)
    assert "weights are in column 'weight'" in notes(data)
    with pytest.raises(
        InputError, match=r"negative\.csv:9: weight -1\.5 in column 'weight'.*2 such.*line 17$"
    ):
        case("s08_weights_negative.csv", "s08_features.csv", "s08_labels.txt")


def test_s09_sparse_files(case, cases_root):
    data = case("s09_directed_csr.npz", "s09_sparse_features.npz", "s09_labels.npy")
    assert (data.num_nodes, data.graph.num_edges) == (24, 61)
    assert "made symmetric" in notes(data)
    assert "3 stored zeros are not edges" in notes(data)
    assert sp.issparse(data.feat)
    assert data.feat.shape == (24, 200)
    assert data.feat.nnz == 161
    assert data.feat.dtype == np.float32
    assert data.node_ids is None
    assert np.bincount(data.labels).tolist() == [8, 8, 8]
