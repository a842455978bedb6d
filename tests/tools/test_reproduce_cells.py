"""tools/reproduce.py: cells through the real command, and restarts."""

import argparse
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import reproduce
from cells_of_tables import TINY, cell_of, result_of
from reproduction import cells as cells_module
from reproduction import figures, plan
from reproduction.cells import COLUMNS, read_rows, run_cells, survey
from reproduction.children import Children, Failure

from user_dgl.cli import main

KEPT = cell_of(1, keeps_run=True)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Two cells through the real command, side by side: folder and outcome."""
    results = tmp_path_factory.mktemp("results")
    return results, run_cells([cell_of(0), KEPT], results, jobs=2)


@pytest.fixture
def results(first, tmp_path):
    """A copy of the finished rows."""
    (tmp_path / "random-noise.csv").write_bytes((first[0] / "random-noise.csv").read_bytes())
    return tmp_path


def test_rows_of_real_runs(first):
    results, outcome = first
    assert (outcome.done, outcome.failed, outcome.interrupted) == (2, {}, False)
    rows = read_rows(results, "random-noise")
    assert rows.columns.tolist() == COLUMNS
    assert rows["seed"].tolist() == [0, 1]
    for column in (
        "nmi",
        "acc",
        "ari",
        "f1",
        "ami",
        "weight_auc",
        "weight_ap",
        "smooth_kmeans_ari",
    ):
        assert rows[column].between(-100, 100).all(), column
    assert rows["true_share"].between(0, 1).all()
    assert rows["digest"].nunique() == 2
    assert rows["code"].nunique() == 1
    assert survey([cell_of(0), cell_of(1)], results).stale == []
    assert not list(results.glob(".*"))  # nothing half-written


def test_restart_keeps_finished_cells(results, trained):
    before = (results / "random-noise.csv").read_bytes()
    assert run_cells([cell_of(0), cell_of(1)], results).done == 0
    assert trained == []
    assert (results / "random-noise.csv").read_bytes() == before
    run_cells([cell_of(0), cell_of(1), cell_of(2)], results)
    assert trained == [cell_of(2)]
    assert read_rows(results, "random-noise")["seed"].tolist() == [0, 1, 2]


def test_force_runs_all(results, trained):
    assert run_cells([cell_of(0), cell_of(1)], results, force=True).done == 2
    assert trained == [cell_of(0), cell_of(1)]


def test_a_cell_of_other_settings_runs_again(results, trained, capsys):
    changed = cell_of(1, overrides=(*TINY, "train.lr=0.02"))
    state = survey([cell_of(0), changed, cell_of(2)], results)
    assert (state.finished, state.changed, state.missing) == ([cell_of(0)], [changed], [cell_of(2)])
    assert state.stale == []
    assert run_cells([cell_of(0), changed], results).done == 1
    assert trained == [changed]
    assert "1 cells were made with other settings" in capsys.readouterr().out
    rows = read_rows(results, "random-noise")
    assert rows.loc[rows["seed"] == 1, "nmi"].tolist() == [50]
    assert len(rows) == 2


@pytest.mark.parametrize("free", ["output_dir=x", "data.root=/y", "train.log_every=7"])
def test_settings_that_change_no_score_leave_the_digest(results, free):
    assert survey([cell_of(0, overrides=(*TINY, free))], results).changed == []


@pytest.fixture
def older(results):
    """The finished rows, as if other code had made them."""
    file = results / "random-noise.csv"
    rows = read_rows(results, "random-noise").assign(code="0123456789ab", user_dgl="0.3.0")
    rows.to_csv(file, index=False)
    return results


def test_a_cell_of_older_code_is_kept_unless_it_is_asked_for(older, trained, capsys):
    cells = [cell_of(0), cell_of(1)]
    state = survey(cells, older)
    assert (state.finished, state.stale, state.changed) == (cells, cells, [])
    before = (older / "random-noise.csv").read_bytes()
    assert run_cells(cells, older).done == 0
    assert "2 finished cells are older than the code: kept" in capsys.readouterr().out
    assert (older / "random-noise.csv").read_bytes() == before
    assert run_cells(cells, older, stale=True).done == 2
    assert trained == cells
    assert survey(cells, older).stale == []
    assert run_cells(cells, older, stale=True).done == 0


def test_a_row_of_no_code_is_stale(results):
    rows = read_rows(results, "random-noise").drop(columns="code")
    rows.to_csv(results / "random-noise.csv", index=False)
    assert survey([cell_of(0)], results).stale == [cell_of(0)]


def test_a_stale_cell_is_not_copied_from_a_row_of_older_code(older, trained):
    other = cell_of(0, table="ablation", method="full")
    assert run_cells([other], older).done == 1  # what is missing may be copied
    assert trained == []
    assert survey([other], older).stale == [other]
    run_cells([other], older, stale=True)
    assert trained == [other]
    # Now there is a row by the current code, for the cell of the other table.
    run_cells([cell_of(0)], older, stale=True)
    assert trained == [other]
    assert survey([cell_of(0)], older).stale == []


def test_status_names_tables_and_versions(monkeypatch, older, capsys):
    cells = [cell_of(0), cell_of(1, overrides=(*TINY, "train.lr=0.02"))]
    monkeypatch.setattr(plan, "TABLES", {"random-noise": lambda: cells, "ablation": list})
    command = ["status", "--results", str(older)]
    assert reproduce.main(command) == 1
    line = (
        "random-noise: of 2 rows 1 older than the code (1 of 0.3.0), 1 of other settings (1 of "
        "0.3.0)\n"
    )
    assert capsys.readouterr().out == line
    assert reproduce.main([*command, "--cells"]) == 1
    assert "  older than the code: cora default 50 % seed 0, 0.3.0\n" in capsys.readouterr().out
    monkeypatch.setattr(plan, "TABLES", {"random-noise": lambda: cells[:1]})
    reproduce.main(command)
    assert "1 of no cell (1 of 0.3.0)" in capsys.readouterr().out


def test_status_says_nothing_where_all_rows_are_current(tiny_plan, results, capsys):
    assert reproduce.main(["status", "--results", str(results)]) == 0
    assert capsys.readouterr().out == ""


def test_dry_run_lists_cells_of_older_code_that_would_run(tiny_plan, older, capsys):
    command = ["random-noise", "--dry-run", "--results", str(older)]
    assert reproduce.main(command) == 0
    printed = capsys.readouterr().out
    assert "older than the code: random" not in printed
    assert "2 finished, 0 missing, 0 of other settings, 0 unusable; of the finished 2" in printed
    reproduce.main([*command, "--stale"])
    assert "older than the code: random-noise cora default 50 % seed 1" in capsys.readouterr().out


def test_rows_of_the_same_settings_serve_other_tables(results, trained):
    other = cell_of(0, table="ablation", method="full")
    assert run_cells([other], results).done == 1
    assert trained == []
    row, origin = read_rows(results, "ablation"), read_rows(results, "random-noise")
    assert row["nmi"].tolist() == origin["nmi"].tolist()[:1]
    assert row[["table", "method"]].values.tolist() == [["ablation", "full"]]


def _instead_of_python(monkeypatch, tmp_path, script):
    """Cells run a shell script in place of the package."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo Traceback >&2; echo 'error: no such file' >&2; echo >&2; exit 2", "error: no such"),
        ("exit 3", "exit status 3"),
        ("exit 0", "result.json"),  # says it is done, and left nothing
    ],
)
def test_a_failing_cell_is_reported_and_the_others_go_on(
    results, monkeypatch, tmp_path, script, message
):
    _instead_of_python(monkeypatch, tmp_path, script)
    broken = [cell_of(2), cell_of(3)]
    outcome = run_cells([cell_of(0), *broken], results, jobs=2)
    assert set(outcome.failed) == set(broken)
    assert all(message in text for text in outcome.failed.values())
    assert survey(broken, results).missing == broken
    assert read_rows(results, "random-noise")["seed"].tolist() == [0, 1]


def test_an_interrupt_ends_the_trainings(monkeypatch, tmp_path):
    _instead_of_python(monkeypatch, tmp_path, "echo started >&2; exec sleep 60")
    children = Children({"PATH": "/usr/bin:/bin"})
    with ThreadPoolExecutor() as pool:
        running = pool.submit(children._run, [sys.executable])
        while not children._running:
            time.sleep(0.01)
        children.stop()
        assert running.result(timeout=10)[0] == -signal.SIGTERM
    with pytest.raises(Failure):  # one that was about to start
        children.user_dgl([])


@pytest.fixture
def in_process(monkeypatch):
    """Commands of cells run in this process, one at a time, which saves the start of Python."""
    one_at_a_time = threading.Lock()

    def run(self, command):
        assert command[:4] == [sys.executable, "-P", "-m", "user_dgl"]
        with one_at_a_time:
            return main(command[4:]), ""

    monkeypatch.setattr(Children, "_run", run)


def test_an_attack_is_made_once_for_all_methods(tmp_path, in_process):
    attack = (
        "data.noise.kind=metattack", "data.noise.rate=0.1", "data.noise.attack.surrogate_epochs=5",
    )  # fmt: skip
    cells = [
        cell_of(table="meta-attack-own", kind="metattack", rate=10, method=method,
              overrides=(*TINY, *attack, *more))
        for method, more in (("USER-DGL", ()), ("GAE", ("model.kind=gae", "baseline.epochs=2")))
    ]  # fmt: skip
    assert run_cells(cells, tmp_path, jobs=2).failed == {}
    (attacked,) = (tmp_path / "attacked").iterdir()
    made = attacked.stat().st_mtime_ns
    (tmp_path / "meta-attack-own.csv").unlink()
    run_cells(cells[:1], tmp_path)
    assert attacked.stat().st_mtime_ns == made
    run_cells(cells, tmp_path, force=True)
    assert attacked.stat().st_mtime_ns > made
    rows = read_rows(tmp_path, "meta-attack-own")
    assert rows["method"].tolist() == ["GAE", "USER-DGL"]
    assert rows["kind"].tolist() == ["metattack"] * 2
    assert rows["true_share"].nunique() == 1
    assert rows["true_share"].iloc[0] > 0


def test_a_cell_without_readable_config_fails_alone(tmp_path, trained):
    no_config = cell_of(1, config=tmp_path / "none.yaml")
    outcome = run_cells([no_config, cell_of(0)], tmp_path / "new")
    assert trained == [cell_of(0)]
    assert "none.yaml" in outcome.failed[no_config]


def test_a_kept_run_stays_for_figures(first, results):
    graphs, labels, clusters = figures.read_graphs(KEPT.run_dir(first[0]))
    assert [graph.shape for graph in graphs] == [(60, 60)] * 3
    assert len(labels) == len(clusters) == 60
    assert (graphs[0] != graphs[1]).nnz > 0
    assert not cell_of(0).run_dir(first[0]).exists()
    # The row without the run is not enough.
    assert survey([KEPT], results).missing == [KEPT]


def test_interrupt_keeps_what_is_finished(tmp_path, monkeypatch):
    def train(cell, *_):
        if cell.seed:
            raise KeyboardInterrupt
        return result_of()

    monkeypatch.setattr(cells_module, "_train", train)
    outcome = run_cells([cell_of(seed) for seed in range(3)], tmp_path)
    assert outcome.interrupted
    assert read_rows(tmp_path, "random-noise")["seed"].tolist() == [0]


def test_optional_parts_of_a_result():
    plain = cells_module.result_row(cell_of(), result_of(), "d", "c")
    assert (plain["nmi_head"], plain["self_share"], plain["prepared_smooth_kmeans_nmi"]) == (
        None,
    ) * 3
    more = result_of(
        view={"self_share": 0.3, "name": "4 hops"},
        labels_from="code",
        assignments={"head": {"nmi": 1.0}, "kmeans": {"nmi": 2.0}},
        floors_prepared={"smooth_kmeans": {"nmi": 3.0, "acc": 4.0, "ari": 5.0}},
    )
    row = cells_module.result_row(cell_of(), more, "d", "c")
    assert (row["nmi_head"], row["nmi_kmeans"], row["self_share"]) == (1, 2, 0.3)
    assert row["prepared_smooth_kmeans_ari"] == 5
    assert (row["view"], row["labels_from"], row["code"]) == ("4 hops", "code", "c")


def test_row_of_link_prediction():
    scores = {"auc": 98.0, "ap": 97.0}
    result = result_of(
        metrics=scores,
        links={"score": "learned", "test": {"learned": scores, "dot": {"auc": 90.0, "ap": 91.0}}},
        floors={"smoothed_cosine": {"auc": 95.0, "ap": 96.0}},
        floors_prepared={"features_cosine": {"auc": 93.0, "ap": 94.0}},
    )
    row = cells_module.result_row(cell_of(), result, "d", "c")
    assert set(row) == set(COLUMNS)
    assert (row["learned_auc"], row["dot_ap"], row["nmi"]) == (98, 91, None)
    assert (row["smoothed_cosine_ap"], row["prepared_features_cosine_auc"]) == (96, 93)


def test_digests_that_look_like_numbers(tmp_path):
    row = cells_module.result_row(cell_of(), result_of(), "12e456789012", "13e456789012")
    cells_module.add_rows(tmp_path, [row])
    kept = read_rows(tmp_path, "random-noise")[["digest", "code"]].values.tolist()
    assert kept == [["12e456789012", "13e456789012"]]


@pytest.fixture
def tiny_plan(monkeypatch):
    made = [cell_of(seed) for seed in range(2)]
    monkeypatch.setattr(plan, "TABLES", {"random-noise": lambda: made})
    return made


def test_dry_run_lists_and_writes_nothing(tiny_plan, tmp_path, capsys):
    folder = tmp_path / "new"
    assert reproduce.main(["random-noise", "--dry-run", "--results", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "missing: random-noise cora default 50 % seed 1" in printed
    assert "0 finished, 2 missing" in printed
    assert not folder.exists()


def test_command_writes_the_page(tiny_plan, results, trained):
    command = ["random-noise", "--results", str(results), "--jobs", "1", "--seeds", "0"]
    assert reproduce.main(command) == 0
    assert trained == []
    page = (results / "random-noise.md").read_text()
    assert "Cells finished: 2, missing: 0" in page
    assert "| default − smooth_kmeans |" in page


def test_command_fails_where_a_cell_does(monkeypatch, tmp_path, capsys):
    broken = [cell_of(seed, config=tmp_path / "none.yaml") for seed in range(3)]
    monkeypatch.setattr(plan, "TABLES", {"random-noise": lambda: broken})
    assert reproduce.main(["random-noise", "--results", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "seed 0 and 2 more" in error
    assert "none.yaml" in error


def test_nothing_selected_names_the_choices(tiny_plan, capsys):
    with pytest.raises(SystemExit) as stop:
        reproduce.main(["random-noise", "--datasets", "kora"])
    assert stop.value.code == 2
    assert "datasets cora" in capsys.readouterr().err


def test_lists_of_numbers():
    assert reproduce.numbers("0-2,7") == [0, 1, 2, 7]
    for bad in ("x", "1-", "-1", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="0-9"):
            reproduce.numbers(bad)


def test_missing_matplotlib_is_said(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stop:
        reproduce.main(["parameters", "--seeds", "0"])
    assert stop.value.code == 2
    assert "user_dgl[plot]" in capsys.readouterr().err
