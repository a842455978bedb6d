"""The allow-listing unpickler: known objects whole, everything else refused by name."""

import contextlib
import io
import os
import pickle
import struct
import tracemalloc
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import python2_pickles
import scipy.sparse as sp

from user_dgl.data.reading.unpickle import _ALLOWED, load_pickle, restricted_load
from user_dgl.errors import InputError

MATRIX = sp.csr_matrix(np.array([[0, 1.5, 0], [2, 0, 3]], dtype=np.float32))


class Call:
    """Pickles as a call of ``function``."""

    def __init__(self, function, arguments, state=None):
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.reduced


def loads(data: bytes):
    return restricted_load(io.BytesIO(data), "file.pkl")


def of_array(dtype, data=b"A" * 8, shape=(1,)):
    """An array as pickled, with a dtype and data of one's choice."""
    reconstruct = np.zeros(0).__reduce__()[0]
    return Call(reconstruct, (np.ndarray, (0,), b"b"), (1, shape, dtype, False, data))


def of_dtype(code, state):
    return Call(np.dtype, (code, False, True), state)


@pytest.mark.parametrize("dumps", [python2_pickles.dumps, pickle.dumps], ids=["old", "current"])
def test_known_objects(dumps):
    loaded = loads(dumps(MATRIX))
    assert type(loaded) is sp.csr_matrix
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded.toarray(), MATRIX.toarray())
    for array in (
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([1, 2], dtype=">i8"),
        np.array([True, False]),
        np.array(["a", "bc"]),
        np.array([[0, 200, 255]], dtype=np.uint8),
    ):
        loaded = loads(dumps(array))
        assert type(loaded) is np.ndarray
        assert loaded.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(loaded, array)
    graph = defaultdict(list, {0: [1, 1], 1: [0]})
    assert loads(dumps(graph)) == graph


def test_array_of_one_object_is_that_object():
    box = np.empty((), dtype=object)
    box[()] = MATRIX
    np.testing.assert_array_equal(loads(pickle.dumps(box)).toarray(), MATRIX.toarray())


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (os.system, ("touch pwned",), "system"),
        (eval, ("1",), "eval"),
        (getattr, (MATRIX, "data"), "getattr"),
        (np.load, ("x",), "load"),
        (OrderedDict, (), "OrderedDict"),
        (sp.csc_matrix, ((2, 2),), "csc_matrix"),
    ],
)
def test_other_globals_are_refused_and_named(function, arguments, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(Call(function, arguments), protocol=protocol)
        with pytest.raises(InputError, match=rf"^file\.pkl: pickle refused.*{named}"):
            loads(data)
    assert not list(tmp_path.iterdir())


def test_allowed_names_do_nothing_else():
    for hostile in (
        Call(np.ndarray, ((1,), np.dtype("i8"))),
        Call(np.dtype, ("i4,i4",)),
        Call(np.dtype, ([("a", "i4")],)),
        Call(np.dtype, ("V1000000",)),
        of_array(of_dtype("i8", (3, "<", (np.dtype("i4"), (2,)), None, None, -1, -1, 0))),
        of_array(np.dtype("i8"), b"too short"),
        of_array(np.dtype("O"), b"A" * 8),
    ):
        with pytest.raises(InputError, match=r"^file\.pkl: "):
            loads(pickle.dumps(hostile, protocol=4))


def test_flags_in_a_pickled_dtype_are_not_believed():
    # 63 would tell NumPy that these eight bytes are a pointer to an object.
    array = loads(pickle.dumps(of_array(of_dtype("i8", (3, "<", None, None, None, 8, 8, 63)))))
    assert array.dtype == np.int64
    assert not array.dtype.hasobject
    assert array.dtype.flags == np.dtype("i8").flags
    assert array.item() == int.from_bytes(b"A" * 8, "little")


@pytest.mark.parametrize(
    ("shape", "data"),
    [((3,), ["a", "b"]), ((2, 2), ["a"] * 3), ((1,), ["a"] * 2), ((-1, -1), ["a"]), ((1,), ("a",))],
)
def test_objects_must_be_as_many_as_the_shape_says(shape, data):
    hostile = of_array(np.dtype("O"), data, shape)
    with pytest.raises(InputError, match=r"^file\.pkl: damaged.*not a list of as many objects"):
        loads(pickle.dumps(hostile, protocol=4))


def test_arrays_of_objects():
    array = np.array([["a", 1], [None, 2.5]], dtype=object)
    np.testing.assert_array_equal(loads(pickle.dumps(array)), array)


@pytest.mark.parametrize(("module", "name"), _ALLOWED)
@pytest.mark.parametrize("slots", [True, False])
def test_no_pickle_changes_what_names_stand_for(module, name, slots):
    state = b"}X\x07\0\0\0changedK\x01s"  # {"changed": 1}
    state = b"N" + state + b"\x86" if slots else state
    data = b"\x80\x02c" + f"{module}\n{name}\n".encode() + state + b"b."
    with pytest.raises(InputError, match=r"^file\.pkl: damaged"):
        loads(data)
    assert not hasattr(_ALLOWED[module, name], "changed")


@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.array([1, 0, 3], dtype=np.int32)},
        {"indices": np.array([1, 0, -1], dtype=np.int32)},
        {"indices": np.array([1.0, 0.0, 2.0])},
        {"indptr": np.array([0, 1, 9], dtype=np.int32)},
        {"indptr": np.array([1, 1, 3], dtype=np.int32)},
        {"data": np.array([1.0])},
        {"data": np.array(["a", "b", "c"])},
        {"data": None},
        {"_shape": None},
        {"_shape": (2, -3)},
        {"_shape": (10**9, 3)},
    ],
    ids=str,
)
def test_matrix_state_is_checked(change):
    matrix = MATRIX.copy()
    matrix.__dict__.update(change)
    with pytest.raises(InputError, match=r"file\.pkl: not a valid CSR matrix"):
        loads(pickle.dumps(matrix))


def test_damaged_pickles():
    data = python2_pickles.dumps(MATRIX)
    for length in range(len(data)):
        with pytest.raises(InputError):
            loads(data[:length])
    rng = np.random.default_rng(0)
    for _ in range(2000):
        broken = bytearray(data)
        broken[rng.integers(len(data))] = rng.integers(256)
        with contextlib.suppress(InputError):  # some changes, as in the numbers, do no harm
            loads(bytes(broken))


def test_missing_file_and_other_content(tmp_path):
    with pytest.raises(InputError, match="missing: No such file"):
        load_pickle(tmp_path / "missing")
    (tmp_path / "number").write_bytes(pickle.dumps(3))
    with pytest.raises(InputError, match="number: the pickle is not an array"):
        load_pickle(tmp_path / "number")


@pytest.mark.parametrize("opcode", [pickle.LONG_BINPUT, pickle.PUT])
def test_claimed_numbers_of_objects_take_no_memory(opcode):
    """C's unpickler makes room for as many as the number of the object that is stored."""
    number = struct.pack("<I", 2**24) if opcode == pickle.LONG_BINPUT else b"16777216\n"
    data = pickle.EMPTY_LIST + opcode + number + pickle.STOP
    tracemalloc.start()
    try:
        assert restricted_load(io.BytesIO(data), "p") == []
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10e6
