"""Estimate of the memory of a run, computed before training."""

import math
from dataclasses import replace
from typing import NamedTuple

import scipy.sparse as sp
import torch

from user_dgl.cleaning.posterior import feature_components
from user_dgl.clustering.num_clusters import asks_edges, edge_components
from user_dgl.config import Config, StructureConfig
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

# The peak of a run is estimated by counting its large tensors. The constants below were fitted to
# measured runs. A constant without another unit is in bytes.
_BYTES_PER_FLOAT = 4
# A pair: its ends, the entries of its two directions with the pair of each, and its first weight.
_PAIR = 8 + 16 + 4
# A pair in a forward pass: weight, normalised weight and the tensors that autograd keeps of them,
# and the weights of its two directions.
_PAIR_WEIGHTED = 12 + 16
# A pair whose weight is learned: parameter, gradient, moments of Adam, and intermediate gradients.
_PAIR_LEARNED = 16 + 12
# Number of blocks (N, width) that exist at the same time: of the first layer, of each further layer
# and of the assignment, and how many more of each with dropout.
_FIRST_LAYER, _NEXT_LAYER, _ASSIGNMENT, _DROPOUT = 4.6, 3.4, 5.0, 1.8
# A pair that is drawn as a non-edge: both ends in the orders of the products, and its score. The
# engine dgl also gathers the rows of both ends: number of blocks (number of drawn pairs, width).
_DRAWN, _DRAWN_ROWS = 60, 4.2
# Number of blocks (N, components) of the critic and of the view.
_CRITIC, _VIEW = 8.5, 7.0
# Number of blocks (N, columns of the view) in an epoch of the encoder ``smooth``.
_SMOOTHED_EACH_EPOCH, _SMOOTHED_ONCE = 8.0, 2.0
# Eigenvectors that are computed beside those of the graph view.
_MORE_EIGENVECTORS = 16
# Link terms: number of blocks (N, components), bytes of an edge with its random pairs and their
# terms, and bytes for fitting on the largest number of examples.
_TERMS, _EXAMPLE, _EXAMPLES_FITTED = 6.0, 450, 200e6
# The two judges of the prior ``posterior``: number of blocks (N, components); bytes of the terms of
# an edge, its scores and the matrices in which common neighbours are counted; bytes for fitting.
_JUDGES = 6.0
_JUDGED = 13 * 4 + 120
_JUDGES_FITTED = 90e6
# A feature that is not 0, with its column: in X and in its transpose, and before the first epoch in
# float64 and in the matrices that the critic, the view and `FeatureMatrix` make of it.
_FEATURE, _FEATURE_PREPARED = 16, 26
# Code length: number of blocks (clusters, features) of each replica.
_TABLES = 6.0
# Blocks of the search for neighbours.
_SEARCH = 250e6
# Number of dense matrices of smoothed features in the computation of the floors.
_FLOORS = 1.2
# Memory that every run needs beside its tensors.
_FIXED = 10e6
# Torch's compiler, which the optimisers of torch import. USER has a step of its own.
_COMPILER = 60e6
# Training in parts. A pair that a part touches: its position and its ends. A pair of the graph: its
# first and last weight, and the parameter with its moments. An edge that METIS gets.
_KEPT_PAIR, _PARAMETER = 17, 4 + 4 * 4
_METIS_EDGE = 130
# The result of several processes: clusters and number of a node; of a pair its ends, weight,
# position and whether it is an edge of the data.
_GATHERED_NODE, _GATHERED_PAIR = 16, 29
# Share of the blocks of an own node that exist also for a node of the halo, because products read
# them or return them.
_HALO_SHARE = 0.4

_CPU = torch.device("cpu")
# With `freed_memory_kept` the blocks of an epoch need this many times the memory, because new
# blocks do not fill the places of freed blocks completely.
_KEPT_SHARE, _KEPT_SHARE_OF_BASELINES = 1.1, 1.35


class MemoryPlan(NamedTuple):
    """Plan for the memory of a run.

    Attributes
    ----------
    expected_mb : float
        Expected peak in 10^6 bytes.
    keeps_freed : bool
        Whether training keeps freed memory in the process, see `freed_memory_kept`.
    """

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
    num_pairs: int | None = None,
) -> MemoryPlan:
    """Estimate the largest resident set size of a run on the CPU side.

    The estimate starts from the memory that the process uses now, after data and features were
    loaded. Training on the whole graph keeps freed memory, which is faster, if the expected peak is
    then below half of the available memory.

    Parameters
    ----------
    config : Config
    num_edges : int
        Number of observed pairs.
    feat : scipy CSR (N, F)
    device : torch.device
        Device of the training. Memory of a GPU is not counted here, see `check_memory`.
    num_processes : int
        Number of processes that share the machine.
    halo : int
        Number of nodes of other processes whose rows this process receives for each product.
    beside : float
        Bytes that training needs in addition to the model and its encoder.
    num_pairs : int, optional
        Number of pairs of A', if it is known; else it follows from the settings.
    """
    now = resident_mb()
    if config.train.mode == "partition":
        added = _partition_bytes(config, num_edges, feat)
        return MemoryPlan(max(peak_memory_mb(), now + added / 1e6), False)
    before = _preparation_bytes(config, num_edges, feat, halo)
    step = 0.0
    if device.type != "cuda":
        step = beside + _step_bytes(config, num_edges, feat, halo, num_pairs)
    if step and glibc() is not None:
        kept = _KEPT_SHARE if config.model.kind == "user" else _KEPT_SHARE_OF_BASELINES
        added = (_fixed(config) + max(kept * step, before)) / 1e6
        if added < available_memory_mb() / 2 / num_processes:
            return MemoryPlan(max(peak_memory_mb(), now + added), True)
    added = (_fixed(config) + max(step, before)) / 1e6
    return MemoryPlan(max(peak_memory_mb(), now + added), False)


def _precision(config: Config) -> int:
    """Factor of the bytes of a float in training: 2 for float64."""
    return 2 if config.train.precision == "float64" else 1


def _most_clusters(config: Config) -> int:
    """Largest number of clusters that the run may have. It is set, see `check_num_clusters`."""
    most = config.model.most_clusters
    assert most is not None
    return most


def _step_bytes(
    config: Config,
    num_edges: int,
    feat: sp.csr_matrix,
    halo: int = 0,
    num_pairs: int | None = None,
) -> float:
    """Bytes at the peak of training on the whole graph, including the model."""
    structure, model, train = config.structure, config.model, config.train
    num_nodes = feat.shape[0]
    if num_pairs is None:
        more = structure.candidates.pairs_per_node if structure.learnable else 0
        num_pairs = num_edges + more * num_nodes
    learns = config.learns_structure
    size = _precision(config)
    per_pair = size * (_PAIR_WEIGHTED + (_PAIR_LEARNED if learns else 0))
    copies = train.restarts if learns and not structure.shared else 1
    pairs = num_pairs * (_PAIR + copies * per_pair)
    if num_pairs > num_edges:  # the observed graph is kept in addition to the pairs of A'
        pairs += num_edges * _PAIR
    if not model.traits.learns:
        # Where A' does not change, points are smoothed once, before the first epoch.
        blocks = _SMOOTHED_EACH_EPOCH if learns else _SMOOTHED_ONCE
        width = blocks * min(4 * _most_clusters(config), 64)
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
    width += train.restarts * assignment * _most_clusters(config)
    rows = num_nodes + _HALO_SHARE * halo
    code = _code_length_bytes(config, feat.shape[1], feat.nnz)
    return pairs + size * rows * _BYTES_PER_FLOAT * width + feat.nnz * _FEATURE + code


def _code_length_bytes(config: Config, num_features: int, num_values: float) -> float:
    """Bytes of the term ``code_length``: the pattern of the features and its tables (K, F)."""
    if not config.loss.code_length_weight or config.model.kind != "user":
        return 0.0
    columns = config.train.restarts * _most_clusters(config)
    return num_values * _FEATURE + _TABLES * _BYTES_PER_FLOAT * columns * num_features


def _drawn_pairs(config: Config) -> int:
    """Number of pairs per node that are drawn as non-edges and exist at the same time."""
    if config.model.kind != "user":
        return config.baseline.samples_per_node or 0
    draws = config.loss.reconstruction_weight or config.draws_for_supporting
    return config.train.restarts * config.loss.reconstruction_samples if draws else 0


def _preparation_bytes(config: Config, num_edges: int, feat: sp.csr_matrix, halo: int = 0) -> float:
    """Bytes at the peak of the stages before and after training."""
    structure, model = config.structure, config.model
    num_nodes, num_features = feat.shape
    before = _critic_blocks(structure, num_features)
    if not model.traits.learns:
        columns = min(model.smooth.num_components, num_features)
        if model.smooth.source == "graph":
            columns = min(columns, _most_clusters(config) + _MORE_EIGENVECTORS)
        before = max(before, _VIEW * columns)
    size = _BYTES_PER_FLOAT * _precision(config)
    before = (num_nodes + halo) * size * before + num_edges * _PAIR
    before += feat.nnz * _FEATURE_PREPARED
    if model.num_clusters == "auto" and asks_edges(model, num_nodes, num_features):
        # Vectors of the decomposition of the adjacency, as drawn (float64) and as multiplied.
        before += (num_nodes + halo) * 24.0 * (edge_components(model) + 10)
    # Several processes, which have a halo, do not ask the judges.
    judges = 0.0 if halo else _judge_bytes(structure, num_nodes, num_edges, num_features)
    links = _link_bytes(config, num_edges, feat)
    return max(before, judges, links, _index_bytes(config, feat), _floor_bytes(config, feat))


def _critic_blocks(structure: StructureConfig, num_features: int) -> float:
    """Floats of each node that the critic needs."""
    if not structure.learnable or structure.prior not in ("critic", "posterior"):
        return 0.0
    return _CRITIC * min(structure.critic.num_components, num_features)


def _judge_bytes(
    structure: StructureConfig, num_nodes: int, num_edges: int, num_features: int
) -> float:
    """Bytes of the two judges, which may be asked after the critic, and of fitting them."""
    if not structure.learnable or structure.prior != "posterior":
        return 0.0
    columns = min(feature_components(num_nodes), num_features)
    fitted = min(1.0, num_edges / 70_000) * _JUDGES_FITTED
    return num_nodes * _BYTES_PER_FLOAT * _JUDGES * columns + num_edges * (_PAIR + _JUDGED) + fitted


def _fixed(config: Config) -> float:
    """Bytes beside the tensors."""
    return _FIXED + _COMPILER * (config.model.kind != "user")


def _floor_bytes(config: Config, feat: sp.csr_matrix) -> float:
    """Bytes of the floors, which are computed after training."""
    if not config.eval.floors or config.task == "link_prediction":
        return 0.0
    num_nodes, num_features = feat.shape
    columns = smoothed_columns(num_nodes, num_features, _most_clusters(config))
    return _FLOORS * _BYTES_PER_FLOAT * num_nodes * columns


def _link_bytes(config: Config, num_edges: int, feat: sp.csr_matrix) -> float:
    """Bytes of fitting the classifier that distinguishes edges from random pairs."""
    structure = config.structure
    as_prior = structure.learnable and structure.prior == "link_critic"
    if config.task != "link_prediction" and not as_prior:
        return 0.0
    num_nodes, num_features = feat.shape
    columns = min(structure.critic.num_components, num_features)
    bytes_ = num_nodes * _BYTES_PER_FLOAT * _TERMS * columns + num_edges * (_PAIR + _EXAMPLE)
    fitted = min(1.0, num_edges / 70_000) * _EXAMPLES_FITTED
    return bytes_ + fitted + feat.nnz * _FEATURE_PREPARED


def _index_bytes(config: Config, feat: sp.csr_matrix) -> float:
    """Bytes of the search for neighbours in the features."""
    num_nodes, num_features = feat.shape
    structure = config.structure
    searches = structure.learnable and structure.candidates.feature_knn
    if not searches or num_nodes <= MAX_EXACT:
        return 0.0
    # The points, a sample of them and their codes, and the rows that are compared exactly.
    columns = min(num_features, INDEX_COLUMNS)
    found = COMPARED_REDUCED if num_features > INDEX_COLUMNS else COMPARED
    return num_nodes * _BYTES_PER_FLOAT * (1.3 * columns + found) + _SEARCH


def _partition_bytes(config: Config, num_edges: int, feat: sp.csr_matrix) -> float:
    """Bytes at the peak of a whole run that trains one batch of parts at a time."""
    structure, model, partition = config.structure, config.model, config.train.partition
    num_nodes, num_features = feat.shape
    candidates = structure.candidates
    num_pairs = num_edges + (candidates.pairs_per_node * num_nodes if structure.learnable else 0)
    batches = max(partition.num_parts / partition.parts_per_batch, 1.0)
    # Upper estimate: a quarter of the pairs is cut. Two batches touch a cut pair, and each of them
    # has one end in its halo.
    cut = 0.0 if batches == 1 else 0.25
    touched = num_pairs * (1 + cut) / batches
    # Upper estimate: the ends of cut pairs are uniform draws of nodes, and repeated draws count
    # once.
    ends = 2 * cut * num_pairs / batches
    near = num_nodes / batches + num_nodes * -math.expm1(-ends / max(num_nodes, 1))
    size = _precision(config)
    kept_pair = 8 + _KEPT_PAIR * (1 + cut) + size * _PARAMETER
    kept = num_pairs * kept_pair + size * num_nodes * _BYTES_PER_FLOAT * (
        _most_clusters(config) + sum(model.hidden_feats)
    )
    first, *rest = model.hidden_feats
    width = _FIRST_LAYER * first + _NEXT_LAYER * sum(rest) + _ASSIGNMENT * _most_clusters(config)
    values = feat.nnz * near / max(num_nodes, 1)
    step = touched * (_PAIR + size * (_PAIR_WEIGHTED + _PAIR_LEARNED)) + values * 2 * _FEATURE
    step += size * near * _BYTES_PER_FLOAT * width
    step += _code_length_bytes(config, num_features, values)
    before = feat.nnz * _FEATURE_PREPARED
    blocks = _critic_blocks(structure, num_features)
    if blocks:
        before += size * num_nodes * _BYTES_PER_FLOAT * blocks + num_edges * _PAIR
    seen = min(num_pairs, METIS_EDGES_PER_NODE * num_nodes)
    cutting = seen * _METIS_EDGE if batches > 1 else 0.0
    judges = _judge_bytes(structure, num_nodes, num_edges, num_features)
    others = judges, _index_bytes(config, feat), _floor_bytes(config, feat)
    links = _link_bytes(config, num_edges, feat)
    return _fixed(config) + max(before, cutting, kept + step, kept + links, *others)


def check_memory(
    config: Config,
    num_edges: int,
    feat: sp.csr_matrix,
    device: torch.device = _CPU,
    beside: float = 0.0,
) -> tuple[str, MemoryPlan]:
    """Check that the machine has enough memory for a run.

    Parameters
    ----------
    config, num_edges, feat, device, beside
        As in `plan_memory`.

    Returns
    -------
    str, MemoryPlan
        Line of the log about the expected memory, and the plan.

    Raises
    ------
    InputError
        The expected peak is more than the memory of the machine or of its GPU.
    """
    plan = plan_memory(config, num_edges, feat, device, beside=beside)
    expected, total = plan.expected_mb, machine_memory_mb()
    line = f"Memory: about {expected / 1000:.2f} GB at the peak, of {total / 1000:.1f}"
    if device.type == "cuda":
        # The estimate for the machine has the stages before training, but not CUDA's libraries.
        line += f", and {gpu_memory_line(config, num_edges, feat, device, beside=beside)}"
    if expected > total:
        if config.model.kind != "user":
            remedy = "lower baseline.hidden_feats, or take another model.kind"
        elif not config.model.traits.learns:
            remedy = "lower model.smooth.num_components and structure.critic.num_components"
        elif config.train.mode == "partition":
            remedy = "raise train.partition.num_parts, or lower model.hidden_feats"
        else:
            remedy = "lower model.hidden_feats or train.restarts"
            if _may_be_cut(config):
                remedy = f"set train.mode=partition, or {remedy}"
        raise InputError(
            f"this run would need about {expected / 1000:.1f} GB of memory and the machine has "
            f"{total / 1000:.1f}: {remedy}"
        )
    return line, plan


def _may_be_cut(config: Config) -> bool:
    """Whether these settings allow training in parts."""
    try:
        replace(config, train=replace(config.train, mode="partition"))
    except InputError:
        return False
    return True


def gpu_memory_line(
    config: Config,
    num_edges: int,
    feat: sp.csr_matrix,
    device: torch.device,
    num_processes: int = 1,
    halo: int = 0,
    beside: float = 0.0,
    num_pairs: int | None = None,
) -> str:
    """Check that a GPU has enough memory for training, and return a text for the log.

    Parameters
    ----------
    config, num_edges, feat, device, halo, beside, num_pairs
        As in `plan_memory`.
    num_processes : int
        Number of processes that share the GPU.

    Raises
    ------
    InputError
        The expected memory is more than this process's share of the free memory.
    """
    expected = beside + _step_bytes(config, num_edges, feat, halo, num_pairs)
    # Memory that torch has reserved but not allocated is free for this process.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = (torch.cuda.mem_get_info(device)[0] + kept) / num_processes
    if expected > free:
        if config.model.kind != "user":
            widths = "baseline.hidden_feats"
        elif not config.model.traits.learns:
            widths = "model.smooth.num_components"
        else:
            widths = "model.hidden_feats or train.restarts"
        raise InputError(
            f"training would need about {expected / 1e9:.1f} GB of the GPU, of which "
            f"{free / 1e9:.1f} are free for each of {num_processes} processes there: set "
            f"device=cpu, or lower {widths}"
        )
    return f"about {expected / 1e9:.2f} GB of the GPU's {free / 1e9:.1f} free"


def floors_memory_mb(config: Config, feat: sp.csr_matrix) -> float:
    """Peak in 10^6 bytes if this process computes the floors in addition to its present memory."""
    return resident_mb() + (_fixed(config) + _floor_bytes(config, feat)) / 1e6


def check_cutting(num_nodes: int, num_pairs: int) -> None:
    """Check that the machine has enough memory to cut the graph of A' into parts by METIS.

    Raises
    ------
    InputError
    """
    seen = min(num_pairs, METIS_EDGES_PER_NODE * num_nodes)
    expected, total = resident_mb() + seen * _METIS_EDGE / 1e6, machine_memory_mb()
    if expected > total:
        raise InputError(
            f"cutting the graph into parts would need about {expected / 1000:.1f} GB of memory and "
            f"the machine has {total / 1000:.1f}: run user-dgl partition on a larger machine; the "
            "parts can then be used here"
        )


def check_gathering(config: Config, num_nodes: int, num_pairs: int) -> None:
    """Check that the machine has enough memory for the result that the first process gathers.

    Parameters
    ----------
    config : Config
    num_nodes, num_pairs : int
        Sizes of the whole graph of A'.

    Raises
    ------
    InputError
    """
    model, clusters = config.model, _most_clusters(config)
    width = model.hidden_feats[-1] if model.traits.learns else min(4 * clusters, 64)
    of_node = _BYTES_PER_FLOAT * (width + clusters) + _GATHERED_NODE
    result = num_nodes * of_node + num_pairs * _GATHERED_PAIR
    # What the others sent, and the result that is made of it.
    expected, total = 2 * result / 1e6, machine_memory_mb()
    if expected > total:
        raise InputError(
            f"the first process would need about {expected / 1000:.1f} GB of memory to gather the "
            f"result and the machine has {total / 1000:.1f}: let it run on a larger machine"
        )
