"""`AttributedGraph`, which every loader returns, and checks that the loaders share."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Number
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from user_dgl.errors import InputError
from user_dgl.graph import Graph

UNLABELLED = -1
# Advice in messages about features that are not finite. The first one is for loaders that obey
# ``data.missing_features``, the second one for all others.
FILL = "fill them in, or set data.missing_features=mean (or zero)"
GET_AGAIN = "download or create the data again"
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_STARTS_AS_NUMBER = re.compile(r"[+-]?\.?[0-9]")
# -1.0, and -1.000000000000000000e+00 of numpy.savetxt. 1E5 may be a name.
_ROUND = re.compile(r"-?[0-9]{1,15}\.[0-9]*(e[+-][0-9]{2})?")


@dataclass(frozen=True, eq=False)
class AttributedGraph:
    """A graph with optional node features and labels.

    Attributes
    ----------
    graph : Graph
    feat : scipy CSR (N, F) float32, or None
        Features of the nodes.
    labels : int64 (N,) or None
        Classes 0..C-1, or `UNLABELLED`. Labels are read by metrics and by
        ``data.noise.kind=metattack``, never by training, candidate choice, stopping or selection.
    node_ids : tuple of str (N,) or None
        The user's own ids in node order. None means that the ids are 0..N-1.
    notes : tuple of str
        Lines for the user that say what the loader cleaned or decided.
    """

    graph: Graph
    feat: sp.csr_matrix | None
    labels: np.ndarray | None = None
    node_ids: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        num_nodes = self.graph.num_nodes
        for name, rows in (
            ("features", None if self.feat is None else self.feat.shape[0]),
            ("labels", None if self.labels is None else len(self.labels)),
            ("node ids", None if self.node_ids is None else len(self.node_ids)),
        ):
            if rows is not None and rows != num_nodes:
                raise InputError(f"the graph has {num_nodes} nodes, but {name} have {rows} rows")
        if self.feat is not None:
            check_finite(self.feat, "features")

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return self.graph.num_nodes

    def with_notes(self, *notes: str) -> "AttributedGraph":
        """Return the same graph with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def subgraph(self, nodes: np.ndarray) -> "AttributedGraph":
        """Return the subgraph induced by ``nodes``.

        Parameters
        ----------
        nodes : int64 (K,)
            Node numbers in ascending order. Node ``nodes[i]`` becomes node i of the subgraph.
        """
        new_id = np.full(self.num_nodes, -1, dtype=np.int64)
        new_id[nodes] = np.arange(len(nodes))
        u, v = new_id[self.graph.src.numpy()], new_id[self.graph.dst.numpy()]
        kept = (u >= 0) & (v >= 0)
        weight = None if self.graph.weight is None else self.graph.weight.numpy()[kept]
        graph, _ = Graph.from_edges(len(nodes), u[kept], v[kept], weight)
        graph = replace(graph, unit=graph.unit * self.graph.unit)
        ids = self.node_ids or tuple(str(i) for i in range(self.num_nodes))
        return replace(
            self,
            graph=graph,
            feat=None if self.feat is None else self.feat[nodes],
            labels=None if self.labels is None else self.labels[nodes],
            node_ids=tuple(ids[i] for i in nodes),
        )


def largest_component(data: AttributedGraph) -> AttributedGraph:
    """Return the largest connected component. The order of its nodes does not change."""
    count, component = sp.csgraph.connected_components(data.graph.to_scipy(), directed=False)
    if count <= 1:
        return data
    sizes = np.bincount(component)
    kept = np.flatnonzero(component == sizes.argmax())
    note = f"largest of {count} connected components kept: {len(kept)} of {data.num_nodes} nodes"
    part = data.subgraph(kept)
    return replace(part, notes=(*part.notes, note))


def check_finite(feat: sp.csr_matrix, source: Path | str, remedy: str = GET_AGAIN) -> None:
    """Check that all features are finite.

    Parameters
    ----------
    feat : scipy CSR (N, F)
    source : path or text
        Origin of the features, for the message.
    remedy : str
        Advice at the end of the message.

    Raises
    ------
    InputError
        Some features are NaN or infinite. The message names their rows.
    """
    bad = ~np.isfinite(feat.data)
    if bad.any():
        rows = np.unique(np.repeat(np.arange(feat.shape[0]), np.diff(feat.indptr))[bad])
        raise InputError(
            f"{source}: NaN, empty or infinite features in {len(rows)} rows (counted from 0, the "
            f"first in column {feat.indices[bad][0]}): {some(rows)}: {remedy}"
        )


def check_text(array: np.ndarray, source: Path | str) -> None:
    """Check that an array of text contains valid Unicode. Arrays of other types pass.

    NumPy stores code points as 32-bit numbers and does not check their range.

    Raises
    ------
    InputError
        A code point is a surrogate or larger than U+10FFFF.
    """
    if array.dtype.kind == "U":
        code = np.dtype("u4").newbyteorder(array.dtype.byteorder)
        points = np.frombuffer(array.tobytes(), code)
        if (points > 0x10FFFF).any() or ((points >= 0xD800) & (points <= 0xDFFF)).any():
            raise InputError(f"{source}: text that is not valid Unicode: create the file again")


def index_labels(values: ArrayLike, source: Path | str = "labels") -> np.ndarray:
    """Replace labels of any kind by the class numbers 0..C-1, in sorted order of the labels.

    Empty text, None and NaN become `UNLABELLED`. So does -1, unless the labels are exactly -1
    and 1. If every label is a whole number written as text, the labels are sorted as numbers.

    Parameters
    ----------
    values : array-like (N,)
        Numbers, text or None.
    source : path or text
        Origin of the labels, for messages.

    Returns
    -------
    int64 (N,)

    Raises
    ------
    InputError
        A label has any other type, or its text is not valid Unicode.

    >>> index_labels(["b", "", "a", "-1"]).tolist(), index_labels([3, -1, 7]).tolist()
    ([1, -1, 0, -1], [0, -1, 1])
    """
    values = np.asarray(values)
    check_text(values, source)
    kinds: set[object] = {values.dtype} if values.dtype.kind not in "biufUSO" else set()
    if values.dtype.kind == "O":
        allowed = (str, Number, np.bool_, type(None))
        kinds = {type(v).__name__ for v in values.flat if not isinstance(v, allowed)}
    if kinds:
        raise InputError(
            f"{source}: label of type {min(map(str, kinds))}: give labels as numbers or text"
        )
    labels = np.full(len(values), UNLABELLED, dtype=np.int64)
    if values.dtype.kind == "f":
        given = ~np.isnan(values)
    elif values.dtype.kind in "iub":
        given = np.ones(len(values), dtype=bool)
    else:
        text = ["" if v is None or v != v else str(v).strip() for v in values.tolist()]
        values = np.array(text, dtype=object)
        given = values != ""
        if given.any() and all(map(_WHOLE.fullmatch, values[given])):
            values = np.where(given, values, "0").astype(np.int64)
        elif given.any() and all(map(_is_whole, values[given])):
            values = np.where(given, values, "0").astype(np.float64)
        elif not any(map(_STARTS_AS_NUMBER.match, set(values[given]) - {"-1"})):
            given &= values != "-1"  # among classes that are words
    if values.dtype.kind in "if" and set(np.unique(values[given]).tolist()) != {-1, 1}:
        given &= values != -1
    if given.any():
        labels[given] = np.unique(values[given], return_inverse=True)[1]
    return labels


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number, perhaps as NumPy and pandas write real numbers."""
    return _WHOLE.fullmatch(text) is not None or (
        _ROUND.fullmatch(text) is not None and float(text).is_integer()
    )


def one_line(error: Exception) -> str:
    """Return the message of an exception as one line of at most 300 characters."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def some(items: Sequence[object] | np.ndarray, most: int = 10) -> str:
    """Return the first ``most`` items as text, for messages.

    >>> some([4, 11, 18], most=2)
    '4, 11, ...'
    """
    return ", ".join(str(i) for i in items[:most]) + (", ..." if len(items) > most else "")
