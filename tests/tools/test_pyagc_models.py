"""tools/reproduction/pyagc_models.py, with stand-ins for the packages pyagc and torch_geometric."""

import sys
import types

import numpy as np
import pytest
import torch
from paths import CONFIGS
from reproduction import inputs, plan, pyagc_models
from reproduction.cells import run_cells
from reproduction.pyagc_models import INTERPRETER, MODELS

SETTINGS = ["data.kind=synthetic", "data.synthetic.num_nodes=200", "model.num_clusters=4"]


class Contrastive:
    """Learns nothing: its loss falls to the fifth epoch and rises afterwards."""

    losses = (5.0, 4.0, 3.0, 2.0, 1.0, *range(2, 300))

    def __init__(self, encoder, one, other, **settings):
        self.encoder, self.views, self.settings = encoder, (one, other), settings
        self.epochs = 0
        type(self).last = self

    def parameters(self):
        return [torch.nn.Parameter(torch.zeros(1))]

    def train_full(self, data, optimizer, epoch, verbose):
        self.optimizer, self.epochs = optimizer, self.epochs + 1
        return self.losses[epoch]

    def state_dict(self):
        return {"epoch": self.epochs}

    def load_state_dict(self, state):
        self.loaded = state

    def infer_full(self, data):
        self.data = data
        return data.x


class Linear:
    """Takes what M-S2CAG takes."""

    def __init__(self, num_clusters, **settings):
        self.num_clusters, self.settings = num_clusters, settings
        type(self).last = self

    def embed(self, feat, edge_index):
        self.data = types.SimpleNamespace(x=feat, edge_index=edge_index)
        return feat


class KMeans:
    """The column with the largest entry, modulo the number of clusters."""

    def __init__(self, num_clusters, **settings):
        self.num_clusters, self.settings = num_clusters, settings

    def fit_predict(self, points):
        assert torch.allclose(points.norm(dim=1), torch.ones(len(points)))
        return points.argmax(1) % self.num_clusters


@pytest.fixture
def packages(monkeypatch):
    """The stand-ins, and the seeds that are set."""
    seeds: list[int] = []
    contents = {
        "pyagc": {},
        "pyagc.models": {"CCASSG": Contrastive, "NS4GC": Contrastive, "MS2CAG": Linear},
        "pyagc.clusters": {"KMeansClusterHead": KMeans},
        "pyagc.utils": {"set_seed": seeds.append},
        "pyagc.encoders": {"create_tuned_gnn": lambda *sizes, **more: (sizes, more)},
        "pyagc.transforms": {"GSSLTransform": lambda mask, drop: (mask, drop)},
        "torch_geometric": {},
        "torch_geometric.utils": {
            "from_scipy_sparse_matrix": lambda m: (torch.tensor(np.array(m.nonzero())), None)
        },
        "torch_geometric.data": {"Data": types.SimpleNamespace},
    }
    for name, content in contents.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return seeds


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    file = tmp_path_factory.mktemp("inputs") / "inputs.npz"
    inputs.main(["graph-and-features", str(file), str(CONFIGS / "default.yaml"), *SETTINGS])
    return file


@pytest.mark.parametrize("method", MODELS)
def test_models_get_graph_features_seed_and_settings(packages, written, tmp_path, method):
    out = tmp_path / "labels.npz"
    pyagc_models.main([method, str(written), "cora", "4", "3", str(out)])
    with np.load(written) as stored, np.load(out) as found:
        assert found["labels"].shape == stored["labels"].shape == (200,)
        assert set(found["labels"]) <= set(range(4))
        assert found["peak_memory_mb"] > 10
        indices, indptr = stored["indices"], stored["indptr"]
    assert set(packages) == {3}
    model = (Linear if method == "M-S2CAG" else Contrastive).last
    rows = np.repeat(np.arange(200), np.diff(indptr))
    assert np.array_equal(model.data.edge_index, [rows, indices])
    sums = model.data.x.sum(1)
    assert torch.allclose(sums[sums > 0], torch.ones(1))
    # The settings for Cora go before the default ones.
    wanted = MODELS[method].settings | MODELS[method].of_dataset["cora"]
    if method == "M-S2CAG":
        assert (model.num_clusters, model.settings) == (4, wanted)
        return
    assert model.views == ((wanted["mask"], wanted["drop"]),) * 2
    assert model.encoder[0][2] == wanted["hidden"]
    assert model.optimizer.defaults["weight_decay"] == wanted["wd"]
    assert model.settings.items() >= {k: wanted[k] for k in ("lam", "s") if k in wanted}.items()


def test_the_epoch_of_the_lowest_loss_counts_and_ends_the_training(packages, written, tmp_path):
    pyagc_models.main(["NS4GC", str(written), "wiki", "4", "0", str(tmp_path / "labels.npz")])
    network = Contrastive.last
    assert network.loaded == {"epoch": 5}
    assert network.epochs == 5 + pyagc_models._PATIENCE


def test_a_loss_that_is_never_finite_is_no_clustering(packages, written, tmp_path, monkeypatch):
    monkeypatch.setattr(Contrastive, "losses", [float("nan")] * 300)
    out = tmp_path / "labels.npz"
    with pytest.raises(ValueError, match="the loss is not finite"):
        pyagc_models.main(["CCA-SSG", str(written), "wiki", "4", "0", str(out)])
    assert not out.exists()


def test_dense_models_run_on_small_graphs_only_and_none_without_an_interpreter(
    monkeypatch, tmp_path
):
    cells = [c for c in plan.default() if c.by == "pyagc" and c.seed == c.rate == 0]
    of = {method: {c.dataset for c in cells if c.method == method} for method in MODELS}
    assert of["CCA-SSG"] == of["M-S2CAG"] == set(plan.DEFAULT)
    assert of["NS4GC"] == plan.DEFAULT_SMALL
    for named in ("", str(tmp_path / "nothing")):
        monkeypatch.setenv(INTERPRETER, named)
        outcome = run_cells(cells, tmp_path)
        assert outcome.done == 0
        assert len(outcome.left_out) == len(cells)
        assert all(INTERPRETER in message for message in outcome.left_out.values())
