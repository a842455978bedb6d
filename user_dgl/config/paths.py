"""Paths that users write, in settings and options."""

import os
from pathlib import Path

from user_dgl.errors import InputError


def user_path(name: str, key: str) -> Path:
    """Path of a name in the settings. A ``~`` at its start is the home folder.

    A shell replaces it at the start of a word only, and so not in ``output_dir=~/runs``.

    Parameters
    ----------
    name : str
    key : str
        The key that names it, for messages.

    Raises
    ------
    InputError
        The name starts with ``~`` and the name of no user.
    """
    path = os.path.expanduser(name)
    if path.startswith("~"):
        raise InputError(
            f"{key}={name}: there is no home folder {Path(path).parts[0]}: write the path in full, "
            f"or ./{name} for a file or folder with this name"
        )
    return Path(path)
