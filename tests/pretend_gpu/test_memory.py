"""Views share memory, copies do not, and indices read and write like NumPy's."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import pretend_gpu as gpu

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _x() -> gpu.ndarray:
    return gpu.asarray(HOST)


VIEWS = {
    "slice": lambda x: x[:, 1:],
    "reversed": lambda x: x[::-1],
    "integer": lambda x: x[1],
    "element": lambda x: x[1, 2, 3],
    "whole": lambda x: x[...],
    "new axis": lambda x: x[:, None],
    "numpy integer": lambda x: x[np.int64(0)],
    "reshape": lambda x: x.reshape(6, 4),
    "ravel": lambda x: x.ravel(),
    "T": lambda x: x.T,
    "transpose": lambda x: x.transpose(1, 0, 2),
    "swapaxes": lambda x: x.swapaxes(0, 2),
    "broadcast": lambda x: gpu.broadcast_to(x, (2, 2, 3, 4)),
    "expanded": lambda x: gpu.expand_dims(x, 0),
    "squeezed": lambda x: x[:1].squeeze(0),
    "view": lambda x: x.view(),
    "view of another dtype": lambda x: x.view("i4"),
    "view of a view": lambda x: x[0][1:],
    "dlpack": lambda x: gpu.from_dlpack(x),
    "iteration": lambda x: next(iter(x)),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_views_share_memory_and_name_their_base(make) -> None:
    x = _x()
    view = make(x)
    with gpu.counters.watch() as seen:
        x.fill(0)
    assert not view.get().any()
    assert view.base is x
    assert not view.flags.owndata
    assert seen.allocations.calls == 0


COPIES = {
    "index array": lambda x: x[[0, 1]],
    "mask": lambda x: x[x > 3],
    "0-d index array": lambda x: x[gpu.asarray(1)],
    "copy": lambda x: x.copy(),
    "flatten": lambda x: x.flatten(),
    "arithmetic": lambda x: x + 0,
    "astype": lambda x: x.astype("f"),
    "plus": lambda x: +x,
    "take": lambda x: x.take(0, axis=0),
    "contiguous": lambda x: gpu.ascontiguousarray(x.T),
    "array": lambda x: gpu.array(x),
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_copies_have_their_own_memory(make) -> None:
    x = _x()
    made = make(x)
    before = made.get()
    x.fill(-1)
    np.testing.assert_array_equal(made.get(), before)
    assert made.base is None
    assert made.flags.owndata


def test_the_host_array_is_never_shared() -> None:
    host = HOST.copy()
    x = gpu.asarray(host)
    host[:] = 0
    assert x.get().any()
    back = x.get()
    back[:] = 0
    assert x.get().any()


def test_results_that_need_no_work_are_the_array_itself() -> None:
    x = _x()
    assert x.astype(np.float32, copy=False) is x
    assert x[0, 0].T.ndim == 1
    assert x.real is x
    y = x.copy()
    z = y
    z += x
    assert z is y
    assert gpu.add(x, x, out=y) is y
    assert gpu.sum(x, axis=0, out=y[0]).base is y


KEYS = {
    "integer": 1,
    "negative": -1,
    "slice": slice(None, None, 2),
    "tuple": (0, slice(1, 3)),
    "ellipsis": (..., 2),
    "list": [1, 0],
    "list and slice": (slice(None), [2, 0]),
    "two lists": ([0, 1], [2, 1]),
    "array": np.array([[1, 0]]),
    "arrays apart": (np.array([0, 1]), slice(None), np.array([3, 0])),
    "mask": HOST % 2 == 0,
    "leading mask": np.array([True, False]),
    "python bool": True,
    "empty list": [],
}


def _device_key(key: object) -> object:
    if isinstance(key, tuple):
        return tuple(_device_key(item) for item in key)
    return gpu.asarray(key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_indices_read_and_write_like_numpy(key: object) -> None:
    host_key = np.array(key, int) if isinstance(key, list) else key
    x, host = _x(), HOST.copy()
    np.testing.assert_array_equal(x[_device_key(key)].get(), host[host_key])
    x[_device_key(key)] = 7
    host[host_key] = 7
    np.testing.assert_array_equal(x.get(), host)
    values = np.arange(host[host_key].size, dtype=np.float32).reshape(host[host_key].shape)
    x[_device_key(key)] = gpu.asarray(values)
    host[host_key] = values
    np.testing.assert_array_equal(x.get(), host)


def test_scatters_combine_repeated_places() -> None:
    for name in ("add", "subtract", "maximum", "minimum"):
        x, host = _x(), HOST.copy()
        getattr(gpu, name).at(x, ([0, 0], 1), gpu.asarray(HOST[:, 0]))
        getattr(np, name).at(host, ([0, 0], 1), HOST[:, 0])
        np.testing.assert_array_equal(x.get(), host)
    x, host = _x(), HOST.copy()
    x.scatter_add([0, 0], 1.0)
    x.scatter_max([1], 50.0)
    x.scatter_min([1], 40.0)
    host[0] += 2
    host[1] = 40
    np.testing.assert_array_equal(x.get(), host)


def test_layout() -> None:
    x = _x()
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3, 4), 3, 24, 4, 96)
    assert x.strides == HOST.strides
    assert x.dtype is np.dtype("f")
    assert len(x) == 2
    assert x.flags.c_contiguous
    assert x.flags["C_CONTIGUOUS"]
    assert x.T.flags.f_contiguous
    assert x.T.flags.fnc
    assert not x[:, 1:].flags.forc
    assert x[1].data.ptr == x.data.ptr + 48
    assert x.data.device == x.device == gpu.cuda.Device(0)
    x.shape = (24,)
    assert x.shape == (24,)
    interface = x.__cuda_array_interface__
    assert interface["shape"] == (24,)
    assert interface["typestr"] == "<f4"
    assert x.__dlpack_device__() == (2, 0)
    assert weakref.ref(x)() is x


def test_set_and_get_into_given_memory() -> None:
    x = gpu.zeros((2, 3, 4), "f")
    x.set(HOST)
    out = np.empty_like(HOST)
    assert x.get(out=out) is out
    np.testing.assert_array_equal(out, HOST)
    assert gpu.asnumpy(x, order="F").flags.f_contiguous
    np.testing.assert_array_equal(gpu.asnumpy(HOST, out=np.empty_like(HOST)), HOST)


def test_copyto() -> None:
    x = gpu.zeros((2, 3, 4), "f")
    gpu.copyto(x, _x(), where=_x() > 3)
    np.testing.assert_array_equal(x.get(), np.where(HOST > 3, HOST, 0))
    gpu.copyto(x, 2)
    assert (x.get() == 2).all()


def test_complex_parts() -> None:
    z = gpu.asarray(np.array([1 + 2j, 3 - 1j]))
    assert z.real.get().tolist() == [1, 3]
    assert z.imag.get().tolist() == [2, -1]
    assert z.real.base is z
