r"""The smoothed view: smoothed features that the encoder ``smooth`` starts from.

Not in the paper. Smoothing over a graph removes noise from the features of a node, but it also adds
features of nodes in other clusters. Which effect is larger depends on the data: short texts gain
from a mean over many neighbours, long texts lose, and where edges join unlike nodes any smoothing
loses. So several views are made and clustered, and the choice is made by the bits that the clusters
save on edges and features together (`user_dgl.clustering.view_choice`). Then nodes move, in a few
steps, to clusters where they save more bits (`user_dgl.clustering.block_model.refine`). No labels
are used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize

from user_dgl.clustering.block_model import block_bits, block_sums, indicator, refine
from user_dgl.clustering.canonical import canonical_axes
from user_dgl.clustering.code_bits import CodeBits, are_words
from user_dgl.clustering.graph_clustering import GraphCandidate, graph_clustering
from user_dgl.clustering.kmeans import kmeans
from user_dgl.clustering.smoothing import (
    Projection,
    Smoothing,
    constant_of,
    on_basis,
    projected,
    to_power,
    with_constant,
)
from user_dgl.clustering.view_choice import ViewCandidate, choose, score_of, without_structure
from user_dgl.config import SmoothConfig
from user_dgl.features.rows import ALL, Rows
from user_dgl.features.svd import svd_with_axes
from user_dgl.graph import Graph
from user_dgl.graph.propagation import smooth
from user_dgl.runtime.progress import steps
from user_dgl.runtime.streams import Stream, stream_rng

# Values that are compared where the settings leave them open. More hops, more shares and more
# powers were compared on 12 data sets with and without noise; they change the mean NMI by less than
# 0.1. Where both kinds of axes are compared, views on the leading axes with weights to the last
# power are enough.
HOPS = (4, 16)
SELF_SHARES = (0.05, 0.2, 0.5)
WEIGHT_POWERS = (0.0, 1.0)
# Used by the choice of the number of clusters, which compares no views.
DEFAULT_HOPS, DEFAULT_SELF_SHARE = 16, 0.2
# Starts of k-means for each view; the chosen view gets more.
_STARTS = 5
# More starts find clusters of less inertia, sometimes others than those for which the view was
# chosen. If their score is lower by more than this share, the latter are kept. Scores of similar
# clusters of a small graph differ by up to 2.3 %.
_MUCH_LOWER = 0.025
# Steps in which nodes move, and the nats that a node must gain at most. More steps and moves save
# more bits, but lead away from what the view shows: with 20 steps and no least gain PubMed and
# Coauthor Physics lose 1 to 2.5 points of NMI, and no graph gains one. On 12 sets of words the mean
# NMI is 0.13 higher than with no least gain, and nearly the same for 1 to 4 nats and 3 to 10 steps.
# On block models, whose edges and features are independent, 2 nats without the tenth of the median
# lead lose 1.7 points, and with it none.
_EM_STEPS, _LEAST_GAIN = 4, 2.0
# A tenth of fewer edges is too little to say that a graph has no clusters.
_LEAST_EDGES_JUDGED = 500
_NO_EDGE_STRUCTURE = (
    "the edges show no clusters with more edges inside than by chance: a tenth of the edges was "
    "hidden, and lies in the clusters of the others no more often than random pairs; so the "
    "clusters may mean nothing"
)


@dataclass(frozen=True, eq=False)
class SmoothedView:
    """Data from which the encoder ``smooth`` is built.

    Attributes
    ----------
    points : Tensor (N, d)
        Projected features that the encoder smooths. A process of several has those of its own
        nodes, and their clusters.
    hops : int
        Number of smoothing steps.
    self_share : float
        Share a of a node's own features.
    weight_power : float
        Power of the weights of A' with which the points are smoothed.
    kmeans : int64 (N,)
        k-means of the smoothed points.
    clusters : int64 (N,)
        The k-means clusters after nodes were moved to save more bits.
    centroids : Tensor (K, d)
        Mean smoothed point of each of ``clusters``, scaled to norm 1; 0 for an empty cluster.
    candidates : list of ViewCandidate, or of GraphCandidate
        Views that were compared.
    refined_bits : dict of str to float
        Bits that ``clusters`` save on ``edges`` and on ``features``.
    warnings : list of str
        Says where no structure was found in the edges or in the features.
    projection : Projection or None
        Maps features to ``points``. None in a part of a view.
    reads_edges : bool
        Whether the projection maps rows of the adjacency, as the points are those of the graph.
    """

    points: torch.Tensor
    hops: int
    self_share: float
    weight_power: float
    kmeans: np.ndarray
    clusters: np.ndarray
    centroids: torch.Tensor
    candidates: Sequence[ViewCandidate | GraphCandidate] = ()
    refined_bits: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    projection: Projection | None = None
    reads_edges: bool = False

    def smoothing_weight(
        self, pairs: Graph, weight: torch.Tensor, observed: torch.Tensor
    ) -> torch.Tensor:
        """Weights (P,) with which S is made: those of observed edges to the power of the view."""
        return weight.where(~observed, to_power(pairs, weight, self.weight_power))

    @property
    def name(self) -> str:
        """Name of the candidate that was chosen."""
        return next((each.name for each in self.candidates if each.chosen), "one candidate")

    def report(self) -> dict[str, Any]:
        """Make the section ``view`` of ``result.json``."""
        return {
            "name": self.name,
            "hops": self.hops,
            "self_share": self.self_share,
            "weight_power": self.weight_power,
            "bits": self.refined_bits,
            "candidates": [{"name": each.name, **asdict(each)} for each in self.candidates],
        }


def smoothed_view(
    graph: Graph,
    weight: torch.Tensor,
    feat: sp.csr_matrix,
    config: SmoothConfig,
    num_clusters: int,
    seed: int,
    engine: str,
    held: Rows = ALL,
) -> SmoothedView:
    r"""Make the views that the settings leave open, and choose one by the bits that it saves.

    Z is X with rows scaled to norm 1, reduced to its leading components, with a constant before
    them if X has real values without a mean (`user_dgl.clustering.smoothing.constant_of`); on
    canonical axes Z is multiplied by these (`user_dgl.clustering.canonical`). H is Z, smoothed,
    with rows scaled to norm 1. P has the leading ``min(4 K, 64)`` right singular vectors of H. The
    encoder smooths Z P, which has much fewer columns than Z, and then scales the rows to norm 1.
    The result is H P with rows scaled to norm 1, because scaling a row before the projection does
    not change its direction. Rows that are only rounding are 0.

    Parameters
    ----------
    graph : Graph
        Observed graph, or a local graph of it (`user_dgl.features.rows`).
    weight : Tensor (E,)
        First weights of A'.
    feat : scipy CSR (n, F)
        float32, or float64 for a view in float64.
    config : SmoothConfig
        ``hops``, ``self_share``, ``weight_power`` and ``axes`` are chosen where they are None.
        Features alone are compared too if ``self_share`` is None.
    num_clusters : int
        K.
    seed : int
    engine : str
    held : Rows
    """
    rows, width = normalize(feat), min(4 * num_clusters, 64)
    reduced, components, constant = _reduced(feat, rows, config, seed, held)
    adjacency = graph.to_scipy().astype(np.float64)
    if len(reduced) < graph.num_nodes:  # without the halo
        adjacency = adjacency[: len(reduced)]
    # The constant, which comes first, has no bits.
    code = CodeBits(adjacency, feat, reduced[:, 1:] if constant else reduced, held)
    smoothing = Smoothing(graph, weight, engine, held)
    # The features alone must know nothing of the edges.
    only_leading = config.axes == "leading" or (config.axes is None and config.self_share == 1)
    canonical = None if only_leading else _canonical(smoothing, reduced, constant)
    views = list(_open_values(graph, config, weight, held))
    candidates, axes, found = [], [], []
    for view, smoothed in steps(smoothing.views(reduced, views), len(views)):
        for name in _kinds_of_axes(config, view, canonical is not None):
            basis = canonical if name == "canonical" else None
            on_axes = projected(smoothed, basis, width, held)
            clusters = kmeans(on_axes.embedding, num_clusters, seed, _STARTS, held=held)
            edges = code.edges(clusters, num_clusters)
            words = code.features(clusters, num_clusters)
            score = score_of(edges + words, clusters, num_clusters, held)
            candidates.append(ViewCandidate(*view, name, edges, words, score))
            axes.append(on_axes.axes)
            found.append(clusters)
            del on_axes
        del smoothed
    warnings = without_structure(graph, code, candidates, found, num_clusters, seed)
    if warnings and config.source == "auto" and held.num_edges(graph):
        # Features that say nothing would hide the clusters of the graph.
        alone = _shared_graph_view(graph, num_clusters, seed, held)
        words = code.features(alone.clusters, num_clusters)
        score = score_of(alone.refined_bits["edges"] + words, alone.clusters, num_clusters, held)
        if score > max(each.score for each in candidates):
            warnings.append("the clusters come from the edges alone, which saves most bits")
            refined = {**alone.refined_bits, "features": words}
            return replace(alone, refined_bits=refined, warnings=[*warnings, *alone.warnings])
    chosen, candidates = choose(candidates, found, held)
    winner, points = candidates[chosen], on_basis(reduced, axes[chosen])
    embedding = _embedding(smoothing, points, winner)
    first = kmeans(embedding, num_clusters, seed, held=held)
    bits = code.edges(first, num_clusters) + code.features(first, num_clusters)
    if score_of(bits, first, num_clusters, held) < winner.score - _MUCH_LOWER * abs(winner.score):
        first = found[chosen]
    clusters, (edges, words) = _refined(code, first, num_clusters, seed)
    return SmoothedView(
        points,
        winner.hops,
        winner.self_share,
        winner.weight_power,
        first,
        clusters,
        _centroids(embedding, clusters, num_clusters, held),
        candidates,
        {"edges": edges, "features": words},
        warnings,
        Projection.of(components, axes[chosen], constant),
    )


def graph_view(graph: Graph, num_clusters: int, seed: int) -> SmoothedView:
    """Make a view of a graph without features, see `user_dgl.clustering.graph_clustering`.

    Its points are the eigenvectors of the graph, which are not smoothed. The projection maps the
    row of a new node in the adjacency to the mean of the points of its neighbours, by the weights
    of its edges, also where the graph was clustered in another form of its weights.

    Parameters
    ----------
    graph : Graph
    num_clusters : int
        K.
    seed : int
    """
    found = graph_clustering(graph, num_clusters, seed)
    points = torch.from_numpy(found.embedding)
    sums = block_sums(graph.to_scipy(), found.clusters, num_clusters)
    judged = found.candidates and graph.num_edges >= _LEAST_EDGES_JUDGED
    warnings = [_NO_EDGE_STRUCTURE] if judged and not found.structure_found else []
    return SmoothedView(
        points,
        hops=1,
        self_share=1.0,
        weight_power=1.0,
        kmeans=found.clusters,
        clusters=found.clusters,
        centroids=_centroids(found.embedding, found.clusters, num_clusters),
        candidates=found.candidates,
        refined_bits={"edges": block_bits(sums), "features": 0.0},
        warnings=warnings,
        projection=Projection(points),
        reads_edges=True,
    )


def _shared_graph_view(graph: Graph, num_clusters: int, seed: int, held: Rows) -> SmoothedView:
    """The graph view that the first process makes, with the rows of the own nodes."""
    whole = held.whole(graph)

    def make() -> SmoothedView:
        assert whole is not None, "the first process has the whole graph"
        return graph_view(whole, num_clusters, seed)

    view = held.first(make)
    return replace(
        view,
        points=torch.from_numpy(held.own(view.points.numpy())),
        kmeans=held.own(view.kmeans),
        clusters=held.own(view.clusters),
    )


def _centroids(
    points: np.ndarray, clusters: np.ndarray, num_clusters: int, held: Rows = ALL
) -> torch.Tensor:
    """Mean point of each cluster with norm 1 (K, d)."""
    means = held.sum(indicator(clusters, num_clusters).T @ points)
    return torch.from_numpy(normalize(means).astype(points.dtype, copy=False))


def _refined(
    code: CodeBits, clusters: np.ndarray, num_clusters: int, seed: int
) -> tuple[np.ndarray, tuple[float, float]]:
    """Move nodes to save more bits. The clusters stay as they are if that saves none."""
    before = code.edges(clusters, num_clusters), code.features(clusters, num_clusters)
    rng, scores = stream_rng(seed, Stream.BLOCK_MODEL), code.scores(clusters, num_clusters)
    moved = refine(
        code.adjacency, clusters, num_clusters, _EM_STEPS, rng, scores, code.held, _LEAST_GAIN
    )
    after = code.edges(moved, num_clusters), code.features(moved, num_clusters)
    return (moved, after) if sum(after) > sum(before) else (clusters, before)


def _reduced(
    feat: sp.csr_matrix, rows: sp.csr_matrix, config: SmoothConfig, seed: int, held: Rows
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Leading components (n, d) of rows of norm 1 and their axes (F, d); the constant, or 0.

    If there is one, the components are (n, 1 + d), see `constant_of`.
    """
    decomposed = svd_with_axes(rows, config.num_components, seed, held, rows.dtype)
    components, axes = map(torch.from_numpy, decomposed)
    if are_words(feat, held):
        return components, axes, 0.0
    filled = torch.from_numpy(rows.getnnz(axis=1) > 0)
    constant = constant_of(components, filled, held)
    return with_constant(components, filled, constant), axes, constant


def _canonical(smoothing: Smoothing, reduced: torch.Tensor, constant: float) -> torch.Tensor | None:
    """Canonical axes of the reduced features on A'. None if neighbours agree in nothing."""
    held = smoothing.held
    neighbours, num_edges = smoothing.neighbours(reduced), held.num_edges(smoothing.graph)
    axes = canonical_axes(reduced, neighbours, num_edges, held)
    # All nodes agree in the constant, which is the first component. A single axis is that one,
    # unless the only axis on which nodes agree goes with their degree.
    return None if constant and axes is not None and axes.shape[1] == 1 else axes


def _kinds_of_axes(
    config: SmoothConfig, view: tuple[int, float, float], has_canonical: bool
) -> list[str]:
    """Names of the axes on which a view (hops, own share, power) is made."""
    if not has_canonical:  # not asked for, or neighbours agree in nothing
        return ["leading"]
    if config.axes == "canonical":
        return ["canonical"]
    power = view[-1]
    early = config.weight_power is None and power != WEIGHT_POWERS[-1]
    return ["canonical"] if early else ["leading", "canonical"]


def _open_values(
    graph: Graph, config: SmoothConfig, weight: torch.Tensor, held: Rows
) -> Iterator[tuple[int, float, float]]:
    """Hops, own share and power of each view that the settings leave open."""
    hops = HOPS if config.hops is None else (config.hops,)
    shares = SELF_SHARES if config.self_share is None else (config.self_share,)
    powers = WEIGHT_POWERS if config.weight_power is None else (config.weight_power,)
    if not held.count_pairs((weight != graph.edge_weight).numpy()):
        powers = powers[-1:]  # all powers are the same
    for power in powers:
        for number in hops:
            for share in shares:
                if share < 1:
                    yield number, share, power
    # The features alone are smoothed in no way, so there is one such view.
    if config.self_share is None or config.self_share == 1:
        yield hops[0], 1.0, powers[-1]


def _embedding(smoothing: Smoothing, points: torch.Tensor, view: ViewCandidate) -> np.ndarray:
    """Smooth projected points (n, width) as the encoder does, with rows of norm 1."""
    propagation = smoothing.propagation(view.weight_power, points.dtype)
    smoothed = smooth(propagation, points, view.hops, view.self_share)
    return normalize(smoothed.numpy(), copy=False)


def smoothed_embedding(
    graph: Graph,
    weight: torch.Tensor,
    feat: sp.csr_matrix,
    config: SmoothConfig,
    num_clusters: int,
    seed: int,
    engine: str,
    held: Rows = ALL,
) -> np.ndarray:
    """Embedding (n, d) of a view without a choice: open values have defaults, axes the leading."""
    rows = normalize(feat)
    reduced, _, constant = _reduced(feat, rows, config, seed, held)
    share = DEFAULT_SELF_SHARE if config.self_share is None else config.self_share
    power = 1.0 if config.weight_power is None else config.weight_power
    view = (config.hops or DEFAULT_HOPS, share, power)
    smoothing = Smoothing(graph, weight, engine, held)
    (smoothed,) = (x for _, x in smoothing.views(reduced, [view]))
    basis = _canonical(smoothing, reduced, constant) if config.axes == "canonical" else None
    return projected(smoothed, basis, min(4 * num_clusters, 64), held).embedding
