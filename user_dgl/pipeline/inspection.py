"""What a run would read, without training: `inspect_data` and its text for ``user-dgl inspect``."""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp

from user_dgl.config import Config
from user_dgl.data import UNLABELLED, AttributedGraph, load_data
from user_dgl.data.formats.registry import FORMATS
from user_dgl.data.reading.files import ending
from user_dgl.errors import InputError
from user_dgl.features.columns import ColumnSummary
from user_dgl.graph import Graph
from user_dgl.pipeline.inputs import prepared_features

_LARGEST_DEGREES = 5
_SAMPLES = 3
_SAMPLE_VALUES = 4
_LONGEST = 60
# What the loaders' notes say of the rows that do not become edges, and of weights.
_LOOPS = re.compile(r"(\d+) self-loop entries dropped")
_REPEATS = re.compile(r"(\d+) repeated (?:or reversed )?entries merged")
_IGNORED_WEIGHTS = re.compile(r"weights of (\S+) to (\S+), which are ignored")


def inspect_data(config: Config) -> dict[str, Any]:
    """Read the data that the settings name, and describe them. Noise is not added.

    Returns
    -------
    dict
        Plain values, as JSON has them: ``format``, ``num_nodes``, ``num_edges``,
        ``num_self_loops``, ``num_repeated``, ``num_components``, ``largest_component``,
        ``num_isolated``, ``degree`` (``mean``, ``median``, ``largest``), ``largest_degrees`` (nodes
        with the most neighbours), ``weights``, ``features``, ``labels``, ``sample_edges``,
        ``sample_nodes``, ``notes`` and ``warnings``. ``weights``, ``features`` and ``labels`` are
        None if there are none.

    Raises
    ------
    InputError
        The data cannot be read.
    """
    data = load_data(config.data, config.features.categorical)
    graph, degree = data.graph, data.graph.degree.numpy()
    ids = _Names(data)
    notes = list(data.notes)
    if config.data.noise.kind != "none":
        notes.append("the graph is described without the noise that the settings add")
    order = np.argsort(-degree, kind="stable")[:_LARGEST_DEGREES]
    return {
        "format": _format(config),
        **_counts(graph, notes),
        "degree": {
            "mean": float(degree.mean()) if len(degree) else 0.0,
            "median": float(np.median(degree)) if len(degree) else 0.0,
            "largest": int(degree.max(initial=0)),
        },
        "largest_degrees": [{"node": ids[i], "degree": int(degree[i])} for i in order.tolist()],
        "weights": _weights(graph, notes),
        "features": None if data.feat is None else _features(data.feat),
        "labels": None if data.labels is None else _labels(data.labels),
        "sample_edges": _sample_edges(graph, ids),
        "sample_nodes": [_sample_node(data, ids, i) for i in range(min(_SAMPLES, len(degree)))],
        "notes": notes,
        "warnings": _warnings(config, data),
    }


class _Names:
    """Names of the nodes of a graph, of which most are never asked for."""

    def __init__(self, data: AttributedGraph):
        self._ids = data.node_ids

    def __getitem__(self, node: int) -> int | str:
        return node if self._ids is None else self._ids[node]


def _format(config: Config) -> str:
    """Name of the format of the data."""
    if config.data.kind != "edge_list" or config.data.edges is None:
        return config.data.kind
    kind = ending(Path(config.data.edges))
    return kind.removeprefix(".") if kind in FORMATS or kind == ".npy" else "text"


def _counts(graph: Graph, notes: list[str]) -> dict[str, int]:
    """Numbers of nodes, edges, components and of what is no edge."""
    number, component = sp.csgraph.connected_components(graph.to_scipy(), directed=False)
    sizes = np.bincount(component, minlength=1)
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_self_loops": _said(_LOOPS, notes),
        "num_repeated": _said(_REPEATS, notes),
        "num_components": int(number),
        "largest_component": int(sizes.max()),
        "num_isolated": int((graph.degree == 0).sum()),
    }


def _said(pattern: re.Pattern[str], notes: list[str]) -> int:
    """Add up a number that notes give."""
    return sum(int(found[1]) for note in notes for found in pattern.finditer(note))


def _weights(graph: Graph, notes: list[str]) -> dict[str, Any] | None:
    """Range of the weights of the edges in the unit of the data, and whether they are used."""
    if graph.weight is not None:
        low, high = (float(end) * graph.unit for end in (graph.weight.min(), graph.weight.max()))
        return {"least": low, "largest": high, "mean": graph.unit, "used": True}
    found = next(filter(None, map(_IGNORED_WEIGHTS.search, notes)), None)
    if found is None:
        return None
    return {"least": float(found[1]), "largest": float(found[2]), "mean": None, "used": False}


def _features(feat: sp.csr_matrix) -> dict[str, Any]:
    """Describe features: columns, kinds and range."""
    num_rows, num_columns = feat.shape
    summary = ColumnSummary.of(feat)
    spread = summary.largest - summary.least
    varying = spread[spread > 0]
    return {
        "num_columns": num_columns,
        "kinds": summary.counts_of_kinds(),
        "share_of_nonzeros": feat.nnz / max(num_rows * num_columns, 1),
        "least": float(summary.least.min()) if num_columns else 0.0,
        "largest": float(summary.largest.max()) if num_columns else 0.0,
        # Columns on very different scales are the most frequent cause of useless clusters.
        "least_range": float(varying.min()) if len(varying) else 0.0,
        "median_range": float(np.median(varying)) if len(varying) else 0.0,
        "largest_range": float(varying.max()) if len(varying) else 0.0,
        "column_of_largest_range": int(spread.argmax()) if num_columns else None,
        "num_nodes_without": int((feat.getnnz(axis=1) == 0).sum()),
    }


def _labels(labels: np.ndarray) -> dict[str, Any]:
    """Describe labels: classes and how many nodes have one."""
    sizes = np.bincount(labels[labels != UNLABELLED])
    sizes = sizes[sizes > 0]  # a part of a graph may lack a class
    return {
        "num_classes": len(sizes),
        "num_labelled_nodes": int(sizes.sum()),
        "smallest_class": int(sizes.min()) if len(sizes) else 0,
        "largest_class": int(sizes.max()) if len(sizes) else 0,
    }


def _sample_edges(graph: Graph, ids: _Names) -> list[list[int | str]]:
    """The first edges, by the names of their ends."""
    first = zip(graph.src[:_SAMPLES].tolist(), graph.dst[:_SAMPLES].tolist(), strict=True)
    return [[ids[u], ids[v]] for u, v in first]


def _sample_node(data: AttributedGraph, ids: _Names, node: int) -> dict[str, Any]:
    """A node with its degree, its first non-zero features by column, and its class."""
    sample: dict[str, Any] = {"node": ids[node], "degree": int(data.graph.degree[node])}
    if data.feat is not None:
        row = data.feat[node]
        first = slice(_SAMPLE_VALUES)
        values = zip(row.indices[first].tolist(), row.data[first].tolist(), strict=True)
        sample["features"] = {str(c): float(f"{x:.6g}") for c, x in values}
    if data.labels is not None:
        label = int(data.labels[node])
        sample["class"] = None if label == UNLABELLED else label
    return sample


def _warnings(config: Config, data: AttributedGraph) -> list[str]:
    """Warnings that training on these data would begin with."""
    try:
        return prepared_features(config, data.graph, data.feat).warnings
    except InputError as error:
        return [str(error)]


# Text --------------------------------------------------------------------------------------------


def print_inspections(named: Sequence[tuple[str, Config]], as_json: bool, out: TextIO) -> int:
    """Print what `inspect_data` returns for each of several data sets.

    A terminal gets a table, anything else a row of two columns, separated by a tab, for each fact.
    JSON is one object for one data set, and a list for several. Data that cannot be read are
    reported on stderr, a line each, and do not stop the others.

    Parameters
    ----------
    named : sequence of (str, Config)
        Names for the output, and settings.
    as_json : bool
    out : text file

    Returns
    -------
    int
        Exit status: 0, or 2 if some data could not be read.
    """
    status, reports = 0, list[dict[str, Any]]()
    for name, config in named:
        try:
            report = {"source": name, **inspect_data(config)}
        except InputError as error:
            print(f"user-dgl: error: {error}", file=sys.stderr)
            status = 2
            continue
        if not as_json:
            if reports:
                print(file=out)
            print(_text(list(_rows(report)), out.isatty()), file=out)
        reports.append(report)
    if as_json and reports:
        shown = reports[0] if len(named) == 1 else reports
        print(json.dumps(shown, indent=2, allow_nan=False, ensure_ascii=False), file=out)
    return status


def _text(rows: list[tuple[str, str]], table: bool) -> str:
    """Write rows of a name and a text, as a table or separated by tabs."""
    if not table:
        return "\n".join(f"{name}\t{text}" for name, text in rows)
    margin = max(len(name) for name, _ in rows) + 2
    width = max(shutil.get_terminal_size().columns - margin, 20)
    lines, last = [], ""
    for name, text in rows:
        for part in textwrap.wrap(text, width) or [""]:
            lines.append(f"{'' if name == last else name:{margin}}{part}")
            last = name
    return "\n".join(lines)


def _rows(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "source", f"{report['source']} ({report['format']})"
    yield "nodes", f"{report['num_nodes']}"
    yield "edges", f"{report['num_edges']}"
    yield "self-loops dropped", f"{report['num_self_loops']}"
    yield "repeats merged", f"{report['num_repeated']}"
    yield (
        "components",
        f"{report['num_components']}, the largest of {report['largest_component']} nodes",
    )
    yield "nodes without edges", f"{report['num_isolated']}"
    degree = report["degree"]
    yield "degree", f"mean {degree['mean']:.4g}, median {degree['median']:g}"
    most = ", ".join(f"{_short(x['node'])} ({x['degree']})" for x in report["largest_degrees"])
    yield "largest degrees", most or "none"
    yield "weights", _weight_text(report["weights"])
    yield "features", _feature_text(report["features"])
    if report["features"]:
        yield "scale", _scale_text(report["features"])
    yield "labels", _label_text(report["labels"])
    for u, v in report["sample_edges"]:
        yield "sample edge", f"{_short(u)} - {_short(v)}"
    for node in report["sample_nodes"]:
        yield "sample node", _node_text(node)
    for note in report["notes"]:
        yield "note", note
    for warning in report["warnings"]:
        yield "warning", warning


def _weight_text(weights: dict[str, Any] | None) -> str:
    if weights is None:
        return "none: every edge has weight 1"
    text = f"{weights['least']:.4g} to {weights['largest']:.4g}"
    return f"{text}, used" if weights["used"] else f"{text}, not used: every edge has weight 1"


def _feature_text(features: dict[str, Any] | None) -> str:
    if features is None:
        return "none"
    kinds = ", ".join(f"{number} {name}" for name, number in features["kinds"].items())
    text = f"{features['num_columns']} columns ({kinds}), {features['share_of_nonzeros']:.2%}"
    text += " of the values are not 0"
    without = features["num_nodes_without"]
    return f"{text}, {without} nodes without" if without else text


def _scale_text(features: dict[str, Any]) -> str:
    return (
        f"values {features['least']:.4g} to {features['largest']:.4g}; range of a column "
        f"{features['least_range']:.4g} to {features['largest_range']:.4g}, median "
        f"{features['median_range']:.4g}; the largest is that of column "
        f"{features['column_of_largest_range']}, counted from 0"
    )


def _label_text(labels: dict[str, Any] | None) -> str:
    if labels is None:
        return "none"
    return (
        f"{labels['num_classes']} classes of {labels['smallest_class']} to "
        f"{labels['largest_class']} nodes, {labels['num_labelled_nodes']} nodes with a label"
    )


def _node_text(node: dict[str, Any]) -> str:
    parts = [f"{_short(node['node'])}: degree {node['degree']}"]
    if "features" in node:
        values = ", ".join(f"{column}={x:g}" for column, x in node["features"].items())
        parts.append(f"features {values or 'all 0'}")
    if "class" in node:
        parts.append("no label" if node["class"] is None else f"class {node['class']}")
    return "; ".join(parts)


def _short(name: int | str) -> str:
    """Write the name of a node on one line, without control characters."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(name))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _components(number: int) -> str:
    return f"{number} component{'' if number == 1 else 's'}"


def summary_lines(data: AttributedGraph) -> list[str]:
    """Describe data in two lines, the graph and what its nodes have, as ``train`` logs them."""
    notes = list(data.notes)
    counts = _counts(data.graph, notes)
    weights = _weights(data.graph, notes)
    weighed = "" if weights is None else f", weights {_weight_text(weights)}"
    features = "none"
    if data.feat is not None:
        kinds = ColumnSummary.of_all(data.feat).counts_of_kinds()
        features = f"{data.feat.shape[1]} columns, {', '.join(kinds)}"
    return [
        f"Graph | {counts['num_nodes']} nodes, {counts['num_edges']} edges, "
        f"{counts['num_self_loops']} self-loops dropped, {counts['num_repeated']} repeats merged, "
        f"{_components(counts['num_components'])}, {counts['num_isolated']} nodes without edges, "
        f"largest degree {int(data.graph.degree.max()) if data.num_nodes else 0}{weighed}",
        f"Nodes | features: {features} | "
        f"labels: {_label_text(None if data.labels is None else _labels(data.labels))}",
    ]
