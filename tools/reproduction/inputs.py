"""What rivals and floors read: the noisy graph of a cell in a file, and the scores of the floors.

``python inputs.py graph OUT.npz CONFIG [key=value ...]`` writes the graph that a training of these
settings would see, with its labels, and ``graph-and-features`` in place of ``graph`` writes the
features as they are loaded too. ``python inputs.py floors OUT.json CONFIG [key=value ...]`` writes
the scores of the four floors. Each is a process of its own, so that a failure or its memory touches
no other cell.
"""

import gzip
import json
import sys
from functools import partial
from pathlib import Path

import numpy as np


def write_labels(communities: Path, out: Path) -> None:
    """Write the communities of a file of the LFR benchmark as rows ``node,label``.

    Parameters
    ----------
    communities : Path
        Gzipped JSON, ``{"communities": [[node, ...], ...]}``; each node in one community.
    out : Path
    """
    with gzip.open(communities, "rt") as stream:
        groups = json.load(stream)["communities"]
    rows = (f"{node},{label}\n" for label, group in enumerate(groups) for node in group)
    out.write_text("node,label\n" + "".join(rows))


def write_graph(
    out: Path, config_file: str, settings: list[str], with_features: bool = False
) -> None:
    """Write the noisy graph of a config and its labels: CSR ``indices``, ``indptr``, ``labels``.

    With features, also these as CSR: ``feat_data``, ``feat_indices``, ``feat_indptr`` and
    ``feat_shape``.
    """
    from user_dgl.config import load_config
    from user_dgl.pipeline.inputs import load_noisy_data

    data, noisy, _ = load_noisy_data(load_config(config_file, settings), lambda line: None)
    if data.labels is None:
        raise SystemExit("error: the data have no labels")
    adjacency, feat = noisy.graph.to_scipy().tocsr(), {}
    if with_features:
        if data.feat is None:
            raise SystemExit("error: the data have no features")
        rows = data.feat.tocsr()
        feat = {f"feat_{part}": getattr(rows, part) for part in ("data", "indices", "indptr")}
        feat["feat_shape"] = np.array(rows.shape)
    np.savez(
        out,
        **feat,
        indices=adjacency.indices.astype(np.int32),
        indptr=adjacency.indptr.astype(np.int32),
        labels=data.labels,
    )


def write_floors(out: Path, config_file: str, settings: list[str]) -> None:
    """Write ``{"floors": ..., "floors_prepared": ..., "peak_memory_mb": ...}`` as JSON.

    The sections are those of ``result.json``. Both are always there: where the preparation changes
    no column, they are equal.
    """
    from user_dgl.config import load_config
    from user_dgl.evaluation.floors import floors
    from user_dgl.pipeline.inputs import read_inputs
    from user_dgl.runtime.machine import peak_memory_mb

    inputs = read_inputs(load_config(config_file, settings), lambda line: None)
    config = inputs.config
    scores = {
        name: floors(
            feat, inputs.noisy.graph, config.model.num_clusters, config.seed, inputs.data.labels
        )
        for name, feat in (("floors", inputs.raw_feat), ("floors_prepared", inputs.feat))
    }
    out.write_text(json.dumps(scores | {"peak_memory_mb": peak_memory_mb()}))


def main(arguments: list[str]) -> None:
    """Run a command line."""
    kind, out, config_file, *settings = arguments
    write = {
        "graph": write_graph,
        "graph-and-features": partial(write_graph, with_features=True),
        "floors": write_floors,
    }
    write[kind](Path(out), config_file, settings)


if __name__ == "__main__":
    main(sys.argv[1:])
