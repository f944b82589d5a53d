"""What the tests of device logic check of one row of a table: results, gradients and costs."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from op_table import Row

import minitorch as mt

DEVICES = ("cuda:0", "cuda:1")


class On:
    """minitorch for a row of a table: tensors that the row makes live on the device.

    Attributes:
        made: How many.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self.made = 0

    def tensor(self, values: Any, **options: Any) -> Any:
        """`minitorch.tensor` on the device."""
        self.made += 1
        return mt.tensor(values, device=self._device, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(mt, name)


class Costs:
    """The rows that may wait for the device or take values from the host, with the reason."""

    def __init__(self, waits: Mapping[str, str], uploads: Mapping[str, str]) -> None:
        self.waits, self.uploads = waits, uploads

    def check(self, seen: Any, row: Row, made: int = 0) -> None:
        """Checks that nothing but `made` tensors crossed where the row has no reason."""
        if row.name not in self.waits and "waits" not in row.exempt:
            waits = seen.synchronisations.calls + seen.device_to_host.calls
            assert not waits, seen.report("synchronisations", "device_to_host")
        if row.name not in self.uploads and "uploads" not in row.exempt:
            assert seen.host_to_device.calls == made, seen.report("host_to_device")


def leaves(row: Row, shapes: Any, device: str, dtype: Any = np.float64) -> list[Any]:
    """The sample of a row as leaves; in float64 two orders of summation agree closely."""
    samples = row.sample(shapes, dtype)
    return [mt.tensor(array, device=device).requires_grad_() for array in samples]


def flat(result: Any) -> list[Any]:
    """The parts of a result that may be a tuple or list."""
    if isinstance(result, tuple | list):
        return [item for part in result for item in flat(part)]
    return [result]


def numbers(x: Any) -> np.ndarray:
    """The values of a result on the host."""
    return x.detach().cpu().numpy() if isinstance(x, mt.Tensor) else np.asarray(x)


def check_equal(on_device: list[Any], on_cpu: list[Any], device: str) -> None:
    """Checks kind, place, dtype, shape and values of every part."""
    assert len(on_device) == len(on_cpu)
    for got, want in zip(on_device, on_cpu, strict=True):
        assert type(got) is type(want)
        if isinstance(got, mt.Tensor):
            assert str(got.device) == device
            assert got.dtype is want.dtype
            assert got.shape == want.shape
            assert got.requires_grad == want.requires_grad
        np.testing.assert_allclose(numbers(got), numbers(want), rtol=1e-4, atol=1e-5)


def scalar(results: list[Any]) -> Any:
    """A number that every differentiable result has a different share in, or None."""
    parts = [r for r in results if isinstance(r, mt.Tensor) and r.requires_grad]
    return sum(((r * r).sum() * (i + 1) for i, r in enumerate(parts)), start=0) if parts else None


def check_results(row: Row, device: str, gpu: ModuleType, costs: Costs) -> None:
    """Checks that the row gives on `device`, which is the current one, what it gives on the CPU."""
    for shapes in row.shapes:
        on_cpu = flat(row.call(mt, *leaves(row, shapes, "cpu", np.float32)))
        with gpu.cuda.Device(int(device[-1])):
            inputs, m = leaves(row, shapes, device, np.float32), On(device)
            with gpu.counters.watch() as seen:
                on_device = flat(row.call(m, *inputs))
        check_equal(on_device, on_cpu, device)
        costs.check(seen, row, m.made)


def check_gradients(row: Row, gpu: ModuleType, costs: Costs) -> None:
    """Checks that the gradients on the device are the CPU's."""
    cpu, other = (leaves(row, row.shapes[0], device) for device in ("cpu", DEVICES[0]))
    losses = [scalar(flat(row.call(m, *xs))) for m, xs in ((mt, cpu), (On(DEVICES[0]), other))]
    if losses[0] is None:
        assert losses[1] is None
        return
    losses[0].backward()
    with gpu.counters.watch() as seen:
        losses[1].backward()
    for got, want in zip(other, cpu, strict=True):
        assert (got.grad is None) == (want.grad is None)
        if got.grad is not None:
            check_equal([got.grad], [want.grad], DEVICES[0])
    costs.check(seen, row)


def second_gradients(row: Row, device: str) -> list[Any]:
    """Gradients of a number made of the gradients of the row; empty where there are none."""
    xs = leaves(row, row.shapes[0], device)
    loss = scalar(flat(row.call(On(device), *xs)))
    if loss is None:
        return []
    first = mt.autograd.grad(loss, xs, create_graph=True, allow_unused=True)
    again = scalar([g for g in first if g is not None])
    if again is None:
        return []
    second = mt.autograd.grad(again, xs, allow_unused=True)
    return [g for g in second if g is not None]


def check_second_gradients(row: Row) -> None:
    """Checks that the second gradients on the device are the CPU's."""
    check_equal(second_gradients(row, DEVICES[0]), second_gradients(row, "cpu"), DEVICES[0])
