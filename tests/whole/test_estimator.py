"""The estimator: the same result as the command, any kind of matrix, new nodes, conventions."""

import json
import pickle
import subprocess
import sys
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from paths import ROOT
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.utils import estimator_checks

from user_dgl import USERClustering, dgl
from user_dgl.cli import main
from user_dgl.config import DataConfig, SyntheticConfig, default_config, load_config
from user_dgl.data import block_model
from user_dgl.errors import InputError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.perturb.random_flip import random_flip

QUICK = {"train.epochs": 5}
# The paper's model with all that predict has to follow.
PAPER = {
    "model.num_clusters": 3,
    "model.hidden_feats": [16, 8],
    "train.epochs": 8,
    "train.lr": 0.05,
    "structure.prior": "feature_cosine",
}
JOINED = {"train.restarts": 3, "model.observed_mix": 0, "model.dropout": 0.2}


@pytest.fixture(scope="module")
def data():
    return block_model(SyntheticConfig(num_nodes=90, num_blocks=3, average_degree=6.0))


@pytest.fixture(scope="module")
def adjacency(data):
    return data.graph.to_scipy()


@pytest.fixture(scope="module")
def model(data, adjacency):
    return USERClustering(3, overrides=QUICK).fit(adjacency, data.feat)


def _same(a, b):
    return (
        np.array_equal(a.labels_, b.labels_)
        and np.array_equal(a.embedding_, b.embedding_)
        and (a.adjacency_ != b.adjacency_).nnz == 0
        and a.loss_ == b.loss_
    )


# The fit -----------------------------------------------------------------------------------------


def test_attributes(data, model):
    assert model.labels_.shape == (90,)
    assert model.labels_.dtype == np.int64
    assert model.probs_.shape == (90, 3)
    np.testing.assert_allclose(model.probs_.sum(1), 1, rtol=1e-5)
    # As many as there are canonical axes on which neighbours agree, at most 4 K.
    assert len(model.embedding_) == 90
    assert 3 <= model.embedding_.shape[1] <= 12
    assert model.n_features_in_ == data.feat.shape[1]
    assert sp.isspmatrix_csr(model.adjacency_)
    assert (model.adjacency_ != model.adjacency_.T).nnz == 0
    assert model.adjacency_.nnz == 2 * data.graph.num_edges
    assert model.loss_["total"] == pytest.approx(
        sum(value for name, value in model.loss_.items() if name != "total")
    )
    assert clustering_metrics(data.labels, model.labels_)["ari"] > 80


def test_equals_the_command(tmp_path, data, adjacency, capsys):
    sp.save_npz(tmp_path / "edges.npz", adjacency)
    sp.save_npz(tmp_path / "feat.npz", data.feat)
    settings = ["model.num_clusters=3", "train.epochs=5", "seed=4"]
    files = [f"data.edges={tmp_path}/edges.npz", f"data.features={tmp_path}/feat.npz"]
    out = tmp_path / "run"
    command = ["train", str(default_config()), "data.kind=edge_list", f"output_dir={out}"]
    assert main([*command, *files, *settings]) == 0
    model = USERClustering(3, overrides=QUICK, random_state=4).fit(adjacency, data.feat)
    assert json.loads((out / "result.json").read_text())["loss"] == model.loss_
    np.testing.assert_array_equal(np.load(out / "embedding.npy"), model.embedding_)
    assert (sp.load_npz(out / "learned_graph.npz") != model.adjacency_).nnz == 0


def test_training_in_parts(data, adjacency):
    settings = {"train.mode": "partition", "train.partition.num_parts": 3, **PAPER}
    model = USERClustering(
        config=load_config(None), overrides={**settings, "model.observed_mix": 0}
    ).fit(adjacency, data.feat)
    again = model.predict(model.adjacency_, data.feat)
    assert (again == model.labels_).mean() > 0.97  # parts know each other's state of a pass ago


def test_nothing_is_written_or_printed(tmp_path, monkeypatch, data, adjacency, capsys):
    monkeypatch.chdir(tmp_path)
    USERClustering(3, overrides=QUICK).fit(adjacency, data.feat)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")
    USERClustering(3, overrides=QUICK, verbose=True).fit(adjacency, data.feat)
    assert "Epoch 00005" in capsys.readouterr().out


def test_arguments_are_left_alone(data, adjacency):
    feat, edges = data.feat.copy(), adjacency.copy()
    USERClustering(3, overrides=QUICK).fit(edges, feat).predict(edges, feat)
    assert (edges != adjacency).nnz == 0
    assert (feat != data.feat).nnz == 0


# Input -------------------------------------------------------------------------------------------


def _torch_sparse(matrix):
    return torch.from_numpy(matrix.toarray()).to_sparse_csr()


@pytest.mark.parametrize(
    "convert",
    [
        lambda m: sp.csr_array(m),
        lambda m: m.tocoo(),
        lambda m: m.toarray(),
        lambda m: m.toarray().tolist(),
        lambda m: torch.from_numpy(m.toarray()),
        lambda m: torch.from_numpy(m.toarray()).to_sparse(),
        _torch_sparse,
    ],
    ids=["csr_array", "coo", "ndarray", "lists", "tensor", "sparse coo", "sparse csr"],
)
def test_any_kind_of_matrix(data, adjacency, model, convert):
    other = USERClustering(3, overrides=QUICK).fit(convert(adjacency), convert(data.feat))
    assert _same(model, other)
    edges, feat = convert(adjacency[:4]), convert(data.feat[:4])
    assert np.array_equal(other.predict(edges, feat), model.predict(adjacency[:4], data.feat[:4]))


def test_dgl_graph(data, adjacency, model):
    u, v = adjacency.nonzero()
    graph = dgl.graph((torch.from_numpy(u), torch.from_numpy(v)), num_nodes=90)
    graph.ndata["feat"] = torch.from_numpy(data.feat.toarray())
    assert _same(model, USERClustering(3, overrides=QUICK).fit(graph))
    other = USERClustering(3, overrides=QUICK).fit(graph, data.feat[:, ::-1])
    assert not _same(model, other)  # features given come before those of the graph
    assert list(graph.ndata) == ["feat"]
    assert not graph.edata
    two = dgl.heterograph({("a", "x", "b"): ([0], [0]), ("b", "y", "a"): ([0], [0])})
    with pytest.raises(InputError, match="several types"):
        USERClustering(2).fit(two)


def test_what_is_cleaned_is_said(data, adjacency, model):
    directed = 2 * sp.triu(adjacency) + sp.eye(90)
    with pytest.warns(UserWarning, match=r"adjacency: ") as caught:
        other = USERClustering(3, overrides=QUICK).fit(directed, data.feat)
    said = " ".join(str(warning.message) for warning in caught)
    assert "90 self-loop entries dropped" in said
    assert "made symmetric" in said
    assert _same(model, other)


@pytest.mark.parametrize(("heaviest", "power"), [(4.0, 1.0), (400.0, 0.5), (1e8, 0.0)])
def test_uneven_weights_beside_features_are_evened_out(data, adjacency, heaviest, power):
    weights = sp.triu(adjacency, 1).tocsr()
    weights.data = np.r_[np.ones(weights.nnz - 2), heaviest, heaviest]
    weights += weights.T
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = USERClustering(3, overrides=QUICK).fit(weights, data.feat)
    said = any("a few edges have most of the weight" in str(each.message) for each in caught)
    assert (model.weight_power_, said) == (power, power < 1)
    limit = (weights / model.weight_unit_).tocsr()
    limit.data **= power
    assert (model.adjacency_ - limit).max() <= 1e-6
    torch.testing.assert_close(
        torch.from_numpy(model._scaled(weights).toarray()), torch.from_numpy(limit.toarray())
    )
    assert (model.predict(weights, data.feat) == model.labels_).mean() > 0.9
    as_given = {"data.weight_power": 1}
    model = USERClustering(3, overrides=QUICK | as_given).fit(weights, data.feat)
    assert model.weight_power_ == 1


def test_values_beyond_float32_are_not_called_missing(data, adjacency):
    with pytest.raises(InputError, match=r"features up to 1\.0e\+39, where float32 ends"):
        USERClustering(3).fit(adjacency, _with(data.feat.astype(np.float64), (7, 0), 1e39))


def test_a_view_of_the_graph_needs_edges(data):
    with pytest.raises(InputError, match="source=graph needs edges"):
        USERClustering(3, overrides={"model.smooth.source": "graph"}).fit(
            sp.csr_matrix((90, 90)), data.feat
        )


def test_weights_of_edges_are_used_in_any_unit(data, adjacency):
    """Edges between blocks have little weight, so that noise does no harm."""
    noisy = random_flip(data.graph, 1.0, seed=0).graph
    within = data.labels[noisy.src.numpy()] == data.labels[noisy.dst.numpy()]
    weight = torch.from_numpy(np.where(within, 1.0, 0.02))
    plain = USERClustering(3, overrides=QUICK).fit(noisy.to_scipy())
    model = USERClustering(3, overrides=QUICK).fit(noisy.to_scipy(weight))
    assert clustering_metrics(data.labels, model.labels_)["nmi"] > 90
    assert clustering_metrics(data.labels, plain.labels_)["nmi"] < 60
    assert model.weight_unit_ == pytest.approx(weight.mean().item())
    other = USERClustering(3, overrides=QUICK).fit(noisy.to_scipy(weight * 1000))
    np.testing.assert_array_equal(other.labels_, model.labels_)
    assert other.weight_unit_ == pytest.approx(1000 * model.weight_unit_)


def test_without_features(adjacency, data):
    with pytest.warns(UserWarning, match="no features") as caught:
        model = USERClustering(3, overrides=QUICK).fit(adjacency)
    assert len(caught) == 1
    assert model.n_features_in_ == 0
    assert clustering_metrics(data.labels, model.labels_)["ari"] > 50
    np.testing.assert_array_equal(model.predict(adjacency), model.labels_)
    with pytest.raises(InputError, match="the fit had none"):
        model.predict(adjacency, data.feat)


# Features as people have them ---------------------------------------------------------------------


def _real_features(data, seed=0):
    """Ten columns near 1 that tell the blocks apart."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, 10))[data.labels] + 0.5 * rng.normal(size=(len(data.labels), 10))


def test_a_column_in_thousands_does_not_hide_the_others(data, adjacency):
    noise = 1000 * np.random.default_rng(1).normal(size=(90, 1))
    feat = np.hstack([_real_features(data), noise])
    model = USERClustering(3, overrides=QUICK)
    with pytest.warns(UserWarning, match="very different scale, .* most of all column 10"):
        model.fit(adjacency, feat)
    assert clustering_metrics(data.labels, model.labels_)["nmi"] > 90
    np.testing.assert_array_equal(model.predict(model.adjacency_, feat), model.labels_)
    as_is = USERClustering(3, overrides={**QUICK, "features.weighting": "none"})
    with pytest.warns(UserWarning, match="nothing in common") as said:
        as_is.fit(adjacency, feat)
    said = " ".join(str(each.message) for each in said)
    assert "very different scale" not in said
    assert "the clusters come from the edges alone" in said


@pytest.mark.parametrize("factor", [1e20, 1e-25])
def test_size_of_the_features_has_no_effect(data, adjacency, factor):
    models = [
        USERClustering(3, overrides=QUICK).fit(adjacency, _real_features(data) * each)
        for each in (1, factor)
    ]
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    assert clustering_metrics(data.labels, models[1].labels_)["nmi"] > 90


@pytest.mark.parametrize(
    ("feat", "message"),
    [
        (np.full((90, 4), 0.1), "do not differ between the nodes beyond rounding"),
        (np.ones((90, 1)) * [3.0, -2.0], "do not differ between the nodes beyond rounding"),
        (
            1 + 1e-7 * np.random.default_rng(0).normal(size=(90, 4)),
            "rounding in float32: they are not",
        ),
    ],
    ids=["constant", "constant rows", "rounding"],
)
def test_features_that_say_nothing_leave_the_graph_alone(data, adjacency, feat, message):
    with pytest.warns(UserWarning, match=message):
        model = USERClustering(3, overrides=QUICK).fit(adjacency, feat)
    with pytest.warns(UserWarning, match="the data have no features"):
        alone = USERClustering(3, overrides=QUICK).fit(adjacency)
    assert _same(model, alone)
    np.testing.assert_array_equal(model.predict(adjacency, feat), alone.predict(adjacency))
    with pytest.raises(InputError, match=r"do not differ .* no edges"):
        USERClustering(3).fit(sp.csr_matrix((90, 90)), feat)


def test_a_single_column_is_used_where_it_is_prepared_by_its_values(data, adjacency):
    column = data.labels[:, None] + 5 + 0.2 * np.random.default_rng(0).normal(size=(90, 1))
    model = USERClustering(3, overrides=QUICK).fit(adjacency, column)
    assert clustering_metrics(data.labels, model.labels_)["nmi"] > 90
    np.testing.assert_array_equal(model.predict(model.adjacency_, column), model.labels_)
    by_log = USERClustering(3, overrides={**QUICK, "features.weighting": "log"})
    with pytest.warns(UserWarning, match="once they are prepared .*features.weighting=auto"):
        by_log.fit(adjacency, column)


def test_noise_is_said_to_be_noise(data, adjacency):
    noise = np.random.default_rng(5).normal(size=(90, 6))
    with pytest.warns(UserWarning, match="edges and features have nothing in common") as said:
        USERClustering(3, overrides=QUICK).fit(adjacency, noise)
    assert any("the edges alone" in str(each.message) for each in said)


def test_categories(data, adjacency):
    feat = pd.DataFrame(_real_features(data), columns=[f"x{i}" for i in range(10)])
    feat.insert(2, "club", np.array(["red", "green", "blue"])[data.labels])
    with pytest.raises(InputError, match=r"column 'club' has text, .*features.categorical=one_hot"):
        USERClustering(3).fit(adjacency, feat)
    model = USERClustering(3, overrides={**QUICK, "features.categorical": "one_hot"})
    with pytest.warns(UserWarning, match="categories in column 'club' became 3 columns") as said:
        model.fit(adjacency, feat)
    assert "no effect" not in " ".join(str(each.message) for each in said)
    assert model.n_features_in_ == len(model.feature_names_in_) == 11
    again = model.predict(model.adjacency_, feat[feat.columns[::-1]])
    np.testing.assert_array_equal(again, model.labels_)
    model.predict(adjacency[:1], feat[:1].assign(club="violet"))
    with pytest.raises(InputError, match="the columns of features: no name 'club'"):
        model.predict(adjacency, feat.drop(columns="club"))


def _with(matrix, place, value):
    matrix = matrix.toarray()
    matrix[place] = value
    return matrix


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, x: (a[:80], x), r"adjacency: expected a square .* got shape \(80, 90\)"),
        (lambda a, x: (_with(a, (3, 4), -1), x), r"adjacency: negative, .* 1 rows .*: 3"),
        (lambda a, x: (_with(a, (3, 4), np.nan), x), r"adjacency: negative, NaN"),
        (
            lambda a, x: (a, _with(x, (7, 0), np.nan)),
            r"NaN.* 1 rows .* first in column 0\): 7",
        ),
        (lambda a, x: (a, _with(x, (7, 0), np.inf)), r"features: NaN.* 1 rows .*: 7"),
        (lambda a, x: (a, x[:80]), r"90 nodes, but features have 80 rows"),
        (lambda a, x: (a, x[:, :0]), r"no columns"),
        (lambda a, x: (a, x.toarray()[0]), r"features of shape \(200,\)"),
        (lambda a, x: (a.toarray().astype(str), x), r"square adjacency matrix of numbers"),
        (lambda a, x: ([[0, 1], [1]], x), r"adjacency: not a matrix"),
        (lambda a, x: (a[:2, :2], x[:2]), r"3 clusters asked for, 2 nodes given"),
        (lambda a, x: (torch.zeros(2, 2, 2).to_sparse(), x), r"expected a matrix"),
    ],
)
def test_bad_input(data, adjacency, change, message):
    with pytest.raises(InputError, match=message) as caught:
        USERClustering(3).fit(*change(adjacency, data.feat))
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"num_clusters": 1}, "model.num_clusters: expected at least 2, got 1"),
        ({"num_clusters": 2.5}, "model.num_clusters: expected a whole number"),
        ({"num_clusters": object()}, "model.num_clusters: expected a number"),
        ({"config": "missing.yaml"}, "missing.yaml: No such file"),
        ({"overrides": {"trian.lr": 1}}, "unknown key 'trian': did you mean train"),
        ({"overrides": ["train.lr=-1"]}, "train.lr: expected above 0"),
        ({"overrides": "train.lr=1"}, "overrides: expected a dict or a list"),
        ({"random_state": -1}, "random_state: expected a whole number from 0 to 2147483647"),
        ({"random_state": 2**31}, "random_state: expected a whole number from 0 to"),
        ({"random_state": "x"}, "random_state: 'x' cannot be used to seed"),
        ({"config": 5}, "config: expected a path or a Config, got 5"),
    ],
)
def test_bad_parameters(data, adjacency, parameters, message):
    with pytest.raises(ValueError, match=message):
        USERClustering(**{"num_clusters": 3, **parameters}).fit(adjacency, data.feat)


# Settings ----------------------------------------------------------------------------------------


def test_forms_of_settings(tmp_path, data, adjacency, model):
    file = tmp_path / "mine.yaml"
    file.write_text(default_config().read_text())
    settings = load_config(default_config())
    for parameters in (
        {"num_clusters": np.int64(3), "overrides": ["train.epochs=5"]},
        {"config": file, "overrides": {"model.num_clusters": 3, **QUICK}},
        {"config": str(file), "num_clusters": 3, "overrides": {"model.num_clusters": 9, **QUICK}},
        {"config": settings, "num_clusters": 3, "overrides": {"train": {**_train(settings)}}},
    ):
        other = USERClustering(**parameters).fit(adjacency, data.feat)
        assert _same(model, other)
    assert settings == load_config(default_config())


def _train(settings):
    train = {k: v for k, v in vars(settings.train).items() if k != "partition"}
    return {**train, "epochs": 5}


def test_what_has_no_effect_is_said(data, adjacency, model):
    settings = ["data.noise.kind=random_flip", "data.noise.rate=0.5", "output_dir=x"]
    other = USERClustering(3, overrides=[*settings, "train.epochs=5"])
    with pytest.warns(UserWarning, match="output_dir, data: no effect"):
        other.fit(adjacency, data.feat)
    assert _same(model, other)
    with pytest.warns(UserWarning, match=r"model.hidden_feats=.* has no effect"):
        other.set_params(overrides={"model.hidden_feats": [4], **QUICK}).fit(adjacency, data.feat)


def test_random_state(data, adjacency, model):
    def fit(random_state):
        estimator = USERClustering(3, overrides=QUICK, random_state=random_state)
        return estimator.fit(adjacency, data.feat)

    assert _same(model, fit(0))  # the default's seed
    assert not _same(model, fit(1))
    assert _same(fit(np.random.RandomState(5)), fit(np.random.RandomState(5)))
    assert _same(fit(np.random.default_rng(5)), fit(np.random.default_rng(5)))
    np.random.seed(3)
    expected = np.random.rand()
    np.random.seed(3)
    fit(None)
    assert np.random.rand() == expected


# New nodes and links -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model.labels": "kmeans"},
        {"features.max_abs_scale": True},
        {"model.smooth.num_components": 20},  # fewer than the features have
        PAPER,
        {**PAPER, "model.encoder": "gae", "model.head": "linear", "structure.prior": "uniform"},
        {**PAPER, "train.precision": "float64", "structure.engine": "dgl"},
        {**PAPER, **JOINED, "train.consensus": "labels"},
        {**PAPER, **JOINED, "train.consensus": "hidden", "structure.shared": False},
    ],
    ids=[
        "default", "kmeans", "max-abs", "few components", "paper", "gae", "dgl", "labels", "hidden",
    ],
)  # fmt: skip
def test_predict_gives_fitted_nodes_their_clusters(data, adjacency, settings):
    config = load_config(None) if "model.encoder" in settings or "train.lr" in settings else None
    model = USERClustering(3, config=config, overrides={**QUICK, **settings})
    model.fit(adjacency, data.feat)
    again = model.predict(model.adjacency_, data.feat)
    assert again.dtype == np.int64
    # Where each copy of A' differs, their mean is no copy's.
    least = 0.97 if settings.get("structure.shared") is False else 1
    assert (again == model.labels_).mean() >= least
    assert (model.predict(adjacency, data.feat) == model.labels_).mean() > 0.9


def _embeddings_with_twins(model, feat):
    """Embeddings of the fitted nodes, and of new ones with the same edges and features."""
    seen = model._out_of_sample._hidden
    kept = []
    model._out_of_sample._hidden = lambda *arguments: kept.append(seen(*arguments)) or kept[-1]
    try:
        model.predict(model.weight_unit_ * model.adjacency_, feat)
    finally:
        del model._out_of_sample._hidden
    ((hidden,),) = kept
    return hidden[:90], hidden[90:]


def test_embedding_of_a_twin(data, adjacency):
    settings = {**QUICK, "model.smooth.weight_power": 1}
    model = USERClustering(3, overrides=settings).fit(adjacency, data.feat)
    fitted, twins = _embeddings_with_twins(model, data.feat)
    np.testing.assert_allclose(fitted, model.embedding_, atol=1e-6)
    np.testing.assert_allclose(twins, model.embedding_, atol=1e-5)


def test_embedding_of_a_twin_with_real_values(data, adjacency):
    """Their mean is 0, so that they have a constant; a node without features has none."""
    values = np.random.default_rng(0).normal(size=(90, 40))
    values += np.random.default_rng(1).normal(size=(3, 40))[data.labels]
    values -= values.mean(0)
    values[5] = 0
    settings = {**QUICK, "model.smooth.weight_power": 1, "features.weighting": "none"}
    model = USERClustering(3, overrides=settings).fit(adjacency, values)
    assert model._out_of_sample._projection.offset is not None
    fitted, twins = _embeddings_with_twins(model, values)
    np.testing.assert_allclose(twins, fitted, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_twin_where_the_graph_of_the_data_is_mixed_with_the_learned_one(
    data, adjacency, weighted
):
    """A new node's edges count in both graphs, with their weights if the data have weights."""
    settings = {
        **PAPER, "model.observed_mix": 0.5, "structure.prior": "uniform", "train.structure_lr": 0,
        "structure.candidates.k_hop": 0,
    }  # fmt: skip
    if weighted:
        upper = sp.triu(adjacency, format="csr")
        upper.data = np.random.default_rng(0).uniform(0.2, 3, upper.nnz)
        adjacency = upper + upper.T
    model = USERClustering(3, config=load_config(None), overrides=settings)
    model.fit(adjacency, data.feat)
    fitted, twins = _embeddings_with_twins(model, data.feat)
    np.testing.assert_allclose(twins, fitted, atol=1e-5)


def test_new_nodes_by_their_edges_where_the_view_is_that_of_the_graph(data, adjacency):
    settings = {**QUICK, "model.smooth.source": "graph"}
    model = USERClustering(3, overrides=settings).fit(adjacency, data.feat)
    assert (model.predict(adjacency, data.feat) == model.labels_).mean() > 0.9


def test_new_nodes_do_not_change_each_other(data, model):
    rng = np.random.default_rng(0)
    edges = (rng.random((20, 90)) < 0.05).astype(float)
    feat = data.feat[rng.integers(0, 90, 20)]
    together = model.predict(edges, feat)
    alone = [model.predict(edges[[i]], feat[[i]])[0] for i in range(20)]
    np.testing.assert_array_equal(together, alone)
    # Loops do not count, and half of the edges among them is all of them.
    joined = np.triu(np.ones((20, 20)))
    np.testing.assert_array_equal(
        model.predict(edges, feat, joined), model.predict(edges, feat, np.ones((20, 20)))
    )


@pytest.mark.parametrize("encoder", ["sage", "vgae"])
def test_a_norm_before_the_head_has_the_statistics_of_the_fit(data, adjacency, encoder):
    """New nodes of another kind do not change what is said of the others."""
    settings = {**QUICK, **PAPER, "model.encoder": encoder, "model.labels": "head"}
    model = USERClustering(3, config=load_config(None), overrides=settings)
    model.fit(adjacency, data.feat)
    seen = []
    own = model._out_of_sample._seen
    model._out_of_sample._seen = lambda *arguments: seen.append(own(*arguments)) or seen[-1]
    edges, feat = adjacency[:1], data.feat[:1]
    model.predict(edges, feat)
    rest = sp.csr_matrix(np.ones((300, 90))), sp.csr_matrix(np.ones((300, data.feat.shape[1])))
    model.predict(sp.vstack([edges, rest[0]]), sp.vstack([feat, rest[1]]))
    np.testing.assert_allclose(seen[0], seen[1][:91], atol=1e-5)


def test_edges_among_new_nodes_count(data, model):
    """A node without features takes the cluster of the new ones that it alone is joined to."""
    (nodes,) = np.nonzero(model.labels_ == 2)
    edges = sp.vstack([model.adjacency_[nodes], sp.csr_matrix((1, 90))])
    feat = sp.vstack([data.feat[nodes], sp.csr_matrix((1, data.feat.shape[1]))])
    among = np.zeros((len(nodes) + 1, len(nodes) + 1))
    among[-1, :-1] = 1
    assert model.predict(edges, feat, among)[-1] == 2


def test_prediction_from_weak_edges_follows_the_features(data, model):
    """An edge of hardly any weight has hardly any effect."""
    (own,), (other,) = (np.nonzero(model.labels_ == k)[0][:1] for k in (0, 1))
    edges = 1e-6 * model.adjacency_[[other]]
    assert model.predict(edges, data.feat[[own]]) == model.predict(0 * edges, data.feat[[own]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda a, x: (a[:, :80], x), r"adjacency: expected numbers of shape \(M, 90\)"),
        (lambda a, x: (-a, x), r"adjacency: negative"),
        (lambda a, x: (_with(a, (0, 0), np.nan), x), r"adjacency: negative, NaN"),
        (lambda a, x: (a, x[:3]), r"features: expected shape \(90, 200\), got \(3, 200\)"),
        (lambda a, x: (a, x[:, :5]), r"features: expected shape \(90, 200\), got \(90, 5\)"),
        (lambda a, x: (a, None), r"features: expected 200 columns"),
        (lambda a, x: (a, -x), r"negative features"),
        (lambda a, x: (a, x, a[:, :3]), r"among: expected numbers of shape \(M, 90\)"),
        (lambda a, x: (a, x, a[:3]), r"among: expected shape \(90, 90\)"),
    ],
)
def test_bad_new_nodes(data, adjacency, model, arguments, message):
    with pytest.raises(InputError, match=message):
        model.predict(*arguments(adjacency, data.feat))


def test_no_new_nodes(data, model):
    assert model.predict(np.empty((0, 90)), data.feat[:0]).shape == (0,)


def test_score_links(data, model):
    same = np.repeat(np.arange(len(model.labels_))[:, None], 2, axis=1)
    assert model.score_links(same).max() <= 1
    scores = model.score_links([[0, 0], [0, 1], [1, 0]])
    assert scores[0] == pytest.approx(1)
    assert scores[1] == scores[2]
    unit = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    assert scores[1] == pytest.approx(unit[0] @ unit[1], abs=1e-6)
    same = data.labels[:, None] == data.labels
    within, between = (
        model.score_links(np.argwhere(np.triu(kind, 1))).mean() for kind in (same, ~same)
    )
    assert within > between + 0.15
    assert model.score_links([]).shape == model.score_links(np.empty((0, 2), int)).shape == (0,)
    for pairs in ([0, 1], [[0.5, 1]], [[0, 90]], [[-1, 0]], [[0, 1], [2]]):
        with pytest.raises(InputError, match="pairs: "):
            model.score_links(pairs)


def test_pairs_of_nodes_that_are_named_by_numbers(data, adjacency):
    names = np.arange(90)[::-1] + 5
    features = pd.DataFrame(data.feat.toarray(), index=names)
    model = USERClustering(3, overrides=QUICK).fit(adjacency, features)
    unit = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    # Rows 0 and 1 are the nodes 94 and 93.
    assert model.score_links([[94, 93]]) == pytest.approx(unit[0] @ unit[1], abs=1e-6)
    with pytest.raises(InputError, match="pairs: no node 4 in the fit"):
        model.score_links([[5, 4]])


def test_columns_without_names_where_nodes_have_numbers_in_another_order(data, adjacency):
    names = np.arange(90)[::-1]
    features = pd.DataFrame(data.feat.toarray(), index=names)
    square = pd.DataFrame(adjacency.toarray(), names, names)
    model = USERClustering(3, overrides=QUICK).fit(square, features)
    new = pd.DataFrame(adjacency[:2].toarray(), index=["a", "b"])
    with pytest.raises(InputError, match=r"in another order, .*name the columns"):
        model.predict(new, data.feat[:2])
    named = new.set_axis(names, axis=1)
    assert model.predict(named, data.feat[:2]).shape == (2,)


# Conventions of scikit-learn ---------------------------------------------------------------------


# Checks of scikit-learn that cannot apply, and why. They fit tables of independent samples, of
# which this estimator sees the matrix of their products as the weights of a graph.
NOT_APPLICABLE = {
    "check_fit_score_takes_y": "the second argument of fit is the features",
    "check_n_features_in_after_fitting": "n_features_in_ counts columns of features, not nodes",
    "check_n_features_in": "n_features_in_ counts columns of features, not nodes",
    "check_positive_only_tag_during_fit": "refused, in words that name the rows",
    "check_dtype_object": "refused as an InputError, a ValueError, and not as a TypeError",
    "check_estimators_empty_data_messages": "refused, as a matrix that is not square",
    "check_estimators_nan_inf": "its table with NaN is no square matrix, and refused as such",
    "check_clustering": "its table of points (50, 2) is no graph, and refused as such",
    "check_fit2d_1sample": "a single node has no edges, and is refused as such",
    "check_fit2d_predict1d": "refused, in words about nodes",
}


# The estimator fits the weights of a complete graph in these checks, without features.
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks():
    done = estimator_checks.check_estimator(
        USERClustering(3, overrides={"train.epochs": 2}),
        on_skip=None,
        expected_failed_checks=NOT_APPLICABLE,
    )
    status = {check["check_name"]: check["status"] for check in done}
    assert {name for name, each in status.items() if each == "xfail"} == set(NOT_APPLICABLE)
    assert sum(check["status"] == "passed" for check in done) >= 35


def _agreement(model, edges, features=None):
    """Share of the edges to a fitted node that lie inside a cluster: a score without labels."""
    clusters = model.predict(edges, features)
    rows, columns = edges.nonzero()
    return (clusters[rows] == model.labels_[columns]).mean()


def test_cross_validation(data, adjacency):
    model = USERClustering(3, overrides=QUICK)
    done = cross_validate(
        model, adjacency, data.feat.toarray(), scoring=_agreement, cv=3, return_estimator=True
    )
    assert [len(each.labels_) for each in done["estimator"]] == [60, 60, 60]
    assert done["test_score"].min() > 0.5


def test_grid_search_over_features_and_over_classes(data, adjacency):
    model = USERClustering(3, overrides=QUICK)
    search = GridSearchCV(model, {"num_clusters": [2, 3]}, scoring=_agreement, cv=2)
    search.fit(adjacency, data.feat)
    assert search.best_estimator_.n_features_in_ == data.feat.shape[1]
    assert len(search.best_estimator_.labels_) == 90
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the features that there are not
        search = GridSearchCV(
            model, {"num_clusters": [2, 3]}, scoring="adjusted_rand_score", cv=2
        ).fit(adjacency, data.labels)
    assert search.best_params_ == {"num_clusters": 3}


def test_without_scoring_a_search_is_refused_in_one_line(data, adjacency):
    with pytest.raises(TypeError, match="should have a 'score' method") as caught:
        GridSearchCV(USERClustering(), {"num_clusters": [2]}).fit(adjacency, data.feat)
    assert "\n" not in str(caught.value)
    assert not hasattr(USERClustering(), "set_output")


@pytest.mark.filterwarnings("ignore:the data have no features")
def test_classes_in_the_place_of_features_are_not_read(data, adjacency):
    models = []
    for classes in (data.labels, data.labels[::-1].tolist(), pd.Series(data.labels)):
        with pytest.warns(UserWarning, match="a fit reads no classes"):
            models.append(USERClustering(3, overrides=QUICK).fit(adjacency, classes))
    assert models[0].n_features_in_ == 0
    assert _same(models[0], models[1])
    assert _same(models[0], models[2])


# Names -------------------------------------------------------------------------------------------


def test_frames_are_matched_by_name(data, adjacency, model):
    """Rows and columns in any order, for the fit and for new nodes."""
    names = [f"n{i}" for i in range(90)]
    words = [f"w{i}" for i in range(data.feat.shape[1])]
    edges = pd.DataFrame(adjacency.toarray(), names, names)
    feat = pd.DataFrame(data.feat.toarray(), names, words)
    other = USERClustering(3, overrides=QUICK).fit(edges[names[::-1]], feat[::-1])
    assert _same(model, other)
    assert other.node_names_.tolist() == names
    assert other.feature_names_in_.tolist() == words
    assert model.node_names_.tolist() == list(range(90))
    assert not hasattr(model, "feature_names_in_")

    new = edges[:7].rename(lambda name: "new" + name)
    new_feat = feat[:7].rename(lambda name: "new" + name)
    among = pd.DataFrame(np.eye(7)[::-1], new.index, new.index)
    expected = model.predict(adjacency[:7], data.feat[:7], np.eye(7)[::-1])
    given = new[names[::-1]], new_feat[words[::-1]][::-1], among[::-1]
    np.testing.assert_array_equal(other.predict(*given), expected)
    with pytest.raises(InputError, match="the columns of features: no name 'w0'"):
        other.predict(new, new_feat.rename(columns={"w0": "W0"}))
    with pytest.raises(InputError, match="the columns of adjacency: no name 'n0'"):
        other.predict(new.rename(columns={"n0": "N0"}), new_feat)
    with pytest.raises(InputError, match="features: no name 'newn0'"):
        other.predict(new, feat[:7])
    # A second fit leaves nothing of the first.
    assert not hasattr(other.fit(adjacency, data.feat), "feature_names_in_")


def test_networkx(data, adjacency, model):
    graph = nx.from_scipy_sparse_array(adjacency)
    assert _same(model, USERClustering(3, overrides=QUICK).fit(graph, data.feat))


def test_clone_fits_the_same(data, adjacency, model):
    copy = clone(model)
    assert not hasattr(copy, "labels_")
    assert copy.get_params() == model.get_params()
    assert _same(model, copy.fit(adjacency, data.feat))
    assert copy.set_params(num_clusters=4).fit(adjacency, data.feat).probs_.shape == (90, 4)
    np.testing.assert_array_equal(clone(model).fit_predict(adjacency, data.feat), model.labels_)


def test_pickle(data, adjacency, model):
    again = pickle.loads(pickle.dumps(model))
    assert _same(model, again)
    np.testing.assert_array_equal(
        again.predict(adjacency, data.feat), model.predict(adjacency, data.feat)
    )


def test_not_fitted(data, adjacency):
    for ask in (
        lambda m: m.predict(adjacency, data.feat),
        lambda m: m.score_links([[0, 1]]),
    ):
        with pytest.raises(NotFittedError):
            ask(USERClustering(3))


def test_a_failed_fit_keeps_the_last_result(data, adjacency, model):
    copy = pickle.loads(pickle.dumps(model))
    with pytest.raises(InputError):
        copy.fit(adjacency, data.feat[:10])
    assert _same(model, copy)


def test_package_is_instant_and_lazy():
    code = (
        "import sys, user_dgl\n"
        "assert 'USERClustering' in dir(user_dgl)\n"
        "assert 'torch' not in sys.modules and 'sklearn' not in sys.modules\n"
        "from user_dgl import USERClustering\n"
        "assert 'dgl' not in sys.modules\n"
        "assert user_dgl.dgl is sys.modules['dgl']\n"
        "try: user_dgl.nothing\n"
        "except AttributeError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "no attribute 'nothing'" in done.stdout


def test_no_warning_without_a_cause(data, adjacency):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = USERClustering(3, config=load_config(default_config()), overrides=QUICK)
        model.fit(adjacency, data.feat).predict(adjacency, data.feat)
    assert load_config(default_config()).data == DataConfig()
