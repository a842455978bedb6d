"""Unsupervised graph clustering that learns a cleaner sparse graph by structural entropy."""

import importlib

__version__ = "0.3.0"

# Imported when first asked for: they take seconds, and `user-dgl --help` does without.
_LAZY = {"USERClustering": "user_dgl.estimator", "dgl": "user_dgl._dgl"}


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
