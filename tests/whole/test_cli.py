"""The commands as users call them."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
import yaml
from paths import CONFIGS, ROOT
from quick_runs import FAST, QUICKSTART

from user_dgl.cli import main
from user_dgl.config import Config, load_config, to_yaml
from user_dgl.data import load_data
from user_dgl.output.run_directory import RunDirectory

RESULT_KEYS = {
    "task", "num_nodes", "num_observed_edges", "num_candidate_edges", "num_features",
    "num_clusters", "num_clusters_found", "num_labelled_nodes", "metrics", "scores", "floors",
    "noise", "structure", "loss", "restart_losses", "epochs", "stages", "seconds_total",
    "seconds_per_epoch", "peak_memory_mb", "engine", "world_size", "seed", "versions", "notes",
    "assignments", "labels_from", "warnings", "device", "gpu_peak_memory_mb",
}  # fmt: skip


def _train(output_dir, *overrides, config=QUICKSTART):
    return main(["train", config, *FAST, f"output_dir={output_dir}", *overrides])


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "quick"
    assert _train(folder) == 0
    return folder


def test_run_directory_is_complete(run_dir):
    assert {p.name for p in run_dir.iterdir()} == {
        "config.yaml", "metrics.jsonl", "result.json", "clusters.csv", "embedding.npy",
        "learned_graph.npz", "input.npz", "checkpoint.pt",
    }  # fmt: skip
    result = json.loads((run_dir / "result.json").read_text())
    assert set(result) == RESULT_KEYS
    clusters = pd.read_csv(run_dir / "clusters.csv")
    assert clusters.columns.tolist() == ["node", "cluster"]
    assert clusters["node"].tolist() == list(range(120))
    embedding = np.load(run_dir / "embedding.npy")
    assert embedding.shape == (120, 16)
    assert embedding.dtype == np.float32
    learned = sp.load_npz(run_dir / "learned_graph.npz")
    pairs = result["num_observed_edges"] + result["num_candidate_edges"]
    assert learned.nnz == 2 * pairs
    assert (learned.data >= 0).all()
    torch.load(run_dir / "checkpoint.pt", weights_only=True)
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == list(range(1, 21))


def test_result_json(run_dir):
    result = json.loads((run_dir / "result.json").read_text())
    assert result["task"] == "clustering"
    assert (result["num_nodes"], result["num_clusters"], result["epochs"]) == (120, 5, 20)
    assert set(result["metrics"]) == {"nmi", "acc", "ari", "f1", "ami"}
    assert set(result["scores"]) == {"npsi", "modularity", "conductance", "davies_bouldin"}
    assert set(result["floors"]) == {"features_kmeans", "smooth_kmeans"}
    assert set(result["noise"]) == {
        "kind", "rate", "seed", "edges_added", "edges_removed", "true_share",
        "estimated_share", "weight_auc", "weight_ap",
    }  # fmt: skip
    assert result["noise"]["edges_added"] > 0
    assert 0 <= result["noise"]["weight_auc"] <= 100
    assert 0 <= result["noise"]["weight_ap"] <= 100
    share = result["noise"]["edges_added"] / result["num_observed_edges"]
    assert result["noise"]["true_share"] == share
    loss = dict(result["loss"])
    assert loss.pop("total") == pytest.approx(sum(loss.values()))
    assert result["peak_memory_mb"] > 50
    assert result["engine"] in ("csr", "dgl")


def test_stages_add_up(tmp_path):
    # Enough epochs that 5 % are more than a pause of the machine.
    assert _train(tmp_path / "run", "train.epochs=300") == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    seconds = {stage["name"]: stage["seconds"] for stage in result["stages"]}
    assert list(seconds) == ["read", "candidates", "user", "write", "scores", "floors"]
    assert sum(seconds.values()) == pytest.approx(result["seconds_total"], rel=0.05)
    peaks = [stage["peak_memory_mb"] for stage in result["stages"]]
    assert peaks == sorted(peaks)


def test_a_line_for_each_stage(tmp_path, capsys):
    assert _train(tmp_path / "run") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Stage ")]
    assert [line.split()[1] for line in lines] == [
        "read", "candidates", "user", "write", "scores", "floors",
    ]  # fmt: skip


def test_quiet(tmp_path, capsys):
    assert _train(tmp_path / "run", "--quiet", "model.smooth.hops=3") == 0
    printed = capsys.readouterr()
    words = [line.split()[0] for line in printed.out.splitlines()]
    assert set(words) == {"Warning:", "Result", "Floor"}
    assert not printed.err


def test_home_folder_in_a_setting(tmp_path, monkeypatch, capsys):
    """A shell does not replace ~ in ``output_dir=~/run``."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _train("~/run", "train.epochs=1", "eval.floors=false") == 0
    assert (tmp_path / "run" / "result.json").exists()
    assert _train("~nobody-here/run") == 2
    assert "output_dir=~nobody-here/run: there is no home folder" in capsys.readouterr().err
    assert _train(tmp_path / "x", "data.root=~nobody-here") == 2
    assert "data.root=~nobody-here: there is no home folder" in capsys.readouterr().err
    assert _train(tmp_path / "x", "data.kind=npz", "data.path=~nobody-here/x.npz") == 2
    assert "data.path=~nobody-here/x.npz: there is no home" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", ".", "/", "a/.."])
def test_a_config_without_a_name(name, capsys):
    assert main(["train", name]) == 2
    assert "names no config" in capsys.readouterr().err


def test_settings_without_effect_are_named(tmp_path, capsys):
    more = ["distributed.timeout_s=60", "distributed.backend=gloo"]
    assert _train(tmp_path / "run", "train.epochs=1", "eval.floors=false", *more) == 0
    printed = capsys.readouterr().out
    assert "distributed.timeout_s has no effect without user-dgl launch" in printed
    assert "distributed.backend has no effect" in printed


def test_restarts_of_a_baseline(tmp_path, capsys):
    settings = ["model.kind=deepwalk", "train.restarts=4", "baseline.hidden_feats=[9, 8]"]
    assert _train(tmp_path / "run", *settings, "baseline.epochs=1", "eval.floors=false") == 0
    stages = json.loads((tmp_path / "run" / "result.json").read_text())["stages"]
    assert [each["restarts"] for each in stages if each["name"] == "deepwalk"] == [1]
    assert "one layer, which takes the last width" in capsys.readouterr().out


def test_a_full_disk_under_the_lines_does_not_end_the_run(tmp_path):
    """As of ``user-dgl train X > run.log``, where the results lie elsewhere."""
    settings = ["train.epochs=1", "eval.floors=false", f"output_dir={tmp_path / 'run'}"]
    command = [sys.executable, "-m", "user_dgl", "train", QUICKSTART, *FAST, *settings]
    with open("/dev/full", "w") as full:
        run = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (run.returncode, run.stderr) == (0, "")
        assert (tmp_path / "run" / "result.json").exists()
        command = [sys.executable, "-m", "user_dgl", "config", QUICKSTART]
        run = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (run.returncode, run.stderr.count("\n")) == (2, 1)
        command = [sys.executable, "-m", "user_dgl", "evaluate", str(tmp_path / "run")]
        run = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "stdout: No space left on device" in run.stderr


def test_an_id_that_the_locale_does_not_have(tmp_path):
    """A pipe gets UTF-8 in any locale, and a terminal an escape."""
    edges = tmp_path / "edges.csv"
    edges.write_text("from,to\nŁódź,Kraków\nKraków,Poznań\n", "utf-8")
    command = [sys.executable, "-m", "user_dgl", "inspect", str(edges)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    run = subprocess.run(command, capture_output=True, env=environment)
    assert (run.returncode, run.stderr) == (0, b"")
    assert "Kraków" in run.stdout.decode("utf-8")
    controller, terminal = pty.openpty()
    shown = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, env=environment)
    os.close(terminal)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert rb"Krak\xf3w" in os.read(controller, 10_000)
    os.close(controller)


def test_a_folder_that_cannot_be_written_is_refused_first(tmp_path, capsys):
    assert _train("/proc/no-such/run") == 2
    printed = capsys.readouterr()
    assert "/proc/no-such/run: cannot be written" in printed.err
    assert not printed.out


def test_a_finished_run_of_changed_data(tmp_path, capsys):
    edges = tmp_path / "edges.csv"
    edges.write_text("a,b\nb,c\na,c\nx,y\ny,z\nx,z\n")
    run = ["train", "--edges", str(edges), "--clusters", "2", f"output_dir={tmp_path / 'run'}"]
    assert main([*run, "train.epochs=1"]) == 0
    capsys.readouterr()
    resumed = [*run, "train.epochs=1", "train.resume=true", "--quiet"]
    assert main(resumed) == 0
    printed = capsys.readouterr().out
    assert "the run there is finished; nothing to do" in printed
    assert "was changed" not in printed
    later = (tmp_path / "run" / "result.json").stat().st_mtime + 5
    os.utime(edges, (later, later))
    assert main(resumed) == 0
    assert "edges.csv was changed after this run: overwrite=true" in capsys.readouterr().out


def test_a_folder_in_which_another_run_writes(tmp_path, capsys):
    folder = tmp_path / "run"
    first = RunDirectory(folder)
    with first.one_writer():
        first.begin(load_config(QUICKSTART), None)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert _train(folder, "overwrite=true", "train.epochs=1") == 2
        assert f"{folder}: another run writes here" in capsys.readouterr().err
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert _train(folder, "overwrite=true", "train.epochs=1") == 0
    assert _train(folder, "overwrite=true", "train.epochs=1") == 0


def test_empty_clusters_of_a_view_are_not_blamed_on_the_training(tmp_path, capsys):
    edges, feat = tmp_path / "edges.csv", tmp_path / "features.csv"
    edges.write_text("".join(f"{i},{(i + 1) % 20}\n" for i in range(20)))
    feat.write_text("".join(f"{i % 2},{1 - i % 2},0\n" for i in range(20)))
    files = ["--edges", str(edges), "--features", str(feat), "--clusters", "5"]
    assert main(["train", *files, f"output_dir={tmp_path / 'run'}"]) == 0
    printed = capsys.readouterr().out
    assert "20 nodes, 20 edges, 3 features" in printed
    assert "the others are empty; try a lower model.num_clusters" in printed


def test_config_written_repeats_the_run(run_dir, tmp_path):
    again = tmp_path / "again"
    assert main(["train", str(run_dir / "config.yaml"), f"output_dir={again}"]) == 0
    for name in ("clusters.csv", "embedding.npy"):
        assert (run_dir / name).read_bytes() == (again / name).read_bytes()
    first, second = (json.loads((d / "result.json").read_text()) for d in (run_dir, again))
    assert first["loss"] == second["loss"]


def test_permuted_labels_change_no_cluster(run_dir, tmp_path, monkeypatch):
    """Labels reach scores only."""
    from user_dgl.data.sets import synthetic

    original = synthetic.block_model

    def shuffled(config):
        data = original(config)
        np.random.default_rng(0).shuffle(data.labels)
        return data

    monkeypatch.setattr(synthetic, "block_model", shuffled)
    monkeypatch.setattr("user_dgl.data.load.block_model", shuffled, raising=False)
    again = tmp_path / "shuffled"
    assert _train(again) == 0
    assert (run_dir / "clusters.csv").read_bytes() == (again / "clusters.csv").read_bytes()
    first, second = (json.loads((d / "result.json").read_text()) for d in (run_dir, again))
    assert first["loss"] == second["loss"]
    assert first["metrics"] != second["metrics"]


def test_evaluate_repeats_the_scores(run_dir, capsys):
    assert main(["evaluate", str(run_dir)]) == 0
    report = json.loads(capsys.readouterr().out)
    result = json.loads((run_dir / "result.json").read_text())
    for key in ("metrics", "scores", "num_labelled_nodes", "num_clusters_found"):
        assert report[key] == result[key]
    for key in ("weight_auc", "weight_ap"):
        assert report[key] == pytest.approx(result["noise"][key])


def test_evaluate_with_other_labels(run_dir, tmp_path, capsys):
    clusters = pd.read_csv(run_dir / "clusters.csv")
    labels = tmp_path / "labels.csv"
    shuffled = clusters.sample(frac=1, random_state=0)
    shuffled.rename(columns={"cluster": "label"}).to_csv(labels, index=False)
    assert main(["evaluate", str(run_dir), "--labels", str(labels)]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert metrics["nmi"] == pytest.approx(100)
    assert metrics["acc"] == pytest.approx(100)


def test_evaluate_with_labels_of_other_nodes_too(run_dir, tmp_path, capsys):
    """As in training, nodes without edges may be in the file of labels."""
    nodes = pd.read_csv(run_dir / "clusters.csv")["node"]
    labels = tmp_path / "labels.csv"
    rows = [f"{node},{node % 3}" for node in [*nodes[:100], 99_999]]
    labels.write_text("node,label\n" + "\n".join(rows) + "\n")
    assert main(["evaluate", str(run_dir), "--labels", str(labels)]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["num_labelled_nodes"] == 100
    assert "Note: labels.csv: " in printed.err


def test_evaluate_of_no_run(tmp_path, capsys):
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "not there" in capsys.readouterr().err


def test_perturb_then_train_on_the_file_equals_training_with_flips(run_dir, tmp_path, capsys):
    noisy = tmp_path / "noisy.npz"
    assert main(["perturb", QUICKSTART, *FAST, "--out", str(noisy)]) == 0
    result = json.loads((run_dir / "result.json").read_text())
    assert f"{result['noise']['edges_added']} added" in capsys.readouterr().out
    assert sp.load_npz(noisy).nnz == 2 * result["num_observed_edges"]
    from_file = tmp_path / "run"
    overrides = ("data.noise.kind=file", f"data.noise.file={noisy}", "data.noise.rate=0")
    assert _train(from_file, *overrides) == 0
    assert (from_file / "clusters.csv").read_bytes() == (run_dir / "clusters.csv").read_bytes()
    again = json.loads((from_file / "result.json").read_text())
    assert again["noise"]["edges_added"] == result["noise"]["edges_added"]
    assert again["noise"]["weight_auc"] == result["noise"]["weight_auc"]


def test_convert_then_load_gives_the_same_data(tmp_path, capsys):
    edges, out = tmp_path / "edges.csv", tmp_path / "data.npz"
    edges.write_text("a,b\nb,c\nc,a\nd,a\n")
    (tmp_path / "labels.csv").write_text("a,1\nb,1\nc,0\nd,\n")
    (tmp_path / "features.csv").write_text("a,0,1\nb,1,0.5\nc,0,0\nd,2,0\n")
    files = {name: f"{tmp_path}/{name}.csv" for name in ("edges", "labels", "features")}
    overrides = ["data.kind=edge_list", *(f"data.{k}={v}" for k, v in files.items())]
    noise = ["data.noise.kind=random_flip", "data.noise.rate=0.5"]
    assert main(["convert", QUICKSTART, *overrides, *noise, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "4 nodes, 4 edges" in printed
    assert "Note: the noise of the settings is not in the file" in printed
    text = load_data(load_config(None, overrides).data)
    binary = load_data(load_config(None, ["data.kind=npz", f"data.path={out}"]).data)
    assert binary.node_ids == text.node_ids == ("a", "b", "c", "d")
    assert np.array_equal(binary.graph.keys, text.graph.keys)
    assert np.array_equal(binary.labels, text.labels)
    assert np.array_equal(binary.feat.toarray(), text.feat.toarray())
    assert main(["convert", QUICKSTART, *overrides, "--out", str(out)]) == 2  # it exists


def test_perturb_says_that_nothing_is_flipped(tmp_path, capsys):
    out = ["--out", str(tmp_path / "x.npz")]
    settings = ["data.noise={kind: none, rate: 0.2}"]
    assert main(["perturb", QUICKSTART, *FAST, *settings, *out]) == 0
    printed = capsys.readouterr().out
    assert "Warning: data.noise.rate=0.2 has no effect with data.noise.kind=none" in printed
    assert "Warning: nothing is flipped" in printed


def test_perturb_overwrites_nothing_unasked(tmp_path, capsys):
    out = tmp_path / "x.npz"
    out.write_text("mine")
    assert main(["perturb", QUICKSTART, *FAST, "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main(["perturb", QUICKSTART, "--out", str(tmp_path / "no" / "x.npz")]) == 2
    assert main(["perturb", QUICKSTART, "--out", str(tmp_path / "x.csv")]) == 2
    capsys.readouterr()
    assert main(["perturb", QUICKSTART, *FAST, "--out", "/proc/x.npz"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "written"), [("perturb", "data.npz"), ("convert", "~/data.npz")]
)
def test_no_file_of_the_input_is_replaced(tmp_path, capsys, monkeypatch, command, written):
    """With overwrite=true neither, because the noisy graph has no features and no labels."""
    data = tmp_path / "data.npz"
    assert main(["convert", QUICKSTART, "--out", str(data)]) == 0
    before = data.read_bytes()
    monkeypatch.setenv("HOME", str(tmp_path))
    path = written if written.startswith("~") else data
    overrides = ["data.kind=npz", f"data.path={path}", "overwrite=true"]
    assert main([command, QUICKSTART, *overrides, "--out", str(data)]) == 2
    assert "--out names a file that is read" in capsys.readouterr().err
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [["evaluate", "x" * 300], ["report", "x\n" * 200], ["export", "x" * 300, "--graph", "g.csv"]],
)
def test_a_name_that_is_too_long_is_one_line(words, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "File name too long" in error


def test_a_run_goes_on_when_nobody_reads_its_lines(tmp_path):
    """As in ``user-dgl train CONFIG | head -1``."""
    command = [sys.executable, "-m", "user_dgl", "train", QUICKSTART, *FAST]
    folder = tmp_path / "run"
    process = subprocess.Popen(
        [*command, f"output_dir={folder}"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    _, error = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in error
    assert "BrokenPipe" not in error
    assert (folder / "result.json").exists()


# Runs the command, and kills its own process when the metrics have seven rows.
KILLED_AFTER_SEVEN_ROWS = """
import os, signal, sys
from user_dgl.cli import main
from user_dgl.output.run_directory import RunDirectory

record = RunDirectory.record

def record_and_die(run, row):
    record(run, row)
    if row["epoch"] == 7:
        os.kill(os.getpid(), signal.SIGKILL)

RunDirectory.record = record_and_die
main(sys.argv[1:])
"""


def test_resume_after_a_kill_equals_an_undisturbed_run(run_dir, tmp_path):
    """SIGKILL between checkpoints; the result is bit for bit that of a run left alone."""
    folder = tmp_path / "killed"
    command = [
        sys.executable, "-c", KILLED_AFTER_SEVEN_ROWS, "train", QUICKSTART, *FAST,
        f"output_dir={folder}", "train.checkpoint_every=3",
    ]  # fmt: skip
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == -signal.SIGKILL
    metrics = folder / "metrics.jsonl"
    assert len(metrics.read_text().splitlines()) == 7
    assert not (folder / "result.json").exists()
    assert _train(folder, "train.resume=true", "train.checkpoint_every=3") == 0
    for name in ("clusters.csv", "embedding.npy"):
        assert (folder / name).read_bytes() == (run_dir / name).read_bytes()
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [row["epoch"] for row in rows] == list(range(1, 21))
    result = json.loads((folder / "result.json").read_text())
    (training,) = (stage for stage in result["stages"] if stage["name"] == "user")
    # The stage has the seconds since the run went on from epoch 6, so it has the epochs since then.
    assert (result["epochs"], training["epochs"]) == (20, 14)


def test_resume_of_a_finished_run_changes_nothing(run_dir):
    before = {p.name: p.read_bytes() for p in run_dir.iterdir()}
    assert _train(run_dir, "train.resume=true") == 0
    assert {p.name: p.read_bytes() for p in run_dir.iterdir()} == before


def test_resume_of_a_finished_run_of_other_settings_is_refused(run_dir, capsys):
    assert _train(run_dir, "train.resume=true", "train.lr=0.5") == 2
    assert "other settings (train.lr was" in capsys.readouterr().err
    assert _train(run_dir, "train.resume=true", "overwrite=true") == 2


def test_occupied_output_dir(run_dir, capsys):
    before = {p.name: p.read_bytes() for p in run_dir.iterdir()}
    assert _train(run_dir) == 2
    assert "not empty" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in run_dir.iterdir()} == before


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("train.epoch=3",), "did you mean train.epochs"),
        (("model.num_clusters=null",), "num_clusters is not set"),
        (("model.num_clusters=1",), "at least 2"),
        (("model.num_clusters=121",), "121 clusters asked for, 120 nodes"),
        (("data.kind=planetoid", "data.name=cora", "data.root=nowhere"), "nowhere"),
        (("data.noise.kind=file", "data.noise.file=none.npz"), "none.npz"),
    ],
)
def test_bad_input_is_one_line_status_2_and_no_output(tmp_path, capsys, overrides, message):
    folder = tmp_path / "run"
    assert _train(folder, *overrides) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not folder.exists()


def test_non_finite_loss_is_status_3(tmp_path, capsys):
    overrides = ("loss.davies_bouldin_weight=1e38", "loss.observed_edge_weight=1e38")
    assert _train(tmp_path / "run", *overrides, "train.lr=1e30") == 3
    error = capsys.readouterr().err
    assert "not finite" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run" / "result.json").exists()


def test_inert_settings_are_said(tmp_path, capsys):
    assert _train(tmp_path / "run", "data.noise.kind=none") == 0
    assert "data.noise.rate=0.5 has no effect" in capsys.readouterr().out
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert any("data.noise.rate" in line for line in result["warnings"])
    assert result["noise"]["weight_auc"] is None
    assert result["noise"]["weight_ap"] is None
    assert result["noise"]["true_share"] == 0
    assert (result["noise"]["rate"], result["noise"]["seed"]) == (0, None)


def test_default_output_dir_names_config_and_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", QUICKSTART, *FAST, "seed=4", "train.epochs=2", "eval.floors=false"]) == 0
    assert (tmp_path / "outputs" / "quickstart" / "seed4" / "result.json").exists()


def test_config_prints_yaml_without_torch():
    code = (
        "import sys; from user_dgl.cli import main; "
        f"status = main(['config', {QUICKSTART!r}, 'train.lr=1e-3']); "
        "assert 'torch' not in sys.modules; sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["train"]["lr"] == 0.001


def test_version_says_how_dgl_runs(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert "torch " in printed
    assert "guarded" in printed


def test_progress_is_plain_lines_without_a_terminal(tmp_path, capfd):
    assert _train(tmp_path / "run", "train.log_every=5") == 0
    printed, errors = capfd.readouterr()
    assert errors == ""
    epochs = [line for line in printed.splitlines() if line.startswith("Epoch ")]
    assert [line[:11] for line in epochs] == [f"Epoch {e:05d}" for e in (5, 10, 15, 20)]
    assert "\r" not in printed


@pytest.mark.slow
def test_progress_on_a_terminal_is_a_bar_below_whole_lines(tmp_path):
    """Each line stands alone on its row of the screen, and the bar is gone in the end."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 40, 200, 0, 0))
    command = [
        sys.executable, "-m", "user_dgl", "train", QUICKSTART, *FAST, "eval.floors=false",
        f"output_dir={tmp_path / 'run'}", "train.epochs=40", "train.log_every=5",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, stdout=terminal, stderr=terminal)
    os.close(terminal)
    written = b""
    with contextlib.suppress(OSError), open(screen, "rb", buffering=0) as output:
        while part := output.read(4096):  # OSError at the end: the other side is closed
            written += part
    assert process.wait() == 0
    assert re.search(r"training: +[0-9]+%\|.*/40 \[", written.decode())
    rows = []
    for row in written.decode().split("\n"):
        shown = ""
        for text in row.split("\r"):  # overwrites the row from its start
            shown = text + shown[len(text) :]
        rows.append(shown.rstrip())
    epochs = [row for row in rows if row.startswith("Epoch ")]
    assert [row[:11] for row in epochs] == [f"Epoch {e:05d}" for e in range(5, 41, 5)]
    assert all(re.fullmatch(r".* \| Time [0-9.]+", row) for row in epochs)
    assert not any("training" in row for row in rows)


def test_data_without_features_use_the_neighbours(tmp_path, capsys):
    """With features made of the edges, nothing may judge the edges by them."""
    edges = [(i, (i + d) % 12) for i in range(12) for d in (1, 2)]
    edges += [(12 + u, 12 + v) for u, v in edges] + [(0, 12)]
    (tmp_path / "edges.csv").write_text("".join(f"{u},{v}\n" for u, v in edges))
    config = str(Path(QUICKSTART).parent / "default.yaml")
    overrides = ["data.kind=edge_list", f"data.edges={tmp_path / 'edges.csv'}"]
    settings = [*overrides, "model.num_clusters=2", f"output_dir={tmp_path / 'run'}"]
    assert main(["train", config, *settings]) == 0
    assert "no features" in "".join(capsys.readouterr())
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["noise"]["estimated_share"] is None
    assert len(result["view"]["candidates"]) == 4
    assert any("no features" in warning for warning in result["warnings"])
    assert result["num_features"] == 0
    clusters = pd.read_csv(tmp_path / "run" / "clusters.csv")["cluster"].to_numpy()
    assert len(set(clusters[:12])) == len(set(clusters[12:])) == 1
    assert clusters[0] != clusters[-1]


def test_neither_edges_nor_features_are_refused(tmp_path, capsys):
    edges = tmp_path / "e.csv"
    edges.write_text("0,0\n1,1\n2,2\n")
    command = ["train", "--edges", str(edges), "--clusters", "2", f"output_dir={tmp_path / 'run'}"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "the data have neither edges nor features" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_an_interrupt_promises_no_checkpoint(tmp_path, capsys, monkeypatch):
    def stopped(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("user_dgl.pipeline.inputs.load_data", stopped)
    assert main(["train", QUICKSTART, f"output_dir={tmp_path / 'run'}"]) == 130
    assert capsys.readouterr().err == "user-dgl: interrupted\n"


def test_floors_are_not_run_without_labels(tmp_path, capsys):
    """They would have no scores."""
    edges = [(i, (i + step) % 30) for i in range(30) for step in (1, 2)]
    (tmp_path / "edges.csv").write_text("".join(f"{u},{v}\n" for u, v in edges))
    settings = ("data.kind=edge_list", f"data.root={tmp_path}", "data.edges=edges.csv")
    default = str(CONFIGS / "default.yaml")
    more = ("model.num_clusters=3", "train.epochs=2", "eval.floors=true")
    run_dir = tmp_path / "run"
    assert main(["train", default, *settings, *more, f"output_dir={run_dir}"]) == 0
    assert "floors" not in json.loads((run_dir / "result.json").read_text())
    assert "no labels, so the floors" in capsys.readouterr().out


def test_config_reference_has_every_key_with_its_default(capsys):
    assert main(["config", "--reference"]) == 0
    text = capsys.readouterr().out
    plain = yaml.safe_load(to_yaml(Config()))

    def check(values, prefix=""):
        for name, value in values.items():
            if isinstance(value, dict) and value:
                assert f"## `{prefix}{name}`: " in text
                check(value, f"{prefix}{name}.")
                continue
            (line,) = [row for row in text.splitlines() if row.startswith(f"| `{prefix}{name}` |")]
            default = line.split("|")[2].strip().strip("`")
            assert yaml.safe_load(default) == value, line
            assert line.count("|") - line.count("\\|") == 5, line

    check(plain)
    assert main(["config"]) == 2
