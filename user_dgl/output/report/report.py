"""Composition of the report: ``report.html`` with its pictures, made from the run directory.

`content` reads the files, `figures` draws the pictures, and `html_page` writes the HTML; this file
decides what the page says. No labels are read here: scores come from ``result.json``.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pandas.api.types import is_numeric_dtype

import user_dgl
from user_dgl.errors import InputError
from user_dgl.output.report.content import (
    Clusters,
    Content,
    ObservedGraph,
    read_content,
    share_of_weight_inside,
    typical_nodes,
)
from user_dgl.output.report.embedding_map import plane
from user_dgl.output.report.figures import (
    MOST_NAMED,
    NUM_LOOKS,
    draw_choice,
    draw_heat_map,
    draw_loss,
    draw_map,
    draw_sizes,
    draw_weights,
    drawing,
    heat_map,
    normalised,
    share_inside,
)
from user_dgl.output.report.html_page import Page
from user_dgl.output.run_directory import RunDirectory
from user_dgl.runtime.files import write_atomically
from user_dgl.runtime.streams import Stream, stream_rng

# Upper bound of the cells of a heat map along a side.
_MOST_CELLS = 400
# Upper bound of the nodes in the map of the embeddings: t-SNE of so many takes seconds.
_MOST_POINTS = 1500
# Keys of ``result.json`` and their names on the page.
_SCORES = {
    "npsi": ("NPSI, bits", "lower is better"),
    "modularity": ("modularity", "higher is better"),
    "conductance": ("conductance, mean over clusters", "lower is better"),
    "davies_bouldin": ("Davies-Bouldin index of the embeddings", "lower is better"),
}
_NOISE = {
    "kind": "kind of noise",
    "rate": "flipped pairs as a share of the edges",
    "edges_added": "edges added",
    "edges_removed": "edges removed",
    "true_share": "added edges as a share of all",
    "estimated_share": "the same as estimated by the critic",
    "weight_auc": "AUC of 1/A' for added edges, %",
    "weight_ap": "average precision of the same, %",
}
_RUN = {
    "num_nodes": "nodes",
    "num_observed_edges": "observed edges",
    "num_candidate_edges": "candidate edges",
    "num_features": "features",
    "num_clusters": "clusters to find, asked for or chosen",
    "num_clusters_found": "clusters found",
    "labels_from": "clusters are those of",
    "epochs": "epochs",
    "seconds_per_epoch": "seconds an epoch (median)",
    "seconds_total": "seconds in all",
    "peak_memory_mb": "peak memory, MB",
    "engine": "engine",
    "world_size": "processes",
    "seed": "seed",
}


def write_report(run_dir: Path) -> tuple[Path, list[str]]:
    """Write ``report.html`` and ``report/*.png`` into a run directory, and replace older ones.

    Time and memory are linear in the nodes and pairs.

    Parameters
    ----------
    run_dir : Path

    Returns
    -------
    Path, list of str
        The page, and the files of the run that are missing. The page shows what is there.

    Raises
    ------
    InputError
        There is no run, a file is damaged, matplotlib is not installed, or the folder is not
        writable.
    """
    run = RunDirectory(run_dir)
    with drawing():
        content = read_content(run)
        page = _page(run, content)
    try:
        (run_dir / run.pictures_dir).mkdir(exist_ok=True)
        for name in run.pictures:
            run.picture_path(name).unlink(missing_ok=True)  # left by an earlier report
    except OSError as error:
        path = run_dir / run.pictures_dir
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    for name, data in page.pictures.items():
        _write(run.picture_path(name), data)
    path = run_dir / run.report_file
    _write(path, page.html())
    return path, content.missing


def _write(path: Path, data: bytes) -> None:
    write_atomically(path, lambda file: file.write(data))


def _page(run: RunDirectory, content: Content) -> Page:
    """Compose the page of all sections whose files are there."""
    page = Page(f"user_dgl run {run.path}")
    result = content.result
    if content.missing:
        page.notice(f"Missing: {', '.join(content.missing)}. {_unfinished(run, content)}")
    if result is not None:
        page.text(
            f"{result['num_nodes']:,} nodes, {result['num_observed_edges']:,} edges, "
            f"{result['num_features']:,} features; {result['num_clusters_found']} of "
            f"{result['num_clusters']} clusters found in {result['seconds_total']:,.1f} s."
        )
        _add_scores(page, result)
    if content.clusters is not None:
        _add_clusters(page, content, content.clusters)
    if result is not None and "num_clusters_curve" in result:
        _add_choice(page, result)
    if result is not None and result.get("view", {}).get("candidates"):
        _add_candidates(page, result["view"])
    if content.observed is not None and content.learned is not None:
        _add_graphs(page, content.observed, content.learned, content.clusters)
    if content.rows:
        _add_training(page, run, content.rows, result)
    if result is not None:
        _add_run(page, result)
    page.section("Settings and files")
    if content.config is not None:
        page.folded(f"{run.config_file}: all settings", content.config)
    if result is not None:
        page.folded(f"{run.result_file}: all numbers", json.dumps(result, indent=2))
    page.text(f"Made by user_dgl {user_dgl.__version__} from {run.path.resolve()}.")
    return page


def _unfinished(run: RunDirectory, content: Content) -> str:
    """Explain to the reader why files are missing."""
    if run.result_file not in content.missing:
        return "This page shows the rest."
    reached = f" after {content.rows[-1]['epoch']} epochs" if content.rows else ""
    return f"The run is not finished{reached}; this page shows the files that are there."


# -------------------------------------------------------------------------------------------------
# Scores


def _add_scores(page: Page, result: dict[str, Any]) -> None:
    """Add all scores, warnings and notes of the result."""
    prepared = result.get("floors_prepared", {})
    floors = result.get("floors", {}) | {f"{k}, prepared features": prepared[k] for k in prepared}
    page.section("Scores")
    if "links" in result:
        _add_link_scores(page, result, floors)
        _add_cluster_scores(page, result, result["cluster_metrics"], {})
    else:
        _add_cluster_scores(page, result, result["metrics"], floors)
    page.beside("tables")
    rows = [
        [*_SCORES.get(name, (name, "")), value] for name, value in result.get("scores", {}).items()
    ]
    page.table("Without labels", ["score", "", "value"], rows)
    noise = result.get("noise", {})
    if noise.get("kind", "none") != "none":
        page.table("Noise", ["", "value"], _named(noise, _NOISE))
    elif noise.get("estimated_share") is not None:
        share = 100 * noise["estimated_share"]
        page.text(
            f"The critic estimates that {share:.1f}\u00a0% of the edges look like random pairs."
        )
    for title in ("warnings", "notes"):
        if result.get(title):
            page.section(title.capitalize())
            page.items(result[title])


def _add_cluster_scores(
    page: Page, result: dict[str, Any], metrics: dict[str, Any], floors: dict[str, dict[str, Any]]
) -> None:
    """Add the metrics of the clusters against the labels."""
    if all(value is None for value in metrics.values()):
        page.text("No labels, so there are no scores against them.")
        return
    own = result.get("labels_from")
    rows = {"this run" + (f", labels by {own}" if own else ""): metrics}
    rows |= {
        f"this run, labels by {name}": scores
        for name, scores in result.get("assignments", {}).items()
        if name != own
    }
    _add_metrics(page, "Against the labels, percent", rows, floors)
    labelled = result.get("num_labelled_nodes")
    if labelled is not None:
        page.text(f"{labelled:,} of {result['num_nodes']:,} nodes have a label.")
    _compare(page, metrics, floors)


def _add_link_scores(page: Page, result: dict[str, Any], floors: dict[str, dict[str, Any]]) -> None:
    """Add the metrics of the held-out pairs, starting with the test pairs."""
    links, own = result["links"], result["links"]["score"]
    if all(value is None for value in result["metrics"].values()):
        page.text("No edges were held out for test, so there are no scores of links.")
        return
    rows = {
        f"{name} score, {part} pairs": links[part][name]
        for part in ("test", "validation")
        for name in sorted(links[part], key=lambda name: name != own)
    }
    _add_metrics(page, "Held-out edges against non-edges, percent", rows, floors)
    _compare(page, result["metrics"], floors)


def _add_metrics(
    page: Page, title: str, rows: dict[str, dict[str, Any]], floors: dict[str, dict[str, Any]]
) -> None:
    """Add a table of metrics with a row for each run and each floor."""
    rows = rows | {f"floor {name}": scores for name, scores in floors.items()}
    names = list(next(iter(rows.values())))
    table = [[row, *(scores.get(name) for name in names)] for row, scores in rows.items()]
    page.table(title, ["", *(name.upper() for name in names)], table)


def _compare(page: Page, metrics: dict[str, Any], floors: dict[str, dict[str, Any]]) -> None:
    """Compare the run with the best floor, which needs no training."""
    name = next(iter(metrics))
    known = {floor: scores[name] for floor, scores in floors.items() if name in scores}
    known = {floor: score for floor, score in known.items() if score is not None}
    if metrics[name] is None or not known:
        return
    best = max(known, key=lambda floor: known[floor])
    gain = metrics[name] - known[best]
    said = f"{name.upper()} is {abs(gain):.2f} points {{}} the best floor, {best}"
    if gain > 0:
        page.text(f"{said.format('above')}. Floors are methods that train nothing.")
    elif gain < 0:
        page.notice(f"{said.format('below')}: a method that trains nothing does better.")
    else:
        page.notice(f"{name.upper()} is that of the best floor, {best}, which trains nothing.")


# -------------------------------------------------------------------------------------------------
# Clusters


def _add_clusters(page: Page, content: Content, clusters: Clusters) -> None:
    """Add the map, the sizes and the table of the clusters."""
    sizes, num_nodes = clusters.sizes, len(clusters.rank)
    page.section("Clusters")
    page.beside("pictures")
    if content.embedding is not None:
        _add_map(page, content.embedding, clusters)
    page.picture(
        "cluster_sizes",
        draw_sizes(clusters.names, sizes),
        f"Bar chart: the largest of {len(sizes)} clusters has {sizes[0]:,} nodes, the smallest "
        f"{sizes[-1]:,}.",
        f"Nodes of each cluster; {num_nodes / len(sizes):,.1f} on average.",
    )
    page.below()
    columns: dict[str, Iterable[Any]] = {
        "cluster": clusters.names,
        "nodes": sizes,
        "% of nodes": 100 * sizes / num_nodes,
    }
    said = []
    if content.observed is not None:
        adjacency = content.observed.graph.to_scipy()
        columns["% inside, A"] = share_of_weight_inside(adjacency, clusters.rank)
    if content.learned is not None:
        columns["% inside, A'"] = share_of_weight_inside(content.learned, clusters.rank)
    if content.observed is not None or content.learned is not None:
        said.append(
            "% inside: share of the edge weight at a cluster's nodes that stays inside the cluster."
        )
    if content.embedding is not None:
        columns["typical nodes"] = typical_nodes(clusters, content.embedding)
        said.append("Typical nodes: nodes whose embeddings are nearest to the cluster's mean.")
    rows = list(zip(*columns.values(), strict=True))
    page.table("Clusters, the largest first", list(columns), rows)
    page.text(" ".join(said))


def _add_choice(page: Page, result: dict[str, Any]) -> None:
    """Add how the number of clusters was chosen, see `user_dgl.clustering.num_clusters`."""
    curve = {int(number): score for number, score in result["num_clusters_curve"].items()}
    ranked = sorted(curve, key=lambda number: curve[number], reverse=True)
    first, second = (*ranked, None)[:2]
    close = f"; next comes {second}" if second is not None else ""
    page.section("How many clusters?")
    page.picture(
        "num_clusters",
        draw_choice(curve, "slope of the spectrum"),
        f"Curve of the slope at {min(curve)} to {max(curve)} clusters, highest at {first}.",
        f"Of {min(curve)} to {max(curve)} clusters {first} were taken, because the singular values "
        f"fall off most steeply there{close}. This is a suggestion; labels had no part in it.",
    )


def _add_candidates(page: Page, view: dict[str, Any]) -> None:
    """Add which clusterings were compared, see `user_dgl.clustering.smoothed_view`."""
    page.section("How the clusters were compared")
    best = sorted(view["candidates"], key=lambda each: each["score"], reverse=True)
    numbers = [name for name, value in best[0].items() if name not in ("name", "chosen")]
    if "edge_bits" in numbers:
        page.text(
            f"Ways to smooth the features over the graph: {len(best)}; taken: {view['name']}. Its "
            "k-means clusters save most bits of edges and features for their entropy (score), or "
            "up to 0.5 % fewer and agree more with the others. The clusters named code, for which "
            f"nodes could move, save {view['bits']['edges']:,.0f} bits on the edges and "
            f"{view['bits']['features']:,.0f} on the features. Labels had no part in it."
        )
        numbers = ["edge_bits", "feature_bits", "score", "agreement"]
    else:
        page.text(
            f"Ways to cluster the graph by its edges alone: {len(best)}; taken: {view['name']}. A "
            "tenth of the edges was hidden. The score says how well the clusters of the other "
            "edges foretell the hidden edges; EM is taken only where it gains more than one "
            "standard error, and spectral where none is above chance (z below 3). Labels had no "
            "part in it."
        )
    page.table(
        "Candidates",
        ["", *(name.replace("_", " ") for name in numbers)],
        [
            [each["name"] + " (chosen)" * each["chosen"], *(each[name] for name in numbers)]
            for each in best
        ],
    )


# -------------------------------------------------------------------------------------------------
# Graphs and training


def _add_map(page: Page, embedding: np.ndarray, clusters: Clusters) -> None:
    """Add a map of the embeddings, of a random sample if there are many nodes."""
    nodes, drawn = np.arange(len(embedding)), "all"
    if len(nodes) > _MOST_POINTS:
        drawn = f"{_MOST_POINTS:,} of {len(nodes):,}, randomly drawn,"
        # Another stream than 0, because a synthetic graph of seed 0 orders its nodes by stream 0.
        nodes = stream_rng(0, Stream.REPORT_MAP).permutation(nodes)[:_MOST_POINTS]
    points, how = plane(embedding[nodes])
    page.picture(
        "map",
        draw_map(points, clusters.rank[nodes], clusters.names),
        f"Scatter plot of the embeddings of {len(nodes):,} nodes in the plane, marked by cluster.",
        f"Map of the embeddings: {drawn} nodes. {how} Each cluster has its colour and marker, "
        f"which are repeated after {NUM_LOOKS} clusters, and its number at one of its nodes; of "
        f"more than {MOST_NAMED} clusters, only the largest have their numbers.",
    )


def _add_graphs(
    page: Page, observed: ObservedGraph, learned: sp.csr_matrix, clusters: Clusters | None
) -> None:
    """Add heat maps of A and A', and the weights in A'."""
    page.section("The observed graph A and the learned graph A'")
    graph, added = observed
    if clusters is not None and graph.num_edges and learned.data.any():
        _add_heat_maps(page, graph.to_scipy(), learned, clusters)
    upper = sp.triu(learned, k=1, format="coo")
    place = graph.positions(upper.row.astype(np.int64) * graph.num_nodes + upper.col)
    is_observed = place >= 0
    is_added = np.zeros(len(place), dtype=bool)
    is_added[is_observed] = added[place[is_observed]]
    groups = {
        "observed edges": upper.data[is_observed & ~is_added],
        "added by noise": upper.data[is_added],
        "candidates": upper.data[~is_observed],
    }
    groups = {name: weight for name, weight in groups.items() if len(weight)}
    if not groups:
        page.text("A' has no edges.")
        return
    page.beside("pictures")
    page.picture(
        "weights",
        draw_weights(groups),
        f"Histograms of the weights in A' of {', '.join(groups)}; the table has their figures.",
        "Weights in A'. If the run learns or estimates weights, low ones belong to edges that "
        "features and the rest of the graph do not support.",
    )
    rows = [
        [name, len(weight), weight.mean(), weight.std(), weight.min(), weight.max()]
        for name, weight in groups.items()
    ]
    page.table("Weights in A'", ["", "pairs", "mean", "std", "min", "max"], rows)


def _add_heat_maps(
    page: Page, observed: sp.csr_matrix, learned: sp.csr_matrix, clusters: Clusters
) -> None:
    """Add heat maps of A and A' with the nodes sorted by cluster."""
    order = clusters.order
    # The mean cell of A then holds half an edge. Fewer cells would hide the noise; with more cells
    # most would be empty.
    cells = min(_MOST_CELLS, int(np.sqrt(2 * observed.nnz)) + 1)
    graphs = {"observed": normalised(observed), "learned": normalised(learned)}
    images = {name: heat_map(graph, order, cells) for name, graph in graphs.items()}
    top = max(float(np.quantile(image[image > 0], 0.98)) for image in images.values())
    page.beside("pictures")
    for name, graph in graphs.items():
        title = "A, the observed graph" if name == "observed" else "A', the learned graph"
        share = 100 * share_inside(graph, clusters.rank)
        page.picture(
            f"{name}_graph",
            draw_heat_map(images[name], top, clusters.names, clusters.sizes, title),
            f"Heat map of the adjacency of {title}, with nodes by cluster.",
            f"{title}: {share:.0f}\u00a0% of the weight is inside clusters. The nodes are sorted "
            f"by cluster in {len(images[name]):,} groups; each weight is divided by the root of "
            "both ends' degrees.",
        )


def _add_training(
    page: Page, run: RunDirectory, metrics: list[dict[str, Any]], result: dict[str, Any] | None
) -> None:
    """Add the curves of the training and the final loss."""
    rows = pd.DataFrame(metrics)
    numeric = all(map(is_numeric_dtype, rows.dtypes))
    if not numeric or not {"loss", "lr"} <= set(rows.columns):
        file = run.path / run.metrics_file
        raise InputError(f"{file}: rows without the loss, or not of numbers: is it damaged?")
    # The columns between these two are the weighted terms and the clusters in use, see
    # `user_dgl.training.loop`. Baselines have no clusters before the end.
    names = list(rows.columns)
    terms = names[names.index("loss") + 1 : names.index("lr")]
    curves = {"loss, the sum of the terms": ["loss"]}
    if "exact_loss" in rows:  # loss of the whole graph, after epochs that trained its parts
        curves = {"loss, the sum of the terms; points: exact_loss": ["loss", "exact_loss"]}
    curves |= {name: [name] for name in terms}
    ends = rows["loss"].iloc[[0, -1]]
    page.section("Training")
    page.beside("pictures")
    page.picture(
        "loss",
        draw_loss(rows, curves),
        f"Curves over {len(rows):,} epochs of {', '.join(curves)}; the loss goes from "
        f"{ends.iloc[0]:.4g} to {ends.iloc[1]:.4g}.",
        "Terms as they enter the loss, that is times their weight; training minimises their sum.",
    )
    if result is not None:
        loss = list(result.get("loss", {}).items())
        page.table("Loss in the end, without dropout", ["term", "value"], loss)
        restarts = result.get("restart_losses", [])
        if len(restarts) > 1:
            page.table("Loss of each replica", ["replica", "value"], list(enumerate(restarts)))


# -------------------------------------------------------------------------------------------------
# Sizes, times and versions


def _add_run(page: Page, result: dict[str, Any]) -> None:
    """Add sizes, cost, stages and versions of the run."""
    page.section("The run")
    page.beside("tables")
    page.table("Sizes and cost", ["", "value"], _named(result, _RUN))
    stages = [[s["name"], s["epochs"], s["seconds"]] for s in result.get("stages", [])]
    page.table("Stages", ["stage", "epochs", "seconds"], stages)
    page.table("Versions", ["package", "version"], list(result.get("versions", {}).items()))


def _named(values: dict[str, Any], names: dict[str, str]) -> list[list[Any]]:
    """Return rows of names and values for the keys that have a value."""
    return [[text, values[key]] for key, text in names.items() if values.get(key) is not None]
