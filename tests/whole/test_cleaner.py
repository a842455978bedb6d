"""`clean_graph` and `GraphCleaner` on arrays and graphs."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

import user_dgl
from user_dgl.cleaning.clean import clean
from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model
from user_dgl.errors import InputError


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=200, num_blocks=2))


@pytest.fixture(scope="module")
def cleaner(data):
    return user_dgl.clean_graph(data.graph.to_scipy(), data.feat)


def test_forms_of_the_result_agree(cleaner, data):
    adjacency = cleaner.adjacency_
    assert adjacency.dtype == np.float32
    assert (adjacency != adjacency.T).nnz == 0
    assert adjacency.diagonal().sum() == 0
    index, weight = cleaner.edge_index_, cleaner.edge_weight_
    assert index.dtype == np.int64
    assert (sp.csr_matrix((weight, index), shape=adjacency.shape) != adjacency).nnz == 0
    graph = cleaner.to_dgl()
    ends = torch.stack(graph.edges()).numpy()
    stored = sp.csr_matrix((graph.edata["weight"].numpy(), ends), shape=adjacency.shape)
    assert (stored != adjacency).nnz == 0
    assert graph.num_nodes() == data.num_nodes
    # Observed edges have a probability each, whether they are kept or not.
    observed = data.graph.to_scipy()
    assert ((cleaner.probability_ != 0) != (observed != 0)).nnz == 0
    assert adjacency.nnz == observed.nnz + 2 * cleaner.num_added_


def test_it_does_what_the_function_does(cleaner, data):
    cleaned = clean(data.graph, data.feat)
    assert (cleaned.pairs().tocsr() != sp.triu(cleaner.adjacency_).tocsr()).nnz == 0
    assert cleaner.noise_share_ == cleaned.noise_share
    assert cleaner.power_ == cleaned.power


def test_interface_of_scikit_learn(cleaner, data):
    settings = {
        "power": 1.0, "candidates": 0, "top_k": 3, "threshold": None, "categorical": "refuse",
        "random_state": 2,
    }  # fmt: skip
    made = clone(user_dgl.GraphCleaner(**settings))
    assert made.get_params() == settings
    transformed = made.fit_transform(data.graph.to_scipy(), data.feat)
    assert transformed is made.adjacency_
    assert made.num_added_ == 0


def test_top_k_and_threshold(cleaner, data):
    adjacency = data.graph.to_scipy()
    few = user_dgl.clean_graph(adjacency, data.feat, top_k=1).adjacency_
    assert 0 < few.nnz <= 2 * data.num_nodes
    assert (few.getnnz(axis=1) >= 1).all()
    limit = float(np.median(cleaner.adjacency_.data))
    heavy = user_dgl.clean_graph(adjacency, data.feat, threshold=limit).adjacency_
    assert heavy.data.min() >= limit
    assert heavy.nnz == (cleaner.adjacency_.data >= limit).sum()


def test_names_and_features_of_a_dgl_graph(cleaner, data):
    both = data.graph.to_scipy().tocoo()
    graph = user_dgl.dgl.graph((both.row, both.col), num_nodes=data.num_nodes)
    graph.ndata["feat"] = torch.from_numpy(data.feat.toarray())
    same = user_dgl.clean_graph(graph)
    assert (same.adjacency_ != cleaner.adjacency_).nnz == 0
    assert same.node_names_.tolist() == list(range(data.num_nodes))


def test_columns_of_text(data):
    kinds = np.array(["red", "green", "blue"])[data.labels % 3]
    table = pd.DataFrame({"kind": kinds, "size": np.arange(data.num_nodes, dtype=float)})
    with pytest.raises(InputError, match="column 'kind' has text"):
        user_dgl.GraphCleaner().fit(data.graph.to_scipy(), table)
    with pytest.warns(UserWarning, match="kind"):
        cleaner = user_dgl.GraphCleaner(categorical="one_hot").fit(data.graph.to_scipy(), table)
    assert cleaner.adjacency_.nnz
    with pytest.raises(InputError, match="expected refuse or one_hot, got 'two'"):
        user_dgl.GraphCleaner(categorical="two").fit(data.graph.to_scipy(), table)


def test_features_that_say_nothing_are_a_warning(data):
    with pytest.warns(UserWarning, match="do not differ between the nodes"):
        user_dgl.clean_graph(data.graph.to_scipy(), np.ones((data.num_nodes, 3)))


def test_input_is_left_as_it_is(data):
    adjacency, feat = data.graph.to_scipy(), data.feat.copy()
    user_dgl.clean_graph(adjacency, feat)
    assert (adjacency != data.graph.to_scipy()).nnz == 0
    assert (feat != data.feat).nnz == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"power": -1}, "power: expected a number of 0 or more, got -1"),
        ({"power": "3"}, "power: expected a number"),
        ({"candidates": np.inf}, "candidates: expected a whole number of 0 or more"),
        ({"candidates": 2.5}, "candidates: expected a whole number"),
        ({"candidates": -1}, "candidates: expected a whole number"),
        ({"top_k": 0}, "top_k: expected a whole number of 1 or more, got 0"),
        ({"top_k": 1.5}, "top_k: expected a whole number"),
        ({"top_k": True}, "top_k: expected a whole number"),
        ({"threshold": np.nan}, "threshold: expected a number of 0 or more, got nan"),
        ({"threshold": np.inf}, "threshold: expected a number"),
        ({"threshold": "1"}, "threshold: expected a number"),
        ({"threshold": 0.5, "top_k": 3}, "threshold and top_k: only one of the two"),
        ({"random_state": "now"}, "random_state"),
        ({"random_state": 2**32}, "random_state: expected a whole number from 0 to 2147483647"),
        ({"threshold": 2}, "no edge of A' would be left"),
    ],
)
def test_bad_settings(data, settings, message):
    with pytest.raises(InputError, match=message):
        user_dgl.clean_graph(data.graph.to_scipy(), data.feat, **settings)


def test_bad_matrices(data):
    with pytest.raises(InputError, match="NaN"):
        user_dgl.clean_graph(data.graph.to_scipy(), data.feat * np.nan)
    with pytest.raises(InputError, match="rows"):
        user_dgl.clean_graph(data.graph.to_scipy(), data.feat[:-1])


def test_a_failed_refit_keeps_the_last_result(data):
    cleaner = user_dgl.GraphCleaner().fit(data.graph.to_scipy(), data.feat)
    before = cleaner.adjacency_.copy()
    with pytest.raises(InputError, match="no edge of A' would be left"):
        cleaner.set_params(threshold=1e9).fit(_names_of_a_ring())
    assert len(cleaner.node_names_) == data.num_nodes
    assert (cleaner.adjacency_ != before).nnz == 0


def _names_of_a_ring():
    return [(f"n{i}", f"n{(i + 1) % 40}") for i in range(40)]


def test_too_few_edges_to_judge_are_a_warning():
    with pytest.warns(UserWarning, match="too few edges to judge: every edge keeps its weight"):
        cleaner = user_dgl.GraphCleaner().fit([(i, i + 1) for i in range(8)])
    assert cleaner.noise_share_ is None


def test_a_complete_graph_has_no_random_pairs():
    with pytest.warns(UserWarning, match="nearly every pair of nodes is an edge"):
        user_dgl.GraphCleaner().fit(1 - np.eye(30))
