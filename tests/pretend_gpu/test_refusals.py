"""Programs that fail on CuPy fail here with CuPy's kind of error."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest

import pretend_gpu as gpu

HOST = np.ones((2, 3), np.float32)


def _x() -> gpu.ndarray:
    return gpu.asarray(HOST)


class _Opaque:
    """An operand that CuPy knows nothing of."""


class _Greedy:
    """An operand that asks for its turn, as Tensors do."""

    __array_ufunc__ = None

    def __radd__(self, other: object) -> str:
        return "mine"


IMPLICIT = "Implicit conversion to a NumPy array is not allowed"
UNSUPPORTED = "Unsupported type <class 'numpy.ndarray'>"
CONVERSIONS = {
    "asarray": lambda x: np.asarray(x),
    "array": lambda x: np.array(x),
    "array of a list": lambda x: np.array([x, x]),
    "assignment into NumPy": lambda x: HOST.copy().__setitem__(slice(None), x),
    "index of NumPy": lambda x: HOST[x],
    "frombuffer": lambda x: np.ascontiguousarray(x),
    "asarray of a mixed list": lambda x: gpu.asarray([x, 1.0]).get,
}


@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
def test_implicit_conversion_is_refused(convert) -> None:
    with pytest.raises(TypeError, match="Implicit conversion|Unsupported type"):
        convert(_x())
    with pytest.raises(TypeError, match=IMPLICIT):
        np.asarray(_x())


OPERATORS = "add sub mul truediv floordiv mod pow lt le eq ne gt ge matmul".split()


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("host", [HOST, np.ones(())], ids=["2-d", "0-d"])
def test_operators_refuse_numpy_on_both_sides(name: str, host: np.ndarray) -> None:
    apply = getattr(operator, name)
    with pytest.raises(TypeError, match=UNSUPPORTED):
        apply(_x(), host)
    with pytest.raises(TypeError, match="Unsupported type|NotImplemented|unsupported operand"):
        apply(host, _x())


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv"])
def test_inplace_operators_refuse_numpy_on_both_sides(name: str) -> None:
    with pytest.raises(TypeError, match=UNSUPPORTED):
        getattr(operator, name)(_x(), HOST)
    with pytest.raises(TypeError, match=UNSUPPORTED):
        getattr(operator, name)(HOST.copy(), _x())


MIXED = {
    "gpu ufunc": lambda x: gpu.add(x, HOST),
    "numpy ufunc": lambda x: np.add(x, HOST),
    "ufunc of a list": lambda x: gpu.add(x, [1, 2, 3]),
    "ufunc of None": lambda x: gpu.add(x, None),
    "out on the host": lambda x: gpu.add(x, x, out=HOST.copy()),
    "numpy out on the host": lambda x: np.add(x, x, out=HOST.copy()),
    "numpy out on the device": lambda x: np.add(HOST, HOST, out=x),
    "concatenate": lambda x: gpu.concatenate([x, HOST]),
    "numpy concatenate": lambda x: np.concatenate([x, HOST]),
    "where": lambda x: gpu.where(x > 0, x, HOST),
    "where condition": lambda x: gpu.where(HOST > 0, x, x),
    "clip": lambda x: gpu.clip(x, HOST, None),
    "sum": lambda x: gpu.sum(HOST),
    "sum of a list": lambda x: gpu.sum([1, 2]),
    "sum out": lambda x: x.sum(axis=0, out=np.empty(3, np.float32)),
    "einsum": lambda x: gpu.einsum("ij,ij->i", x, HOST),
    "tensordot": lambda x: gpu.tensordot(x, HOST),
    "dot": lambda x: x.dot(HOST.T),
    "norm": lambda x: gpu.linalg.norm(HOST),
    "fft": lambda x: gpu.fft.fft(HOST),
    "take": lambda x: x.take(np.array([0])),
    "take along": lambda x: gpu.take_along_axis(x, np.zeros((2, 1), int), 1),
    "index": lambda x: x[np.array([0])],
    "mask": lambda x: x[HOST > 0],
    "assigned value": lambda x: x.__setitem__(0, HOST[0]),
    "assigned list": lambda x: x.__setitem__(0, [1, 2, 3]),
    "assigned index": lambda x: x.__setitem__(np.array([0]), 1.0),
    "fill": lambda x: x.fill(np.ones(())),
    "copyto": lambda x: gpu.copyto(x, HOST),
    "copyto the host": lambda x: gpu.copyto(HOST.copy(), x),
    "at": lambda x: gpu.add.at(x, 0, HOST[0]),
    "full": lambda x: gpu.full(3, np.ones(())),
    "like": lambda x: gpu.zeros_like(HOST),
    "empty like": lambda x: gpu.empty_like(HOST),
    "module take": lambda x: gpu.take(HOST, 0),
    "reduce": lambda x: gpu.add.reduce(HOST),
    "array of an unknown object": lambda x: gpu.asarray(_Opaque()),
}


@pytest.mark.parametrize("run", MIXED.values(), ids=MIXED)
def test_functions_refuse_anything_but_device_arrays(run) -> None:
    with pytest.raises(TypeError, match="Unsupported type|NotImplemented"):
        run(_x())


# What CuPy 13 lacks: attributes, functions and arguments that NumPy has.
LACKING = {
    "mT": (AttributeError, "mT", lambda x: x.mT),
    "writeable": (AttributeError, "writeable", lambda x: x.flags.writeable),
    "setflags": (AttributeError, "setflags", lambda x: x.setflags),
    "array interface": (AttributeError, "interface", lambda x: x.__array_interface__),
    "ctypes": (AttributeError, "ctypes", lambda x: x.ctypes),
    "new attribute": (AttributeError, "tag", lambda x: setattr(x, "tag", 1)),
    "flags are fixed": (AttributeError, "assign", lambda x: setattr(x.flags, "owndata", True)),
    "resize": (AttributeError, "resize", lambda x: x.resize),
    "concat": (AttributeError, "has no attribute 'concat'", lambda x: gpu.concat),
    "bool": (AttributeError, "has no attribute 'bool'", lambda x: gpu.bool),
    "errstate": (AttributeError, "has no attribute 'errstate'", lambda x: gpu.errstate),
    "frompyfunc": (AttributeError, "no attribute 'frompyfunc'", lambda x: gpu.frompyfunc),
    "put_along_axis": (AttributeError, "no attribute", lambda x: gpu.put_along_axis),
    "random": (AttributeError, "CuPy has 'random', the pretend", lambda x: gpu.random),
    "hash": (TypeError, "unhashable", lambda x: hash(x)),
    "index protocol": (TypeError, "integer", lambda x: range(gpu.asarray(3))),
    "slice of arrays": (TypeError, "integer", lambda x: x[gpu.asarray(0) :]),
    "ufunc where": (TypeError, "Wrong arguments", lambda x: gpu.add(x, x, where=x > 0)),
    "ufunc order": (TypeError, "Wrong arguments", lambda x: gpu.add(x, x, order="C")),
    "sum where": (TypeError, "unexpected keyword", lambda x: gpu.sum(x, where=x > 0)),
    "sum initial": (TypeError, "unexpected keyword", lambda x: x.sum(initial=1)),
    "too many arguments": (TypeError, "positional", lambda x: gpu.squeeze(x, 0, 1)),
    "clip min": (TypeError, "unexpected keyword", lambda x: gpu.clip(x, min=0)),
    "astype casting": (TypeError, "casting", lambda x: x.astype(int, casting="safe")),
    "astype subok": (TypeError, "subok", lambda x: x.astype(int, subok=False)),
    "view type": (TypeError, "subclasses", lambda x: x.view(type=np.ndarray)),
    "maximum.reduce": (NotImplementedError, "reduce", lambda x: gpu.maximum.reduce(x)),
    "maximum.accumulate": (NotImplementedError, "accu", lambda x: gpu.maximum.accumulate(x)),
    "add.reduceat": (NotImplementedError, "reduceat", lambda x: gpu.add.reduceat(x, [0])),
    "multiply.at": (NotImplementedError, "at", lambda x: gpu.multiply.at(x, 0, x)),
    "numpy add.reduce": (TypeError, "NotImplemented", lambda x: np.add.reduce(x)),
    "numpy add.at": (TypeError, "NotImplemented", lambda x: np.add.at(x, 0, 1.0)),
    "numpy insert": (TypeError, "no implementation", lambda x: np.insert(x, 0, x)),
    "operand of another kind": (TypeError, "NotImplemented", lambda x: x + _Opaque()),
    "list operand": (TypeError, "NotImplemented", lambda x: x + [1, 2, 3]),
    "comparison with None": (TypeError, "NotImplemented", lambda x: x == None),  # noqa: E711
    "two outputs": (ValueError, "both", lambda x: gpu.add(x, x, x, out=x)),
    "number of arguments": (TypeError, "Wrong number", lambda x: gpu.add(x)),
    "array repeats": (ValueError, "repeats", lambda x: gpu.repeat(x, gpu.asarray([1, 2]))),
    "sort kind": (ValueError, "stable", lambda x: gpu.sort(x, kind="quicksort")),
    "at on int64": (TypeError, "only supports", lambda x: gpu.add.at(gpu.zeros(2, int), [0], 1)),
    "max.at on f16": (
        TypeError,
        "only supports",
        lambda x: gpu.maximum.at(x.astype("e"), [0], x.astype("e")[0]),
    ),
    "object dtype": (ValueError, "Unsupported dtype object", lambda x: gpu.zeros(2, object)),
    "string dtype": (ValueError, "Unsupported dtype", lambda x: gpu.asarray(np.array(["a"]))),
    "long double": (ValueError, "Unsupported dtype", lambda x: x.astype(np.longdouble)),
    "big-endian": (ValueError, "big-endian", lambda x: gpu.zeros(2, ">f4")),
    "float index": (IndexError, "integer or boolean", lambda x: x[x]),
    "float list index": (IndexError, "only integers", lambda x: x[[0.5]]),
    "object index": (IndexError, "only integers", lambda x: x[_Opaque()]),
    "two masks": (IndexError, "at most one", lambda x: x[x[:, 0] > 0, x[0] > 0]),
    "scalar index out of range": (IndexError, "out of bounds", lambda x: x[5]),
    "truth of many": (ValueError, "ambiguous", lambda x: bool(x)),
    "item of many": (ValueError, "size 1", lambda x: x.item()),
    "len of 0-d": (TypeError, "unsized", lambda x: len(x[0, 0])),
    "iteration of 0-d": (TypeError, "0-d", lambda x: iter(x[0, 0])),
    "get into a list": (TypeError, "Only numpy.ndarray", lambda x: x.get(out=[])),
    "get another dtype": (TypeError, "float64", lambda x: x.get(out=np.empty((2, 3)))),
    "get another shape": (ValueError, "Shape", lambda x: x.get(out=np.empty(2, np.float32))),
    "set a list": (TypeError, "Only numpy.ndarray", lambda x: x.set([1])),
    "set another dtype": (TypeError, "float64", lambda x: x.set(np.ones((2, 3)))),
    "set another shape": (ValueError, "Shape", lambda x: x.set(HOST[0])),
    "set strided": (RuntimeError, "contiguous", lambda x: x[:, ::2].set(HOST[:, ::2])),
    "take into another dtype": (TypeError, "dtype", lambda x: x.take(0, 0, gpu.zeros(3))),
    "take into another shape": (ValueError, "shape", lambda x: x.take(0, 0, gpu.zeros(1, "f"))),
    "raw memory": (NotImplementedError, "pointers", lambda x: gpu.ndarray(3, memptr=x.data)),
    "foreign DLPack": (BufferError, "own arrays", lambda x: gpu.from_dlpack(HOST)),
    "cast into integers": (TypeError, "cast", lambda x: operator.iadd(gpu.zeros(3, int), x[0])),
}


@pytest.mark.parametrize(("error", "message", "run"), LACKING.values(), ids=LACKING)
def test_what_cupy_lacks_is_refused(error: type[Exception], message: str, run) -> None:
    with pytest.raises(error, match=message):
        run(_x())


# Where CuPy would go on in silence with other values than NumPy.
SILENT = {
    "index array out of range": ("wraps indices", lambda x: x[[0, 5]]),
    "assignment out of range": ("wraps indices", lambda x: x.__setitem__([0, 5], 1.0)),
    "take out of range": ("wraps indices", lambda x: x.take([7])),
    "at out of range": ("wraps indices", lambda x: gpu.add.at(x, [7], 1.0)),
    "repeated index": ("any one of them", lambda x: x.__setitem__([0, 0], _x() * [[1], [2]][0][0])),
    "wide NumPy scalar": ("Pass a Python scalar", lambda x: x * np.float64(2)),
    "singular matrix": ("NaN in silence", lambda x: gpu.linalg.inv(gpu.zeros((2, 2)))),
}


@pytest.mark.parametrize(("message", "run"), SILENT.values(), ids=SILENT)
def test_silent_differences_are_loud(message: str, run) -> None:
    x = _x()
    x[1] *= 2
    if "any one" in message:
        with pytest.raises(gpu.Diverged, match=message):
            x[[0, 0]] = x
        return
    with pytest.raises(gpu.Diverged, match=message):
        run(x)


def test_repeated_indices_with_equal_values_are_fine() -> None:
    x = _x()
    x[[0, 0]] = gpu.zeros((2, 3), np.float32)
    assert x.get().tolist() == [[0, 0, 0], [1, 1, 1]]


def test_operands_that_ask_for_their_turn_get_it() -> None:
    assert _x() + _Greedy() == "mine"


def test_bfloat16_is_refused_unless_accepted() -> None:
    host = np.ones(3, ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match="Unsupported dtype bfloat16"):
        gpu.asarray(host)
    with gpu.bfloat16_accepted():
        assert (gpu.asarray(host) + gpu.asarray(host)).dtype == ml_dtypes.bfloat16
    with pytest.raises(ValueError, match="Unsupported dtype bfloat16"):
        gpu.zeros(3, ml_dtypes.bfloat16)


def test_it_is_no_numpy_array() -> None:
    assert not isinstance(_x(), np.ndarray)
    assert not isinstance(gpu.float32, gpu.ndarray)
