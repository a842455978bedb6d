"""Versions of the software that a run depends on."""

import platform
from importlib.metadata import PackageNotFoundError, version

import user_dgl

_PACKAGES = ("torch", "dgl", "numpy", "scipy", "scikit-learn", "pandas", "PyYAML")


def versions() -> dict[str, str | None]:
    """Return the versions of this package, Python and each library.

    The value is None if a library is not installed.
    """
    found: dict[str, str | None] = {
        "user_dgl": user_dgl.__version__,
        "python": platform.python_version(),
    }
    for name in _PACKAGES:
        try:
            found[name.lower()] = version(name)
        except PackageNotFoundError:
            found[name.lower()] = None
    return found
