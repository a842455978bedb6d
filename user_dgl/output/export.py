"""Export of a run's results: the cleaned graph, clusters and embeddings with the user's ids."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from user_dgl.data.attributed_graph import one_line
from user_dgl.data.load import named_files
from user_dgl.errors import InputError
from user_dgl.output.run_directory import RunDirectory
from user_dgl.output.tables import csv_text
from user_dgl.runtime.files import check_output_file, write_atomically

_SUFFIXES = {"graph": (".csv", ".npz"), "clusters": (".csv",), "embedding": (".npy", ".csv")}


@dataclass(frozen=True)
class Targets:
    """Files to write. A result whose file is None is not exported.

    Attributes
    ----------
    graph : Path, optional
        ``.csv``: a row ``source,target,weight`` for each edge of A', each edge once. ``.npz``: a
        symmetric SciPy CSR matrix with rows in the order of ``clusters.csv``.
    clusters : Path, optional
        ``.csv``: a row ``node,cluster`` for each node.
    embedding : Path, optional
        ``.npy``: float32 (N, d), rows in the order of ``clusters.csv``. ``.csv``: a row for each
        node, starting with its id.
    """

    graph: Path | None = None
    clusters: Path | None = None
    embedding: Path | None = None

    def check(self, run: RunDirectory, overwrite: bool) -> None:
        """Refuse files that cannot or must not be written, before anything is written.

        Raises
        ------
        InputError
        """
        wanted = {"graph": self.graph, "clusters": self.clusters, "embedding": self.embedding}
        files = {what: file for what, file in wanted.items() if file is not None}
        if not files:
            raise InputError("nothing to export: name a file with --graph, --clusters, --embedding")
        for what, file in files.items():
            check_output_file(
                file,
                _SUFFIXES[what],
                option=f"--{what}",
                kept=[*run.own_files(), *_inputs_of(run)],
                replace=overwrite,
                remedy="--overwrite",
            )
        if len({file.resolve() for file in files.values()}) < len(files):
            raise InputError("two exports name the same file: choose different names")


def _inputs_of(run: RunDirectory) -> list[Path]:
    """Files that the run was trained on, which an export must not replace."""
    try:
        return named_files(run.read_config().data)
    except InputError:  # of another version, or without settings
        return []


def export(
    run_dir: Path,
    targets: Targets,
    *,
    threshold: float | None = None,
    top_k: int | None = None,
    overwrite: bool = False,
) -> list[str]:
    """Write results of a run to files. Each file is written completely or not at all.

    Parameters
    ----------
    run_dir : Path
    targets : Targets
    threshold, top_k
        Which edges of A' are kept, see `kept_edges`.
    overwrite : bool
        Whether existing files may be replaced.

    Returns
    -------
    list of str
        A line for each file that describes its content.

    Raises
    ------
    InputError
        A file exists, cannot be written or has a wrong suffix; files of the run are
        missing or damaged; no edge would be left.
    """
    run = RunDirectory(run_dir)
    if targets.graph is None and (threshold is not None or top_k is not None):
        raise InputError("--threshold and --top-k choose edges for --graph, which is not given")
    targets.check(run, overwrite)
    ids, clusters = run.read_clusters()
    names = pd.Series(ids, dtype=object)
    lines: list[str] = []
    writes: list[tuple[Path, Callable[[Any], None]]] = []

    def add(path: Path, write: Callable[[Any], None], what: str) -> None:
        """Plan to write a file, with a line that describes it."""
        writes.append((path, write))
        lines.append(f"{path}: {what}")

    graph_file, embedding_file = targets.graph, targets.embedding
    if graph_file is not None:
        learned = run.read_learned_graph()
        run.check_sizes(**{"clusters": len(ids), "rows of A'": learned.shape[0]})
        pairs = sp.triu(learned, k=1, format="coo")
        kept = kept_edges(pairs, threshold, top_k)
        what = f"{kept.nnz} of {pairs.nnz} edges of A' kept"
        alone = len(ids) - len(np.union1d(kept.row, kept.col))
        if alone:
            what += f", {alone} of {len(ids)} nodes have none"
        add(graph_file, lambda file: write_pairs(file, graph_file, kept, names), what)
    if targets.clusters is not None:
        table = pd.DataFrame({"node": names, "cluster": clusters})
        what = f"{len(ids)} nodes in {len(np.unique(clusters))} clusters"
        add(targets.clusters, lambda file: write_table(file, table), what)
    if embedding_file is not None:
        embedding = run.read_embedding()
        run.check_sizes(clusters=len(ids), embeddings=len(embedding))
        add(
            embedding_file,
            lambda file: _write_embedding(file, embedding_file, embedding, names),
            f"{len(ids)} nodes, {embedding.shape[1]} columns",
        )
    for path, write in writes:
        write_atomically(path, write)
    return lines


def kept_edges(
    pairs: sp.coo_matrix, threshold: float | None = None, top_k: int | None = None
) -> sp.coo_matrix:
    """Select the edges of A' by a threshold or by a number of edges for each node.

    Edges of weight 0 are never kept.

    Parameters
    ----------
    pairs : scipy COO (N, N)
        Each edge once.
    threshold : float, optional
        Lowest weight that is kept.
    top_k : int, optional
        An edge is kept if it is among the ``top_k`` heaviest of at least one of its ends. Of
        equal weights the earlier pair counts as heavier.

    Returns
    -------
    scipy COO (N, N)

    Raises
    ------
    InputError
        No edge is left.

    >>> pairs = sp.coo_matrix(([3.0, 2.0, 1.0], ([0, 0, 0], [1, 2, 3])), shape=(4, 4))
    >>> kept_edges(pairs, threshold=2).col.tolist()
    [1, 2]
    >>> kept_edges(pairs, top_k=1).col.tolist()  # the heaviest of nodes 2 and 3 too
    [1, 2, 3]
    """
    kept = pairs.data > 0
    if threshold is not None:
        kept &= pairs.data >= threshold
    if top_k is not None:
        kept &= _among_heaviest(pairs, top_k)
    if not kept.any():
        if not pairs.nnz:
            raise InputError("A' has no edge")
        raise InputError(
            f"no edge of A' would be left (the heaviest weighs {pairs.data.max():.4g}): choose a "
            "lower threshold"
        )
    return sp.coo_matrix((pairs.data[kept], (pairs.row[kept], pairs.col[kept])), pairs.shape)


def _among_heaviest(pairs: sp.coo_matrix, top_k: int) -> np.ndarray:
    """Return for each pair whether it is among the ``top_k`` heaviest of one of its ends."""
    node = np.concatenate([pairs.row, pairs.col])
    pair = np.tile(np.arange(pairs.nnz), 2)
    order = np.lexsort((pair, -pairs.data[pair], node))
    starts = np.searchsorted(node[order], np.arange(pairs.shape[0]))
    place = np.arange(len(node)) - starts[node[order]]
    kept = np.zeros(pairs.nnz, dtype=bool)
    kept[pair[order[place < top_k]]] = True
    return kept


def write_pairs(file: IO[bytes], path: Path, kept: sp.coo_matrix, names: pd.Series) -> None:
    """Write weighted pairs to an open file, in the form that the ending of ``path`` names.

    Parameters
    ----------
    file : binary file
    path : Path
        ``.csv``: a row ``source,target,weight`` for each pair. ``.npz``: a symmetric SciPy CSR
        matrix. ``.bin``: a DGLGraph with both directions of each pair and ``edata["weight"]``, as
        of `dgl.save_graphs`.
    kept : scipy COO (N, N)
        Each pair once.
    names : Series of object (N,)
        Ids of the nodes, for ``.csv``.
    """
    if path.suffix == ".npz":
        sp.save_npz(file, (kept + kept.T).tocsr())
    elif path.suffix == ".bin":
        _write_dgl(file, kept)
    else:
        ends = {"source": names.to_numpy()[kept.row], "target": names.to_numpy()[kept.col]}
        write_table(file, pd.DataFrame({**ends, "weight": kept.data}))


def _write_dgl(file: IO[bytes], kept: sp.coo_matrix) -> None:
    from user_dgl._dgl import dgl  # imported here because the import takes seconds

    # DGL writes to a path and not to an open file, so it opens this file a second time.
    try:
        dgl.save_graphs(file.name, [to_dgl(kept, dgl)])
    except dgl.DGLError as error:
        why = one_line(error).partition(" Stack trace")[0]
        raise OSError(f"DGL could not write all of it ({why}): is the disk full?") from None


def to_dgl(pairs: sp.coo_matrix, dgl: Any) -> Any:
    """Make a DGLGraph with both directions of each pair and ``edata["weight"]``, float32.

    Parameters
    ----------
    pairs : scipy COO (N, N)
        Each pair once.
    dgl : module
        DGL, which takes seconds to import.
    """
    ends = [torch.from_numpy(end.astype(np.int64)) for end in (pairs.row, pairs.col)]
    graph = dgl.graph((torch.cat(ends), torch.cat(ends[::-1])), num_nodes=pairs.shape[0])
    graph.edata["weight"] = torch.from_numpy(pairs.data.astype(np.float32)).repeat(2)
    return graph


def _write_embedding(file: IO[bytes], path: Path, embedding: np.ndarray, names: pd.Series) -> None:
    if path.suffix == ".npy":
        np.save(file, embedding)
        return
    table = pd.DataFrame(embedding, columns=[f"x{i}" for i in range(embedding.shape[1])])
    table.insert(0, "node", names)
    write_table(file, table)


def write_table(file: IO[bytes], table: pd.DataFrame) -> None:
    """Write a table as CSV, quoted so that it can be read back."""
    file.write(csv_text(table).encode())
