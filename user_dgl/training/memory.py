"""How much memory a run will take, foretold before it trains."""

import math
from typing import NamedTuple

import scipy.sparse as sp
import torch

from user_dgl.config import Config
from user_dgl.errors import InputError
from user_dgl.evaluation.floors import smoothed_columns
from user_dgl.features.nearest import COMPARED, COMPARED_REDUCED, INDEX_COLUMNS, MAX_EXACT
from user_dgl.graph.parts import METIS_EDGES_PER_NODE
from user_dgl.runtime.allocator import glibc
from user_dgl.runtime.machine import (
    available_memory_mb,
    machine_memory_mb,
    peak_memory_mb,
    resident_mb,
)

# What a run holds at its peak, counted in blocks of its tensors and checked against measured runs.
_BYTES_PER_FLOAT = 4
# The pair as such (ends, both directions, their pair), its first weight.
_PAIR = 8 + 16 + 4
# Weight, normalised weight and what autograd keeps of them; each spread over both directions.
_PAIR_WEIGHTED = 12 + 16
# Parameter, gradient, moments of Adam, gradients on the way.
_PAIR_LEARNED = 16 + 12
# Blocks (N, width) at once: of the first layer, each further one and the assignment; with dropout.
_FIRST_LAYER, _NEXT_LAYER, _ASSIGNMENT, _DROPOUT = 4.6, 3.4, 5.0, 1.8
# A pair drawn for a non-edge: its ends in their orders and its score. Engine dgl gathers rows for
# it, so many blocks (S, width).
_DRAWN, _DRAWN_ROWS = 60, 4.2
# Blocks (N, components) of the critic and of the view.
_CRITIC, _VIEW = 8.5, 6.0
# The same of the terms of pairs; an edge with its random pairs and their terms; examples fitted.
_TERMS, _EXAMPLE, _EXAMPLES_FITTED = 6.0, 450, 200e6
# A feature that is not 0, with its column, in X and in its transpose; in float64 and in what the
# critic, the view and `FeatureMatrix` make of it before the first epoch.
_FEATURE, _FEATURE_PREPARED = 16, 26
# Blocks of the search for neighbours.
_SEARCH = 250e6
# Dense smoothed features of the floors, and what comes of them.
_FLOORS = 1.2
_FIXED = 60e6
# In parts: positions and ends of the pairs that a part touches; of each pair its first and
# last weight, the parameter and its moments; what METIS holds of an edge.
_KEPT_PAIR, _PARAMETER = 17, 4 + 4 * 4
_METIS_EDGE = 130
# Of the blocks of a node, how many a row of the halo has: those that products read and give back.
_HALO_SHARE = 0.4

_CPU = torch.device("cpu")
# With `freed_memory_kept` blocks fit into each other's place less tightly.
_KEPT_SHARE = 1.35


class MemoryPlan(NamedTuple):
    """Peak expected in 10^6 bytes, and whether training is to keep freed memory for itself."""

    expected_mb: float
    keeps_freed: bool


def plan_memory(
    config: Config,
    num_edges: int,
    feat: sp.csr_matrix,
    device: torch.device = _CPU,
    num_processes: int = 1,
    halo: int = 0,
    beside: float = 0.0,
) -> MemoryPlan:
    """Highest resident set that a run is expected to reach.

    Counts from what the process holds now, when data and features are loaded. A full batch keeps
    freed memory, which is faster, where half of what is available is enough for that.

    Parameters
    ----------
    config : Config
    num_edges : int
        Observed pairs.
    feat : scipy CSR (N, F)
    device : torch.device
        What a GPU holds counts there, see `check_memory`.
    num_processes : int
        That share the machine.
    halo : int
        Nodes of other processes whose rows come in at each product.
    beside : float
        Bytes that training holds beside the model and what its encoder computes.
    """
    now = resident_mb()
    if config.train.mode == "partition":
        added = _partition_bytes(config, num_edges, feat)
        return MemoryPlan(max(peak_memory_mb(), now + added / 1e6), False)
    before = _preparation_bytes(config, num_edges, feat)
    step = 0.0 if device.type == "cuda" else beside + _step_bytes(config, num_edges, feat, halo)
    if step and glibc() is not None:
        added = (_FIXED + max(_KEPT_SHARE * step, before)) / 1e6
        if added < available_memory_mb() / 2 / num_processes:
            return MemoryPlan(max(peak_memory_mb(), now + added), True)
    added = (_FIXED + max(step, before)) / 1e6
    return MemoryPlan(max(peak_memory_mb(), now + added), False)


def _step_bytes(config, num_edges, feat, halo=0) -> float:
    """Bytes that training a full batch holds at its peak, the model included."""
    structure, model, train = config.structure, config.model, config.train
    num_nodes = feat.shape[0]
    candidates = structure.candidates
    num_pairs = num_edges + (candidates.pairs_per_node * num_nodes if structure.learnable else 0)
    learns = config.learns_structure
    per_pair = _PAIR_WEIGHTED + (_PAIR_LEARNED if learns else 0)
    copies = train.restarts if learns and not structure.shared else 1
    pairs = num_pairs * (_PAIR + copies * per_pair)
    if num_pairs > num_edges:  # the observed graph stays beside the one with candidates
        pairs += num_edges * _PAIR
    if not model.traits.learns:
        width = 8.0 * min(4 * model.most_clusters, 64)
    else:
        first, *rest = model.hidden_feats
        width = train.restarts * (_FIRST_LAYER * first + _NEXT_LAYER * sum(rest))
        if model.dropout:
            width += train.restarts * _DROPOUT * sum(model.hidden_feats)
        more = model.traits.output_blocks - 1
        width += train.restarts * _NEXT_LAYER * more * model.hidden_feats[-1]
        width *= model.traits.passes
        pairs += _DRAWN * _drawn_pairs(config) * num_nodes
        if structure.engine == "dgl":
            width += _DRAWN_ROWS * _drawn_pairs(config) * model.hidden_feats[-1]
    assignment = _ASSIGNMENT + (_DROPOUT if model.logit_dropout else 0)
    width += train.restarts * assignment * model.most_clusters
    rows = num_nodes + _HALO_SHARE * halo
    return pairs + rows * _BYTES_PER_FLOAT * width + feat.nnz * _FEATURE


def _drawn_pairs(config) -> int:
    """Pairs drawn for non-edges, over N, at a time."""
    if config.model.kind != "user":
        return config.baseline.samples_per_node or 0
    draws = config.loss.reconstruction_weight or config.draws_for_supporting
    return config.train.restarts * config.loss.reconstruction_samples if draws else 0


def _preparation_bytes(config, num_edges, feat) -> float:
    """Bytes that the stages before and after training hold at their peak."""
    structure, model = config.structure, config.model
    num_nodes, num_features = feat.shape
    before = 0.0
    if structure.learnable and structure.prior == "critic":
        before = _CRITIC * min(structure.critic.num_components, num_features)
    if not model.traits.learns:
        before = max(before, _VIEW * min(model.smooth.num_components, num_features))
    before = num_nodes * _BYTES_PER_FLOAT * before + num_edges * _PAIR
    before += feat.nnz * _FEATURE_PREPARED
    links = _link_bytes(config, num_edges, feat)
    return max(before, links, _index_bytes(config, feat), _floor_bytes(config, feat))


def _floor_bytes(config, feat) -> float:
    """Bytes of the floors, which run after the training."""
    if not config.eval.floors or config.task == "link_prediction":
        return 0.0
    num_nodes, num_features = feat.shape
    columns = smoothed_columns(num_nodes, num_features, config.model.most_clusters)
    return _FLOORS * _BYTES_PER_FLOAT * num_nodes * columns


def _link_bytes(config, num_edges, feat) -> float:
    """Bytes of learning what tells edges from random pairs."""
    structure = config.structure
    as_prior = structure.learnable and structure.prior == "link_critic"
    if config.task != "link_prediction" and not as_prior:
        return 0.0
    num_nodes, num_features = feat.shape
    columns = min(structure.critic.num_components, num_features)
    bytes_ = num_nodes * _BYTES_PER_FLOAT * _TERMS * columns + num_edges * (_PAIR + _EXAMPLE)
    fitted = min(1.0, num_edges / 70_000) * _EXAMPLES_FITTED
    return bytes_ + fitted + feat.nnz * _FEATURE_PREPARED


def _index_bytes(config, feat) -> float:
    """Bytes of the search for feature neighbours."""
    num_nodes, num_features = feat.shape
    if not config.structure.candidates.feature_knn or num_nodes <= MAX_EXACT:
        return 0.0
    # The points, a sample of them and their codes; the rows found; what a block compares.
    columns = min(num_features, INDEX_COLUMNS)
    found = COMPARED_REDUCED if num_features > INDEX_COLUMNS else COMPARED
    return num_nodes * _BYTES_PER_FLOAT * (1.3 * columns + found) + _SEARCH


def _partition_bytes(config, num_edges, feat) -> float:
    """The same where one batch of parts is trained at a time."""
    structure, model, partition = config.structure, config.model, config.train.partition
    num_nodes, num_features = feat.shape
    candidates = structure.candidates
    num_pairs = num_edges + (candidates.pairs_per_node * num_nodes if structure.learnable else 0)
    batches = max(partition.num_parts / partition.parts_per_batch, 1.0)
    # A quarter of the pairs cut and touched twice, each with an end in a halo: an upper guess.
    cut = 0.0 if batches == 1 else 0.25
    touched = num_pairs * (1 + cut) / batches
    # Of the ends of cut pairs, drawn anywhere, so many are distinct: an upper guess too.
    ends = 2 * cut * num_pairs / batches
    near = num_nodes / batches + num_nodes * -math.expm1(-ends / max(num_nodes, 1))
    kept_pair = 8 + _KEPT_PAIR * (1 + cut) + _PARAMETER
    kept = num_pairs * kept_pair + num_nodes * _BYTES_PER_FLOAT * (
        model.most_clusters + sum(model.hidden_feats)
    )
    first, *rest = model.hidden_feats
    width = _FIRST_LAYER * first + _NEXT_LAYER * sum(rest) + _ASSIGNMENT * model.most_clusters
    values = feat.nnz * near / max(num_nodes, 1)
    step = touched * (_PAIR + _PAIR_WEIGHTED + _PAIR_LEARNED) + values * 2 * _FEATURE
    step += near * _BYTES_PER_FLOAT * width
    before = feat.nnz * _FEATURE_PREPARED
    if structure.learnable and structure.prior == "critic":
        components = min(structure.critic.num_components, num_features)
        before += num_nodes * _BYTES_PER_FLOAT * _CRITIC * components + num_edges * _PAIR
    seen = min(num_pairs, METIS_EDGES_PER_NODE * num_nodes)
    cutting = seen * _METIS_EDGE if batches > 1 else 0.0
    others = _index_bytes(config, feat), _floor_bytes(config, feat)
    links = _link_bytes(config, num_edges, feat)
    return _FIXED + max(before, cutting, kept + step, kept + links, *others)


def check_memory(
    config: Config,
    num_edges: int,
    feat: sp.csr_matrix,
    device: torch.device = _CPU,
    beside: float = 0.0,
) -> tuple[str, MemoryPlan]:
    """One line on the memory that a run will take, and the plan; refuses what cannot fit.

    Raises
    ------
    InputError
        The peak expected is more than the machine or its GPU has.
    """
    plan = plan_memory(config, num_edges, feat, device, beside=beside)
    expected, there = plan.expected_mb, machine_memory_mb()
    line = f"Memory: about {expected / 1000:.2f} GB at the peak, of {there / 1000:.1f}"
    if device.type == "cuda":
        # Of the machine's the stages before training are foretold, not what CUDA's libraries take.
        line += f", and {gpu_memory_line(config, num_edges, feat, device, beside=beside)}"
    if expected > there:
        if config.model.kind != "user":
            remedy = "lower baseline.hidden_feats"
        elif not config.model.traits.learns:
            remedy = "lower model.smooth.num_components and structure.critic.num_components"
        elif config.train.mode == "partition":
            remedy = "raise train.partition.num_parts, or lower model.hidden_feats"
        else:
            remedy = "set train.mode=partition, or lower model.hidden_feats or train.restarts"
        raise InputError(
            f"this run would need about {expected / 1000:.1f} GB of memory and the machine has "
            f"{there / 1000:.1f}: {remedy}"
        )
    return line, plan


def gpu_memory_line(
    config: Config,
    num_edges: int,
    feat: sp.csr_matrix,
    device: torch.device,
    num_processes: int = 1,
    halo: int = 0,
    beside: float = 0.0,
) -> str:
    """What training holds of a GPU that so many processes share; refuses what cannot fit.

    Raises
    ------
    InputError
    """
    expected = beside + _step_bytes(config, num_edges, feat, halo)
    # What torch keeps for its next tensor is free for this process.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = (torch.cuda.mem_get_info(device)[0] + kept) / num_processes
    if expected > free:
        user = config.model.kind == "user"
        widths = "model.hidden_feats or train.restarts" if user else "baseline.hidden_feats"
        raise InputError(
            f"training would need about {expected / 1e9:.1f} GB of the GPU, of which "
            f"{free / 1e9:.1f} are free for each of {num_processes} processes there: set "
            f"device=cpu, or lower {widths}"
        )
    return f"about {expected / 1e9:.2f} GB of the GPU's {free / 1e9:.1f} free"


def floors_memory_mb(config: Config, feat: sp.csr_matrix) -> float:
    """Peak of the floors of a process that holds what it holds now, in 10^6 bytes."""
    return resident_mb() + (_FIXED + _floor_bytes(config, feat)) / 1e6
