"""The stages before training: critic, number of clusters, view, candidates and first weights.

Candidates, the link critic and a view of the graph without features need the whole graph. Critic,
number of clusters and view of the features run where the rows are, in one process or in several.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from threadpoolctl import threadpool_limits

from user_dgl.cleaning.posterior import NOISY
from user_dgl.cleaning.priors import Prior, prior_of
from user_dgl.clustering.num_clusters import num_clusters_curve
from user_dgl.clustering.smoothed_view import SmoothedView, graph_view, smoothed_view
from user_dgl.config import Config, StructureConfig
from user_dgl.errors import InputError
from user_dgl.features.rows import ALL, Rows
from user_dgl.graph import Graph
from user_dgl.graph.ops import resolve_engine
from user_dgl.runtime.progress import StageClock
from user_dgl.runtime.streams import Stream, stream_rng
from user_dgl.structure.candidates import (
    Pairs,
    draw_candidates,
    merge_candidates,
    static_candidates,
)

# Number of multiply-adds in a product with the features and the graph, below which one thread is
# used.
_SINGLE_THREAD_BELOW = 2**25


@dataclass(frozen=True, eq=False)
class Preparation:
    """Results of the stages before training.

    Attributes
    ----------
    config : Config
        Settings in which the number of clusters is set, also if it was ``auto``.
    num_clusters_curve : dict of int to float, or None
        Score of each number of clusters, see `user_dgl.clustering.num_clusters`. None if the number
        was given.
    prior : Prior
        First weights of the observed edges.
    view : SmoothedView or None
        Only with the encoder ``smooth``.
    static_candidates : list of Pairs
        Candidate pairs that are found once, such as neighbours by features. A refresh of the
        candidates may remove them, and does not find them again.
    """

    config: Config
    num_clusters_curve: dict[int, float] | None
    prior: Prior
    view: SmoothedView | None
    static_candidates: list[Pairs]


def prepare(
    graph: Graph,
    feat: sp.csr_matrix,
    config: Config,
    log: Callable[[str], None],
    held_out: np.ndarray | None = None,
    stages: StageClock | None = None,
) -> Preparation:
    """Run all stages before training. They run on the CPU.

    Parameters
    ----------
    graph : Graph
        Observed graph.
    feat : scipy CSR (N, F)
    config : Config
    log : callable
        Called with each line of the log.
    held_out : int64 (H,), optional
        Keys ``src * N + dst`` of pairs that no stage may learn from.
    stages : StageClock, optional
        Measures the stages.
    """
    stages = stages or StageClock()
    prepared = weigh_and_view(graph, feat, config, log, held_out, stages)
    return replace(prepared, static_candidates=candidates_that_stay(graph, feat, config, stages))


def candidates_that_stay(
    graph: Graph, feat: sp.csr_matrix, config: Config, stages: StageClock
) -> list[Pairs]:
    """Find the candidate pairs that are found once, on the whole graph."""
    if not config.structure.learnable:
        return []
    rng = stream_rng(config.seed, Stream.STATIC_CANDIDATES)
    with stages.stage("candidates"):
        return static_candidates(config.structure.candidates, graph, feat, rng)


def needs_whole_graph(config: Config) -> bool:
    """Whether `weigh_and_view` with these settings needs the whole graph in one process."""
    by_links = config.structure.learnable and config.structure.prior == "link_critic"
    return by_links or config.model.by_edges


def weigh_and_view(
    graph: Graph,
    feat: sp.csr_matrix,
    config: Config,
    log: Callable[[str], None],
    held_out: np.ndarray | None = None,
    stages: StageClock | None = None,
    held: Rows = ALL,
) -> Preparation:
    """Find first weights, the number of clusters and the view, without candidates.

    Parameters
    ----------
    graph : Graph
        Observed graph, or a local graph of it (`user_dgl.features.rows`).
    feat : scipy CSR (n, F)
    config, log, held_out, stages
        As for `prepare`.
    held : Rows
        The results are those of the local graph and of the own nodes. Several processes need
        settings that do not `needs_whole_graph`.
    """
    structure, model = config.structure, config.model
    stages = stages or StageClock()
    curve = None
    engine = resolve_engine(structure.engine)
    feat = feat.astype(config.train.precision, copy=False)
    with threads_for(graph, feat, config):
        weighs = structure.learnable and structure.prior != "uniform" and held.num_edges(graph)
        with stages.stage("critic") if weighs else nullcontext():
            prior = prior_of(structure, graph, feat, config.seed, engine, held_out, held)
        critic_scores = prior.critic_scores
        if critic_scores is not None and critic_scores.noise_share is not None:
            who = "Judges" if critic_scores.by_judges else "Critic"
            log(
                f"{who}: {100 * critic_scores.noise_share:.1f} % of the edges look like random "
                f"pairs; weights to the power {critic_scores.power:g}"
            )
            noisy = structure.prior == "posterior" and critic_scores.noise_share >= NOISY
            if noisy and not held.alone:
                log("Note: several processes share the graph, so that no judges are asked")
        if model.num_clusters == "auto":
            with stages.stage("num_clusters"):
                weight, seed = prior.weight, config.seed
                found = num_clusters_curve(graph, weight, feat, model, seed, engine, held)
                # Machines may round differently, and all processes must take the same number.
                curve = held.first(lambda: found)
            best, *others = sorted(curve, key=curve.__getitem__, reverse=True)
            log(f"Clusters: {best} suggested, then {', '.join(map(str, others[:2])) or 'none'}")
            model = replace(model, num_clusters=best)
            config = replace(config, model=model)
        view = None
        if not model.traits.learns:
            with stages.stage("view"):
                view = _view(graph, prior, feat, config, engine, held)
            for warning in view.warnings:
                log(f"Warning: {warning}")
            log(f"View: {view.name} chosen of {len(view.candidates)}")
    return Preparation(config, curve, prior, view, [])


def _view(
    graph: Graph, prior: Prior, feat: sp.csr_matrix, config: Config, engine: str, held: Rows
) -> SmoothedView:
    """Make the view that the encoder ``smooth`` starts from."""
    clusters, settings = config.model.known_clusters, config.model.smooth
    if settings.source == "graph":
        return graph_view(graph, clusters, config.seed)
    if config.learns_structure or config.task == "link_prediction":
        power = 1.0 if settings.weight_power is None else settings.weight_power
        settings = replace(settings, weight_power=power, axes=settings.axes or "leading")
    weight, seed = prior.weight, config.seed
    return smoothed_view(graph, weight, feat, settings, clusters, seed, engine, held)


def initial_pairs(
    graph: Graph,
    structure: StructureConfig,
    static: list[Pairs],
    rng: np.random.Generator,
    feat: sp.csr_matrix | None = None,
    held_out: np.ndarray | None = None,
) -> tuple[Graph, torch.Tensor]:
    """Return the first pairs of A' and whether each of them is an observed edge.

    Pairs whose keys are in ``held_out`` are left out.
    """
    drawn = list(static)
    if structure.learnable:
        drawn += draw_candidates(structure.candidates, graph, rng, feat=feat)
    return merge_candidates(graph, drawn, held_out)


def first_weight(
    num_pairs: int, observed: torch.Tensor, prior: Prior, structure: StructureConfig
) -> torch.Tensor:
    """First weight of each pair (P,): edges get it from the prior, candidates from the settings."""
    weight = torch.full((num_pairs,), structure.candidates.initial_weight)
    weight[observed] = prior.weight
    return weight


@contextmanager
def threads_for(graph: Graph, feat: sp.csr_matrix, config: Config) -> Iterator[None]:
    """Use one thread in the block if the graph is small, else as many as torch has.

    A second thread makes small products hardly faster, and it makes them much slower if the cores
    are shared with other processes. With one thread, the result for a small graph is also the same
    on any number of cores.
    """
    entries = feat.nnz + 2 * graph.num_edges
    model = config.model
    widths = model.hidden_feats if model.traits.learns else (64,)
    small = entries * max(widths) < _SINGLE_THREAD_BELOW
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if small else threads)
    try:
        with threadpool_limits(1 if small else None):
            yield
    finally:
        torch.set_num_threads(threads)


def check_num_clusters(config: Config) -> None:
    """Check that the number of clusters is set. There is no default for it.

    Raises
    ------
    InputError
        ``model.num_clusters`` is not set.
    """
    if config.model.num_clusters is None:
        raise InputError(
            "model.num_clusters is not set: say how many clusters to find, or auto (--clusters K)"
        )


def check_sizes(graph: Graph, feat: sp.csr_matrix | None, config: Config) -> None:
    """Check that the data have enough nodes and features for the settings.

    Raises
    ------
    InputError
        The number of clusters is not set or larger than the number of nodes, or there are no
        features.
    """
    check_num_clusters(config)
    if config.model.num_clusters == "auto":
        low = config.model.auto_clusters.low
        if low >= graph.num_nodes:
            raise InputError(
                f"model.auto_clusters.low={low}: expected less than the {graph.num_nodes} nodes "
                "given"
            )
    elif config.model.known_clusters > graph.num_nodes:
        raise InputError(
            f"{config.model.known_clusters} clusters asked for, {graph.num_nodes} nodes given"
        )
    if config.model.by_edges and not graph.num_edges:
        raise InputError("model.smooth.source=graph needs edges, and the graph has none")
    if feat is None:
        raise InputError("the data have no node features, which the encoder needs")
    if feat.shape[1] == 0:
        raise InputError("the node features have no columns")
