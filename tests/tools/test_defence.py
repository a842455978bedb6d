"""tools/reproduction/defence.py: networks on a graph as it is and on A'."""

import json

import numpy as np
import pytest
from paths import CONFIGS
from reproduction import defence

SETTINGS = [
    "data.kind=synthetic", "data.synthetic.num_nodes=200", "data.synthetic.num_blocks=2",
    "model.num_clusters=2", "data.noise.kind=random_flip", "data.noise.rate=0.3",
]  # fmt: skip
RECIPE = (str(CONFIGS / "default.yaml"), SETTINGS)


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory):
    file = tmp_path_factory.mktemp("cleaned") / "cleaned.npz"
    defence.clean(file, 0, *RECIPE)
    return file


@pytest.mark.parametrize("network", defence.NETWORKS)
@pytest.mark.parametrize("on", ["", defence.CLEANED])
def test_each_network_beats_chance(cleaned, tmp_path, network, on):
    out = tmp_path / "result.json"
    defence.train(out, network + on, 0, cleaned, *RECIPE)
    result = json.loads(out.read_text())
    assert result["metrics"]["acc"] > 65
    assert (result["noise"]["estimated_share"] is None) == (on == "")
    assert result["seconds_total"] > 0


def test_the_split_covers_every_node_once():
    parts = defence._split(*RECIPE, num_nodes=200, seed=3)
    assert [len(part) for part in parts] == [20, 20, 160]
    assert sorted(np.concatenate(parts)) == list(range(200))
