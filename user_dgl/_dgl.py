"""The one place that imports DGL, beside any supported torch.

DGL 2.1 imports ``dgl.graphbolt``, whose shared library is built for single torch releases (2.0.0
to 2.2.1) and whose Python side needs ``torchdata.datapipes``, which newer torchdata lacks, and
pydantic, which DGL does not declare. Nothing in this package uses GraphBolt. So while DGL is
imported, a failure inside GraphBolt leaves an empty module in its place instead of ending the
import; the rest of DGL then works. Where GraphBolt loads, DGL is what it would be anyway.

Attributes
----------
dgl : module
guarded : bool
    Whether an empty module stands in for GraphBolt.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

from user_dgl.errors import InputError

_GRAPHBOLT = "dgl.graphbolt"


class _TolerantLoader(importlib.abc.Loader):
    """Runs a module by its own loader and leaves it empty if that fails.

    A try at the import itself, because a second ``import dgl`` after a failed one aborts the
    process, and because looking for what GraphBolt needs would have to keep up with every release.
    """

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
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
    def find_spec(self, fullname, path, target=None):
        if fullname != _GRAPHBOLT:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _TolerantLoader(spec.loader)
        return spec


def _import_dgl():
    spec = importlib.util.find_spec("dgl")
    if spec is None or spec.origin is None:  # no origin: some folder named dgl, not the package
        raise InputError("DGL is not installed: run `pip install dgl` (Python 3.11 or 3.12, Linux)")
    # Without this DGL writes a configuration file into the home folder and prints about it.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    finder = _GraphboltFinder()
    sys.meta_path.insert(0, finder)
    try:
        import dgl
    finally:
        sys.meta_path.remove(finder)
    # A stand-in has no file, neither ours nor one that the user put there.
    return dgl, getattr(sys.modules.get(_GRAPHBOLT), "__file__", None) is None


dgl, guarded = _import_dgl()
