"""Transfers, waits and allocations are counted exactly, in total and by source line."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import pretend_gpu as gpu

HOST = np.ones((2, 3), np.float32)
KINDS = ("host_to_device", "device_to_host", "synchronisations", "allocations")


def _x() -> gpu.ndarray:
    return gpu.asarray(HOST)


# name: (calls of each of KINDS, what to do)
COSTS = {
    "asarray": ((1, 0, 0, 1), lambda x: gpu.asarray(HOST)),
    "asarray of a number": ((1, 0, 0, 1), lambda x: gpu.asarray(1.0)),
    "asarray of a device array": ((0, 0, 0, 0), lambda x: gpu.asarray(x)),
    "set": ((1, 0, 0, 0), lambda x: x.set(HOST)),
    "get": ((0, 1, 1, 0), lambda x: x.get()),
    "get without waiting": ((0, 1, 0, 0), lambda x: x.get(blocking=False)),
    "asnumpy": ((0, 1, 1, 0), lambda x: gpu.asnumpy(x)),
    "item": ((0, 1, 1, 0), lambda x: x[0, 0].item()),
    "float": ((0, 1, 1, 0), lambda x: float(x[0, 0])),
    "int": ((0, 1, 1, 0), lambda x: int(x[0, 0])),
    "truth": ((0, 1, 1, 0), lambda x: bool(x[0, 0])),
    "tolist": ((0, 1, 1, 0), lambda x: x.tolist()),
    "repr": ((0, 1, 1, 0), lambda x: repr(x)),
    "format": ((0, 1, 1, 0), lambda x: f"{x}"),
    "arithmetic": ((0, 0, 0, 1), lambda x: x + x),
    "arithmetic with a number": ((0, 0, 0, 1), lambda x: 2 * x),
    "numpy ufunc": ((0, 0, 0, 1), lambda x: np.exp(x)),
    "two outputs": ((0, 0, 0, 2), lambda x: gpu.modf(x)),
    "in place": ((0, 0, 0, 0), lambda x: x.__iadd__(1)),
    "out": ((0, 0, 0, 0), lambda x: gpu.add(x, x, out=x)),
    "reduction": ((0, 0, 0, 1), lambda x: x.sum()),
    "creation": ((0, 0, 0, 1), lambda x: gpu.zeros(3)),
    "full": ((0, 0, 0, 1), lambda x: gpu.full(3, 2.0)),
    "view": ((0, 0, 0, 0), lambda x: x[:, 1:].T.reshape(-1, 1, 2)[0]),
    "fill": ((0, 0, 0, 0), lambda x: x.fill(2.0)),
    "assign a number": ((0, 0, 0, 0), lambda x: x.__setitem__(0, 2.0)),
    "assign at a list": ((2, 0, 0, 2), lambda x: x.__setitem__([0], 2.0)),
    "assign at a mask": ((1, 0, 1, 1), lambda x: x.__setitem__(MASK, 2.0)),
    "read at a list": ((1, 0, 0, 2), lambda x: x[[0]]),
    "read at a mask": ((0, 0, 1, 1), lambda x: x[MASK]),
    "nonzero": ((0, 0, 1, 2), lambda x: x.nonzero()),
    "unique": ((0, 0, 1, 1), lambda x: gpu.unique(x)),
    "allclose": ((0, 0, 0, 1), lambda x: gpu.allclose(x, x)),
    "membership": ((0, 1, 1, 1), lambda x: 1.0 in x[0]),
    "device wait": ((0, 0, 1, 0), lambda x: gpu.cuda.Device().synchronize()),
    "stream wait": ((0, 0, 1, 0), lambda x: gpu.cuda.get_current_stream().synchronize()),
    "null stream wait": ((0, 0, 1, 0), lambda x: gpu.cuda.Stream.null.synchronize()),
    "runtime wait": ((0, 0, 1, 0), lambda x: gpu.cuda.runtime.deviceSynchronize()),
    "shape and dtype": ((0, 0, 0, 0), lambda x: (x.shape, x.dtype, x.size, len(x), x.device)),
}
MASK = gpu.asarray(HOST > 0)


@pytest.mark.parametrize(("calls", "run"), COSTS.values(), ids=COSTS)
def test_costs(calls: tuple[int, ...], run) -> None:
    x = _x()
    with gpu.counters.watch() as seen:
        run(x)
    assert tuple(seen.total(kind).calls for kind in KINDS) == calls, seen.report()


def test_bytes_are_counted() -> None:
    with gpu.counters.watch() as seen:
        x = _x()
        (x + x).get()
    assert seen.host_to_device.bytes == seen.device_to_host.bytes == 24
    assert seen.allocations.bytes == 48


def test_lines_are_named() -> None:
    with gpu.counters.watch() as seen:
        x = _x()
        for _ in range(2):
            np.sum(x).item()
    (upload,) = seen.by_line("host_to_device")
    assert upload == f"pretend_gpu/test_counting.py:{_x.__code__.co_firstlineno + 1}"
    ((line, tally),) = seen.by_line("device_to_host").items()
    here = test_lines_are_named.__code__.co_firstlineno
    assert line == f"pretend_gpu/test_counting.py:{here + 4}"
    assert tally == gpu.Tally(2, 8)
    assert f"device_to_host {line}: 2 calls, 8 bytes" in seen.report("device_to_host")


def test_nothing_counted_is_said() -> None:
    assert gpu.Snapshot().report() == "nothing was counted"


def test_watch_sees_only_its_block_and_reset_forgets() -> None:
    counters = gpu.Counters()
    counters.record("allocations", 8)
    with counters.watch() as seen:
        counters.record("allocations", 16)
    assert seen.allocations == gpu.Tally(1, 16)
    assert counters.allocations == gpu.Tally(2, 24)
    counters.reset()
    assert counters.allocations == gpu.Tally()


def test_threads_count_together() -> None:
    with gpu.counters.watch() as seen:
        threads = [threading.Thread(target=_x) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen.host_to_device.calls == 4
