"""The page on a run: what it shows, that it stands alone, and that no text of the user's runs."""

import base64
import io
import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp
from quick_runs import FAST, QUICKSTART
from runs import ring, write_run

from user_dgl.cli import main
from user_dgl.config import SyntheticConfig
from user_dgl.data import block_model
from user_dgl.graph import Graph
from user_dgl.output.report import figures
from user_dgl.output.report.embedding_map import plane

pytest.importorskip("matplotlib")
HOSTILE = ['<script>alert("1")</script>', "a'b&amp;", '"><img src=x onerror=alert(2)>', "x, y"]
PICTURES = {"loss", "observed_graph", "learned_graph", "weights", "map", "cluster_sizes"}


class _Page(HTMLParser):
    """Elements with attributes, tables as rows of text, and all text of a page."""

    def __init__(self, html: str):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text = ""
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self._open.append(tag)
        if tag == "table":
            self._rows = []
        if tag == "tr":
            self._rows.append([])
        if tag in ("th", "td"):
            self._rows[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self._open and self._open[-1] == "caption":
            self.tables[data] = self._rows
        if self._open and self._open[-1] in ("th", "td"):
            self._rows[-1][-1] += data

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.elements if name == tag]


def _report(run_dir, capsys=None) -> _Page:
    assert main(["report", str(run_dir)]) == 0
    return _Page((run_dir / "report.html").read_text())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "run"
    assert main(["train", QUICKSTART, *FAST, f"output_dir={folder}"]) == 0
    return folder


@pytest.fixture(scope="module")
def page(trained):
    return _report(trained)


def test_page_stands_alone(trained, page):
    assert (trained / "report.html").read_text().startswith("<!DOCTYPE html>\n<html")
    assert not {"script", "link", "iframe", "object", "base", "form"} & {
        t for t, _ in page.elements
    }
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert "href" not in attributes
    assert "url(" not in (trained / "report.html").read_text()
    pictures = {file.stem: file.read_bytes() for file in (trained / "report").iterdir()}
    assert set(pictures) == PICTURES
    shown = [base64.b64decode(img["src"].removeprefix("data:image/png;base64,"))
             for img in page.all("img")]  # fmt: skip
    assert sorted(shown) == sorted(pictures.values())
    assert all(data.startswith(b"\x89PNG") for data in shown)


def test_page_is_accessible(page):
    assert page.all("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all(
        "meta"
    )
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert all(img["alt"] and img["width"] and img["height"] for img in page.all("img"))
    assert all("scope" in cell for cell in page.all("th"))
    scrolls = [div for div in page.all("div") if div.get("class", "").startswith("scroll")]
    assert len(scrolls) == len(page.all("table")) == len(page.tables)
    assert all(div["tabindex"] == "0" and div["aria-label"] for div in scrolls)


def test_numbers_are_those_of_the_run(trained, page):
    result = json.loads((trained / "result.json").read_text())
    scores = {row[0]: row[1:] for row in page.tables["Against the labels, percent"]}
    for name, metrics in (
        ("this run, labels by head", result["metrics"]),
        ("floor smooth_kmeans", result["floors"]["smooth_kmeans"]),
        ("floor features_kmeans", result["floors"]["features_kmeans"]),
    ):
        assert scores[name] == [f"{value:.2f}" for value in metrics.values()]
    clusters = page.tables["Clusters, the largest first"][1:]
    assert len(clusters) == result["num_clusters_found"]
    sizes = [int(row[1]) for row in clusters]
    assert sum(sizes) == result["num_nodes"] == 120
    assert sizes == sorted(sizes, reverse=True)
    noise = dict(page.tables["Noise"])
    assert noise["edges added"] == str(result["noise"]["edges_added"])
    assert dict(page.tables["Versions"])["torch"] == result["versions"]["torch"]
    loss = dict(page.tables["Loss in the end, without dropout"][1:])
    assert set(loss) == set(result["loss"])
    assert (trained / "config.yaml").read_text() in page.text
    assert (trained / "result.json").read_text().rstrip() in page.text


def test_same_run_same_report(trained, page):
    files = [trained / "report.html", *sorted((trained / "report").iterdir())]
    before = [file.read_bytes() for file in files]
    _report(trained)
    assert [file.read_bytes() for file in files] == before


def test_training_anew_takes_the_report_away(tmp_path):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0, 1] * 4)
    _report(run.path)
    (run.path / "report" / "mine.png").write_text("mine")
    assert main(["train", QUICKSTART, *FAST, "train.epochs=1", "eval.floors=false",
                 f"output_dir={run.path}", "overwrite=true"]) == 0  # fmt: skip
    assert not (run.path / "report.html").exists()
    assert [file.name for file in (run.path / "report").iterdir()] == ["mine.png"]


# -------------------------------------------------------------------------------------------------
# Text of the user's


def test_texts_of_the_user_stay_text(tmp_path):
    folder = tmp_path / "<script>run"
    note = "<script>edges.csv: <b>1</b> self-loops dropped"
    run = write_run(
        folder, ring(4), np.ones(4), [0, 0, 1, 1], ids=HOSTILE,
        notes=[note], warnings=["<img src=x onerror=alert(3)>"],
    )  # fmt: skip
    page = _report(run.path)
    assert not page.all("script")
    assert len(page.all("img")) == len(PICTURES)
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    typical = " · ".join(row[-1] for row in page.tables["Clusters, the largest first"][1:])
    assert sorted(typical.split(" · ")) == sorted(HOSTILE)
    assert note in page.text
    assert str(folder) in page.text
    policy = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policy[0].startswith("default-src 'none'")


def test_long_ids_are_cut(tmp_path):
    run = write_run(tmp_path / "run", ring(4), np.ones(4), [0, 0, 1, 1],
                    ids=["a" * 1000, "b", "c", "d"])  # fmt: skip
    assert "a" * 39 + "…" in _report(run.path).text
    assert "a" * 41 not in _report(run.path).text


# -------------------------------------------------------------------------------------------------
# Runs of every kind


def test_weights_by_kind_of_pair(tmp_path):
    """Observed, added and candidate pairs apart; of the other kinds no row."""
    weight = np.arange(1.0, 9.0)
    observed = np.arange(8) < 6
    added = np.array([False, True, False, True, False, False])
    run = write_run(tmp_path / "run", ring(8), weight, [0] * 4 + [1] * 4, observed=observed,
                    added=added)  # fmt: skip
    rows = {row[0]: row[1:3] for row in _report(run.path).tables["Weights in A'"][1:]}
    kept = weight[:6][~added]
    assert rows == {
        "observed edges": ["4", f"{kept.mean():.2f}"],
        "added by noise": ["2", "3.00"],
        "candidates": ["2", "7.50"],
    }
    run = write_run(tmp_path / "plain", ring(8), weight, [0] * 4 + [1] * 4)
    rows = _report(run.path).tables["Weights in A'"][1:]
    assert [row[0] for row in rows] == ["observed edges"]


def test_share_inside_each_cluster(tmp_path):
    """Path 0-1-2-3 in two halves: each half has one edge inside (2 of its volume 3) ..."""
    path, _ = Graph.from_edges(4, [0, 1, 2], [1, 2, 3])
    run = write_run(tmp_path / "run", path, [1.0, 0.5, 1.0], [0, 0, 1, 1])
    rows = _report(run.path).tables["Clusters, the largest first"]
    assert rows[0][3:5] == ["% inside, A", "% inside, A'"]
    # ... and with half a weight across, 2 of 2.5.
    assert [row[3:5] for row in rows[1:]] == [["66.67", "80.00"]] * 2


def test_no_labels_no_floors_no_terms(tmp_path):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4)
    page = _report(run.path)
    assert "No labels" in page.text
    assert "Against the labels, percent" not in page.tables
    assert "Noise" not in page.tables


def test_a_run_below_a_floor_says_so(tmp_path):
    metrics = {"nmi": 40.0, "acc": 1.0, "ari": 1.0, "f1": 1.0}
    floors = {"features_kmeans": metrics | {"nmi": 20.0}, "smooth_kmeans": metrics | {"nmi": 45.0}}
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4, metrics=metrics,
                    floors=floors)  # fmt: skip
    assert "NMI is 5.00 points below the best floor, smooth_kmeans" in _report(run.path).text
    floors["smooth_kmeans"]["nmi"] = 30.0
    run.write_result(run.read_result() | {"floors": floors})
    assert "NMI is 10.00 points above the best floor, smooth_kmeans" in _report(run.path).text
    prepared = {"features_kmeans": metrics | {"nmi": 41.0}, "smooth_kmeans": metrics}
    run.write_result(run.read_result() | {"floors_prepared": prepared})
    page = _report(run.path)
    assert "1.00 points below the best floor, features_kmeans, prepared features" in page.text
    assert (run.path / "result.json").read_text().rstrip() in page.text


def test_choice_of_the_number_of_clusters(tmp_path):
    curve = {"num_clusters_curve": {"2": 0.5, "3": 4.0, "4": 1.0}}
    run = write_run(tmp_path / "run", ring(6), np.ones(6), [0, 0, 1, 1, 2, 2], **curve)
    page = _report(run.path)
    assert run.picture_path("num_clusters").is_file()
    assert "Of 2 to 4 clusters 3 were taken" in page.text
    assert "next comes 4." in page.text
    axes = figures.draw_choice({2: 0.5, 3: 4.0, 4: 1.0}, "slope").axes[0]
    assert axes.lines[1].get_xydata().tolist() == [[3, 4.0]]


@pytest.mark.parametrize("features", [True, False])
def test_choice_of_the_clusters(tmp_path, features):
    """A report shows each candidate with its score, and which was chosen."""
    data = block_model(SyntheticConfig(num_nodes=120, num_blocks=3, average_degree=10.0))
    np.savetxt(tmp_path / "edges.csv", np.stack([data.graph.src, data.graph.dst], 1), "%d", ",")
    arguments = ["train", "--edges", str(tmp_path / "edges.csv"), "--clusters", "3"]
    if features:
        sp.save_npz(tmp_path / "features.npz", data.feat)
        arguments += ["--features", str(tmp_path / "features.npz")]
    run = tmp_path / "run"
    assert main([*arguments, "train.epochs=2", f"output_dir={run}"]) == 0
    view = json.loads((run / "result.json").read_text())["view"]
    page = _report(run)
    header, *rows = page.tables["Candidates"]
    assert len(rows) == len(view["candidates"])
    assert [row[0] for row in rows if "(chosen)" in row[0]] == [f"{view['name']} (chosen)"]
    assert header[1:3] == (
        ["edge bits", "feature bits"] if features else ["score", "standard error"]
    )
    assert view["name"] in page.text


def test_link_prediction(tmp_path):
    run = tmp_path / "run"
    settings = ["task=link_prediction", "train.epochs=2", "train.restarts=1", "eval.floors=true"]
    assert main(["train", QUICKSTART, *settings, f"output_dir={run}"]) == 0
    result = json.loads((run / "result.json").read_text())
    page = _report(run)
    rows = page.tables["Held-out edges against non-edges, percent"]
    assert [row[0] for row in rows[:5]] == [
        "", "learned score, test pairs", "dot score, test pairs",
        "learned score, validation pairs", "dot score, validation pairs",
    ]  # fmt: skip
    assert rows[1][1:] == [f"{result['metrics'][name]:.2f}" for name in ("auc", "ap")]
    assert rows[5][0].startswith("floor ")
    assert rows[5][1] == f"{next(iter(result['floors'].values()))['auc']:.2f}"
    clusters = page.tables["Against the labels, percent"]
    assert clusters[0] == ["", "NMI", "ACC", "ARI", "F1", "AMI"]
    assert clusters[1][1] == f"{result['cluster_metrics']['nmi']:.2f}"
    assert "NMI is" not in page.text
    assert "AUC is" in page.text


def test_training_in_parts_and_by_several_processes(tmp_path):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4, world_size=2)
    run.record({"epoch": 4, "loss": -4, "npsi": -4, "clusters_in_use": 2, "lr": 0.1,
                "seconds": 1.0, "exact_loss": -5.0, "megabytes_sent": 3.5})  # fmt: skip
    page = _report(run.path)
    (curves,) = [img["alt"] for img in page.all("img") if img["alt"].startswith("Curves")]
    assert curves == (
        "Curves over 4 epochs of loss, the sum of the terms; points: exact_loss, npsi, "
        "clusters_in_use; the loss goes from -1 to -4."
    )
    assert ["processes", "2"] in page.tables["Sizes and cost"]


@pytest.mark.parametrize(
    ("graph", "clusters"),
    [
        (ring(5), [0, 0, 0, 1, 1]),
        (ring(3), [0, 0, 0]),
        (Graph.from_edges(2, [0], [1])[0], [0, 1]),
        (Graph.from_edges(6, [], [])[0], [0, 1, 0, 1, 0, 1]),
        (ring(300), [i % 120 for i in range(300)]),
    ],
)
def test_odd_sizes(tmp_path, graph, clusters):
    run = write_run(tmp_path / "run", graph, np.ones(graph.num_edges), clusters)
    page = _report(run.path)
    rows = page.tables["Clusters, the largest first"][1:]
    assert len(rows) == len(set(clusters))
    assert ("A' has no edges." in page.text) == (not graph.num_edges)


def test_weights_of_zero(tmp_path):
    run = write_run(tmp_path / "run", ring(8), np.zeros(8), [0] * 4 + [1] * 4)
    rows = _report(run.path).tables["Clusters, the largest first"]
    assert [row[4] for row in rows] == ["% inside, A'", "–", "–"]


def test_large_graphs_take_no_square_of_their_nodes(tmp_path):
    """At 100,000 nodes N x N floats would be 80 GB; pictures show blocks of nodes."""
    num_nodes = 100_000
    run = write_run(tmp_path / "run", ring(num_nodes), np.ones(num_nodes),
                    (np.arange(num_nodes) % 7).tolist())  # fmt: skip
    page = _report(run.path)
    captions = re.findall(r"in ([0-9]+) groups", page.text)
    assert captions == ["400", "400"]
    assert "1,500 of 100,000, randomly drawn, nodes" in page.text
    assert (run.path / "report.html").stat().st_size < 2e6


# -------------------------------------------------------------------------------------------------
# Runs that are not whole


def test_unfinished_run(tmp_path, capsys):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4)
    assert main(["report", str(run.path)]) == 0
    for name in ("input.npz", "clusters.csv", "embedding.npy", "learned_graph.npz", "result.json"):
        (run.path / name).unlink()
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write('{"epoch": 4, "lo')  # cut off by a crash
    capsys.readouterr()
    page = _report(run.path)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Note: not there yet, so the report is without: input.npz, clusters.csv, embedding.npy, "
        "learned_graph.npz, result.json",
        str(run.path / "report.html"),
    ]
    assert "The run is not finished after 3 epochs" in page.text
    # The pictures of the whole run are gone.
    assert [file.name for file in (run.path / "report").iterdir()] == ["loss.png"]


@pytest.mark.parametrize(
    "gone",
    ["config.yaml", "metrics.jsonl", "input.npz", "clusters.csv", "embedding.npy",
     "learned_graph.npz", "result.json"],
)  # fmt: skip
def test_any_file_may_be_missing(tmp_path, capsys, gone):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4)
    (run.path / gone).unlink()
    page = _report(run.path)
    assert f"without: {gone}\n" in capsys.readouterr().out
    assert f"Missing: {gone}." in page.text


def test_no_run_there(tmp_path, capsys):
    for folder in (tmp_path / "none", tmp_path):
        assert main(["report", str(folder)]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"user-dgl: error: {folder}: no ")
        assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["garbage", "cut", "flipped"])
@pytest.mark.parametrize(
    "name", ["input.npz", "clusters.csv", "embedding.npy", "learned_graph.npz", "result.json"]
)
def test_damaged_files_are_one_line(tmp_path, capsys, name, kind):
    run = write_run(tmp_path / "run", ring(64), np.ones(64), [0] * 32 + [1] * 32)
    whole, third = (run.path / name).read_bytes(), (run.path / name).stat().st_size // 3
    damaged = {
        "garbage": b"garbage",
        "cut": whole[: third + 1],
        "flipped": whole[:third] + bytes(255 - byte for byte in whole[third : 2 * third]),
    }
    (run.path / name).write_bytes(damaged[kind])
    assert main(["report", str(run.path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(run.path) in error
    assert not (run.path / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", "{}"),
        ("result.json", "[]"),
        ("result.json", "null"),
        ("result.json", '{"num_nodes": "8"}'),
        ("metrics.jsonl", "3"),
        ("metrics.jsonl", '{"epoch": 1}'),
        ("metrics.jsonl", '{"epoch": 1, "loss": "x", "clusters_in_use": 2}'),
    ],
)
def test_files_that_no_run_wrote_are_one_line(tmp_path, capsys, name, text):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4)
    (run.path / name).write_text(text)
    assert main(["report", str(run.path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(run.path / name) in error
    assert not (run.path / "report.html").exists()


def test_files_of_different_runs(tmp_path, capsys):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4)
    run.write_embedding(np.ones((7, 2)))
    assert main(["report", str(run.path)]) == 2
    assert "8 clusters, 7 embeddings" in capsys.readouterr().err


def test_without_matplotlib(tmp_path, capsys, monkeypatch):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4)
    before = sorted(file.name for file in run.path.iterdir())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["report", str(run.path)]) == 2
    error = capsys.readouterr().err
    assert "pip install 'user_dgl[plot]'" in error
    assert error.count("\n") == 1
    assert sorted(file.name for file in run.path.iterdir()) == before


def test_a_file_in_the_way(tmp_path, capsys):
    run = write_run(tmp_path / "run", ring(8), np.ones(8), [0] * 4 + [1] * 4)
    (run.path / "report").write_text("mine")
    assert main(["report", str(run.path)]) == 2
    error = capsys.readouterr().err
    assert f"{run.path / 'report'}: cannot be written" in error
    assert error.count("\n") == 1
    assert (run.path / "report").read_text() == "mine"


# -------------------------------------------------------------------------------------------------
# What pictures show


def test_heat_map_keeps_the_weight():
    path = sp.diags([1.0, 1.0, 1.0], 1, shape=(4, 4))
    graph = (path + path.T).tocsr()
    image = figures.heat_map(graph, np.array([0, 2, 1, 3]), 2)
    # Nodes 0, 2 | 1, 3: every edge of the path 0-1-2-3 crosses.
    assert image.tolist() == [[0, 3], [3, 0]]
    assert figures.share_inside(graph, np.array([0, 0, 1, 1])) == pytest.approx(2 / 3)
    alone = figures.normalised(sp.csr_matrix((2, 2)))
    assert alone.nnz == 0


def test_plane_of_few_points_is_that_of_their_components():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 9))
    points, how = plane(flat)
    distances = [np.linalg.norm(x[:, None] - x, axis=2) for x in (flat, points)]
    np.testing.assert_allclose(*distances, atol=1e-9)
    assert how == "Two principal components, with 100\u00a0% of the variance."


def test_plane_keeps_groups_together():
    """Nearest neighbours in the plane are of the same of six groups; the picture repeats."""
    rng = np.random.default_rng(0)
    groups = np.arange(300) % 6
    embedding = (5 * np.eye(6)[groups] + rng.normal(size=(300, 6))).astype(np.float32)
    points, how = plane(embedding)
    assert how.startswith("t-SNE")
    distance = np.linalg.norm(points[:, None] - points, axis=2) + 1e9 * np.eye(300)
    assert (groups[distance.argmin(1)] == groups).mean() > 0.95
    np.testing.assert_array_equal(plane(embedding)[0], points)


@pytest.mark.parametrize("embedding", [np.ones((60, 3)), np.ones((1, 3)), np.arange(60.0)[:, None]])
def test_plane_of_degenerate_embeddings(embedding):
    points, _ = plane(embedding)
    assert points.shape == (len(embedding), 2)
    assert np.isfinite(points).all()


def test_settings_of_matplotlib_are_left_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    matplotlib.rcParams["axes.facecolor"] = "black"
    try:
        with figures.drawing():
            data = figures.png(figures.draw_sizes(np.arange(3), np.array([3, 2, 1])))
        assert matplotlib.rcParams["axes.facecolor"] == "black"
        pixel = matplotlib.image.imread(io.BytesIO(data))[4, -4, :3]
        assert pixel.tolist() == [1, 1, 1]
    finally:
        matplotlib.rcParams.update(before)
