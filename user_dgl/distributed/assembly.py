"""Splits a graph into the data of each rank, and joins the results of the ranks."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from user_dgl.clustering.smoothed_view import SmoothedView
from user_dgl.config import Config
from user_dgl.distributed.ranks import Ranks
from user_dgl.distributed.rows import ShardRows
from user_dgl.distributed.shards import RankData, shards_of
from user_dgl.errors import InputError
from user_dgl.features.matrix import ColumnStatistics, feature_digest
from user_dgl.graph import Graph, index_dtype
from user_dgl.graph.ops import resolve_engine
from user_dgl.graph.parts import metis_assignment
from user_dgl.pipeline.inputs import Inputs, read_inputs
from user_dgl.pipeline.inspection import summary_lines
from user_dgl.runtime.progress import StageClock
from user_dgl.runtime.streams import Stream, stream_rng
from user_dgl.structure.candidates import Pairs
from user_dgl.training.memory import check_cutting
from user_dgl.training.result import TrainingResult, empty_clusters
from user_dgl.training.stages import (
    Preparation,
    candidates_that_stay,
    check_sizes,
    first_weight,
    initial_pairs,
    needs_whole_graph,
    prepare,
    weigh_and_view,
)


@dataclass(frozen=True, eq=False)
class RankResult:
    """The result of a rank for its own nodes and pairs.

    Attributes
    ----------
    nodes : int64 (n,)
    clusters : int64 (n,)
    probs : (n, K)
    embedding : (n, d)
    pairs : int64 (p,)
        Positions of the owned pairs in the whole graph.
    ends : int64 (2, p)
    weight : (p,)
    observed : bool (p,)
    loss : dict of str to float
        Terms of the whole graph.
    kmeans : int64 (n,) or None
    code : int64 (n,) or None
        The clusters of the view before and after nodes were moved, only with the encoder
        ``smooth``.
    epoch_seconds : list of float
        Duration of each epoch, including those before a resume.
    """

    nodes: np.ndarray
    clusters: np.ndarray
    probs: np.ndarray
    embedding: np.ndarray
    pairs: np.ndarray
    ends: np.ndarray
    weight: np.ndarray
    observed: np.ndarray
    loss: dict[str, float]
    kmeans: np.ndarray | None
    code: np.ndarray | None
    epoch_seconds: list[float]


@dataclass(frozen=True, eq=False)
class WholeData:
    """The whole graph, before it is cut.

    Attributes
    ----------
    inputs : Inputs
    static_candidates : list of Pairs
        As in `Preparation`.
    preparation : Preparation or None
        Results of the stages before training. None if the ranks run them.
    """

    inputs: Inputs
    static_candidates: list[Pairs]
    preparation: Preparation | None = None


def read_whole(config: Config, log: Callable[[str], None], stages: StageClock) -> WholeData:
    """Load the data and do what needs the whole graph: candidates, and stages only if they must."""
    with stages.stage("read"):
        inputs = read_inputs(config, log)
    for line in summary_lines(inputs.data):
        log(line)
    graph, feat = inputs.noisy.graph, inputs.feat
    check_sizes(graph, feat, inputs.config)
    assert feat is not None, "the whole graph is read with its features"
    if not needs_whole_graph(inputs.config):
        return WholeData(inputs, candidates_that_stay(graph, feat, inputs.config, stages))
    prepared = prepare(graph, feat, inputs.config, log, stages=stages)
    inputs = replace(inputs, config=prepared.config)
    return WholeData(inputs, prepared.static_candidates, prepared)


def prepare_rank(
    data: RankData,
    config: Config,
    ranks: Ranks,
    log: Callable[[str], None],
    stages: StageClock | None = None,
) -> tuple[RankData, Preparation | None]:
    """Run the stages before training together with the other ranks, if they have not been run.

    Returns
    -------
    RankData, Preparation or None
        The data with the first weights and the view, and the results of the stages.
    """
    if data.first_weight is not None:
        return data, None
    held = ShardRows(data, ranks)
    # What can fail on one rank alone is tried before the ranks wait for each other in the stages.
    ranks.run_on_all(lambda: resolve_engine(config.structure.engine), "the engines")
    prepared = ranks.run_on_all(
        lambda: weigh_and_view(held.graph, data.feat, config, log, stages=stages, held=held),
        "the stages before training",
    )
    weight = first_weight(len(data.observed), data.observed, prepared.prior, config.structure)
    view = None if prepared.view is None else replace(prepared.view, projection=None)
    return replace(data, first_weight=weight, view=view), prepared


def split_among_ranks(whole: WholeData, num_ranks: int) -> list[RankData]:
    """Split the data among the ranks.

    Raises
    ------
    InputError
        There are more ranks than nodes.
    """
    inputs, preparation = whole.inputs, whole.preparation
    config, graph, feat = inputs.config, inputs.noisy.graph, inputs.feat
    assert feat is not None, "the whole graph is read with its features"
    if num_ranks > graph.num_nodes:
        raise InputError(f"{num_ranks} processes for {graph.num_nodes} nodes: start fewer")
    rng = stream_rng(config.seed, Stream.CANDIDATES, 0)
    pairs, observed = initial_pairs(graph, config.structure, whole.static_candidates, rng, feat)
    weight = view = None
    if preparation is not None:
        weight = first_weight(pairs.num_edges, observed, preparation.prior, config.structure)
        view = preparation.view
    if num_ranks > 1:
        check_cutting(graph.num_nodes, pairs.num_edges)
    assignment = _nobody_empty(metis_assignment(pairs, num_ranks, config.seed), num_ranks)
    columns, edge_of = ColumnStatistics.of(feat), observed.cumsum(0) - 1
    digest = hashlib.sha256(pairs.keys.tobytes() + observed.numpy().tobytes())
    if graph.weight is not None:
        digest.update(graph.weight.numpy().tobytes())
    digest.update(feature_digest(feat).encode())
    rank_data = []
    for shard in shards_of(pairs, assignment, num_ranks):
        own = shard.part.nodes[: shard.part.num_owned]
        rank_data.append(
            RankData(
                shard,
                graph.num_nodes,
                pairs.num_edges,
                graph.num_edges,
                feat[own.numpy()],
                columns,
                observed[shard.part.pairs],
                edge_of[shard.part.pairs[observed[shard.part.pairs]]],
                None if weight is None else weight[shard.part.pairs],
                None if view is None else _rows_of(view, own),
                digest.hexdigest(),
            )
        )
    return rank_data


def _nobody_empty(assignment: np.ndarray, num_ranks: int) -> np.ndarray:
    """Give every rank a node, because METIS may leave a part of a tiny graph empty."""
    assignment = assignment.copy()
    for rank in range(num_ranks):
        if not (assignment == rank).any():
            largest = np.bincount(assignment, minlength=num_ranks).argmax()
            assignment[np.flatnonzero(assignment == largest)[-1]] = rank
    return assignment


def _rows_of(view: SmoothedView, nodes: torch.Tensor) -> SmoothedView:
    """Return the rows of a view that belong to some nodes."""
    return replace(
        view,
        points=view.points[nodes],
        kmeans=view.kmeans[nodes.numpy()],
        clusters=view.clusters[nodes.numpy()],
        projection=None,
    )


def assembled(
    results: list[RankResult], config: Config, engine: str, device: str
) -> TrainingResult:
    """Join the results of the ranks, in the order of the nodes and pairs of the whole graph."""
    nodes = np.concatenate([rank.nodes for rank in results])
    pairs = np.concatenate([rank.pairs for rank in results])

    def in_order(places: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
        """Join the rows of all ranks and move each row to its place."""
        joined_parts = np.concatenate(parts)
        ordered = np.empty_like(joined_parts)
        ordered[places] = joined_parts
        return ordered

    clusters = in_order(nodes, [rank.clusters for rank in results])
    embedding = in_order(nodes, [rank.embedding for rank in results])
    probs = in_order(nodes, [rank.probs for rank in results])
    assignments, labels_from = {"head": clusters}, "head"
    kmeans = [rank.kmeans for rank in results if rank.kmeans is not None]
    code = [rank.code for rank in results if rank.code is not None]
    if kmeans and code:
        assignments |= {"kmeans": in_order(nodes, kmeans), "code": in_order(nodes, code)}
        labels_from = config.model.labels
    ends = in_order(pairs, [rank.ends.T for rank in results])
    width = index_dtype(len(nodes), len(pairs))
    src, dst = torch.from_numpy(ends).to(width).T.contiguous()
    return TrainingResult(
        clusters=assignments[labels_from],
        assignments=assignments,
        labels_from=labels_from,
        probs=probs,
        embedding=embedding,
        graph=Graph(len(nodes), src, dst),
        weight=in_order(pairs, [rank.weight for rank in results]),
        observed=in_order(pairs, [rank.observed for rank in results]),
        loss=results[0].loss,
        restart_losses=[results[0].loss["total"]],
        engine=engine,
        device=device,
        epoch_seconds=results[0].epoch_seconds,
        warnings=empty_clusters(assignments[labels_from], probs.shape[1], labels_from),
    )
