"""Robust networks of DeepRobust (Li et al., 2021), in an environment of their own.

``python deeprobust_models.py METHOD SEED INPUTS.npz OUT.json``, by the interpreter that the
variable `INTERPRETER` names, trains a model of the package deeprobust 0.2.11 and writes its
accuracy. The environment has deeprobust without its dependencies, and numpy, scipy, scikit-learn,
networkx, numba and torch; user_dgl is not needed.

The models train as the package does it, with the settings of its examples: 200 epochs, and the
epoch of the best validation loss or accuracy counts. Features are 0 and 1, as in its data sets.
A node of the low-rank graph of GCN-SVD may have a degree below 0. Then the outputs are not finite,
and the cell fails.
"""

import importlib
import json
import os
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

INTERPRETER = "USER_DGL_DEEPROBUST"


@dataclass(frozen=True)
class Model:
    """A model of the package.

    Attributes
    ----------
    name : str
        Its class in ``deeprobust.graph.defense``.
    hidden : int
    settings : dict
        Arguments of ``fit``.
    """

    name: str
    hidden: int = 16
    settings: tuple[tuple[str, float], ...] = ()


MODELS = {
    "DeepRobust GCN": Model("GCN"),
    "DeepRobust GCN-Jaccard": Model("GCNJaccard", settings=(("threshold", 0.01),)),
    "DeepRobust GCN-SVD": Model("GCNSVD", settings=(("k", 15),)),
    "DeepRobust RGCN": Model("RGCN", hidden=32),
}


def interpreter() -> str:
    """Path of the interpreter whose environment has deeprobust; empty if none is named."""
    return os.environ.get(INTERPRETER, "")


def lacks(method: str) -> str | None:
    """Message where no interpreter with deeprobust is named, else None."""
    if Path(interpreter()).is_file():
        return None
    return f"{method} needs an interpreter with deeprobust in {INTERPRETER}: see tools/README.md"


def train(out: Path, method: str, seed: int, inputs: Path) -> None:
    """Train a model and write ``{"metrics": {"acc": ...}, ...}`` as JSON."""
    import torch

    with np.load(inputs) as arrays:
        stored = dict(arrays)
    adjacency, feat = (_csr(stored, name) for name in ("adjacency", "feat"))
    labels, split = stored["labels"], [stored[name] for name in ("train", "valid", "test")]
    model = MODELS[method]
    make = getattr(_package(), model.name)
    torch.manual_seed(seed)
    np.random.seed(seed)
    started = time.perf_counter()
    sizes = {"nfeat": feat.shape[1], "nhid": model.hidden, "nclass": int(labels.max()) + 1}
    if model.name == "RGCN":
        sizes["nnodes"] = len(labels)
    network = make(**sizes, device="cpu")
    network.fit(feat, adjacency, labels, *split[:2], verbose=False, **dict(model.settings))
    if not torch.isfinite(network.predict()).all():
        raise ValueError(f"{method}: the outputs are not finite")
    accuracy = 100 * network.test(split[2])
    seconds = time.perf_counter() - started
    # Peak of the program alone: getrusage counts the size of the parent at the fork too.
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    result = {"metrics": {"acc": accuracy}, "seconds_total": seconds, "peak_memory_mb": peak}
    out.write_text(json.dumps(result))


def _csr(stored: dict[str, np.ndarray], name: str) -> sp.csr_matrix:
    """A matrix that `reproduction.defence.write_inputs` has written."""
    parts = (stored[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sp.csr_matrix(tuple(parts), shape=tuple(stored[f"{name}_shape"]))


def _package() -> types.ModuleType:
    """Import ``deeprobust.graph.defense`` beside versions newer than those it was written for.

    What the models of `MODELS` do not use is replaced by nothing: gensim and an import from torch,
    which other models of the package need. SciPy no longer has the public method ``asfptype``.
    """
    import scipy.sparse.linalg  # noqa: F401  # the package uses it without an import

    optimizer = importlib.import_module("torch.optim.optimizer")

    class Absent:
        def __init__(self, *arguments, **named):
            raise ImportError("this part of deeprobust is not there")

    gensim, models = types.ModuleType("gensim"), types.ModuleType("gensim.models")
    models.Word2Vec = models.KeyedVectors = Absent
    sys.modules |= {"gensim": gensim, "gensim.models": models}
    if not hasattr(optimizer, "required"):
        optimizer.required = Absent
    if not hasattr(sp.csr_matrix, "asfptype"):
        to_float: Callable = lambda matrix: matrix.astype(np.float64)  # noqa: E731
        sp.csr_matrix.asfptype = to_float
    return importlib.import_module("deeprobust.graph.defense")


def main(arguments: list[str]) -> None:
    """Run a command line."""
    method, seed, inputs, out = arguments
    train(Path(out), method, int(seed), Path(inputs))


if __name__ == "__main__":
    main(sys.argv[1:])
