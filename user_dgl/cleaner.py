"""The cleaned graph of arrays: `clean_graph`, and `GraphCleaner` with scikit-learn's interface."""

import numbers
import warnings
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from user_dgl.cleaning.clean import ADDED_CANDIDATES, clean
from user_dgl.cleaning.doubts import doubtful_edges
from user_dgl.data.categories import CategoryEncoder
from user_dgl.data.graph_objects import read_objects
from user_dgl.errors import InputError
from user_dgl.output.export import kept_edges, to_dgl
from user_dgl.runtime.streams import seed_of


class GraphCleaner(BaseEstimator):
    r"""Weighs each edge of a graph by how far it can be trusted, and adds pairs.

    No labels and no number of clusters are needed. The result makes a graph neural network robust
    against edges that noise or an attack has added: give it the weights as ``edge_weight``. The
    method is described in `user_dgl.cleaning`.

    Parameters
    ----------
    power : float, optional
        Power of the trusted weights, 0 or more. None: from 0 without noise up to 4 with noise, by
        the estimated share of noise.
    candidates : int
        Number of pairs of each node that are considered to be added. 0: no pair is added.
    threshold : float, optional
        Only pairs that weigh this or more; 1 is the mean weight of the graph as given. Not together
        with ``top_k``.
    top_k : int, optional
        Only the heaviest pairs of each node; a pair is kept if it is among those of one end.
    categorical : str
        Columns of text among the features: refuse, or one_hot for columns of 0 and 1.
    random_state : int, RandomState, Generator or None
        Seed; None: 0, so that the result can be repeated in this case too.

    Attributes
    ----------
    adjacency_ : scipy CSR (N, N) float32
        A', symmetric.
    edge_index_ : int64 ndarray (2, 2P)
        Ends of both directions of each of its pairs, as PyTorch Geometric takes them.
    edge_weight_ : float32 ndarray (2P,)
    probability_ : scipy CSR (N, N) float32
        Calibrated probability of each observed edge not to be random, in both directions; without
        regard to ``power``, ``threshold`` and ``top_k``.
    noise_share_ : float or None
        Estimated share of the edges that look like random pairs; None if there are too few edges.
    power_ : float
    num_added_ : int
        Number of pairs that were added, before ``threshold`` and ``top_k``.
    doubtful_ : DataFrame
        The 20 most doubtful edges: see `user_dgl.cleaning.doubts.doubtful_edges`.
    node_names_ : ndarray (N,)
        Names of the nodes in the order of the rows.

    Raises
    ------
    InputError
        Raised by `fit`, a ValueError: malformed input, or no pair would be left.

    Examples
    --------
    >>> from user_dgl import GraphCleaner
    >>> from user_dgl.config import SyntheticConfig
    >>> from user_dgl.data import block_model
    >>> data = block_model(SyntheticConfig(num_nodes=300, num_blocks=3))
    >>> cleaner = GraphCleaner().fit(data.graph.to_scipy(), data.feat)
    >>> cleaner.adjacency_.shape, cleaner.edge_index_.shape[0], len(cleaner.doubtful_)
    ((300, 300), 2, 20)
    """

    def __init__(
        self,
        *,
        power: float | None = None,
        candidates: int = ADDED_CANDIDATES,
        threshold: float | None = None,
        top_k: int | None = None,
        categorical: str = "refuse",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ):
        self.power = power
        self.candidates = candidates
        self.threshold = threshold
        self.top_k = top_k
        self.categorical = categorical
        self.random_state = random_state

    def fit(self, adjacency: Any, features: Any = None, y: Any = None) -> "GraphCleaner":
        """Clean a graph.

        Parameters
        ----------
        adjacency : object
            A matrix (N, N), a graph of networkx, igraph, DGL or PyTorch Geometric, an
            ``edge_index`` (2, M) or pairs (M, 2): see `user_dgl.data.graph_objects.read_objects`.
        features : scipy sparse, ndarray, Tensor or DataFrame (N, F), optional
            None: those of the graph, if it has any; else the edges are judged by the graph alone.
        y : ignored

        Returns
        -------
        GraphCleaner
            The cleaner itself.
        """
        power = None if self.power is None else _number("power", self.power)
        candidates = _whole_number("candidates", self.candidates, 0)
        threshold = None if self.threshold is None else _number("threshold", self.threshold)
        top_k = None if self.top_k is None else _whole_number("top_k", self.top_k, 1)
        if threshold is not None and top_k is not None:
            raise InputError("threshold and top_k: only one of the two can be given")
        if self.categorical not in ("refuse", "one_hot"):
            raise InputError(f"categorical: expected refuse or one_hot, got {self.categorical!r}")
        encoder = CategoryEncoder() if self.categorical == "one_hot" else None
        held = read_objects(adjacency, features, encoder)
        for note in held.notes:
            warnings.warn(note, stacklevel=2)
        cleaned = clean(
            held.graph,
            held.feat,
            seed=0 if self.random_state is None else seed_of(self.random_state),
            power=power,
            candidates=candidates,
        )
        for warning in cleaned.warnings:
            warnings.warn(warning, stacklevel=2)
        kept = kept_edges(cleaned.pairs(), threshold, top_k)  # raises where none is left
        names = pd.RangeIndex(held.graph.num_nodes) if held.names is None else held.names
        self.node_names_, self._kept = names.to_numpy(), kept
        self.adjacency_ = (self._kept + self._kept.T).tocsr()
        both = self.adjacency_.tocoo()
        self.edge_index_ = np.stack([both.row, both.col]).astype(np.int64)
        self.edge_weight_ = both.data
        observed = torch.from_numpy(cleaned.probability[cleaned.observed])
        self.probability_ = held.graph.to_scipy(observed)
        self.noise_share_, self.power_ = cleaned.noise_share, cleaned.power
        self.num_added_ = int((~cleaned.observed).sum())
        self.doubtful_ = doubtful_edges(cleaned, pd.Series(self.node_names_))
        return self

    def fit_transform(self, adjacency: Any, features: Any = None, y: Any = None) -> sp.csr_matrix:
        """Call `fit` and return A', scipy CSR (N, N).

        There is no ``transform``: another graph needs a fit of its own.
        """
        return self.fit(adjacency, features).adjacency_

    def to_dgl(self) -> Any:
        """Return A' as a DGLGraph with both directions of each pair and ``edata["weight"]``."""
        check_is_fitted(self)
        from user_dgl._dgl import dgl  # imported here because the import takes seconds

        return to_dgl(self._kept, dgl)


def clean_graph(adjacency: Any, features: Any = None, **settings: Any) -> GraphCleaner:
    """Clean a graph and return the fitted `GraphCleaner`, which has A' in all forms.

    Parameters
    ----------
    adjacency, features
        See `GraphCleaner.fit`.
    **settings
        Parameters of `GraphCleaner`.

    Returns
    -------
    GraphCleaner
    """
    return GraphCleaner(**settings).fit(adjacency, features)


def _number(name: str, value: Any) -> float:
    """Check a finite number of 0 or more."""
    if not isinstance(value, numbers.Real) or not 0 <= float(value) < np.inf:
        raise InputError(f"{name}: expected a number of 0 or more, got {value!r}")
    return float(value)


def _whole_number(name: str, value: Any, least: int) -> int:
    """Check a whole number of ``least`` or more."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name}: expected a whole number of {least} or more, got {value!r}")
    return int(value)
