r"""Which view is chosen, by the bits that its clusters save, and whether these show structure.

Not in the paper.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from user_dgl.clustering.agreement import pairwise_nmi
from user_dgl.clustering.block_model import entropy_bits
from user_dgl.clustering.code_bits import CodeBits
from user_dgl.features.rows import ALL, Rows
from user_dgl.graph import Graph
from user_dgl.runtime.streams import Stream, stream_rng

# Standard deviations above chance from which edges and features have something in common, and the
# number of permutations that show what is chance.
_LEAST_Z, _PERMUTATIONS = 3.0, 20
# Entropy of clusters that is assumed at least. A single cluster has none.
_LEAST_ENTROPY = 0.05
# Share of the best score within which scores are taken as equal.
_NEAR = 0.005


@dataclass(frozen=True)
class ViewCandidate:
    """A view that was compared, and the bits that its clusters save.

    Attributes
    ----------
    hops : int
    self_share : float
    weight_power : float
        Power of the weights of A' in the smoothing.
    axes : str
        ``leading`` or ``canonical``, see `user_dgl.clustering.canonical`.
    edge_bits, feature_bits : float
        Bits that the k-means clusters of the view save.
    score : float
        Their sum, divided by the root of the entropy of the clusters in bits.
    agreement : float
        Mean NMI of the clusters with those of the other candidates, in percent.
    chosen : bool
    """

    hops: int
    self_share: float
    weight_power: float
    axes: str
    edge_bits: float
    feature_bits: float
    score: float
    agreement: float = 0.0
    chosen: bool = False

    @property
    def name(self) -> str:
        """The view in words."""
        if self.self_share == 1:
            return "features alone" if self.axes == "leading" else "canonical axes, no smoothing"
        weights = f"edge weights to the power {self.weight_power:g}"
        return f"{self.hops} hops, own share {self.self_share:g}, {weights}, {self.axes} axes"


def without_structure(
    graph: Graph,
    code: CodeBits,
    candidates: list[ViewCandidate],
    clusters: list[np.ndarray],
    num_clusters: int,
    seed: int,
) -> list[str]:
    """Say where the features save no bits, or have nothing in common with the edges.

    The edges have no part in the clusters of the features alone. If the two have nothing in common,
    these clusters save no more bits on the edges than they do when the nodes are permuted.

    Parameters
    ----------
    graph : Graph
    code : CodeBits
        Of the graph and its features.
    candidates : list of ViewCandidate
    clusters : list of int64 (n,)
        Clusters of each candidate.
    num_clusters, seed : int

    Returns
    -------
    list of str
        A warning each.
    """
    warnings = []
    if all(each.feature_bits <= 0 for each in candidates):
        warnings.append(
            "the features save no bits in any clustering: they say nothing about clusters"
        )
    # The canonical axes are made from the edges.
    alone = [
        i for i, each in enumerate(candidates) if each.self_share == 1 and each.axes == "leading"
    ]
    if alone and code.held.num_edges(graph):
        rng, everywhere = stream_rng(seed, Stream.CHANCE), code.held.all(clusters[alone[0]])
        by_chance = [
            code.edges(code.held.own(rng.permutation(everywhere)), num_clusters)
            for _ in range(_PERMUTATIONS)
        ]
        limit = np.mean(by_chance) + _LEAST_Z * np.std(by_chance)
        if candidates[alone[0]].edge_bits <= limit:
            warnings.append(
                "clusters of the features alone save no bits on the edges beyond chance: edges and "
                "features have nothing in common, so check which of them the clusters should rest "
                "on (model.smooth.source: graph uses the edges only, model.smooth.self_share: 1 "
                "the features only)"
            )
    return warnings


def choose(
    candidates: list[ViewCandidate], clusters: list[np.ndarray], held: Rows = ALL
) -> tuple[int, list[ViewCandidate]]:
    r"""Choose a candidate: of those with nearly the best score, the one most like all others.

    The score of clusters c is :math:`(B_E + B_X) / \sqrt{H(c)}`. This is akin to the mutual
    information of clusters and data, normalised by the geometric mean of their entropies (Strehl
    and Ghosh, 2002), because the entropy of the data is the same for all candidates. A sum that is
    not positive is not divided. Bits alone prefer clusters of equal size, whatever the data say.
    Scores within 0.5 % of the best differ by chance, and then the clusters that most views agree on
    are the safest.

    Parameters
    ----------
    candidates : list of ViewCandidate
    clusters : list of int64 (n,)
        Clusters of each candidate.
    held : Rows

    Returns
    -------
    int, list of ViewCandidate
        Place of the chosen one, and the candidates with ``agreement`` and ``chosen``.
    """
    number = len(candidates)
    agreement = (100 * pairwise_nmi(clusters, held)).sum(1) / max(number - 1, 1)
    best = max(each.score for each in candidates)
    near = [i for i, each in enumerate(candidates) if each.score >= best - _NEAR * abs(best)]
    chosen = max(near, key=agreement.__getitem__)
    return chosen, [
        replace(each, agreement=float(agreement[i]), chosen=i == chosen)
        for i, each in enumerate(candidates)
    ]


def score_of(bits: float, clusters: np.ndarray, num_clusters: int, held: Rows = ALL) -> float:
    r"""Score of clusters that save so many bits, see `choose`.

    Parameters
    ----------
    bits : float
        Bits saved on edges and features.
    clusters : int64 (n,)
    num_clusters : int
    held : Rows

    Returns
    -------
    float
        The bits, divided by the root of the entropy of the clusters in bits if they are positive.
    """
    sizes = held.sum(np.bincount(clusters, minlength=num_clusters))
    entropy = entropy_bits(sizes / sizes.sum())
    return bits / math.sqrt(max(entropy, _LEAST_ENTROPY)) if bits > 0 else bits
