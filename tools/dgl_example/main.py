#!/usr/bin/env python3
"""USER on Cora, Citeseer or PubMed: clusters, embeddings and a cleaned graph without labels.

``python main.py --dataset cora [--raw-dir DIR] [--seed S]``. The last line is ``NMI`` in percent.
"""

import argparse
import sys
from pathlib import Path

import torch

from user_dgl.config import load_config
from user_dgl.data import AttributedGraph, load_planetoid
from user_dgl.data.sets.dgl_datasets import load_dgl_dataset
from user_dgl.errors import InputError
from user_dgl.evaluation.label_metrics import clustering_metrics
from user_dgl.features.preparation import prepare_features
from user_dgl.training.hooks import Hooks
from user_dgl.training.result import TrainingResult
from user_dgl.training.trainer import Trainer

# user_dgl before dgl: its loader makes DGL importable beside a torch newer than 2.2.1, too.
# isort: split
import dgl

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
DATASETS = {
    "cora": "CoraGraphDataset",
    "citeseer": "CiteseerGraphDataset",
    "pubmed": "PubmedGraphDataset",
}


def load_data(name: str, raw_dir: Path | None) -> AttributedGraph:
    """Graph, features and labels from `dgl.data`, or from the files ``ind.<name>.*`` in a folder.

    Parameters
    ----------
    name : str
        Key of `DATASETS`.
    raw_dir : Path or None

    Raises
    ------
    InputError
        Files missing or damaged, or a download that failed.
    """
    if raw_dir is None:
        return load_dgl_dataset(DATASETS[name])
    return load_planetoid(raw_dir, name)


def learned_graph(fit: TrainingResult) -> dgl.DGLGraph:
    """A' with both directions of each pair, its weights, the embedding and the clusters."""
    src, dst = fit.graph.src, fit.graph.dst
    graph = dgl.graph((torch.cat([src, dst]), torch.cat([dst, src])), num_nodes=fit.graph.num_nodes)
    graph.edata["weight"] = torch.from_numpy(fit.weight).repeat(2)
    graph.ndata["embedding"] = torch.from_numpy(fit.embedding)
    graph.ndata["cluster"] = torch.from_numpy(fit.clusters)
    return graph


def main(args: argparse.Namespace) -> None:
    """Load, train, evaluate.

    Raises
    ------
    InputError
        Of the data or the settings.
    """
    # Graph
    data = load_data(args.dataset, args.raw_dir)
    for note in data.notes:
        print(f"Note: {note}")
    print(f"{data.num_nodes} nodes, {data.graph.num_edges} edges, {data.feat.shape[1]} features")

    # Model
    config = load_config(CONFIGS / f"{args.dataset}.yaml", [f"seed={args.seed}"])
    feat = prepare_features(data.feat, config.features)
    trainer = Trainer(data.graph, feat, config, Hooks(log=print))

    # Train: labels do not come here
    fit = trainer.fit()

    # Evaluate
    print(learned_graph(fit))
    metrics = clustering_metrics(data.labels, fit.clusters)
    print(" | ".join(f"{name.upper()} {metrics[name]:.1f}" for name in ("acc", "ari", "f1")))
    print(f"NMI {metrics['nmi']:.1f}")


if __name__ == "__main__":
    # Without a usage line, so that a bad option is one line like any other bad input.
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], usage=argparse.SUPPRESS)
    parser.add_argument("--dataset", choices=DATASETS, required=True)
    parser.add_argument(
        "--raw-dir", type=Path, metavar="DIR", help="folder of ind.<name>.*; default: dgl.data"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    try:
        main(parser.parse_args())
    except InputError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        sys.exit(2)
