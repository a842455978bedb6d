"""Pickles of arrays, sparse matrices and neighbour lists, without running what they name.

A pickle may call anything it names. This unpickler knows six names, as Python 2 and today's NumPy
and SciPy spell them, and binds them to stand-ins that check the state a pickle hands them: NumPy's
own ``dtype.__setstate__``, for one, believes flags by which numbers become pointers.
"""

import io
import math
import pickle
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

from user_dgl.data.attributed_graph import one_line
from user_dgl.data.reading.files import read_bytes
from user_dgl.data.reading.matrices import csr_from_parts
from user_dgl.errors import InputError

_DTYPE = re.compile(r"\?|b1|[iu][1248]|f[248]|[SU][0-9]{1,6}|O[48]?")
# What ``numpy.ndarray`` stands for: only `_Reconstruct` takes it. Nothing can call or change it.
_NDARRAY = object()


class _Dtype:
    """A plain dtype: no structure, no flags of the pickle's own."""

    def __init__(self, code, align=False, copy=False):
        if not _DTYPE.fullmatch(code):
            raise ValueError(f"dtype {code!r}")
        self.dtype = np.dtype(object) if code[0] == "O" else np.dtype(code)

    def __setstate__(self, state):
        _, order, *structure = state
        if any(part is not None for part in structure[:3]):
            raise ValueError("structured dtype")
        self.dtype = self.dtype.newbyteorder(order)


class _Array(np.ndarray):
    """An array whose dtype in the state is a `_Dtype`.

    NumPy checks the size of raw data, but reads as many objects as the shape says.
    """

    def __setstate__(self, state):
        _, shape, dtype, fortran_order, data = state
        if not isinstance(dtype, _Dtype):
            raise ValueError("array without dtype")
        if dtype.dtype.hasobject:
            size = math.prod(shape) if all(type(n) is int and n >= 0 for n in shape) else -1
            if type(data) is not list or len(data) != size:
                raise ValueError(f"array of shape {shape}: not a list of as many objects")
        super().__setstate__((1, shape, dtype.dtype, fortran_order, data))


class _Reconstruct:
    """A function without attributes, so that no pickle can set them."""

    __slots__ = ()

    def __call__(self, kind, shape, code):
        if kind is not _NDARRAY:
            raise ValueError("array of another class")
        return np.ndarray.__new__(_Array, (0,), "b")


class _Csr:
    """The parts of a pickled CSR matrix."""

    def __setstate__(self, state):
        self.parts = dict(state)


_reconstruct = _Reconstruct()
_ALLOWED = {
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


# The one in Python: that in C makes room for whatever number of objects a pickle claims to hold.
class RestrictedUnpickler(pickle._Unpickler):
    """Unpickler of arrays, CSR matrices, dicts and lists that refuses every other global.

    Parameters
    ----------
    file : binary file
    source : path or text
        What messages name.
    """

    def __init__(self, file, source):
        super().__init__(file, encoding="latin1")
        self._source = source

    def find_class(self, module, name):
        """The stand-in of an allowed global; `InputError` for any other."""
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise InputError(
                f"{self._source}: pickle refused, as it names {module}.{name}: expected only "
                "arrays, CSR matrices and lists; get the file from its publisher"
            ) from None


def restricted_load(file, source) -> object:
    """Object of the next pickle in a binary file.

    Parameters
    ----------
    file : binary file
    source : path or text
        What messages name.

    Returns
    -------
    ndarray, scipy CSR, dict or list
        CSR matrices are today's class, with checked indices; an array of one object is that object.

    Raises
    ------
    InputError
        Any global beyond arrays, CSR matrices, ``defaultdict`` and ``list``; damaged pickle.
    """
    try:
        return _plain(RestrictedUnpickler(file, source).load(), source)
    except InputError:
        raise
    except Exception as error:  # which of many kinds depends on the opcode and the stand-in
        raise InputError(f"{source}: damaged or unusable pickle ({one_line(error)})") from None


def load_pickle(path: Path) -> object:
    """Object of a pickle file; see `restricted_load`."""
    return restricted_load(io.BytesIO(read_bytes(path)), path)


def _plain(value, source):
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
    raise InputError(f"{source}: pickle holds no array, CSR matrix, dict or list")
