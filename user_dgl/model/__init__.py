"""USER: encoder and head on a learned sparse graph, and the loss that it minimises."""

from user_dgl.model.loss import LossSums, Scope, USERLoss
from user_dgl.model.state import State
from user_dgl.model.user import USER

__all__ = [
    "LossSums",
    "Scope",
    "State",
    "USER",
    "USERLoss",
]
