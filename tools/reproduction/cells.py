"""One training is one cell of a table: run it, keep its scores as one row of a CSV file."""

import fcntl
import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from reproduction import runs
from reproduction.children import Children, Failure
from reproduction.rivals import lacks
from user_dgl.config import Config, load_config
from user_dgl.config.schema import to_plain
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
    *("seconds", "wall_seconds", "peak_memory_mb", "digest", "user_dgl"),
]
_NOISE = ["weight_auc", "weight_ap", "estimated_share", "true_share"]
_TEXT = ["table", "dataset", "method", "kind", "digest", "user_dgl"]


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
        `reproduction.rivals.RIVALS`) or ``defence`` (a network of `reproduction.defence`).
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


def settings_digest(config: Config) -> str:
    """A short digest of the settings that can change the scores and differ from their default.

    A setting that is added later, with a default that changes nothing, therefore leaves finished
    cells valid. After a change of a default or of the code, cells must be run with ``--force``.
    For a baseline the settings count that it is trained with, not those of USER in its config.
    """
    if config.model.kind != "user":
        # Imported here because it imports torch, which takes seconds that other tables do not need.
        from user_dgl.baselines import resolve_baseline

        config, _ = resolve_baseline(config)
    config = replace(
        config,
        output_dir=None,
        overwrite=False,
        data=replace(config.data, root=None),
        train=replace(config.train, resume=False, log_every=1, checkpoint_every=1),
    )
    changed = _changed(to_plain(config), to_plain(load_config(None)))
    return hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:12]


def cell_digest(cell: Cell, config: Config) -> str:
    """`settings_digest`, for floors and rivals of the settings that they read."""
    if cell.by == "user-dgl":
        return settings_digest(config)
    plain = to_plain(replace(config, data=replace(config.data, root=None)))
    changed = _changed(plain, to_plain(load_config(None)))
    read = {"method": cell.method, "seed": config.seed, "data": changed.get("data", {})}
    read["num_clusters"] = config.model.num_clusters
    if cell.by == "floors":
        read["features"] = changed.get("features", {})
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()[:12]


def _changed(plain: dict, default: dict) -> dict:
    """Return the nested settings that differ from the default."""
    changed = {}
    for name, value in plain.items():
        if isinstance(value, dict):
            value = _changed(value, default[name])
            if value:
                changed[name] = value
        elif value != default[name]:
            changed[name] = value
    return changed


@dataclass
class Survey:
    """State of the cells of a table.

    Attributes
    ----------
    digests : dict
        Digest of the current settings, by key of the cell.
    finished, missing, stale : list of Cell
        A cell is stale where its row was made with other settings than the current ones.
    unusable : dict
        Reason why the settings cannot be read, by cell.
    """

    digests: dict[tuple, str]
    finished: list[Cell]
    missing: list[Cell]
    stale: list[Cell]
    unusable: dict[Cell, str]


def survey(cells: Sequence[Cell], results: Path) -> Survey:
    """Compare cells with the rows in the CSV files."""
    found = Survey({}, [], [], [], {})
    configs: dict[tuple, Config] = {}
    kept = {
        tuple(row[:-1]): row[-1]
        for table in {cell.table for cell in cells}
        for row in read_rows(results, table)[[*KEY, "digest"]].itertuples(index=False)
    }
    for cell in cells:
        try:
            recipe = (cell.config, *cell.settings)
            if recipe not in configs:  # a training, its floors and its rivals share one
                configs[recipe] = load_config(cell.config, cell.settings)
            digest = cell_digest(cell, configs[recipe])
        except InputError as error:
            found.unusable[cell] = str(error)
            continue
        found.digests[cell.key] = digest
        if cell.key not in kept:
            found.missing.append(cell)
        elif kept[cell.key] != digest:
            found.stale.append(cell)
        elif cell.keeps_run and not (cell.run_dir(results) / "result.json").exists():
            found.missing.append(cell)
        else:
            found.finished.append(cell)
    return found


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


def run_cells(cells: Sequence[Cell], results: Path, jobs: int = 1, force: bool = False) -> Outcome:
    """Run the cells that are missing or stale; each finished cell is written to disk at once.

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

    Returns
    -------
    Outcome
    """
    results.mkdir(parents=True, exist_ok=True)
    state = survey(cells, results)
    outcome = Outcome(0, dict(state.unusable))
    if state.stale:
        tqdm.write(f"{len(state.stale)} cells were made with other settings and run again")
    pending = [*state.missing, *state.stale, *(state.finished if force else [])]
    if not force:
        pending = _reuse_rows(pending, state, results, outcome)
    missing = {cell: lacks(cell.method) for cell in pending if cell.by == "rival"}
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
                    add_rows(results, [result_row(cell, result, state.digests[cell.key])])
                    outcome.done += 1
                bar.update()
        except KeyboardInterrupt:
            outcome.interrupted = True
            pool.shutdown(wait=False, cancel_futures=True)
            children.stop()


def _train(cell: Cell, results: Path, children: Children) -> dict:
    """Run a cell and return the content of ``result.json``, for floors and rivals its like."""
    settings = runs.with_readable_labels(cell, children)
    if cell.by == "floors":
        return runs.floors(cell, settings, children)
    if cell.by == "rival":
        return runs.rival(cell, settings, children)
    if cell.by == "defence":
        return runs.defence(cell, settings, children)
    return runs.training(cell, settings, results, children)


def result_row(cell: Cell, result: dict, digest: str) -> dict:
    """The row of a finished cell.

    Parameters
    ----------
    cell : Cell
    result : dict
        Content of ``result.json``; columns of sections that it lacks stay empty.
    digest : str
        Of its settings.

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
        "critic_power": (result.get("critic") or {}).get("power"),
        "num_clusters_found": result.get("num_clusters_found"),
        "seconds": result.get("seconds_total"),
        "wall_seconds": result.get("wall_seconds"),
        "peak_memory_mb": result["peak_memory_mb"],
        "digest": digest,
        "user_dgl": result["versions"]["user_dgl"],
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
    finished = {cell.key for cell in survey(cells, results).finished}
    rows = read_rows(results, cells[0].table)
    keys = rows[KEY].itertuples(index=False, name=None)
    return rows[pd.Series([key in finished for key in keys], index=rows.index, dtype=bool)]


def add_rows(results: Path, rows: list[dict]) -> None:
    """Add rows of one table to its file; they replace rows of the same cells."""
    table = rows[0]["table"]
    with _locked(results):
        kept = read_rows(results, table).to_dict("records")
        by_key = {tuple(row[name] for name in KEY): row for row in [*kept, *rows]}
        merged = pd.DataFrame(by_key.values(), columns=COLUMNS).sort_values(KEY)
        text = merged.to_csv(index=False, float_format="%.4f", lineterminator="\n")
        write_text(results / f"{table}.csv", text)


def write_text(file: Path, text: str) -> None:
    """Write a file under another name and rename it, so that it is never seen half written."""
    aside = file.with_name(f".{file.name}.part")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, file)


@contextmanager
def _locked(folder: Path):
    """Keep a second reproduce.py on the same folder from writing at the same moment."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _reuse_rows(pending: list[Cell], state: Survey, results: Path, outcome: Outcome) -> list[Cell]:
    """Copy rows of finished cells with the same settings, and return the cells that remain.

    The full model of the ablation, for example, is also a cell of the random noise table.
    """
    known = {}
    for file in sorted(results.glob("*.csv")):
        known |= {row["digest"]: row for row in read_rows(results, file.stem).to_dict("records")}
    rows, rest = [], []
    for cell in pending:
        row = known.get(state.digests[cell.key])
        if row is None or cell.keeps_run:
            rest.append(cell)
        else:
            rows.append(row | dict(zip(KEY, cell.key, strict=True)))
    if rows:
        add_rows(results, rows)
        outcome.done += len(rows)
        tqdm.write(f"{len(rows)} cells copied from finished cells with the same settings")
    return rest
