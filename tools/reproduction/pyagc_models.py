"""Clustering of graphs with features by PyAGC (Liu et al., 2026), in an environment of its own.

``python pyagc_models.py METHOD INPUTS.npz DATASET K SEED OUT.npz``, by the interpreter that the
variable `INTERPRETER` names, runs a model of the package pyagc 1.1.2 and writes its clusters.
user_dgl is not needed. ``tools/README.md`` says how the environment is made.

The models are built and trained as the package's own benchmark does it: rows of the features, as
they are loaded, divided by their sum where it is above 1; the epoch of the lowest loss counts. Then
rows of norm 1 are clustered by k-means of 10 starts. For M-S2CAG the benchmark does so on all data
sets that it names; its default there is another rounding. The settings are those of the benchmark
where it has the data set, on clean and noisy graphs, and its default settings elsewhere.
"""

import copy
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

INTERPRETER = "USER_DGL_PYAGC"
_LR, _PATIENCE = 0.001, 50
_Settings = dict[str, float]


@dataclass(frozen=True)
class Model:
    """A model of the package.

    Attributes
    ----------
    embed : callable
        Takes features (N, F) as a dense tensor, ``edge_index`` (2, 2 E), the number of clusters and
        settings; returns an embedding (N, d).
    settings : dict
        The benchmark's default settings.
    of_dataset : dict
        Those that the benchmark has for a data set, by the name of the data set here.
    dense : bool
        Whether the loss has N x N entries, so that only small graphs are possible.
    """

    embed: Callable[..., Any]
    settings: _Settings
    of_dataset: dict[str, _Settings] = field(default_factory=dict)
    dense: bool = False


def cca_ssg(feat, edge_index, num_clusters: int, settings: _Settings):
    """CCA-SSG. Source: Zhang et al., From canonical correlation analysis to self-supervised graph
    neural networks, 2021."""
    from pyagc.models import CCASSG

    return _trained(CCASSG, feat, edge_index, settings, lam=settings["lam"])


def ns4gc(feat, edge_index, num_clusters: int, settings: _Settings):
    """NS4GC. Source: Liu et al., Reliable node similarity matrix guided contrastive graph
    clustering, 2024."""
    from pyagc.models import NS4GC

    return _trained(NS4GC, feat, edge_index, settings, s=settings["s"], tau=0.1, lam=1.0, gam=1.0)


def m_s2cag(feat, edge_index, num_clusters: int, settings: _Settings):
    """M-S2CAG. Source: Lin et al., Spectral subspace clustering for attributed graphs, 2025."""
    from pyagc.models import MS2CAG

    return MS2CAG(num_clusters, **settings).embed(feat, edge_index)


MODELS = {
    "CCA-SSG": Model(
        cca_ssg,
        {"epochs": 100, "hidden": 512, "mask": 0.2, "drop": 0.2, "wd": 0.0, "lam": 0.001},
        {
            "cora": {"epochs": 50, "mask": 0.1, "drop": 0.4},
            "amazon_photo": {"epochs": 50, "mask": 0.2, "drop": 0.3},
            "coauthor_physics": {"epochs": 5, "hidden": 256, "mask": 0.5, "drop": 0.5},
        },
    ),
    "NS4GC": Model(
        ns4gc,
        {"epochs": 200, "hidden": 64, "mask": 0.1, "drop": 0.1, "wd": 1e-5, "s": 0.6},
        {
            "cora": {"mask": 0.2, "drop": 0.3},
            "amazon_photo": {"mask": 0.0, "drop": 0.8},
        },
        dense=True,
    ),
    "M-S2CAG": Model(
        m_s2cag,
        {"T": 10, "alpha": 0.9, "gamma": 0.9, "tau": 50},
        {
            "cora": {"T": 16, "alpha": 1.2, "gamma": 1.0, "tau": 100},
            "amazon_photo": {"T": 4, "alpha": 1.5, "gamma": 1.0},
            "coauthor_physics": {"T": 50, "alpha": 1.2, "gamma": 1.0},
        },
    ),
}


def interpreter() -> str:
    """Path of the interpreter whose environment has pyagc; empty if none is named."""
    return os.environ.get(INTERPRETER, "")


def lacks(method: str) -> str | None:
    """Message where no interpreter with pyagc is named, else None."""
    if Path(interpreter()).is_file():
        return None
    return f"{method} needs an interpreter with pyagc in {INTERPRETER}: see tools/README.md"


def cluster(method: str, stored, dataset: str, num_clusters: int, seed: int) -> np.ndarray:
    """Cluster a graph by a model.

    Parameters
    ----------
    method : str
        A key of `MODELS`.
    stored : mapping
        Arrays that ``inputs.py`` has written: ``indices`` and ``indptr`` of the adjacency, and
        ``feat_data``, ``feat_indices``, ``feat_indptr`` and ``feat_shape``.
    dataset : str
    num_clusters, seed : int

    Returns
    -------
    int64 (N,)
    """
    import torch
    from pyagc.clusters import KMeansClusterHead
    from pyagc.utils import set_seed
    from torch_geometric.utils import from_scipy_sparse_matrix

    model = MODELS[method]
    num_nodes = len(stored["indptr"]) - 1
    ones = np.ones(len(stored["indices"]), dtype=np.float32)
    graph = sp.csr_matrix((ones, stored["indices"], stored["indptr"]), shape=(num_nodes,) * 2)
    feat = torch.from_numpy(_rows_of_sum_one(stored).toarray())
    edge_index = from_scipy_sparse_matrix(graph)[0]
    set_seed(seed)
    settings = model.settings | model.of_dataset.get(dataset, {})
    embedding = model.embed(feat, edge_index, num_clusters, settings).detach()
    embedding = torch.nn.functional.normalize(embedding, dim=1)
    set_seed(seed)
    kmeans = KMeansClusterHead(num_clusters, n_init=10, max_iter=300, random_state=seed)
    return kmeans.fit_predict(embedding).numpy().astype(np.int64)


def _rows_of_sum_one(stored) -> sp.csr_matrix:
    parts = (stored[f"feat_{part}"] for part in ("data", "indices", "indptr"))
    feat = sp.csr_matrix(tuple(parts), shape=tuple(stored["feat_shape"]), dtype=np.float32)
    sums = np.asarray(feat.sum(1)).ravel()
    return sp.diags(1 / np.maximum(sums, 1.0), dtype=np.float32) @ feat


def _trained(kind, feat, edge_index, settings: _Settings, **arguments):
    """Train a contrastive model with a GCN of two layers, and embed by its best epoch."""
    import torch
    from pyagc.encoders import create_tuned_gnn
    from pyagc.transforms import GSSLTransform
    from torch_geometric.data import Data

    hidden, seed = int(settings["hidden"]), torch.initial_seed()
    encoder = create_tuned_gnn("gcn", feat.shape[1], hidden, num_layers=2, dropout=0.0, act="relu")
    views = [GSSLTransform(settings["mask"], settings["drop"]) for _ in range(2)]
    network = kind(encoder, *views, **arguments)
    torch.manual_seed(seed)  # as the benchmark: the first views do not depend on the network
    optimizer = torch.optim.Adam(network.parameters(), lr=_LR, weight_decay=settings["wd"])
    data, least, best, waited = Data(x=feat, edge_index=edge_index), np.inf, None, 0
    for epoch in range(int(settings["epochs"])):
        loss = network.train_full(data, optimizer, epoch, verbose=False)
        waited += 1
        if loss < least:
            least, best, waited = loss, copy.deepcopy(network.state_dict()), 0
        if waited >= _PATIENCE:
            break
    if best is None:
        raise ValueError("the loss is not finite")
    network.load_state_dict(best)
    return network.infer_full(data)


def main(arguments: list[str]) -> None:
    """Run one method and write its labels and its peak memory (10^6 bytes)."""
    method, inputs, dataset, num_clusters, seed, out = arguments
    with np.load(inputs) as arrays:
        labels = cluster(method, dict(arrays), dataset, int(num_clusters), int(seed))
    # Peak of the program alone: getrusage counts the size of the parent at the fork too.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    np.savez(out, labels=labels, peak_memory_mb=peak)


if __name__ == "__main__":
    main(sys.argv[1:])
