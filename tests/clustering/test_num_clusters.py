"""``model.num_clusters: auto``: what it chooses, and that nothing else about a run changes."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from paths import ROOT, TOOLS

from user_dgl import USERClustering
from user_dgl.cli import main
from user_dgl.clustering.num_clusters import spectral_slopes
from user_dgl.config import AutoClustersConfig, SyntheticConfig, default_config, load_config
from user_dgl.data import block_model
from user_dgl.distributed.assembly import read_whole
from user_dgl.distributed.partition import from_whole, to_whole
from user_dgl.errors import InputError
from user_dgl.output.run_directory import RunDirectory
from user_dgl.pipeline.result import ResultSections
from user_dgl.runtime.progress import StageClock
from user_dgl.training.trainer import Trainer

SETTINGS = ("model.num_clusters=auto", "train.epochs=4")
SYNTHETIC = ("data.kind=synthetic", "data.synthetic.num_nodes=300", "data.synthetic.num_blocks=4")


def _blocks(count, **settings):
    return block_model(
        SyntheticConfig(num_nodes=100 * count, num_blocks=count, average_degree=8.0, **settings)
    )


def _train(folder, *overrides):
    command = ["train", str(default_config()), *SYNTHETIC, *SETTINGS, f"output_dir={folder}"]
    return main([*command, *overrides])


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auto") / "run"
    assert _train(folder, "eval.floors=true") == 0
    return folder


# The choice --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 7, 15])
def test_points_around_corners(count):
    rng = np.random.default_rng(count)
    points = np.repeat(np.eye(count, 30), 20, axis=0) + rng.normal(0, 0.05, (20 * count, 30))
    slopes = spectral_slopes(points.astype(np.float32), 2, 20)
    assert list(slopes) == list(range(2, 21))
    assert max(slopes, key=slopes.get) == count


def test_formula():
    points = np.random.default_rng(0).normal(size=(40, 6))
    spectrum = np.sqrt(np.linalg.eigvalsh(points.T @ points)[::-1])
    slopes = spectral_slopes(points, 3, 4)
    assert list(slopes) == [3, 4]
    for k, slope in slopes.items():
        expected = np.log(spectrum[k - 1] / spectrum[k]) / np.log((k + 1) / k)
        assert slope == pytest.approx(expected, rel=1e-6)
    # A power law has the same slope everywhere.
    power = np.diag(np.arange(1, 9) ** -0.7)
    np.testing.assert_allclose(list(spectral_slopes(power, 2, 7).values()), 0.7, rtol=1e-9)


def test_points_in_few_dimensions():
    rank_three = np.repeat(np.eye(3, 8), 5, axis=0)
    slopes = spectral_slopes(rank_three, 2, 20)
    assert list(slopes) == list(range(2, 8))
    assert max(slopes, key=slopes.get) == 3
    assert np.isfinite(list(slopes.values())).all()
    assert spectral_slopes(rank_three[:, :2], 2, 20) == {}
    assert spectral_slopes(np.zeros((9, 5)), 2, 20) == {2: 0.0, 3: 0.0, 4: 0.0}


@pytest.mark.parametrize("count", [3, 5, 8, 12])
def test_block_models(count):
    data = _blocks(count, mixing=0.3)
    config = load_config(default_config(), SETTINGS)
    preparation = Trainer(data.graph, data.feat, config).preparation
    curve = preparation.num_clusters_curve
    assert list(curve) == list(range(2, min(20, math.isqrt(100 * count)) + 1))
    assert max(curve, key=curve.get) == preparation.config.model.num_clusters == count


def test_range():
    data = _blocks(5)
    settings = ("model.auto_clusters.low=3", "model.auto_clusters.high=4")
    config = load_config(default_config(), [*SETTINGS, *settings])
    trainer = Trainer(data.graph, data.feat, config)
    assert list(trainer.preparation.num_clusters_curve) == [3, 4]
    assert trainer.config.model.num_clusters in (3, 4)


# A run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("structure.prior=uniform", "model.smooth.self_share=0.3"),
        ("model.encoder=gcn", "model.head=graph_conv", "model.labels=head", "model.hidden_feats=8",
         "loss.mixture_weight=0"),
        ("model.encoder=gcn", "model.head=graph_conv", "model.labels=head", "model.hidden_feats=8",
         "loss.mixture_weight=0", "loss.davies_bouldin_space=features", "train.mode=partition",
         "train.partition.num_parts=1"),
    ],
    ids=["default", "no choices", "gcn", "partition"],
)  # fmt: skip
def test_equals_a_run_with_that_number(tmp_path, settings):
    assert _train(tmp_path / "auto", *settings) == 0
    result = json.loads((tmp_path / "auto" / "result.json").read_text())
    assert result["num_clusters"] == 4
    assert _train(tmp_path / "four", *settings, "model.num_clusters=4") == 0
    for name in ("clusters.csv", "embedding.npy"):
        four, auto = (tmp_path / kind / name for kind in ("four", "auto"))
        assert four.read_bytes() == auto.read_bytes()
    other = json.loads((tmp_path / "four" / "result.json").read_text())
    assert other["loss"] == result["loss"]
    assert "num_clusters_curve" not in other


def test_result(run_dir):
    result = json.loads((run_dir / "result.json").read_text())
    curve = result["num_clusters_curve"]
    assert list(curve) == [str(k) for k in range(2, 18)]  # at most the root of 300
    assert max(curve, key=curve.get) == str(result["num_clusters"]) == "4"
    assert [stage["name"] for stage in result["stages"]] == [
        "read", "critic", "num_clusters", "view", "candidates", "user", "write", "scores", "floors",
    ]  # fmt: skip
    assert set(result["floors"]) == {"features_kmeans", "smooth_kmeans"}
    assert result["metrics"]["nmi"] > 80


def test_labels_do_not_matter(run_dir, tmp_path, monkeypatch):
    def shuffled(config):
        data = block_model(config)
        np.random.default_rng(0).shuffle(data.labels)
        return data

    monkeypatch.setattr("user_dgl.data.load.block_model", shuffled)
    assert _train(tmp_path / "run") == 0
    names = ("num_clusters", "num_clusters_curve")
    before, now = (
        json.loads((folder / "result.json").read_text()) for folder in (run_dir, tmp_path / "run")
    )
    assert [before[name] for name in names] == [now[name] for name in names]
    assert before["metrics"] != now["metrics"]


def test_resume(run_dir, tmp_path):
    # The settings of a run are those that were asked for.
    assert RunDirectory(run_dir).read_config().model.num_clusters == "auto"
    before = (run_dir / "result.json").read_bytes()
    assert _train(run_dir, "eval.floors=true", "train.resume=true") == 0
    assert (run_dir / "result.json").read_bytes() == before
    folder = tmp_path / "run"
    assert _train(folder, "train.checkpoint_every=2") == 0
    (folder / "result.json").unlink()
    clusters = (folder / "clusters.csv").read_bytes()
    assert _train(folder, "train.resume=true", "train.checkpoint_every=2") == 0
    assert (folder / "clusters.csv").read_bytes() == clusters


def test_resume_of_a_finished_run_without_features(tmp_path):
    """Settings that data without features overrule are those of the run all the same."""
    edges = [(i, (i + d) % 30) for i in range(30) for d in (1, 2)]
    (tmp_path / "edges.csv").write_text("".join(f"{u},{v}\n" for u, v in edges))
    files = ["data.kind=edge_list", f"data.edges={tmp_path / 'edges.csv'}"]
    command = ["train", str(default_config()), *files, *SETTINGS, f"output_dir={tmp_path / 'run'}"]
    assert main(command) == 0
    assert main([*command, "train.resume=true"]) == 0


@pytest.mark.slow
def test_several_processes(tmp_path):
    """They find the same as one. Several ask no judges, so here one does not either."""
    parts, alone = tmp_path / "parts", tmp_path / "alone"
    settings = [str(default_config()), *SYNTHETIC, *SETTINGS]
    settings += ["structure.prior=critic", "train.precision=float64"]
    assert main(["train", *settings, f"output_dir={alone}"]) == 0
    before = json.loads((alone / "result.json").read_text())
    assert main(["partition", *settings, "--parts", "2", "--out", str(parts)]) == 0
    launch = [sys.executable, str(TOOLS / "launch.py"), "--nproc", "2", "--", "train"]
    for name, more in (("handed out", ()), ("read", (f"distributed.partition={parts}",))):
        folder = tmp_path / name
        for resume in ("false", "true"):
            done = subprocess.run(
                [*launch, *settings, *more, f"output_dir={folder}", f"train.resume={resume}"],
                cwd=ROOT, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        result = json.loads((folder / "result.json").read_text())
        assert result["num_clusters"] == 4
        curve = pytest.approx(before["num_clusters_curve"], rel=1e-9)
        assert result["num_clusters_curve"] == curve
        assert (folder / "clusters.csv").read_text() == (alone / "clusters.csv").read_text()


def test_what_a_partition_keeps():
    config = load_config(default_config(), [*SYNTHETIC, *SETTINGS])
    whole = read_whole(config, lambda line: None, StageClock())
    assert whole.preparation is None  # the ranks choose the number of clusters
    sections = ResultSections({"one": 1}, 0.25)
    again, kept = from_whole(to_whole(whole.inputs, sections), config)
    assert again.asked == whole.inputs.asked == config
    assert again.config == whole.inputs.config
    assert (kept.by_name, kept.estimated_share) == ({"one": 1}, 0.25)


def test_estimator():
    data = _blocks(3)
    adjacency = data.graph.to_scipy()
    fit = {
        name: USERClustering(number, overrides=["train.epochs=4"]).fit(adjacency, data.feat)
        for name, number in (("auto", "auto"), ("none", None), ("three", 3))
    }
    for name in ("auto", "none"):
        assert fit[name].num_clusters_ == 3
        assert max(fit[name].num_clusters_curve_, key=fit[name].num_clusters_curve_.get) == 3
        assert np.array_equal(fit[name].labels_, fit["three"].labels_)
    assert fit["three"].num_clusters_ == 3
    assert fit["three"].num_clusters_curve_ is None


def test_few_nodes_and_few_columns():
    """No number is asked for, and so none is too large."""
    ring = sp.csr_matrix(np.roll(np.eye(4), 1, axis=1))
    with pytest.warns(UserWarning, match="made symmetric|no features"):
        assert USERClustering(overrides=["train.epochs=2"]).fit(ring).num_clusters_ in (2, 3)


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_few_columns_leave_the_number_to_the_edges_too(columns):
    """The features alone say 2 for six clusters in four columns."""
    data = _blocks(6)
    means = 2 * np.random.default_rng(0).normal(size=(6, columns))
    table = means[data.labels] + np.random.default_rng(1).normal(size=(data.num_nodes, columns))
    with pytest.warns(UserWarning, match=f"features of {columns} columns.*edges are asked too"):
        model = USERClustering(overrides=["train.epochs=2"]).fit(data.graph.to_scipy(), table)
    assert model.num_clusters_ == 6


def test_few_columns_without_edges():
    ages = np.random.default_rng(0).uniform(20, 80, (300, 4))
    with pytest.warns(UserWarning, match="features of 4 columns.*no edges to ask"):
        model = USERClustering(overrides=["train.epochs=2"]).fit(sp.csr_matrix((300, 300)), ages)
    assert max(model.num_clusters_curve_) <= 5
    with pytest.raises(InputError, match="too few columns"):
        USERClustering(overrides=["train.epochs=2"]).fit(sp.csr_matrix((300, 300)), ages[:, :1])


# Faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["data.synthetic.num_nodes=20", "model.auto_clusters.low=20"],
            "auto_clusters.low=20: expected less than the 20 nodes given",
        ),
        (["model.num_clusters=atuo"], "expected a whole number, auto or null, got 'atuo'"),
        (["model.auto_clusters.low=9", "model.auto_clusters.high=8"], "low: expected at most high"),
        (["model.auto_clusters.high=64"], "high: expected at most 63"),
        (["model.auto_clusters.low=1"], "low: expected at least 2"),
    ],
)
def test_refused_in_one_line(tmp_path, capsys, overrides, message):
    assert _train(tmp_path / "run", *overrides) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "run").exists()


def test_constructed_in_python():
    with pytest.raises(InputError, match="low: expected at most high=3, got 4"):
        AutoClustersConfig(low=4, high=3)


def test_range_without_auto_is_said():
    lines = load_config(None, ["model.num_clusters=3", "model.auto_clusters.high=9"])
    assert any("model.auto_clusters" in line for line in lines.inert_settings())
    lines = load_config(None, ["model.num_clusters=auto", "model.smooth.hops=3"])
    assert lines.inert_settings() == []


def test_nodes_without_features_and_edges_do_no_harm():
    data = _blocks(4)
    feat = sp.vstack([data.feat, sp.csr_matrix((30, data.feat.shape[1]))], format="csr")
    adjacency = sp.block_diag([data.graph.to_scipy(), sp.csr_matrix((30, 30))], format="csr")
    model = USERClustering("auto", overrides=["train.epochs=2"]).fit(adjacency, feat)
    assert model.num_clusters_ == 4
