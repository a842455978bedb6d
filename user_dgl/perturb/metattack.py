"""Meta-attack: flips the pairs whose change harms a classifier trained on the graph most.

The attack is Meta-Self of Zuegner and Guennemann (2019), with the protocol of the authors of the
paper: every node is attacked, the surrogate is trained on all labels, and the degrees of the
attacked graph are not restricted, except that no node loses its last edge. A node without a label
gets the class that a surrogate trained on the clean graph predicts.

No other kind of noise reads labels. The labels decide only which pairs are flipped. Models that are
trained on the attacked graph do not see them.
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
from user_dgl.perturb.base import Perturbed, compare, count_flips, with_drawn_weights
from user_dgl.perturb.surrogate import PairGradient, Surrogate, needed_bytes
from user_dgl.runtime.machine import machine_memory_mb, resident_mb
from user_dgl.runtime.streams import Stream, stream_rng, torch_generator

# With more nodes than this, the form auto is large.
MAX_EXACT = 5000
# For each flip of a step: number of the best pairs that are kept, minimum of nodes drawn, and
# number of the best pairs that are weighed.
_KEPT, _DRAWN, _WEIGHED = 64, 16, 1024
Weigh = Callable[[Graph, np.ndarray], np.ndarray]
_NONE, _LOWEST = np.empty(0, dtype=np.int64), float(np.finfo(np.float32).min)


@dataclass(frozen=True, eq=False)
class Victim:
    """Features and labels that an attack uses besides the graph.

    Attributes
    ----------
    feat : scipy CSR (N, F) or None
        None: the identity matrix, so that each node has its own feature.
    labels : int64 (N,) or None
        Classes in 0..C-1, or `UNLABELLED`. None: no node has a label.
    """

    feat: sp.csr_matrix | None = None
    labels: np.ndarray | None = None


def form_of(settings: AttackConfig, num_nodes: int) -> str:
    """Return the form of the attack, ``exact`` or ``large``; ``auto`` depends on the nodes."""
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
    """Flip ``round(rate * E)`` distinct pairs, chosen greedily by the meta-gradient.

    * Form ``exact`` computes the gradient before each flip and compares all pairs. Its time grows
      with N^2, its memory does not.
    * Form ``large`` (not in the paper) has ``settings.steps`` steps. Each step computes the
      gradient once and flips several pairs. The candidates are all pairs among
      ``settings.block_nodes`` randomly drawn nodes (or 16 nodes for each flip, if that is more) and
      the best pairs that are left from earlier steps. A step flips at most one pair of each node.

    Parameters
    ----------
    graph : Graph
        The clean graph, N nodes, E edges.
    rate : float
        Number of flips as a share of the edges.
    seed : int
        Seed of the surrogates' first weights and of the drawn nodes.
    settings : AttackConfig
    victim : Victim
    excluded : int64 (M,), optional
        Keys ``src * N + dst`` of pairs that are not flipped.
    log : callable
        Called with each line of the log.

    Returns
    -------
    Perturbed
        The notes say how many flips and steps were done and how the surrogate's loss changed.

    Raises
    ------
    InputError
        There are labels of fewer than two classes; there are more flips than pairs, or than pairs
        whose flip leaves each node an edge; the training of the surrogate diverges; or the attack
        needs more memory than the machine has.
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
        f"{losses[0]:.4f} before the first step and {losses[-1]:.4f} before the last step"
    ]
    if form == "exact" and settings.form == "auto":
        notes += [
            f"data.noise.attack.{name} has no effect for graphs of up to {MAX_EXACT:,} nodes"
            for name in ("steps", "block_nodes")
            if getattr(settings, name) != getattr(AttackConfig, name)
        ]
    # Another generator than the one of the steps, so that the steps do not depend on weights.
    attacked = with_drawn_weights(attacked, graph, stream_rng(seed, Stream.METATTACK, 1))
    return replace(compare(graph, attacked), notes=tuple(notes))


def attack_steps(
    graph: Graph,
    budget: int,
    seed: int,
    settings: AttackConfig,
    victim: Victim,
    excluded: np.ndarray | None = None,
    weigh: Weigh | None = None,
) -> Iterator[tuple[Graph, float, int]]:
    """Do the steps of `metattack` one by one.

    In form ``exact`` the first n steps do not depend on the budget.

    Parameters
    ----------
    graph, seed, settings, victim, excluded
        As in `metattack`.
    budget : int
        Number of flips, at least one and at most the number of pairs.
    weigh : callable, optional
        Function of the graph and of the keys (M,) of pairs. The gain of each pair is multiplied by
        what it returns (M,), such as the weight that a defence would give the pair. It is asked
        about the 1,024 pairs of the largest gain for each flip.

    Yields
    ------
    Graph, float, int
        The graph after the step, the surrogate's loss before the step, and the number of flips so
        far.

    Raises
    ------
    InputError
        As in `metattack`.
    """
    surrogate = _surrogate(graph, settings, victim, seed)
    at_once, most_nodes = 1, graph.num_nodes
    if form_of(settings, graph.num_nodes) == "large":
        at_once = -(-budget // settings.steps)
        # A step flips at most one pair of each node, so with few nodes for each flip it would have
        # to flip bad pairs.
        most_nodes = min(max(settings.block_nodes, _DRAWN * at_once), graph.num_nodes)
    rng = stream_rng(seed, Stream.METATTACK)
    search = _Search(graph, most_nodes, rng, _NONE if excluded is None else excluded, weigh)
    while len(search.flipped) < budget:
        gradient, loss = surrogate.meta_gradient(search.graph)
        if not np.isfinite(loss):
            raise InputError(
                "data.noise.kind=metattack: the training of the surrogate diverges: lower "
                "data.noise.attack.surrogate_lr"
            )
        search.flip(gradient, min(at_once, budget - len(search.flipped)))
        del gradient  # frees its memory before the next one of the same size is computed
        yield search.graph, loss, len(search.flipped)


def _surrogate(graph: Graph, settings: AttackConfig, victim: Victim, seed: int) -> Surrogate:
    """Build the surrogate; nodes without a label get a predicted class."""
    labels = np.full(graph.num_nodes, UNLABELLED) if victim.labels is None else victim.labels
    known = labels != UNLABELLED
    classes = np.zeros(graph.num_nodes, dtype=np.int64)
    present, classes[known] = np.unique(labels[known], return_inverse=True)
    num_classes = len(present)
    if num_classes < 2:
        raise InputError(
            f"data.noise.kind=metattack: the data have labels of {num_classes} classes, and the "
            "attack needs 2 or more: give a file of labels in data.labels, or use "
            "data.noise.kind=random_flip"
        )
    feat = sp.identity(graph.num_nodes, np.float32, "csr") if victim.feat is None else victim.feat
    expected = resident_mb() + needed_bytes(feat, graph.num_edges, num_classes, settings) / 1e6
    if expected > machine_memory_mb():
        raise InputError(
            f"data.noise.kind=metattack would need about {expected / 1000:.1f} GB of memory and "
            f"the machine has {machine_memory_mb() / 1000:.1f} GB: lower "
            "data.noise.attack.surrogate_epochs"
        )
    labelled = torch.from_numpy(known)
    generator = torch_generator(seed, Stream.SURROGATE)
    # The rows are scaled to norm 1, so that the same learning rate suits all features. The learning
    # rate decides how well the surrogate fits, and with it how well the attack works against other
    # models: for a surrogate that fits every label, only flips that spoil single nodes have a gain.
    surrogate = Surrogate(
        FeatureMatrix(normalize(feat)), torch.from_numpy(classes), labelled, settings, generator
    )
    if known.all():
        return surrogate
    predicted = surrogate.predict(graph)
    return replace(surrogate, labels=torch.where(labelled, surrogate.labels, predicted))


class _Search:
    """State of an attack: the graph, the flips so far and the search for the next flips.

    Parameters
    ----------
    graph : Graph
        The clean graph.
    most_nodes : int
        Number of nodes that are drawn in each step; N: all pairs are compared.
    rng : Generator
    excluded : int64 (M,)
        Keys of pairs that are not flipped.
    weigh : callable or None
        As for `attack_steps`.

    Attributes
    ----------
    graph : Graph
        The graph with the flips so far.
    flipped : int64 ndarray
        Sorted keys of the flipped pairs.
    """

    def __init__(
        self,
        graph: Graph,
        most_nodes: int,
        rng: np.random.Generator,
        excluded: np.ndarray,
        weigh: Weigh | None,
    ):
        self.graph, self.flipped = graph, _NONE
        self._most_nodes, self._rng, self._excluded = most_nodes, rng, excluded
        self._weigh, self._compared = weigh, _KEPT if weigh is None else _WEIGHED
        self._left = _NONE  # keys of good pairs from earlier steps that were not flipped

    def flip(self, gradient: PairGradient, count: int) -> None:
        """Flip ``count`` pairs, or fewer (at least one) if the candidates allow only fewer.

        Raises
        ------
        InputError
            No pair is left that may be flipped.
        """
        num_nodes = self.graph.num_nodes
        keys = _NONE
        if self._most_nodes < num_nodes:
            nodes = np.sort(self._rng.choice(num_nodes, self._most_nodes, replace=False))
            keys = self._candidates(gradient, nodes, self._compared * count)
            chosen = _apart(keys, num_nodes, count)
        if not len(keys):
            most = 1 if count == 1 and self._weigh is None else self._compared * count
            every = np.arange(num_nodes)
            keys = self._ordered(*best_pairs(gradient, self.graph, every, self._fixed(), most))
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
        """Keys of the best pairs among ``nodes`` and of good pairs from earlier steps, best first.

        At most ``most`` pairs are among ``nodes``.
        """
        # Edges are candidates only if both ends were drawn, like other pairs. If all edges were
        # candidates, most flips would remove edges, and few of all possible removals are good.
        fixed = self._fixed()
        keys, gain = best_pairs(gradient, self.graph, nodes, fixed, most)
        others = np.setdiff1d(self._left, np.union1d(fixed, keys))
        u, v = (torch.from_numpy(end) for end in np.divmod(others, self.graph.num_nodes))
        of_others = gradient.pairs(u, v).numpy()
        of_others[self.graph.positions(others) >= 0] *= -1
        return self._ordered(np.concatenate([keys, others]), np.concatenate([gain, of_others]))

    def _ordered(self, keys: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """Keys by their gain times their weight, the best first; losses are not weighed."""
        if self._weigh is not None and len(keys):
            gain = np.where(gain > 0, gain * self._weigh(self.graph, keys), gain)
        return keys[np.lexsort((keys, -gain))]

    def _fixed(self) -> np.ndarray:
        """Sorted keys of pairs that must not be flipped.

        These are the excluded pairs, the flipped pairs and each edge that is the last one of a
        node.
        """
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
    """Find the pairs among some nodes whose flip raises the loss most, to first order.

    Parameters
    ----------
    gradient : PairGradient
    graph : Graph
    nodes : int64 (B,)
        Node ids, ascending.
    fixed : int64 (M,)
        Sorted keys of pairs that are left out.
    most : int
        Number of pairs to return.
    at_once : int
        Number of pairs that are compared at a time.

    Returns
    -------
    keys, gain : int64, float (at most ``most``,)
        Keys of the pairs and first-order increase of the loss, the best pair first.
    """
    place = np.full(graph.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))

    def among(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions in ``nodes`` of both ends of pairs among them; the first positions ascend."""
        u, v = (place[end] for end in np.divmod(keys, graph.num_nodes))
        both = (u >= 0) & (v >= 0)
        return u[both], v[both]

    def inside(
        ends: tuple[np.ndarray, np.ndarray], start: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Row and column, in the block that begins at row ``start``, of the pairs it contains."""
        u, v = ends
        part = slice(*np.searchsorted(u, [start, start + size]))
        return torch.from_numpy(u[part] - start), torch.from_numpy(v[part] - start)

    edges, left_out = among(graph.keys), among(fixed)
    ids = torch.from_numpy(nodes)
    size = max(at_once // len(nodes), 1)
    keys, gain = _NONE, np.empty(0, dtype=np.float32)
    for start in range(0, len(nodes), size):
        block = gradient.block(ids[start : start + size], ids[start:])
        block[inside(edges, start)] *= -1
        block[inside(left_out, start)] = -torch.inf
        # Each pair is compared once, so the entries on and below the diagonal are left out.
        square = block[:, : len(block)]
        square.masked_fill_(torch.ones_like(square, dtype=torch.bool).tril(), -torch.inf)
        if len(gain) < most:
            least = float(block.flatten().topk(min(most, block.numel())).values[-1])
        else:
            least = float(gain[-1])
        # The bound excludes pairs that are left out, even if there are fewer than `most` others.
        row, column = (block >= max(least, _LOWEST)).nonzero(as_tuple=True)
        found = block[row, column].numpy()
        row, column = nodes[row.numpy() + start], nodes[column.numpy() + start]
        keys = np.concatenate([keys, row * graph.num_nodes + column])
        gain = np.concatenate([gain, found])
        order = np.argsort(-gain, kind="stable")[:most]
        keys, gain = keys[order], gain[order]
    return keys, gain


def _apart(keys: np.ndarray, num_nodes: int, count: int) -> np.ndarray:
    """Sorted keys of the first ``count`` pairs that share no node with a pair chosen before."""
    chosen: list[int] = []
    taken: set[int] = set()
    for key in keys.tolist():
        ends = divmod(key, num_nodes)
        if taken.isdisjoint(ends):
            chosen.append(key)
            taken.update(ends)
            if len(chosen) == count:
                break
    return np.array(sorted(chosen), dtype=np.int64)
