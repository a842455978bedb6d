"""Pickles as Python 2 wrote them, for the readers of old data sets."""

import pickle
import pickletools
from pathlib import Path

_OLD_NAMES = {
    b"cnumpy._core.multiarray\n": b"cnumpy.core.multiarray\n",
    b"cscipy.sparse._csr\n": b"cscipy.sparse.csr\n",
    b"cbuiltins\n": b"c__builtin__\n",
}
# Python 2 had no bytes: its strings are what bytes are today.
_STRING_OPCODES = {"SHORT_BINBYTES": b"U", "BINBYTES": b"T"}


def dumps(value) -> bytes:
    """``value`` in protocol 2, with the module names of Python 2 and old NumPy and SciPy."""
    data = bytearray(pickle.dumps(value, protocol=3))
    for opcode, _, position in pickletools.genops(bytes(data)):
        if opcode.name in _STRING_OPCODES:
            data[position : position + 1] = _STRING_OPCODES[opcode.name]
    data[1] = 2
    data = bytes(data)
    for new, old in _OLD_NAMES.items():
        data = data.replace(new, old)
    return data


def write(path: Path, value) -> None:
    """Write `dumps` of a value."""
    Path(path).write_bytes(dumps(value))
