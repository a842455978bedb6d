"""tools/reproduce.py: cells through the real command, restarts, tables."""

import argparse
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import reproduce  # noqa: E402
from reproduction import cells as cells_module  # noqa: E402
from reproduction import figures, paper, plan, readme, tables  # noqa: E402
from reproduction.cells import COLUMNS, KEY, Cell, read_rows, run_cells, survey  # noqa: E402
from reproduction.summary import interval, mean_std, paired  # noqa: E402

from user_dgl.config import load_config  # noqa: E402

TINY = (
    "data.synthetic.num_nodes=60",
    "model.hidden_feats=[4]",
    "train.epochs=2",
    "train.restarts=1",
)


def _cell(seed=0, **changes) -> Cell:
    config = ROOT / "configs" / "quickstart.yaml"
    cell = Cell("random-noise", "cora", "default", "random_flip", 50, seed, config, TINY)
    return replace(cell, **changes)


KEPT = _cell(1, keeps_run=True)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Two cells through the real command, side by side: folder and outcome."""
    results = tmp_path_factory.mktemp("results")
    return results, run_cells([_cell(0), KEPT], results, jobs=2)


@pytest.fixture
def results(first, tmp_path):
    """A copy of the finished rows."""
    (tmp_path / "random-noise.csv").write_bytes((first[0] / "random-noise.csv").read_bytes())
    return tmp_path


@pytest.fixture
def trained(monkeypatch):
    """Cells that would have been trained; nothing is."""
    ran = []
    result = _result()

    def train(cell, *_):
        ran.append(cell)
        return result

    monkeypatch.setattr(cells_module, "_train", train)
    return ran


def _result(nmi=50.0, **changes) -> dict:
    metrics = {"nmi": nmi, "acc": 60.0, "ari": 40.0, "f1": 55.0}
    return {
        "metrics": metrics,
        "floors": {"features_kmeans": metrics, "smooth_kmeans": metrics},
        "noise": {
            "weight_auc": 80.0, "weight_ap": 70.0, "estimated_share": None, "true_share": 0.25,
        },
        "num_clusters_found": 5,
        "seconds_total": 1.5,
        "peak_memory_mb": 300.0,
        "versions": {"user_dgl": "0.2.0"},
    } | changes  # fmt: skip


# ---------------------------------------------------------------------------------------------
# Running


def test_rows_of_real_runs(first):
    results, outcome = first
    assert (outcome.done, outcome.failed, outcome.interrupted) == (2, {}, False)
    rows = read_rows(results, "random-noise")
    assert rows.columns.tolist() == COLUMNS
    assert rows["seed"].tolist() == [0, 1]
    for column in ("nmi", "acc", "ari", "f1", "weight_auc", "weight_ap", "smooth_kmeans_ari"):
        assert rows[column].between(-100, 100).all(), column
    assert rows["true_share"].between(0, 1).all()
    assert rows["digest"].nunique() == 2
    assert not list(results.glob(".*"))  # nothing half-written


def test_restart_keeps_finished_cells(results, trained):
    before = (results / "random-noise.csv").read_bytes()
    assert run_cells([_cell(0), _cell(1)], results).done == 0
    assert trained == []
    assert (results / "random-noise.csv").read_bytes() == before
    run_cells([_cell(0), _cell(1), _cell(2)], results)
    assert trained == [_cell(2)]
    assert read_rows(results, "random-noise")["seed"].tolist() == [0, 1, 2]


def test_force_runs_all(results, trained):
    assert run_cells([_cell(0), _cell(1)], results, force=True).done == 2
    assert trained == [_cell(0), _cell(1)]


def test_other_settings_make_a_cell_stale(results, trained, capsys):
    changed = _cell(1, overrides=(*TINY, "train.lr=0.02"))
    state = survey([_cell(0), changed, _cell(2)], results)
    assert (state.finished, state.stale, state.missing) == ([_cell(0)], [changed], [_cell(2)])
    assert run_cells([_cell(0), changed], results).done == 1
    assert trained == [changed]
    assert "1 cells were made with other settings" in capsys.readouterr().out
    rows = read_rows(results, "random-noise")
    assert rows.loc[rows["seed"] == 1, "nmi"].tolist() == [50]
    assert len(rows) == 2


@pytest.mark.parametrize("free", ["output_dir=x", "data.root=/y", "train.log_every=7"])
def test_settings_that_change_no_score_leave_the_digest(results, free):
    assert survey([_cell(0, overrides=(*TINY, free))], results).stale == []


def test_rows_of_the_same_settings_serve_other_tables(results, trained):
    other = _cell(0, table="ablation", method="full")
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
    broken = [_cell(2), _cell(3)]
    outcome = run_cells([_cell(0), *broken], results, jobs=2)
    assert set(outcome.failed) == set(broken)
    assert all(message in text for text in outcome.failed.values())
    assert survey(broken, results).missing == broken
    assert read_rows(results, "random-noise")["seed"].tolist() == [0, 1]


def test_an_interrupt_ends_the_trainings(monkeypatch, tmp_path):
    _instead_of_python(monkeypatch, tmp_path, "echo started >&2; exec sleep 60")
    children = cells_module._Children({"PATH": "/usr/bin:/bin"})
    with ThreadPoolExecutor() as pool:
        running = pool.submit(children._run, [sys.executable])
        while not children._running:
            time.sleep(0.01)
        children.stop()
        assert running.result(timeout=10)[0] == -signal.SIGTERM
    with pytest.raises(cells_module._Failure):  # one that was about to start
        children.user_dgl([])


def test_an_attack_is_made_once_for_all_methods(tmp_path):
    attack = (
        "data.noise.kind=metattack", "data.noise.rate=0.1", "data.noise.attack.surrogate_epochs=5",
    )  # fmt: skip
    cells = [
        _cell(table="meta-attack-own", kind="metattack", rate=10, method=method,
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
    no_config = _cell(1, config=tmp_path / "none.yaml")
    outcome = run_cells([no_config, _cell(0)], tmp_path / "new")
    assert trained == [_cell(0)]
    assert "none.yaml" in outcome.failed[no_config]


def test_a_kept_run_stays_for_figures(first, results):
    graphs, labels, clusters = figures.read_graphs(KEPT.run_dir(first[0]))
    assert [graph.shape for graph in graphs] == [(60, 60)] * 3
    assert len(labels) == len(clusters) == 60
    assert (graphs[0] != graphs[1]).nnz > 0
    assert not _cell(0).run_dir(first[0]).exists()
    # The row without the run is not enough.
    assert survey([KEPT], results).missing == [KEPT]


def test_interrupt_keeps_what_is_finished(tmp_path, monkeypatch):
    def train(cell, *_):
        if cell.seed:
            raise KeyboardInterrupt
        return _result()

    monkeypatch.setattr(cells_module, "_train", train)
    outcome = run_cells([_cell(seed) for seed in range(3)], tmp_path)
    assert outcome.interrupted
    assert read_rows(tmp_path, "random-noise")["seed"].tolist() == [0]


def test_optional_parts_of_a_result():
    plain = cells_module.result_row(_cell(), _result(), "d")
    assert (plain["nmi_head"], plain["self_share"], plain["prepared_smooth_kmeans_nmi"]) == (
        None,
    ) * 3
    more = _result(
        view={"self_share": 0.3},
        assignments={"head": {"nmi": 1.0}, "kmeans": {"nmi": 2.0}},
        floors_prepared={"smooth_kmeans": {"nmi": 3.0, "acc": 4.0, "ari": 5.0}},
    )
    row = cells_module.result_row(_cell(), more, "d")
    assert (row["nmi_head"], row["nmi_kmeans"], row["self_share"]) == (1, 2, 0.3)
    assert row["prepared_smooth_kmeans_ari"] == 5


def test_row_of_link_prediction():
    scores = {"auc": 98.0, "ap": 97.0}
    result = _result(
        metrics=scores,
        links={"score": "learned", "test": {"learned": scores, "dot": {"auc": 90.0, "ap": 91.0}}},
        floors={"smoothed_cosine": {"auc": 95.0, "ap": 96.0}},
        floors_prepared={"features_cosine": {"auc": 93.0, "ap": 94.0}},
    )
    row = cells_module.result_row(_cell(), result, "d")
    assert set(row) == set(COLUMNS)
    assert (row["learned_auc"], row["dot_ap"], row["nmi"]) == (98, 91, None)
    assert (row["smoothed_cosine_ap"], row["prepared_features_cosine_auc"]) == (96, 93)


def test_digests_that_look_like_numbers(tmp_path):
    row = cells_module.result_row(_cell(), _result(), "12e456789012")
    cells_module.add_rows(tmp_path, [row])
    assert read_rows(tmp_path, "random-noise")["digest"].tolist() == ["12e456789012"]


# ---------------------------------------------------------------------------------------------
# The command


@pytest.fixture
def tiny_plan(monkeypatch):
    made = [_cell(seed) for seed in range(2)]
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
    broken = [_cell(seed, config=tmp_path / "none.yaml") for seed in range(3)]
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


# ---------------------------------------------------------------------------------------------
# Plan


def test_plan_has_every_cell_once():
    for name, cells in ((name, make()) for name, make in plan.TABLES.items()):
        assert len({cell.key for cell in cells}) == len(cells)
        assert {cell.table for cell in cells} == {name}
    chosen = plan.select(plan.random_noise(), dataset=["wiki"], rate=[0, 50], method=None)
    assert {cell.method for cell in chosen} == {"USER-DGL", "user", "default"}
    assert len(chosen) == 3 * 2 * 10
    pubmed = plan.select(plan.meta_attack(), dataset=["pubmed"], method=["default"])
    assert len(pubmed) == 5 * 3


def test_settings_of_the_plan_are_read():
    """Each kind of overrides once, with the shipped configs."""
    for make in plan.TABLES.values():
        for cell in {(c.config, c.method): c for c in make()}.values():
            if cell.config.exists():
                load_config(cell.config, cell.settings)
    (attacked, *_) = plan.select(plan.meta_attack(), dataset=["cora"], rate=[10])
    config = load_config(attacked.config, attacked.settings)
    assert config.data.noise.file == "prognn_meta/cora_meta_adj_0.1.npz"
    assert config.data.largest_component
    assert config.data.name is None


def test_thin_tables_have_two_seeds_and_the_ends_of_the_rates():
    cells = plan.thin(plan.baselines())
    assert len(cells) == 2 * 2 * 2 * 11
    assert {(cell.dataset, cell.rate, cell.seed) for cell in cells} == {
        (dataset, rate, seed) for dataset in ("cora", "citeseer") for rate in (0, 50)
        for seed in (0, 1)
    }  # fmt: skip
    assert {cell.rate for cell in plan.thin(plan.meta_attack())} == {5, 25}
    assert len(plan.thin(plan.meta_attack_own())) == len(cells)
    assert {cell.dataset for cell in plan.thin(plan.link())} == {"citeseer", "wiki"}


def test_settings_of_user_leave_the_cells_of_a_baseline_as_they_are():
    def digest(*overrides):
        return cells_module.settings_digest(load_config(None, ["model.kind=gae", *overrides]))

    assert digest("train.lr=0.5", "baseline.lr=0.01") == digest()
    assert digest("baseline.lr=0.02") != digest()


# ---------------------------------------------------------------------------------------------
# Tables


def test_interval_by_hand():
    # Mean 3, standard deviation sqrt(10 / 4), t(0.975, 4) = 2.776445.
    mean, half = interval([1, 2, 3, 4, 5])
    assert mean == 3
    assert half == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-6)
    assert np.isnan(interval([1])[1])


def test_paired_verdicts():
    # Half width for two values: 12.7062 * |a - b| / 2.
    assert paired([1.0, 1.2], 2) == "+1.1 ± 1.3 equal"
    assert paired([-3.0, -3.2], 2) == "-3.1 ± 1.3 below"
    assert paired([1.0, 3.0], 3) == "+2.0 ± 12.7 equal [2]"
    assert paired([0.0, 0.0], 2) == "+0.0 ± 0.0 equal"
    assert paired([np.nan], 2) == ""


def test_mean_std_counts_what_is_missing():
    assert mean_std([50.0, 54.0, np.nan], 10) == "52.0 ± 2.8 [2]"
    assert mean_std([np.nan], 10) == ""


def _rows(**columns) -> pd.DataFrame:
    rows = pd.DataFrame(columns)
    base = cells_module.result_row(_cell(), _result(), "d")
    for name in COLUMNS:
        if name not in rows:
            rows[name] = base[name]
    return rows[COLUMNS]


def test_page_of_noise():
    cells = [_cell(seed, rate=rate) for rate in (0, 50) for seed in range(2)]
    # At 50 % only seed 1 is finished; the floor of seed 1 belongs to it alone.
    rows = _rows(
        seed=[0, 1, 1],
        rate=[0, 0, 50],
        nmi=[60.0, 62.0, 50.0],
        smooth_kmeans_nmi=[55.0, 57.2, 45.0],
        true_share=[0.0, 0.0, 1 / 3],
        estimated_share=[0.05, 0.03, 0.36],
    )
    page = tables.report("random-noise", rows, cells)
    assert "Cells finished: 3, missing: 1." in page
    for line in (
        "| NMI | 0 % | 50 % |",
        "| paper: best of 11 | 57.3 ± 1.0 (DGI) | 49.3 ± 1.9 (USER) |",
        "| paper: USER | 56.2 ± 1.6 | 49.3 ± 1.9 |",
        "| smooth_kmeans | 56.1 ± 1.6 | 45.0 [1] |",
        "| default | 61.0 ± 1.4 | 50.0 [1] |",
        # Differences 5 and 4.8: mean 4.9, half width 12.7062 * 0.2 / 2.
        "| default − smooth_kmeans | +4.9 ± 1.3 above | +5.0 [1] |",
        "| default: estimated share | 4.0 ± 1.4 | 36.0 [1] |",
        "| true share | 0.0 ± 0.0 | 33.3 [1] |",
        "| default: AP | 70.0 ± 0.0 | 70.0 [1] |",
        "| DGI | 57.3 ± 1.0 | 43.2 ± 0.7 |",
    ):
        assert line in page.splitlines(), line


def test_floors_that_depend_on_the_method_get_a_row_each():
    cells = [_cell(method=method) for method in ("USER-DGL", "default")]
    rows = _rows(
        method=["default", "USER-DGL"], seed=[0, 0], rate=[50, 50],
        smooth_kmeans_nmi=[40.0, 45.0], features_kmeans_nmi=[30.0, 30.0],
    )  # fmt: skip
    lines = tables.report("random-noise", rows, cells).splitlines()
    assert "| features_kmeans | 30.0 [1] |" not in lines  # one seed is all there is
    assert "| features_kmeans | 30.0 |" in lines
    at = [lines.index(f"| smooth_kmeans ({m}) | {v} |") for m, v in
          (("USER-DGL", "45.0"), ("default", "40.0"))]  # fmt: skip
    assert at[0] < at[1]  # in the order of the plan


def test_page_of_baselines():
    cells = plan.select(plan.baselines(), dataset=["cora"], rate=[0, 50], seed=[0, 1])
    rows = _rows(
        table=["baselines"] * 5,
        method=["DGI", "USER-DGL", "DGI", "USER-DGL", "GAE"],
        rate=[0] * 4 + [50],
        seed=[0, 0, 1, 1, 0],
        nmi=[50.0, 60.0, 51.0, 63.0, 30.0],
    )
    page = tables.report("baselines", rows, cells).splitlines()
    for line in (
        "| USER-DGL | 61.5 ± 2.1 |  |",
        "| GAE | (44.3) | 30.0 [1] (25.0) |",
        "| DGI | 50.5 ± 0.7 (57.3) | (43.2) |",
        "| paper: USER | (56.2) | (49.3) |",
        # Differences 10 and 12: mean 11, half width 12.7062 * 2 / 2.
        "| USER-DGL − DGI | +11.0 ± 12.7 equal |  |",
    ):
        assert line in page, line
    at = [page.index(next(row for row in page if row.startswith(f"| {m} |"))) for m in
          ("USER-DGL", "GAE", "DGI", "paper: USER")]  # fmt: skip
    assert at == sorted(at)


def test_page_of_supported_models():
    cells = plan.select(plan.supported(), dataset=["cora"])
    rows = _rows(
        table=["supported"] * 5,
        method=["dgi", "dgi with USER", "dgi", "dgi with USER", "sage with USER"],
        rate=[50] * 5,
        seed=[0, 0, 1, 1, 0],
        nmi=[40.0, 50.0, 41.0, 53.0, 30.0],
    )
    page = tables.report("supported", rows, cells).splitlines()
    for line in (
        "| NMI | Cora, 50 % |",
        "| dgi | 40.5 ± 0.7 |",
        "| dgi with USER | 51.5 ± 2.1 |",
        "| dgi with USER | +11.0 ± 12.7 equal |",
        "| sage with USER | 30.0 [1] |",
        "| sage with USER |  |",  # nothing to compare with
    ):
        assert line in page, line


def test_page_of_links():
    cells = plan.select(plan.link(), dataset=["wiki"], rate=[0, 50], seed=[0, 1])
    rows = _rows(
        table=["link"] * 6,
        dataset=["wiki"] * 6,
        method=["GAE", "GAE", "USER-DGL", "USER-DGL", "USER-DGL", "USER-DGL"],
        rate=[0, 50, 0, 0, 50, 50],
        seed=[0, 0, 0, 1, 0, 1],
        learned_auc=[1.0, 1.0, 98.0, 98.4, 97.0, 97.2],
        dot_auc=[92.0, 90.0, 89.0, 89.0, 88.0, 88.0],
        learned_ap=[1.0] * 6,
        dot_ap=[2.0] * 6,
        smoothed_cosine_auc=[96.0, 95.0, 96.0, 96.2, 95.0, 95.1],
        prepared_smoothed_cosine_auc=[None, None, 97.0, 97.2, 94.0, 94.0],
    )
    lines = tables.report("link", rows, cells).splitlines()
    for line in (
        "| AUC | 0 % | 50 % |",
        "| paper: USER | 88.7 ± 0.1 | 86.9 ± 0.4 |",
        "| cosine of smoothed features | 96.1 ± 0.1 | 95.0 ± 0.1 |",
        "| cosine of smoothed prepared features | 97.1 ± 0.1 | 94.0 ± 0.0 |",
        "| GAE | 92.0 [1] | 90.0 [1] |",
        "| USER-DGL, dot product | 89.0 ± 0.0 | 88.0 ± 0.0 |",
        "| USER-DGL | 98.2 ± 0.3 | 97.1 ± 0.1 |",
        # Differences 1 and 1.2: mean 1.1, half width 12.7062 * 0.2 / 2.
        "| USER-DGL − cosine of smoothed prepared features | +1.1 ± 1.3 equal | +3.1 ± 1.3 above |",
        "| paper: USER | 89.9 ± 0.1 | 88.3 ± 0.4 |",  # of AP
    ):
        assert line in lines, line


def test_page_of_ablation_pairs_with_full_and_prints_the_paper():
    cells = [
        _cell(seed, table="ablation", method=method, rate=rate)
        for method in ("full", "without NPSI")
        for rate in (10, 50)
        for seed in range(2)
    ]
    rows = _rows(
        method=["full", "full", "without NPSI", "without NPSI"],
        rate=[10] * 4,
        seed=[0, 1, 1, 0],
        nmi=[50.0, 60.0, 40.2, 30.0],
    )
    lines = tables.report("ablation", rows, cells).splitlines()
    assert "| NMI | Cora | paper |" in lines
    assert "| full | 55.0 ± 7.1 | 54.4 |" in lines
    # By seed: -20 and -19.8; the rows come in another order.
    assert "| without NPSI | 35.1 ± 7.2 (-19.9 ± 1.3 below) | 14.8 |" in lines


@pytest.mark.parametrize("table", plan.TABLES)
def test_every_page_of_nothing_and_of_something(table):
    cells = plan.select(plan.TABLES[table](), method=None, seed=[0])
    assert "Cells finished: 0" in tables.report(table, pd.DataFrame(columns=COLUMNS), cells)
    keys = {name: [cell.key[i] for cell in cells] for i, name in enumerate(KEY)}
    page = tables.report(table, _rows(**keys), cells)
    assert f"finished: {len(cells)}, missing: 0" in page
    assert "nan" not in page.lower()


def test_paper_is_whole():
    for table, rates in (("random-noise", plan.FLIP_RATES), ("meta-attack", (5, 10, 15, 20))):
        for dataset in ("cora", "citeseer", "wiki"):
            figures_of_set = paper.printed(table, dataset)
            assert set(figures_of_set["method"]) == set(paper.METHODS)
            assert len(figures_of_set) == 11 * len(rates)
    for table in ("link-auc", "link-ap"):
        for dataset in ("citeseer", "wiki"):
            figures_of_set = paper.printed(table, dataset)
            assert len(figures_of_set) == 5 * len(plan.FLIP_RATES)
            assert figures_of_set["mean"].between(60, 97).all()
    assert paper.printed("unseen", "acm").empty


# ---------------------------------------------------------------------------------------------
# Figures


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    rows = _rows(method=["alpha=0.1", "alpha=0.2", "beta=1"], seed=[0, 0, 0])
    (file,) = figures.draw_parameters(rows, tmp_path)
    assert file.read_bytes().startswith(b"\x89PNG")


# ---------------------------------------------------------------------------------------------
# The page of all tables


def test_page_of_results_has_the_marks_of_all_short_tables():
    assert reproduce.README.resolve() == (ROOT / "tools" / "results" / "README.md").resolve()
    text = reproduce.README.read_text()
    for name in readme._SHORT:
        assert text.count(f"<!-- {name} -->\n") == text.count(f"<!-- /{name} -->\n") == 1


def test_readme_holds_short_tables_between_its_marks(tmp_path, trained):
    cells = [_cell(seed) for seed in range(2)]
    run_cells(cells, tmp_path)
    full, parts = (plan.parts()[i] for i in (0, len(plan.PARTS_SEEDS)))
    (dgi,) = plan.select(plan.baselines(), dataset=["cora"], method=["DGI"], rate=[50], seed=[0])
    (sage,) = plan.select(
        plan.supported(), dataset=["citeseer"], method=["sage"], rate=[0], seed=[0]
    )
    for cell in (plan.large()[0], full, parts, dgi, sage):
        run_cells([cell], tmp_path)
    gae, *_ = plan.link()
    scored = _result(links={"test": {"dot": {"auc": 91.0, "ap": 92.0}}})
    row = cells_module.result_row(gae, scored, survey([gae], tmp_path).digests[gae.key])
    cells_module.add_rows(tmp_path, [row])
    tables = dict.fromkeys(("random-noise", "meta-attack", "unseen"), lambda: cells)
    tables |= {"large": plan.large, "parts": plan.parts, "link": plan.link}
    tables |= {"baselines": plan.baselines, "supported": plan.supported}
    tables |= {"meta-attack-own": plan.meta_attack_own}
    file = tmp_path / "README.md"
    marks = "".join(f"a\n<!-- {name} -->\nold\n<!-- /{name} -->\n" for name in tables)
    file.write_text(marks + "end\n")
    readme.fill(file, tmp_path, tables)
    text = file.read_text()
    assert "old" not in text
    assert text.count("a\n<!-- ") == len(tables)
    assert text.endswith("end\n")
    assert "| 50.0 ± 0.0 |" in text
    assert "| `large/dblp.yaml` | 17,716 | 52,867 | 50.0 [1] | 50.0 [1] | 50.0 [1] | 2 |" in text
    assert "| **Citeseer**, the paper's USER | 95.4 / 95.8 | 95.6 / 96.0 |" in text
    assert "| `model.encoder=sage` |  |  | 50.0 |  |" in text
    assert "| `dgi` |  | 50.0 [1] (43.2) |" in text
    assert "| `configs/link/gae.yaml` | 91.0 [1] / 92.0 [1] |  |" in text
    assert "| `large/pubmed_gcn.yaml` | 50.0 [1] | 50.0 [1] | +0.0 [1] |" in text
    readme.fill(file, tmp_path, tables)
    assert file.read_text() == text
    file.write_text("no marks")
    with pytest.raises(ValueError, match="lacks the marks"):
        readme.fill(file, tmp_path, tables)
