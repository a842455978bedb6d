"""tools/reproduction/deeprobust_models.py, with a stand-in for the package deeprobust."""

import importlib
import json
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from paths import CONFIGS
from reproduction import deeprobust_models, defence, plan
from reproduction.cells import run_cells
from reproduction.deeprobust_models import INTERPRETER, MODELS

SETTINGS = ["data.kind=synthetic", "data.synthetic.num_nodes=200", "model.num_clusters=4"]


class Network:
    """Takes what DeepRobust's models take, and is right about three of four nodes."""

    outputs = torch.zeros(4)

    def __init__(self, **sizes):
        self.sizes = sizes

    def fit(self, feat, adjacency, labels, train, valid, **settings):
        self.fitted = feat, adjacency, labels, train, valid, settings

    def predict(self):
        return self.outputs

    def test(self, nodes):
        type(self).last = self, nodes
        return 0.75


@pytest.fixture
def package(monkeypatch):
    """The stand-in, for every model."""
    models = {model.name: Network for model in MODELS.values()}
    monkeypatch.setattr(deeprobust_models, "_package", lambda: types.SimpleNamespace(**models))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    file = tmp_path_factory.mktemp("inputs") / "inputs.npz"
    defence.write_inputs(file, 0, str(CONFIGS / "default.yaml"), SETTINGS)
    return file


@pytest.mark.parametrize("method", MODELS)
def test_models_get_graph_split_and_settings(package, inputs, tmp_path, method):
    out = tmp_path / "result.json"
    deeprobust_models.main([method, "0", str(inputs), str(out)])
    result = json.loads(out.read_text())
    assert result["metrics"] == {"acc": 75}
    assert result["seconds_total"] > 0
    assert result["peak_memory_mb"] > 10
    network, tested = Network.last
    feat, adjacency, labels, train, valid, settings = network.fitted
    data, graph = defence._inputs(str(CONFIGS / "default.yaml"), SETTINGS)
    assert (feat != data.feat).nnz == (adjacency != graph.to_scipy()).nnz == 0
    assert np.array_equal(labels, data.labels)
    assert sorted(np.concatenate([train, valid, tested])) == list(range(200))
    assert network.sizes["nclass"] == labels.max() + 1
    assert ("nnodes" in network.sizes) == (method == "DeepRobust RGCN")
    assert settings.pop("verbose") is False
    assert settings == dict(MODELS[method].settings)


def test_outputs_that_are_not_finite_are_no_accuracy(package, inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(Network, "outputs", torch.tensor([0.0, float("nan")]))
    out = tmp_path / "result.json"
    with pytest.raises(ValueError, match="GCN-SVD: the outputs are not finite"):
        deeprobust_models.main(["DeepRobust GCN-SVD", "0", str(inputs), str(out)])
    assert not out.exists()


def test_missing_parts_of_the_package_are_replaced(monkeypatch):
    """A package that imports what is not there, as deeprobust 0.2.11 does."""
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    # Whether these versions have them or not: afterwards all is as it was.
    optimizer = importlib.import_module("torch.optim.optimizer")
    for of, name in ((optimizer, "required"), (sp.csr_matrix, "asfptype")):
        monkeypatch.setattr(of, name, None, raising=False)
        monkeypatch.delattr(of, name)
    package = types.ModuleType("deeprobust.graph.defense")
    for name in ("deeprobust", "deeprobust.graph"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["deeprobust.graph.defense"] = package
    assert deeprobust_models._package() is package
    exec("from gensim.models import KeyedVectors, Word2Vec", {})
    exec("from torch.optim.optimizer import required", {})
    assert sp.csr_matrix(np.eye(2, dtype=np.int64)).asfptype().dtype == np.float64


def test_without_an_interpreter_the_cells_are_left_out(monkeypatch, tmp_path):
    cells = [c for c in plan.defence() if c.method in MODELS and c.seed == 0 and c.rate == 25]
    assert {cell.dataset for cell in cells} == {"cora", "citeseer"}
    for named in ("", str(tmp_path / "nothing")):
        monkeypatch.setenv(INTERPRETER, named)
        outcome = run_cells(cells, tmp_path)
        assert outcome.done == 0
        assert len(outcome.left_out) == len(cells) == 2 * len(MODELS)
        assert all(INTERPRETER in message for message in outcome.left_out.values())
