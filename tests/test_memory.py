"""Nothing is quadratic in the nodes: a graph whose N x N matrix would take 160 GB trains."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_two_hundred_thousand_nodes_and_two_million_edges(tmp_path):
    command = [
        sys.executable, "-m", "user_dgl", "train", str(ROOT / "configs" / "quickstart.yaml"),
        f"output_dir={tmp_path / 'run'}", "data.synthetic.num_nodes=200000",
        "data.synthetic.average_degree=20", "structure.candidates.feature_knn=0",
        "structure.candidates.k_hop=1", "structure.candidates.uniform=1",
        "structure.candidates.same_cluster=1", "structure.candidates.refresh_every=2",
        "data.noise.rate=0.1",
        "train.epochs=3", "train.restarts=1", "eval.floors=false",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["num_nodes"] == 200_000
    assert result["num_observed_edges"] > 2_000_000
    assert result["num_candidate_edges"] > 400_000
    assert result["peak_memory_mb"] < 4000
