"""Load pickles of arrays, sparse matrices and neighbour lists without running foreign code.

A pickle may name any function, and the usual unpickler calls it. This unpickler accepts only the
names in `_ALLOWED`, as Python 2 and current NumPy and SciPy write them. It replaces most of them by
classes of this module that check the state in the pickle. This is necessary because, for example,
NumPy's own ``dtype.__setstate__`` trusts flags that turn numbers into pointers.
"""

import io
import math
import pickle
import re
from collections import defaultdict
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from user_dgl.data.attributed_graph import one_line
from user_dgl.data.reading.files import read_bytes
from user_dgl.data.reading.matrices import csr_from_parts
from user_dgl.errors import InputError

_DTYPE = re.compile(r"\?|b1|[iu][1248]|f[248]|[SU][0-9]{1,6}|O[48]?")
# The name ``numpy.ndarray`` becomes this object. A pickle can only pass it to `_Reconstruct`,
# because the object cannot be called or changed.
_NDARRAY = object()


class _Dtype:
    """Replacement of ``numpy.dtype``: no structured types, and no flags from the pickle."""

    # Pickles pass all three arguments; the last two are not used.
    def __init__(self, code: str, align: object = False, copy: object = False) -> None:
        if not _DTYPE.fullmatch(code):
            raise ValueError(f"dtype {code!r}")
        self.dtype: np.dtype = np.dtype(object) if code[0] == "O" else np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        _, order, *structure = state
        if any(part is not None for part in structure[:3]):
            raise ValueError("structured dtype")
        self.dtype = self.dtype.newbyteorder(order)


class _Array(np.ndarray):
    """Array that accepts a state only if its dtype is a `_Dtype`.

    NumPy checks the size of raw data. For an array of objects it does not check the length of their
    list and reads as many as the shape says, so this class checks it.
    """

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran_order, data = state
        if not isinstance(dtype, _Dtype):
            raise ValueError("array without dtype")
        if dtype.dtype.hasobject:
            size = math.prod(shape) if all(type(n) is int and n >= 0 for n in shape) else -1
            if type(data) is not list or len(data) != size:
                raise ValueError(f"array of shape {shape}: not a list of as many objects")
        super().__setstate__((1, shape, dtype.dtype, fortran_order, data))


class _Reconstruct:
    """Replacement of NumPy's ``_reconstruct``. It has no attributes that a pickle could set."""

    __slots__ = ()

    def __call__(self, kind: object, shape: object, code: object) -> _Array:
        if kind is not _NDARRAY:
            raise ValueError("array of another class")
        return np.ndarray.__new__(_Array, (0,), "b")


class _Csr:
    """Replacement of SciPy's ``csr_matrix`` that only keeps the parts of the matrix."""

    def __setstate__(self, state: Any) -> None:
        self.parts: dict[str, Any] = dict(state)


_reconstruct = _Reconstruct()
_ALLOWED: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


# The base is Python's own class, not the one in C: that one allocates memory for any number of
# objects that a pickle claims to contain.
class RestrictedUnpickler(pickle._Unpickler):
    """Unpickler of arrays, CSR matrices, dicts and lists.

    Parameters
    ----------
    file : binary file
    source : path or text
        Name for messages.
    """

    def __init__(self, file: IO[bytes], source: Path | str) -> None:
        super().__init__(file, encoding="latin1")
        self._source = source

    def find_class(self, module: str, name: str) -> Any:
        """Return the replacement of a global that is in `_ALLOWED`.

        Raises
        ------
        InputError
            The pickle names another global.
        """
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise InputError(
                f"{self._source}: pickle refused, as it names {module}.{name}: expected only "
                "arrays, CSR matrices and lists; download the file from its publisher"
            ) from None


def restricted_load(
    file: IO[bytes], source: Path | str
) -> np.ndarray | sp.csr_matrix | dict | list:
    """Load the next pickle in a binary file.

    Parameters
    ----------
    file : binary file
    source : path or text
        Name for messages.

    Returns
    -------
    ndarray, scipy CSR, dict or list
        The indices of a CSR matrix are checked. A 0-dimensional array of one object is replaced by
        that object.

    Raises
    ------
    InputError
        The pickle is damaged, or names a global that is not allowed.
    """
    try:
        return _plain(RestrictedUnpickler(file, source).load(), source)
    except InputError:
        raise
    except Exception as error:  # damaged pickles raise exceptions of many kinds
        raise InputError(f"{source}: damaged or unusable pickle ({one_line(error)})") from None


def load_pickle(path: Path) -> np.ndarray | sp.csr_matrix | dict | list:
    """Load a pickle file, which may be gzipped; see `restricted_load`."""
    return restricted_load(io.BytesIO(read_bytes(path)), path)


def _plain(value: object, source: Path | str) -> np.ndarray | sp.csr_matrix | dict | list:
    if isinstance(value, _Csr):
        parts = vars(value).get("parts", {})
        shape = parts.get("_shape", parts.get("shape"))
        return csr_from_parts(
            parts.get("data"), parts.get("indices"), parts.get("indptr"), shape, source
        )
    if isinstance(value, _Array):
        array = value.view(np.ndarray)
        return _plain(array.item(), source) if array.dtype == object and array.ndim == 0 else array
    if isinstance(value, (dict, list)):
        return value
    raise InputError(f"{source}: the pickle is not an array, CSR matrix, dict or list")
