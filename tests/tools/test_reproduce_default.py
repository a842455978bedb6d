"""tools/reproduce.py default: the plan, rivals, floors, the page and the summary."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import reproduce
import scipy.sparse as sp
from cells_of_tables import TINY, cell_of, rows_of
from reproduction import default_page, inputs, plan, pyagc_models, rivals, runs, tables
from reproduction.cells import read_rows, run_cells, survey
from reproduction.children import Children
from reproduction.digests import cell_digests

from user_dgl.config import load_config

CLIQUE = 8


def two_cliques(alone=0) -> sp.csr_matrix:
    """Two cliques that one edge joins, and nodes without edges."""
    block = np.ones((CLIQUE, CLIQUE)) - np.eye(CLIQUE)
    dense = np.zeros((2 * CLIQUE + alone,) * 2, dtype=np.float32)
    dense[:CLIQUE, :CLIQUE] = dense[CLIQUE : 2 * CLIQUE, CLIQUE : 2 * CLIQUE] = block
    dense[0, CLIQUE] = dense[CLIQUE, 0] = 1
    return sp.csr_matrix(dense)


def cluster(method, graph, num_clusters=2, seed=0):
    if message := rivals.lacks(method):
        pytest.skip(message)
    return rivals.RIVALS[method].cluster(graph, num_clusters, seed)


@pytest.mark.parametrize("method", rivals.RIVALS)
@pytest.mark.parametrize("alone", [0, 3])
def test_rivals_find_two_cliques(method, alone):
    graph = two_cliques(alone)
    labels = cluster(method, graph)
    assert labels.dtype == np.int64
    assert labels.shape == (2 * CLIQUE + alone,)
    first, second = labels[:CLIQUE], labels[CLIQUE : 2 * CLIQUE]
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] != second[0]
    np.testing.assert_array_equal(labels, cluster(method, graph))


def test_leiden_gives_the_number_that_is_asked_for():
    # Four cliques: the first two and the last two are joined by four edges, the pairs by one.
    blocks = sp.block_diag([np.ones((5, 5)) - np.eye(5)] * 4).tolil()
    for u, v in [*((i, 5 + i) for i in range(4)), *((10 + i, 15 + i) for i in range(4)), (9, 14)]:
        blocks[u, v] = blocks[v, u] = 1
    graph = blocks.tocsr().astype(np.float32)
    labels = [cluster("leiden", graph, k)[::5] for k in (2, 4)]
    assert labels[0][0] == labels[0][1] != labels[0][2] == labels[0][3]
    assert len(set(labels[1])) == 4


def test_regularised_spectral_clustering_ignores_small_components():
    # Three pairs beside the cliques would take the leading eigenvectors without the added degree.
    pair = np.array([[0, 1], [1, 0]])
    labels = cluster(
        "spectral-regularised", sp.block_diag([two_cliques(), *[pair] * 3], format="csr")
    )
    assert len(set(labels[:CLIQUE])) == len(set(labels[CLIQUE : 2 * CLIQUE])) == 1
    assert labels[0] != labels[CLIQUE]


def test_plan_of_default():
    cells = plan.default()
    graphs = {(cell.dataset, cell.rate) for cell in cells}
    assert {(name, rate) for name in plan.DEFAULT for rate in (0, 50)} < graphs
    assert ("cora_ml_attacked", 25) in graphs
    assert ("lfr_10000_0.3", 0) in graphs
    assert ("email_eu_core", 50) not in graphs
    assert len([name for name, _ in graphs if name.startswith("lfr_")]) == 16
    assert {c.seed for c in plan.select(cells, dataset=["lfr_50000_0.1"])} == set(range(5))
    assert {c.seed for c in plan.select(cells, dataset=["lfr_1000_0.1"])} == set(range(10))
    featureless = plan.select(cells, dataset=["polblogs", "polblogs_attacked", "lastfm_asia"])
    assert "floors" not in {cell.method for cell in featureless}
    assert {c.method for c in plan.select(cells, dataset=["acm"])} == {
        "default", "floors", *rivals.RIVALS, *pyagc_models.MODELS,
    }  # fmt: skip
    for cell in cells:
        assert "eval.floors=false" in cell.settings


def test_digests_of_rivals_do_not_depend_on_the_settings_of_the_default():
    def digest(by, *settings):
        cell = cell_of(method="louvain", by=by)
        return cell_digests(cell, load_config(cell.config, [*TINY, *settings]))[0]

    assert digest("rival", "train.lr=0.5") == digest("rival")
    assert digest("floors", "train.lr=0.5") == digest("floors")
    assert digest("user-dgl", "train.lr=0.5") != digest("user-dgl")
    assert digest("floors", "features.weighting=tf_idf") != digest("floors")
    for by in ("rival", "floors"):
        assert digest(by, "model.num_clusters=9") != digest(by)
        assert digest(by, "data.noise.rate=0.3") != digest(by)


def test_communities_become_rows_of_labels(tmp_path):
    file, out = tmp_path / "c.json.gz", tmp_path / "labels.csv"
    with gzip.open(file, "wt") as stream:
        json.dump({"communities": [[2, 0], [1]]}, stream)
    inputs.write_labels(file, out)
    assert out.read_text() == "node,label\n2,0\n0,0\n1,1\n"


def test_a_cell_of_communities_reads_rows_and_keeps_its_digest(tmp_path):
    (tmp_path / "lfr").mkdir()
    with gzip.open(tmp_path / "lfr" / "c.json.gz", "wt") as stream:
        json.dump({"communities": [[0], [1]]}, stream)
    data = {"kind": "edge_list", "edges": "lfr/c.csv.gz", "labels": "lfr/c.json.gz"}
    overrides = (f"data={json.dumps(data | {'root': str(tmp_path)})}", "model.num_clusters=2")
    cell = cell_of(config=plan.CONFIGS / "default.yaml", overrides=overrides)
    settings = runs.with_readable_labels(cell, Children({}, tmp_path))
    labels = load_config(cell.config, settings).data.labels
    assert labels == str(tmp_path / "c.json.gz.csv")
    assert (tmp_path / "c.json.gz.csv").read_text().endswith("0,0\n1,1\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Rows of a training, its floors and a rival, through the real processes."""
    folder = tmp_path_factory.mktemp("default")
    cells = [
        cell_of(table="default", method=method, by=by, with_floors=False)
        for method, by in (("default", "user-dgl"), ("floors", "floors"), ("spectral", "rival"))
    ]
    return cells, run_cells(cells, folder), read_rows(folder, "default").set_index("method")


def test_rows_of_training_floors_and_rival(finished):
    _, outcome, rows = finished
    assert (outcome.failed, outcome.left_out, outcome.done) == ({}, {}, 3)
    for method in ("default", "spectral"):
        assert -100 <= rows.loc[method, "nmi"] <= 100
        assert rows.loc[method, "num_clusters_found"] >= 1
        assert np.isnan(rows.loc[method, "smooth_kmeans_nmi"])
    assert np.isnan(rows.loc["floors", "nmi"])
    for floor in default_page.FLOORS:
        assert -100 <= rows.loc["floors", f"{floor}_ari"] <= 100, floor
    assert (rows["wall_seconds"] > 0).all()
    assert (rows["peak_memory_mb"] > 10).all()
    # A rival's process does not load torch.
    assert rows.loc["spectral", "peak_memory_mb"] < rows.loc["default", "peak_memory_mb"]


def test_floors_alone_are_those_of_a_training(finished, tmp_path):
    _, _, rows = finished
    run_cells([cell_of()], tmp_path)
    beside = read_rows(tmp_path, "random-noise").iloc[0]
    for floor in ("features_kmeans", "smooth_kmeans"):
        assert rows.loc["floors", f"{floor}_nmi"] == beside[f"{floor}_nmi"]
    assert rows.loc["default", "nmi"] == beside["nmi"]


def test_a_missing_package_leaves_cells_out(monkeypatch, tmp_path, trained, capsys):
    find = rivals.importlib.util.find_spec
    monkeypatch.setattr(
        rivals.importlib.util, "find_spec", lambda n: None if n == "igraph" else find(n)
    )
    cells = [
        cell_of(seed, table="default", method=method, by=by)
        for seed in range(2)
        for method, by in (("default", "user-dgl"), ("leiden", "rival"), ("spectral", "rival"))
    ]
    monkeypatch.setattr(plan, "TABLES", {"default": lambda: cells})
    assert reproduce.main(["default", "--results", str(tmp_path), "--jobs", "1"]) == 0
    assert {cell.method for cell in trained} == {"default", "spectral"}
    error = capsys.readouterr().err
    assert "left out: default cora leiden 50 % seed 0 and 1 more" in error
    assert "pip install 'user_dgl[rivals]'" in error
    assert survey(cells, tmp_path).missing == [c for c in cells if c.method == "leiden"]


def test_the_noisy_graph_is_made_once_for_all_rivals(monkeypatch, tmp_path):
    made = []

    def script(self, file, arguments, interpreter=None):
        if file.name == "inputs.py":
            made.append(arguments[1])
            labels = np.repeat([0, 1], CLIQUE)
            graph = two_cliques()
            np.savez(arguments[1], indices=graph.indices, indptr=graph.indptr, labels=labels)
        else:
            rivals.main(arguments)
        return 1.0

    monkeypatch.setattr(Children, "script", script)
    children = Children({}, tmp_path)
    for seed, kind in ((0, "none"), (1, "none"), (0, "random_flip"), (1, "random_flip")):
        cell = cell_of(
            seed, method="spectral", by="rival", kind=kind, rate=50 * (kind != "none"),
            overrides=(*TINY, "model.num_clusters=2"),
        )  # fmt: skip
        for _ in range(2):
            result = runs.rival(cell, cell.settings, children)
            assert result["metrics"]["nmi"] == 100
    assert len(made) == 3


def _made_rows():
    """Two seeds of four methods on ACM."""
    methods = ["default", "floors", "leiden", "spectral"]
    nmi = {"default": (70.0, 71.0), "floors": (None, None), "leiden": (60.0, 60.8),
           "spectral": (65.0, 61.0)}  # fmt: skip
    rows = rows_of(
        table=["default"] * 8,
        dataset=["acm"] * 8,
        method=methods * 2,
        rate=[50] * 8,
        seed=[0] * 4 + [1] * 4,
        nmi=[nmi[m][seed] for seed in (0, 1) for m in methods],
        wall_seconds=[5.0] * 8,
    )
    floors = rows["method"] == "floors"
    for floor, values in (
        ("features_kmeans", (38.0, 38.2)), ("smooth_kmeans", (45.0, 45.4)),
        ("prepared_features_kmeans", (69.0, 70.2)), ("prepared_smooth_kmeans", (50.0, 50.0)),
    ):  # fmt: skip
        rows[f"{floor}_nmi"] = np.nan
        rows.loc[floors, f"{floor}_nmi"] = values
    rows.loc[floors, ["num_clusters_found", "ari"]] = np.nan
    return rows


def test_page_of_default():
    cells = plan.select(plan.default(), dataset=["acm"], rate=[50], seed=[0, 1])
    page = tables.report("default", _made_rows(), cells).splitlines()
    for line in (
        "## ACM, 50 %",
        "| default | 70.5 ± 0.7* [2] | 40.0 ± 0.0* [2] | 45.0 ± 0.0* [2] | 5 | 5.0 | 300 |",
        "| Leiden, resolution for K | 60.4 ± 0.6* [2] | 40.0 ± 0.0* [2] | 45.0 ± 0.0* [2] "
        "| 5 | 5.0 | 300 |",
        "Best floor by NMI: features_kmeans, prepared features.",
    ):
        assert line in page, line
    (line,) = (x for x in page if x.startswith("| features_kmeans, prepared features |"))
    assert line.startswith("| features_kmeans, prepared features | 69.6 ± 0.8* [2] |")
    # Differences 1 and 0.8: mean 0.9, half width 12.7062 * 0.2 / 2.
    (line,) = (x for x in page if x.startswith("| default − features_kmeans, prepared features |"))
    assert line.startswith(
        "| default − features_kmeans, prepared features | +0.9 ± 1.3 equal* [2] |"
    )
    # Differences 10 and 10.2.
    assert any(
        x.startswith("| default − Leiden, resolution for K | +10.1 ± 1.3 above* [2] |")
        for x in page
    )


def test_page_of_default_says_what_each_step_adds():
    cells = plan.select(plan.default(), dataset=["acm"], rate=[50], seed=[0, 1])
    rows = _made_rows()
    ours = rows["method"] == "default"
    for name, values in (("kmeans", (69.0, 69.0)), ("code", (70.0, 71.0)), ("head", (60.0, 61.0))):
        rows[f"nmi_{name}"] = np.nan
        rows.loc[ours, f"nmi_{name}"] = values
    page = tables.report("default", rows, cells).splitlines()
    assert (
        "| ACM, 50 % | 69.0 ± 0.0* [2] | +1.5 ± 6.4 equal* [2] | -10.0 ± 0.0 below* [2] |" in page
    )
    # The best floor is 0.9 ± 1.3 behind; two seeds do not count, six of slow runs do.
    verdict = "Default beside its best floor, by NMI, 50 % flips: 0 graphs above, 1 graphs equal, "
    assert not any(line.startswith(verdict) for line in page)
    many = pd.concat([rows.assign(seed=rows["seed"] + 2 * i, wall_seconds=130.0) for i in range(3)])
    page = tables.report("default", many, cells).splitlines()
    verdict = "Default beside its best floor, by NMI, 50 % flips: 1 graphs above, 0 graphs equal, "
    assert any(line.startswith(verdict) for line in page)


def test_page_of_default_counts_what_was_chosen():
    cells = plan.select(plan.default(), dataset=["acm"], rate=[0, 50], seed=[0, 1])
    rows = _made_rows()
    ours = rows["method"] == "default"
    rows.loc[ours, "view"] = ["4 hops, own share 0.2", "16 hops, own share 0.05"]
    rows.loc[ours, "critic_power"] = [1.0, 1.0]
    rows.loc[ours, "labels_from"] = ["code", "code"]
    older = _made_rows().assign(rate=0)
    page = tables.report("default", pd.concat([rows, older]), cells).splitlines()
    views = "16 hops, own share 0.05: 1; 4 hops, own share 0.2: 1"
    assert f"| ACM, 50 % | 2 | {views} | 1: 2 | code: 2 | 5: 2 |" in page
    assert "| ACM | 2 |  |  |  | 5: 2 |" in page


def test_summary_of_default_names_the_best_floor_and_rival():
    cells = plan.select(plan.default(), dataset=["acm", "polblogs"], rate=[0, 50], seed=[0, 1])
    polblogs = rows_of(dataset=["polblogs"], method=["default"], rate=[0], seed=[0], nmi=[70.0])
    rows = pd.concat([_made_rows(), polblogs], ignore_index=True)
    lines = default_page.short(rows, cells)
    assert len(lines) == 5  # head, rule, two graphs with rows, an empty line
    assert lines[2] == (
        "| ACM, 50 % | 70.5 ± 0.7* [2] | 40.0 ± 0.0* [2] "
        "| features_kmeans, prepared features: 69.6 ± 0.8* [2] | +0.9 ± 1.3 equal* [2] "
        "| spectral + k-means: 63.0 ± 2.8* [2] | +7.5 ± 31.8 equal* [2] |"
    )
    assert lines[3] == "| Polblogs | 70.0* [1] | 40.0* [1] |  |  |  |  |"


def test_the_process_of_a_rival_loads_no_torch():
    code = "import sys; sys.argv=['x']; import reproduction.rivals; print('torch' in sys.modules)"
    folder = str(plan.CONFIGS.parent / "tools")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
