"""A run of the quickstart config that takes about a second."""

from paths import CONFIGS

QUICKSTART = str(CONFIGS / "quickstart.yaml")
FAST = (
    "data.synthetic.num_nodes=120",
    "model.num_clusters=5",
    "model.hidden_feats=[16]",
    "train.epochs=20",
    "train.restarts=1",
)
