"""Sets of dgl.data: without a network, so failures, raw files and sets that DGL makes itself."""

import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from user_dgl.config import DataConfig
from user_dgl.data import load_data, load_planetoid
from user_dgl.data.sets.dgl_datasets import dgl, load_dgl_dataset
from user_dgl.errors import InputError


def test_package_imports_without_dgl():
    code = "import sys, user_dgl.data, user_dgl.perturb; sys.exit('dgl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_set_without_features():
    data = load_dgl_dataset("KarateClubDataset")
    assert (data.num_nodes, data.graph.num_edges) == (34, 78)
    assert data.feat is None
    assert np.bincount(data.labels).tolist() == [17, 17]


def test_set_with_features(tmp_path):
    data = load_data(
        DataConfig(
            kind="dgl", name="TreeCycleDataset", root=str(tmp_path.parent), path=tmp_path.name
        )
    )
    assert data.num_nodes == 871
    assert data.feat.shape == (871, 1)
    assert set(data.labels) == {0, 1}
    assert list(tmp_path.iterdir())  # DGL's copy lies in the folder that data.path names


@pytest.fixture(autouse=True)
def dgl_folder(tmp_path, monkeypatch):
    """Keeps what DGL writes without being told where out of the home folder."""
    monkeypatch.setenv("DGL_DOWNLOAD_DIR", str(tmp_path / "default"))


def folder_in(caught) -> Path:
    """The folder that an error advises, made."""
    folder = Path(re.search(r"\.zip in ([^\s,]+)", str(caught.value)).group(1))
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def no_network(monkeypatch):
    def get(url, *args, **kwargs):
        raise dgl.data.utils.requests.exceptions.ConnectionError(f"no network\nfor {url}")

    monkeypatch.setattr(dgl.data.utils.requests, "get", get)


def test_failed_download_says_what_to_put_where(tmp_path, no_network, capsys):
    with pytest.raises(InputError) as caught:
        load_dgl_dataset("CoraGraphDataset", tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("dgl.data.CoraGraphDataset: cannot be loaded (no network")
    assert "put the unpacked https://" in message
    assert re.search(rf"cora_v2\.zip in {re.escape(str(tmp_path))}/cora_v2\w*, and set", message)
    assert capsys.readouterr().out == ""  # stdout is for results


def test_advice_after_a_failed_download_works(tmp_path, no_network, data_folder):
    with pytest.raises(InputError) as caught:
        load_dgl_dataset("CoraGraphDataset", tmp_path)
    folder = folder_in(caught)
    for path in data_folder("planetoid").glob("ind.cora.*"):
        shutil.copyfile(path, folder / path.name.replace("cora", "cora_v2"))
    with pytest.raises(InputError, match=r"can run any code: set data\.trusted=true"):
        load_dgl_dataset("CoraGraphDataset", tmp_path)
    data = load_dgl_dataset("CoraGraphDataset", tmp_path, trusted=True)
    own = load_planetoid(data_folder("planetoid"), "cora")
    np.testing.assert_array_equal(data.graph.keys, own.graph.keys)
    np.testing.assert_array_equal(data.labels, own.labels)
    assert data.feat.shape == own.feat.shape
    assert ((data.feat != 0) != (own.feat != 0)).nnz == 0


def test_incomplete_raw_folder(tmp_path, no_network):
    with pytest.raises(InputError) as caught:
        load_dgl_dataset("CiteseerGraphDataset", tmp_path)
    assert not list(folder_in(caught).iterdir())
    with pytest.raises(InputError, match=r"ind\.citeseer\.x"):
        load_dgl_dataset("CiteseerGraphDataset", tmp_path, trusted=True)


def test_no_pickle_of_a_folder_is_run_unasked(tmp_path, no_network):
    """As DGL would, which takes the files of the folder for those it downloads."""

    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / "run",)

    with pytest.raises(InputError) as caught:
        load_dgl_dataset("CoraGraphDataset", tmp_path)
    folder = folder_in(caught)
    for part in ("x", "y", "tx", "ty", "allx", "ally", "graph"):
        (folder / f"ind.cora_v2.{part}").write_bytes(pickle.dumps(Evil()))
    config = DataConfig(kind="dgl", name="CoraGraphDataset", path=str(tmp_path))
    with pytest.raises(InputError, match=r"set data\.trusted=true"):
        load_data(config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cora", "did you mean .*CoraGraphDataset"),
        ("coragraphdataset", "did you mean CoraGraphDataset"),
        ("CoraGrphDataset", "did you mean CoraGraphDataset"),
        ("zzz", "zzz: not a data set class of dgl.data$"),
        ("utils", "not a data set class of dgl.data"),
        ("CitationGraphDataset", "needs name"),
        ("MiniGCDataset", "needs num_graphs"),
    ],
)
def test_names_that_do_not_serve(name, message):
    with pytest.raises(InputError, match=message):
        load_dgl_dataset(name)


def test_several_graphs_and_several_types(monkeypatch):
    class Several(dgl.data.DGLDataset):
        def __init__(self, verbose=True):
            super().__init__("several", verbose=verbose)

        def process(self):
            self.graphs = [dgl.graph(([0], [1]))] * 2

        def __getitem__(self, index):
            return self.graphs[index]

        def __len__(self):
            return len(self.graphs)

    class Types(Several):
        def process(self):
            edges = {("a", "to", "b"): ([0], [0]), ("b", "back", "a"): ([0], [0])}
            self.graphs = [dgl.heterograph(edges)]

    monkeypatch.setattr(dgl.data, "Several", Several, raising=False)
    monkeypatch.setattr(dgl.data, "Types", Types, raising=False)
    with pytest.raises(InputError, match="holds 2 graphs, expected one"):
        load_dgl_dataset("Several")
    with pytest.raises(InputError, match=r"several types of nodes or edges \(to, back\)"):
        load_dgl_dataset("Types")
