"""The data of each process of a distributed run: a part of the graph and plans of exchange."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from user_dgl.clustering.smoothed_view import SmoothedView
from user_dgl.features.matrix import ColumnStatistics
from user_dgl.graph import Graph
from user_dgl.graph.parts import Part, parts_of


@dataclass(frozen=True, eq=False)
class ExchangePlan:
    """The rows that a rank sends, and how many rows it exchanges with each rank.

    Attributes
    ----------
    sent : int64 Tensor
        Places of the own rows that are sent, those for rank 0 first.
    sent_counts, received_counts : tuple of int
        Number of rows sent to and received from each rank.
    """

    sent: torch.Tensor
    sent_counts: tuple[int, ...]
    received_counts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Shard:
    """The part of the graph that a rank holds.

    Attributes
    ----------
    part : Part
    nodes : ExchangePlan
        Exchanges rows of nodes: the own nodes, followed by the halo in the order of the part.
    pairs : ExchangePlan
        Exchanges rows of pairs: the owned pairs in the order of the part, followed by the other
        pairs of the part by owner.
    pair_place : int64 Tensor (p,)
        Place of each pair of the part in the order of ``pairs``.
    """

    part: Part
    nodes: ExchangePlan
    pairs: ExchangePlan
    pair_place: torch.Tensor


def shards_of(graph: Graph, assignment: np.ndarray, num_ranks: int) -> list[Shard]:
    """Make the shards of all ranks from an assignment (N,) of the nodes to 0..num_ranks-1.

    Parameters
    ----------
    graph : Graph
        Pairs of A'.
    assignment : int64 ndarray (N,)
    num_ranks : int

    Raises
    ------
    ValueError
        A rank has no nodes.
    """
    parts = parts_of(graph, assignment, num_ranks)
    if len(parts) < num_ranks:
        raise ValueError(f"nodes for {len(parts)} of {num_ranks} ranks")
    own_nodes = [part.nodes[: part.num_owned].numpy() for part in parts]
    # Positions of each rank's owned pairs in the whole graph, in the order of its part.
    own_pairs = [part.pairs[part.owned].numpy() for part in parts]
    node_plans = _exchange_plans(
        own_nodes, [(part.halo.numpy(), assignment[part.halo.numpy()]) for part in parts]
    )
    src = graph.src.numpy()
    foreign, places = [], []
    for part in parts:
        mine = part.owned.numpy()
        others = np.flatnonzero(~mine)
        pairs = part.pairs.numpy()[others]
        owner = assignment[src[pairs]]
        order = np.lexsort((pairs, owner))
        place = np.empty(len(mine), dtype=np.int64)
        place[mine] = np.arange(mine.sum())
        place[others[order]] = mine.sum() + np.arange(len(others))
        foreign.append((pairs[order], owner[order]))
        places.append(torch.from_numpy(place))
    pair_plans = _exchange_plans(own_pairs, foreign)
    return [Shard(*fields) for fields in zip(parts, node_plans, pair_plans, places, strict=True)]


def _exchange_plans(
    own: list[np.ndarray], wanted: list[tuple[np.ndarray, np.ndarray]]
) -> list[ExchangePlan]:
    """Make the plans of all ranks from the ids that each owns, and those it wants with owners."""
    num_ranks = len(own)
    counts = np.array([np.bincount(owner, minlength=num_ranks) for _, owner in wanted])
    place = [np.argsort(ids, kind="stable") for ids in own]
    plans = []
    for rank in range(num_ranks):
        ascending = own[rank][place[rank]]
        sent = [
            place[rank][np.searchsorted(ascending, ids[owner == rank])] for ids, owner in wanted
        ]
        plans.append(
            ExchangePlan(
                torch.from_numpy(np.concatenate(sent)),
                tuple(counts[:, rank].tolist()),
                tuple(counts[rank].tolist()),
            )
        )
    return plans


@dataclass(frozen=True, eq=False)
class RankData:
    """The data and results of preparation that a rank needs.

    Attributes
    ----------
    shard : Shard
    num_nodes, num_pairs, num_observed : int
        Sizes of the whole graph.
    feat : scipy CSR (n, F)
        Features of the own nodes.
    columns : ColumnStatistics
        Statistics of all nodes.
    observed : bool Tensor (p,)
        Which pairs of the part are observed edges.
    edges : int64 Tensor (e,)
        Positions, in the observed graph, of the observed edges of the part, in the part's order.
    first_weight : Tensor (p,) or None
        Initial weights of the pairs in A'. None until the ranks have found them.
    view : SmoothedView or None
        The view with the points and clusters of the own nodes. None until the ranks have made it,
        and for encoders that need none.
    digest : str
        Digest of all pairs and features, to recognise them when a run resumes.
    """

    shard: Shard
    num_nodes: int
    num_pairs: int
    num_observed: int
    feat: sp.csr_matrix
    columns: ColumnStatistics
    observed: torch.Tensor
    edges: torch.Tensor
    first_weight: torch.Tensor | None
    view: SmoothedView | None
    digest: str
