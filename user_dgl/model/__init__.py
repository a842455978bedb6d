"""The model USER: encoder and head on a learned sparse graph, and the loss that is minimised."""

from user_dgl.model.loss import LossSums, USERLoss
from user_dgl.model.state import State
from user_dgl.model.terms import Scope
from user_dgl.model.user import USER

__all__ = [
    "USER",
    "LossSums",
    "Scope",
    "State",
    "USERLoss",
]
