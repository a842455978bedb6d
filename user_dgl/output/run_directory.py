"""The output directory of a run, and the rules for using an existing one."""

import fcntl
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from user_dgl.config import Config, load_config, to_yaml
from user_dgl.config.schema import to_plain
from user_dgl.config.strict_yaml import parse_yaml
from user_dgl.errors import InputError
from user_dgl.graph import Graph
from user_dgl.output.tables import csv_text
from user_dgl.runtime.files import check_writable, write_atomically
from user_dgl.training.checkpoint import load_checkpoint, save_checkpoint

# Exceptions of NumPy and SciPy for a file that is cut off or has another format.
_DAMAGED = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)
# Numbers that every result has in addition to its metrics.
_NUMBERS = (
    "num_nodes", "num_observed_edges", "num_features", "num_clusters", "num_clusters_found",
    "seconds_total",
)  # fmt: skip
# Settings that may differ between a run and its continuation, as they do not change the result.
_FREE = (
    "output_dir",
    "overwrite",
    "device",
    "data.root",
    "train.resume",
    "train.log_every",
    "train.checkpoint_every",
    "distributed.backend",
    "distributed.partition",
    "distributed.timeout_s",
)


class RunDirectory:
    """Files of a run. Each is written completely or not at all; ``result.json`` comes last.

    Only ``metrics.jsonl`` grows, by a row for each epoch.

    Attributes
    ----------
    path : Path
    """

    config_file = "config.yaml"
    metrics_file = "metrics.jsonl"
    result_file = "result.json"
    clusters_file = "clusters.csv"
    embedding_file = "embedding.npy"
    learned_file = "learned_graph.npz"
    input_file = "input.npz"
    links_file = "links.npz"
    link_model_file = "link_model.npz"
    checkpoint_file = "checkpoint.pt"
    report_file = "report.html"
    shard_files = "checkpoint-*.pt"
    pictures_dir = "report"
    # Pictures of the report; each is a file of this name with suffix .png in `pictures_dir`.
    pictures = (
        "loss", "observed_graph", "learned_graph", "weights", "map", "cluster_sizes",
        "num_clusters",
    )  # fmt: skip

    def __init__(self, path: Path):
        self.path = path
        self._held: ExitStack | None = None

    def own_files(self) -> list[Path]:
        """Return all files that a run or its report writes, except the shards of a checkpoint."""
        names = (
            self.config_file,
            self.metrics_file,
            self.result_file,
            self.clusters_file,
            self.embedding_file,
            self.learned_file,
            self.input_file,
            self.links_file,
            self.link_model_file,
            self.checkpoint_file,
            self.report_file,
        )
        files = [self.path / name for name in names]
        return files + [self.picture_path(name) for name in self.pictures]

    def picture_path(self, name: str) -> Path:
        """Return the path of a picture of the report."""
        return self.path / self.pictures_dir / f"{name}.png"

    def check_may_enter(self, config: Config) -> None:
        """Refuse a folder that a run of these settings may not use. Nothing is changed.

        Raises
        ------
        InputError
            The folder cannot be written, is not empty and neither ``train.resume`` nor
            ``overwrite`` is set, or it holds no run or a run of other settings.
        """
        path = self.path
        try:
            occupied = path.exists() and (not path.is_dir() or any(map(_counts, path.iterdir())))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        if not occupied:
            check_writable(path)
            return
        if config.train.resume:
            self.check_same_settings(config)
        elif not config.overwrite:
            raise InputError(
                f"{path}: not empty; set output_dir to another folder, overwrite=true to "
                "replace a run there or train.resume=true to go on with it"
            )
        elif not self._holds_run():
            raise InputError(
                f"{path}: not empty, and holds no run to overwrite: choose another folder"
            )

    def checkpoint_to_resume(self, config: Config) -> dict[str, Any] | None:
        """Load the checkpoint that a run of these settings resumes from, if there is one.

        Nothing in the folder is changed.

        Raises
        ------
        InputError
            As in `check_may_enter`, or the checkpoint cannot be read.
        """
        self.check_may_enter(config)
        file = self.path / self.checkpoint_file
        return load_checkpoint(file) if config.train.resume and file.exists() else None

    def begin(self, config: Config, checkpoint: dict[str, Any] | None) -> None:
        """Prepare the folder for a run that may use it, and write ``config.yaml``.

        Files of an earlier run are removed, except those that belong to the checkpoint.

        Raises
        ------
        InputError
            The folder cannot be written, or another run writes there at this moment.
        """
        path = self.path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock()
            if checkpoint is not None:
                self._keep_metrics_until(checkpoint)
            else:
                # With config.yaml, which is replaced last, this shows at any time that a run is
                # here, so that a run that is interrupted may be replaced or gone on with.
                self.write_file(self.metrics_file, lambda file: None)
                if config.overwrite and not config.train.resume:
                    for file in self.own_files():
                        if file.name not in (self.config_file, self.metrics_file):
                            file.unlink(missing_ok=True)
                    self.remove_shards_but([])
            self._remove_unfinished()
            # The saved settings must neither overwrite nor resume when a user trains with them.
            saved = replace(config, overwrite=False, train=replace(config.train, resume=False))
            text = to_yaml(saved).encode()
            self.write_file(self.config_file, lambda file: file.write(text))
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None

    @contextmanager
    def one_writer(self) -> Iterator[None]:
        """Let no other process write a run here, from `begin` to the end of this context."""
        with ExitStack() as held:
            self._held = held
            try:
                yield
            finally:
                self._held = None

    def _lock(self) -> None:
        if self._held is None:
            return
        folder = os.open(self.path, os.O_RDONLY)
        self._held.callback(os.close, folder)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{self.path}: another run writes here at this moment: choose another folder"
            ) from None
        except OSError:  # some file systems have no locks
            pass

    def finished(self) -> bool:
        """Return whether the run here has ended."""
        return (self.path / self.result_file).exists()

    def newer(self, files: Iterable[Path]) -> list[Path]:
        """Those of some files that were changed after the run here ended."""
        ended = (self.path / self.result_file).stat().st_mtime
        return [file for file in files if file.is_file() and file.stat().st_mtime > ended]

    def _holds_run(self) -> bool:
        """Return whether there are settings of a run, of any version, and traces of training."""
        traces = (self.metrics_file, self.checkpoint_file, self.result_file)
        if not any((self.path / name).is_file() for name in traces):
            return False
        try:
            settings = parse_yaml(self.read_config_text(), self.config_file, {})
        except InputError:
            return False
        return isinstance(settings.get("model"), dict)

    def _remove_unfinished(self) -> None:
        """Remove the unfinished files of processes that were killed."""
        names = [(file.parent, file.name) for file in self.own_files()]
        for folder, name in (*names, (self.path, self.shard_files)):
            for file in folder.glob(f".{name}.*.part"):
                file.unlink(missing_ok=True)

    def check_same_settings(self, config: Config) -> None:
        """Raise `InputError` unless the run here has the given settings."""
        file = self.path / self.config_file
        if not file.exists():
            raise InputError(f"{self.path}: not empty, and holds no run to go on with")
        before, now = _flat(to_plain(self.read_config())), _flat(to_plain(config))
        # A name that only one of them has, in loss.terms or structure.candidates.sources, counts 0.
        differ = {k: (before.get(k, 0), now.get(k, 0)) for k in sorted(before.keys() | now.keys())}
        changed = [k for k, (was, now_is) in differ.items() if was != now_is and k not in _FREE]
        if changed:
            shown = ", ".join(f"{k} was {differ[k][0]}, is {differ[k][1]}" for k in changed[:3])
            raise InputError(f"{self.path}: holds a run of other settings ({shown})")

    def _keep_metrics_until(self, checkpoint: dict[str, Any]) -> None:
        """Drop the metrics of epochs after the checkpoint, because they are trained again."""
        file = self.path / self.metrics_file
        if not file.exists():
            return
        reached = checkpoint.get("progress", {}).get("epoch", 0)
        kept = [json.dumps(row) + "\n" for row in self.read_metrics() if row["epoch"] <= reached]
        data = "".join(kept).encode()
        write_atomically(file, lambda out: out.write(data))

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read the rows of ``metrics.jsonl``, up to a row that a crash has cut off."""
        rows = []
        file = self._existing(self.metrics_file)
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            try:
                row = json.loads(line)
            except ValueError:
                break
            if not isinstance(row, dict) or not isinstance(row.get("epoch"), int):
                raise InputError(f"{file}:{number}: no row of a run: is the file damaged?")
            rows.append(row)
        return rows

    def record(self, row: dict[str, Any]) -> None:
        """Append a row to ``metrics.jsonl``."""
        file = self.path / self.metrics_file
        try:
            with open(file, "a") as out:
                out.write(json.dumps(row) + "\n")
        except OSError as error:
            raise InputError(f"{file}: cannot be written: {error.strerror or error}") from None

    def save_checkpoint(self, state: dict[str, Any]) -> None:
        """Replace ``checkpoint.pt``."""
        save_checkpoint(self.path / self.checkpoint_file, state)

    def save_shard(self, name: str, state: dict[str, Any]) -> None:
        """Write the shard of one process of a distributed checkpoint to its own file."""
        save_checkpoint(self.path / name, state)

    def remove_shards_but(self, names: list[str]) -> None:
        """Remove the shards of older checkpoints."""
        for file in self.path.glob(self.shard_files):
            if file.name not in names:
                file.unlink(missing_ok=True)

    # -----------------------------------------------------------------------------------------

    def write_input(self, graph: Graph, added: np.ndarray, labels: np.ndarray | None) -> None:
        """Write the graph that is trained on, its added noise edges, and the labels for metrics."""
        arrays: dict[str, Any] = {
            "num_nodes": np.int64(graph.num_nodes),
            "src": graph.src.numpy(),
            "dst": graph.dst.numpy(),
            "added": added,
        }
        if graph.weight is not None:
            arrays["weight"] = graph.weight.numpy()
        if labels is not None:
            arrays["labels"] = labels
        self.write_file(self.input_file, lambda file: np.savez(file, **arrays))

    def read_input(self) -> tuple[Graph, np.ndarray, np.ndarray | None]:
        """Read what `write_input` wrote."""
        with self.read_npz(self.input_file) as arrays:
            num_nodes = int(arrays["num_nodes"])
            keys = arrays["src"].astype(np.int64) * num_nodes + arrays["dst"]
            graph = Graph.from_keys(num_nodes, keys)
            if "weight" in arrays:
                graph = replace(graph, weight=torch.from_numpy(arrays["weight"]))
            return graph, arrays["added"], arrays.get("labels")

    def write_clusters(self, node_ids: Sequence[str] | range, clusters: np.ndarray) -> None:
        """Write node ids and clusters to ``clusters.csv``."""
        table = pd.DataFrame({"node": node_ids, "cluster": clusters})
        text = csv_text(table).encode()
        self.write_file(self.clusters_file, lambda file: file.write(text))

    def read_clusters(self) -> tuple[list[str], np.ndarray]:
        """Read node ids and clusters."""
        file = self._existing(self.clusters_file)
        try:
            table = pd.read_csv(
                file, dtype={"node": str, "cluster": "int64"}, keep_default_na=False
            )
            return table["node"].tolist(), table["cluster"].to_numpy()
        except (ValueError, KeyError) as error:
            raise InputError(f"{file}: not a table of node,cluster ({error})") from None

    def write_embedding(self, embedding: np.ndarray) -> None:
        """Write the embedding to ``embedding.npy``, float32 (N, d)."""
        embedding = embedding.astype(np.float32, copy=False)
        self.write_file(self.embedding_file, lambda file: np.save(file, embedding))

    def read_embedding(self) -> np.ndarray:
        """Read what `write_embedding` wrote."""
        file = self._existing(self.embedding_file)
        try:
            return np.load(file, allow_pickle=False)
        except _DAMAGED as error:
            raise InputError(f"{file}: not a NumPy file ({error})") from None

    def write_learned_graph(self, graph: Graph, weight: np.ndarray) -> None:
        """Write A' to ``learned_graph.npz`` as a symmetric SciPy CSR matrix."""
        matrix = graph.to_scipy(torch.from_numpy(weight))
        self.write_file(self.learned_file, lambda file: sp.save_npz(file, matrix, compressed=False))

    def read_learned_graph(self) -> sp.csr_matrix:
        """Read what `write_learned_graph` wrote."""
        file = self._existing(self.learned_file)
        try:
            return sp.load_npz(file).tocsr()
        except _DAMAGED as error:
            raise InputError(f"{file}: not a SciPy sparse npz file ({error})") from None

    def read_learned_weight(self, graph: Graph) -> np.ndarray:
        """Read the weight in A' of each pair of ``graph`` (E,)."""
        matrix = self.read_learned_graph()
        self.check_sizes(**{"nodes": graph.num_nodes, "rows of A'": matrix.shape[0]})
        if not graph.num_edges:
            return np.zeros(0, dtype=matrix.dtype)  # SciPy gives a matrix of one row
        src, dst = graph.src.numpy().astype(np.int64), graph.dst.numpy().astype(np.int64)
        return np.asarray(matrix[src, dst]).ravel()

    def read_learned_pairs(self) -> tuple[Graph, np.ndarray]:
        """Read the pairs of A' and their weights (P,)."""
        matrix = sp.triu(self.read_learned_graph(), format="csr")
        matrix.sort_indices()
        src = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return Graph.from_edges(matrix.shape[0], src, matrix.indices)[0], matrix.data

    def write_result(self, result: dict[str, Any]) -> None:
        """Write ``result.json``, the last file of a run."""
        text = json.dumps(result, indent=2, allow_nan=False).encode()
        self.write_file(self.result_file, lambda file: file.write(text + b"\n"))

    def read_result(self) -> dict[str, Any]:
        """Read what `write_result` wrote."""
        file = self._existing(self.result_file)
        try:
            result = json.loads(file.read_text())
        except ValueError as error:
            raise InputError(f"{file}: not JSON ({error})") from None
        known = result if isinstance(result, dict) else {}
        numbers = all(isinstance(known.get(name), Real) for name in _NUMBERS)
        if not numbers or not isinstance(known.get("metrics"), dict):
            raise InputError(f"{file}: not the result of a run: is it damaged?")
        return result

    def read_config_text(self) -> str:
        """Read the text of ``config.yaml``, of any version."""
        return self._existing(self.config_file).read_text("utf-8", errors="replace")

    def read_config(self) -> Config:
        """Read the resolved settings of the run."""
        return load_config(self._existing(self.config_file))

    def write_file(self, name: str, write: Callable[[Any], None]) -> None:
        """Write a file of the run completely or not at all; ``write`` gets the open binary file."""
        write_atomically(self.path / name, write)

    @contextmanager
    def read_npz(self, name: str) -> Iterator[Any]:
        """Open the arrays of an npz file. Damage may only show when one of them is read."""
        file = self._existing(name)
        try:
            with np.load(file, allow_pickle=False) as arrays:
                yield arrays
        except _DAMAGED as error:
            raise InputError(f"{file}: not a readable npz file ({error})") from None

    def _existing(self, name: str) -> Path:
        """Return the path of a file, or raise `InputError` if it is missing or not readable."""
        file = self.path / name
        if not file.is_file():
            raise InputError(f"{file}: not there; is {self.path} the folder of a finished run?")
        if not os.access(file, os.R_OK):
            raise InputError(f"{file}: may not be read: change its permissions")
        return file

    def check_sizes(self, **counts: int) -> None:
        """Raise `InputError` unless the given files hold the same number of nodes."""
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{count} {name}" for name, count in counts.items())
            raise InputError(f"{self.path}: {shown}: files of different runs do not go together")


def _counts(file: Path) -> bool:
    """Return whether a file is more than what a killed process leaves before its settings."""
    if file.name == RunDirectory.metrics_file and file.is_file():
        return file.stat().st_size > 0
    return not (file.name.startswith(".") and file.name.endswith(".part"))


def _flat(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one dict with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
