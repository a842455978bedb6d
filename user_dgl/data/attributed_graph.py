"""What every loader returns."""

import re
from dataclasses import dataclass, replace
from numbers import Number

import numpy as np
import scipy.sparse as sp

from user_dgl.errors import InputError
from user_dgl.graph import Graph

UNLABELLED = -1
# What to do about features that are no numbers: where the settings can fill them, and elsewhere.
FILL = "fill them in, or set data.missing_features=mean (or zero)"
GET_ANEW = "get or make the data anew"
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, eq=False)
class AttributedGraph:
    """A graph with node features, and labels that scores read, and an attack, but no training.

    Attributes
    ----------
    graph : Graph
    feat : scipy CSR (N, F) float32, or None
    labels : int64 (N,) or None
        0..C-1, or `UNLABELLED`. Never read by training, candidate choice, stopping or selection;
        beside scores, only ``data.noise.kind=metattack`` reads them.
    node_ids : tuple of str (N,) or None
        The user's own ids in node order; None: 0..N-1.
    notes : tuple of str
        What was cleaned or decided while reading, one line each.
    """

    graph: Graph
    feat: sp.csr_matrix | None
    labels: np.ndarray | None = None
    node_ids: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        num_nodes = self.graph.num_nodes
        for name, rows in (
            ("features", None if self.feat is None else self.feat.shape[0]),
            ("labels", None if self.labels is None else len(self.labels)),
            ("node ids", None if self.node_ids is None else len(self.node_ids)),
        ):
            if rows is not None and rows != num_nodes:
                raise InputError(f"the graph has {num_nodes} nodes, {name} have {rows} rows")
        if self.feat is not None:
            check_finite(self.feat, "features")

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.graph.num_nodes

    def subgraph(self, nodes: np.ndarray) -> "AttributedGraph":
        """The graph induced by ``nodes`` (ascending ids), renumbered in that order."""
        new_id = np.full(self.num_nodes, -1, dtype=np.int64)
        new_id[nodes] = np.arange(len(nodes))
        u, v = new_id[self.graph.src.numpy()], new_id[self.graph.dst.numpy()]
        kept = (u >= 0) & (v >= 0)
        graph, _ = Graph.from_edges(len(nodes), u[kept], v[kept])
        ids = self.node_ids or tuple(str(i) for i in range(self.num_nodes))
        return replace(
            self,
            graph=graph,
            feat=None if self.feat is None else self.feat[nodes],
            labels=None if self.labels is None else self.labels[nodes],
            node_ids=tuple(ids[i] for i in nodes),
        )


def largest_component(data: AttributedGraph) -> AttributedGraph:
    """The largest connected component, nodes in ascending original order."""
    count, component = sp.csgraph.connected_components(data.graph.to_scipy(), directed=False)
    if count <= 1:
        return data
    sizes = np.bincount(component)
    kept = np.flatnonzero(component == sizes.argmax())
    note = f"largest of {count} connected components kept: {len(kept)} of {data.num_nodes} nodes"
    part = data.subgraph(kept)
    return replace(part, notes=(*part.notes, note))


def check_finite(feat: sp.csr_matrix, source, remedy: str = GET_ANEW) -> None:
    """Refuse NaN and infinite features; the message names ``source`` and the rows.

    Raises
    ------
    InputError
    """
    bad = ~np.isfinite(feat.data)
    if bad.any():
        rows = np.unique(np.repeat(np.arange(feat.shape[0]), np.diff(feat.indptr))[bad])
        raise InputError(
            f"{source}: NaN, empty or infinite features in {len(rows)} rows (counted from 0, the "
            f"first in column {feat.indices[bad][0]}): {some(rows)}: {remedy}"
        )


def check_text(array, source) -> None:
    """Refuse text that is none: NumPy stores code points as numbers and checks no range.

    Raises
    ------
    InputError
    """
    if array.dtype.kind == "U":
        code = np.dtype("u4").newbyteorder(array.dtype.byteorder)
        points = np.frombuffer(array.tobytes(), code)
        if (points > 0x10FFFF).any() or ((points >= 0xD800) & (points <= 0xDFFF)).any():
            raise InputError(f"{source}: text that is no Unicode: make it anew")


def index_labels(values, source="labels") -> np.ndarray:
    """Labels of any kind as 0..C-1 in sorted order.

    Empty text, None and NaN become `UNLABELLED`, and so does -1, unless the labels are exactly -1
    and 1. Text that holds only whole numbers is sorted as numbers.

    Parameters
    ----------
    values : array-like (N,)
        Numbers, text or None.
    source : path or text
        What messages name.

    Raises
    ------
    InputError
        Labels of any other type.

    >>> index_labels(["b", "", "a"]).tolist(), index_labels([3, -1, 7]).tolist()
    ([1, -1, 0], [0, -1, 1])
    """
    values = np.asarray(values)
    check_text(values, source)
    kinds = {values.dtype} if values.dtype.kind not in "biufUSO" else set()
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
    if values.dtype.kind in "if" and set(np.unique(values[given]).tolist()) != {-1, 1}:
        given &= values != -1
    if given.any():
        labels[given] = np.unique(values[given], return_inverse=True)[1]
    return labels


def one_line(error: Exception) -> str:
    """What an exception says, on one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def some(items, most=10) -> str:
    """The first of many items, for messages.

    >>> some([4, 11, 18], most=2)
    '4, 11, ...'
    """
    return ", ".join(str(i) for i in items[:most]) + (", ..." if len(items) > most else "")
