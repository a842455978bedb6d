"""Import of DGL with any supported version of torch. The rest of the package imports DGL from here.

DGL 2.1 imports ``dgl.graphbolt``. The shared library of GraphBolt is built for particular torch
releases (2.0.0 to 2.2.1). Its Python code needs ``torchdata.datapipes``, which newer versions of
torchdata do not have, and pydantic, which DGL does not declare as a dependency. This package does
not use GraphBolt. If ``dgl.graphbolt`` fails while DGL is imported, this module puts an empty
module in its place, and the rest of DGL works. If GraphBolt loads, DGL is not changed.

Attributes
----------
dgl : module
guarded : bool
    Whether an empty module replaces GraphBolt.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from user_dgl.errors import InputError

_GRAPHBOLT = "dgl.graphbolt"


class _TolerantLoader(importlib.abc.Loader):
    """Run a module with its own loader, and leave the module empty if that fails.

    The import itself is tried. It cannot be retried, because a second ``import dgl`` after a failed
    one aborts the process. A test of what GraphBolt needs would have to follow every release.
    """

    def __init__(self, loader: importlib.abc.Loader):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        kept = set(vars(module))
        try:
            self.loader.exec_module(module)
        except Exception:
            for name in set(vars(module)) - kept:
                delattr(module, name)
            for name in [n for n in sys.modules if n.startswith(f"{_GRAPHBOLT}.")]:
                del sys.modules[name]
            module.__file__ = None


class _GraphboltFinder(importlib.abc.MetaPathFinder):
    """Find ``dgl.graphbolt`` and wrap its loader in `_TolerantLoader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _GRAPHBOLT:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _TolerantLoader(spec.loader)
        return spec


def _import_dgl() -> tuple[ModuleType, bool]:
    """Import DGL; return the module and the value of ``guarded``."""
    spec = importlib.util.find_spec("dgl")
    # Without an origin it is some other folder with the name dgl, not the package.
    if spec is None or spec.origin is None:
        raise InputError("DGL is not installed: run `pip install dgl` (Python 3.11 or 3.12, Linux)")
    # Without this variable, DGL writes a configuration file into the home folder and prints a
    # message about it.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    finder = _GraphboltFinder()
    sys.meta_path.insert(0, finder)
    try:
        import dgl
    finally:
        sys.meta_path.remove(finder)
    # An empty replacement has no file, whether this module or the user put it there.
    return dgl, getattr(sys.modules.get(_GRAPHBOLT), "__file__", None) is None


dgl, guarded = _import_dgl()
