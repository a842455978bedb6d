"""One training is one cell of a table: run it, keep its scores as one row of a CSV file."""

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from reproduction import deeprobust_models, pyagc_models, rivals, runs
from reproduction.children import Children, Failure
from reproduction.digests import cell_digests
from reproduction.files import locked, write_text
from reproduction.input_digest import Read, content_digests
from user_dgl.config import Config, load_config
from user_dgl.errors import InputError

KEY = ["table", "dataset", "method", "kind", "rate", "seed"]
METRICS = ["nmi", "acc", "ari", "f1", "ami"]
ASSIGNMENTS = ["head", "kmeans", "code", "consensus"]
FLOOR_METRICS = ["nmi", "acc", "ari", "ami"]
FLOORS = ["features_kmeans", "smooth_kmeans"]
# Of link prediction.
LINK_METRICS = ["auc", "ap"]
LINK_SCORES = ["learned", "dot"]
LINK_FLOORS = ["features_cosine", "smoothed_cosine"]
COLUMNS = [
    *KEY,
    *METRICS,
    *(f"nmi_{name}" for name in ASSIGNMENTS),
    *(f"{p}{f}_{m}" for p in ("", "prepared_") for f in FLOORS for m in FLOOR_METRICS),
    *(f"{score}_{m}" for score in LINK_SCORES for m in LINK_METRICS),
    *(f"{p}{f}_{m}" for p in ("", "prepared_") for f in LINK_FLOORS for m in LINK_METRICS),
    *(
        "weight_auc",
        "weight_ap",
        "estimated_share",
        "true_share",
        "self_share",
        "critic_power",
        "num_clusters_found",
    ),
    # Outcomes of choices.
    *("view", "labels_from"),
    *("seconds", "wall_seconds", "peak_memory_mb", "digest", "user_dgl", "code"),
]
# Functions that tell which package a method lacks, by `Cell.by`.
_LACKS = {
    "rival": rivals.lacks,
    "deeprobust": deeprobust_models.lacks,
    "pyagc": pyagc_models.lacks,
}
_NOISE = ["weight_auc", "weight_ap", "estimated_share", "true_share"]
_TEXT = [
    *("table", "dataset", "method", "kind", "view", "labels_from", "digest", "user_dgl", "code"),
]


@dataclass(frozen=True)
class Cell:
    """One training of one table.

    Attributes
    ----------
    table, dataset, method : str
    kind : str
        ``data.noise.kind``.
    rate : int
        Noise in percent.
    seed : int
    config : Path
    overrides : tuple of str
        Settings beside the seed and the floors.
    keeps_run : bool
        Whether the run directory stays, for figures.
    by : str
        ``user-dgl``, ``floors`` (only the floors are computed), ``rival`` (the method is a key of
        `reproduction.rivals.RIVALS`), ``pyagc`` (a key of `reproduction.pyagc_models.MODELS`),
        ``defence`` (a network of `reproduction.defence`) or ``deeprobust`` (a key of
        `reproduction.deeprobust_models.MODELS`).
    with_floors : bool
        Whether a training computes the floors too, in its own time and memory.
    """

    table: str
    dataset: str
    method: str
    kind: str
    rate: int
    seed: int
    config: Path
    overrides: tuple[str, ...] = ()
    keeps_run: bool = False
    by: str = "user-dgl"
    with_floors: bool = True

    @property
    def key(self) -> tuple:
        """The values that identify the cell."""
        return (self.table, self.dataset, self.method, self.kind, self.rate, self.seed)

    @property
    def settings(self) -> list[str]:
        """All overrides except ``output_dir``."""
        floors = str(self.with_floors).lower()
        return [*self.overrides, f"seed={self.seed}", f"eval.floors={floors}"]

    def __str__(self) -> str:
        return f"{self.table} {self.dataset} {self.method} {self.rate} % seed {self.seed}"

    @property
    def perturbing(self) -> list[str]:
        """Arguments of ``user-dgl perturb`` that make the cell's noisy graph."""
        data = [s for s in self.overrides if s.startswith(("data=", "data."))]
        return [str(self.config), *data, f"seed={self.seed}"]

    def run_dir(self, results: Path) -> Path:
        """Folder of the run directory, where it is kept."""
        return results / "outputs" / f"{self.dataset}-{self.method}-{self.rate}-seed{self.seed}"


@dataclass
class Survey:
    """State of the cells of a table.

    Attributes
    ----------
    digests : dict
        Digests of the current settings and of the current code, by key of the cell.
    finished, missing, changed : list of Cell
        A cell is changed where its row was made with other settings than the current ones.
    stale : list of Cell
        Those of ``finished`` whose row was made by other code than the current one, or by code
        that the row does not name.
    unusable : dict
        Reason why the settings cannot be read, by cell.
    """

    digests: dict[tuple, tuple[str, str]]
    finished: list[Cell]
    missing: list[Cell]
    changed: list[Cell]
    stale: list[Cell]
    unusable: dict[Cell, str]


def survey(cells: Sequence[Cell], results: Path, read: Read = "nothing") -> Survey:
    """Compare cells with the rows in the CSV files.

    Parameters
    ----------
    cells : sequence of Cell
    results : Path
    read : str
        The files to read, of which each takes a few seconds; see `content_digests`. Rows that rest
        on files that the current code has not read count as stale.
    """
    found = Survey({}, [], [], [], [], {})
    kept = {
        tuple(row[:-2]): tuple(row[-2:])
        for table in {cell.table for cell in cells}
        for row in read_rows(results, table)[[*KEY, "digest", "code"]].itertuples(index=False)
    }
    # The seeds of a training, its floors and its rivals share one reading of the settings.
    configs: dict[tuple, Config | InputError] = {}
    for cell in cells:
        if _recipe(cell) not in configs:
            try:
                configs[_recipe(cell)] = load_config(cell.config, cell.settings)
            except InputError as error:
                configs[_recipe(cell)] = error
    usable = {key: config for key, config in configs.items() if isinstance(config, Config)}
    contents = content_digests(usable, results, read)
    for cell in cells:
        recipe = _recipe(cell)
        try:
            if recipe not in usable:
                raise configs[recipe]
            config = replace(usable[recipe], seed=cell.seed)
            digests = cell_digests(cell, config, contents[recipe])
        except InputError as error:
            found.unusable[cell] = str(error)
            continue
        found.digests[cell.key] = digests
        if cell.key not in kept:
            found.missing.append(cell)
        elif kept[cell.key][0] != digests[0]:
            found.changed.append(cell)
        elif cell.keeps_run and not (cell.run_dir(results) / "result.json").exists():
            found.missing.append(cell)
        else:
            found.finished.append(cell)
            if kept[cell.key][1] != digests[1]:
                found.stale.append(cell)
    return found


def _recipe(cell: Cell) -> tuple:
    return (cell.config, cell.with_floors, *cell.overrides)


@dataclass
class Outcome:
    """Outcome of the cells that had to run.

    Attributes
    ----------
    done : int
    failed : dict
        Last line of its error output, by cell.
    interrupted : bool
    left_out : dict
        Message that names the missing package, by cell.
    """

    done: int
    failed: dict[Cell, str]
    interrupted: bool = False
    left_out: dict[Cell, str] = field(default_factory=dict)


def grouped(messages: dict[Cell, str]) -> list[str]:
    """Return a line for each distinct message, with its first cell and the number of cells."""
    first = {message: cell for cell, message in reversed(messages.items())}
    return [
        f"{first[message]}{f' and {n - 1} more' if n > 1 else ''}: {message}"
        for message, n in Counter(messages.values()).items()
    ]


def run_cells(
    cells: Sequence[Cell],
    results: Path,
    jobs: int = 1,
    force: bool = False,
    stale: bool = False,
) -> Outcome:
    """Run the cells that are missing or of other settings; each is written to disk at once.

    Parameters
    ----------
    cells : sequence of Cell
        Of one table.
    results : Path
        Folder of the CSV files; made if absent.
    jobs : int
        Processes at a time, one thread each.
    force : bool
        Run finished cells too.
    stale : bool
        Run finished cells too that are older than the code. Otherwise they are kept, and a line
        says how many they are.

    Returns
    -------
    Outcome
    """
    results.mkdir(parents=True, exist_ok=True)
    state = survey(cells, results, read="all")
    outcome = Outcome(0, dict(state.unusable))
    if state.changed:
        tqdm.write(f"{len(state.changed)} cells were made with other settings and run again")
    pending = [*state.missing, *state.changed]
    if force:
        pending += state.finished
    else:
        if state.stale:
            how = "run again" if stale else "kept; --stale runs them again"
            tqdm.write(f"{len(state.stale)} finished cells are older than the code: {how}")
        pending = _reuse_rows(pending, state, results, outcome)
        pending += _reuse_rows(state.stale, state, results, outcome, True) if stale else []
    missing = {cell: _LACKS[cell.by](cell.method) for cell in pending if cell.by in _LACKS}
    outcome.left_out = {cell: message for cell, message in missing.items() if message}
    pending = [cell for cell in pending if cell not in outcome.left_out]
    if not pending:
        return outcome
    # One thread even for a single job: a second thread gains little here and costs much on shared
    # cores.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="user-dgl-cells-") as folder:
        children = Children(environment, Path(folder), anew=force)
        _run_all(pending, results, jobs, state, children, outcome)
    return outcome


def _run_all(
    pending: list[Cell],
    results: Path,
    jobs: int,
    state: Survey,
    children: Children,
    outcome: Outcome,
) -> None:
    """Run cells, ``jobs`` at a time, and write what they give to disk and to ``outcome``."""
    with ThreadPoolExecutor(jobs) as pool, tqdm(total=len(pending), unit="cell") as bar:
        try:
            futures = {pool.submit(_train, cell, results, children): cell for cell in pending}
            for future in as_completed(futures):
                cell = futures[future]
                try:
                    result = future.result()
                except (Failure, OSError, ValueError) as error:
                    outcome.failed[cell] = str(error)
                    bar.write(f"Failed: {cell}: {error}")
                else:
                    add_rows(results, [result_row(cell, result, *state.digests[cell.key])])
                    outcome.done += 1
                bar.update()
        except BaseException as error:
            # Without this, all other cells would still run, and none of them would be written.
            pool.shutdown(wait=False, cancel_futures=True)
            children.stop()
            if not isinstance(error, KeyboardInterrupt):
                raise
            outcome.interrupted = True


def _train(cell: Cell, results: Path, children: Children) -> dict:
    """Run a cell and return the content of ``result.json``, for floors and rivals its like."""
    settings = runs.with_readable_labels(cell, children)
    if cell.by == "floors":
        return runs.floors(cell, settings, children)
    if cell.by == "rival":
        return runs.rival(cell, settings, children)
    if cell.by == "pyagc":
        return runs.pyagc(cell, settings, children)
    if cell.by == "defence":
        return runs.defence(cell, settings, children)
    if cell.by == "deeprobust":
        return runs.deeprobust(cell, settings, children)
    return runs.training(cell, settings, results, children)


def result_row(cell: Cell, result: dict, digest: str, code: str) -> dict:
    """The row of a finished cell.

    Parameters
    ----------
    cell : Cell
    result : dict
        Content of ``result.json``; columns of sections that it lacks stay empty.
    digest, code : str
        Digests of its settings and of the code that computed it.

    Returns
    -------
    dict, by column
    """
    trained = cell.by == "user-dgl"
    missing = {"metrics", "noise", "seconds_total"} - result.keys() if trained else ()
    if missing:
        raise KeyError(f"result.json of {cell.key} lacks {', '.join(sorted(missing))}")
    noise = result.get("noise", {})
    row = {
        **dict(zip(KEY, cell.key, strict=True)),
        **result.get("metrics", {}),
        **{key: noise.get(key) for key in _NOISE},
        "self_share": (result.get("view") or {}).get("self_share"),
        "view": (result.get("view") or {}).get("name"),
        "labels_from": result.get("labels_from"),
        "critic_power": (result.get("critic") or {}).get("power"),
        "num_clusters_found": result.get("num_clusters_found"),
        "seconds": result.get("seconds_total"),
        "wall_seconds": result.get("wall_seconds"),
        "peak_memory_mb": result["peak_memory_mb"],
        "digest": digest,
        "user_dgl": result["versions"]["user_dgl"],
        "code": code,
    }
    for name in ASSIGNMENTS:
        row[f"nmi_{name}"] = result.get("assignments", {}).get(name, {}).get("nmi")
    for prefix, section in (("", "floors"), ("prepared_", "floors_prepared")):
        for floor, metrics in result.get(section, {}).items():
            row |= {f"{prefix}{floor}_{name}": value for name, value in metrics.items()}
    for score, metrics in result.get("links", {}).get("test", {}).items():
        row |= {f"{score}_{name}": value for name, value in metrics.items()}
    return {name: row.get(name) for name in COLUMNS}


def read_rows(results: Path, table: str) -> pd.DataFrame:
    """Return all rows of a table, also those of other settings; empty without a file."""
    file = results / f"{table}.csv"
    if not file.exists():
        return pd.DataFrame(columns=COLUMNS)
    # Read as text, because a digest such as 12e456789012 would be read as a number.
    rows = pd.read_csv(file, dtype=dict.fromkeys(_TEXT, str))
    return rows.reindex(columns=COLUMNS)


def current_rows(cells: Sequence[Cell], results: Path) -> pd.DataFrame:
    """Return the rows of the finished cells of one table that have the current settings."""
    rows = read_rows(results, cells[0].table)
    keys = list(rows[KEY].itertuples(index=False, name=None))
    # Settings are read only of cells that have a row, which takes much less time.
    with_row = set(keys)
    finished = survey([cell for cell in cells if cell.key in with_row], results).finished
    current = {cell.key for cell in finished}
    return rows[pd.Series([key in current for key in keys], index=rows.index, dtype=bool)]


def add_rows(results: Path, rows: list[dict]) -> None:
    """Add rows of one table to its file; they replace rows of the same cells."""
    table = rows[0]["table"]
    with locked(results):
        kept = read_rows(results, table).to_dict("records")
        by_key = {tuple(row[name] for name in KEY): row for row in [*kept, *rows]}
        merged = pd.DataFrame(by_key.values(), columns=COLUMNS).sort_values(KEY)
        text = merged.to_csv(index=False, float_format="%.4f", lineterminator="\n")
        write_text(results / f"{table}.csv", text)


def _reuse_rows(
    pending: list[Cell],
    state: Survey,
    results: Path,
    outcome: Outcome,
    by_this_code: bool = False,
) -> list[Cell]:
    """Copy rows of finished cells with the same settings, and return the cells that remain.

    The full model of the ablation, for example, is also a cell of the random noise table. A row by
    the current code comes first; with ``by_this_code`` no other is taken.
    """
    known: dict[tuple, dict] = {}
    for file in sorted(results.glob("*.csv")):
        for row in read_rows(results, file.stem).to_dict("records"):
            known[row["digest"], row["code"]] = row
            if not by_this_code:
                known[row["digest"], None] = row
    rows, rest = [], []
    for cell in pending:
        digest, code = state.digests[cell.key]
        row = known.get((digest, code)) or known.get((digest, None))
        if row is None or cell.keeps_run:
            rest.append(cell)
        else:
            rows.append(row | dict(zip(KEY, cell.key, strict=True)))
    if rows:
        add_rows(results, rows)
        outcome.done += len(rows)
        tqdm.write(f"{len(rows)} cells copied from finished cells with the same settings")
    return rest
