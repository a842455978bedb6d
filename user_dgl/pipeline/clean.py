"""The command ``user-dgl clean``: from files of edges and features to a file of A'."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from user_dgl.cleaning.clean import CleanedGraph, clean
from user_dgl.cleaning.doubts import doubtful_edges
from user_dgl.cleaning.posterior import EdgePosterior
from user_dgl.config import DataConfig
from user_dgl.data import load_data
from user_dgl.errors import InputError
from user_dgl.output.export import kept_edges, write_pairs, write_table
from user_dgl.runtime.files import check_output_file, write_atomically

_SUFFIXES = (".csv", ".npz", ".bin")


@dataclass(frozen=True)
class CleanRequest:
    """What is to be cleaned, and where it goes.

    Attributes
    ----------
    data : DataConfig
    categorical : str
        ``features.categorical``: treatment of columns of text among the features.
    out : Path
        ``.csv``, ``.npz`` or ``.bin``, see `user_dgl.output.export.write_pairs`.
    doubtful : Path or None
        ``.csv`` for the most doubtful edges.
    threshold, top_k
        Which pairs of A' are kept, see `user_dgl.output.export.kept_edges`.
    power, candidates, seed
        See `user_dgl.cleaning.clean.clean`.
    overwrite : bool
        Whether existing files may be replaced.
    """

    data: DataConfig
    categorical: str
    out: Path
    doubtful: Path | None
    threshold: float | None
    top_k: int | None
    power: float | None
    candidates: int
    seed: int
    overwrite: bool

    def check(self) -> None:
        """Refuse files that cannot or must not be written, before anything is computed.

        Raises
        ------
        InputError
        """
        inputs = [Path(file) for file in (self.data.edges, self.data.features) if file]
        for option, file, suffixes in (
            ("out", self.out, _SUFFIXES),
            ("doubtful", self.doubtful, (".csv",)),
        ):
            if file is not None:
                check_output_file(
                    file,
                    suffixes,
                    option=f"--{option}",
                    kept=inputs,
                    replace=self.overwrite,
                    remedy="--overwrite",
                )
        if self.doubtful is not None and self.doubtful.resolve() == self.out.resolve():
            raise InputError(f"{self.out}: both --out and --doubtful: choose different names")


def clean_files(request: CleanRequest, log: Callable[[str], None]) -> None:
    """Read a graph, clean it and write A'. Each file is written completely or not at all.

    Parameters
    ----------
    request : CleanRequest
    log : callable
        Called with each line for the user.

    Raises
    ------
    InputError
    """
    request.check()
    data = load_data(request.data, request.categorical)
    for note in data.notes:
        log(f"Note: {note}")
    ids = data.node_ids or tuple(map(str, range(data.num_nodes)))
    names = pd.Series(ids, dtype=object)
    cleaned = clean(
        data.graph,
        data.feat,
        seed=request.seed,
        power=request.power,
        candidates=request.candidates,
    )
    for warning in cleaned.warnings:
        log(f"Warning: {warning}")
    kept = kept_edges(cleaned.pairs(), request.threshold, request.top_k)
    if cleaned.posterior is not None:
        log(_summary(cleaned, cleaned.posterior))
    table = doubtful_edges(cleaned, names)
    write_atomically(request.out, lambda file: write_pairs(file, request.out, kept, names))
    if request.doubtful is not None:
        write_atomically(request.doubtful, lambda file: write_table(file, table))
        log(f"{request.doubtful}: {len(table)} most doubtful edges")
    elif len(table):
        log("Most doubtful edges, and the terms of their log-odds that are below those of most:")
        for line in table.to_string(index=False, float_format="%.3f").splitlines():
            log(line)
    log(f"{request.out}: {kept.nnz} of {cleaned.graph.num_edges} pairs of A' kept")


def _summary(cleaned: CleanedGraph, posterior: EdgePosterior) -> str:
    """Say in one line how the edges were judged."""
    by = "graph alone" if posterior.feature_judge is None else "features and graph"
    return (
        f"Judged by {by}: {100 * posterior.noise_share:.1f} % of the edges look like random pairs; "
        f"weights to the power {cleaned.power:.2g}; {(~cleaned.observed).sum()} pairs added"
    )
