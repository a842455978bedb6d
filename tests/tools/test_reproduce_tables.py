"""tools/reproduce.py: the plan, its tables, figures and the README."""

import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
import reproduce
from cells_of_tables import cell_of, result_of, rows_of
from reproduction import cells as cells_module
from reproduction import figures, paper, plan, readme, tables
from reproduction.cells import COLUMNS, KEY, current_rows, run_cells, survey
from reproduction.digests import cell_digests
from reproduction.summary import enough_seeds, interval, mean_std, paired, with_foot

from user_dgl.baselines import resolve_baseline
from user_dgl.config import load_config


def test_plan_has_every_cell_once():
    for name, cells in ((name, make()) for name, make in plan.TABLES.items()):
        assert len({cell.key for cell in cells}) == len(cells)
        assert {cell.table for cell in cells} == {name}
    chosen = plan.select(plan.random_noise(), dataset=["wiki"], rate=[0, 50], method=None)
    assert {cell.method for cell in chosen} == {"user", "default"}
    assert len(chosen) == 2 * 2 * 10
    tuned = {c.dataset for make in (plan.random_noise, plan.meta_attack) for c in make()
             if c.method == "USER-DGL"}  # fmt: skip
    assert tuned == {"citeseer"}
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
    cells = plan.select(plan.thin(plan.baselines()))
    assert len(cells) == 2 * 2 * 2 * 11
    assert {(cell.dataset, cell.rate, cell.seed) for cell in cells} == {
        (dataset, rate, seed) for dataset in ("cora", "citeseer") for rate in (0, 50)
        for seed in (0, 1)
    }  # fmt: skip
    assert {cell.rate for cell in plan.thin(plan.meta_attack())} == {5, 25}
    assert len(plan.select(plan.thin(plan.meta_attack_own()))) == len(cells)
    assert {cell.dataset for cell in plan.thin(plan.link())} == {"citeseer", "wiki"}


def test_settings_of_user_leave_the_cells_of_a_baseline_as_they_are():
    def digest(*overrides):
        config = load_config(None, ["model.kind=gae", *overrides])
        return cell_digests(cell_of(method="GAE"), config)[0]

    assert digest("train.lr=0.5", "baseline.lr=0.01") == digest()
    assert digest("baseline.lr=0.02") != digest()


def test_interval_by_hand():
    # Mean 3, standard deviation sqrt(10 / 4), t(0.975, 4) = 2.776445.
    mean, half = interval([1, 2, 3, 4, 5])
    assert mean == 3
    assert half == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-6)
    assert np.isnan(interval([1])[1])


def test_paired_verdicts():
    # Half width for two values: 12.7062 * |a - b| / 2.
    assert paired([1.0, 1.2], 2, 2) == "+1.1 ± 1.3 equal"
    assert paired([-3.0, -3.2], 2, 2) == "-3.1 ± 1.3 below"
    assert paired([1.0, 3.0], 3, 2) == "+2.0 ± 12.7 equal [2]"
    assert paired([0.0, 0.0], 2, 2) == "+0.0 ± 0.0 equal"
    assert paired([np.nan], 2, 2) == ""


def test_mean_std_counts_what_is_missing():
    assert mean_std([50.0, 54.0, np.nan], 10, 2) == "52.0 ± 2.8 [2]"
    assert mean_std([np.nan], 10, 10) == ""


def test_too_few_seeds_have_a_star_and_are_counted():
    assert mean_std([50.0, 54.0], 2, 10) == "52.0 ± 2.8* [2]"
    assert mean_std([50.0, 54.0], 2, 10, spread=False) == "52.0* [2]"
    assert paired([1.0, 1.2], 2, 10) == "+1.1 ± 1.3 equal* [2]"
    assert "*" not in mean_std(range(10), 10, 10)
    assert mean_std(range(9), 20, 10).endswith("* [9]")


@pytest.mark.parametrize(("seconds", "enough"), [((50, 119), 10), ((50, 121), 5)])
def test_slow_runs_need_five_seeds(seconds, enough):
    fast, slow = seconds
    # Of each method, the fastest run counts.
    columns = {"method": ["a"] * 3 + ["b"] * 3, "seconds": [fast, 150, 150, slow, 200, 900]}
    assert enough_seeds(rows_of(**columns, wall_seconds=[np.nan] * 6)) == enough
    # The time of the whole process counts where it is known.
    assert enough_seeds(rows_of(**columns, wall_seconds=[1.0] * 6)) == 10


def test_a_page_explains_its_stars_once():
    lines = ["text *", "", "| **a** | 1.0 |", ""]
    assert with_foot(lines) == lines
    starred = with_foot([*lines, "| b | 1.0* [1] |", ""])
    assert sum("fewer than ten" in line for line in starred) == 1


def test_page_of_noise():
    cells = [cell_of(seed, rate=rate) for rate in (0, 50) for seed in range(2)]
    # At 50 % only seed 1 is finished; the floor of seed 1 belongs to it alone.
    rows = rows_of(
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
        "| smooth_kmeans | 56.1 ± 1.6* [2] | 45.0* [1] |",
        "| default | 61.0 ± 1.4* [2] | 50.0* [1] |",
        # Differences 5 and 4.8: mean 4.9, half width 12.7062 * 0.2 / 2.
        "| default − smooth_kmeans | +4.9 ± 1.3 above* [2] | +5.0* [1] |",
        "| default: estimated share | 4.0 ± 1.4* [2] | 36.0* [1] |",
        "| true share | 0.0 ± 0.0* [2] | 33.3* [1] |",
        "| default: AP | 70.0 ± 0.0* [2] | 70.0* [1] |",
        "| DGI | 57.3 ± 1.0 | 43.2 ± 0.7 |",
    ):
        assert line in page.splitlines(), line


def test_floors_that_depend_on_the_method_get_a_row_each():
    cells = [cell_of(method=method) for method in ("USER-DGL", "default")]
    rows = rows_of(
        method=["default", "USER-DGL"], seed=[0, 0], rate=[50, 50],
        smooth_kmeans_nmi=[40.0, 45.0], features_kmeans_nmi=[30.0, 30.0],
    )  # fmt: skip
    lines = tables.report("random-noise", rows, cells).splitlines()
    assert "| features_kmeans | 30.0* [1] |" in lines
    at = [lines.index(f"| smooth_kmeans ({m}) | {v}* [1] |") for m, v in
          (("USER-DGL", "45.0"), ("default", "40.0"))]  # fmt: skip
    assert at[0] < at[1]  # in the order of the plan


def test_page_of_baselines():
    cells = plan.select(plan.baselines(), dataset=["cora"], rate=[0, 50], seed=[0, 1])
    rows = rows_of(
        table=["baselines"] * 5,
        method=["DGI", "default", "DGI", "default", "GAE"],
        rate=[0] * 4 + [50],
        seed=[0, 0, 1, 1, 0],
        nmi=[50.0, 60.0, 51.0, 63.0, 30.0],
    )
    page = tables.report("baselines", rows, cells).splitlines()
    for line in (
        "| default (`configs/default.yaml`) | 61.5 ± 2.1* [2] |  |",
        "| ARGA | (44.1) | (23.7) |",
        "| GAE | (44.3) | 30.0* [1] (25.0) |",
        "| DGI | 50.5 ± 0.7* [2] (57.3) | (43.2) |",
        "| paper: USER | (56.2) | (49.3) |",
        # Differences 10 and 12: mean 11, half width 12.7062 * 2 / 2.
        "| default − DGI | +11.0 ± 12.7 equal* [2] |  |",
    ):
        assert line in page, line
    at = [page.index(next(row for row in page if row.startswith(f"| {m} "))) for m in
          ("default", "GAE", "DGI", "paper: USER")]  # fmt: skip
    assert at == sorted(at)


def test_page_of_baselines_has_all_data_sets():
    cells = plan.select(plan.baselines(), rate=[0, 50], seed=[0, 1])
    rows = rows_of(table=["baselines"], method=["GAE"], rate=[0], seed=[0], nmi=[50.0])
    page = tables.report("baselines", rows, cells).splitlines()
    assert page.count("| default (`configs/default.yaml`) |  |  |") == 3
    figures_of_gae = paper.printed("random-noise", "wiki").set_index(["method", "rate"])["mean"]
    assert f"| GAE | ({figures_of_gae['GAE', 0]:.1f}) | ({figures_of_gae['GAE', 50]:.1f}) |" in page


@pytest.mark.parametrize(("prepared", "shown"), [((51.9, 38.0), False), ((51.9, 37.9), True)])
def test_a_baseline_on_prepared_features_has_a_row_where_it_differs(prepared, shown):
    cells = plan.select(plan.baselines(), dataset=["cora"], rate=[0, 50], seed=[0])
    name = "GAE" + plan.PREPARED
    rows = rows_of(
        table=["baselines"] * 4,
        method=["GAE", name, "GAE", name],
        rate=[0, 0, 50, 50],
        seed=[0] * 4,
        nmi=[50.0, prepared[0], 40.0, prepared[1]],
    )
    page = tables.report("baselines", rows, [*cells, cell_of(method=name)]).splitlines()
    line = f"| {name} | {prepared[0]:.1f}* [1] | {prepared[1]:.1f}* [1] |"
    assert (line in page) == shown
    short = readme._rivals("random-noise")(rows, [*cells, cell_of(method=name)])
    assert any(row.startswith("| `gae` on prepared features | ") for row in short) == shown


def test_prepared_features_are_asked_for_by_name():
    name = "GAE" + plan.PREPARED
    chosen = plan.select(plan.baselines(), dataset=["wiki"], rate=[0], seed=[0])
    assert not [cell for cell in chosen if cell.method.endswith(plan.PREPARED)]
    (cell,) = plan.select(plan.baselines(), dataset=["wiki"], rate=[0], seed=[0], method=[name])
    config, warnings = resolve_baseline(load_config(cell.config, cell.settings))
    assert config.baseline.features == "prepared"
    assert config.features == load_config(cell.config).features
    assert not [line for line in warnings if "row_norm" in line]
    assert "DeepWalk" + plan.PREPARED not in {c.method for c in plan.baselines()}


def test_page_of_supported_models():
    cells = plan.select(plan.supported(), dataset=["cora"])
    rows = rows_of(
        table=["supported"] * 5,
        method=["dgi", "dgi with USER", "dgi", "dgi with USER", "sage with USER"],
        rate=[50] * 5,
        seed=[0, 0, 1, 1, 0],
        nmi=[40.0, 50.0, 41.0, 53.0, 30.0],
    )
    page = tables.report("supported", rows, cells).splitlines()
    for line in (
        "| NMI | Cora, 50 % |",
        "| dgi | 40.5 ± 0.7* [2] |",
        "| dgi with USER | 51.5 ± 2.1* [2] |",
        "| dgi with USER | +11.0 ± 12.7 equal* [2] |",
        "| sage with USER | 30.0* [1] |",
        "| sage with USER |  |",  # nothing to compare with
    ):
        assert line in page, line


def test_page_of_links():
    cells = plan.select(plan.link(), dataset=["wiki"], rate=[0, 50], seed=[0, 1])
    rows = rows_of(
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
        "| cosine of smoothed features | 96.1 ± 0.1* [2] | 95.0 ± 0.1* [2] |",
        "| cosine of smoothed prepared features | 97.1 ± 0.1* [2] | 94.0 ± 0.0* [2] |",
        "| GAE | 92.0* [1] | 90.0* [1] |",
        "| USER-DGL, dot product | 89.0 ± 0.0* [2] | 88.0 ± 0.0* [2] |",
        "| USER-DGL | 98.2 ± 0.3* [2] | 97.1 ± 0.1* [2] |",
        # Differences 1 and 1.2: mean 1.1, half width 12.7062 * 0.2 / 2.
        "| USER-DGL − cosine of smoothed prepared features | +1.1 ± 1.3 equal* [2] "
        "| +3.1 ± 1.3 above* [2] |",
        "| USER-DGL − GAE | +6.0* [1] | +7.0* [1] |",
        "| paper: USER | 89.9 ± 0.1 | 88.3 ± 0.4 |",  # of AP
    ):
        assert line in lines, line


def test_page_of_ablation_pairs_with_full_and_prints_the_paper():
    cells = [
        cell_of(seed, table="ablation", method=method, rate=rate)
        for method in ("full", "paper model", "paper model without NPSI")
        for rate in (10, 50)
        for seed in range(2)
    ]
    rows = rows_of(
        method=["full", "full", "paper model", *["paper model without NPSI"] * 2],
        rate=[10] * 5,
        seed=[0, 1, 0, 1, 0],
        nmi=[50.0, 60.0, 52.0, 40.2, 30.0],
    )
    lines = tables.report("ablation", rows, cells).splitlines()
    assert "| NMI | Cora | paper |" in lines
    assert "| full | 55.0 ± 7.1* [2] |  |" in lines
    assert "| paper model | 52.0* [1] (+2.0* [1]) | 54.4 |" in lines
    # By seed: -20 and -19.8; the rows come in another order.
    assert "| paper model without NPSI | 35.1 ± 7.2* [2] (-19.9 ± 1.3 below* [2]) | 14.8 |" in lines


@pytest.mark.parametrize("table", plan.TABLES)
def test_every_page_of_nothing_and_of_something(table):
    cells = plan.select(plan.TABLES[table](), method=None, seed=[0])
    assert "Cells finished: 0" in tables.report(table, pd.DataFrame(columns=COLUMNS), cells)
    keys = {name: [cell.key[i] for cell in cells] for i, name in enumerate(KEY)}
    page = tables.report(table, rows_of(**keys), cells)
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
    assert paper.printed("default", "acm").empty


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    rows = rows_of(method=["alpha=0.1", "alpha=0.2", "beta=1"], seed=[0, 0, 0])
    (file,) = figures.draw_parameters(rows, tmp_path)
    assert file.read_bytes().startswith(b"\x89PNG")


def _with_two_seeds(make):
    return [cell for cell in make() if cell.seed < 2]


def test_page_of_results_has_the_marks_of_all_short_tables():
    text = (reproduce.RESULTS / "README.md").read_text()
    for name in readme._SHORT:
        assert text.count(f"<!-- {name} -->\n") == text.count(f"<!-- /{name} -->\n") == 1


def test_readme_holds_short_tables_between_its_marks(tmp_path, trained):
    cells = [cell_of(seed) for seed in range(2)]
    run_cells(cells, tmp_path)
    full, parts = (plan.parts()[i] for i in (0, len(plan.PARTS_SEEDS)))
    (dgi,) = plan.select(plan.baselines(), dataset=["cora"], method=["DGI"], rate=[50], seed=[0])
    (sage,) = plan.select(
        plan.supported(), dataset=["citeseer"], method=["sage"], rate=[0], seed=[0]
    )
    for cell in (plan.large()[0], full, parts, dgi, sage):
        run_cells([cell], tmp_path)
    gae, *_ = plan.link()
    scored = result_of(links={"test": {"dot": {"auc": 91.0, "ap": 92.0}}})
    row = cells_module.result_row(gae, scored, *survey([gae], tmp_path).digests[gae.key])
    cells_module.add_rows(tmp_path, [row])
    tables = dict.fromkeys(("random-noise", "meta-attack"), lambda: cells)
    tables |= {
        "default": plan.default,
        "large": plan.large,
        "parts": plan.parts,
        "supported": plan.supported,
    }
    for name in ("baselines", "link", "meta-attack-own"):  # of ten seeds two: each is read again
        tables[name] = partial(_with_two_seeds, plan.TABLES[name])
    file = tmp_path / "README.md"
    marks = "".join(f"a\n<!-- {name} -->\nold\n<!-- /{name} -->\n" for name in tables)
    file.write_text(marks + "end\n")
    filled = {name: (current_rows(make(), tmp_path), make()) for name, make in tables.items()}
    readme.fill(file, filled)
    text = file.read_text()
    assert "old" not in text
    assert text.count("a\n<!-- ") == len(tables)
    assert text.endswith("end\n")
    assert "| `configs/default.yaml` | 50.0 ± 0.0* [2] |" in text
    assert "| **Cora**, `configs/default.yaml` | +0.0 ± 0.0 equal* [2] |" in text
    dblp = "| `large/dblp.yaml` | 17,716 | 52,867 | 50.0* [1] | 50.0* [1] | 50.0* [1] | +0.0* [1] |"
    assert dblp in text
    assert "| **Citeseer**, the paper's USER | 95.4 / 95.8 | 95.6 / 96.0 |" in text
    assert "| `model.encoder=sage` |  |  | 50.0* [1] |  |" in text
    assert "| `dgi` |  | 50.0* [1] (43.2) |" in text
    assert "| `configs/link/gae.yaml` | 91.0* [1] / 92.0* [1] |  |" in text
    assert "| `large/pubmed_gcn.yaml` | 50.0* [1] | 50.0* [1] | +0.0* [1] |" in text
    readme.fill(file, filled)
    assert file.read_text() == text
    file.write_text("no marks")
    with pytest.raises(ValueError, match="lacks the marks"):
        readme.fill(file, filled)


def test_pages_are_what_the_csv_files_give(tmp_path):
    """After a change of rows, plan or pages: ``python tools/reproduce.py pages``."""
    root = reproduce.RESULTS.parents[1]
    results = tmp_path / reproduce.RESULTS.relative_to(root)
    results.mkdir(parents=True)
    for file in [*reproduce.RESULTS.glob("*.csv"), reproduce.RESULTS / "README.md"]:
        shutil.copy(file, results)
    for table in plan.TABLES:  # the pages there are, without their text
        if (reproduce.RESULTS / f"{table}.md").exists():
            (results / f"{table}.md").touch()
    shutil.copy(root / "README.md", tmp_path)
    reproduce.main(["pages", "--results", str(results)])
    pages = [tmp_path / "README.md", *results.glob("*.md")]
    assert len(pages) > 10
    for page in pages:
        kept = root / page.relative_to(tmp_path)
        assert kept.read_text() == page.read_text(), f"{kept}: run tools/reproduce.py pages"


def test_table_of_the_front_page(tmp_path):
    cells = plan.select(plan.default(), seed=[0, 1])
    rows = rows_of(
        table=["default"] * 8,
        dataset=["cora"] * 4 + ["lastfm_asia"] * 4,
        method=["default"] * 2 + ["floors"] * 2 + ["default"] * 2 + ["leiden"] * 2,
        rate=[50] * 4 + [0] * 4,
        seed=[0, 1] * 4,
        nmi=[60.0, 62.0, np.nan, np.nan, 66.0, 67.0, 65.0, 65.0],
        smooth_kmeans_nmi=[np.nan, np.nan, 55.0, 57.2, *[np.nan] * 4],
        features_kmeans_nmi=[np.nan, np.nan, 10.0, 10.0, *[np.nan] * 4],
    )
    file = tmp_path / "README.md"
    file.write_text("no marks")
    readme.fill_front(file, {"default": (rows, cells)})
    assert file.read_text() == "no marks"
    file.write_text("a\n<!-- results -->\nold\n<!-- /results -->\nb\n")
    readme.fill_front(file, {"default": (rows, cells)})
    lines = file.read_text().splitlines()
    # Differences 5 and 4.8: mean 4.9, half width 12.7062 * 0.2 / 2.
    smoothed = "smooth_kmeans: 56.1 ± 1.6* [2] | 61.0 ± 1.4* [2] | +4.9 ± 1.3 above* [2] |"
    assert f"| Cora, 50 % | 49.3 | {smoothed}" in lines
    assert any(line.startswith("| LastFM Asia |  | Leiden, ") for line in lines)
    others = "best of the paper's methods | best floor or other tool"
    assert f"| NMI | {others} | `configs/default.yaml` | default − it |" in lines
    assert len([line for line in lines if line.startswith("|")]) == 4
    assert (lines[0], lines[-1]) == ("a", "b")
    assert "old" not in lines
