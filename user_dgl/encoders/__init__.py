"""Models that USER supports: each maps a normalised graph and features to embeddings H (N, d)."""

from user_dgl.encoders.arga import ARGA
from user_dgl.encoders.base import Encoder, Pass
from user_dgl.encoders.dgi import DGI, PReLUConvolutions
from user_dgl.encoders.gae import GAE
from user_dgl.encoders.gcn import GCN
from user_dgl.encoders.sage import SAGE
from user_dgl.encoders.smooth import Smooth
from user_dgl.encoders.vgae import VGAE

# Those with weights, by name; `Smooth` is made from data, by `user_dgl.clustering.smoothed_view`.
ENCODERS = {"gcn": GCN, "gae": GAE, "vgae": VGAE, "arga": ARGA, "dgi": DGI, "sage": SAGE}

__all__ = [
    "ARGA",
    "DGI",
    "ENCODERS",
    "GAE",
    "GCN",
    "SAGE",
    "VGAE",
    "Encoder",
    "PReLUConvolutions",
    "Pass",
    "Smooth",
]
