"""Unsupervised graph clustering with edges weighed by how far they can be trusted."""

import importlib
import os
from typing import Any

__version__ = "0.4.0"

# torch then asks for huge pages of memory, unless the process had tensors before this import.
# Products with a graph read rows at random places, and with small pages looking up the addresses
# takes as long as the arithmetic. On 1M nodes and 10M edges, whole runs are a sixth shorter.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

# Imported on first access, because these imports take seconds and `user-dgl --help` does not need
# them.
_LAZY = {
    "USERClustering": "user_dgl.estimator",
    "GraphCleaner": "user_dgl.cleaner",
    "clean_graph": "user_dgl.cleaner",
    "dgl": "user_dgl._dgl",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
