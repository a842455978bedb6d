"""Entering a run directory, and what its files hold."""

import json
import os
import stat

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from graphs import random_graph

from user_dgl.config import load_config
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.output.run_directory import RunDirectory
from user_dgl.runtime.files import write_atomically

CONFIG = load_config(None, ["model.num_clusters=3"])


def _open(path, *overrides):
    config = load_config(None, ["model.num_clusters=3", *overrides])
    run = RunDirectory(path)
    checkpoint = run.checkpoint_to_resume(config)
    run.begin(config, checkpoint)
    return run, checkpoint


def test_new_folder_gets_the_resolved_config(tmp_path):
    run, checkpoint = _open(tmp_path / "a" / "b")
    assert checkpoint is None
    assert run.read_config() == CONFIG
    assert not run.finished()


def test_occupied_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"not empty.*overwrite=true.*train\.resume=true"):
        _open(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_overwrite_removes_the_old_run_and_nothing_else(tmp_path):
    (tmp_path / "config.yaml").write_text("model: {num_clusters: 2}")
    with pytest.raises(InputError, match="no run to overwrite"):  # a config of the user's
        _open(tmp_path, "overwrite=true")
    (tmp_path / "config.yaml").unlink()
    run, _ = _open(tmp_path)
    assert _files(tmp_path) == ["config.yaml", "metrics.jsonl"]
    (tmp_path / "mine.txt").write_text("mine")
    run.record({"epoch": 1})
    run.write_result({"x": 1})
    _open(tmp_path, "overwrite=true")
    assert _files(tmp_path) == ["config.yaml", "metrics.jsonl", "mine.txt"]
    assert run.read_metrics() == []
    assert not run.read_config().overwrite


@pytest.mark.parametrize("later", ["seed=0", "overwrite=true", "train.resume=true"])
def test_a_new_run_whose_settings_could_not_be_written_may_be_entered(tmp_path, monkeypatch, later):
    write_file = RunDirectory.write_file

    def full(run, name, write):
        if name == "config.yaml":
            raise InputError(f"{name}: cannot be written: No space left on device")
        write_file(run, name, write)

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write_file", full)
        with pytest.raises(InputError, match="No space left"):
            _open(tmp_path / "run")
    _open(tmp_path / "run", later)


@pytest.mark.parametrize("later", ["overwrite=true", "train.resume=true"])
def test_a_run_that_was_killed_before_its_first_epoch_may_be_entered_again(tmp_path, later):
    run, _ = _open(tmp_path)
    _open(tmp_path, later)
    run.write_result({"x": 1})
    _open(tmp_path, "overwrite=true")
    assert not run.finished()
    _open(tmp_path, later)


def test_a_run_of_which_no_file_can_be_written_may_be_replaced(tmp_path, monkeypatch):
    """The disk is full while an old run is replaced."""
    run, _ = _open(tmp_path)
    run.write_result({"x": 1})

    def full(name, write):
        raise InputError(f"{name}: cannot be written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write_file", lambda self, name, write: full(name, write))
        with pytest.raises(InputError, match="No space left"):
            _open(tmp_path, "overwrite=true")
    _open(tmp_path, "overwrite=true")


@pytest.mark.parametrize("settings", [None, "a: 1", "- a list", "model: text", "{", "\xff"])
def test_files_that_only_bear_the_names_of_a_run_are_not_overwritten(tmp_path, settings):
    (tmp_path / "result.json").write_text("{}")
    if settings is not None:
        (tmp_path / "config.yaml").write_text(settings)
    before = _files(tmp_path)
    with pytest.raises(InputError, match="no run to overwrite"):
        _open(tmp_path, "overwrite=true")
    assert _files(tmp_path) == before


def _files(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "f").write_text("x")
    for extra in ("overwrite=true", "train.resume=true", "seed=0"):
        with pytest.raises(InputError):
            _open(tmp_path / "f", extra)


def test_resume_returns_the_checkpoint_and_cuts_later_metrics(tmp_path):
    run, _ = _open(tmp_path)
    for epoch in (1, 2, 3):
        run.record({"epoch": epoch})
    run.save_checkpoint({"progress": {"epoch": 2}})
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"loss": 0, "ep')  # cut off by a crash
    _, checkpoint = _open(tmp_path, "train.resume=true")
    assert checkpoint == {"progress": {"epoch": 2}}
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [1, 2]


def test_resume_of_nothing_starts_anew(tmp_path):
    assert _open(tmp_path / "new", "train.resume=true")[1] is None
    run, _ = _open(tmp_path / "stopped early")
    run.record({"epoch": 1})
    assert _open(tmp_path / "stopped early", "train.resume=true")[1] is None
    assert run.read_metrics() == []


def test_resume_of_other_settings_is_refused(tmp_path):
    _open(tmp_path)
    with pytest.raises(InputError, match=r"other settings \(train\.lr was 0\.01, is 0\.5\)"):
        _open(tmp_path, "train.resume=true", "train.lr=0.5")
    _open(tmp_path, "train.resume=true", "train.log_every=7")  # does not change the result


def test_resume_in_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no run"):
        _open(tmp_path, "train.resume=true")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(InputError, match="cannot be written"):
        _open(tmp_path / "run")


def test_input_round_trip(tmp_path):
    run, _ = _open(tmp_path)
    graph = random_graph()
    added = np.arange(graph.num_edges) % 2 == 0
    labels = np.arange(20) - 1
    run.write_input(graph, added, labels)
    again, added_again, labels_again = run.read_input()
    np.testing.assert_array_equal(again.keys, graph.keys)
    np.testing.assert_array_equal(added_again, added)
    np.testing.assert_array_equal(labels_again, labels)
    run.write_input(graph, added, None)
    assert run.read_input()[2] is None


def test_clusters_keep_odd_node_ids(tmp_path):
    run, _ = _open(tmp_path)
    ids = ["007", "7", "a,b", 'quo"te', "ñ", "NA", ""]
    run.write_clusters(ids, np.arange(7))
    assert (tmp_path / "clusters.csv").read_text().splitlines()[0] == "node,cluster"
    read_ids, clusters = run.read_clusters()
    assert read_ids == ids
    np.testing.assert_array_equal(clusters, np.arange(7))


def test_learned_graph_is_symmetric_scipy_csr(tmp_path):
    run, _ = _open(tmp_path)
    graph = random_graph()
    weight = np.linspace(0.1, 2, graph.num_edges, dtype=np.float32)
    run.write_learned_graph(graph, weight)
    matrix = sp.load_npz(tmp_path / "learned_graph.npz")
    assert matrix.format == "csr"
    assert (matrix != matrix.T).nnz == 0
    np.testing.assert_array_equal(run.read_learned_weight(graph), weight)


def test_weights_of_no_pairs(tmp_path):
    graph = Graph.from_edges(5, [], [])[0]
    run = RunDirectory(tmp_path)
    run.write_learned_graph(graph, np.empty(0, dtype=np.float32))
    assert run.read_learned_weight(graph).shape == (0,)


@pytest.mark.parametrize("name", ["a" * 245, "file/below"])
def test_names_that_cannot_be_written_are_refused(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_atomically(tmp_path / name, lambda file: None)


def test_learned_graph_of_another_run_is_refused(tmp_path):
    run, _ = _open(tmp_path)
    graph, larger = random_graph(30, 60, seed=0), random_graph(40, 60, seed=0)
    run.write_learned_graph(larger, np.ones(larger.num_edges, dtype=np.float32))
    with pytest.raises(InputError, match="30 nodes, 40 rows of A'"):
        run.read_learned_weight(graph)


def test_embedding_is_float32(tmp_path):
    run, _ = _open(tmp_path)
    run.write_embedding(np.ones((3, 2)))
    assert np.load(tmp_path / "embedding.npy").dtype == np.float32
    assert run.read_embedding().shape == (3, 2)


def test_result_never_holds_nan(tmp_path):
    run, _ = _open(tmp_path)
    with pytest.raises(ValueError):
        run.write_result({"x": float("nan")})
    assert not run.finished()


def test_missing_and_damaged_files_are_named(tmp_path):
    run, _ = _open(tmp_path)
    for read in (run.read_input, run.read_clusters, run.read_embedding, run.read_result):
        with pytest.raises(InputError, match="not there"):
            read()
    for name, read in (
        ("input.npz", run.read_input),
        ("clusters.csv", run.read_clusters),
        ("embedding.npy", run.read_embedding),
        ("learned_graph.npz", lambda: run.read_learned_weight(random_graph())),
    ):
        for damaged in (b"garbage", b"PK\x03\x04 cut off", b""):
            (tmp_path / name).write_bytes(damaged)
            with pytest.raises(InputError, match=name):
                read()


@pytest.mark.parametrize("row", ["3", "[]", "null", '{"loss": 1}', '{"epoch": "1"}'])
def test_rows_of_no_run_are_named(tmp_path, row):
    run, _ = _open(tmp_path)
    run.record({"epoch": 1})
    run.save_checkpoint({"progress": {"epoch": 2}})
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write(row + "\n")
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"metrics\.jsonl:2: no row of a run"):
        _open(tmp_path, "train.resume=true")
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_checkpoint_loads_with_weights_only(tmp_path):
    run, _ = _open(tmp_path)
    run.save_checkpoint({"a": torch.ones(2)})
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["a"].tolist() == [1, 1]
