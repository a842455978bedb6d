"""``user-dgl partition``: splits a graph once and writes the data that each rank of a run needs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from user_dgl.config import Config
from user_dgl.data import AttributedGraph, data_root
from user_dgl.distributed.assembly import read_whole, split_among_ranks
from user_dgl.distributed.directory import PartitionDirectory
from user_dgl.graph import Graph
from user_dgl.perturb import Perturbed
from user_dgl.pipeline.inputs import Inputs, without_judging
from user_dgl.pipeline.result import ResultSections
from user_dgl.runtime.progress import StageClock


def write_partition(
    config: Config, num_parts: int, out: Path, log: Callable[[str], None]
) -> list[dict[str, int]]:
    """Split the graph of some settings and write the data that each rank of a run needs.

    Parameters
    ----------
    config : Config
    num_parts : int
    out : Path
        An empty or absent folder.
    log : callable
        Called with each line of the log.

    Returns
    -------
    list of dict
        Number of nodes, halo nodes and pairs of each part.

    Raises
    ------
    InputError
    """
    config.check_distributed()
    directory = PartitionDirectory(out)
    directory.check_free()
    stages = StageClock(log, shows_progress=True)
    data = read_whole(config, log, stages)
    with stages.stage("partition"):
        rank_data = split_among_ranks(data, num_parts)
    sections = replace(ResultSections.of(data.preparation), stages=stages.entries)
    whole = to_whole(data.inputs, sections)
    root = str(data_root(config.data).resolve())
    resolved = replace(config, output_dir=None, data=replace(config.data, root=root))
    directory.write(resolved, rank_data, whole)
    parts = [data.shard.part for data in rank_data]
    return [
        {"nodes": part.num_owned, "halo": len(part.halo), "pairs": int(part.owned.sum())}
        for part in parts
    ]


def to_whole(inputs: Inputs, sections: ResultSections) -> dict[str, Any]:
    """Return the data that the first rank reports with, as tensors and plain types."""
    data, noisy = inputs.data, inputs.noisy
    return {
        "num_nodes": data.num_nodes,
        "clean": [data.graph.src, data.graph.dst, data.graph.weight],
        "noisy": [noisy.graph.src, noisy.graph.dst, noisy.graph.weight],
        "added": noisy.added,
        "counts": [noisy.num_added, noisy.num_removed],
        "labels": None if data.labels is None else torch.from_numpy(data.labels),
        "node_ids": None if data.node_ids is None else list(data.node_ids),
        "notes": [list(data.notes), list(noisy.notes)],
        "num_features": inputs.num_features,
        "num_clusters": inputs.config.model.num_clusters,
        "warnings": inputs.warnings,
        "has_features": data.feat is not None,
        "choices": {
            "by_name": sections.by_name,
            "stages": list(sections.stages),
            "estimated_share": sections.estimated_share,
            "warnings": list(sections.warnings),
        },
    }


def from_whole(whole: dict[str, Any], config: Config) -> tuple[Inputs, ResultSections]:
    """Restore inputs and sections from the result of `to_whole`."""
    clean, noisy = (Graph(whole["num_nodes"], *whole[name]) for name in ("clean", "noisy"))
    labels, ids = whole["labels"], whole["node_ids"]
    data_notes, noise_notes = (tuple(notes) for notes in whole["notes"])
    data = AttributedGraph(
        clean,
        None,
        None if labels is None else labels.numpy(),
        None if ids is None else tuple(ids),
        data_notes,
    )
    num_added, num_removed = whole["counts"]
    perturbed = Perturbed(noisy, whole["added"], num_added, num_removed, noise_notes)
    asked = config
    if not whole["has_features"]:
        config = without_judging(config)
    config = replace(config, model=replace(config.model, num_clusters=whole["num_clusters"]))
    known = whole["num_features"], whole["warnings"]
    inputs = Inputs(asked, config, data, perturbed, None, None, *known)
    return inputs, ResultSections(**whole["choices"])
