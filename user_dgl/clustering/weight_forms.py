r"""Forms of the weights of edges in which a graph is clustered.

Not in the paper. A weight may count how often an edge was seen, or it may be a similarity or a
strength on any scale. As counts they should enter as they are. Other weights may differ by orders
of magnitude, so that a few edges have most of the weight and clusters follow these edges only. The
forms that are compared are therefore the weights as they are, the square roots of relative weights,
and no weights.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

AS_THEY_ARE = ""
ROOTS = "square roots of relative weights"
NO_WEIGHTS = "without weights"


def relative_weights(adjacency: sp.csr_matrix) -> sp.csr_matrix:
    r"""Weights relative to what is usual at both ends of an edge.

    .. math:: \frac{w_{ij}}{\sqrt{m_i m_j}}

    where :math:`m_i` is the mean weight of the :math:`n_i` edges of node i. They are 1 where all
    edges of a component have the same weight, and at most :math:`\sqrt{n_i n_j}`. So a node has few
    edges of a large relative weight, however heavy its edges are.

    Parameters
    ----------
    adjacency : scipy CSR (N, N)
        Symmetric, with positive entries.

    Returns
    -------
    scipy CSR (N, N)
        The same entries with other values.

    >>> path = sp.csr_matrix([[0.0, 4, 0], [4, 0, 12], [0, 12, 0]])
    >>> relative_weights(path).toarray().round(3).tolist()
    [[0.0, 0.707, 0.0], [0.707, 0.0, 1.225], [0.0, 1.225, 0.0]]
    """
    number = np.diff(adjacency.indptr)
    mean = np.asarray(adjacency.sum(1)).ravel() / np.maximum(number, 1)
    # Not the root of the product of two means, because the product could underflow.
    scale = 1 / np.sqrt(np.where(number > 0, mean, 1.0))
    values = adjacency.data * np.repeat(scale, number) * scale[adjacency.indices]
    return sp.csr_matrix((values, adjacency.indices, adjacency.indptr), shape=adjacency.shape)


def forms(adjacency: sp.csr_matrix) -> Iterator[tuple[str, sp.csr_matrix]]:
    """Yield the forms of a weighted graph by name; one form if all weights are equal.

    Parameters
    ----------
    adjacency : scipy CSR (N, N)
        Symmetric, with positive entries.
    """
    # The entries of a graph without edges are none.
    weighted = adjacency.nnz and adjacency.data.min() < adjacency.data.max()
    for name in (AS_THEY_ARE, ROOTS, NO_WEIGHTS) if weighted else (AS_THEY_ARE,):
        yield name, in_form(adjacency, name)


def in_form(adjacency: sp.csr_matrix, name: str) -> sp.csr_matrix:
    """One of the `forms` of a graph."""
    if name == AS_THEY_ARE:
        return adjacency
    return relative_weights(adjacency).sqrt() if name == ROOTS else adjacency.sign()
