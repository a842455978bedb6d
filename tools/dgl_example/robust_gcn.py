#!/usr/bin/env python3
"""A GCN of DGL on an attacked Cora, before and after the edges are weighed without labels.

``python robust_gcn.py --raw-dir DIR [--rate 0.25] [--seed S]``. The folder has the files of
Pro-GNN: ``cora.npz``, ``cora_meta_adj_<rate>.npz`` and ``cora_prognn_splits.json``. The last line
is ``accuracy BEFORE -> AFTER`` of the test nodes in percent.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from sklearn.preprocessing import normalize
from torch import nn

from user_dgl import clean_graph, dgl
from user_dgl.data import AttributedGraph, largest_component, load_adjacency, load_npz
from user_dgl.errors import InputError

# user_dgl before dgl: it makes DGL importable beside a torch newer than 2.2.1, too.
# isort: split
from dgl.nn import EdgeWeightNorm, GraphConv

RATES = ("0.05", "0.1", "0.15", "0.2", "0.25")


class GCN(nn.Module):
    """Two graph convolutions with edge weights, as in Kipf and Welling (2017)."""

    def __init__(self, in_feats: int, num_classes: int, hidden_feats: int = 16):
        super().__init__()
        # The norm "both" needs weights before it, which EdgeWeightNorm gives.
        self.first = GraphConv(in_feats, hidden_feats, norm="none")
        self.second = GraphConv(hidden_feats, num_classes, norm="none")
        self.norm = EdgeWeightNorm("both")

    def forward(self, graph, feat: torch.Tensor) -> torch.Tensor:
        """Class scores (N, C); ``graph.edata["weight"]`` has the weights, loops included."""
        weight = self.norm(graph, graph.edata["weight"])
        hidden = F.dropout(
            F.relu(self.first(graph, feat, edge_weight=weight)), training=self.training
        )
        return self.second(graph, hidden, edge_weight=weight)


def accuracy(adjacency: sp.csr_matrix, data: AttributedGraph, split: dict, seed: int) -> float:
    """Test accuracy in percent at the epoch of the best validation accuracy.

    Parameters
    ----------
    adjacency : scipy CSR (N, N)
        Weights of both directions of each edge.
    data : AttributedGraph
    split : dict
        ``idx_train``, ``idx_val`` and ``idx_test``.
    seed : int
    """
    torch.manual_seed(seed)
    entries = (adjacency + sp.identity(data.num_nodes)).tocoo()
    graph = dgl.graph((entries.row, entries.col), num_nodes=data.num_nodes)
    graph.edata["weight"] = torch.from_numpy(entries.data.astype(np.float32))
    feat = torch.from_numpy(normalize(data.feat, "l1").toarray())
    labels = torch.from_numpy(data.labels)
    train, valid, test = (torch.tensor(split[f"idx_{part}"]) for part in ("train", "val", "test"))
    model = GCN(feat.shape[1], int(labels.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best = (-1.0, 0.0)
    for _ in range(200):
        model.train()
        loss = F.cross_entropy(model(graph, feat)[train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(graph, feat).argmax(1) == labels).float()
        best = max(
            best, (float(right[valid].mean()), float(right[test].mean())), key=lambda x: x[0]
        )
    return 100 * best[1]


def split_file(folder: Path) -> Path:
    """The file of the split.

    Raises
    ------
    InputError
        It is not there.
    """
    path = folder / "cora_prognn_splits.json"
    if not path.is_file():
        raise InputError(f"{path}: not found: take it from ChandlerBang/Pro-GNN, folder splits")
    return path


def main(args: argparse.Namespace) -> None:
    """Load, clean, train twice."""
    data = largest_component(load_npz(args.raw_dir / "cora.npz"))
    graph, _ = load_adjacency(args.raw_dir / f"cora_meta_adj_{args.rate}.npz")
    attacked = graph.to_scipy()
    split = json.loads(split_file(args.raw_dir).read_text())

    # The graph that is trained on: labels have no part in it.
    cleaner = clean_graph(attacked, data.feat, random_state=args.seed)
    print(f"{100 * cleaner.noise_share_:.1f} % of the edges look random")
    print(cleaner.doubtful_.head(3).to_string(index=False, float_format="%.3f"))

    before = accuracy(attacked, data, split, args.seed)
    after = accuracy(cleaner.adjacency_, data, split, args.seed)
    print(f"accuracy {before:.1f} -> {after:.1f}")


if __name__ == "__main__":
    # Without a usage line, so that a bad option is one line like any other bad input.
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], usage=argparse.SUPPRESS)
    parser.add_argument(
        "--raw-dir", type=Path, required=True, metavar="DIR", help="folder of the attacked graphs"
    )
    parser.add_argument("--rate", choices=RATES, default="0.25", help="default: 0.25")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    try:
        main(parser.parse_args())
    except InputError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        sys.exit(2)
