"""Meta-attack: node pairs flip whose change harms a classifier trained on the graph the most.

Zuegner and Guennemann (2019), Meta-Self, by the protocol of the USER paper's authors: every node is
attacked, the surrogate is trained on all labels there are, and nothing is asked of the degrees that
come out, but that no node loses its last edge. A node without a label is taken to have the class
that a surrogate trained on the clean graph gives it.

This is the one kind of noise that reads labels. They choose which pairs flip, and nothing else:
whatever learns from the attacked graph sees that graph alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize

from user_dgl.config import AttackConfig
from user_dgl.data import UNLABELLED
from user_dgl.errors import InputError
from user_dgl.features.matrix import FeatureMatrix
from user_dgl.graph import Graph
from user_dgl.perturb.base import Perturbed, compare, count_flips
from user_dgl.perturb.surrogate import PairGradient, Surrogate, needed_bytes
from user_dgl.runtime.machine import machine_memory_mb, resident_mb

# Above so many nodes, form auto is large.
MAX_EXACT = 5000
# For each flip wanted: how many of the best pairs are kept, and nodes drawn at least.
_KEPT, _DRAWN = 64, 16
_NONE, _LOWEST = np.empty(0, dtype=np.int64), float(np.finfo(np.float32).min)


@dataclass(frozen=True, eq=False)
class Victim:
    """What an attack sees beside the graph.

    Attributes
    ----------
    feat : scipy CSR (N, F) or None
        Without features, each node is a feature of its own.
    labels : int64 (N,) or None
        0..C-1, or `UNLABELLED`.
    """

    feat: sp.csr_matrix | None = None
    labels: np.ndarray | None = None


def form_of(settings: AttackConfig, num_nodes: int) -> str:
    """``exact`` or ``large``."""
    if settings.form != "auto":
        return settings.form
    return "exact" if num_nodes <= MAX_EXACT else "large"


def metattack(
    graph: Graph,
    rate: float,
    seed: int,
    settings: AttackConfig,
    victim: Victim,
    excluded: np.ndarray | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Perturbed:
    """Flip ``round(rate * E)`` distinct pairs, greedily, by the meta-gradient.

    Form ``exact`` takes the gradient anew before each flip and compares all pairs: time grows with
    N^2, memory does not. Form ``large`` takes it ``settings.steps`` times, and each time flips its
    share of the best among all pairs of ``settings.block_nodes`` nodes drawn anew (16 for each flip
    if that is more), and those that earlier draws have left; of each node one pair.

    Parameters
    ----------
    graph : Graph
        Clean, N nodes, E edges.
    rate : float
        Flips as a share of the edges.
    seed : int
        Of the surrogates' first weights and of the nodes drawn.
    settings : AttackConfig
    victim : Victim
    excluded : int64 (M,), optional
        Keys ``src * N + dst`` of pairs that are not flipped.
    log : callable
        Gets each line for people.

    Returns
    -------
    Perturbed

    Raises
    ------
    InputError
        No labels, or of one class only; more flips than pairs, or than leave each node an edge; a
        surrogate that diverges; more memory than the machine has.
    """
    budget = count_flips(graph, rate, _NONE if excluded is None else excluded)
    if not budget:
        return compare(graph, graph)
    form, attacked, losses, told = form_of(settings, graph.num_nodes), graph, [], 0
    log(f"Meta-attack: {budget} flips, form {form}")
    for step in attack_steps(graph, budget, seed, settings, victim, excluded):
        attacked, loss, flips = step
        losses.append(loss)
        if 10 * flips // budget > told:
            told = 10 * flips // budget
            log(f"Meta-attack: {flips} of {budget} flips, loss {loss:.4f}")
    notes = [
        f"meta-attack, form {form}: {budget} flips in {len(losses)} steps; loss of the surrogate "
        f"before the first {losses[0]:.4f}, before the last {losses[-1]:.4f}"
    ]
    if form == "exact" and settings.form == "auto":
        notes += [
            f"data.noise.attack.{name} has no effect up to {MAX_EXACT:,} nodes"
            for name in ("steps", "block_nodes")
            if getattr(settings, name) != getattr(AttackConfig, name)
        ]
    return replace(compare(graph, attacked), notes=tuple(notes))


def attack_steps(
    graph: Graph,
    budget: int,
    seed: int,
    settings: AttackConfig,
    victim: Victim,
    excluded: np.ndarray | None = None,
) -> Iterator[tuple[Graph, float, int]]:
    """The steps of `metattack`, whose first n of form ``exact`` are those of a budget of n.

    Parameters
    ----------
    budget : int
        Flips, at least one and no more than there are pairs.

    Yields
    ------
    Graph, float, int
        The graph after the step, the surrogate's loss before it, the flips so far.

    Raises
    ------
    InputError
        See `metattack`.
    """
    surrogate = _surrogate(graph, settings, victim, seed)
    at_once, most_nodes = 1, graph.num_nodes
    if form_of(settings, graph.num_nodes) == "large":
        at_once = -(-budget // settings.steps)
        # Of each node one pair: where there are few nodes for the flips, bad ones would follow.
        most_nodes = min(max(settings.block_nodes, _DRAWN * at_once), graph.num_nodes)
    rng = np.random.default_rng([seed, 13])
    search = _Search(graph, most_nodes, rng, _NONE if excluded is None else excluded)
    while len(search.flipped) < budget:
        gradient, loss = surrogate.meta_gradient(search.graph)
        if not np.isfinite(loss):
            raise InputError(
                "data.noise.kind=metattack: the training of the surrogate diverges: lower "
                "data.noise.attack.surrogate_lr"
            )
        search.flip(gradient, min(at_once, budget - len(search.flipped)))
        del gradient  # it is as large as the next one
        yield search.graph, loss, len(search.flipped)


def _surrogate(graph: Graph, settings: AttackConfig, victim: Victim, seed: int) -> Surrogate:
    """The surrogate, with a class for every node."""
    labels = np.full(graph.num_nodes, UNLABELLED) if victim.labels is None else victim.labels
    known = labels != UNLABELLED
    classes = np.zeros(graph.num_nodes, dtype=np.int64)
    present, classes[known] = np.unique(labels[known], return_inverse=True)
    num_classes = len(present)
    if num_classes < 2:
        raise InputError(
            f"data.noise.kind=metattack: the data have labels of {num_classes} classes, and the "
            "attack needs 2 or more: name a file of them by data.labels, or use random_flip"
        )
    feat = sp.identity(graph.num_nodes, np.float32, "csr") if victim.feat is None else victim.feat
    expected = resident_mb() + needed_bytes(feat, graph.num_edges, num_classes, settings) / 1e6
    if expected > machine_memory_mb():
        raise InputError(
            f"data.noise.kind=metattack would need about {expected / 1000:.1f} GB of memory and "
            f"the machine has {machine_memory_mb() / 1000:.1f}: lower "
            "data.noise.attack.surrogate_epochs"
        )
    labelled, generator = torch.from_numpy(known), torch.Generator().manual_seed(seed)
    # Rows of length 1, so that a learning rate means the same whatever the features are. How far
    # the surrogate gets with it decides what the attack is worth against other models: one that
    # fits every label sees gain in spoiling single nodes only.
    surrogate = Surrogate(
        FeatureMatrix(normalize(feat)), torch.from_numpy(classes), labelled, settings, generator
    )
    if known.all():
        return surrogate
    predicted = surrogate.predict(graph)
    return replace(surrogate, labels=torch.where(labelled, surrogate.labels, predicted))


class _Search:
    """The graph under attack.

    Attributes
    ----------
    graph : Graph
        With the flips so far.
    flipped : int64 ndarray
        Their keys, sorted.
    """

    def __init__(
        self, graph: Graph, most_nodes: int, rng: np.random.Generator, excluded: np.ndarray
    ):
        self.graph, self.flipped = graph, _NONE
        self._most_nodes, self._rng, self._excluded = most_nodes, rng, excluded
        self._left = _NONE  # good pairs of earlier draws

    def flip(self, gradient: PairGradient, count: int) -> None:
        """Flip ``count`` pairs, or as many as the candidates allow; at least one.

        Raises
        ------
        InputError
            No pair is left.
        """
        num_nodes = self.graph.num_nodes
        keys = _NONE
        if self._most_nodes < num_nodes:
            nodes = np.sort(self._rng.choice(num_nodes, self._most_nodes, replace=False))
            keys = self._candidates(gradient, nodes, _KEPT * count)
            chosen = _apart(keys, num_nodes, count)
        if not len(keys):
            kept = _KEPT * count if count > 1 else 1
            keys = best_pairs(gradient, self.graph, np.arange(num_nodes), self._fixed(), kept)[0]
            chosen = _apart(keys, num_nodes, count)
        if not len(keys):
            raise InputError(
                f"data.noise.rate: after {len(self.flipped)} flips no pair is left that would "
                "leave every node an edge: lower the rate"
            )
        self._left = np.setdiff1d(keys[: _KEPT * count], chosen, assume_unique=True)
        self.flipped = np.sort(np.concatenate([self.flipped, chosen]))
        keys = np.setxor1d(self.graph.keys, chosen, assume_unique=True)
        self.graph = Graph.from_keys(num_nodes, keys)

    def _candidates(self, gradient: PairGradient, nodes: np.ndarray, most: int) -> np.ndarray:
        """Keys of the best pairs of some nodes and of what was left, best first."""
        # Edges as any other pair: were all of them candidates, most flips would be removals, of
        # which the pairs as a whole hold few that are worth it.
        fixed = self._fixed()
        keys, gain = best_pairs(gradient, self.graph, nodes, fixed, most)
        others = np.setdiff1d(self._left, np.union1d(fixed, keys))
        u, v = (torch.from_numpy(end) for end in np.divmod(others, self.graph.num_nodes))
        of_others = gradient.pairs(u, v).numpy()
        of_others[self.graph.positions(others) >= 0] *= -1
        keys, gain = np.concatenate([keys, others]), np.concatenate([gain, of_others])
        return keys[np.lexsort((keys, -gain))]

    def _fixed(self) -> np.ndarray:
        """Keys of pairs that may not flip (any more), sorted."""
        graph, last = self.graph, self.graph.degree == 1
        last = last.index_select(0, graph.src) | last.index_select(0, graph.dst)
        return np.unique(np.concatenate([self._excluded, self.flipped, graph.keys[last.numpy()]]))


def best_pairs(
    gradient: PairGradient,
    graph: Graph,
    nodes: np.ndarray,
    fixed: np.ndarray,
    most: int,
    at_once: int = 2**20,
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of some nodes whose flip raises the loss most, to first order.

    Parameters
    ----------
    gradient : PairGradient
    graph : Graph
    nodes : int64 (B,)
        Ascending.
    fixed : int64 (M,)
        Keys of pairs to leave out, sorted.
    most : int
        Pairs wanted.
    at_once : int
        Pairs that are compared at a time.

    Returns
    -------
    keys, gain : int64, float (at most ``most``,)
        Best first.
    """
    place = np.full(graph.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))

    def among(keys):  # positions of both ends in `nodes`; the first ones ascend
        u, v = (place[end] for end in np.divmod(keys, graph.num_nodes))
        both = (u >= 0) & (v >= 0)
        return u[both], v[both]

    def inside(ends, start):  # where the block from that row on has them
        u, v = ends
        part = slice(*np.searchsorted(u, [start, start + size]))
        return torch.from_numpy(u[part] - start), torch.from_numpy(v[part] - start)

    edges, fixed = among(graph.keys), among(fixed)
    ids = torch.from_numpy(nodes)
    size = max(at_once // len(nodes), 1)
    keys, gain = _NONE, np.empty(0, dtype=np.float32)
    for start in range(0, len(nodes), size):
        block = gradient.block(ids[start : start + size], ids[start:])
        block[inside(edges, start)] *= -1
        block[inside(fixed, start)] = -torch.inf
        # Each pair once.
        square = block[:, : len(block)]
        square.masked_fill_(torch.ones_like(square, dtype=torch.bool).tril(), -torch.inf)
        if len(gain) < most:
            least = float(block.flatten().topk(min(most, block.numel())).values[-1])
        else:
            least = float(gain[-1])
        # Of fixed pairs none, however few others there are.
        row, column = (block >= max(least, _LOWEST)).nonzero(as_tuple=True)
        found = block[row, column].numpy()
        row, column = nodes[row.numpy() + start], nodes[column.numpy() + start]
        keys = np.concatenate([keys, row * graph.num_nodes + column])
        gain = np.concatenate([gain, found])
        order = np.argsort(-gain, kind="stable")[:most]
        keys, gain = keys[order], gain[order]
    return keys, gain


def _apart(keys: np.ndarray, num_nodes: int, count: int) -> np.ndarray:
    """The first ``count`` pairs that share no node with one before them, sorted keys."""
    chosen, taken = [], set()
    for key in keys.tolist():
        ends = divmod(key, num_nodes)
        if taken.isdisjoint(ends):
            chosen.append(key)
            taken.update(ends)
            if len(chosen) == count:
                break
    return np.array(sorted(chosen), dtype=np.int64)
