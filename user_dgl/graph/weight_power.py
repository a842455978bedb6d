r"""Weights of edges that differ by orders of magnitude, and the power that evens them out.

Not in the paper. Amounts of money, numbers of events and other strengths often have a few values
that are much larger than the rest. Smoothing then sees the heaviest edge of a node only, and most
nodes have hardly a neighbour: on block models with features, where NMI is 100 without weights,
lognormal weights with a deviation of 2 in the logarithm cost 6 to 14 points, and one huge weight
hides all other edges. A power p < 1 keeps the order of the weights and lets the others count. The
encoder ``smooth`` needs none for a graph without features, because that is clustered in several
forms of its weights (`user_dgl.clustering.weight_forms`).
"""

from dataclasses import replace

import torch

from user_dgl.graph.graph import Graph

# Powers that are tried, and the share of edges of equal weight that is enough. Counts of events and
# similarities mostly have more.
_POWERS = (1.0, 0.5, 0.25)
_ENOUGH = 0.3


def effective_share(weight: torch.Tensor) -> float:
    r"""Share of edges of equal weight that say as much as these: :math:`(\sum w)^2 / (E \sum w^2)`.

    The effective sample size of Kish (1965), divided by the number of edges E.

    >>> effective_share(torch.tensor([1.0, 1.0])), effective_share(torch.tensor([1.0, 0.0]))
    (1.0, 0.5)
    """
    weight = weight.double()
    weight = weight / weight.max()  # squares of huge weights would overflow
    return float(weight.sum() ** 2 / (len(weight) * weight.square().sum()))


def even_power(graph: Graph) -> float:
    """Largest of the powers 1, 1/2 and 1/4 with which at least 30 % of the edges count; else 0."""
    if graph.weight is None or not graph.num_edges:
        return 1.0
    weight = graph.weight.double()
    enough = (p for p in _POWERS if effective_share(weight**p) >= _ENOUGH)
    return next(enough, 0.0)


def with_power(graph: Graph, power: float) -> Graph:
    r"""Return the graph with its weights to a power p, and then divided by their mean.

    Parameters
    ----------
    graph : Graph
    power : float
        p, 0 to 1. With 0 all weights are 1.

    Returns
    -------
    Graph
        Its ``unit`` u is such that its weights are :math:`(w / u)^p` for weights w of the data.
        With 0 it stays as it is.
    """
    if graph.weight is None or power == 1:
        return graph
    if power == 0:
        return replace(graph, weight=None)
    weight = graph.weight.double()
    mean = float((weight**power).mean()) ** (1 / power)
    return replace(graph, weight=((weight / mean) ** power).float(), unit=graph.unit * mean)
