"""Registries: objects that are named in a table and imported when they are used."""

import importlib
from typing import Any


def load_object(spec: Any) -> Any:
    """The object of a registry's entry.

    Parameters
    ----------
    spec : str or object
        ``"module:name"``, whose module is imported now and not with the registry; or the object
        itself, as code outside of the package registers it.

    >>> load_object("math:sqrt")(9.0)
    3.0
    """
    if not isinstance(spec, str):
        return spec
    module, name = spec.split(":")
    return getattr(importlib.import_module(module), name)
