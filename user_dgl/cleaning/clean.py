r"""Cleaned graph A': trusted weights of the observed edges, and added pairs.

Not in the paper. The rule is the same for all graphs and reads no label; only the estimated share
of noise enters it.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from user_dgl.cleaning.posterior import NOISY, EdgePosterior, Judge, edge_posterior
from user_dgl.config import CriticConfig, FeaturesConfig
from user_dgl.errors import InputError
from user_dgl.features.nearest import MAX_EXACT, nearest_of
from user_dgl.features.preparation import FeaturePreparation
from user_dgl.graph import Graph, pair_keys
from user_dgl.graph.ops import resolve_engine
from user_dgl.runtime.streams import Stream, stream_rng
from user_dgl.structure.candidates import feature_knn

# Largest power of the trusted weights.
_MOST_POWER = 4.0
_LEAST_WEIGHT = np.finfo(np.float32).tiny
# Least probability of an added pair.
LEAST_PROBABILITY = 0.02
ADDED_CANDIDATES = 30
# Nodes of a large graph that are tried before pairs are searched for all nodes.
_TRIED = 500
FEATURES = FeaturesConfig(weighting="auto", row_norm="l2")


@dataclass(frozen=True, eq=False)
class CleanedGraph:
    """A graph A' whose weights say how far each pair is to be trusted.

    Attributes
    ----------
    graph : Graph
        P pairs: the observed edges and the added pairs.
    observed : bool ndarray (P,)
        Whether a pair is an observed edge.
    probability : float32 ndarray (P,)
        Of an observed edge: the calibrated probability not to be random. Of an added pair: the
        probability to be an edge.
    weight : float32 ndarray (P,)
        Weights for a graph neural network, in (0, 1], times the weights of the edges in the data,
        whose mean is 1, if there are any. Of an added pair: its probability.
    noise_share : float or None
        Estimated share of the observed edges that look like random pairs. None if there are too few
        edges to judge; the edges keep their weights then.
    power : float
        Power of the trusted weights.
    posterior : EdgePosterior or None
    warnings : tuple of str
        Lines for the user about the features: columns of very different scale, or why the features
        were not used.
    """

    graph: Graph
    observed: np.ndarray
    probability: np.ndarray
    weight: np.ndarray
    noise_share: float | None
    power: float
    posterior: EdgePosterior | None
    warnings: tuple[str, ...] = ()

    def pairs(self) -> sp.coo_matrix:
        """The weights as scipy COO (N, N), each pair once."""
        ends = self.graph.src.numpy(), self.graph.dst.numpy()
        return sp.coo_matrix((self.weight, ends), shape=(self.graph.num_nodes,) * 2)


def trusted_power(noise_share: float) -> float:
    r"""Power of the trusted weights, :math:`4 \min(\pi_0 / 0.08, 1)^2`.

    A few percent of the edges look random in every graph. Where there are no more, every edge
    counts as it is, because doubts about real edges do harm. Where there are more, doubtful edges
    weigh less than their probability, because an attacker chooses edges that look less random than
    they are.

    Parameters
    ----------
    noise_share : float
        :math:`\pi_0`, the estimated share of edges that look random.
    """
    return _MOST_POWER * min(noise_share / NOISY, 1.0) ** 2


def clean(
    graph: Graph,
    feat: sp.csr_matrix | None,
    seed: int = 0,
    power: float | None = None,
    candidates: int = ADDED_CANDIDATES,
    engine: str = "auto",
) -> CleanedGraph:
    r"""Weigh the edges of a graph and add pairs that its features support. No labels are used.

    The trusted weight of an edge is :math:`(s_g s_f)^p`: the support of the edge by the graph times
    the support by the features (`Judge.support`), to a power. An edge must have both, because noise
    that deceives one of them is seen by the other. Without features, and if they tell
    nothing about the edges (`edge_posterior`), it is :math:`s_g^p`.

    Parameters
    ----------
    graph : Graph
    feat : scipy CSR (N, F) or None
        Features as they are; they are prepared like those of ``configs/default.yaml``.
    seed : int
    power : float, optional
        p, 0 or more. None: `trusted_power` of the share of noise.
    candidates : int
        Number of pairs of each node that are considered to be added: its nearest nodes by the
        surroundings that its features let expect. Those whose probability to be an edge is at least
        0.02 are added, with this probability as the weight. 0: none. Without features, and if they
        are not used, no pair is added. On more than 50,000 nodes, 500 nodes are tried first, and
        if none of their pairs is likely, none is searched for the others.
    engine : str

    Returns
    -------
    CleanedGraph

    Raises
    ------
    InputError
        Pairs are to be added to more than 50,000 nodes, and faiss is not installed.
    """
    engine = resolve_engine(engine)
    warnings: list[str] = []
    if feat is not None:
        preparation = FeaturePreparation(FEATURES)
        feat = preparation.fit_transform(feat)
        warnings += preparation.warnings
    posterior = edge_posterior(graph, feat, seed, engine)
    if posterior is None:
        ones = np.ones(graph.num_edges, dtype=np.float32)
        own = graph.edge_weight.numpy()
        few = graph.num_edges < CriticConfig().folds or graph.num_nodes < 3
        warnings.append(
            "too few edges to judge: every edge keeps its weight"
            if few
            else "nearly every pair of nodes is an edge, so that no random pairs are left to "
            "compare with: every edge keeps its weight"
        )
        return CleanedGraph(graph, ones > 0, ones, own, None, 1.0, None, tuple(warnings))
    if posterior.note is not None:
        warnings.append(posterior.note)
    support = np.prod([judge.support for judge in posterior.judges], axis=0)
    if power is None:
        power = trusted_power(posterior.noise_share)
    # The weights stay above 0 whatever the power, so that no edge is lost.
    with np.errstate(over="ignore", under="ignore"):
        weight = np.maximum(support**power, _LEAST_WEIGHT).astype(np.float32)
    added = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    if candidates and posterior.feature_judge is not None:
        added = _added(graph, posterior.feature_judge, candidates, seed)
    if graph.weight is not None:
        weight = np.maximum(weight * graph.weight.numpy(), _LEAST_WEIGHT)
    return replace(_joined(graph, posterior, weight, power, *added), warnings=tuple(warnings))


def _added(graph: Graph, judge: Judge, candidates: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys (A,) and probabilities (A,) of added pairs."""
    expected = judge.terms.expected()  # type: ignore[attr-defined]
    probabilities = judge.probabilities()

    def likely(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keys and probabilities of the likely pairs among these that are no edges."""
        keys = np.unique(pair_keys(graph.num_nodes, u, v))
        keys = keys[graph.positions(keys) < 0]
        probability = probabilities(np.stack(np.divmod(keys, graph.num_nodes)))
        chosen = probability >= LEAST_PROBABILITY
        return keys[chosen], probability[chosen].astype(np.float32)

    if graph.num_nodes > MAX_EXACT:
        # The search takes longer than everything else, and large graphs seldom have likely pairs.
        filled = np.flatnonzero(expected.any(axis=1))
        tried = stream_rng(seed, Stream.TRIED_NODES).permutation(len(filled))[:_TRIED]
        near = nearest_of(expected[filled], tried, min(candidates, len(filled) - 1))
        found = likely(np.repeat(filled[tried], near.shape[1]), filled[near.ravel()])
        if not len(found[0]):
            return found
    try:
        return likely(*feature_knn(expected, candidates))
    except InputError:
        raise InputError(
            f"the search for pairs to add needs faiss on more than {MAX_EXACT} nodes: pip install "
            "'user_dgl[ann]', or set the number of candidates to 0"
        ) from None


def _joined(
    graph: Graph,
    posterior: EdgePosterior,
    weight: np.ndarray,
    power: float,
    keys: np.ndarray,
    added: np.ndarray,
) -> CleanedGraph:
    """Join the observed edges and the added pairs."""
    joined = Graph.from_keys(graph.num_nodes, np.concatenate([graph.keys, keys]))
    place = graph.positions(joined.keys)
    observed = place >= 0

    def values(of_edges: np.ndarray) -> np.ndarray:
        """Values (P,) of all pairs, from those of the edges."""
        joint = np.empty(len(observed), dtype=np.float32)
        # Both graphs are sorted by their keys, and so are the added pairs.
        joint[observed], joint[~observed] = of_edges[place[observed]], added
        return joint

    return CleanedGraph(
        joined,
        observed,
        values(posterior.probability),
        values(weight),
        posterior.noise_share,
        power,
        posterior,
    )
