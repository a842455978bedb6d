"""USER with the interface of scikit-learn: arrays as input, attributes as output, no files."""

import dataclasses
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from user_dgl.config import Config, default_config, load_config
from user_dgl.data.categories import CategoryEncoder
from user_dgl.data.graph_objects import read_objects
from user_dgl.data.reading.matrices import as_features
from user_dgl.data.tables import MatrixLike, as_array, as_table, is_default, positions_of
from user_dgl.errors import InputError
from user_dgl.features.cosine import row_dots
from user_dgl.pipeline.inputs import prepared_features
from user_dgl.pipeline.train import user_trainer_of
from user_dgl.runtime.streams import seed_of
from user_dgl.training.hooks import Hooks
from user_dgl.training.out_of_sample import OutOfSample

# Sections and keys of the settings that concern files and processes.
_UNUSED = ("task", "output_dir", "overwrite", "data", "distributed", "eval")


class USERClustering(ClusterMixin, BaseEstimator):
    """Clusters a graph with node features without labels, and cleans the graph.

    Does the same as ``user-dgl train``, on arrays and without files. With the default settings it
    weighs each edge by how much the features and the rest of the graph support it, smooths the
    features over the weighted graph in several ways, clusters them, and takes the clusters that
    save most bits in the code of edges and features (README, How it works).

    Parameters
    ----------
    num_clusters : int or "auto", optional
        Number of clusters to find. ``"auto"``: the number that the data suggest, see
        `user_dgl.clustering.num_clusters`. None: ``model.num_clusters`` of the settings, or
        ``"auto"`` if it is null there.
    config : path or Config, optional
        Settings; None: those of ``configs/default.yaml``. Settings of data other than
        ``data.weight_power``, and those of files, processes and evaluation have no effect.
    overrides : dict or sequence of str, optional
        Settings that differ from ``config``: ``{"train.epochs": 100}`` or
        ``["train.epochs=100"]``.
    random_state : int, RandomState, Generator or None
        Seed; None: ``seed`` of the settings, so that a fit can be repeated in this case too.
    verbose : bool
        Whether to print what ``user-dgl train`` prints.

    Attributes
    ----------
    labels_ : int64 ndarray (N,)
        Cluster of each node, 0..K-1.
    probs_ : float32, or float64 with ``train.precision=float64`` ndarray (N, K)
        Soft assignment Y of the head. Its arg max is ``labels_`` if the labels are those of the
        head and not those of k-means, see ``model.labels`` and ``train.consensus``.
    embedding_ : as ``probs_`` ndarray (N, d)
    adjacency_ : scipy CSR (N, N)
        The learned graph A', symmetric, with a weight of 0 or more for each observed edge and each
        candidate pair. With the default settings an edge weighs at most 1, which means no doubt,
        or at most ``(weight / weight_unit_) ** weight_power_``.
    num_clusters_ : int
        Number of clusters K, as asked for or as chosen.
    num_clusters_curve_ : dict of int to float, or None
        The score of each number of clusters, if the number was chosen.
    loss_ : dict of str to float
        Weighted terms of the loss and their ``total``.
    node_names_ : ndarray (N,)
        Names of the nodes in the order of ``labels_``: those of the graph or of the rows of the
        features, else the numbers 0..N-1.
    weight_unit_ : float
        Mean weight of the edges in the unit of the caller; 1 if they have no weights. If
        ``weight_power_`` is p < 1, the inverse power of the mean of their power; of 0, the mean.
    weight_power_ : float
        Power to which the weights are raised. It is less than 1 if the graph has features and a few
        edges have most of the weight, see ``data.weight_power``. With 0 all edges count alike, in
        `predict` too.
    n_features_in_ : int
        Number of feature columns; 0 for a fit without features.
    feature_names_in_ : ndarray of str (F,)
        Names of the feature columns. Only there if they are text in a DataFrame.

    Raises
    ------
    InputError
        Raised by `fit` and `predict`, a ValueError: shapes that do not fit each other, NaN or
        infinite values, negative weights, fewer nodes than clusters, unknown settings.
    NonFiniteLossError
        Raised by `fit` if the loss is no longer finite.

    Notes
    -----
    Edges are undirected: directions and loops are removed, with a warning. Weights are used. Their
    unit does not matter, because they are divided by their mean, ``weight_unit_``. In a graph with
    features, weights of which a few are much heavier are evened out (``weight_power_``). The
    same seed, number of threads and versions give the same result.

    For scikit-learn, the adjacency is a pairwise matrix. ``cross_validate`` and ``GridSearchCV``
    therefore fit the graph among the nodes of the training set, and `predict` gets the edges from
    the held-out nodes to these. Their second argument, which scikit-learn calls y, may be the
    features, which ``cross_validate`` takes dense only:
    ``GridSearchCV(model, grid, scoring=function).fit(adjacency, features)`` calls
    ``function(model, edges, features)`` for held-out nodes. Without features it may be classes of
    the nodes, for scorers such as ``"adjusted_rand_score"``; a fit does not read them. The
    estimator has no score of its own and transforms nothing, so there is no ``set_output``.

    Examples
    --------
    >>> from user_dgl import USERClustering
    >>> from user_dgl.config import SyntheticConfig
    >>> from user_dgl.data import block_model
    >>> data = block_model(SyntheticConfig(num_nodes=300, num_blocks=3))
    >>> adjacency, features = data.graph.to_scipy(), data.feat
    >>> model = USERClustering(num_clusters=3, random_state=0).fit(adjacency, features)
    >>> model.labels_.shape, model.probs_.shape, model.adjacency_.shape
    ((300,), (300, 3), (300, 300))
    >>> from sklearn.metrics import adjusted_rand_score
    >>> adjusted_rand_score(data.labels, model.labels_) > 0.9
    True

    Two new nodes, each with edges to five nodes of one block and the features of one of them:

    >>> blocks = [(data.labels == block).nonzero()[0][:5] for block in (0, 1)]
    >>> edges = np.zeros((2, 300))
    >>> edges[0, blocks[0]] = edges[1, blocks[1]] = 1
    >>> new = model.predict(edges, features[[blocks[0][0], blocks[1][0]]])
    >>> bool((new == model.labels_[[blocks[0][0], blocks[1][0]]]).all())
    True
    """

    def __init__(
        self,
        num_clusters: int | str | None = None,
        *,
        config: str | Path | Config | None = None,
        overrides: dict[str, Any] | Sequence[str] | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ):
        self.num_clusters = num_clusters
        self.config = config
        self.overrides = overrides
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, adjacency: MatrixLike, features: MatrixLike | None = None, y: Any = None
    ) -> "USERClustering":
        """Train on a graph.

        Parameters
        ----------
        adjacency : object
            A square matrix (N, N) of SciPy, NumPy, torch or pandas: every entry other than 0 is an
            edge, in either direction. Or a graph of networkx, igraph, DGL or PyTorch Geometric. Or
            an ``edge_index`` (2, M). Or pairs of nodes (M, 2), for example a list of tuples. See
            `user_dgl.data.graph_objects.read_objects`.
        features : scipy sparse, ndarray, Tensor or DataFrame (N, F), optional
            The rows of a DataFrame with an index are matched to the nodes by name. None:
            ``ndata["feat"]`` of a DGLGraph or ``x`` of a graph of PyTorch Geometric. If there is
            none, the encoder ``smooth``, which the default has, clusters the nodes by the edges
            alone, and other encoders get the neighbours of a node as its features. A vector (N,) is
            taken as ``y``, because scikit-learn passes classes as the second argument.
        y : ignored

        Returns
        -------
        USERClustering
            The estimator itself.
        """
        config = self._settings()
        vector = features is not None and _is_vector(features)
        encoder = CategoryEncoder() if config.features.categorical == "one_hot" else None
        held = read_objects(adjacency, None if vector else features, encoder)
        graph, feat, notes = held.graph, held.feat, []
        if vector:
            notes = [_class_note(len(as_array(features, "features")), graph.num_nodes)]
        if config.model.kind != "user":
            raise InputError(
                f"model.kind={config.model.kind}: USERClustering fits USER; `user-dgl train` "
                "trains the others"
            )
        # The estimator reads tables, but has no data kind.
        inert = [x for x in config.inert_settings() if not x.startswith("features.categorical")]
        prepared = prepared_features(config, graph, feat)
        graph = prepared.graph
        for line in [*notes, *held.notes, *inert, *prepared.warnings]:
            warnings.warn(line, stacklevel=2)
        log = tqdm.write if self.verbose else _silent
        hooks = Hooks(log=log, shows_progress=bool(self.verbose))
        trainer = user_trainer_of(prepared.config, graph, prepared.feat, hooks)
        result = trainer.fit()
        seen = [] if trainer.view is None else trainer.view.warnings
        for line in [*seen, *result.warnings]:
            warnings.warn(line, stacklevel=2)
        self.labels_, self.probs_ = result.clusters, result.probs
        self.embedding_ = result.embedding
        self.adjacency_ = result.graph.to_scipy(torch.from_numpy(result.weight))
        self.num_clusters_ = trainer.config.model.num_clusters
        self.num_clusters_curve_ = trainer.preparation.num_clusters_curve
        self.loss_ = result.loss
        names = pd.RangeIndex(graph.num_nodes) if held.names is None else held.names
        self.node_names_ = names.to_numpy()
        self._num_columns = 0 if feat is None else feat.shape[1]
        self.n_features_in_ = self._num_columns
        if isinstance(features, pd.DataFrame):  # whose categories have become several columns
            self.n_features_in_ = features.shape[1]
        if held.columns is not None:
            self.feature_names_in_ = held.columns
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.weight_unit_, self.weight_power_ = graph.unit, prepared.weight_power
        self._weighted = graph.weight is not None
        self._preparation = prepared.preparation
        self._from_edges = prepared.from_edges
        # An encoder that found no categories would learn them from new nodes.
        self._encoder = encoder if encoder is not None and encoder.columns else None
        self._out_of_sample = OutOfSample(trainer, result, prepared.feat)
        return self

    def fit_predict(
        self, adjacency: MatrixLike, features: MatrixLike | None = None, y: Any = None
    ) -> np.ndarray:
        """Call `fit` and return ``labels_`` (N,)."""
        return self.fit(adjacency, features).labels_

    def predict(
        self,
        adjacency: MatrixLike,
        features: MatrixLike | None = None,
        among: MatrixLike | None = None,
    ) -> np.ndarray:
        """Assign new nodes to clusters by their edges and features. Nothing is trained.

        The fitted nodes do not change. A new node therefore has no influence on the clusters of
        other new nodes, unless ``among`` connects them. Weights of the new edges are in the unit of
        the fit: leave out a doubtful edge, or give it a lower weight.

        Parameters
        ----------
        adjacency : scipy sparse, ndarray, Tensor or DataFrame (M, N)
            Weight of the edge of each new node to each node of the fit: 1 for an edge, 0 for none.
        features : scipy sparse, ndarray, Tensor or DataFrame (M, F), optional
            Raw features with the columns of the fit; None if the fit had no features.
        among : scipy sparse, ndarray, Tensor or DataFrame (M, M), optional
            Weights of edges between new nodes, in either direction; loops have no effect. Rows and
            columns of DataFrames are matched by name: nodes of the fit by ``node_names_``, columns
            of the features by ``feature_names_in_``, new nodes by the index of ``adjacency``.

        Returns
        -------
        int64 ndarray (M,)

        Notes
        -----
        If ``weight_power_`` is 1: for row i of ``adjacency_``, times ``weight_unit_``, and the
        features of node i, the embedding equals that of node i up to rounding, if the fit smooths
        with the weights as they are, which is ``model.smooth.weight_power=1``. With 0, this holds
        for a row of the observed graph. If the features have more columns and rows than
        ``model.smooth.num_components``, the embedding also differs by the error of a randomised
        SVD. If the labels do not come from the head, a node is assigned to the nearest mean of the
        clusters. If ``model.observed_mix`` is above 0, each edge counts as observed, with its
        weight.
        """
        check_is_fitted(self)
        weight, names = _weights(
            adjacency, "adjacency", pd.Index(self.node_names_, tupleize_cols=False)
        )
        count = weight.shape[0]
        if among is None:
            joined = sp.csr_matrix((count, count))
        else:
            new = pd.RangeIndex(count) if names is None else names
            joined, rows = _weights(among, "among", new, "new nodes (the index of adjacency)")
            if joined.shape[0] != count:
                raise InputError(f"among: expected shape ({count}, {count}), got {joined.shape}")
            if rows is not None:
                joined = joined[positions_of(new, rows, "adjacency", "the rows of among")]
            joined = joined.maximum(joined.T)
            joined.setdiag(0)
            joined.eliminate_zeros()
        if self.n_features_in_ == 0:
            if features is not None:
                raise InputError("features: the fit had none, so that new nodes have none either")
            feat = None
        elif features is None:
            raise InputError(f"features: expected {self.n_features_in_} columns as the fit had")
        else:
            feat = self._new_features(features, names)
            if feat.shape != (count, self._num_columns):
                raise InputError(
                    f"features: expected shape ({count}, {self._num_columns}), got {feat.shape}"
                )
        if self._from_edges:
            own = self._scaled(weight) if self._weighted else weight.astype(bool)
            feat = own.astype(np.float32)
        if not count:
            return np.empty(0, dtype=np.int64)
        both = self._scaled(sp.hstack([weight, joined], format="csr"))
        return self._out_of_sample.assign(both, self._preparation.transform(feat))

    def _scaled(self, weight: sp.csr_matrix) -> sp.csr_matrix:
        """Weights of new edges as the fit has them."""
        scaled = sp.csr_matrix(weight / self.weight_unit_)
        scaled.eliminate_zeros()  # else a power of 0 would make edges of them
        scaled.data **= getattr(self, "weight_power_", 1.0)  # not there in older pickles
        return scaled

    def _new_features(self, features: MatrixLike, names: pd.Index | None) -> sp.csr_matrix:
        """Take features of new nodes, in the order of ``names`` and of the columns of the fit."""
        if isinstance(features, pd.DataFrame) and hasattr(self, "feature_names_in_"):
            fitted, there = pd.Index(self.feature_names_in_), "the columns of features"
            if not is_default(features.columns):
                order = positions_of(fitted, features.columns, "the fit", there)
                features = features.iloc[:, order]
        table = as_table(features, "features", self._encoder)
        feat = as_features(table.matrix, "features")
        if table.rows is not None and names is not None:
            feat = feat[positions_of(names, table.rows, "adjacency", "features")]
        return feat

    def __sklearn_tags__(self) -> Any:
        """Describe the adjacency to scikit-learn: pairwise, perhaps sparse, and not negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.sparse = tags.input_tags.positive_only = True
        return tags

    def score_links(self, pairs: MatrixLike | Sequence[Sequence[int]]) -> np.ndarray:
        """Return the similarity of the embeddings of two nodes: their cosine, in [-1, 1].

        Parameters
        ----------
        pairs : array-like of int (P, 2)
            Nodes of the fit: their names if these are whole numbers (``node_names_``), else their
            positions.

        Returns
        -------
        float64 ndarray (P,)

        Raises
        ------
        InputError
        """
        check_is_fitted(self)
        ends, num_nodes = as_array(pairs, "pairs"), len(self.labels_)
        if not ends.size:  # whatever its shape and type
            return np.empty(0)
        if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
            raise InputError(
                f"pairs: expected whole numbers of shape (P, 2), got shape {ends.shape} and type "
                f"{ends.dtype}"
            )
        names = pd.Index(self.node_names_, tupleize_cols=False)
        if names.dtype.kind in "iu" and not names.equals(pd.RangeIndex(num_nodes)):
            place = names.get_indexer(ends.ravel()).reshape(ends.shape)
            if (place < 0).any():
                unknown = ends[place < 0][0]
                raise InputError(f"pairs: no node {unknown} in the fit, see node_names_")
            ends = place
        if not 0 <= ends.min() <= ends.max() < num_nodes:
            raise InputError(
                f"pairs: nodes {ends.min()}..{ends.max()}, and the fit had 0..{num_nodes - 1}"
            )
        cosine = row_dots(normalize(self.embedding_.astype(np.float64)), *ends.T)
        return np.clip(cosine, -1, 1)

    def _settings(self) -> Config:
        """Resolve the settings of a fit, and warn about those without effect."""
        given = self.overrides or ()
        if isinstance(given, str):
            raise InputError(f"overrides: expected a dict or a list of texts, got {given!r}")
        lines = [_line(*i) for i in given.items()] if isinstance(given, dict) else list(given)
        if self.num_clusters is not None:
            lines.append(_line("model.num_clusters", self.num_clusters))
        if self.random_state is not None:
            lines.append(_line("seed", seed_of(self.random_state)))
        config = load_config(default_config() if self.config is None else self.config, lines)
        if config.model.num_clusters is None:
            model = dataclasses.replace(config.model, num_clusters="auto")
            config = dataclasses.replace(config, model=model)
        default = Config()
        set_aside = {name: getattr(default, name) for name in _UNUSED}
        power = config.data.weight_power
        set_aside["data"] = dataclasses.replace(default.data, weight_power=power)
        unused = [name for name, value in set_aside.items() if getattr(config, name) != value]
        if config.train.resume:
            unused.append("train.resume")
        if unused:
            warnings.warn(f"{', '.join(unused)}: no effect on USERClustering", stacklevel=3)
        train = dataclasses.replace(config.train, resume=False)
        return dataclasses.replace(config, train=train, **set_aside)


def _silent(line: str) -> None:
    """Print nothing."""


def _line(name: str, value: Any) -> str:
    """Write a setting in the form that `load_config` reads. JSON is YAML."""
    try:
        return f"{name}={json.dumps(value, default=lambda scalar: scalar.item())}"
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{name}: expected a number, text or list, got {value!r}") from None


def _is_vector(values: Any) -> bool:
    """Whether values have one dimension, as the classes have that scikit-learn calls y."""
    return (values if hasattr(values, "ndim") else as_array(values, "features")).ndim == 1


def _class_note(length: int, num_nodes: int) -> str:
    """Say that a vector in the place of the features is not read.

    Raises
    ------
    InputError
        It has not one value for each node.
    """
    if length != num_nodes:
        raise InputError(
            f"features: features of shape ({length},) for {num_nodes} nodes: expected a row of "
            "numbers for each node"
        )
    return (
        "features: a vector is taken as the classes that scikit-learn calls y, and a fit reads no "
        "classes: give a single feature as a matrix of one column"
    )


def _weights(
    values: MatrixLike, name: str, fitted: pd.Index, whose: str = "nodes of the fit (node_names_)"
) -> tuple[sp.csr_matrix, pd.Index | None]:
    """Return weights of edges (M, N), float64, without stored zeros, and names of their rows.

    Named columns of a DataFrame are put into the order of ``fitted`` (N,), whose names messages
    call ``whose``.

    Raises
    ------
    InputError
    """
    table = as_table(values, name)
    matrix, num_columns = table.matrix, len(fitted)
    if matrix.ndim != 2 or matrix.shape[1] != num_columns or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"{name}: expected numbers of shape (M, {num_columns}), got shape {matrix.shape} and "
            f"type {matrix.dtype}"
        )
    matrix = sp.csr_matrix(matrix, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not (np.isfinite(matrix.data) & (matrix.data > 0)).all():
        raise InputError(f"{name}: negative, NaN or infinite weights: remove them")
    numbers = pd.RangeIndex(num_columns)
    if isinstance(values, pd.DataFrame) and is_default(values.columns):
        if not fitted.equals(numbers) and not len(fitted.difference(numbers)):
            raise InputError(
                f"{name}: the {whose} are the numbers 0, 1, 2, ... in another order, and columns "
                "without names could belong to the numbers or to that order: name the columns, "
                f"{name}.columns = list(...)"
            )
    elif isinstance(values, pd.DataFrame):
        matrix = matrix[
            :, positions_of(fitted, values.columns, "the fit", f"the columns of {name}")
        ]
    return matrix, table.rows
