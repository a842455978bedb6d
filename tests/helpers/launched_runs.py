"""A small run that tests start as several processes."""

import json
import sys

import numpy as np
from paths import CONFIGS, TOOLS

CONFIG = str(CONFIGS / "quickstart.yaml")
SMALL = (
    "data.synthetic.num_nodes=200", "model.num_clusters=5", "model.observed_mix=0",
    "train.restarts=1", "train.consensus=none", "structure.candidates.refresh_every=0",
    "structure.candidates.same_cluster=0", "train.epochs=12", "train.precision=float64",
)  # fmt: skip


def launch_command(nproc, run_dir, *overrides, options=()):
    """The command line of the run by the launcher."""
    return [
        sys.executable, str(TOOLS / "launch.py"), "--nproc", str(nproc), *options, "--", "train",
        CONFIG, *SMALL, f"output_dir={run_dir}", *overrides,
    ]  # fmt: skip


def outcome(run_dir):
    """Losses of the epochs, text of the clusters and embeddings of a run."""
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return (
        [row["loss"] for row in rows],
        (run_dir / "clusters.csv").read_text(),
        np.load(run_dir / "embedding.npy"),
    )
