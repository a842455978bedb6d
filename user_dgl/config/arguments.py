"""Types of command-line arguments, for `argparse`."""

import argparse
import math
from pathlib import Path

from user_dgl.config.config import MOST_SEED
from user_dgl.config.paths import user_path
from user_dgl.errors import InputError


def positive(text: str) -> int:
    """Read a whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of 1 or more")
    return int(text)


def count(text: str) -> int:
    """Read a whole number of 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of 0 or more")
    return int(text)


def path(text: str) -> Path:
    """Read a path, in which a ``~`` at the start is the home folder."""
    try:
        return user_path(text, "path")
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seed(text: str) -> int:
    """Read a seed: a whole number from 0 to 2^31 - 1."""
    if not text.isdecimal() or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 0 to {MOST_SEED}")
    return int(text)


def weight(text: str) -> float:
    """Read a finite number of 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of 0 or more")
    return value
