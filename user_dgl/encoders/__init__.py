"""Models that USER supports: each maps a normalised graph and features to embeddings H (N, d)."""

from user_dgl.encoders.gae import GAE
from user_dgl.encoders.gcn import GCN
from user_dgl.encoders.smooth import Smooth

# Those with weights, by name; `Smooth` is made from data, by `user_dgl.smoothing`.
ENCODERS = {"gcn": GCN, "gae": GAE}

__all__ = ["ENCODERS", "GAE", "GCN", "Smooth"]
