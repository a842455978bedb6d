"""What runs for one cell: a training, the floors alone, a rival, or a network on A or A'."""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

import user_dgl
from reproduction import deeprobust_models, inputs, pyagc_models, rivals
from reproduction import defence as defence_script
from reproduction.children import Children
from reproduction.code_digest import code_digest
from reproduction.input_digest import content_digests
from user_dgl.config import load_config
from user_dgl.config.schema import to_plain

_INPUTS, _RIVALS = Path(inputs.__file__), Path(rivals.__file__)
_DEEPROBUST, _PYAGC = Path(deeprobust_models.__file__), Path(pyagc_models.__file__)


def with_readable_labels(cell, children: Children) -> list[str]:
    """The settings of a cell, where its labels are LFR's communities with a file of rows instead.

    The digest is of the published file, so that it does not depend on the temporary one.
    """
    if not any(".json.gz" in setting for setting in cell.overrides):
        return cell.settings
    from user_dgl.data import data_root

    data = load_config(cell.config, cell.settings).data
    communities = data_root(data) / data.labels
    out = children.folder / f"{communities.name}.csv"
    children.make(out, lambda: inputs.write_labels(communities, out))
    return [*cell.settings, f"data.labels={out}"]


def training(cell, settings: list[str], results: Path, children: Children) -> dict:
    """Train a cell and return the content of ``result.json``, and ``wall_seconds``."""
    if cell.kind == "metattack":
        # An attack takes longer than a training, so it is made once for all methods.
        config = load_config(cell.config, cell.settings)
        content = content_digests({cell: config}, results)[cell]
        code = code_digest("perturb", cell.method, config, content)
        recipe = json.dumps([code, cell.seed, to_plain(config)["data"]])
        recipe = hashlib.sha256(recipe.encode()).hexdigest()[:8]
        name = f"{cell.dataset}-{cell.rate}-seed{cell.seed}-{recipe}.npz"
        file = (results / "attacked" / name).resolve()
        command = ["perturb", *cell.perturbing, "--out", str(file)]
        children.make(file, lambda: children.user_dgl(command))
        settings = [*settings, f"data.noise={json.dumps({'kind': 'file', 'file': str(file)})}"]
    with tempfile.TemporaryDirectory(prefix="user-dgl-") as folder:
        run = Path(folder) / "run"
        command = ["train", str(cell.config), *settings, f"output_dir={run}"]
        seconds = children.user_dgl(command)
        result = json.loads((run / "result.json").read_text())
        if cell.keeps_run:
            kept = cell.run_dir(results)
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(run, kept)
        return result | {"wall_seconds": seconds}


def floors(cell, settings: list[str], children: Children) -> dict:
    """Compute the floors of a cell in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="user-dgl-") as folder:
        out = Path(folder) / "floors.json"
        command = ["floors", str(out), str(cell.config), *settings]
        seconds = children.script(_INPUTS, command)
        result = json.loads(out.read_text())
    return result | {"wall_seconds": seconds, **_versions()}


def rival(cell, settings: list[str], children: Children) -> dict:
    """Run a rival on the noisy graph of a cell, without its features, and score its labels."""
    return _clustering(cell, settings, children, "graph", _RIVALS, ())


def pyagc(cell, settings: list[str], children: Children) -> dict:
    """Run a model of PyAGC on the noisy graph of a cell, by the interpreter that has it."""
    python = pyagc_models.interpreter()
    return _clustering(
        cell, settings, children, "graph-and-features", _PYAGC, (cell.dataset,), python
    )


def _clustering(
    cell,
    settings: list[str],
    children: Children,
    kind: str,
    script: Path,
    more: tuple[str, ...],
    interpreter: str | None = None,
) -> dict:
    """Write what a script reads, run it, and score its labels."""
    # Imported here because it imports torch, which takes seconds that other tables do not need.
    from user_dgl.evaluation.label_metrics import clustering_metrics

    # Without flips the graph is the same for all seeds.
    seed = cell.seed if cell.kind == "random_flip" else "any"
    graph = children.folder / f"{kind}-{cell.dataset}-{cell.rate}-{seed}.npz"
    command = [kind, str(graph), str(cell.config), *settings]
    children.make(graph, lambda: children.script(_INPUTS, command))
    num_clusters = load_config(cell.config, cell.settings).model.num_clusters
    with tempfile.TemporaryDirectory(prefix="user-dgl-") as folder:
        out = Path(folder) / "labels.npz"
        command = [cell.method, str(graph), *more, str(num_clusters), str(cell.seed), str(out)]
        seconds = children.script(script, command, interpreter)
        with np.load(out) as found, np.load(graph) as data:
            clusters, peak = found["labels"], float(found["peak_memory_mb"])
            metrics = clustering_metrics(data["labels"], clusters)
    return {
        "metrics": metrics,
        "num_clusters_found": len(np.unique(clusters)),
        "wall_seconds": seconds,
        "peak_memory_mb": peak,
        **_versions(),
    }


def defence(cell, settings: list[str], children: Children) -> dict:
    """Train a network for node classification on the graph of a cell, or on its A'."""
    cleaned = children.folder / f"cleaned-{cell.dataset}-{cell.rate}-{cell.seed}.npz"
    recipe = [str(cell.config), *settings]
    if defence_script.needs_cleaning(cell.method):
        command = ["clean", str(cleaned), str(cell.seed), *recipe]
        children.make(cleaned, lambda: children.function(defence_script.main, command))
    with tempfile.TemporaryDirectory(prefix="user-dgl-") as folder:
        out = Path(folder) / "result.json"
        command = ["train", str(out), cell.method, str(cell.seed), str(cleaned), *recipe]
        seconds = children.function(defence_script.main, command)
        result = json.loads(out.read_text())
    return result | {"wall_seconds": seconds, **_versions()}


def deeprobust(cell, settings: list[str], children: Children) -> dict:
    """Train a model of DeepRobust on the graph of a cell, by the interpreter that has it."""
    read = children.folder / f"inputs-{cell.dataset}-{cell.rate}-{cell.seed}.npz"
    command = ["inputs", str(read), str(cell.seed), str(cell.config), *settings]
    children.make(read, lambda: children.function(defence_script.main, command))
    with tempfile.TemporaryDirectory(prefix="user-dgl-") as folder:
        out = Path(folder) / "result.json"
        command_line = [cell.method, str(cell.seed), str(read), str(out)]
        seconds = children.script(_DEEPROBUST, command_line, deeprobust_models.interpreter())
        result = json.loads(out.read_text())
    return result | {"wall_seconds": seconds, **_versions()}


def _versions() -> dict:
    return {"versions": {"user_dgl": user_dgl.__version__}}
