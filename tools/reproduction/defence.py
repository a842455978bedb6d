"""Node classification on attacked graphs, on A as it is and on A' of `user_dgl.clean_graph`.

`main` with ``clean OUT.npz SEED CONFIG [key=value ...]`` writes A' of the noisy graph of a config;
with ``train OUT.json METHOD SEED CLEANED.npz CONFIG [key=value ...]`` it trains a network on A or
on this A' and writes its accuracy; with ``inputs OUT.npz SEED CONFIG [key=value ...]`` it writes
what `reproduction.deeprobust_models` reads. Each call is a process of its own.

The networks are DGL's modules GraphConv, GATConv and SAGEConv with ``edge_weight``, in two layers,
and train as in Pro-GNN (Jin et al., 2020): Adam, weight decay 5e-4, 200 epochs, dropout 0.5; the
epoch of the best validation accuracy counts. Rows of the features are divided by their sums. The
split is Pro-GNN's where there is one, else a tenth of the nodes to train, a tenth to validate.
"""

import json
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

CLEANED = " on A'"
NETWORKS = ("GCN", "GAT", "SAGE")
_HIDDEN, _HEADS, _DROPOUT, _EPOCHS, _WEIGHT_DECAY = 16, 8, 0.5, 200, 5e-4
_LEARNING_RATE = {"GCN": 0.01, "GAT": 0.005, "SAGE": 0.01}


def needs_cleaning(method: str) -> bool:
    """Whether a method of the table trains on A'."""
    return method.endswith(CLEANED)


def clean(out: Path, seed: int, config_file: str, settings: list[str]) -> None:
    """Write A' as a symmetric CSR matrix, with the seconds that it took and the peak memory."""
    from user_dgl import clean_graph
    from user_dgl.runtime.machine import peak_memory_mb

    data, graph = _inputs(config_file, settings)
    started = time.perf_counter()
    cleaner = clean_graph(graph.to_scipy(), data.feat, random_state=seed)
    seconds = time.perf_counter() - started
    matrix = cleaner.adjacency_
    np.savez(
        out,
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        seconds=seconds,
        peak_memory_mb=peak_memory_mb(),
        noise_share=np.nan if cleaner.noise_share_ is None else cleaner.noise_share_,
    )


def train(
    out: Path, method: str, seed: int, cleaned: Path, config_file: str, settings: list[str]
) -> None:
    """Train a network and write ``{"metrics": {"acc": ...}, ...}`` as JSON."""
    from user_dgl.runtime.machine import peak_memory_mb

    data, graph = _inputs(config_file, settings)
    adjacency, seconds, peak, share = graph.to_scipy(), 0.0, 0.0, None
    if needs_cleaning(method):
        with np.load(cleaned) as stored:
            parts = (stored["data"], stored["indices"], stored["indptr"])
            adjacency = sp.csr_matrix(parts, shape=adjacency.shape)
            seconds, peak = float(stored["seconds"]), float(stored["peak_memory_mb"])
            share = float(stored["noise_share"])
    feat = data.feat
    if feat is None:
        feat = sp.identity(data.num_nodes, dtype=np.float32, format="csr")
    started = time.perf_counter()
    split = _split(config_file, settings, data.num_nodes, seed)
    accuracy = _accuracy(method.removesuffix(CLEANED), adjacency, feat, data.labels, split, seed)
    result = {
        "metrics": {"acc": accuracy},
        "noise": {"estimated_share": share},
        "seconds_total": seconds + time.perf_counter() - started,
        "peak_memory_mb": max(peak, peak_memory_mb()),
    }
    out.write_text(json.dumps(result))


def write_inputs(out: Path, seed: int, config_file: str, settings: list[str]) -> None:
    """Write the noisy graph, features, labels and split of a config for another interpreter."""
    data, graph = _inputs(config_file, settings)
    matrices = {"adjacency": graph.to_scipy(), "feat": data.feat}
    arrays = {
        f"{name}_{part}": getattr(matrix, part)
        for name, matrix in matrices.items()
        for part in ("data", "indices", "indptr", "shape")
    }
    split = _split(config_file, settings, data.num_nodes, seed)
    parts = dict(zip(("train", "valid", "test"), split, strict=True))
    np.savez(out, labels=data.labels, **arrays, **parts)


def _inputs(config_file: str, settings: list[str]):
    from user_dgl.config import load_config
    from user_dgl.pipeline.inputs import load_noisy_data

    data, noisy, _ = load_noisy_data(load_config(config_file, settings), lambda line: None)
    return data, noisy.graph


def _split(config_file: str, settings: list[str], num_nodes: int, seed: int) -> list[np.ndarray]:
    """Nodes to train on, to validate and to test."""
    from user_dgl.config import load_config
    from user_dgl.data import data_root

    config = load_config(config_file, settings).data
    name = config.name or Path(config.path or "").stem
    file = data_root(config) / "prognn_meta" / f"{name}_prognn_splits.json"
    if file.exists():
        stored = json.loads(file.read_text())
        return [np.array(stored[f"idx_{part}"]) for part in ("train", "val", "test")]
    order = np.random.default_rng(seed).permutation(num_nodes)
    return np.split(order, [num_nodes // 10, num_nodes // 5])


def _accuracy(network, adjacency, feat, labels, split, seed) -> float:
    """Test accuracy in percent at the epoch of the best validation accuracy."""
    import torch
    from sklearn.preprocessing import normalize
    from torch.nn.functional import cross_entropy

    torch.manual_seed(seed)
    x = torch.from_numpy(normalize(feat, "l1").toarray().astype(np.float32))
    y = torch.from_numpy(labels)
    train_nodes, valid, test = map(torch.from_numpy, split)
    model = _model(network, adjacency, x.shape[1], int(y.max()) + 1)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=_LEARNING_RATE[network], weight_decay=_WEIGHT_DECAY
    )
    best = (-1.0, 0.0)
    for _ in range(_EPOCHS):
        model.train()
        loss = cross_entropy(model(x)[train_nodes], y[train_nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(x).argmax(1) == y).float()
        reached = float(right[valid].mean()), float(right[test].mean())
        best = max(best, reached, key=lambda pair: pair[0])
    return 100 * best[1]


def _model(network: str, adjacency: sp.csr_matrix, in_feats: int, num_classes: int):
    """Two layers of a module of DGL on a weighted graph, as a function of the features."""
    import torch
    from torch import nn
    from torch.nn.functional import dropout, elu, relu

    from user_dgl import dgl

    # isort: split
    from dgl.nn import EdgeWeightNorm, GATConv, GraphConv, SAGEConv

    # SAGE reads the node itself apart from its neighbours, the others need a loop of weight 1.
    looped = adjacency if network == "SAGE" else adjacency + sp.identity(adjacency.shape[0])
    entries = looped.tocoo()
    graph = dgl.graph((entries.row, entries.col), num_nodes=adjacency.shape[0])
    weight = torch.from_numpy(entries.data.astype(np.float32))
    if network != "GCN":
        # These modules take means: SAGE divides by the number of neighbours, and the attention of
        # GAT has the sum 1 before it is multiplied by the weights. With this factor, the weights
        # of each node have the mean 1, and the means are weighted ones.
        ends = graph.edges()[1]
        total = torch.zeros(graph.num_nodes()).index_add(0, ends, weight)
        weight = weight * (graph.in_degrees() / total)[ends]
    if network == "GCN":
        weight = EdgeWeightNorm("both")(graph, weight)
        layers = [
            GraphConv(in_feats, _HIDDEN, norm="none"),
            GraphConv(_HIDDEN, num_classes, norm="none"),
        ]
    elif network == "GAT":
        layers = [
            GATConv(in_feats, _HIDDEN // 2, _HEADS, _DROPOUT, _DROPOUT),
            GATConv(_HIDDEN // 2 * _HEADS, num_classes, 1, _DROPOUT, _DROPOUT),
        ]
    else:
        layers = [SAGEConv(in_feats, _HIDDEN, "mean"), SAGEConv(_HIDDEN, num_classes, "mean")]

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            first, second = self.layers
            hidden = first(graph, x, edge_weight=weight).flatten(1)
            hidden = elu(hidden) if network == "GAT" else relu(hidden)
            hidden = dropout(hidden, _DROPOUT, self.training)
            return second(graph, hidden, edge_weight=weight).flatten(1)

    return Network()


def main(arguments: list[str]) -> None:
    """Run a command line."""
    if arguments[0] in ("clean", "inputs"):
        kind, out, seed, config_file, *settings = arguments
        write = clean if kind == "clean" else write_inputs
        write(Path(out), int(seed), config_file, settings)
    else:
        _, out, method, seed, cleaned, config_file, *settings = arguments
        train(Path(out), method, int(seed), Path(cleaned), config_file, settings)
